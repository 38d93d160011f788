"""The errors of the client."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gaptron.errors import GaptronError

RETRYABLE = (408, 429, 502, 503, 504)
SHOWN = 3  # undelivered outcomes that a message lists


class ServiceError(GaptronError):
    """The service refused a request, or could not be reached.

    Attributes:
        status: the HTTP status; None if the service could not be reached.
        retry_after: seconds that the service asked to wait before the next attempt; None if it named none.
    """

    def __init__(self, message: str, status: int | None = None, retry_after: float | None = None) -> None:
        self.status, self.retry_after = status, retry_after
        super().__init__(message)

    @property
    def is_retryable(self) -> bool:
        """Can the same request succeed later?"""
        return self.status is None or self.status in RETRYABLE


class Undelivered(NamedTuple):
    """An outcome that did not arrive."""

    event_id: str
    outcome: dict[str, Any]
    problem: ServiceError | None  # of the last attempt; None if there was no attempt


class UndeliveredError(ServiceError):
    """Some outcomes were not delivered: the service refused them, or could not be reached in time.

    Attributes:
        undelivered: the outcomes, each with its event id and the problem. Sending one again is harmless: an attempt
            that seemed to fail may have reached the service.
    """

    def __init__(self, undelivered: Sequence[Undelivered], remark: str = "") -> None:
        self.undelivered = tuple(undelivered)
        listed = [
            f"event {event_id}: {'not attempted' if problem is None else problem}"
            for event_id, _, problem in self.undelivered[:SHOWN]
        ]
        if len(self.undelivered) > SHOWN:
            listed.append(f"and {len(self.undelivered) - SHOWN} more")
        count = "1 outcome was" if len(self.undelivered) == 1 else f"{len(self.undelivered)} outcomes were"
        first = self.undelivered[0].problem
        super().__init__(f"{count} not delivered{remark}: {'; '.join(listed)}", None if first is None else first.status)


class ClientClosedError(GaptronError, RuntimeError):
    """A call of a client after it was closed."""

    def __init__(self) -> None:
        super().__init__("the client is closed; create a new one")
