"""Process the chunks of a file in threads, ahead of the consumer. Results keep the order of the chunks.

This pays where most of the work releases the interpreter's lock, as the compiled parsers do. A thread processes one
chunk at a time and never waits for the consumer, so a consumer that stops early leaves no thread behind.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

MAX_THREADS = 4
THREAD_NAME = "gaptron-reader"
SPARE_RESULTS = 2  # results that may be ready while every thread works on another chunk
_END: Any = object()


def map_chunks(
    work: Callable[[Chunk], Result | None], chunks: Generator[Chunk, None, None], *, in_threads: bool
) -> Iterator[Result]:
    """Apply `work` to each chunk, optionally in threads, and drop results that are None."""
    for result in map_ahead(work, chunks) if in_threads else map(work, chunks):
        if result is not None:
            yield result


def map_ahead(work: Callable[[Chunk], Result], chunks: Generator[Chunk, None, None]) -> Iterator[Result]:
    """Do `map(work, chunks)` in threads, including the reading of the chunks. Errors are raised in order."""
    n_threads = min(os.cpu_count() or 1, MAX_THREADS)
    lock = Lock()  # one thread at a time takes a chunk and the future for its result
    unassigned: deque[Future[Result]] = deque()
    pending: deque[Future[Result]] = deque()  # all results to come, in order

    def step() -> None:
        with lock:
            future = unassigned.popleft()
            try:
                chunk: Any = next(chunks, _END)
            except BaseException as error:
                future.set_exception(error)
                return
        try:
            future.set_result(_END if chunk is _END else work(chunk))
        except BaseException as error:
            future.set_exception(error)

    def submit() -> None:
        future: Future[Result] = Future()
        unassigned.append(future)
        pending.append(future)
        pool.submit(step)

    pool = ThreadPoolExecutor(n_threads, THREAD_NAME)
    try:
        for _ in range(n_threads + SPARE_RESULTS):
            submit()
        while (result := pending.popleft().result()) is not _END:
            submit()
            yield result
    finally:
        pool.shutdown(cancel_futures=True)
        chunks.close()
