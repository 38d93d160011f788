"""Backends: run tasks in this process, in several processes, or on a Dask cluster.

A backend yields one result per task, in any order. Only the caller writes results, so a backend may be stopped at any
time.
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
from gaptron.experiments.run_task import run_task
from gaptron.experiments.stream_cache import Arrays, CachedStream
from gaptron.experiments.task import Result, Task

TIMEOUT = 20  # seconds for a Dask scheduler and its first worker to respond
DIED = "the worker process died: it was killed, or ran out of memory"


class Job(NamedTuple):
    """A task and its cached stream."""

    task: Task
    cached: CachedStream
    made_by: str  # the version of gaptron that planned it

    def died(self) -> Result:
        """Return the failed result of a job whose process died."""
        return self.task.failed(self.cached.data, "WorkerDied", DIED)

    def not_sent(self, problem: BaseException) -> Result:
        """Return the failed result of a job that could not be sent to a worker, or whose result could not be sent."""
        return self.task.failed(self.cached.data, type(problem).__name__, str(problem))


Results = Generator[Result, None, None]
Backend = Callable[[Iterable[Job]], Results]


def serial(jobs: Iterable[Job]) -> Results:
    """Run the jobs one after the other in this process."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    for job in jobs:
        with threadpool_limits(1):  # as in a worker: with more threads, sums differ in their last digits
            result = run_task(*job)
        yield result


# --- several processes on this machine -----------------------------------------------------------------------------


def processes(jobs: Iterable[Job], n: int) -> Results:
    """Run the jobs in n processes that map the streams' files. If one dies, unfinished jobs run again one by one."""
    from joblib.externals.loky.process_executor import BrokenProcessPool  # noqa: PLC0415

    waiting = deque(jobs)
    while waiting:
        pool, running, broken = _pool(min(n, len(waiting))), dict[Future[Result], Job](), False
        try:
            while (waiting or running) and not broken:
                try:
                    while waiting and len(running) < 2 * n:  # one running and one queued for each process
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
                    yield done.result() if problem is None else job.not_sent(problem)
        finally:
            _stop(pool, at_once=bool(running))
        yield from _one_by_one(list(running.values()))


def _one_by_one(jobs: list[Job]) -> Results:
    """Run the jobs in one process, one at a time: if it dies, the job that killed it is known."""
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
            yield job.not_sent(problem)
        finally:
            _stop(pool, at_once=True)


def _pool(n: int) -> Any:
    from joblib.externals.loky.process_executor import ProcessPoolExecutor  # noqa: PLC0415

    # loky replaces a worker that uses much memory after compiling and continues its jobs: not worth a warning.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    return ProcessPoolExecutor(n, initializer=_start_worker, initargs=(os.getpid(),))


def _stop(pool: Any, at_once: bool) -> None:
    """Stop the workers. Terminating them here avoids the traceback that the pool's own `kill_workers` can print."""
    for process in list((pool._processes or {}).values()) if at_once else ():
        process.terminate()
    pool.shutdown(wait=True)


def _start_worker(parent: int) -> None:
    """Prepare a new worker: it ignores Ctrl-C, which the parent handles, and exits when the parent has exited."""
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
    """Limit linear algebra to one thread for the rest of this process: the processes already use every core."""
    import scipy.optimize  # noqa: F401, PLC0415 - only loaded libraries are limited
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    threadpool_limits(1)


# --- Dask -----------------------------------------------------------------------------------------------------------


def dask(jobs: Iterable[Job], address: str) -> Results:
    """Run the jobs on the cluster at this address.

    Workers that see the stream's files map them; otherwise each stream is sent to every worker once.
    """
    try:
        from distributed import Client, as_completed  # noqa: PLC0415
    except ImportError:
        raise SettingError("--backend dask needs Dask: pip install '.[dask]' in gaptron's source folder") from None
    try:
        client = Client(address, timeout=TIMEOUT, set_as_default=False)
        client.wait_for_workers(1, timeout=TIMEOUT)
    except (OSError, TimeoutError, ValueError) as problem:
        raise SettingError(f"no Dask scheduler with workers responds at {address} ({problem})") from None
    waiting, last_attempt = list(jobs), False
    futures: dict[Any, Job] = {}
    with client:
        try:
            while waiting:
                data = _send_streams(client, waiting)
                futures = {client.submit(_work, job, data[job.cached.data], pure=False): job for job in waiting}
                waiting = []
                for future in as_completed(list(futures), loop=client.loop):
                    job = futures.pop(future)
                    if future.status == "finished":
                        yield future.result()
                    elif future.status == "error":  # KilledWorker: Dask has tried several workers
                        yield job.not_sent(future.exception())
                    elif last_attempt:
                        yield job.died()
                    else:  # cancelled or lost with the only worker that held its stream
                        waiting.append(job)
                last_attempt = True
        finally:
            client.cancel(list(futures))


def _sees(folder: str) -> bool:
    return os.path.isdir(folder)


def _send_streams(client: Any, jobs: list[Job]) -> dict[str, Any]:
    """Return, for each stream, None if every worker sees its files; else its arrays, sent to all workers."""
    data: dict[str, Any] = {}
    for cached in {job.cached.data: job.cached for job in jobs}.values():
        seen = client.run(_sees, cached.folder)
        if seen and all(seen.values()):
            data[cached.data] = None
        else:
            data[cached.data] = client.scatter(dict(cached.arrays()), broadcast=True, hash=False)
    return data
