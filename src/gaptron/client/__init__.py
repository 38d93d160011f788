"""A client for the decision service, with retries, timeouts and a fallback. Needs the extra `client` (httpx).

The client generates the event ids, so that repeating a request is harmless. If the service cannot be reached in time,
`decide` returns a fallback label. Outcomes are checked in the caller's thread and sent in the background from a bounded
queue that never drops one: when the queue is full, `send_outcome` waits or raises. `flush` and `close` raise an
`UndeliveredError` that lists the outcomes that did not arrive.

Example:
    >>> from gaptron.client import Client
    >>> with Client("http://127.0.0.1:8717", "triage", fallback="mail") as client:  # doctest: +SKIP
    ...     decision = client.decide([0.3, 1.0])
    ...     client.send_outcome(decision, correct=decision.label == "mail")
"""

try:
    import httpx as _httpx  # noqa: F401
except ImportError:
    raise ImportError("the client needs httpx: pip install '.[client]' in gaptron's source folder") from None

from gaptron.client.asynchronous import AsyncClient
from gaptron.client.blocking import Client
from gaptron.client.errors import ClientClosedError, ServiceError, Undelivered, UndeliveredError
from gaptron.client.messages import Decision

__all__ = ["AsyncClient", "Client", "ClientClosedError", "Decision", "ServiceError", "Undelivered", "UndeliveredError"]
