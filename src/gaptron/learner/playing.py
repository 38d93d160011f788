"""Play whole streams: the loop behind `gaptron play` and `gaptron compare`, and a simulation of delayed feedback.

One seed s fixes a run of a comparison: the rounds come in the order of `prepare(stream, shuffle=s)`, and the learner
draws with `Learner(seed=s)`, whose random numbers are independent of the order (`gaptron.learner.seeds`). Every
algorithm therefore plays the same examples in the same order with the same uniform draws, and
`gaptron play --shuffle s --seed s` repeats a run.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gaptron.data.examples import as_table
from gaptron.data.labels import Classes, EncodedLabels, Labels
from gaptron.errors import InputError
from gaptron.learner.decision import Decision
from gaptron.learner.learner import Learner
from gaptron.learner.trace import Tally, Trace
from gaptron.types import Feedback, Flags, Integers, Matrix


class Chunk(Protocol):
    """Consecutive rounds of a stream, such as `gaptron.streams.rounds.Rounds`."""

    @property
    def X(self) -> Any:  # noqa: N802
        """Examples: checked `Examples`, or a list of dicts for a learner with `features`."""

    @property
    def y(self) -> Integers:
        """The code of the true label of each round."""

    @property
    def available(self) -> NDArray[np.bool_] | None:
        """Which labels are available in each round; None if all are."""

    @property
    def rewards(self) -> Matrix | None:
        """The reward of the true label (T × 1) or of each label (T × K); None if a correct label earns 1."""


class Run(NamedTuple):
    """The result of playing a stream."""

    tally: Tally
    trace: Trace | None  # None if it was not kept
    notes: dict[str, float]  # the mean of each of the algorithm's notes
    seconds: float  # spent playing; compiling and reading are excluded


def play_chunks(
    learner: Learner,
    chunks: Iterable[Chunk],
    *,
    keep_trace: bool = True,
    keep_notes: bool = True,
    progress: Callable[[int], None] | None = None,
    on_chunk: Callable[[Trace], None] = lambda trace: None,
) -> Run:
    """Play a stream chunk by chunk. The time to compile is not counted.

    Args:
        learner: continues from its current state.
        chunks: the rounds of the stream, in the order in which to play them.
        keep_trace: keep the trace of all rounds; memory then grows with their number.
        keep_notes: keep the algorithm's notes in the trace; they take most of its memory.
        progress: called during play with the number of rounds played since the last call.
        on_chunk: called after each chunk with its trace.

    Returns:
        The totals, the trace if kept, the means of the notes, and the seconds spent playing.
    """
    tally, whole, seconds = Tally(), None, 0.0
    sums: Counter[str] = Counter()
    for chunk in chunks:
        if not tally.rounds:
            learner.warm_up(chunk.X[:1], one_by_one=False)
        y = labels_of(learner, chunk.y)
        start = time.perf_counter()
        trace = learner.play(chunk.X, y, available=chunk.available, rewards=chunk.rewards, progress=progress)
        seconds += time.perf_counter() - start
        tally.add(trace)
        sums.update(dict(zip(trace.note_names, trace.notes.sum(axis=0).tolist(), strict=True)))
        on_chunk(trace)
        if keep_trace:
            trace = trace if keep_notes else replace(trace, note_names=(), notes=np.empty((trace.rounds, 0)))
            whole = trace if whole is None else whole + trace
    return Run(tally, whole, {name: total / tally.rounds for name, total in sums.items()}, seconds)


def labels_of(learner: Learner, codes: Integers) -> EncodedLabels:
    """Return labels that have been encoded with the learner's classes, which it does not encode again."""
    return EncodedLabels(codes, learner.classes)


def best_reward(rewards: Matrix | None, y: Integers) -> float | None:
    """Return the total reward of the best labels y, if the reward of every label is known; else None."""
    return None if rewards is None or rewards.shape[1] == 1 else float(rewards[np.arange(len(y)), y].sum())


def play_delayed(learner: Learner, X: Any, y: Labels, delay: Any) -> Flags:
    """Simulate delayed feedback: decide on every example, and learn from each outcome when it arrives.

    Feedback that would arrive after the last example is not learned. As always when deciding one by one, algorithms
    with a step size need `norm=`.

    Args:
        learner: with full or bandit feedback.
        X: the examples.
        y: their true labels.
        delay: how many further decisions are made before the feedback on a decision arrives: one number for all
            rounds, or one per round. 0 is immediately, infinity is never.

    Returns:
        For each round, whether the label played was wrong.
    """
    table, truth = as_table(X), Classes(learner.classes).codes(y)
    T = len(truth)
    if table.shape[0] != T:
        raise InputError(f"X has {table.shape[0]} rows but y has {T} labels")
    learner.check(table)
    delays = np.asarray(delay, dtype=np.float64)
    if delays.ndim == 0:
        delays = np.broadcast_to(delays, T)
    if delays.shape != (T,) or not (delays >= 0.0).all():
        raise InputError(f"delay must be a number of at least 0, or {T} such numbers, one per example")
    if learner.problem.feedback is Feedback.GRAPH:
        raise InputError("play_delayed does not simulate feedback graphs: use a learner with full or bandit feedback")
    full = learner.problem.feedback is Feedback.FULL
    wrong = np.zeros(T, dtype=np.bool_)
    waiting: list[tuple[float, int, Decision]] = []  # by the round in which the feedback arrives
    for t in range(T):
        decision = learner.decide(table[[t]])
        wrong[t] = decision._code != truth[t]
        if not math.isinf(delays[t]):
            heappush(waiting, (t + delays[t], t, decision))
        while waiting and waiting[0][0] <= t:
            _, decided_at, earlier = heappop(waiting)
            if full:
                learner.learn(earlier, label=learner.classes[truth[decided_at]])
            else:
                learner.learn(earlier, correct=not wrong[decided_at])
    return wrong
