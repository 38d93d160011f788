"""A client for the decision service, with retries, timeouts and a fallback. Needs the extra `client` (httpx).

The client generates the event ids, so that repeating a request is harmless. If the service cannot be reached in time,
`decide` returns a fallback label. Outcomes are sent in the background from a bounded queue that never drops one: when
the queue is full, `send_outcome` waits or raises.

Example:
    >>> from gaptron.client import Client
    >>> with Client("http://127.0.0.1:8717", "triage", fallback="mail") as client:  # doctest: +SKIP
    ...     decision = client.decide([0.3, 1.0])
    ...     client.send_outcome(decision, correct=decision.label == "mail")
"""

import asyncio
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from gaptron.errors import GaptronError, InputError
from gaptron.event_id import new_event_id

try:
    import httpx
except ImportError:
    raise ImportError("the client needs httpx: pip install 'gaptron[client]'") from None

__all__ = ["AsyncClient", "Client", "Decision", "ServiceError"]

ATTEMPTS, PAUSE = 3, 0.05  # of each request; seconds before the second attempt, doubled each time
RETRYABLE = (429, 502, 503, 504)


class ServiceError(GaptronError):
    """The service refused a request, or could not be reached.

    Attributes:
        status: the HTTP status; None if the service could not be reached.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)

    @property
    def is_retryable(self) -> bool:
        """Can the same request succeed later?"""
        return self.status is None or self.status in RETRYABLE


class Decision(NamedTuple):
    """A label to play."""

    event_id: str
    label: str
    propensity: float | None  # the probability with which the label was drawn; None for a fallback
    distribution: dict[str, float] | None  # None for a fallback, and in shadow mode
    is_fallback: bool  # the service could not be reached; it knows nothing of this decision


class _Attempt(NamedTuple):
    is_last: bool
    pause: float  # seconds before the next attempt


class BaseClient:
    """The common part of `Client` and `AsyncClient`, which document the arguments."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        timeout: float = 1.0,
        fallback: str | None = None,
        max_pending: int = 1000,
        when_full: str = "wait",
        transport: Any = None,
    ) -> None:
        if when_full not in ("wait", "raise"):
            raise InputError(f"when_full={when_full!r} must be 'wait' or 'raise'")
        self._path = f"/v1/models/{model}"
        self._fallback = fallback
        self._wait = when_full == "wait"
        self._refused: list[ServiceError] = []
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._open({"base_url": url, "timeout": timeout, "headers": headers, "transport": transport}, max_pending)

    def _open(self, http: dict[str, Any], max_pending: int) -> None:
        raise NotImplementedError

    def _request(self, x: Any, event_id: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        features = {"features": dict(x)} if isinstance(x, Mapping) else {"x": [float(value) for value in x]}
        return {"event_id": event_id or new_event_id(), **features, **fields}

    def _decision(self, event_id: str, response: httpx.Response) -> Decision:
        body = _body(response)
        return Decision(event_id, body["label"], body["propensity"], body.get("distribution"), False)

    def _fall_back(self, event_id: str, problem: ServiceError) -> Decision:
        """Return the fallback if the service could not be reached; raise if it refused the request."""
        if self._fallback is None or not problem.is_retryable:
            raise problem
        return Decision(event_id, self._fallback, None, None, True)

    def _outcome(self, decision: Decision | str, outcome: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """Return the path and body of an outcome; None for a fallback, of which the service knows nothing."""
        self._raise_refused()
        if not outcome:
            raise InputError("an outcome is missing: give correct=, reward=, label= or void=")
        if isinstance(decision, Decision):
            if decision.is_fallback:
                return None
            decision = decision.event_id
        return f"{self._path}/decisions/{decision}/outcome", dict(outcome)

    def _is_final(self, problem: ServiceError) -> bool:
        """Was an outcome refused for good? Then the next call raises the error. Otherwise the outcome is sent again."""
        if problem.is_retryable:
            return False
        self._refused.append(problem)
        return True

    def _raise_refused(self) -> None:
        if self._refused:
            raise self._refused.pop(0)


class Client(BaseClient):
    """A client for one model of a service.

    Use it in a `with` statement or call `close`, which waits until every outcome has been sent.

    Args:
        url: the address of the service.
        model: the name of the model.
        key: a key of the service with the roles decide and feedback; None if the service has no keys.
        timeout: seconds that one attempt may take.
        fallback: the label to play when the service cannot be reached; None raises ServiceError instead.
        max_pending: the number of outcomes that may wait to be sent.
        when_full: what `send_outcome` does when that many are waiting: "wait", or "raise" a ServiceError.
        transport: the transport of httpx, for proxies and tests.
    """

    def _open(self, http: dict[str, Any], max_pending: int) -> None:
        self._client = httpx.Client(**http)
        self._outcomes: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue(max_pending)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._send_outcomes, name="gaptron-outcomes", daemon=True)
        self._thread.start()

    def decide(self, x: Sequence[float] | Mapping[str, Any], *, event_id: str | None = None, **fields: Any) -> Decision:
        """Ask for a label.

        Args:
            x: the features: numbers, or a mapping of names to values.
            event_id: your id of the event; generated if left out. The same request with the same id returns the same
                decision.
            **fields: further fields of the request: available, advice, played.

        Returns:
            The decision, or the fallback if the service cannot be reached.

        Raises:
            ServiceError: the service refused the request, or it cannot be reached and there is no fallback.
        """
        body = self._request(x, event_id, fields)
        try:
            return self._decision(body["event_id"], self._send("POST", f"{self._path}/decisions", body))
        except ServiceError as problem:
            return self._fall_back(body["event_id"], problem)

    def send_outcome(self, decision: Decision | str, **outcome: Any) -> None:
        """Send the outcome of a decision in the background, repeatedly while the service cannot be reached.

        The outcome of a fallback is ignored.

        Args:
            decision: the decision, or the id of its event.
            **outcome: correct=, reward=, label= or void=, and optionally played=.

        Raises:
            ServiceError: the queue is full (with `when_full="raise"`), or the service refused an earlier outcome.
        """
        request = self._outcome(decision, outcome)
        if request is None:
            return
        try:
            self._outcomes.put(request, block=self._wait)
        except queue.Full:
            raise _full(self._outcomes.maxsize) from None

    def flush(self) -> None:
        """Wait until every outcome has been sent."""
        self._outcomes.join()
        self._raise_refused()

    def close(self) -> None:
        """Wait until every outcome has been sent, and close the connections."""
        if not self._closing.is_set():
            self._closing.set()
            self._outcomes.put(None)
            self._thread.join()
            self._client.close()
        self._raise_refused()

    def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        """Send a request, repeatedly if it fails: event ids make that harmless."""
        for attempt in _attempts():
            try:
                response = self._client.request(method, path, json=body)
                if attempt.is_last or response.status_code not in RETRYABLE:
                    return response
            except httpx.TransportError as problem:
                if attempt.is_last:
                    raise _unreachable(problem) from None
            time.sleep(attempt.pause)
        raise AssertionError

    def _send_outcomes(self) -> None:
        while (request := self._outcomes.get()) is not None:
            while True:
                try:
                    _body(self._send("PUT", *request))
                    break
                except ServiceError as problem:
                    if self._is_final(problem):
                        break
            self._outcomes.task_done()
        self._outcomes.task_done()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(BaseClient):
    """The same as `Client` for asyncio. Use it in an `async with` statement.

    Args:
        url: the address of the service.
        model: the name of the model.
        key: a key of the service with the roles decide and feedback; None if the service has no keys.
        timeout: seconds that one attempt may take.
        fallback: the label to play when the service cannot be reached; None raises ServiceError instead.
        max_pending: the number of outcomes that may wait to be sent.
        when_full: what `send_outcome` does when that many are waiting: "wait", or "raise" a ServiceError.
        transport: the transport of httpx, for proxies and tests.
    """

    def _open(self, http: dict[str, Any], max_pending: int) -> None:
        self._client = httpx.AsyncClient(**http)
        self._outcomes: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(max_pending)
        self._task: asyncio.Task[None] | None = None

    async def decide(
        self, x: Sequence[float] | Mapping[str, Any], *, event_id: str | None = None, **fields: Any
    ) -> Decision:
        """Ask for a label.

        Args:
            x: the features: numbers, or a mapping of names to values.
            event_id: your id of the event; generated if left out. The same request with the same id returns the same
                decision.
            **fields: further fields of the request: available, advice, played.

        Returns:
            The decision, or the fallback if the service cannot be reached.

        Raises:
            ServiceError: the service refused the request, or it cannot be reached and there is no fallback.
        """
        body = self._request(x, event_id, fields)
        try:
            return self._decision(body["event_id"], await self._send("POST", f"{self._path}/decisions", body))
        except ServiceError as problem:
            return self._fall_back(body["event_id"], problem)

    async def send_outcome(self, decision: Decision | str, **outcome: Any) -> None:
        """Send the outcome of a decision in the background, repeatedly while the service cannot be reached.

        The outcome of a fallback is ignored.

        Args:
            decision: the decision, or the id of its event.
            **outcome: correct=, reward=, label= or void=, and optionally played=.

        Raises:
            ServiceError: the queue is full (with `when_full="raise"`), or the service refused an earlier outcome.
        """
        request = self._outcome(decision, outcome)
        if request is None:
            return
        if self._task is None:
            self._task = asyncio.create_task(self._send_outcomes())
        if self._outcomes.full() and not self._wait:
            raise _full(self._outcomes.maxsize)
        await self._outcomes.put(request)

    async def flush(self) -> None:
        """Wait until every outcome has been sent."""
        await self._outcomes.join()
        self._raise_refused()

    async def close(self) -> None:
        """Wait until every outcome has been sent, and close the connections."""
        await self._outcomes.join()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._client.aclose()
        self._raise_refused()

    async def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        """Send a request, repeatedly if it fails: event ids make that harmless."""
        for attempt in _attempts():
            try:
                response = await self._client.request(method, path, json=body)
                if attempt.is_last or response.status_code not in RETRYABLE:
                    return response
            except httpx.TransportError as problem:
                if attempt.is_last:
                    raise _unreachable(problem) from None
            await asyncio.sleep(attempt.pause)
        raise AssertionError

    async def _send_outcomes(self) -> None:
        while request := await self._outcomes.get():
            while True:
                try:
                    _body(await self._send("PUT", *request))
                    break
                except ServiceError as problem:
                    if self._is_final(problem):
                        break
            self._outcomes.task_done()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _attempts() -> Iterator[_Attempt]:
    for number in range(ATTEMPTS):
        yield _Attempt(number == ATTEMPTS - 1, PAUSE * 2**number)


def _full(count: int) -> ServiceError:
    return ServiceError(f"{count} outcomes are waiting to be sent, because the service cannot be reached")


def _unreachable(problem: httpx.TransportError) -> ServiceError:
    return ServiceError(f"the service cannot be reached: {type(problem).__name__} {problem}".rstrip())


def _body(response: httpx.Response) -> dict[str, Any]:
    if response.is_success:
        body: dict[str, Any] = response.json()
        return body
    try:
        detail = response.json()["detail"]
    except (ValueError, LookupError, TypeError):
        detail = response.text[:200]
    raise ServiceError(f"{response.status_code}: {detail}", response.status_code)
