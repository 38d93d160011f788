"""The loop of `play` for rounds that bring their own actions, whose number differs from round to round.

The vectors of the round and of the scratch have `MOST_ACTIONS` numbers. A round uses views of their first K_t numbers,
so that an algorithm reads the number of actions from their length and its result does not depend on other rounds.
"""

from typing import Any

import numpy as np

from gaptron.kernels.compile.jit import by_type, jit
from gaptron.kernels.play import FULL, Played, commit, cut, decide, learn, trail_of
from gaptron.kernels.rows import FEW_ACTIONS, actions_of
from gaptron.kernels.simplex import best
from gaptron.types import MOST_ACTIONS, UNKNOWN, Integers, Matrix, Round, Vector


def _first(rd: Round, n: int) -> Round:
    return Round(rd.z[:n], rd.p[:n], rd.note, rd.advice, rd.available[:n], rd.feedback)


first = by_type(lambda *_: _first, _first, view=True)
first.__doc__ = "Return a view of the buffers of a round for n actions."


def new_buffers(n_features: int) -> tuple[Matrix, Vector]:
    """Return the buffers `pairs` and `space` of `ActionRows`."""
    return np.zeros((FEW_ACTIONS, MOST_ACTIONS)), np.zeros(4 * n_features)


@jit
def play_actions(
    s: Any,
    state: Any,
    X: Any,
    y: Integers,
    u: Vector,
    feedback: int,
    rewards: Vector,
    pairs: Matrix,
    space: Vector,
    whole: Round,
    scratch: Any,
    count: Any,
    out: Played,
) -> None:
    """Play every round of a chunk.

    Args:
        s: the settings.
        state: the state.
        X: the actions of every round.
        y: the right actions; not read where every action has its own reward.
        u: the numbers in [0, 1) that the actions are drawn with.
        feedback: the kind of feedback.
        rewards: one per row of these rounds; empty: the right action earns 1.
        pairs: buffer of `ActionRows`.
        space: buffer of `ActionRows`.
        whole: the buffers of a round.
        scratch: the scratch.
        count: the counts of the run.
        out: receives the trace.
    """
    for t in range(y.shape[0]):
        at, n = X.first[t] - X.first[0], X.first[t + 1] - X.first[t]
        x, rd, work = actions_of(X, t, pairs, space), first(whole, n), cut(s, scratch, n)
        action = decide(s, state, x, rd, work, u[t])
        rd.feedback[0].label = action
        commit(s, state, rd, work)
        out.label[t] = action
        out.top[t] = best(rd.z)
        for i in range(rd.note.shape[0]):
            out.notes[t, i] = rd.note[i]
        if rewards.shape[0] > 0:
            shown, reward = action, rewards[at + action]
            out.truth_probability[t] = 0.0
            for k in range(n):
                out.truth_probability[t] += rd.p[k] * rewards[at + k]
        else:
            shown = y[t] if feedback == FULL or action == y[t] else UNKNOWN
            reward = 1.0 if action == y[t] else 0.0
            out.truth_probability[t] = rd.p[y[t]]
        if feedback != FULL and reward == 0.0:
            shown = UNKNOWN
        rd.feedback[0].reward = reward
        rd.feedback[0].propensity = rd.p[action if shown == UNKNOWN else shown]
        learn(s, state, x, rd, work, action, shown)
    count[0].decided += y.shape[0]
    count[0].learned += y.shape[0]
    count[0].trail = trail_of(out.label, out.truth_probability, count[0].trail)


@jit
def score_actions(
    s: Any, state: Any, X: Any, pairs: Matrix, space: Vector, whole: Round, scratch: Any, Z: Vector, P: Vector
) -> None:
    """Write the scores and the distribution of every round, one number per row of X."""
    for t in range(X.first.shape[0] - 1):
        at, n = X.first[t] - X.first[0], X.first[t + 1] - X.first[t]
        rd = first(whole, n)
        decide(s, state, actions_of(X, t, pairs, space), rd, cut(s, scratch, n), 0.5)
        for k in range(n):
            Z[at + k] = rd.z[k]
            P[at + k] = rd.p[k]


@jit
def decide_once(s: Any, state: Any, x: Any, u: float, rd: Round, work: Any, count: Any, take: bool) -> int:
    """Decide one round; `take`: take the decision too, and count it."""
    label = decide(s, state, x, rd, work, u)
    if take:
        rd.feedback[0].label = label
        commit(s, state, rd, work)
        count[0].decided += 1
    return label
