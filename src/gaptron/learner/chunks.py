"""Long runs in chunks, so that Ctrl-C, progress and other threads do not wait long."""

import time
from collections.abc import Callable, Iterator

FIRST, MOST = 1_024, 65_536  # rounds in a chunk
QUICK = 0.1  # seconds: a chunk that took less is followed by one twice as long


def chunks(rounds: int, most: int = MOST, progress: Callable[[int], None] | None = None) -> Iterator[slice]:
    """Yield the rounds to play next; `progress` is called after each chunk with the number of its rounds."""
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
