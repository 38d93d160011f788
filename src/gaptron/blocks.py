"""Long runs in pieces, so that nobody waits long: for Ctrl-C, for progress, for the other threads."""

import time
from collections.abc import Callable, Iterator

FIRST, MOST = 1_024, 65_536  # rounds in a piece
QUICK = 0.1  # seconds: a piece that took less is followed by one twice as long


def blocks(rounds: int, most: int = MOST, progress: Callable[[int], None] | None = None) -> Iterator[slice]:
    """Which rounds to play next. `progress` is called after each piece with the number of its rounds."""
    start, size = 0, FIRST
    while start < rounds:
        clock = time.perf_counter()
        stop = min(start + min(size, most), rounds)
        yield slice(start, stop)
        if progress is not None:
            progress(stop - start)
        start = stop
        if time.perf_counter() - clock < QUICK:
            size *= 2
