"""The one loop: see x, decide, be shown what the feedback shows, learn.

`decide` writes nothing but the round and the scratch, so that looking changes nothing; `commit` then writes what the
decision alone fixes (most algorithms: nothing), and `learn` what its answer teaches. They are verbs whose bodies are
chosen by the class name of the settings tuple, because that is what the compiler tells such tuples apart by. Each
algorithm registers its own with `algorithm`: plain functions, or, where they are large, functions that are typed once
for all entries and kept on disk (`jit.inner`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from gaptron.kernels.jit import by_type, class_name, jit
from gaptron.kernels.observed import watch
from gaptron.kernels.rows import row
from gaptron.kernels.simplex import best
from gaptron.types import UNKNOWN, Feedback, Flags, Integers, Matrix, Round, Vector

FULL = int(Feedback.FULL)


class Played(NamedTuple):
    """What is written down of each round."""

    label: Integers  # played
    top: Integers  # of the largest score
    truth_probability: Vector  # p(y): what the draw gave the true label, or the mean of what it earns
    notes: Matrix  # the algorithm's own notes, a row a round


class Bodies(NamedTuple):
    """The parts of an algorithm."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    commit: Callable[..., None]


_BODIES: dict[str, Bodies] = {}


def _nothing(s: Any, state: Any, rd: Round, work: Any) -> None:
    pass


def algorithm(
    settings: type,
    decide: Callable[..., int],
    learn: Callable[..., None],
    commit: Callable[..., None] = _nothing,
) -> None:
    """Tell the loop which decide, learn and commit go with this class of settings."""
    if settings.__name__ in _BODIES:
        raise RuntimeError(f"two algorithms call their settings {settings.__name__}: one would run the other's code")
    _BODIES[settings.__name__] = Bodies(decide, learn, commit)


def _decide(s: Any, state: Any, x: Any, rd: Round, work: Any, u: float) -> int:
    raise NotImplementedError


def _learn(s: Any, state: Any, x: Any, rd: Round, work: Any, label: int, truth: int) -> None:
    raise NotImplementedError


decide = by_type(lambda s, *_: _BODIES[class_name(s)].decide, _decide)
decide.__doc__ = "Fill the round and return the label drawn with u ∈ [0, 1). Writes nothing but round and scratch."
learn = by_type(lambda s, *_: _BODIES[class_name(s)].learn, _learn)
learn.__doc__ = "Learn from what `decide` left in the round and the scratch, and what the feedback showed of the truth."
commit = by_type(lambda s, *_: _BODIES[class_name(s)].commit, _nothing)
commit.__doc__ = "Take a decision: write what it alone fixes in the state, answered or not."


def _reveal_word(feedback: Any, label: int, truth: int) -> int:
    return truth if feedback == FULL or label == truth else UNKNOWN


def _reveal_graph(feedback: Any, label: int, truth: int) -> int:
    return truth if feedback[label, truth] else UNKNOWN


reveal = by_type(lambda f, *_: _reveal_graph if hasattr(f, "ndim") else _reveal_word, _reveal_word)
reveal.__doc__ = "What the round shows of the truth: by the feedback's word, or by its graph."


@jit
def trail_of(labels: Integers, truth_probability: Vector, start: int) -> int:
    """A number that tells the trace of one run from that of another."""
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
    among: Any,
    worth: Matrix,
    rd: Round,
    work: Any,
    count: Any,
    out: Played,
    seen: Any,
    room: Vector,
) -> None:
    """Every round of a stream held in memory.

    advice has as many columns as `rd.advice` has room, or none; among says which labels may be played, or has no
    columns. worth has a column for what the right label earns, one for each label, or none: then right earns 1. Where
    every label has its own worth nothing else is right or wrong, and y is not looked at. seen is what is kept beside
    the learner (`kernels.observed.Watch`, or `Nothing`), room its work space.

    The rounds are counted here, behind the last of them: whatever interrupts the caller meets a state and a count
    that agree.
    """
    for t in range(y.shape[0]):
        x = row(X, t)
        for k in range(advice.shape[1]):
            rd.advice[k] = advice[t, k]
        for k in range(among.shape[1]):
            rd.among[k] = among[t, k]
        label = decide(s, state, x, rd, work, u[t])
        rd.answer[0].label = label
        commit(s, state, rd, work)
        out.label[t] = label
        out.top[t] = best(rd.z)
        for i in range(rd.note.shape[0]):
            out.notes[t, i] = rd.note[i]
        if worth.shape[1] > 1:
            shown, reward = label, worth[t, label]
            out.truth_probability[t] = 0.0
            for k in range(rd.p.shape[0]):
                out.truth_probability[t] += rd.p[k] * worth[t, k]
        else:
            shown = reveal(feedback, label, y[t])
            reward = 0.0 if shown != label else worth[t, 0] if worth.shape[1] > 0 else 1.0
            out.truth_probability[t] = rd.p[y[t]]
        if worth.shape[1] > 0 and reward == 0.0:  # worth nothing is wrong
            shown = UNKNOWN
        rd.answer[0].reward = reward
        rd.answer[0].chance = rd.p[label if shown == UNKNOWN else shown]
        learn(s, state, x, rd, work, label, shown)
        watch(seen, x, rd, label, room)
    count[0].decided += y.shape[0]
    count[0].learned += y.shape[0]
    count[0].trail = trail_of(out.label, out.truth_probability, count[0].trail)


@jit
def commit_once(s: Any, state: Any, rd: Round, work: Any, count: Any) -> None:
    """A decision that another made is taken, and counted."""
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
    answered: Flags,
    seen: Any,
    room: Vector,
) -> None:
    """One round's second half, its count, and that it was answered: no interruption comes between."""
    learn(s, state, x, rd, work, label, truth)
    watch(seen, x, rd, label, room)
    count[0].learned += 1
    count[0].trail = 0
    answered[0] = True


@jit
def look(
    s: Any,
    state: Any,
    X: Any,
    u: float,
    advice: Matrix,
    among: Any,
    rd: Round,
    work: Any,
    count: Any,
    take: bool,
    Z: Matrix,
    P: Matrix,
) -> int:
    """Decide for many rows and learn nothing; scores and distributions are written where Z and P have columns.

    advice and among, a row each, as in `play`. One row is a round's first half: its decision may be taken, which is
    counted. Returns the last label drawn. One entry for both, because most of it is `decide`.
    """
    label = UNKNOWN
    if advice.shape[1] == 0:
        for k in range(rd.advice.shape[0]):
            rd.advice[k] = 0.0
    if among.shape[1] == 0:
        for k in range(rd.among.shape[0]):
            rd.among[k] = True
    for t in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            rd.advice[k] = advice[t, k]
        for k in range(among.shape[1]):
            rd.among[k] = among[t, k]
        label = decide(s, state, row(X, t), rd, work, u)
        for k in range(Z.shape[1]):
            Z[t, k] = rd.z[k]
            P[t, k] = rd.p[k]
        if take:
            rd.answer[0].label = label
            commit(s, state, rd, work)
            count[0].decided += 1
    return label
