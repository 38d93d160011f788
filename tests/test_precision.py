"""Weights in single precision: half the memory, the same answers, and no bound but one that counts the rounding."""

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron import memory, model_file
from gaptron.algorithms import NAMES, load
from gaptron.errors import InputError, NoBoundError, SettingError
from gaptron.types import Rounding
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
    ours, theirs = single.scores(X), double.scores(X)
    if algorithm == "frugal-gaptron":  # what all labels have in common moves no prediction, and may differ
        ours, theirs = (z - z.mean(axis=1, keepdims=True) for z in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(single.distribution(X), double.distribution(X), atol=1e-3)
    tables = load(algorithm).CARD.single
    for name in double._core.state._fields:
        if name == "rounding":
            continue  # two numbers, and none in double
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
    assert one.certificate == other.certificate
    assert one.certificate.rounding.drift > 0.0


def test_a_file_of_a_version_that_did_not_count_goes_on_without_a_bound(tmp_path):
    s = noisy_stream(400, 5, 3)
    one = learner("frugal-gaptron", "single")
    one.play(s.X[:200], s.y[:200])
    tree = one.__getstate__()
    del tree["core"]["state"]["rounding"]
    model_file.write(tmp_path / "m.gaptron", tree)
    other = gaptron.Learner.load(tmp_path / "m.gaptron")
    other.save(tmp_path / "again.gaptron")
    other = gaptron.Learner.load(tmp_path / "again.gaptron")
    other.play(s.X[200:], s.y[200:])
    other.grow(n_features=7)
    assert other._core.state.W.dtype == np.float32
    with pytest.raises(NoBoundError, match="not counted"):
        _ = other.certificate


def test_in_double_a_file_has_nothing_of_it():
    one = learner("frugal-gaptron", "double")
    one.play(*noisy_stream(20, 5, 3)[:2])
    assert set(one.__getstate__()["core"]["state"]) == {"W", "total"}
    assert one.certificate.rounding == Rounding()


def test_it_grows_in_its_precision():
    s = noisy_stream(100, 5, 3)
    single, double = (learner("frugal-gaptron", precision) for precision in ("single", "double"))
    for each in (single, double):
        each.play(s.X, s.y)
    drift = single._core.rounding.drift
    for each in (single, double):
        each.grow(classes=[0, 1, 2, 3])
    assert single._core.state.W.dtype == np.float32
    assert single._core.rounding.drift == drift > 0.0
    np.testing.assert_allclose(single.weights, double.weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=[] if name == "softmax" else [pytest.mark.slow]) for name in ABLE]
)
def test_a_bound_where_the_rounding_is_counted_and_else_none(algorithm):
    s, counts = noisy_stream(50, 5, 3), {"advised-gaptron", "frugal-gaptron", "gaptron", "perceptron"}
    one = learner(algorithm, "single", norm=1.0)
    one.play(s.X, s.y)
    if algorithm in counts:
        assert one.bound(s.X, s.y).value > 0.0
        return
    with pytest.raises(NoBoundError, match="single precision, and what the rounding costs was not counted"):
        one.bound(s.X, s.y)


def test_a_delay_is_proved_in_double_alone():
    s = noisy_stream(50, 5, 3)
    double, one = (learner("frugal-gaptron", each, feedback="full", delay=2) for each in ("double", "single"))
    double.play(s.X, s.y)
    one.play(s.X, s.y)
    assert double.certificate.level >= 0.0
    with pytest.raises(NoBoundError, match="the proof for delay=2 does not count the rounding"):
        _ = one.certificate
    with pytest.raises(NoBoundError, match="the proof for delay=2 does not count the rounding"):
        one.bound(s.X, s.y)


@pytest.mark.filterwarnings("ignore:overflow")  # NumPy speaks of it where nothing is compiled
def test_weights_beyond_single_precision_end_the_bound():
    for size in (1e30, 1e39):
        X, y = np.array([[size, 1.0]]), [1]  # a tie goes to label 0: a mistake
        one = learner("perceptron", "single", feedback="full", norm=1e40)
        one.play(X, y)
        if size == 1e30:
            assert one.bound(X, y).value >= 1.0
        else:
            with pytest.raises(NoBoundError, match="grew beyond what single precision can hold"):
                one.bound(X, y)


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
