"""Facts of the aggregating algorithm alone: the mixture, its grid, its chains."""

import itertools
import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import aggregating as file
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.mixture import GRID_RADIUS, grid_axis, grid_regret, mixture_regret, potential
from gaptron.types import Comparator, Feedback, Loss, Problem
from tests.conftest import INTERPRETED, noisy_stream


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def learner(K=2, nu=1.0, seed=0, **more):
    return gaptron.Learner("aggregating", n_classes=K, nu=nu, seed=seed, **more)


def line(T, K=2, seed=0, flip=0.2):
    """Rows of one number; the sign says the label, mostly."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(T, 1))
    y = np.where(rng.random(T) < flip, rng.integers(0, K, T), (X[:, 0] > 0).astype(int))
    return X, y


def problem(K=2, d=1, X=1.0, D=1.0, T=100):
    return Problem(K, d, Feedback.FULL, Loss.LOGISTIC, X, D, T)


def nats(U, X, y):
    Z = X @ U.T
    top = Z.max(axis=1)
    return float((top + np.log(np.exp(Z - top[:, None]).sum(axis=1)) - Z[np.arange(len(y)), y]).sum())


def test_seven_rounds_of_the_mixture_by_hand():
    """K = 2, d = 1, sixteen points: Bayes' rule, point by point, in plain Python."""
    mine = learner(grid=18, nu=1.0)  # four points on each of two axes: -4, -4/3, 4/3, 4
    points = list(itertools.product([-4.0, -4 / 3, 4 / 3, 4.0], repeat=2))
    posterior = [math.exp(-(a * a + b * b) / 2) for a, b in points]
    posterior = [w / sum(posterior) for w in posterior]
    for x, y in [(1.0, 1), (-0.5, 0), (0.25, 1), (1.0, 0), (0.0, 1), (-1.0, 0), (0.7, 1)]:
        says = [softmax(np.array([a * x, b * x])) for a, b in points]
        q = sum(w * s for w, s in zip(posterior, says))
        decision = mine.decide([x])
        np.testing.assert_allclose(decision.distribution, q, atol=1e-13)
        mine.learn(decision, label=y)
        posterior = [w * s[y] / q[y] for w, s in zip(posterior, says)]
        mean = [sum(w * p[k] for w, p in zip(posterior, points)) for k in (0, 1)]
        np.testing.assert_allclose(mine.weights[:, 0], mean, atol=1e-12)


def test_five_rounds_of_a_chain_keep_energy_and_gradient():
    """After any number of steps, Φ and ∇Φ kept with each chain are those of the chain, by numpy."""
    X, y, K = noisy_stream(30, d=4, K=3)
    mine = learner(K, chains=3, nu=0.7, memory=12)
    for t in range(30):
        mine.learn(mine.decide(X[t]), label=int(y[t]))
        if t < 5 or t > 25:  # before the history is full, and after
            seen, told = X[max(0, t - 11) : t + 1], y[max(0, t - 11) : t + 1]
            for c in range(3):
                W = mine._engine.state.W[c]
                assert mine._engine.state.E[c] == pytest.approx(
                    nats(W, seen, told) + (W**2).sum() / (2 * 0.49), abs=1e-9
                )
                R = np.array([softmax(W @ x) for x in seen])
                R[np.arange(len(told)), told] -= 1
                np.testing.assert_allclose(mine._engine.state.G[c], R.T @ seen + W / 0.49, atol=1e-9)
                G = np.empty_like(W)
                assert potential(mine._engine.state, mine._engine.scratch, X[0], W, G, 1 / 0.49) == pytest.approx(
                    mine._engine.state.E[c], abs=1e-9
                )
    assert len(np.unique(mine._engine.state.W[:, 0, 0])) == 3


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="many steps")
def test_chains_agree_with_the_grid():
    """The mean over many chains of q̄ is the exact q̄ within Monte Carlo error, round by round."""
    X, y = line(60, seed=3)
    exact = learner(nu=2.0, grid=40_000)
    chains = learner(nu=2.0, grid=0, chains=400, steps=10)
    one, two = exact.play(X, y), chains.play(X, y)
    # A softmax under the posterior spreads by at most ½: 400 chains err by ½/20 = 0.025 at one standard deviation.
    assert np.abs(one.truth_probability - two.truth_probability).max() < 0.07
    assert abs(float((one.truth_probability - two.truth_probability).mean())) < 0.01
    tests = np.linspace(-1, 1, 9)[:, None]
    np.testing.assert_allclose(exact.distribution(tests), chains.distribution(tests), atol=0.06)
    W, E = exact._engine.state.W[:, :, 0], exact._engine.state.a
    spread = (E[:, None] * W**2).sum(axis=0) - (E[:, None] * W).sum(axis=0) ** 2
    np.testing.assert_allclose(chains._engine.state.W[:, :, 0].var(axis=0), spread, rtol=0.3)


@pytest.mark.sample(1)
@pytest.mark.skipif(INTERPRETED, reason="many steps")
@pytest.mark.parametrize("scale", [1.0, 30.0, 0.01])
def test_about_half_of_the_steps_are_accepted(scale):
    X, y, K = noisy_stream(400, d=8, K=4)
    mine = learner(K, nu=1 / scale, chains=8)
    mine.play(X * scale, y)
    before = mine._engine.state.pace.copy()
    mine.play(X * scale, y)
    now = mine._engine.state.pace[0]
    accepted, tried = now.accepted - before[0].accepted, now.tried - before[0].tried
    assert tried == 400 * 8 * 2
    assert 0.45 < accepted / tried < 0.7


def test_it_learns_and_batches_learn_too():
    X, y, K = noisy_stream(150 if INTERPRETED else 600, d=5, K=3, noise=0.05)
    half = len(y) // 2
    for more in ({}, {"batch": 8, "steps": 4}):
        mine = learner(K, nu=10.0, chains=4, **more)
        mine.play(X, y)
        assert (mine.predict(X[half:]) == y[half:]).mean() > 0.8, more


def test_before_any_feedback_every_label_is_alike():
    for d, K in [(1, 2), (1, 4), (2, 2), (3, 3)]:
        X = np.random.default_rng(0).normal(size=(5, d))
        mine = learner(K)
        mine.decide(X[0])
        np.testing.assert_allclose(mine.distribution(X), 1 / K, atol=1e-12)
        assert not mine.weights.any()


def test_with_a_full_memory_only_the_last_rounds_count():
    """Two learners that differ only in what was forgotten long ago hold the same history and energy function."""
    X, y, K = noisy_stream(40, d=4, K=3)
    one, two = learner(K, memory=10, chains=2), learner(K, memory=10, chains=2)
    one.play(X, y)
    two.play(np.vstack([X[20:30], X[30:]]), np.concatenate([y[20:30], y[30:]]))
    assert one._engine.state.span[0].count == two._engine.state.span[0].count == 10
    assert one._engine.state.pace[0].square == pytest.approx((X[30:] ** 2).sum(), rel=1e-9)
    W, G, H = np.random.default_rng(0).normal(size=(3, K, 4))
    found = potential(one._engine.state, one._engine.scratch, X[0], W, G, 1.0)
    assert found == pytest.approx(potential(two._engine.state, two._engine.scratch, X[0], W, H, 1.0), rel=1e-12)
    np.testing.assert_allclose(G, H, atol=1e-12)


# --- theory -----------------------------------------------------------------------------------------------


def test_the_price_is_the_gaussian_priors():
    got = mixture_regret(problem(K=4, d=3, X=2.0), 0.5, 3.0, 1000)
    assert got == pytest.approx(9 / 0.5 + 6 * math.log(1 + 0.25 * 1000 * 4 * 0.75 / 12))


@pytest.mark.parametrize("d, K", [(1, 2), (1, 3), (2, 2)])
@pytest.mark.parametrize("flip", [0.0, 0.3])
def test_mixture_loss_is_within_its_price_of_every_rule(d, K, flip):
    """Σ -ln q̄(y) ≤ Σ ℓ(U) + R on the grid, for many U; and a fine grid keeps the Gaussian prior's own price."""
    T, nu = 8 if INTERPRETED else 300, 2.0
    rng = np.random.default_rng(d + 10 * K)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * 1.0001
    truth = rng.normal(size=(K, d))
    y = np.where(rng.random(T) < flip, rng.integers(0, K, T), (X @ truth.T).argmax(axis=1))
    mine = learner(K, nu=nu, norm=1.0)
    trace = mine.play(X, y)
    mixed = float(-np.log(trace.truth_probability).sum())
    tight = math.inf
    for size in (0.0, 0.5, 1.0, 2.0, 4.0, 7.9):
        for direction in (truth, -truth, rng.normal(size=(K, d))):
            U = direction / np.linalg.norm(direction) * size
            loss = nats(U, X, y)
            cost = grid_regret(problem(K, d), nu, mine.settings.grid, size, T)
            assert mixed <= loss + cost
            assert mixed <= loss + mixture_regret(problem(K, d), nu, size, T)
            tight = min(tight, loss + cost - mixed)
            promised = file.bound(problem(K, d), mine.settings, Comparator(loss / math.log(2), size, T))
            assert promised == pytest.approx(loss + cost)
    assert trace.expected_mistakes <= mixed
    assert INTERPRETED or tight < T / 4  # it says something about this run


def test_on_a_single_point_of_the_grid_the_price_is_its_prior():
    """U on the grid, no rounds: R ≥ -ln prior(U), by at most what rounding a U between points may cost."""
    K, nu, most = 2, 1.0, 400
    g = grid_axis(2, most, nu)
    assert g[0] == -GRID_RADIUS * nu and g[-1] == GRID_RADIUS * nu and len(g) == 20
    prior = np.exp(-(g[:, None] ** 2 + g[None] ** 2) / 2)
    prior /= prior.sum()
    U = np.array([g[3], g[12]])
    delta = g[1] - g[0]
    assert grid_regret(problem(K), nu, most, float(np.linalg.norm(U)), 0) == pytest.approx(
        -math.log(prior[3, 12]) + 2 * delta**2 / 8
    )


def test_the_bound_holds_for_a_whole_run():
    X, y = line(8 if INTERPRETED else 400, seed=5)
    mine = learner(nu=3.0)
    trace = mine.play(X, y)
    bound = mine.bound(X, y)
    assert trace.expected_mistakes <= bound.value
    assert INTERPRETED or bound.value < len(y) / 2
    assert "mixture" in bound.theorem


def test_rules_beyond_the_grid_are_not_covered_and_chains_have_no_bound():
    s = file.recommend(problem(), nu=1.0)
    assert file.bound(problem(), s, Comparator(1.0, 4.1, 10)) == math.inf
    with pytest.raises(NoBoundError, match="dK ≤ 4"):
        file.bound(problem(d=3), s, Comparator(1.0, 1.0, 10))
    with pytest.raises(NoBoundError, match="chains"):
        file.bound(problem(), s._replace(grid=0), Comparator(1.0, 1.0, 10))


# --- settings ---------------------------------------------------------------------------------------------


def test_nu_is_the_radius_and_memory_the_horizon_up_to_ten_thousand():
    assert file.recommend(problem(D=3.0, T=50))[0] == 3.0
    assert file.recommend(problem(T=50)).memory == 50
    assert file.recommend(problem(T=10**6)).memory == 10_000
    with pytest.raises(SettingError, match="radius"):
        learner(nu=None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"nu": 0.0},
        {"nu": math.inf},
        {"step": -1.0},
        {"chains": 0},
        {"steps": 1.5},
        {"batch": -1},
        {"memory": 0},
        {"nonzeros": 0},
        {"grid": 3},
        {"grid": -1},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        learner(**wrong)


def test_what_does_not_fit_is_refused():
    s = file.recommend(problem())
    with pytest.raises(SettingError, match="16 chains of 100 × 100000 numbers"):
        file.init(s, problem(K=100, d=100_000), True)
    with pytest.raises(SettingError, match="memory"):
        file.init(s._replace(memory=10_000), problem(d=50_000), False)
