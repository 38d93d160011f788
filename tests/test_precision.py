"""Weights in single precision: half the memory, the same predictions, and no bound."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron.algorithms import NAMES, load
from gaptron.data.examples import checked
from gaptron.errors import InputError, NoBoundError, SettingError
from gaptron.kernels.rows import row, score_one, scores
from gaptron.learner import memory
from tests.conftest import KINDS, noisy_stream

QUICK = {"frugal-gaptron", "gaptron"}  # the others are compiled by CI alone
ABLE = [name for name in NAMES if load(name).CARD.single]
LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_matrix}


def learner(algorithm, precision, **given):
    feedback = load(algorithm).CARD.feedback[-1].word
    common = {"feedback": feedback, "norm": 20.0, "radius": 1.0, "horizon": 400, "seed": 0}
    return gaptron.Learner(algorithm, n_classes=3, **{**common, "precision": precision, **given})


@pytest.mark.sample(2)
@pytest.mark.parametrize("layout", ["dense", pytest.param("sparse", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in ABLE]
)
def test_the_same_predictions_from_half_the_memory(algorithm, layout):
    s = noisy_stream(400, 5, 3)
    X = LAYOUTS[layout](s.X)
    double, single = learner(algorithm, "double"), learner(algorithm, "single")
    for each in (double, single):
        each.play(X[:300], s.y[:300])
        decision = each.decide(X[300])
        each.learn(decision, **({"label": 0} if "full" in repr(each) else {"correct": decision.label == 0}))
    np.testing.assert_allclose(single.scores(X), double.scores(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(single.distribution(X), double.distribution(X), atol=1e-3)
    tables = load(algorithm).CARD.single
    for name in double._engine.state._fields:
        one, half = getattr(double._engine.state, name), getattr(single._engine.state, name)
        assert half.nbytes == (one.nbytes // 2 if name in tables else one.nbytes), name
    assert "W" in tables and single.weights.dtype == np.float64


def test_saved_and_loaded_it_goes_on(tmp_path):
    s = noisy_stream(400, 5, 3)
    one = learner("frugal-gaptron", "single")
    one.play(s.X[:200], s.y[:200])
    one.save(tmp_path / "m.gaptron")
    other = gaptron.Learner.load(tmp_path / "m.gaptron")
    assert other._engine.state.W.dtype == np.float32
    for each in (one, other):
        each.play(s.X[200:], s.y[200:])
    np.testing.assert_array_equal(one.weights, other.weights)


def test_it_grows_in_its_precision():
    s = noisy_stream(100, 5, 3)
    single, double = (learner("frugal-gaptron", precision) for precision in ("single", "double"))
    for each in (single, double):
        each.play(s.X, s.y)
        each.grow(classes=[0, 1, 2, 3])
    assert single._engine.state.W.dtype == np.float32
    np.testing.assert_allclose(single.weights, double.weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=[] if name == "softmax" else [pytest.mark.slow]) for name in ABLE]
)
def test_no_bound_and_no_certificate(algorithm):
    s = noisy_stream(50, 5, 3)
    one = learner(algorithm, "single", norm=1.0)
    one.play(s.X, s.y)
    with pytest.raises(NoBoundError, match='single precision: use precision="double"'):
        one.bound(s.X, s.y)
    if hasattr(load(algorithm), "certificate"):
        with pytest.raises(NoBoundError, match='single precision: use precision="double"'):
            _ = one.certificate


@pytest.mark.parametrize("kind", list(KINDS))
def test_scores_of_weights_in_single_precision_are_sums_in_double(kind):
    """The product of two float32 numbers has 48 bits and is exact in double."""
    rng, K, d = np.random.default_rng(2), 3, 7
    sparse = kind.startswith("csr")
    rows = checked(KINDS[kind](rng.normal(size=(1, d)))).rows
    x, W = row(rows, 0), rng.normal(size=(K, d)).astype(np.float32)
    numbers = rows.values if sparse else rows[0]
    wanted = [float(sum(Fraction(float(w)) * Fraction(float(v)) for w, v in zip(line, numbers))) for line in W]
    table, z = np.ascontiguousarray(W.T) if sparse else W, np.zeros(K)
    scores(table, x, z)
    np.testing.assert_allclose(z, wanted, rtol=1e-13)
    np.testing.assert_allclose([score_one(table, x, k) for k in range(K)], wanted, rtol=1e-13)


def test_what_is_refused():
    with pytest.raises(SettingError, match="'double' or 'single'"):
        gaptron.Learner(n_classes=2, precision="half")
    with pytest.raises(SettingError, match="newtron has no precision='single'; algorithms that have: advised-gaptron"):
        gaptron.Learner("newtron", n_classes=2, feedback="bandit", precision="single")


def test_what_cannot_fit_is_refused_with_sizes_and_a_remedy(monkeypatch):
    monkeypatch.setattr(memory, "of_machine", lambda: 10**6)
    wide = sp.csr_matrix((np.ones(1), ([0], [0])), shape=(1, 30_000))
    words = (
        '2 classes × 30000 features take .* GB, more than the 0.001 GB of this machine\'s memory.*precision="single"'
    )
    refused = gaptron.Learner(n_classes=2, norm=1.0)  # three learners in one: 1.4 MB, though weights alone would fit
    with pytest.raises(InputError, match=words):
        refused.decide(wide)
    assert refused.decided == 0
    gaptron.Learner("frugal-gaptron", n_classes=2, norm=1.0).decide(wide)
    watched = gaptron.Learner("frugal-gaptron", n_classes=2, norm=1.0, feedback="bandit")
    with pytest.raises(InputError, match="or observe=False"):
        watched.decide(wide)


@pytest.mark.slow
def test_single_fits_where_double_does_not(monkeypatch):
    monkeypatch.setattr(memory, "of_machine", lambda: 400_000)
    wide = sp.csr_matrix((np.ones(1), ([0], [0])), shape=(1, 30_000))
    with pytest.raises(InputError, match="classes"):
        gaptron.Learner("frugal-gaptron", n_classes=2, norm=1.0).decide(wide)
    gaptron.Learner("frugal-gaptron", n_classes=2, norm=1.0, precision="single").decide(wide)


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_examples_that_would_overflow_are_refused(feedback):
    """float32 ends at 3e38: longer examples made the weights infinite."""
    single = learner("frugal-gaptron", "single", feedback=feedback, norm=2e18, radius=1e-18)
    shown = {"correct": False} if feedback == "bandit" else {"truth": 1}
    x, far = np.array([0.6e18, 0.8e18]), np.array([1.1e18, 0.0])
    for call in (single.decide, single.check, lambda x: single.learn_logged(x, 0, 1e-6, **shown)):
        with pytest.raises(InputError, match="in single precision weights overflow above 1e\\+18"):
            call(far if call != single.check else far[None])
    for t in range(20):
        single.learn_logged(x if t % 2 else x[::-1], t % 3, 1e-6, **shown)
    assert np.isfinite(single.weights).all() and np.isfinite(single.distribution(x[None])).all()


def test_tables_in_single_precision_count_half():
    learner = gaptron.Learner("frugal-gaptron", n_classes=3, norm=2.0, feedback="bandit")
    learner.decide(np.ones(4))
    state = learner._engine.state
    whole = sum(part.nbytes for part in state)
    assert memory.size(state) == whole
    assert memory.size(state, ("W",)) == memory.size(memory.in_single(state, ("W",))) == whole - 3 * 4 * 4
