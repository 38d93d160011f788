"""Advised Gaptron's proofs, round by round: what labels may ask for, gaps, gradients, and means over the draw.

The gap is always worked out from the definition, 1 - q(y) - ℓ^y + E[(η/2)‖ĝ‖² + (ερ²/2)ĝ_v²], averaging over the label
drawn, from the r of the proof; never from the b and c of the code.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaptron.algorithms.advised import full
from gaptron.kernels import gaps
from tests.algorithms.advised_player import Player
from tests.algorithms.advised_textbook import LN2, log_loss, softmax

FEEDBACKS = ["full", "bandit"]
PULL, REACH = {"full": 0.04, "bandit": 0.1}, {"full": 5.0, "bandit": 10.0}
some = settings(max_examples=100, deadline=None, derandomize=True)
close = np.testing.assert_allclose


# --- what labels ask for, full information --------------------------------------------------------------------


@st.composite
def advised_scores(draw):
    """Any scores, any advice cut to its range, any ε ≤ e₀ and ‖x‖ ≤ X."""
    K = draw(st.sampled_from([2, 3, 5, 20, 100]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    z = rng.normal(size=K) * 10.0 ** draw(st.floats(-2, 1.5))
    if draw(st.booleans()):  # few labels count
        z[draw(st.integers(1, K - 1)) :] -= 30
    a = rng.choice([0.0, 5.0], size=K) if draw(st.booleans()) else np.clip(rng.normal(size=K) * 3, -2.5, 2.5)
    return z, a - a.mean(), draw(st.sampled_from([1.0, 1.0, 0.5, 0.02])), draw(st.sampled_from([1.0, 1.0, 0.3, 0.0]))


def asked_for(z, a, step, share):
    """b of every label, by the library's own verbs."""
    K = len(z)
    b, c, p = np.zeros(K), np.zeros(K), np.zeros(K)
    gaps.logistic(z, p, int(z.argmax()), step * share / 2, False, 1.0, 0, b, c)
    full.add_v_moment(step, a, p, b)
    return b


@settings(max_examples=400, deadline=None, derandomize=True)
@given(advised_scores())
def test_what_labels_ask_for_fits_into_a_distribution(case):
    """Σρ ≤ 1 whatever p̃, a and ε ≤ e₀ = 2 ln²2/(1 + ρ²R²) are."""
    z, a, part, share = case
    b = asked_for(z, a, part * LN2**2, share)
    p, e = softmax(z), np.eye(len(z))
    for y in (0, len(z) - 1):  # and b is what the proof says
        second = share * np.sum((p - e[y]) ** 2) + 0.04 * (p @ a - a[y]) ** 2
        close(b[y], 1 - log_loss(z, y) + part / 2 * second, rtol=1e-9, atol=1e-9)
    assert np.maximum(b, 0).sum() <= 1 + 1e-12


def test_the_largest_step_is_no_smaller_than_it_need_be():
    """Two labels at p̃ = (1 - s, s): at e₀ the demands reach 1 as s → 0, and at 3·e₀ they pass it."""

    def most(step):
        return max(
            np.maximum(asked_for(np.array([0.0, math.log(s / (1 - s))]), np.array([d, -d]), step, 1.0), 0).sum()
            for s in np.geomspace(1e-6, 0.5, 200)
            for d in (-2.5, 0.0, 2.5)
        )

    assert most(LN2**2) <= 1 + 1e-12 and most(3 * LN2**2) > 1.001


# --- any state ------------------------------------------------------------------------------------------------


@st.composite
def states(draw, feedback, sizes=(2, 3, 5, 12, 30), largest=5.0, budget=0.0):
    """A state no run need ever reach: a player, a row, perhaps advice, perhaps fewer labels."""
    K = draw(st.sampled_from(sizes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    who = Player(feedback, K, 1, **({"reach": 2.0, "budget": budget} if feedback == "bandit" else {}))
    state, t = who.state, who.total
    kind = draw(st.sampled_from(["free", "tied", "one"]))
    certified = {
        "free": rng.normal(size=K),
        "tied": rng.integers(-1, 2, size=K).astype(float),
        "one": -np.ones(K) + np.eye(K)[rng.integers(K)],
    }[kind]
    length = 10.0 ** draw(st.sampled_from([0.0, 0.0, -1.0, -6.0, -50.0]))
    state.W[:, 0] = rng.normal(size=len(state.W)) * 10.0 ** draw(st.floats(-2, 3))
    state.W[who.certified, 0] = certified * 10.0 ** draw(st.floats(-3, largest)) * length
    t.square, t.rounds = length**2, draw(st.sampled_from([0, 1, 1000, 10**7]))
    t.sqnorms = t.rounds * t.square
    t.v_gradient = draw(st.sampled_from([0.0, 1.0, -20.0, 500.0, -1e5]))
    t.last_label = draw(st.integers(-1, K - 1))
    state.stay[0].observed, state.stay[0].expected, state.stay[0].rounds = draw(
        st.sampled_from([(0, 0, 0), (900, 90, 999)])
    )
    if feedback == "bandit":
        t.certified = 1.0
        t.level = draw(st.sampled_from([0.0, 0.1, 5.0, 1e4]))
        t.beta = draw(st.sampled_from([0.0, -3.0, 5.0]))
        state.omega[:] = rng.gamma(0.2, size=len(state.omega)) + 1e-9
        state.hits[:] = rng.integers(0, 2, K)
    else:
        t.largest = draw(st.sampled_from([0.0, 1.0, 300.0, 1e6]))
        state.u[:] = rng.normal(size=len(state.u)) * 3
        t.trust = draw(st.sampled_from([0.0, -10.0]))
    advice = available = None
    if draw(st.booleans()):
        advice = np.eye(K)[rng.integers(K)] if draw(st.booleans()) else rng.dirichlet(np.full(K, 0.3))
    if draw(st.booleans()):
        available = rng.random(K) < 0.6
        available[rng.integers(K)] = True
    return who, np.array([length * draw(st.sampled_from([1.0, 1.0, 0.3, 1e-4, 0.0]))]), advice, available


def scores_of(who, x, feedback):
    """z = w + va over the labels available, from the state; and a."""
    n, labels = who.now.n, who.work.labels[: who.now.n]
    a, step, t = who.work.a[:n].copy(), who.rd.note[1], who.total
    ratio = step / t.square if t.square > 1e-280 else 0.0
    return ratio * who.state.W[who.certified][labels, 0] * x[0] + (1 - step * PULL[feedback] * t.v_gradient) * a, a


def moments(bandit, p, q, y, a):
    """Mean of r, of ‖r‖² and of ⟨r, a⟩² when y is the truth, draw by draw."""
    K, e = len(p), np.eye(len(p))
    if not bandit:
        r = (p - e[y]) / LN2
        return r, r @ r, (r @ a) ** 2
    mean, square, inner = np.zeros(K), 0.0, 0.0
    for label in np.flatnonzero(q):
        r = (p - 1 / K + ((label == y) / q[label]) * (1 / K - e[label])) / LN2
        mean, square, inner = mean + q[label] * r, square + q[label] * (r @ r), inner + q[label] * (r @ a) ** 2
    return mean, square, inner


@pytest.mark.sample(1)
@pytest.mark.parametrize("feedback", FEEDBACKS)
@some
@given(st.data())
def test_every_gap_is_at_most_the_level_in_any_state(feedback, data):
    who, x, advice, available = data.draw(states(feedback))
    before = [part.tobytes() for part in who.state]
    label = who.score(x, advice, available, data.draw(st.floats(0, 1, exclude_max=True)))
    assert [part.tobytes() for part in who.state] == before  # looking changes nothing
    A = np.flatnonzero(who.rd.available)
    q, level, step = who.rd.p, who.rd.note[0], who.rd.note[1]
    assert (q >= 0).all() and q.sum() == pytest.approx(1.0, abs=1e-12) and q[label] > 0
    assert not np.delete(q, A).any() and np.isneginf(np.delete(who.rd.z, A)).all()
    z, a = scores_of(who, x, feedback)
    assert a.sum() == pytest.approx(0.0, abs=1e-11 * len(A)) and np.ptp(a) <= REACH[feedback] + 1e-12
    share = x[0] ** 2 / who.total.square if who.total.square > 1e-280 else 0.0
    p = softmax(z)
    gaps = []
    for y in range(len(A)):
        _, square, inner = moments(feedback == "bandit", p, q[A], y, a)
        gaps.append(1 - q[A[y]] - log_loss(z, y) + step / 2 * (share * square + PULL[feedback] * inner))
    rare = np.max(who.work.c[: len(A)] / np.where(q[A] > 0, q[A], 1.0))
    size = 1 + np.abs(z).max() + rare
    assert level >= 0.0
    assert max(gaps) <= level + 1e-9 * size
    if feedback == "full":
        assert level <= 1e-12 * size
    elif level > 1e-6:  # and no larger than it need be
        assert max(gaps) >= level - 1e-6 * size


@pytest.mark.parametrize("sizes", [(2, 3, 5)])
@some
@given(st.data())
def test_what_is_learned_is_the_gradient_of_both_blocks(sizes, data):
    """Full information: the update is minus the derivative of -log₂ softmax_A(Wx + va)_y, by differences."""
    who, x, advice, available = data.draw(states("full", sizes, largest=0.5))
    who.total.v_gradient = np.clip(who.total.v_gradient, -20, 20)
    who.score(x, advice, available)
    z, a = scores_of(who, x, "full")
    A = np.flatnonzero(who.rd.available)
    y = data.draw(st.integers(0, len(A) - 1))
    after = who.copy()
    after.score(x, advice, available)
    after.learn(x, int(A[y]), truth=int(A[y]))
    K, h = who.problem.n_classes, 1e-5
    slope = np.zeros(K)
    for i, k in enumerate(A):  # per unit of z_k; times x for W
        e = h * np.eye(len(A))[i]
        slope[k] = (log_loss(z + e, y) - log_loss(z - e, y)) / (2 * h)
    in_v = (log_loss(z + h * a, y) - log_loss(z - h * a, y)) / (2 * h)
    moved = after.state.W[:K, 0] - who.state.W[:K, 0]
    rounding = 1e-12 * np.abs(who.state.W[:K]).max()
    close(moved, -slope * x[0], rtol=0, atol=1e-8 * abs(x[0]) + rounding)
    close(after.total.v_gradient - who.total.v_gradient, in_v, rtol=1e-5, atol=1e-7)


# --- in the mean over the draw --------------------------------------------------------------------------------


def certified_updates(who, x, advice, available, rewards):
    """For every label that may be drawn: its probability, and the certified learner's update, by the real `learn`."""
    who.score(x, advice, available)
    assert not who.work.decision[0].exploiting
    q, rows = who.rd.p.copy(), who.certified
    for label in np.flatnonzero(q):
        mine = who.copy()
        mine.state.W[rows] = 0.0  # so that no digit is lost; the scores are those of before
        mine.score(x, advice, available)
        for name in ("w", "a", "p"):
            getattr(mine.work, name)[:] = getattr(who.work, name)
        mine.rd.p[:] = q
        mine.learn(x, int(label), reward=rewards[label])
        g = -mine.state.W[rows, 0] / (x[0] if x[0] else 1.0)
        yield label, q[label], g, mine.total.v_gradient - who.total.v_gradient


@some
@given(st.data())
def test_what_a_bandit_learns_is_unbiased_and_as_large_as_the_gap_thinks(data):
    """E ĝ = Σ(r_k + (1 - s)/n)·c^k for any rewards r, over the labels available; s = 1 and one right: the gradient."""
    who, x, advice, available = data.draw(states("bandit", (2, 3, 5), largest=0.0))
    who.total.v_gradient = np.clip(who.total.v_gradient, -1, 1)
    who.score(x, advice, available)
    z, a = scores_of(who, x, "bandit")
    A = np.flatnonzero(who.rd.available)
    n, K, q, p = len(A), who.problem.n_classes, who.rd.p[A].copy(), softmax(z)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    y = int(rng.integers(n))
    one = np.zeros(K)
    one[A[y]] = 1.0
    for rewards in (one, rng.random(K)):
        mean, inner, square = np.zeros(K), 0.0, 0.0
        for _, propensity, g, moved in certified_updates(who, x, advice, available, rewards):
            mean, inner, square = (
                mean + propensity * g,
                inner + propensity * moved,
                square + propensity * (g - g.mean()) @ g,
            )
        c = (p - np.eye(n)) / LN2  # row k: c^k
        r = rewards[A]
        wanted = np.zeros(K)
        wanted[A] = (r + (1 - r.sum()) / n) @ c
        assert x[0] or not a[q == 0].any()  # a label without an update need not be drawn
        assert not x[0] or (q > 0).all()
        size = 1 + np.max(1 / q[q > 0])
        if x[0]:
            if n == K:  # what all labels share is left out
                mean, wanted = mean - mean.mean(), wanted - wanted.mean()
            close(mean, wanted, rtol=0, atol=1e-12 * size)
        close(inner, wanted[A] @ a, rtol=0, atol=1e-11 * size)
        if rewards is one and x[0]:
            true_mean, expected, _ = moments(True, p, q, y, a)
            close(mean[A] - mean[A].mean(), true_mean - true_mean.mean(), rtol=0, atol=1e-12 * size)
            if n == K:
                close(square, expected, rtol=1e-9)


def test_with_fewer_labels_the_common_part_must_not_be_left_out():
    """It moves the labels available and not the others. With all of them it may be left out, and is.

    If the right label is not available, E ĝ is the mean of the gradients of those that are: (p̃ - 1/n)/ln 2.
    """
    rng = np.random.default_rng(0)
    who = Player("bandit", 4, 1, reach=2.0, budget=0.0)
    who.state.W[:16, 0] = rng.normal(size=16)
    available, x = np.array([True, False, True, True]), np.ones(1)
    mean = sum(propensity * g for _, propensity, g, _ in certified_updates(who, x, None, available, np.zeros(4)))
    p = np.nan_to_num(who.over(who.work.p))
    close(mean, np.where(available, p - 1 / 3, 0.0) / LN2, atol=1e-14)
    for _, _, g, _ in certified_updates(who, x, None, available, np.eye(4)[2]):
        assert abs(g.sum()) < 1e-12 and g[1] == 0.0  # and in every draw r sums to 0, as its second moment needs


@pytest.mark.slow
@some
@given(st.data())
def test_a_reward_as_a_weight_varies_no_more_than_a_coin(data):
    """E‖ĝ‖² with r/q is at most that of an outcome drawn right with probability r."""
    who, x, advice, available = data.draw(states("bandit", (2, 3, 5), largest=0.0))
    who.total.v_gradient = 0.0
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    K = who.problem.n_classes
    rewards = rng.random(K)
    weight = sum(
        c * (g @ g - g.mean() * g.sum()) for _, c, g, _ in certified_updates(who, x, advice, available, rewards)
    )
    yes, no = (list(certified_updates(who, x, advice, available, np.full(K, r))) for r in (1.0, 0.0))
    coin = 0.0
    for (label, c, g, _), (_, _, h, _) in zip(yes, no):
        r = rewards[label]
        coin += c * (r * (g @ g - g.mean() * g.sum()) + (1 - r) * (h @ h - h.mean() * h.sum()))
    assert weight <= coin * (1 + 1e-9) + 1e-9


def test_correct_and_rewards_of_0_and_1_are_the_same():
    rng = np.random.default_rng(0)
    one, two = (Player("bandit", 3, 4, reach=1.0, budget=0.02) for _ in range(2))
    for _ in range(60):
        x, y, u = rng.normal(size=4), int(rng.integers(3)), rng.random()
        for who, how in ((one, "truth"), (two, "reward")):
            label, _ = who.decide(x, u=u)
            who.learn(x, label, **{how: y if how == "truth" else float(label == y)})
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one.state, two.state))
