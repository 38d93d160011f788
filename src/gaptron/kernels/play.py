"""The loop of every algorithm: observe an example, decide, receive feedback, learn.

`decide` writes only the round and the scratch, so that scoring changes nothing. `commit` then writes what the decision
alone fixes in the state (in most algorithms nothing), and `learn` what its feedback changes. Their bodies are chosen by
the class name of the settings tuple, because the compiler distinguishes such tuples by it. Each algorithm registers its
own with `algorithm`: plain functions or, where they are large, functions that are compiled once for all entry points
and kept on disk (`jit.inner`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from gaptron.kernels.compile.jit import by_type, class_name, jit
from gaptron.kernels.observed import update_evidence
from gaptron.kernels.rows import row
from gaptron.kernels.simplex import best, normalise
from gaptron.types import UNKNOWN, Feedback, Flags, Integers, Matrix, Round, Vector

FULL = int(Feedback.FULL)


class Played(NamedTuple):
    """What `play` records of each round."""

    label: Integers  # the label played
    top: Integers  # the label of the largest score
    truth_probability: Vector  # p(y), the probability of the true label; with rewards of all labels, the mean reward
    notes: Matrix  # the algorithm's notes, one row per round


class Bodies(NamedTuple):
    """The compiled functions of an algorithm."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    commit: Callable[..., None]
    cut: Callable[..., Any]


_BODIES: dict[str, Bodies] = {}


def _nothing(s: Any, state: Any, rd: Round, work: Any) -> None:
    pass


def _whole(s: Any, work: Any, n: int) -> Any:
    return work


def algorithm(
    settings: type,
    decide: Callable[..., int],
    learn: Callable[..., None],
    commit: Callable[..., None] = _nothing,
    cut: Callable[..., Any] = _whole,
) -> None:
    """Register the functions of an algorithm.

    Args:
        settings: the class of its settings, by whose name the loop finds them.
        decide: see `algorithms.protocol.Algorithm.decide`.
        learn: see `algorithms.protocol.Algorithm.learn`.
        commit: writes what a decision alone fixes in the state; left out: nothing.
        cut: returns a view of the scratch for a round with n actions, where rounds bring their own (`Card.actions`).
    """
    if settings.__name__ in _BODIES:
        raise RuntimeError(f"two algorithms call their settings {settings.__name__}: rename one of the classes")
    _BODIES[settings.__name__] = Bodies(decide, learn, commit, cut)


def _decide(s: Any, state: Any, x: Any, rd: Round, work: Any, u: float) -> int:
    raise NotImplementedError


def _learn(s: Any, state: Any, x: Any, rd: Round, work: Any, label: int, truth: int) -> None:
    raise NotImplementedError


decide = by_type(lambda s, *_: _BODIES[class_name(s)].decide, _decide)
decide.__doc__ = "Fill the round and return the label drawn with u ∈ [0, 1). Writes only the round and the scratch."
learn = by_type(lambda s, *_: _BODIES[class_name(s)].learn, _learn)
learn.__doc__ = "Learn from the round and the scratch, as `decide` left them, and from what the feedback revealed."
commit = by_type(lambda s, *_: _BODIES[class_name(s)].commit, _nothing)
commit.__doc__ = "Take a decision: write what it alone fixes in the state, before its feedback."


cut = by_type(lambda s, *_: _BODIES[class_name(s)].cut, _whole, view=True)
cut.__doc__ = "Return a view of the scratch for a round with n actions."


def _reveal_by_kind(feedback: Any, label: int, truth: int) -> int:
    return truth if feedback == FULL or label == truth else UNKNOWN


def _reveal_graph(feedback: Any, label: int, truth: int) -> int:
    return truth if feedback[label, truth] else UNKNOWN


reveal = by_type(lambda f, *_: _reveal_graph if hasattr(f, "ndim") else _reveal_by_kind, _reveal_by_kind)
reveal.__doc__ = "The true label, or UNKNOWN where the kind of feedback, or its graph, does not reveal it."


@jit
def trail_of(labels: Integers, truth_probability: Vector, start: int) -> int:
    """A hash that distinguishes the traces of different runs."""
    trail = start
    for t in range(labels.shape[0]):
        trail = (trail * 31 + labels[t] * 7919 + int(truth_probability[t] * 1e9)) % 2147483647
    return trail


@jit
def play(
    s: Any,
    state: Any,
    X: Any,
    y: Integers,
    u: Vector,
    feedback: Any,
    advice: Matrix,
    available: Any,
    rewards: Matrix,
    rd: Round,
    work: Any,
    count: Any,
    out: Played,
    evidence: Any,
    buffer: Vector,
) -> None:
    """Play every round of a chunk of examples.

    The rounds are counted here, after the last one, so that state and counts agree whenever the caller is interrupted.

    Args:
        s: the settings.
        state: the state.
        X: the examples.
        y: the true labels; not read where every label has its own reward.
        u: the numbers in [0, 1) that the labels are drawn with.
        feedback: the kind of feedback, or the feedback graph.
        advice: the caller's advice, one column per label; no columns: none.
        available: which labels are available; no columns: all.
        rewards: one column for the true label, or one per label; no columns: the true label earns 1.
        rd: the buffers of the round.
        work: the scratch.
        count: the counts of the run.
        out: receives the trace.
        evidence: what the feedback proves (`kernels.observed.Evidence`), or `Nothing`.
        buffer: the buffer of the evidence, one number per label.
    """
    for t in range(y.shape[0]):
        x = row(X, t)
        for k in range(advice.shape[1]):
            rd.advice[k] = advice[t, k]
        for k in range(available.shape[1]):
            rd.available[k] = available[t, k]
        label = decide(s, state, x, rd, work, u[t])
        normalise(rd.p)
        rd.feedback[0].label = label
        commit(s, state, rd, work)
        out.label[t] = label
        out.top[t] = best(rd.z)
        for i in range(rd.note.shape[0]):
            out.notes[t, i] = rd.note[i]
        if rewards.shape[1] > 1:
            shown, reward = label, rewards[t, label]
            out.truth_probability[t] = 0.0
            for k in range(rd.p.shape[0]):
                out.truth_probability[t] += rd.p[k] * rewards[t, k]
        else:
            shown = reveal(feedback, label, y[t])
            reward = 0.0 if shown != label else rewards[t, 0] if rewards.shape[1] > 0 else 1.0
            out.truth_probability[t] = rd.p[y[t]]
        if rewards.shape[1] > 0 and reward == 0.0:  # a label without reward is not revealed as the true one
            shown = UNKNOWN
        rd.feedback[0].reward = reward
        rd.feedback[0].propensity = rd.p[label if shown == UNKNOWN else shown]
        learn(s, state, x, rd, work, label, shown)
        update_evidence(evidence, x, rd, label, buffer)
    count[0].decided += y.shape[0]
    count[0].learned += y.shape[0]
    count[0].trail = trail_of(out.label, out.truth_probability, count[0].trail)


@jit
def commit_once(s: Any, state: Any, rd: Round, work: Any, count: Any) -> None:
    """Take the decision in the round and the scratch, and count it."""
    commit(s, state, rd, work)
    count[0].decided += 1


@jit
def learn_once(
    s: Any,
    state: Any,
    x: Any,
    rd: Round,
    work: Any,
    label: int,
    truth: int,
    count: Any,
    learned: Flags,
    evidence: Any,
    buffer: Vector,
) -> None:
    """Learn from one round, count it, and mark its decision as learned, without an interruption in between."""
    learn(s, state, x, rd, work, label, truth)
    update_evidence(evidence, x, rd, label, buffer)
    count[0].learned += 1
    count[0].trail = 0
    learned[0] = True


@jit
def score(
    s: Any,
    state: Any,
    X: Any,
    u: float,
    advice: Matrix,
    available: Any,
    rd: Round,
    work: Any,
    count: Any,
    take: bool,
    Z: Matrix,
    P: Matrix,
) -> int:
    """Decide for each example without learning.

    One function serves both to score many examples and to make one decision, because most of its code is `decide`.

    Args:
        s: the settings.
        state: the state.
        X: the examples.
        u: the number in [0, 1) that each label is drawn with.
        advice: as in `play`, one row per example.
        available: as in `play`, one row per example.
        rd: the buffers of the round.
        work: the scratch.
        count: the counts of the run.
        take: whether each decision is taken and counted.
        Z: receives the scores; no columns: they are not written.
        P: receives the distributions, with as many columns as Z.

    Returns:
        The last label drawn.
    """
    label = UNKNOWN
    if advice.shape[1] == 0:
        for k in range(rd.advice.shape[0]):
            rd.advice[k] = 0.0
    if available.shape[1] == 0:
        for k in range(rd.available.shape[0]):
            rd.available[k] = True
    for t in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            rd.advice[k] = advice[t, k]
        for k in range(available.shape[1]):
            rd.available[k] = available[t, k]
        label = decide(s, state, row(X, t), rd, work, u)
        normalise(rd.p)
        for k in range(Z.shape[1]):
            Z[t, k] = rd.z[k]
            P[t, k] = rd.p[k]
        if take:
            rd.feedback[0].label = label
            commit(s, state, rd, work)
            count[0].decided += 1
    return label
