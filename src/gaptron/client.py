"""Ask a decision service, with the care that a caller in production needs. Needs the extra `client` (httpx).

A client makes the event's id itself, so that a request can be sent again without harm; it gives up in time and plays a
fallback label when the service is away; and it keeps answers in a queue that is bounded and never drops one: when it is
full, `answer` waits or raises.
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

__all__ = ["Answer", "AsyncClient", "Client", "ServiceError"]

TRIES, PAUSE = 3, 0.05  # how often a request is sent; seconds before the second time, doubled each time
AGAIN = (429, 502, 503, 504)


class ServiceError(GaptronError):
    """The service refused a request, or could not be reached; `status` is None in the second case."""

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)

    @property
    def is_away(self) -> bool:
        """Could the same request do better later?"""
        return self.status is None or self.status in AGAIN


class Answer(NamedTuple):
    """A label to play. `decided` is False if it is the fallback: then there is nothing to answer."""

    event_id: str
    label: str
    probability: float | None
    distribution: dict[str, float] | None
    decided: bool


class _Attempt(NamedTuple):
    """One of the times a request is sent."""

    last: bool
    pause: float  # seconds before the next


class Caller:
    """What both clients have in common: what they are made of, the requests, and how answers are read.

    Args:
        url: where the service is.
        model: whose decisions.
        key: of the service, with the roles decide and answer.
        timeout: seconds that one attempt may take.
        fallback: the label to play when the service is away; None: ServiceError.
        most_waiting: answers that may wait to be delivered.
        when_full: "wait" until there is room for an answer, or "raise" a ServiceError.
        transport: httpx's, for proxies and tests.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        timeout: float = 1.0,
        fallback: str | None = None,
        most_waiting: int = 1000,
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
        self._open({"base_url": url, "timeout": timeout, "headers": headers, "transport": transport}, most_waiting)

    def _open(self, http: dict[str, Any], most_waiting: int) -> None:
        raise NotImplementedError

    def _decision(self, x: Any, event_id: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
        given = {"features": dict(x)} if isinstance(x, Mapping) else {"x": [float(value) for value in x]}
        return {"event_id": event_id or new_event_id(), **given, **more}

    def _read(self, event_id: str, response: httpx.Response) -> Answer:
        body = _body(response)
        return Answer(event_id, body["label"], body["probability"], body.get("distribution"), True)

    def _instead(self, event_id: str, problem: ServiceError) -> Answer:
        """The fallback, where the service is away; what it refuses is refused here too."""
        if self._fallback is None or not problem.is_away:
            raise problem
        return Answer(event_id, self._fallback, None, None, False)

    def _outcome(self, answer: Answer | str, outcome: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """The path and body of an answer; None: there is nothing to answer."""
        self._raise_refused()
        if not outcome:
            raise InputError("say how it turned out: correct=, reward=, label= or void=")
        if isinstance(answer, Answer):
            if not answer.decided:
                return None
            answer = answer.event_id
        return f"{self._path}/decisions/{answer}/outcome", dict(outcome)

    def _is_settled(self, problem: ServiceError) -> bool:
        """Was an answer refused for good? Then its caller hears of it. If the service is away, it is sent again."""
        if problem.is_away:
            return False
        self._refused.append(problem)
        return True

    def _raise_refused(self) -> None:
        if self._refused:
            raise self._refused.pop(0)


class Client(Caller):
    """Decisions of one model of a service. Use it in a `with`, or `close` it: then every answer has been delivered.

    What it is made of says `Caller`.
    """

    def _open(self, http: dict[str, Any], most_waiting: int) -> None:
        self._client = httpx.Client(**http)
        self._answers: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue(most_waiting)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._deliver, name="gaptron-answers", daemon=True)
        self._thread.start()

    def decide(self, x: Sequence[float] | Mapping[str, Any], *, event_id: str | None = None, **more: Any) -> Answer:
        """A label for x, a row or named features. `more` is passed on: among, exclude, advice, played."""
        body = self._decision(x, event_id, more)
        try:
            return self._read(body["event_id"], self._send("POST", f"{self._path}/decisions", body))
        except ServiceError as problem:
            return self._instead(body["event_id"], problem)

    def answer(self, decision: Answer | str, **outcome: Any) -> None:
        """Say how a decision (or the event of this id) turned out: correct=, reward=, label= or void=.

        It is delivered soon, and again and again while the service is away.
        """
        given = self._outcome(decision, outcome)
        if given is None:
            return
        try:
            self._answers.put(given, block=self._wait)
        except queue.Full:
            raise _full(self._answers.maxsize) from None

    def flush(self) -> None:
        """Wait until every answer has been delivered."""
        self._answers.join()
        self._raise_refused()

    def close(self) -> None:
        """Deliver every answer, and end."""
        if not self._closing.is_set():
            self._closing.set()
            self._answers.put(None)
            self._thread.join()
            self._client.close()
        self._raise_refused()

    def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        """Send it, again if it may have been lost: ids make that harmless."""
        for attempt in _attempts():
            try:
                response = self._client.request(method, path, json=body)
                if attempt.last or response.status_code not in AGAIN:
                    return response
            except httpx.TransportError as problem:
                if attempt.last:
                    raise _away(problem) from None
            time.sleep(attempt.pause)
        raise AssertionError

    def _deliver(self) -> None:
        while (one := self._answers.get()) is not None:
            while True:
                try:
                    _body(self._send("PUT", *one))
                    break
                except ServiceError as problem:
                    if self._is_settled(problem):
                        break
            self._answers.task_done()
        self._answers.task_done()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(Caller):
    """The same as `Client` for asyncio: `decide` and `answer` are awaited. Use it in an `async with`."""

    def _open(self, http: dict[str, Any], most_waiting: int) -> None:
        self._client = httpx.AsyncClient(**http)
        self._answers: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(most_waiting)
        self._task: asyncio.Task[None] | None = None

    async def decide(
        self, x: Sequence[float] | Mapping[str, Any], *, event_id: str | None = None, **more: Any
    ) -> Answer:
        """As `Client.decide`."""
        body = self._decision(x, event_id, more)
        try:
            return self._read(body["event_id"], await self._send("POST", f"{self._path}/decisions", body))
        except ServiceError as problem:
            return self._instead(body["event_id"], problem)

    async def answer(self, decision: Answer | str, **outcome: Any) -> None:
        """As `Client.answer`."""
        given = self._outcome(decision, outcome)
        if given is None:
            return
        if self._task is None:
            self._task = asyncio.create_task(self._deliver())
        if self._answers.full() and not self._wait:
            raise _full(self._answers.maxsize)
        await self._answers.put(given)

    async def flush(self) -> None:
        """Wait until every answer has been delivered."""
        await self._answers.join()
        self._raise_refused()

    async def close(self) -> None:
        """Deliver every answer, and end."""
        await self._answers.join()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._client.aclose()
        self._raise_refused()

    async def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        """As `Client._send`."""
        for attempt in _attempts():
            try:
                response = await self._client.request(method, path, json=body)
                if attempt.last or response.status_code not in AGAIN:
                    return response
            except httpx.TransportError as problem:
                if attempt.last:
                    raise _away(problem) from None
            await asyncio.sleep(attempt.pause)
        raise AssertionError

    async def _deliver(self) -> None:
        while one := await self._answers.get():
            while True:
                try:
                    _body(await self._send("PUT", *one))
                    break
                except ServiceError as problem:
                    if self._is_settled(problem):
                        break
            self._answers.task_done()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _attempts() -> Iterator[_Attempt]:
    for number in range(TRIES):
        yield _Attempt(number == TRIES - 1, PAUSE * 2**number)


def _full(count: int) -> ServiceError:
    return ServiceError(f"{count} answers wait to be delivered: the service is away")


def _away(problem: httpx.TransportError) -> ServiceError:
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
