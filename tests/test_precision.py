"""Weights in single precision: half the memory, the same answers, and no bound that the rounding might break."""

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron import memory
from gaptron.algorithms import NAMES, load
from gaptron.errors import InputError, NoBoundError, SettingError
from tests.conftest import noisy_stream

QUICK = {"frugal-gaptron", "gaptron"}  # the others are compiled by CI alone
ABLE = [name for name in NAMES if load(name).CARD.single]
LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_matrix}


def learner(algorithm, precision, **given):
    feedback = load(algorithm).CARD.feedback[-1].word
    common = {"feedback": feedback, "norm": 20.0, "radius": 1.0, "horizon": 400, "seed": 0}
    return gaptron.Learner(algorithm, n_classes=3, **{**common, "precision": precision, **given})


@pytest.mark.parametrize("layout", ["dense", pytest.param("sparse", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in ABLE]
)
def test_the_same_answers_from_half_the_memory(algorithm, layout):
    s = noisy_stream(400, 5, 3)
    X = LAYOUTS[layout](s.X)
    double, single = learner(algorithm, "double"), learner(algorithm, "single")
    for each in (double, single):
        each.play(X[:300], s.y[:300])
        decision = each.decide(X[300])
        each.learn(decision, **({"label": 0} if "full" in repr(each) else {"correct": decision.label == 0}))
    np.testing.assert_allclose(single.scores(X), double.scores(X), rtol=1e-3, atol=1e-3)
    tables = load(algorithm).CARD.single
    for name in double._core.state._fields:
        one, half = getattr(double._core.state, name), getattr(single._core.state, name)
        assert half.nbytes == (one.nbytes // 2 if name in tables else one.nbytes), name
    assert "W" in tables and single.weights.dtype == np.float64


def test_saved_and_loaded_it_goes_on(tmp_path):
    s = noisy_stream(400, 5, 3)
    one = learner("frugal-gaptron", "single")
    one.play(s.X[:200], s.y[:200])
    one.save(tmp_path / "m.gaptron")
    other = gaptron.Learner.load(tmp_path / "m.gaptron")
    assert other._core.state.W.dtype == np.float32
    for each in (one, other):
        each.play(s.X[200:], s.y[200:])
    np.testing.assert_array_equal(one.weights, other.weights)


def test_it_grows_in_its_precision():
    s = noisy_stream(100, 5, 3)
    single, double = (learner("frugal-gaptron", precision) for precision in ("single", "double"))
    for each in (single, double):
        each.play(s.X, s.y)
        each.grow(classes=[0, 1, 2, 3])
    assert single._core.state.W.dtype == np.float32
    np.testing.assert_allclose(single.weights, double.weights, rtol=1e-4, atol=1e-5)


def test_no_bound_and_no_certificate():
    s = noisy_stream(50, 5, 3)
    one = learner("frugal-gaptron", "single", feedback="full")
    one.play(s.X, s.y)
    with pytest.raises(NoBoundError, match="single precision"):
        _ = one.certificate
    with pytest.raises(NoBoundError, match="single precision"):
        one.bound(s.X, s.y)


def test_what_is_refused():
    with pytest.raises(SettingError, match="'double' or 'single'"):
        gaptron.Learner(n_classes=2, precision="half")
    with pytest.raises(SettingError, match="newtron has no precision='single'; algorithms that have: advised-gaptron"):
        gaptron.Learner("newtron", n_classes=2, feedback="bandit", precision="single")


def test_what_cannot_fit_is_refused_with_sizes_and_a_way_out(monkeypatch):
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


def test_single_fits_where_double_does_not(monkeypatch):
    monkeypatch.setattr(memory, "of_machine", lambda: 400_000)
    wide = sp.csr_matrix((np.ones(1), ([0], [0])), shape=(1, 30_000))
    with pytest.raises(InputError, match="classes"):
        gaptron.Learner("frugal-gaptron", n_classes=2, norm=1.0).decide(wide)
    gaptron.Learner("frugal-gaptron", n_classes=2, norm=1.0, precision="single").decide(wide)
