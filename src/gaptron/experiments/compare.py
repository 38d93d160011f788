"""A plan becomes results: streams are prepared once, results that are there already are kept, the rest is run."""

import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

from gaptron.algorithms import load
from gaptron.errors import GaptronError
from gaptron.experiments.engines import Engine, Job
from gaptron.experiments.plan import Plan, PlannedStream
from gaptron.experiments.store import FILE, Store
from gaptron.experiments.stream_cache import CachedStream, cache_shuffled, cache_stream, describe
from gaptron.experiments.task import Result, Task, version
from gaptron.streams import Stream

STREAMS = "streams"
# Measured once: seconds a round costs anyway, and for each product of a weight and a number of the row.
ROUND, PRODUCT = 2e-7, 1.5e-9
SEARCH = 60  # passes over the stream to find the best comparator

_T = TypeVar("_T")


class Watcher(NamedTuple):
    """Functions to call as the comparison goes on, all in the caller's own thread."""

    preparing: Callable[[PlannedStream], None] = lambda stream: None
    begun: Callable[[int, int], None] = lambda total, known: None
    finished: Callable[[Result], None] = lambda result: None
    note: Callable[[str], None] = lambda text: None


class Unread(NamedTuple):
    """A stream that could not be read, and why."""

    stream: PlannedStream
    problem: Exception
    traceback: str  # "" for an error that gaptron raises on purpose


def compare(plan: Plan, folder: Path, engine: Engine, watcher: Watcher | None = None) -> list[Result]:
    """Run what has no result in the folder yet. Returns a result for each task of the plan, in the plan's order.

    Results are appended to `results.jsonl` as they come; interrupted, the next call goes on from there. If no stream
    of the plan can be read, the first one's error is raised and nothing is written.
    """
    watcher = watcher or Watcher()
    opened = _opened(plan, watcher)
    first: list[tuple[PlannedStream, Stream] | Unread] = []
    for item in opened:  # up to one that can be read: until then there is nothing to write
        first.append(item)
        if not isinstance(item, Unread):
            break
    else:
        assert isinstance(first[0], Unread)
        raise first[0].problem
    with Store(folder / FILE) as store:
        for note in store.notes:
            watcher.note(note)
        keys: list[tuple[str, Task]] = []
        jobs: dict[str, Job] = {}
        failed: list[Result] = []
        for item in _drain(first, opened):
            tasks = list(plan.tasks(item[0]))
            if isinstance(item, Unread):
                kind, message = type(item.problem).__name__, str(item.problem)
                unread = [task.failed(None, kind, message, item.traceback) for task in tasks]
                failed += unread
                keys += [(result.key, task) for result, task in zip(unread, tasks)]
                continue
            cached = _cached(plan, *item, folder / STREAMS)
            del item  # the rounds are on disk now
            for task in tasks:
                of_seed = cached[task.seed]
                key = task.key(of_seed.data)
                keys.append((key, task))
                if store.result(key) is None:
                    jobs.setdefault(key, Job(task, of_seed, version()))
        watcher.begun(len(keys), len(keys) - len(jobs) - len(failed))
        new: dict[str, Result] = {}
        with closing(engine(jobs.values())) as played:
            for result in chain(failed, played):
                store.add(result)
                new[result.key] = result
                watcher.finished(result)
        shutil.rmtree(folder / STREAMS, ignore_errors=True)
        return [_named(new.get(key) or store.result(key), task) for key, task in keys]


def sizes(plan: Plan) -> list[tuple[PlannedStream, CachedStream]]:
    """What the streams of a plan are, without writing them to a cache."""
    return [(stream, describe(stream.open(), Path())[0]) for stream in plan.streams]


def estimate(task: Task, cached: CachedStream) -> float:
    """Seconds of one core a task will roughly take, without compiling: right within a few times."""
    plain = cached.nonzeros * cached.n_classes
    passes = getattr(load(task.algorithm), "passes", None)
    products = plain if passes is None else passes(task.settings, cached.size)
    search = SEARCH * PRODUCT * plain if task.bound else 0.0
    return cached.n_rounds * (ROUND + PRODUCT * products + search)


def _opened(plan: Plan, watcher: Watcher) -> Iterator[tuple[PlannedStream, Stream] | Unread]:
    for stream in plan.streams:
        watcher.preparing(stream)
        try:
            rounds = stream.open()
        except GaptronError as problem:
            yield Unread(stream, problem, "")
        except Exception as problem:  # the other streams must go on
            yield Unread(stream, problem, traceback.format_exc())
        else:
            yield stream, rounds
            del rounds


def _cached(plan: Plan, stream: PlannedStream, rounds: Stream, folder: Path) -> dict[int, CachedStream]:
    """The stream on disk, for every seed: the same, unless rows are encoded by those before them."""
    if not stream.encoded_in_order:
        return dict.fromkeys(plan.seeds, cache_stream(rounds, folder))
    original = describe(rounds, folder)[0]
    return {seed: cache_shuffled(stream.open(seed), folder, original) for seed in plan.seeds}


def _drain(first: list[_T], rest: Iterator[_T]) -> Iterator[_T]:
    """First these, then the rest; nothing is held on to, for a stream may be large."""
    while first:
        yield first.pop(0)
    yield from rest


def _named(result: Result | None, task: Task) -> Result:
    """A result under the names this plan gives: the same run may have been made for another plan."""
    assert result is not None
    return replace(result, stream=task.stream, role=task.role, tuned=task.tuned, command=task.command)
