"""A lock for one writer or many readers, which does not wait: a call at the wrong time raises `InUseError`.

Compiled code runs without the interpreter's lock. Two threads that learn at the same time would corrupt the weights,
and a thread that reads while another one learns would see half an update. Both are refused; several threads may read.

Ctrl-C can interrupt before any line of Python. If releasing the lock took a line of Python, an interruption there would
leave the learner locked forever. A use is therefore a `threading.Lock` that is held, and `__exit__` is that lock's own,
which is not written in Python.
"""

from operator import attrgetter
from threading import Lock, get_ident
from typing import TYPE_CHECKING

from gaptron.errors import InUseError


class UseLock:
    """The lock of one learner."""

    def __init__(self) -> None:
        self._lock = Lock()  # guards the list of readers
        self._readers: list[Lock] = []  # a reader is active while its lock is held
        self.writing = Writing(self)

    def _has_readers(self) -> bool:
        """Whether a reader is active. Removes those that have finished."""
        self._readers = [reader for reader in self._readers if reader.locked()]
        return bool(self._readers)

    @property
    def reading(self) -> "Reading":
        """`with lock.reading:` for a method that changes nothing. The thread that plays may read between two chunks."""
        return Reading(self)


class Writing:
    """`with lock.writing:` for a method that changes the learner."""

    def __init__(self, use: UseLock) -> None:
        self._use = use
        self._held = Lock()
        self._thread = 0  # the thread that holds it, if it is held

    def __enter__(self) -> None:
        use, held, thread = self._use, self._held, get_ident()
        if held.locked() and self._thread == thread:
            raise self._refusal()
        try:
            with use._lock:
                if held.locked() or (use._readers and use._has_readers()):
                    raise self._refusal()
                self._thread = thread
                held.acquire()
        except InUseError:
            raise
        except BaseException:  # interrupted, perhaps after acquiring it
            with use._lock:
                if held.locked() and self._thread == thread:
                    held.release()
            raise

    @staticmethod
    def _refusal() -> InUseError:
        return InUseError(
            "this learner is in use by another call, perhaps in another thread: "
            "give each thread its own learner, or guard it with a threading.Lock"
        )

    if TYPE_CHECKING:

        def __exit__(self, *error: object) -> None: ...
    else:
        __exit__ = property(attrgetter("_held.__exit__"))


class Reading:
    """One use of a learner that changes nothing."""

    def __init__(self, use: UseLock) -> None:
        self._use = use
        self._held = Lock()

    def __enter__(self) -> None:
        use, writing = self._use, self._use.writing
        self._held.acquire()
        try:
            with use._lock:
                if writing._held.locked() and writing._thread != get_ident():
                    raise InUseError(
                        "this learner is learning in another thread: wait for it, or use a copy (copy.deepcopy)"
                    )
                if use._readers:
                    use._has_readers()
                use._readers.append(self._held)
        except BaseException:
            self._held.release()
            raise

    if TYPE_CHECKING:

        def __exit__(self, *error: object) -> None: ...
    else:
        __exit__ = property(attrgetter("_held.__exit__"))
