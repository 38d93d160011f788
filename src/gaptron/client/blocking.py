"""The client for threads."""

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from gaptron.client.base import CLOSE_TIMEOUT, BaseClient, report_beside, unreachable
from gaptron.client.errors import ServiceError, UndeliveredError
from gaptron.client.messages import Decision, OutcomeMessage, body_of, check_recorded, decision_of, decision_request


class Client(BaseClient):
    """A client for one model of a service. Many threads may use it.

    Use it in a `with` statement or call `close`, which waits until the outcomes have been sent. After a fork, the child
    has an empty queue: the parent sends the outcomes that were waiting.

    Args:
        url: the address of the service.
        model: the name of the model.
        key: a key of the service with the roles decide and feedback; None if the service has no keys.
        timeout: seconds that one attempt may wait to connect, to send or to receive.
        fallback: the label or action to play when the service cannot be reached; None raises ServiceError instead.
        max_pending: the number of outcomes that may wait to be sent.
        when_full: what `send_outcome` does when that many are waiting: "wait", or "raise" a ServiceError.
        transport: the transport of httpx, for proxies and tests. A forked child uses the same object.
    """

    def _open(self) -> None:
        self._client = httpx.Client(**self._http)
        self._changed = threading.Condition()  # guards the outbox, the thread and the two flags
        self._stopped = False
        self._thread: threading.Thread | None = None

    def decide(
        self,
        x: Sequence[float] | Mapping[str, Any] | None = None,
        *,
        event_id: str | None = None,
        fallback: str | None = None,
        **fields: Any,
    ) -> Decision:
        """Ask for a label, or for one of the actions of this request.

        Args:
            x: the features: numbers, or a mapping of names to values. With actions: the context, which may be left out.
            event_id: your id of the event; generated if left out. The same request with the same id returns the same
                decision.
            fallback: what to play when the service cannot be reached, in place of the client's. Of actions the id of
                one that may be played; the client's counts only if it is one of them.
            **fields: further fields of the request: available, advice, played; actions (a mapping of ids to features,
                or a list of (id, features)) and excluded (the ids of those that may not be played).

        Returns:
            The decision, or the fallback if the service cannot be reached.

        Raises:
            InputError: a value that cannot be sent.
            ServiceError: the service refused the request, or it cannot be reached and there is no fallback.
            ClientClosedError: the client was closed.
        """
        last_resort = self._fallback_of(fallback, fields)
        event_id, content = decision_request(x, event_id, fields)
        attempt = 0
        while True:
            self._check_open()
            try:
                return decision_of(self._exchange("POST", f"{self._path}/decisions", content), event_id)
            except ServiceError as problem:
                pause = self._pause(attempt, problem)
                if pause is None:
                    return self._fall_back(event_id, last_resort, problem)
            self._rest(pause)
            attempt += 1

    def send_outcome(self, decision: Decision | str, **outcome: Any) -> None:
        """Send the outcome of a decision in the background, repeatedly while the service cannot be reached.

        The outcome of a fallback is ignored. A call that raises has not queued its outcome.

        Args:
            decision: the decision, or the id of its event.
            **outcome: correct=, reward=, label=, action= or void=, and optionally played=.

        Raises:
            InputError: an outcome that cannot be sent.
            UndeliveredError: the service refused earlier outcomes, which the error lists once; call again.
            ServiceError: the queue is full (with `when_full="raise"`).
            ClientClosedError: the client was closed.
        """
        with self._changed:
            message = self._message(decision, outcome)
            if message is None:
                return
            self._ensure_thread()
            self._changed.wait_for(lambda: self._closed or not self._outbox.is_full)
            self._check_open()
            self._outbox.waiting.append(message)
            self._changed.notify_all()

    def flush(self, timeout: float | None = CLOSE_TIMEOUT) -> None:
        """Wait until every outcome has been sent.

        Args:
            timeout: seconds to wait; None waits without limit.

        Raises:
            UndeliveredError: outcomes that the service refused, and outcomes that are still waiting after the timeout.
                The latter remain in the queue.
            ClientClosedError: the client was closed.
        """
        with self._changed:
            self._check_open()
            self._wait_until_empty(timeout)
            self._outbox.raise_undelivered(" yet")

    def close(self, timeout: float | None = CLOSE_TIMEOUT) -> None:
        """Wait until every outcome has been sent, and close the connections. Closing twice is harmless.

        Args:
            timeout: seconds to wait; None waits without limit.

        Raises:
            UndeliveredError: outcomes that were not delivered. The client is closed all the same.
        """
        with self._changed:
            if self._closed:
                return
            self._closed = True  # no further outcomes
            self._changed.notify_all()
            try:
                self._wait_until_empty(timeout)
            finally:
                self._stopped = True
                self._changed.notify_all()
                self._client.close()
            self._outbox.raise_undelivered("")

    def _wait_until_empty(self, timeout: float | None) -> None:
        if self._outbox.waiting:
            self._ensure_thread()
        self._changed.wait_for(lambda: not self._outbox.waiting, timeout)

    def _exchange(self, method: str, path: str, content: bytes) -> dict[str, Any]:
        """Send a request once."""
        try:
            return body_of(self._client.request(method, path, content=content))
        except (httpx.HTTPError, OSError) as problem:
            raise unreachable(problem) from None

    def _rest(self, seconds: float) -> None:
        """Wait between two attempts, or until the client is stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, seconds)

    def _ensure_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._send_outcomes, name="gaptron-outcomes", daemon=True)
            self._thread.start()

    def _send_outcomes(self) -> None:
        """Send the outcomes one by one until the client is stopped. Nothing ends this thread before that."""
        while (message := self._next()) is not None:
            problem = self._deliver(message)
            with self._changed:
                pause = self._outbox.record(problem)
                self._changed.notify_all()
            self._rest(pause)

    def _next(self) -> OutcomeMessage | None:
        """Wait for an outcome; return None when the client is stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or bool(self._outbox.waiting))
            return None if self._stopped else self._outbox.waiting[0]

    def _deliver(self, message: OutcomeMessage) -> ServiceError | None:
        """Try to send an outcome once."""
        try:
            check_recorded(self._exchange("PUT", self._outcome_path(message), message.content))
        except ServiceError as problem:
            return problem
        except Exception as problem:  # from the caller's transport: it must not end the thread
            return unreachable(problem)
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.close()
        except UndeliveredError as problem:
            report_beside(error, problem)
