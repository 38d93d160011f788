"""Actions with features: the statements of the docs page, checked one by one against textbook numpy."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from gaptron.data.actions import checked_offer
from gaptron.kernels import gaps
from gaptron.kernels.play_actions import new_buffers
from gaptron.kernels.rows import moments, sqnorm
from gaptron.types import ActionRows
from tests import plain
from tests.action_games import Game, expected
from tests.plain_actions import (
    LAYOUTS,
    LN2,
    diameter,
    estimate,
    gap,
    give_feedback,
    gradient,
    learner,
    loss,
    rounds,
    second_moment,
    world,
)

close = np.testing.assert_allclose


def rows_of(Phi, layout="dense"):
    """The actions as algorithms see them."""
    offer = checked_offer(LAYOUTS[layout](Phi), None)
    return ActionRows(offer.rows, offer.context, *new_buffers(Phi.shape[1]))


def demands(z, Phi, kappa, bandit=False, risk=1.0, layout="dense"):
    """b and c of every action at scores z, for κ'Δ² = kappa."""
    x, K = rows_of(Phi, layout), len(z)
    p, b, c = np.zeros(K), np.zeros(K), np.zeros(K)
    square = sqnorm(x)
    eta = kappa * 2.0 * LN2**2 / square if square > 0.0 else 0.0
    gaps.logistic_actions(x, square, z, p, int(z.argmax()), eta, bandit, risk, b, c)
    return b, c


# --- lengths ------------------------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("K", [1, 2, 5, 32, 33, 60])
def test_the_lengths_are_those_of_dense_arithmetic(layout, K):
    rng = np.random.default_rng(K)
    Phi = rng.normal(size=(K, 9)) * (rng.random((K, 9)) > 0.4)
    p = rng.dirichlet(np.ones(K))
    x, V, R = rows_of(Phi, layout), np.zeros(K), np.zeros(K)
    square = sqnorm(x)
    moments(x, p, square, V, R)
    exact = diameter(Phi) ** 2
    if K <= 32:
        close(square, exact, rtol=1e-13, atol=1e-300)
    else:
        assert exact <= square <= 4.0 * exact
    close(V, ((p @ Phi - Phi) ** 2).sum(axis=1), rtol=1e-12, atol=1e-13)
    close(R, ((Phi.mean(axis=0) - Phi) ** 2).sum(axis=1), rtol=1e-12, atol=1e-13)
    assert not x.space.any()  # the buffer is left clean


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equal_actions_have_no_diameter(layout):
    Phi = np.tile([[1e8, 0.0, 1 / 3, -7.0]], (6, 1))
    assert sqnorm(rows_of(Phi, layout)) == 0.0


# --- Theorem 1: full information ----------------------------------------------------------------------------


def total(kappa, z, Phi, risk=1.0):
    b, _ = demands(z, Phi, kappa, risk=risk)
    return float(np.maximum(b, 0.0).sum())


@pytest.mark.sample(1)
@pytest.mark.parametrize("risk", [1.0, 1.5, 1.9])
def test_the_demands_of_full_information_sum_to_at_most_one(risk):
    """At κ'Δ² = 2(2 - r), over random games and from the worst of them by search."""
    rng, worst, kappa = np.random.default_rng(0), [], 2.0 * (2.0 - risk)
    for _ in range(1_500):
        K, d = int(rng.integers(2, 7)), int(rng.integers(1, 5))
        Phi, z = rng.normal(size=(K, d)), rng.normal(size=K) * 10 ** rng.uniform(-2, 0.7)
        worst.append((total(kappa, z, Phi, risk), z, Phi))
    worst.sort(key=lambda game: -game[0])
    largest = worst[0][0]
    for _, z, Phi in worst[:6]:
        K, d = Phi.shape

        def less(flat, K=K, d=d):
            return -total(kappa, flat[:K].copy(), flat[K:].reshape(K, d).copy(), risk)

        found = minimize(less, np.concatenate([z, Phi.ravel()]), method="Nelder-Mead", options={"maxiter": 400})
        largest = max(largest, -float(found.fun))
    assert largest <= 1.0 + 1e-12
    assert largest > 0.98  # the search comes near the limit


def test_the_step_cannot_be_larger():
    z, Phi = np.zeros(2), np.array([[0.0], [1.0]])
    assert total(2.0, z, Phi) == pytest.approx(1.0, abs=1e-12)
    assert total(2.02, z, Phi) > 1.004


# --- the estimate -------------------------------------------------------------------------------------------


def test_the_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(1)
    for Phi in rounds(40, d=3, seed=1):
        w, y = rng.normal(size=3), int(rng.integers(len(Phi)))
        h = 1e-5
        steps = h * np.eye(3)
        numeric = [(loss(w + e, Phi, y) - loss(w - e, Phi, y)) / (2 * h) for e in steps]
        close(gradient(w, Phi, y), numeric, atol=1e-8)


def test_the_estimate_is_unbiased_for_any_rewards_and_has_the_second_moment_of_the_lemma():
    rng = np.random.default_rng(2)
    for Phi in rounds(200, d=3, seed=2):
        K, w = len(Phi), rng.normal(size=3)
        p, q, r = plain.softmax(Phi @ w), rng.dirichlet(np.ones(K)), rng.random(K)
        mean = sum(q[k] * estimate(p, q, Phi, k, r[k]) for k in range(K))
        wanted = sum((r[k] + (1 - r.sum()) / K) * gradient(w, Phi, k) for k in range(K))
        close(mean, wanted, atol=1e-10)
        y, c = int(rng.integers(K)), Phi.mean(axis=0)
        V, R = np.sum((p @ Phi - Phi[y]) ** 2), np.sum((c - Phi[y]) ** 2)
        close(second_moment(p, q, Phi, y) * LN2**2, V - R + R / q[y], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_learned_is_the_estimate(layout):
    offers, right = world(60)
    who, moves = learner("bandit"), set()
    for Phi, y in zip(offers, right):
        decision = who.decide(actions=LAYOUTS[layout](Phi))
        engine = who._engine
        before, p = engine.state.W.ravel().copy(), engine.scratch.p.copy()
        give_feedback(who, decision, y)
        hit = decision.action == y
        exact = estimate(p, decision.distribution, Phi, decision.action, float(hit))
        close(engine.state.W.ravel() - before, -exact, atol=1e-11)
        moves.add((bool(hit), bool(np.abs(exact).max() > 1e-3)))
    assert moves >= {(True, True), (False, True)}  # a wrong action teaches too


@pytest.mark.parametrize("layout", LAYOUTS)
def test_full_information_learns_the_gradient(layout):
    offers, right = world(40)
    who = learner()
    for Phi, y in zip(offers, right):
        decision = who.decide(actions=LAYOUTS[layout](Phi))
        engine = who._engine
        before, p = engine.state.W.ravel().copy(), engine.scratch.p.copy()
        give_feedback(who, decision, y)
        close(engine.state.W.ravel() - before, (Phi[y] - p @ Phi) / LN2, atol=1e-12)


# --- gaps ---------------------------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize(("scale", "most"), [(1.0, 5), (0.05, 12), (1.0, 40)])
def test_no_gap_exceeds_the_level_of_its_round(feedback, layout, scale, most):
    """With V, R and the second moment worked out densely, by enumeration; the right action is the least likely one."""
    who, charged, steps = learner(feedback, scale=scale if feedback == "bandit" else 1.0), 0, []
    for t, Phi in enumerate(rounds(70, most=most, seed=3)):
        if t % 10 == 9:
            Phi = np.repeat(Phi, 2, axis=0)
        decision = who.decide(actions=LAYOUTS[layout](Phi))
        engine, q = who._engine, decision.distribution
        now = engine.scratch.now[0]
        eta = now.step / now.square if now.square > 0.0 else 0.0
        w = eta * engine.state.W.ravel()
        worst = max(gap(w, Phi, q, y, eta, feedback == "bandit") for y in range(len(Phi)))
        assert worst <= now.level + 1e-12
        assert q.sum() == pytest.approx(1.0)
        charged += now.level > 0.0
        steps.append(now.step)
        give_feedback(who, decision, int(q.argmin()))
    assert (np.diff(steps) <= 0.0).all()
    assert charged == 0 if feedback == "full" else True


def test_labels_as_actions_are_asked_what_labels_are():
    """φ_k = e_k ⊗ x: the demands at Δ² = 2‖x‖² are those of K labels."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        K, x = int(rng.integers(2, 7)), rng.normal(size=3)
        z, kappa = 2.0 * rng.normal(size=K), float(rng.uniform(0, 2))
        Phi = np.kron(np.eye(K), x)
        for bandit in (False, True):
            p, b, c = np.zeros(K), np.zeros(K), np.zeros(K)
            h = kappa * LN2**2 / 2.0  # κ = κ'‖x‖² = kappa/2
            gaps.logistic(z, p, int(z.argmax()), h, bandit, 1.0, 0, b, c)
            close(demands(z, Phi, kappa, bandit), (b, c), atol=1e-12)


# --- games --------------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("without", [None, "one"])
def test_every_path_of_small_games_together_keeps_the_certificate(scale, without):
    worst = -math.inf
    for seed in range(12):
        game = Game(seed, scale)
        rules = [np.zeros(2), *(np.random.default_rng(seed).normal(size=(3, 2)) * 2.0 / scale)]
        for u in rules:
            value, paths = expected(game, u, lambda: learner("bandit", scale=2.0), without=without)
            assert value <= 1e-9, (seed, u)
            worst = max(worst, value)
            assert paths >= 1
    assert worst > -40.0


def test_late_feedback_of_full_information_keeps_its_certificate():
    """Σ(1 - q(y)) ≤ L(u) + Δ²‖u‖²/(2ε) + G, for any order of the feedback, for all u."""
    rng = np.random.default_rng(7)
    for seed in range(25):
        offers, right = world(12, d=2, most=4, seed=seed)
        who, held, left = learner(), [], 0.0
        for Phi, y in zip(offers, right):
            decision = who.decide(actions=Phi)
            left += 1.0 - decision.distribution[y]
            held.append((decision, y))
            while held and rng.random() < 0.4:
                one, truth = held.pop(int(rng.integers(len(held))))
                who.learn(one, action=int(truth))
        for one, truth in held:
            who.learn(one, action=int(truth))
        certificate = who.certificate
        for u in 3.0 * rng.normal(size=(20, 2)):
            total_loss = sum(loss(u, Phi, y) for Phi, y in zip(offers, right))
            assert left <= total_loss + certificate.cost(float(np.linalg.norm(u))) + 1e-9


# --- laws ---------------------------------------------------------------------------------------------------


def play_changed(change, feedback="full", layout="dense", **more):
    """The distributions of a run whose rounds were changed, and what `change` says of their order."""
    offers, right = world(40, d=3, seed=4)
    who, out = learner(feedback, **more), []
    for t, (Phi, y) in enumerate(zip(offers, right)):
        changed, order = change(Phi, t)
        decision = who.decide(actions=LAYOUTS[layout](changed))
        out.append(decision.distribution[order])
        who.learn(decision, action=int(order[y]))
    return out


def plainly(Phi, t):
    return Phi, np.arange(len(Phi))


def test_the_order_of_actions_does_not_matter():
    def shuffled(Phi, t):
        order = np.random.default_rng(t).permutation(len(Phi))  # action k is now row place[k]
        place = np.argsort(order)
        return Phi[order], place

    ties = 0
    for one, other in zip(play_changed(plainly), play_changed(shuffled), strict=True):
        close(np.sort(one), np.sort(other), atol=1e-10)
        ties += not np.allclose(one, other, atol=1e-10)  # of equal scores the first action is the top one
    assert ties <= 5


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_all_actions_share_changes_nothing(layout):
    def moved(Phi, t):
        return Phi + np.random.default_rng(t).normal(size=3), np.arange(len(Phi))

    for one, other in zip(play_changed(plainly), play_changed(moved, layout=layout), strict=True):
        close(one, other, atol=1e-9)


def test_the_unit_of_the_features_does_not_matter():
    def scaled(Phi, t):
        return 1_000.0 * Phi, np.arange(len(Phi))

    for one, other in zip(play_changed(plainly), play_changed(scaled), strict=True):
        close(one, other, atol=1e-9)


def test_twins_have_equal_probabilities_unless_one_is_the_top():
    who = learner("bandit")
    rng, seen = np.random.default_rng(8), 0
    for _ in range(60):
        Phi = rng.normal(size=(3, 3))
        Phi = np.concatenate([Phi, Phi[:1]])
        decision = who.decide(actions=Phi)
        p, top = decision.distribution, int(who.scores(Phi).argmax())
        if top not in (0, 3):
            assert p[0] == pytest.approx(p[3], rel=1e-9)
            seen += p[0] > 0.0
        who.learn(decision, correct=bool(decision.action == int(Phi[:, 0].argmax())))
    assert seen > 20


def test_unavailable_actions_are_as_if_they_were_not_there():
    rng = np.random.default_rng(9)
    one, other = learner("bandit"), learner("bandit")
    for Phi in rounds(50, most=6, seed=9):
        keep = np.flatnonzero(rng.random(len(Phi)) < 0.6)
        keep = keep if len(keep) else np.array([0])
        first, second = one.decide(actions=Phi, available=keep), other.decide(actions=Phi[keep])
        assert first.action == keep[second.action]
        np.testing.assert_array_equal(first.distribution[keep], second.distribution)
        assert first.distribution.sum() == pytest.approx(1.0)
        hit = bool(first.action == keep[0])
        one.learn(first, correct=hit)
        other.learn(second, correct=hit)
    np.testing.assert_array_equal(one.weights, other.weights)


def test_every_pair_of_two_actions_is_asked_for():
    """K_t = 2 by brute force: the least q that meets every gap is the one played."""
    for a, b in itertools.product((-1.0, 0.0, 0.7), repeat=2):
        Phi = np.array([[a, 1.0], [b, -1.0]])
        q = learner("bandit").distribution(Phi)
        eta = 4.0 * LN2**2 / 2.0 / diameter(Phi) ** 2
        worst = [gap(np.zeros(2), Phi, q, y, eta, True) for y in range(2)]
        assert max(worst) <= 1e-12
