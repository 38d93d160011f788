"""The one run: a learner over a stream. `gaptron play` runs one by itself, a comparison runs many tasks.

One seed s fixes a run of a comparison: the rounds come in the order of `prepare(stream, shuffle=s)`, and the learner
draws with `Learner(seed=s)`, whose numbers are apart from those of the order (`gaptron.seeds`). So every algorithm sees
the same rows in the same order with the same uniform draws, and `gaptron play --shuffle s --seed s` repeats a run.
"""

import copy
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import GaptronError, SettingError
from gaptron.experiments import account
from gaptron.experiments.stream_cache import Arrays, CachedStream, rows
from gaptron.experiments.task import OK, Result, Task, processor, version
from gaptron.kernels import observed
from gaptron.learner import Learner
from gaptron.streams.rounds import Rounds
from gaptron.trace import Tally, Trace
from gaptron.types import Feedback, Integers, Matrix, Observed, Sparse
from gaptron.validation import CheckedRows, block, parts_of

PIECE = 1 << 25  # bytes at most of a stream that are copied at a time


class Run(NamedTuple):
    """What playing gave."""

    tally: Tally
    trace: Trace | None  # None: not kept
    notes: dict[str, float]  # the mean of each of the algorithm's notes
    seconds: float  # of playing alone


def run(
    learner: Learner,
    pieces: Iterable[Rounds],
    *,
    keep: bool = True,
    notes: bool = True,
    progress: Callable[[int], None] | None = None,
    played: Callable[[Trace], None] = lambda part: None,
) -> Run:
    """Play a stream that comes in pieces, rows and codes of labels. Compiling stays outside the clock.

    Args:
        learner: it goes on from where it is.
        pieces: of the stream, in the order they are to be played.
        keep: keep the trace of all rounds; memory then grows with them.
        notes: with the numbers the algorithm noted each round, which take most of a trace's memory.
        progress: called while a piece is played, with the number of rounds done since the last call.
        played: called after each piece with its trace.
    """
    tally, whole, seconds = Tally(), None, 0.0
    sums: Counter[str] = Counter()
    for piece in pieces:
        if not tally.rounds:
            row = piece.X.first(1) if isinstance(piece.X, CheckedRows) else piece.X[:1]
            head = piece.part(row, slice(1))  # which compiles what is not compiled yet
            copy.copy(learner).play(head.X, labels(learner, head.y), among=head.among, reward=head.worth)
        y = labels(learner, piece.y)
        clock = time.perf_counter()
        part = learner.play(piece.X, y, among=piece.among, reward=piece.worth, progress=progress)
        seconds += time.perf_counter() - clock
        tally.add(part)
        sums.update(dict(zip(part.note_names, part.notes.sum(axis=0).tolist(), strict=True)))
        played(part)
        if keep:
            part = part if notes else replace(part, note_names=(), notes=np.empty((part.rounds, 0)))
            whole = part if whole is None else whole + part
    return Run(tally, whole, {name: total / tally.rounds for name, total in sums.items()}, seconds)


def best_reward(worth: Matrix | None, y: Integers) -> float | None:
    """What the best labels y would have earned, where every label has a worth."""
    return None if worth is None or worth.shape[1] == 1 else float(worth[np.arange(len(y)), y].sum())


def labels(learner: Learner, codes: Any) -> Any:
    """A stream's codes as the learner's own labels."""
    classes = learner.classes
    return codes if classes == tuple(range(len(classes))) else [classes[code] for code in codes]


# --- a task of a comparison ----------------------------------------------------------------------------------


def run_task(task: Task, cached: CachedStream, made_by: str, arrays: Arrays | None = None) -> Result:
    """Run a task. Whatever goes wrong becomes a result that says so; nothing is raised."""
    try:
        if made_by != version():
            raise SettingError(f"this process runs gaptron {version()}, but the tasks were made by {made_by}")
        return _result(task, cached, cached.arrays() if arrays is None else arrays)
    except Exception as problem:
        # What gaptron says on purpose needs no traceback.
        text = "" if isinstance(problem, GaptronError) else traceback.format_exc()
        return task.failed(cached.data, type(problem).__name__, str(problem), text)


def _result(task: Task, cached: CachedStream, arrays: Arrays) -> Result:
    X, y = rows(arrays, cached.n_features), arrays["y"]
    order = np.random.default_rng(task.seed).permutation(len(y)) if task.shuffle and not cached.shuffled else None
    learner = _learner(task, cached)
    worth = arrays.get("worth")
    whole = Rounds(X, y, arrays.get("among"), worth)
    tally, trace, notes, seconds = run(learner, _pieces(whole, order, cached.norm), notes=task.bound)
    assert trace is not None  # a stream has rounds
    bound: account.Account | None = None
    reason: str | None = "not looked for in this run"
    if task.bound:
        # On the stream in its own order, which needs no copy: a sum over rounds has no order, the trace is put back.
        bound, reason = account.bound(learner, X, y, trace if order is None else trace.in_order(np.argsort(order)))
    plain = task.bound and _bandit(task) and worth is None  # rewards are neither right nor wrong
    heard = _heard(_pieces(whole, order, cached.norm), cached, trace) if plain else None
    curve = trace.curve
    return Result(
        key=task.key(cached.data),
        status=OK,
        version=version(),
        processor=processor(),
        data=cached.data,
        prepared=(*cached.prepared, *([f"shuffled (seed {task.seed})"] if task.shuffle else [])),
        rounds=cached.n_rounds,
        n_classes=cached.n_classes,
        n_features=cached.n_features,
        mistakes=trace.mistakes,
        expected_mistakes=trace.expected_mistakes,
        top_mistakes=trace.top_mistakes,
        reward=None if worth is None else float(trace.reward.sum()),
        best_reward=best_reward(worth, y),
        curve={
            "rounds": curve.rounds.tolist(),
            "mistakes": curve.mistakes.tolist(),
            "expected": curve.expected_mistakes.tolist(),
        },
        used=account.settings(learner),
        certificate=account.certificate(learner, tally, notes),
        observed=account.observed(heard),
        bound=bound,
        bound_reason=reason,
        seconds=seconds,
        **task.shared,
    )


def _learner(task: Task, cached: CachedStream) -> Learner:
    known = {"radius": task.radius, "horizon": cached.n_rounds, "norm": cached.norm or None}
    return Learner(
        task.algorithm,
        n_classes=cached.n_classes,
        n_features=cached.n_features,
        feedback=task.feedback,
        loss=task.loss,
        seed=task.seed,
        observe=False,  # it would be in the time of a round; `_heard` looks at the answers afterwards
        **{**known, **task.settings},
    )


def _bandit(task: Task) -> bool:
    return task.feedback == Feedback.BANDIT.word


def _heard(pieces: Iterable[Rounds], cached: CachedStream, trace: Trace) -> Observed:
    """What the answers of a bandit run prove of every linear rule, as a learner that observes would say it."""
    K, start, right = cached.n_classes, 0, np.equal(trace.codes, trace.truth).astype(np.float64)
    seen: observed.Watch | None = None
    for piece in pieces:
        if seen is None:
            seen = observed.new_watch(K, cached.n_features, isinstance(piece.X.rows, Sparse))
        part = slice(start, start + len(piece.y))
        among = np.ones((len(piece.y), 0), dtype=np.bool_) if piece.among is None else piece.among
        given = trace.codes[part], right[part], among
        observed.hear_all(seen, piece.X.rows, *given, np.ones(K, dtype=np.bool_), np.zeros(K))
        start = part.stop
    assert seen is not None  # a stream has rounds
    return observed.proved(seen, 0)


def _pieces(whole: Rounds, order: Integers | None, longest: float) -> Iterator[Rounds]:
    """The stream in its own order or in the given one, a piece at a time: no process holds a copy of all of it.

    It was checked when it was prepared.
    """
    X, y = whole.X, whole.y
    rows, T, width = parts_of(X), len(y), X.shape[1]
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    step = max(1, PIECE * T // max(1, size))
    for start in range(0, T, step):
        stop = min(start + step, T)
        chosen = slice(start, stop) if order is None else order[start:stop]
        piece = block(rows, start, stop, isinstance(rows, Sparse), width) if order is None else parts_of(X[chosen])
        yield whole.part(CheckedRows(piece, width, longest), chosen)
