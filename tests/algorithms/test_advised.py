"""Advised Gaptron against its definition in textbook numpy, its first rounds by hand, and how it behaves."""

import math

import numpy as np
import pytest

from tests.algorithms.advised_player import Player, advice_of
from tests.algorithms.advised_textbook import BanditBook, FullBook
from tests.conftest import noisy_stream, random_stream

LN2 = math.log(2)
FEEDBACKS = ["full", "bandit"]
close = np.testing.assert_allclose


# --- side by side ---------------------------------------------------------------------------------------------


def rows_of(K, d, T, rng):
    """Rows of all lengths, a third of the entries zero, three rows of zeros."""
    if d == 6 and K == 3:
        X = noisy_stream(T, K=3).X.copy()
    else:
        X = random_stream(T, d, K, seed=K).X * (rng.random((T, d)) < 30 / d)
    X *= 10.0 ** rng.uniform(-1, 1, size=(T, 1))
    X[[0, 9, 40]] = 0.0
    return X


def some_labels(K, truth, rng):
    """Half of the labels, the truth among them; or all."""
    if rng.random() < 0.5:
        return None
    among = rng.random(K) < 0.5
    among[truth] = True
    return among


def same_full(who, book, to):
    t, W = who.total, by_learner(who, 3)
    close(-W[0], book.theta, **to)
    close(W[1], book.A.W, **to)
    close(W[2], book.C.W, **to)
    close(who.state.voice, book.u, **to)
    close(who.state.squares, book.N, **to)
    close(who.state.stay[0].tolist(), (book.stay.S, book.stay.E, book.stay.n), **to)
    close(
        (t.square, t.step, t.cost, t.largest, t.moved, t.gap, t.rounds, t.norms, t.called, t.lead, t.caller, t.open),
        (book.X2, book.step, book.H, book.most, book.moved, book.gap, book.t, book.squares)
        + (book.called, book.D, book.m, book.O),
        **to,
    )
    assert t.last == book.last


def same_bandit(who, book, to):
    t, W = who.total, by_learner(who, 5)
    # The library leaves a common part of all labels out of the certified sums.
    close(-(W[0] - W[0].mean(axis=0)), book.theta - book.theta.mean(axis=0), **to)
    close(-W[1], book.side, **to)
    close(W[2], book.U, **to)
    close(W[3], book.A.W, **to)
    close(W[4], book.C.W, **to)
    close(who.state.omega, book.omega, **to)
    close(who.state.hits, book.hits, **to)
    close(who.state.asked, book.asked, **to)
    close(who.state.ahead, book.ahead, **to)
    close(who.state.stay[0].tolist(), (book.stay.S, book.stay.E, book.stay.n), **to)
    close(who.state.other[0].tolist(), (book.other.S, book.other.E, book.other.n), **to)
    close((t.square, t.step, t.last_step, t.level), (book.X2, book.step, book.last_step, book.Lambda), **to)
    close((t.moved, t.certified, t.missed, t.waiting), (book.moved, book.certified, book.M, book.waiting), **to)
    close((t.psi, t.side_step, t.rounds, t.norms), (book.psi, book.side_step, book.t, book.squares), **to)
    close((t.called, t.lead, t.caller, t.open), (book.called, book.D, book.m, book.O), **to)
    close((t.finds, t.tries, t.beta, t.pushes), (book.xs, book.xn, book.beta, book.V), **to)
    assert t.last == book.last


def by_learner(who, n):
    W = who.state.W.T if who.sparse else who.state.W
    return W.reshape(n, who.problem.n_classes, -1)


def precisions(who, book):
    """Of newton in blocks, or on the diagonal; and of the tracker."""
    d = who.problem.n_features
    if book.A.blocks:
        for i, mine, theirs in zip(book.A.parts, who.state.P, book.A.precision):
            close(mine[: len(i), : len(i)] @ theirs, np.eye(len(i)), atol=1e-9)
            np.testing.assert_array_equal(mine, mine.T)
        assert len(who.state.A) == 0 and len(who.state.P) == math.ceil(d / 16)
    else:
        assert len(who.state.P) == 0
        close(who.state.A, book.A.precision[0], rtol=1e-9)
    close(who.state.C, book.C.precision[0], rtol=1e-9)
    close(who.state.G, [book.A.G, book.C.G], rtol=1e-9)


CASES = [
    # K, d, adviser, sets of labels, late by up to, guard
    (2, 6, "none", False, 0, math.inf),
    (3, 6, "sometimes", True, 0, math.inf),
    (10, 20, "random", True, 0, 0.5),
    (2, 6, "random", False, 7, 0.5),
    (3, 6, "liar", True, 5, math.inf),
    (3, 1030, "sometimes", False, 0, math.inf),
]


def arrivals(T, late, rng):
    """For each round the decisions answered after it; every answer comes in the end, in any order."""
    due = [[] for _ in range(T)]
    for t in range(T):
        due[min(T - 1, t + (int(rng.integers(0, late + 1)) if late else 0))].append(t)
    for answers in due:
        rng.shuffle(answers)
    return due


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("K, d, adviser, sets, late, guard", CASES)
def test_full_information_as_the_textbook_plays_it(K, d, adviser, sets, late, guard, sparse):
    rng = np.random.default_rng(K)
    T = 120 if d < 100 else 45
    X, y = rows_of(K, d, T, rng), rng.integers(0, K, T)
    y[40:80] = y[40]  # a label that stays
    who, book = Player("full", K, d, sparse=sparse, guard=guard), FullBook(K, d, guard=guard)
    waiting, stuck, forced = {}, 0, 0
    for t, answers in enumerate(arrivals(T, late, rng)):
        said, among = advice_of(adviser, K, int(y[t]), rng), some_labels(K, y[t], rng) if sets else None
        label, kept = who.decide(X[t], said, among, u=rng.random())
        s = book.look(X[t], said, among)
        to = dict(rtol=1e-8, atol=1e-8, err_msg=f"round {t}")
        close(who.rd.p, s.q, **to)
        close(who.rd.z[s.A], s.t, **to)
        close(who.work.a[: len(s.A)], s.a, **to)
        close(who.rd.note[[1, 2, 4, 5, 7]], (s.eps, 1 - s.q[s.A[s.heir]], book.H, s.kappa, s.v), **to)
        assert not np.isfinite(np.delete(who.rd.z, s.A)).any()
        assert (who.rd.mark[0].last, who.rd.mark[0].apart) == (book.last, s.apart)
        stuck, forced = stuck + (s.kappa > 0), forced + s.forced
        waiting[t] = kept, s, book.last
        book.commit(s)
        for i in answers:
            kept, s, last = waiting.pop(i)
            truth = int(y[i])
            if i == t and len(answers) == 1:
                who.learn(X[i], label, truth=truth)
                book.learn(s, label, truth)
            else:
                who.learn_late(kept, truth=truth)
                today = book.look(*kept[:3])
                book.learn(today, kept[3], truth, chance=s.q[truth], last=last, apart=s.apart)
            same_full(who, book, to)
    precisions(who, book)
    assert stuck > 0 and (forced > 0) == (guard < math.inf)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("given", [{}, {"reach": 1.0, "budget": 0.02}, {"reach": 2.0, "budget": 0.0}], ids=str)
@pytest.mark.parametrize("K, d, adviser, sets, late, guard", CASES)
def test_bandit_rounds_as_the_textbook_plays_them(K, d, adviser, sets, late, guard, given, sparse):
    rng = np.random.default_rng(K)
    T = 120 if d < 100 else 45
    X, y = rows_of(K, d, T, rng), rng.integers(0, K, T)
    y[40:80] = y[40]
    who = Player("bandit", K, d, sparse=sparse, guard=guard, **given)
    book = BanditBook(K, d, given.get("reach", 20.0), given.get("budget", 2.0), guard=guard)
    waiting, free, pushed, forced = {}, 0, 0, 0
    for t, answers in enumerate(arrivals(T, late, rng)):
        said, among = advice_of(adviser, K, int(y[t]), rng), some_labels(K, y[t], rng) if sets else None
        label, kept = who.decide(X[t], said, among, u=rng.random())
        s = book.look(X[t], said, among)
        to = dict(rtol=1e-7, atol=1e-8, err_msg=f"round {t}")
        close(who.rd.p, s.q, **to)
        close(who.rd.z[s.A], s.shown, **to)
        close(who.work.a[: len(s.A)], s.a, **to)
        assert (who.rd.mark[0].last, who.rd.mark[0].free, who.rd.mark[0].apart) == (book.last, s.free, s.apart)
        shown = s.level, s.eps, 1 - s.q[s.A[s.heir]], s.free, book.M + book.waiting - book.psi, s.kappa, s.found, s.v
        close(who.rd.note[:8], shown, **to)
        close(who.rd.note[8:], [*s.heard[:4], s.heard[4:].sum()], **to)
        free, pushed, forced = free + s.free, pushed + (s.kappa > 0), forced + s.forced
        waiting[t] = kept, s, book.last
        book.commit(s, label)
        for i in answers:
            kept, s, last = waiting.pop(i)
            reward = float(kept[3] == y[i])
            if sets and i % 5 == 0:
                reward = round(rng.random(), 2)
            if i == t and len(answers) == 1:
                who.learn(X[i], label, reward=reward)
                book.learn(s, label, reward)
            else:
                who.learn_late(kept, reward=reward)
                q = s.q[kept[3]]
                today = book.look(*kept[:3])
                book.learn(today, kept[3], reward, chance=q, free=s.free, last=last, apart=s.apart)
            same_bandit(who, book, to)
    precisions(who, book)
    if not given:
        assert free == T
    elif given["budget"] == 0.0:
        assert free == forced
    else:
        assert 0 < free and (free < T or guard < math.inf)
    assert (forced > 0) == (guard < math.inf)
