"""Run a plan: prepare each stream once, keep the results that exist, run the remaining tasks."""

import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

from gaptron.algorithms import load
from gaptron.errors import GaptronError
from gaptron.experiments.backends import Backend, Job
from gaptron.experiments.external import library_of
from gaptron.experiments.plan import Plan, PlannedStream
from gaptron.experiments.store import FILE, Store
from gaptron.experiments.stream_cache import AnyStream, CachedStream, cache_shuffled, cache_stream, describe
from gaptron.experiments.task import Result, Task

STREAMS = "streams"
# Measured: seconds per round, and per product of a weight and a feature.
ROUND, PRODUCT = 2e-7, 1.5e-9
EXTERNAL = 2e-3  # per round of an external model: River's forests take from 0.2 ms to 26 ms
START, LOAD = 3.0, 0.5  # seconds until a process runs, and until it has loaded a compiled algorithm
SEARCH = 60  # passes over the stream to find the best comparator

_T = TypeVar("_T")


class Callbacks(NamedTuple):
    """Functions to call during a comparison, all in the caller's thread."""

    on_stream: Callable[[PlannedStream], None] = lambda stream: None  # before a stream is read
    # number of tasks, of those with a result, and the tasks to run with about how many seconds of a core each takes
    on_start: Callable[[int, int, Sequence[tuple[Task, float]]], None] = lambda total, known, todo: None
    on_result: Callable[[Result], None] = lambda result: None
    on_note: Callable[[str], None] = lambda text: None


class UnreadStream(NamedTuple):
    """A stream that could not be read, and the error."""

    stream: PlannedStream
    problem: Exception
    traceback: str  # "" for an error that gaptron raises on purpose


def compare(plan: Plan, folder: Path, backend: Backend, callbacks: Callbacks | None = None) -> list[Result]:
    """Run the tasks of a plan that have no result in the folder yet.

    Results are appended to `results.jsonl` as they arrive; after an interruption the next call continues from there. If
    no stream of the plan can be read, the first stream's error is raised and nothing is written.

    Args:
        plan: what to compare.
        folder: holds `results.jsonl`, and during the run the cached streams.
        backend: runs the tasks: `serial`, `processes` or `dask`.
        callbacks: called as the comparison proceeds.

    Returns:
        A result for each task of the plan, in the plan's order.
    """
    callbacks = callbacks or Callbacks()
    opened = _open_streams(plan, callbacks)
    first: list[tuple[PlannedStream, AnyStream] | UnreadStream] = []
    for item in opened:  # until one can be read: before that there is nothing to write
        first.append(item)
        if not isinstance(item, UnreadStream):
            break
    else:
        assert isinstance(first[0], UnreadStream)
        raise first[0].problem
    with Store(folder / FILE) as store:
        for note in store.notes:
            callbacks.on_note(note)
        keys: list[tuple[str, Task]] = []
        jobs: dict[str, Job] = {}
        failed: list[Result] = []
        for item in _drain(first, opened):
            tasks = list(plan.tasks(item[0]))
            if isinstance(item, UnreadStream):
                kind, message = type(item.problem).__name__, str(item.problem)
                unread = [task.failed(None, kind, message, item.traceback) for task in tasks]
                failed += unread
                keys += [(result.key, task) for result, task in zip(unread, tasks)]
                continue
            cached = _cache(plan, *item, folder / STREAMS)
            del item  # the rounds are on disk now
            for task in tasks:
                of_seed = cached[task.seed]
                key = task.key(of_seed.data)
                keys.append((key, task))
                if store.result(key) is None:
                    jobs.setdefault(key, Job(task, of_seed, task.version))
        todo = [(job.task, estimate(job.task, job.cached)) for job in jobs.values()]
        callbacks.on_start(len(keys), len(keys) - len(jobs) - len(failed), todo)
        new: dict[str, Result] = {}
        with closing(backend(jobs.values())) as done:
            for result in chain(failed, done):
                store.add(result)
                new[result.key] = result
                callbacks.on_result(result)
        shutil.rmtree(folder / STREAMS, ignore_errors=True)
        return [_named(new.get(key) or store.result(key), task) for key, task in keys]


def sizes(plan: Plan) -> list[tuple[PlannedStream, CachedStream]]:
    """Read the streams of a plan and return their metadata, without writing a cache."""
    return [(stream, describe(stream.open(), Path())[0]) for stream in plan.streams]


def estimate(task: Task, cached: CachedStream) -> float:
    """Estimate the seconds of one core a task takes, without compiling; correct within a small factor.

    For an external model, it is only an order of magnitude.
    """
    if library_of(task.algorithm):
        return cached.n_rounds * EXTERNAL
    products_per_pass = cached.nonzeros * cached.n_classes
    passes = getattr(load(task.algorithm), "passes", None)
    products = products_per_pass if passes is None else passes(task.settings, cached.size)
    search = SEARCH * PRODUCT * products_per_pass if task.bound else 0.0
    return cached.n_rounds * (ROUND + PRODUCT * products + search)


def duration(todo: Sequence[tuple[Task, float]], n_processes: int) -> float:
    """Estimate the seconds until tasks are done, given what each takes on one core; without compiling."""
    if not todo:
        return 0.0
    combinations = len({(task.algorithm, task.feedback, task.loss) for task, _ in todo})
    loading = START + LOAD * combinations  # in every process
    return loading + max(sum(cost for _, cost in todo) / n_processes, *(cost for _, cost in todo))


def _open_streams(plan: Plan, callbacks: Callbacks) -> Iterator[tuple[PlannedStream, AnyStream] | UnreadStream]:
    for stream in plan.streams:
        callbacks.on_stream(stream)
        try:
            rounds = stream.open()
        except GaptronError as problem:
            yield UnreadStream(stream, problem, "")
        except Exception as problem:  # the other streams continue
            yield UnreadStream(stream, problem, traceback.format_exc())
        else:
            yield stream, rounds
            del rounds


def _cache(plan: Plan, stream: PlannedStream, rounds: AnyStream, folder: Path) -> dict[int, CachedStream]:
    """Cache a stream and return it by seed: one for all seeds, unless examples are encoded by those before them."""
    if not stream.encoded_in_order:
        return dict.fromkeys(plan.seeds, cache_stream(rounds, folder))
    original, shuffled = describe(rounds, folder)[0], (stream.open(seed) for seed in plan.seeds)
    return {seed: cache_shuffled(each, folder, original) for seed, each in zip(plan.seeds, shuffled)}


def _drain(first: list[_T], rest: Iterator[_T]) -> Iterator[_T]:
    """Yield the first items, then the rest, without keeping a reference: a stream may be large."""
    while first:
        yield first.pop(0)
    yield from rest


def _named(result: Result | None, task: Task) -> Result:
    """Return a result with the names of this plan: the same run may have been made for another plan."""
    assert result is not None
    return replace(result, stream=task.stream, role=task.role, tuned=task.tuned, command=task.command)
