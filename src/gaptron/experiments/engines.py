"""Engines: the same tasks in this process, in many, or on a Dask cluster. Each yields a result a task, in any order.

Only the caller writes results, so an engine may be stopped at any time.
"""

import os
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cache
from typing import Any, NamedTuple

from gaptron.errors import SettingError
from gaptron.experiments.run import run_task
from gaptron.experiments.stream_cache import Arrays, CachedStream
from gaptron.experiments.task import Result, Task

PATIENCE = 20  # seconds a Dask scheduler and its first worker have to answer
DIED = "the process that ran it died: killed from outside, or out of memory"


class Job(NamedTuple):
    """A task and its stream."""

    task: Task
    cached: CachedStream
    made_by: str

    def died(self) -> Result:
        """The result of a job whose process ended before it was done."""
        return self.task.failed(self.cached.data, "WorkerDied", DIED)

    def lost(self, problem: BaseException) -> Result:
        """The result of a job that could not be sent to its process, or whose result could not be sent back."""
        return self.task.failed(self.cached.data, type(problem).__name__, str(problem))


Results = Generator[Result, None, None]
Engine = Callable[[Iterable[Job]], Results]


def serial(jobs: Iterable[Job]) -> Results:
    """One after the other, here."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    for job in jobs:
        with threadpool_limits(1):  # as in a worker: more threads add in another order, and the last digits differ
            result = run_task(*job)
        yield result


# --- many processes on this machine -----------------------------------------------------------------------------


def processes(jobs: Iterable[Job], n: int) -> Results:
    """In n processes that map the streams' files. When one dies, what was under way is tried again, each job alone."""
    from joblib.externals.loky.process_executor import BrokenProcessPool  # noqa: PLC0415

    waiting = deque(jobs)
    while waiting:
        pool, running, broken = _pool(min(n, len(waiting))), dict[Future[Result], Job](), False
        try:
            while (waiting or running) and not broken:
                try:
                    while waiting and len(running) < 2 * n:  # one under way and one at hand for each
                        running[pool.submit(_work, waiting[0])] = waiting[0]
                        waiting.popleft()
                except BrokenProcessPool:
                    broken = True
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    problem = done.exception()
                    if isinstance(problem, BrokenProcessPool):
                        broken = True
                        continue
                    job = running.pop(done)
                    yield done.result() if problem is None else job.lost(problem)
        finally:
            _stop(pool, at_once=bool(running))
        yield from _one_by_one(list(running.values()))


def _one_by_one(jobs: list[Job]) -> Results:
    """Jobs in one process, one at a time: if it dies, it is clear which job did it."""
    from joblib.externals.loky.process_executor import BrokenProcessPool  # noqa: PLC0415

    waiting = deque(jobs)
    while waiting:
        pool = _pool(1)
        try:
            while waiting:
                job = waiting.popleft()
                yield pool.submit(_work, job).result()
        except BrokenProcessPool:
            yield job.died()
        except Exception as problem:
            yield job.lost(problem)
        finally:
            _stop(pool, at_once=True)


def _pool(n: int) -> Any:
    from joblib.externals.loky.process_executor import ProcessPoolExecutor  # noqa: PLC0415

    # A worker that has compiled much is replaced by a fresh one, and its jobs go on: no reason for a warning.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    return ProcessPoolExecutor(n, initializer=_begin, initargs=(os.getpid(),))


def _stop(pool: Any, at_once: bool) -> None:
    """End the workers. The pool's own way to do so at once can leave a traceback behind, so they are ended here."""
    for process in list((pool._processes or {}).values()) if at_once else ():
        process.terminate()
    pool.shutdown(wait=True)


def _begin(parent: int) -> None:
    """In a new worker: Ctrl-C is handled by the parent alone, and the worker ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(job: Job, arrays: Arrays | None = None) -> Result:
    _one_thread()
    return run_task(*job, arrays)


@cache
def _one_thread() -> None:
    """Linear algebra in one thread for the rest of this process's life: so many processes are threads enough."""
    import scipy.optimize  # noqa: F401, PLC0415 - only loaded libraries are limited
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    threadpool_limits(1)


# --- Dask -----------------------------------------------------------------------------------------------------------


def dask(jobs: Iterable[Job], address: str) -> Results:
    """On the cluster at this address. A stream is mapped where its file is seen, else sent to each worker once."""
    try:
        from distributed import Client, as_completed  # noqa: PLC0415
    except ImportError:
        raise SettingError("--engine dask needs Dask: pip install 'gaptron[dask]'") from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
        client.wait_for_workers(1, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as problem:
        raise SettingError(f"no Dask scheduler with workers answers at {address} ({problem})") from None
    waiting, last = list(jobs), False
    futures: dict[Any, Job] = {}
    with client:
        try:
            while waiting:
                held = _sent(client, waiting)
                futures = {client.submit(_work, job, held[job.cached.data], pure=False): job for job in waiting}
                waiting = []
                for future in as_completed(list(futures), loop=client.loop):
                    job = futures.pop(future)
                    if future.status == "finished":
                        yield future.result()
                    elif future.status == "error":  # KilledWorker: Dask itself has tried several
                        yield job.lost(future.exception())
                    elif last:
                        yield job.died()
                    else:  # cancelled or lost, with a worker that alone held its stream
                        waiting.append(job)
                last = True
        finally:
            client.cancel(list(futures))


def _sees(place: str) -> bool:
    return os.path.isdir(place)


def _sent(client: Any, jobs: list[Job]) -> dict[str, Any]:
    """For each stream: None if every worker sees its files, else its arrays, in the memory of all workers."""
    held: dict[str, Any] = {}
    for cached in {job.cached.data: job.cached for job in jobs}.values():
        seen = client.run(_sees, cached.place)
        if seen and all(seen.values()):
            held[cached.data] = None
        else:
            held[cached.data] = client.scatter(dict(cached.arrays()), broadcast=True, hash=False)
    return held
