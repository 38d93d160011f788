"""Work on the pieces of a file in threads, ahead of whoever takes the results, which come in the order of the pieces.

It pays where most of the work is done without the interpreter's lock, as compiled parsers do theirs. No thread waits
for whoever takes the results: it is asked for one piece at a time, so that nobody who stops early leaves one behind.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

MOST_THREADS = 4
NAME = "gaptron-reads"
SPARE = 2  # results that wait, while every thread works on another
_END: Any = object()


def worked(
    work: Callable[[Piece], Result | None], pieces: Generator[Piece, None, None], *, in_threads: bool
) -> Iterator[Result]:
    """What the work makes of each piece, where that is anything."""
    for result in ahead(work, pieces) if in_threads else map(work, pieces):
        if result is not None:
            yield result


def ahead(work: Callable[[Piece], Result], pieces: Generator[Piece, None, None]) -> Iterator[Result]:
    """`map(work, pieces)`, the pieces too made in threads; an error comes out where it would have."""
    threads = min(os.cpu_count() or 1, MOST_THREADS)
    turn = Lock()  # one thread takes a piece at a time, and a place for its result
    places: deque[Future[Result]] = deque()  # which nobody works on yet
    asked: deque[Future[Result]] = deque()  # of all results to come, in order

    def step() -> None:
        with turn:
            place = places.popleft()
            try:
                piece: Any = next(pieces, _END)
            except BaseException as problem:
                place.set_exception(problem)
                return
        try:
            place.set_result(_END if piece is _END else work(piece))
        except BaseException as problem:
            place.set_exception(problem)

    def ask() -> None:
        place: Future[Result] = Future()
        places.append(place)
        asked.append(place)
        pool.submit(step)

    pool = ThreadPoolExecutor(threads, NAME)
    try:
        for _ in range(threads + SPARE):
            ask()
        while (result := asked.popleft().result()) is not _END:
            ask()
            yield result
    finally:
        pool.shutdown(cancel_futures=True)
        pieces.close()
