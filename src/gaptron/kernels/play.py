"""The one loop: see x, decide, be shown what the feedback shows, learn.

`decide` writes nothing but the round's sheet, so that looking changes nothing; `commit` then writes what the decision
alone fixes (most algorithms: nothing), and `learn` what its answer teaches. They are verbs whose bodies are chosen by
the class name of the settings tuple, because that is what the compiler tells such tuples apart by. Each
algorithm registers its own with `algorithm`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.kernels.jit import by_type, class_name, jit
from gaptron.kernels.rows import row, sqnorm
from gaptron.kernels.simplex import best
from gaptron.types import UNKNOWN, Feedback, Integers, Matrix, Round, Vector

FULL = int(Feedback.FULL)


class Record(NamedTuple):
    """What is written down of each round."""

    label: Integers  # played
    top: Integers  # of the largest score
    truth_probability: Vector  # p(y): what the draw gave the true label
    notes: Matrix  # the algorithm's own notes, a row a round


class Bodies(NamedTuple):
    """The parts of an algorithm."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    commit: Callable[..., None]


_BODIES: dict[str, Bodies] = {}


def _nothing(s: Any, state: Any, rd: Round) -> None:
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


def _decide(s: Any, state: Any, x: Any, rd: Round, u: float) -> int:
    raise NotImplementedError


def _learn(s: Any, state: Any, x: Any, rd: Round, label: int, truth: int) -> None:
    raise NotImplementedError


decide = by_type(lambda s, *_: _BODIES[class_name(s)].decide, _decide)
decide.__doc__ = "Fill the round's sheet and return the label drawn with u ∈ [0, 1). Writes nothing but the sheet."
learn = by_type(lambda s, *_: _BODIES[class_name(s)].learn, _learn)
commit = by_type(lambda s, *_: _BODIES[class_name(s)].commit, _nothing)
commit.__doc__ = "Take the decision on a sheet: write what it alone fixes in the state, answered or not."
learn.__doc__ = "Learn from a round's sheet and what the feedback showed of the truth."


def _reveal_word(feedback: Any, label: int, truth: int) -> int:
    return truth if feedback == FULL or label == truth else UNKNOWN


def _reveal_graph(feedback: Any, label: int, truth: int) -> int:
    return truth if feedback[label, truth] else UNKNOWN


reveal = by_type(lambda f, *_: _reveal_graph if hasattr(f, "ndim") else _reveal_word, _reveal_word)
reveal.__doc__ = "What the round shows of the truth: by the feedback's word, or by its graph."


@jit
def play(
    s: Any, state: Any, X: Any, y: Integers, u: Vector, feedback: Any, advice: Matrix, rd: Round, out: Record
) -> None:
    """Every round of a stream held in memory. advice has as many columns as `rd.advice` has room, or none."""
    for t in range(y.shape[0]):
        x = row(X, t)
        for k in range(advice.shape[1]):
            rd.advice[k] = advice[t, k]
        label = decide(s, state, x, rd, u[t])
        commit(s, state, rd)
        out.label[t] = label
        out.top[t] = best(rd.z)
        out.truth_probability[t] = rd.p[y[t]]
        for i in range(rd.note.shape[0]):
            out.notes[t, i] = rd.note[i]
        learn(s, state, x, rd, label, reveal(feedback, label, y[t]))


@jit
def decide_once(s: Any, state: Any, x: Any, rd: Round, u: float) -> int:
    """One round's first half."""
    label = decide(s, state, x, rd, u)
    commit(s, state, rd)
    return label


@jit
def learn_once(s: Any, state: Any, x: Any, rd: Round, label: int, truth: int) -> None:
    """One round's second half."""
    learn(s, state, x, rd, label, truth)


@jit
def look(s: Any, state: Any, X: Any, advice: Matrix, rd: Round, Z: Matrix, P: Matrix) -> None:
    """Scores and distributions for many rows; nothing is learned."""
    for t in range(Z.shape[0]):
        for k in range(advice.shape[1]):
            rd.advice[k] = advice[t, k]
        decide(s, state, row(X, t), rd, 0.5)
        for k in range(Z.shape[1]):
            Z[t, k] = rd.z[k]
            P[t, k] = rd.p[k]


@jit
def sqnorms(X: Any, out: NDArray[np.float64]) -> None:
    """‖x‖² of every row."""
    for t in range(out.shape[0]):
        out[t] = sqnorm(row(X, t))
