"""What feedback proves about every linear rule: the kernels against a textbook version, and that against the best rule.

The textbook version can be spoiled in ways that the theorem forbids. Each spoiled one must be caught by the same
streams that the right one passes: else the streams would prove nothing.
"""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from gaptron.kernels import observed
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.observed import FIRST_STEP, RADIUS, Evidence, new_evidence, new_run, update_evidence
from gaptron.kernels.rows import row
from gaptron.types import Nothing, Sparse, new_round
from tests.plain import LN2, softmax

STREAMS = 120
close = np.testing.assert_allclose


@jit
def observe(evidence, X, played, available, rewards, rd, r):
    for t in range(played.shape[0]):
        rd.feedback[0].reward = rewards[t]
        for k in range(available.shape[1]):
            rd.available[k] = available[t, k]
        update_evidence(evidence, row(X, t), rd, played[t], r)


class Stream:
    """Rounds made to be hard: few rows repeated, labels that alternate or switch, norms over decades, any hits."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.K, d, T = int(rng.integers(2, 6)), int(rng.integers(1, 5)), int(rng.integers(1, 80))
        few = rng.normal(size=(int(rng.integers(1, 5)), d)) * rng.choice([0.0, 0.01, 1.0, 1.0, 100.0], size=(1, 1))
        self.X = few[rng.integers(len(few), size=T)] * 10.0 ** rng.uniform(-1, 1, size=(T, 1)) ** rng.integers(0, 3)
        kind = rng.integers(4)
        turns = np.arange(T)
        self.y = [turns % 2, turns * 2 // T, rng.integers(self.K, size=T), np.zeros(T, dtype=np.int64)][kind]
        self.hit = rng.random(T) < rng.choice([0.1, 0.5, 0.9, 1.0])
        self.played = np.where(self.hit, self.y, (self.y + rng.integers(1, self.K, size=T)) % self.K)
        self.available = rng.random((T, self.K)) < rng.choice([0.5, 1.0])
        self.available[turns, self.y] = self.available[turns, self.played] = True
        self.step = float(rng.choice([FIRST_STEP, FIRST_STEP, 0.05, 25.0]))

    def in_order(self, places):
        other = object.__new__(Stream)
        other.K, other.step = self.K, self.step
        for name in ("X", "y", "hit", "played", "available"):
            setattr(other, name, getattr(self, name)[places])
        return other


def softmax_in_textbook(stream, spoiled=None):
    """(Ψ after every round, ε) of Theorem 1 in numpy."""
    Theta = np.zeros((stream.K, stream.X.shape[1]))
    X2, psi, mistakes, step, path = 0.0, 0.0, 0, stream.step, []
    for x, played, hit, available in zip(stream.X, stream.played, stream.hit, stream.available):
        X2 = x @ x if spoiled == "no running maximum" else max(X2, x @ x)
        if hit or spoiled == "learns from a miss":
            p = np.zeros(stream.K)
            z = -(step / X2 if X2 else 0.0) * (Theta @ x)[available]
            p[available] = softmax(z)
            y = np.eye(stream.K)[played]
            kappa = step * (x @ x) / (2 * LN2**2 * X2) if X2 else 0.0
            kappa *= {"half of κ": 0.5, "no κ": 0.0}.get(spoiled, 1.0)
            here = list(np.flatnonzero(available)).index(played)
            psi += (np.log(np.exp(z - z.max()).sum()) + z.max() - z[here]) / LN2 - kappa * ((p - y) @ (p - y))
            Theta += np.outer(p - y, x) / LN2
        mistakes += not hit
        if spoiled == "a step that rises":
            step *= 1.1
        elif mistakes > psi:
            step = min(step, RADIUS**2 / (2 * (mistakes - psi)))
        path.append(psi)
    return np.array(path), step


def one_vs_all_in_textbook(stream, spoiled=None):
    """(Ψ after every round, ε) of Theorem 2 in numpy."""
    Theta = np.zeros((stream.K, stream.X.shape[1]))
    X2, psi, mistakes, step, path = 0.0, 0.0, 0, stream.step, []
    for x, k, hit in zip(stream.X, stream.played, stream.hit):
        X2 = x @ x if spoiled == "no running maximum" else max(X2, x @ x)
        z = -(step / X2 if X2 else 0.0) * (Theta[k] @ x)
        f = 1 / (1 + np.exp(-np.clip(z, -700, 700)))
        kappa = step * (x @ x) / (2 * LN2**2 * X2) if X2 else 0.0
        kappa *= {"half of κ": 0.5, "no κ": 0.0}.get(spoiled, 1.0)
        psi += np.logaddexp(0, -z if hit else z) / LN2 - kappa * (f - hit) ** 2
        Theta[k] += (f - hit) / LN2 * x
        mistakes += not hit
        if spoiled == "a step that rises":
            step *= 1.1
        elif mistakes > psi:
            step = min(step, RADIUS**2 / (2 * (mistakes - psi)))
        path.append(psi)
    return np.array(path), step


def least(stream, step, softmax):
    """F(Û) = the revealed part of the loss + X²‖Û‖²/(2ε), Û its minimiser, which knows all feedback."""
    K, d = stream.K, stream.X.shape[1]
    X2 = (stream.X**2).sum(axis=1).max()
    if X2 == 0.0:
        X2 = 1.0
    e, s = np.eye(K), np.where(stream.hit, 1.0, -1.0)
    X, scale = stream.X / math.sqrt(X2), 1 / (2 * step)

    def F(flat):
        U = flat.reshape(K, d)
        Z = X @ U.T
        if softmax:
            Z = np.where(stream.available, Z, -np.inf)[stream.hit]
            y, rows = stream.y[stream.hit], X[stream.hit]
            P = np.exp(Z - np.logaddexp.reduce(Z, axis=1, keepdims=True)) if len(Z) else Z
            loss = (np.logaddexp.reduce(Z, axis=1) - Z[np.arange(len(y)), y]).sum() / LN2 if len(Z) else 0.0
            G = (P - e[y]).T @ rows / LN2
        else:
            z = s * Z[np.arange(len(s)), stream.played]
            loss = np.logaddexp(0, -z).sum() / LN2
            G = (e[stream.played] * (-s / (1 + np.exp(np.clip(z, -700, 700))))[:, None]).T @ X / LN2
        return loss + scale * (U**2).sum(), (G + 2 * scale * U).ravel()

    found = minimize(F, np.zeros(K * d), jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return found.fun


TEXTBOOKS = {"softmax": softmax_in_textbook, "one_vs_all": one_vs_all_in_textbook}
every = [Stream(seed) for seed in range(STREAMS)]


def excess(stream, which, spoiled=None):
    """Ψ - F(Û): the theorem says it is never positive."""
    path, step = TEXTBOOKS[which](stream, spoiled)
    return path[-1] - least(stream, step, which == "softmax")


@pytest.mark.sample(1)
@pytest.mark.parametrize("which", TEXTBOOKS)
def test_never_more_than_the_best_rule_pays(which):
    assert max(excess(stream, which) for stream in every) <= 1e-7


@pytest.mark.parametrize("which", TEXTBOOKS)
def test_in_any_order_of_arrival(which):
    rng = np.random.default_rng(3)
    turned = [stream.in_order(rng.permutation(len(stream.y))) for stream in every]
    assert max(excess(stream, which) for stream in turned) <= 1e-7


@pytest.mark.parametrize("spoiled", ["half of κ", "no κ", "a step that rises", "no running maximum"])
@pytest.mark.parametrize("which", TEXTBOOKS)
def test_what_the_theorem_forbids_is_caught(which, spoiled):
    assert any(excess(stream, which, spoiled) > 0.1 for stream in every)


def test_learning_from_a_miss_is_caught():
    assert any(excess(stream, "softmax", "learns from a miss") > 0.1 for stream in every)


def evidence_after(stream, upto, layout=np.asarray):
    """The evidence after the first rounds."""
    X = layout(stream.X[:upto])
    evidence = new_evidence(stream.K, stream.X.shape[1], isinstance(X, Sparse))
    evidence.softmax[0].step = evidence.one_vs_all[0].step = stream.step
    rd, r = new_round(stream.K, 0), np.zeros(stream.K)
    observe(evidence, X, stream.played[:upto], stream.available[:upto], stream.hit[:upto].astype(np.float64), rd, r)
    return evidence


def as_sparse(X):
    rows = csr_matrix(X)
    return Sparse(rows.indptr, rows.indices, rows.data)


@pytest.mark.sample(2)
@pytest.mark.parametrize("layout", [np.asarray, np.float32, as_sparse])
def test_the_compiled_kernels_are_the_textbook(layout):
    tolerance = 1e-3 if layout is np.float32 else 1e-8
    for stream in every[:60]:
        evidence = evidence_after(stream, len(stream.y), layout)
        for which, run in (("softmax", evidence.softmax), ("one_vs_all", evidence.one_vs_all)):
            path, step = TEXTBOOKS[which](stream)
            close(run[0].level, path[-1], rtol=tolerance, atol=tolerance)
            close(run[0].step, step, rtol=tolerance)
            assert run[0].mistakes == np.count_nonzero(~stream.hit)
            close(run[0].square, (stream.X**2).sum(axis=1).max(), rtol=tolerance)
        assert evidence.count[0].rounds == len(stream.y)


def test_what_is_proved_never_becomes_less():
    for stream in every:
        stream.step, was = FIRST_STEP, stream.step
        for path, _ in (softmax_in_textbook(stream), one_vs_all_in_textbook(stream)):
            assert (np.diff(path, prepend=0.0) >= 0.0).all()
        levels = [[run[0].level for run in evidence_after(stream, t)[::2][:2]] for t in range(len(stream.y) + 1)]
        assert (np.diff(levels, axis=0) >= 0.0).all()
        stream.step = was


def test_rows_of_any_length_leave_finite_numbers():
    for size in (0.0, 1e-60, 1e-20, 1e20, 1e60):
        stream = Stream(11)
        stream.X = np.vstack([stream.X * size, stream.X])[: len(stream.y)]
        evidence = evidence_after(stream, len(stream.y))
        for run in (evidence.softmax[0], evidence.one_vs_all[0]):
            assert all(np.isfinite(run[name]) for name in run.dtype.names)
        assert np.isfinite(evidence.softmax_sum).all() and np.isfinite(evidence.one_vs_all_sum).all()


def test_a_reward_between_0_and_1_is_only_counted():
    stream = Stream(5)
    evidence, rd = new_evidence(stream.K, stream.X.shape[1], False), new_round(stream.K, 0)
    rewards = np.full(len(stream.y), 0.3)
    observe(evidence, stream.X, stream.played, stream.available, rewards, rd, np.zeros(stream.K))
    assert evidence.count[0].partial == len(stream.y) and evidence.count[0].rounds == 0
    assert evidence.softmax == new_run() and not evidence.softmax_sum.any()


def test_without_evidence_nothing_is_stored():
    stream = Stream(5)
    observe(Nothing(), stream.X, stream.played, stream.available, stream.hit * 1.0, new_round(stream.K, 0), np.zeros(0))


def test_evidence_has_named_numbers_and_matrices():
    evidence = new_evidence(3, 4, True)
    assert isinstance(evidence, Evidence) and evidence.softmax_sum.shape == evidence.one_vs_all_sum.shape == (4, 3)


def test_counts_against_given_rules():
    rng = np.random.default_rng(0)
    counts = np.zeros((2, 3), dtype=np.int64)
    truth, played, rules = rng.integers(3, size=500), rng.integers(3, size=500), rng.integers(3, size=(2, 500))
    for t in range(500):
        for j in range(2):
            observed.tally(counts, j, rules[j, t], played[t], played[t] == truth[t])
    for j, (alone_wrong, alone_right, both_wrong) in enumerate(counts):
        regret = np.sum(played != truth) - np.sum(rules[j] != truth)
        assert regret <= alone_wrong - alone_right
        assert np.sum(rules[j] != truth) >= both_wrong + alone_right
        assert alone_wrong + both_wrong == np.sum(played != truth)
