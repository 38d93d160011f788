"""Everything the service refuses, with its HTTP status."""

from gaptron.errors import GaptronError
from gaptron.serve.words import Outcome, Problem

TITLES = {
    400: "This is not JSON",
    401: "A key is needed",
    403: "This key may not do that",
    404: "There is no such thing",
    405: "Not this method",
    408: "The request took too long to arrive",
    409: "It is settled already",
    413: "Too large",
    415: "Not application/json",
    421: "Not here",
    422: "This cannot be done as asked",
    429: "Too many requests",
    503: "Not now",
}


class RefusedError(GaptronError):
    """A request that is refused; nothing has changed."""

    def __init__(self, status: int, kind: str, detail: str, outcome: Outcome | None = None) -> None:
        self.status, self.kind, self.detail, self.outcome = status, kind, detail, outcome
        super().__init__(detail)

    def problem(self, event: str | None = None) -> Problem:
        """In the words of RFC 9457."""
        return Problem(
            type=f"/problems/{self.kind}",
            title=TITLES[self.status],
            status=self.status,
            detail=self.detail,
            event_id=event,
            outcome=self.outcome,
        )


def invalid(detail: str) -> RefusedError:
    """What was said makes no sense here."""
    return RefusedError(422, "invalid", detail)


def unknown(detail: str) -> RefusedError:
    """What was named is not there."""
    return RefusedError(404, "unknown", detail)


def elsewhere(detail: str) -> RefusedError:
    """Another process does that."""
    return RefusedError(421, "elsewhere", detail)


def not_now(detail: str) -> RefusedError:
    """Try again later."""
    return RefusedError(503, "not-now", detail)
