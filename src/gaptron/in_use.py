"""One writer, or many readers: who comes at the wrong moment is told so.

Compiled code runs without the interpreter's lock. Two threads that learn at once would tear each other's weights, and
one that looks while another learns would see half an update. Both are refused; many may look at once.
"""

from threading import Lock, get_ident
from types import TracebackType

from gaptron.errors import InUseError


class InUse:
    """Who is using a learner."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._writer = 0  # a thread, or 0
        self._readers = 0
        self.writing = Writing(self)
        self.reading = Reading(self)


class Writing:
    """`with in_use.writing:` for whoever changes the learner."""

    def __init__(self, use: InUse) -> None:
        self._use = use

    def __enter__(self) -> None:
        use = self._use
        with use._lock:
            if use._writer or use._readers:
                raise InUseError(
                    "this learner is in use by another call, perhaps of another thread: "
                    "give each thread a learner of its own, or let them take turns (threading.Lock)"
                )
            use._writer = get_ident()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._use._writer = 0


class Reading:
    """`with in_use.reading:` for whoever only looks. The thread that plays may look between two blocks."""

    def __init__(self, use: InUse) -> None:
        self._use = use

    def __enter__(self) -> None:
        use = self._use
        with use._lock:
            if use._writer and use._writer != get_ident():
                raise InUseError(
                    "another thread is teaching this learner: look before or after, or at a copy (copy.deepcopy)"
                )
            use._readers += 1

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._use._lock:
            self._use._readers -= 1
