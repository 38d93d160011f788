"""Refused requests, with their HTTP status."""

from gaptron.errors import GaptronError
from gaptron.serve.schemas import Outcome, Problem

TITLES = {  # the reason phrases of RFC 9110; those of http.HTTPStatus depend on the version of Python
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class RefusedError(GaptronError):
    """A request that is refused; nothing has changed."""

    def __init__(self, status: int, kind: str, detail: str, outcome: Outcome | None = None) -> None:
        self.status, self.kind, self.detail, self.outcome = status, kind, detail, outcome
        super().__init__(detail)

    def problem(self, event_id: str | None = None) -> Problem:
        """The body of the response, as RFC 9457 defines it."""
        return Problem(
            type=f"/problems/{self.kind}",
            title=TITLES[self.status],
            status=self.status,
            detail=self.detail,
            event_id=event_id,
            outcome=self.outcome,
        )


def invalid(detail: str) -> RefusedError:
    """422: the request is well-formed, but this model cannot process it."""
    return RefusedError(422, "invalid", detail)


def not_found(detail: str) -> RefusedError:
    """404: the named model, event or key does not exist."""
    return RefusedError(404, "not-found", detail)


def misdirected(detail: str) -> RefusedError:
    """421: another process handles this request."""
    return RefusedError(421, "misdirected", detail)


def unavailable(detail: str) -> RefusedError:
    """503: the same request may succeed later."""
    return RefusedError(503, "unavailable", detail)


def quarantined(name: str, reason: str) -> RefusedError:
    """503: this model cannot be used until somebody repairs it; other models can."""
    return RefusedError(503, "quarantined", f"model {name!r} is quarantined: {reason}")
