"""A plan becomes records: streams are prepared once, what is known already is kept, the rest is run."""

import shutil
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gaptron.errors import GaptronError
from gaptron.experiments.engines import Engine, Job
from gaptron.experiments.plan import Plan, Source
from gaptron.experiments.record import Record
from gaptron.experiments.shelf import Shelved, describe, shelve
from gaptron.experiments.store import FILE, Store
from gaptron.experiments.task import Task, version

STREAMS = "streams"


class Watcher(NamedTuple):
    """Whom to tell how it goes; each is called in the caller's own thread."""

    preparing: Callable[[Source], None] = lambda source: None
    begun: Callable[[int, int], None] = lambda total, known: None
    finished: Callable[[Record], None] = lambda record: None
    note: Callable[[str], None] = lambda words: None


def compare(plan: Plan, folder: Path, engine: Engine, watcher: Watcher | None = None) -> list[Record]:
    """Run what has no result in the folder yet. Returns a record for each task of the plan, in the plan's order.

    Results are appended to `results.jsonl` as they come; interrupted, the next call goes on from there.
    """
    watcher = watcher or Watcher()
    with Store(folder / FILE) as store:
        for note in store.notes:
            watcher.note(note)
        keys: list[tuple[str, Task]] = []
        jobs: dict[str, Job] = {}
        failed: list[Record] = []
        for source in plan.streams:
            watcher.preparing(source)
            tasks = list(plan.tasks(source))
            found = _shelved(source, folder / STREAMS)
            if isinstance(found, Shelved):
                for task in tasks:
                    key = task.key(found.data)
                    keys.append((key, task))
                    if store.result(key) is None:
                        jobs.setdefault(key, Job(task, found, version()))
            else:
                kind, message, text = found
                failed += [task.failed(None, kind, message, text) for task in tasks]
                keys += [(record.key, task) for record, task in zip(failed[-len(tasks) :], tasks)]
        watcher.begun(len(keys), len(keys) - len(jobs) - len(failed))
        got: dict[str, Record] = {}
        for record in failed:
            store.add(record)
            got[record.key] = record
            watcher.finished(record)
        with closing(engine(jobs.values())) as records:
            for record in records:
                store.add(record)
                got[record.key] = record
                watcher.finished(record)
        shutil.rmtree(folder / STREAMS, ignore_errors=True)
        return [_named(got.get(key) or store.result(key), task) for key, task in keys]


def sizes(plan: Plan) -> list[tuple[Source, Shelved]]:
    """What the streams of a plan are, without laying them out."""
    return [(source, describe(source.open(), Path())[0]) for source in plan.streams]


def _shelved(source: Source, folder: Path) -> Shelved | tuple[str, str, str]:
    """The stream, or the kind, the words and the place of what went wrong."""
    try:
        return shelve(source.open(), folder)
    except GaptronError as problem:
        return type(problem).__name__, str(problem), ""
    except Exception as problem:  # the other streams must go on
        return type(problem).__name__, str(problem), traceback.format_exc()


def _named(record: Record | None, task: Task) -> Record:
    """A record under the names this plan gives: the same run may have been made for another."""
    assert record is not None
    return replace(record, stream=task.stream, role=task.role, tuned=task.tuned)
