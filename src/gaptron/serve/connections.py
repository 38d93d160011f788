"""Limits on connections, which uvicorn does not have: none can hold a descriptor, memory or a task for ever.

A connection is closed if its request line and headers have not arrived in time or are too long, or if its client does
not read the response. Beyond a number of connections that leaves descriptors for the store, new ones are closed.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEADER_TIMEOUT = 20.0  # seconds from the connection, or the first byte of a further request, to the end of the headers
READ_TIMEOUT = 60.0  # seconds in which a client that was sent data must read some
MAX_HEADER_BYTES = 1 << 16  # of request line and headers; up to one read of the socket more
RESERVED_DESCRIPTORS = 64  # for the store, exports, and files


def max_connections() -> int:
    """The number of connections for which the process has descriptors."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return 1000
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, soft - RESERVED_DESCRIPTORS) if soft != resource.RLIM_INFINITY else 1 << 16


class LimitedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # one of two classes
    """uvicorn's protocol with these limits."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._header_timer: asyncio.TimerHandle | None = None  # runs while headers are awaited
        self._header_bytes = 0
        self._read_timer: asyncio.TimerHandle | None = None  # runs while the client does not read

    def connection_made(self, transport: Any) -> None:
        """Accept a connection. If there are too many, close the one that has waited longest for a request."""
        waiting = [one for one in self.connections if one._header_timer is not None]
        super().connection_made(transport)
        if len(self.connections) > max_connections():
            oldest = min(waiting, key=lambda one: one._header_timer.when(), default=self)
            oldest._drop()
            if oldest is self:
                return
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        super().connection_lost(exc)
        self._stop_timers()

    def data_received(self, data: bytes) -> None:
        """Parse data, and count what belongs to headers that are not complete."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timers(reading=False)
            return
        if self._header_timer is None:
            self._await_headers()
        self._header_bytes += len(data)
        if self._header_bytes > MAX_HEADER_BYTES:
            self._drop()

    def pause_writing(self) -> None:
        """The client reads more slowly than we send."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(READ_TIMEOUT, self._drop)

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        self._stop_timers(headers=False)

    def _await_headers(self) -> None:
        self._header_bytes = 0
        self._header_timer = self.loop.call_later(HEADER_TIMEOUT, self._drop)

    def _stop_timers(self, *, headers: bool = True, reading: bool = True) -> None:
        if headers and self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
        if reading and self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _drop(self) -> None:
        """Close at once, without waiting for what was not sent."""
        self._stop_timers()
        self.connections.discard(self)
        self.transport.abort()
