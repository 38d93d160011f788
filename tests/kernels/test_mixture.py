"""Mixtures of softmax rules: what is kept of the stored rounds."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from gaptron.kernels import mixture
from gaptron.kernels.rows import by_label
from gaptron.types import Feedback, Loss, Problem, SparseRow

K, D, NU, MEMORY = 3, 4, 0.5, 5


class State(NamedTuple):
    """The fields of an algorithm's state that a mixture uses."""

    W: Any
    G: Any
    E: Any
    a: Any
    values: Any
    indices: Any
    begin: Any
    end: Any
    span: Any
    y: Any
    v: Any
    pace: Any


def potential(W, rounds):
    """Φ(W) and ∇Φ(W), by the formula."""
    value, gradient = np.sum(W * W) / (2 * NU**2), W / NU**2
    for x, y, v in rounds:
        z = W @ x
        p = np.exp(z - z.max())
        p /= p.sum()
        value -= v * np.log(p[y])
        gradient = gradient + v * np.outer(p - np.eye(K)[y], x)
    return value, gradient


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_a_round_that_is_dropped_takes_its_weighted_part_along(sparse):
    """After each round, the sum of squares, Φ and ∇Φ of every chain are those of the last five rounds alone."""
    rng = np.random.default_rng(0)
    problem = Problem(K, D, Feedback.BANDIT, Loss.LOGISTIC, 1.0, 1.0, 100)
    state = State(**mixture.new_mixture(problem, sparse, NU, 2, MEMORY, D, 0, 0.1))
    work = mixture.mixture_scratch(problem, sparse, 0)
    rounds = []
    for t in range(12):
        x, y, v = rng.normal(size=D), t % K, 0.1 + rng.random()
        row = SparseRow(np.arange(D, dtype=np.int32), x) if sparse else x
        rounds = [*rounds, (x, y, v)][-MEMORY:]
        work.coin[0].u = rng.random()
        mixture.update_mixture(state, work, row, y, v, NU, 2, 0)
        assert state.pace[0].square == pytest.approx(sum(v * (x @ x) for x, _, v in rounds))
        for c in range(2):
            value, gradient = potential(by_label(state.W[c], sparse), rounds)
            assert state.E[c] == pytest.approx(value)
            np.testing.assert_allclose(by_label(state.G[c], sparse), gradient, rtol=1e-9, atol=1e-9)
    assert (state.pace[0].rounds, state.pace[0].tried, state.span[0].count) == (12, 48, MEMORY)
    assert 0 < state.pace[0].accepted <= 48


def test_chains_keep_the_variance_of_the_prior():
    """Rounds of next to no weight leave the prior. The steps are so large that the correction must be right.

    64 chains of 4 weights; 1/√(2·256) = 4 % is the deviation of the sum of squares if all chains were drawn anew.
    """
    rng = np.random.default_rng(1)
    problem = Problem(2, 2, Feedback.BANDIT, Loss.LOGISTIC, 1.0, 1.0, 100)
    state = State(**mixture.new_mixture(problem, False, NU, 64, 1, 2, 0, 2.0))
    work = mixture.mixture_scratch(problem, False, 0)
    squares = []
    for t in range(60):
        work.coin[0].u = rng.random()
        mixture.update_mixture(state, work, np.array([1.0, 0.0]), t % 2, 1e-12, NU, 5, 0)
        squares.append(np.mean(state.W**2))
    assert 0.4 < state.pace[0].accepted / state.pace[0].tried < 0.8
    assert np.mean(squares[10:]) == pytest.approx(NU**2, rel=0.06)
