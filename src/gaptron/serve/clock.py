"""The time of the log: it never goes back, and setting the system clock while the process runs does not move it.

It begins at the system clock, but not before the last event of the log and at most `MAX_STEP` after it. From then on it
runs at the rate of the monotonic clock. A system clock that was ahead and is corrected therefore does not stop
timeouts, and one that jumps ahead does not end them all: times in the log are then wrong, durations are not.
"""

import time
from collections.abc import Callable

MAX_STEP = 366 * 86_400_000_000  # µs; a system clock further ahead of the log is wrong
LATEST = 221_845_392_000_000_000  # µs: the year 9000, so that every later time fits into a date and a database


def system_time() -> int:
    """µs since 1970 by the system clock."""
    return time.time_ns() // 1000


def elapsed() -> int:
    """µs by a clock that nobody sets; where possible, it also runs while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    return time.monotonic_ns() // 1000


class Clock:
    """The time of one process.

    Args:
        last: the time of the last event in the log; 0 if there is none.
        system_time: the system clock, which is read once.
        elapsed: the monotonic clock.
    """

    def __init__(
        self, last: int, system_time: Callable[[], int] = system_time, elapsed: Callable[[], int] = elapsed
    ) -> None:
        latest = min(LATEST, last + MAX_STEP) if last else LATEST
        self._start = max(last, min(system_time(), latest))
        self._elapsed, self._began = elapsed, elapsed()

    def now(self) -> int:
        """µs since 1970, never less than before."""
        return self._start + self._elapsed() - self._began
