"""The common part of the two clients: arguments, retries, and the outcomes that wait to be sent."""

import os
import random
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any

import httpx

from gaptron.client.errors import ClientClosedError, ServiceError, Undelivered, UndeliveredError
from gaptron.client.messages import Decision, OutcomeMessage, offered, outcome_message, plain, url_part
from gaptron.errors import InputError

ATTEMPTS = 3  # of a request for a decision
FIRST_PAUSE, MAX_PAUSE = 0.05, 5.0  # seconds before the second attempt; doubled each time, up to MAX_PAUSE
CLOSE_TIMEOUT = 30.0  # seconds; long enough for an attempt after the longest pause


class Backoff:
    """The pauses between attempts: exponential, jittered, and never shorter than the service asks for."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator

    def pause(self, failures: int, problem: ServiceError) -> float:
        """Return the seconds to wait after this many failures before this one."""
        longest: float = min(MAX_PAUSE, FIRST_PAUSE * 2 ** min(failures, 20))
        return (problem.retry_after or 0.0) + longest * self._generator.uniform(0.5, 1.0)


class Outbox:
    """The outcomes that wait to be sent, in order, and those that were refused. It does not lock or wait."""

    def __init__(self, size: int, backoff: Backoff) -> None:
        self.size = size
        self.waiting: deque[OutcomeMessage] = deque()  # the first is the one being sent
        self.problem: ServiceError | None = None  # of the last attempt to send the first
        self._refused: list[Undelivered] = []
        self._backoff = backoff
        self._failures = 0  # since an outcome was last settled

    @property
    def is_full(self) -> bool:
        """Must the next outcome wait?"""
        return len(self.waiting) >= self.size

    def record(self, problem: ServiceError | None) -> float:
        """Note how the attempt to send the first outcome ended; return the seconds until the next attempt."""
        if problem is not None and problem.is_retryable:
            self.problem = problem
            self._failures += 1
            return self._backoff.pause(self._failures - 1, problem)
        event_id, outcome, _ = self.waiting.popleft()
        if problem is not None:
            self._refused.append(Undelivered(event_id, outcome, problem))
        self.problem = None
        self._failures = 0
        return 0.0

    def raise_refused(self) -> None:
        """Report the outcomes that were refused, once."""
        refused, self._refused = self._refused, []
        if refused:
            raise UndeliveredError(refused)

    def raise_undelivered(self, remark: str) -> None:
        """Report the outcomes that were refused, and those that are waiting."""
        waiting = [Undelivered(event_id, outcome, None) for event_id, outcome, _ in self.waiting]
        if not waiting:
            return self.raise_refused()
        waiting[0] = waiting[0]._replace(problem=self.problem)
        refused, self._refused = self._refused, []
        raise UndeliveredError([*waiting, *refused], remark)


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
        if not isinstance(max_pending, int) or max_pending < 1:
            raise InputError(f"max_pending={max_pending!r} must be a whole number of at least 1")
        if not isinstance(timeout, int | float) or not 0.0 < timeout < float("inf"):
            raise InputError(f"timeout={timeout!r} must be a positive number of seconds")
        if key is not None and not (key.isascii() and key.isprintable()):
            raise InputError("key has characters that an HTTP header cannot hold")
        self._path = f"/v1/models/{url_part(plain('model', model))}"
        self._timeout = timeout
        self._fallback = fallback
        self._waits = when_full == "wait"
        self._max_pending = max_pending
        self._closed = False
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        self._http = {"base_url": _checked(url), "timeout": timeout, "headers": headers, "transport": transport}
        if transport is None:
            self._http["verify"] = httpx.create_ssl_context()  # slow, and a child needs no other
        self._start()
        _clients.add(self)

    def _start(self) -> None:
        """Begin without connections, outcomes or a thread: when created, and in a forked child."""
        self._backoff = Backoff(random.Random())
        self._outbox = Outbox(self._max_pending, self._backoff)
        self._open()

    def _open(self) -> None:
        raise NotImplementedError

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosedError

    def _pause(self, attempt: int, problem: ServiceError) -> float | None:
        """Return the seconds until the next attempt to get a decision; None if there is none."""
        pause = self._backoff.pause(attempt, problem)
        is_last = not problem.is_retryable or attempt == ATTEMPTS - 1 or pause > self._timeout
        return None if is_last else pause

    def _fallback_of(self, fallback: str | None, fields: Mapping[str, Any]) -> str | None:
        """Return what to play if the service cannot be reached: of actions, one that may be played."""
        if fields.get("actions") is None:
            return self._fallback if fallback is None else fallback
        possible = offered(fields)
        if fallback is not None and fallback not in possible:
            raise InputError(f"fallback={fallback!r} is not the id of an action that may be played")
        return fallback or (self._fallback if self._fallback in possible else None)

    def _fall_back(self, event_id: str, fallback: str | None, problem: ServiceError) -> Decision:
        """Return the fallback if the service could not be reached; raise if it refused the request."""
        if fallback is None or not problem.is_retryable:
            raise problem
        return Decision(event_id, fallback, None, None, True)

    def _message(self, decision: Decision | str, outcome: Mapping[str, Any]) -> OutcomeMessage | None:
        """Check an outcome; return None for that of a fallback, of which the service knows nothing."""
        self._check_open()
        message = outcome_message(decision.event_id if isinstance(decision, Decision) else decision, outcome)
        self._outbox.raise_refused()
        if isinstance(decision, Decision) and decision.is_fallback:
            return None
        if self._outbox.is_full and not self._waits:
            because = "" if self._outbox.problem is None else f": {self._outbox.problem}"
            raise ServiceError(f"{self._outbox.size} outcomes are waiting to be sent{because}")
        return message

    def _outcome_path(self, message: OutcomeMessage) -> str:
        return f"{self._path}/decisions/{url_part(message.event_id)}/outcome"


def report_beside(error: BaseException | None, problem: UndeliveredError) -> None:
    """Raise the problem of closing; if the `with` block raised already, add a note to its error instead."""
    if error is None:
        raise problem
    error.add_note(str(problem))


def unreachable(problem: Exception) -> ServiceError:
    """Return the error for a request that got no response."""
    return ServiceError(f"the service cannot be reached: {type(problem).__name__} {problem}".rstrip())


def _checked(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as problem:
        raise InputError(f"url={url!r} is not an address: {problem}") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise InputError(f"url={url!r} must begin with http:// or https:// and name a host")
    return address


# A forked child has none of the parent's threads, but its locks, sockets and outcomes. It starts without them.
_clients: weakref.WeakSet[BaseClient] = weakref.WeakSet()


def _start_in_child() -> None:
    for client in list(_clients):
        client._start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_in_child)
