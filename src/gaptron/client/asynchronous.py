"""The client for asyncio."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from gaptron.client.base import CLOSE_TIMEOUT, BaseClient, report_beside, unreachable
from gaptron.client.errors import ServiceError, UndeliveredError
from gaptron.client.messages import Decision, OutcomeMessage, body_of, check_recorded, decision_of, decision_request


class AsyncClient(BaseClient):
    """The same as `Client` for asyncio. Use it in one event loop and in an `async with` statement.

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
        self._client = httpx.AsyncClient(**self._http)
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def decide(
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
                return decision_of(await self._exchange("POST", f"{self._path}/decisions", content), event_id)
            except ServiceError as problem:
                pause = self._pause(attempt, problem)
                if pause is None:
                    return self._fall_back(event_id, last_resort, problem)
            await self._rest(pause)
            attempt += 1

    async def send_outcome(self, decision: Decision | str, **outcome: Any) -> None:
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
        async with self._changed:
            message = self._message(decision, outcome)
            if message is None:
                return
            self._ensure_task()
            await self._changed.wait_for(lambda: self._closed or not self._outbox.is_full)
            self._check_open()
            self._outbox.waiting.append(message)
            self._changed.notify_all()

    async def flush(self, timeout: float | None = CLOSE_TIMEOUT) -> None:
        """Wait until every outcome has been sent.

        Args:
            timeout: seconds to wait; None waits without limit.

        Raises:
            UndeliveredError: outcomes that the service refused, and outcomes that are still waiting after the timeout.
                The latter remain in the queue.
            ClientClosedError: the client was closed.
        """
        self._check_open()
        await self._wait_until_empty(timeout)
        self._outbox.raise_undelivered(" yet")

    async def close(self, timeout: float | None = CLOSE_TIMEOUT) -> None:
        """Wait until every outcome has been sent, and close the connections. Closing twice is harmless.

        Args:
            timeout: seconds to wait; None waits without limit.

        Raises:
            UndeliveredError: outcomes that were not delivered. The client is closed all the same.
        """
        if self._closed:
            return
        self._closed = True  # no further outcomes
        async with self._changed:
            self._changed.notify_all()
        try:
            await self._wait_until_empty(timeout)
        finally:
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
            await self._client.aclose()
        self._outbox.raise_undelivered("")

    async def _wait_until_empty(self, timeout: float | None) -> None:
        if not self._outbox.waiting:
            return
        self._ensure_task()
        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait_for(lambda: not self._outbox.waiting)
        except TimeoutError:
            pass  # the caller reports what is waiting

    async def _exchange(self, method: str, path: str, content: bytes) -> dict[str, Any]:
        """Send a request once."""
        try:
            return body_of(await self._client.request(method, path, content=content))
        except (httpx.HTTPError, OSError) as problem:
            raise unreachable(problem) from None

    async def _rest(self, seconds: float) -> None:
        """Wait between two attempts."""
        await asyncio.sleep(seconds)

    def _ensure_task(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send_outcomes())

    async def _send_outcomes(self) -> None:
        """Send the outcomes one by one until the task is cancelled. Nothing else ends it."""
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._outbox.waiting))
            problem = await self._deliver(self._outbox.waiting[0])
            async with self._changed:
                pause = self._outbox.record(problem)
                self._changed.notify_all()
            await self._rest(pause)

    async def _deliver(self, message: OutcomeMessage) -> ServiceError | None:
        """Try to send an outcome once."""
        try:
            check_recorded(await self._exchange("PUT", self._outcome_path(message), message.content))
        except ServiceError as problem:
            return problem
        except Exception as problem:  # from the caller's transport: it must not end the task
            return unreachable(problem)
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except UndeliveredError as problem:
            report_beside(error, problem)
