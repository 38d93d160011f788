"""One task is played: every algorithm sees the same rows in the same order, with the same uniform draws."""

import math
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gaptron.errors import GaptronError, NoBoundError, SettingError
from gaptron.experiments.record import OK, Record
from gaptron.experiments.shelf import Arrays, Shelved, rows
from gaptron.experiments.task import Task, version
from gaptron.learner import Learner
from gaptron.streams.rows import Rows
from gaptron.trace import Trace
from gaptron.types import Integers

DRAWS = 1_000_000  # the draws' seed less the order's: one seed for both would tie the draws to the order
PIECE = 1 << 25  # bytes at most of a stream that are copied at a time


def run(task: Task, shelved: Shelved, made_by: str, arrays: Arrays | None = None) -> Record:
    """Play a task. Whatever goes wrong becomes a record that says so; nothing is raised."""
    try:
        if made_by != version():
            raise SettingError(f"this process runs gaptron {version()}, but the tasks were made by {made_by}")
        return _played(task, shelved, shelved.arrays() if arrays is None else arrays)
    except Exception as problem:
        # What gaptron says on purpose needs no traceback.
        text = "" if isinstance(problem, GaptronError) else traceback.format_exc()
        return task.failed(shelved.data, type(problem).__name__, str(problem), text)


def _played(task: Task, shelved: Shelved, arrays: Arrays) -> Record:
    X, y = rows(arrays, shelved.n_features), arrays["y"]
    order = np.random.default_rng(task.seed).permutation(len(y)) if task.shuffle else None
    learner = _learner(task, shelved)
    trace: Trace | None = None
    seconds = 0.0
    for Xs, ys in _pieces(X, y, order):
        if trace is None:
            _learner(task, shelved).play(Xs[:1], ys[:1])  # so that compiling is not counted
        clock = time.perf_counter()
        part = learner.play(Xs, ys)
        seconds += time.perf_counter() - clock
        part = part if task.bound else replace(part, note_names=(), notes=np.empty((len(ys), 0)))  # the most of it
        trace = part if trace is None else trace + part
    assert trace is not None  # a stream has rounds
    curve = trace.curve
    bound, reason = _bound(task, learner, X, y, trace, order)
    return Record(
        key=task.key(shelved.data),
        status=OK,
        version=version(),
        data=shelved.data,
        prepared=(*shelved.prepared, *([f"shuffled (seed {task.seed})"] if task.shuffle else [])),
        rounds=shelved.n_rounds,
        n_classes=shelved.n_classes,
        n_features=shelved.n_features,
        mistakes=trace.mistakes,
        expected_mistakes=trace.expected_mistakes,
        top_mistakes=trace.top_mistakes,
        curve={
            "rounds": curve.rounds.tolist(),
            "mistakes": curve.mistakes.tolist(),
            "expected": curve.expected_mistakes.tolist(),
        },
        used=_used(learner),
        certificate=_certificate(learner, trace),
        bound=bound,
        bound_reason=reason,
        seconds=seconds,
        **task.words,
    )


def _learner(task: Task, shelved: Shelved) -> Learner:
    known = {"radius": task.radius, "horizon": shelved.n_rounds, "norm": shelved.norm or None}
    return Learner(
        task.algorithm,
        n_classes=shelved.n_classes,
        n_features=shelved.n_features,
        feedback=task.feedback,
        loss=task.loss,
        seed=DRAWS + task.seed,
        **{**known, **task.settings},
    )


def _pieces(X: Rows, y: Integers, order: Integers | None) -> Iterator[tuple[Rows, Integers]]:
    """The stream as it lies or in order, a piece at a time: no process ever holds a copy of it all."""
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    step = max(1, PIECE * len(y) // max(1, size))
    for start in range(0, len(y), step):
        part = slice(start, start + step) if order is None else order[start : start + step]
        yield X[part], y[part]


def _certificate(learner: Learner, trace: Trace) -> dict[str, Any] | None:
    certificate = learner.certificate
    if certificate is None:
        return None
    explored = float((trace.codes != trace.top).mean())
    return {
        "level": certificate.level,
        "step": certificate.step,
        "norm": certificate.norm,
        "apart": certificate.apart,
        "explored": explored,
    }


def _bound(
    task: Task, learner: Learner, X: Rows, y: Integers, trace: Trace, order: Integers | None
) -> tuple[dict[str, Any] | None, str | None]:
    if not task.bound:
        return None, "not looked for in this run"
    try:
        # On the stream as it lies: a sum over rounds has no order, so only the trace goes back to where it came from.
        found = learner.bound(X, y, trace if order is None else _put_back(trace, order))
    except NoBoundError as reason:
        return None, str(reason)
    if not math.isfinite(found.value):
        return None, f"the bound is infinite ({found.theorem})"
    return {
        "value": found.value,
        "regret": found.regret,
        "theorem": found.theorem,
        "comparator_norm": found.comparator.norm,
        "comparator_loss": found.comparator.loss,
    }, None


def _put_back(trace: Trace, order: Integers) -> Trace:
    back = np.argsort(order)
    named = ("codes", "top", "truth", "truth_probability", "notes")
    return replace(trace, **{name: getattr(trace, name)[back] for name in named})


def _used(learner: Learner) -> dict[str, Any]:
    """The settings that are finite numbers or words; the loss has its own place in a record."""
    settings = {name: value for name, value in learner.settings._asdict().items() if name != "loss"}
    plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in settings.items()}
    return {n: v for n, v in plain.items() if isinstance(v, (str, int)) or (isinstance(v, float) and math.isfinite(v))}
