"""One writer, or many readers: who comes at the wrong moment is told so.

Compiled code runs without the interpreter's lock. Two threads that learn at once would tear each other's weights, and
one that looks while another learns would see half an update. Both are refused; many may look at once.

Ctrl-C may come before any line of Python, so a use must not end in one: whoever was interrupted there would keep the
learner for ever. Being in use is therefore a lock that is held, and `__exit__` is that lock's own, which is not Python.
"""

from operator import attrgetter
from threading import Lock, get_ident
from typing import TYPE_CHECKING

from gaptron.errors import InUseError


class InUse:
    """Who is using a learner."""

    def __init__(self) -> None:
        self._lock = Lock()  # held while somebody looks who is there
        self._readers: list[Lock] = []  # those that are held are reading, the others have gone
        self.writing = Writing(self)

    def _read(self) -> bool:
        """Is anybody reading? Forgets those that have gone."""
        self._readers = [reader for reader in self._readers if reader.locked()]
        return bool(self._readers)

    @property
    def reading(self) -> "Reading":
        """`with in_use.reading:` for whoever only looks. The thread that plays may look between two blocks."""
        return Reading(self)


class Writing:
    """`with in_use.writing:` for whoever changes the learner."""

    def __init__(self, use: InUse) -> None:
        self._use = use
        self._held = Lock()
        self._thread = 0  # that holds it, if it is held

    def __enter__(self) -> None:
        use, held, thread = self._use, self._held, get_ident()
        if held.locked() and self._thread == thread:
            raise self._refusal()
        try:
            with use._lock:
                if held.locked() or (use._readers and use._read()):
                    raise self._refusal()
                self._thread = thread
                held.acquire()
        except InUseError:
            raise
        except BaseException:  # interrupted: perhaps it is held already
            with use._lock:
                if held.locked() and self._thread == thread:
                    held.release()
            raise

    @staticmethod
    def _refusal() -> InUseError:
        return InUseError(
            "this learner is in use by another call, perhaps of another thread: "
            "give each thread a learner of its own, or let them take turns (threading.Lock)"
        )

    if TYPE_CHECKING:

        def __exit__(self, *error: object) -> None: ...
    else:
        __exit__ = property(attrgetter("_held.__exit__"))


class Reading:
    """One look at a learner."""

    def __init__(self, use: InUse) -> None:
        self._use = use
        self._held = Lock()

    def __enter__(self) -> None:
        use, writing = self._use, self._use.writing
        self._held.acquire()
        try:
            with use._lock:
                if writing._held.locked() and writing._thread != get_ident():
                    raise InUseError(
                        "another thread is teaching this learner: look before or after, or at a copy (copy.deepcopy)"
                    )
                if use._readers:
                    use._read()
                use._readers.append(self._held)
        except BaseException:
            self._held.release()
            raise

    if TYPE_CHECKING:

        def __exit__(self, *error: object) -> None: ...
    else:
        __exit__ = property(attrgetter("_held.__exit__"))
