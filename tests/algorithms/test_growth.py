"""Learners that meet new labels and new features on the way."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from gaptron import Learner
from gaptron.algorithms import NAMES, load
from gaptron.errors import DecisionError, InputError, NoBoundError, SettingError
from gaptron.learner import growth
from gaptron.types import Growth, named
from tests.algorithms.laws import Case, cases
from tests.conftest import KINDS, portrait, random_stream

BOTH = {name: KINDS[name] for name in ("dense64", "csr")}
EITHER = [
    pytest.param(KINDS["dense64"], id="dense64"),
    pytest.param(KINDS["csr"], id="csr", marks=pytest.mark.slow),  # compiles every algorithm once more
]
# One case an algorithm, and those with matrices over all weights, whose indices are the harder ones to move.
CASES = {(case.algorithm, case.variant): case for case in reversed(cases()) if case.variant in ("", "full")}
OWN_WAYS = [case for case in cases() if case.file.CARD.growth != Growth() and not case.variant]
CHOSEN = {str(case): case for case in [*CASES.values(), *OWN_WAYS]}.values()
GROWING = [case for case in CHOSEN if case.file.CARD.growth.possible and case.feedback != "graph"]
MIXTURES = [name for name in NAMES if not load(name).CARD.growth.possible]
# Under bandit feedback the draw depends on the order of labels, and so does a perceptron's label when scores are tied.
TIES = {"perceptron", "second-order-perceptron"}
ORDERLESS = [c for c in GROWING if c.most > 2 and c.feedback == "full" and c.algorithm not in TIES]
WIDE = 6


def narrow(stream, d=4):
    """Rows whose last columns are nothing yet."""
    X = stream.X.copy()
    X[:, d:] = 0.0
    return X


@pytest.mark.sample(10)
@pytest.mark.parametrize("rows", EITHER)
@pytest.mark.parametrize("case", GROWING, ids=str)
def test_features_added_later_change_nothing(case, rows):
    if case.algorithm == "advised-gaptron":  # the features of the kernel expert depend on their number
        case = case._replace(keywords={**case.keywords, "kernel": False})
    one, two = case.stream(80), case.stream(80, seed=1)
    late, early = case.learner(), case.learner()
    late.play(rows(narrow(one)[:, :4]), one.y)
    early.play(rows(narrow(one)), one.y)
    late.grow(n_features=WIDE)
    np.testing.assert_allclose(late.weights, early.weights, rtol=1e-9, atol=1e-12)
    first, second = late.play(rows(two.X), two.y), early.play(rows(two.X), two.y)
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_allclose(first.truth_probability, second.truth_probability, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(late.weights, early.weights, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(late.scores(two.X), early.scores(two.X), rtol=1e-7, atol=1e-9)


@pytest.mark.sample(10)
@pytest.mark.parametrize("rows", EITHER)
@pytest.mark.parametrize("case", [case for case in GROWING if case.most > 2], ids=str)
def test_a_label_added_later_has_weight_zero_and_is_learned(case, rows):
    stream = case.stream(120, K=3)
    learner = case.learner(classes=["a", "c", "d"])
    learner.play(rows(stream.X), np.array(["a", "c", "d"])[stream.y])
    before, scores = learner.weights, learner.scores(stream.X)
    learner.grow(classes=["a", "b", "c", "d"])
    after, new = learner.weights, learner.scores(stream.X)
    assert learner.classes == ("a", "b", "c", "d")
    np.testing.assert_allclose(after[1], 0.0, atol=1e-12)
    # The step may be smaller for more labels, and then all weights are, alike.
    # Where every round was free nothing is certified, and the weights shown are zero.
    ratio = np.abs(after).sum() / np.abs(before).sum() if before.any() else 1.0
    assert 0.0 < ratio <= 1.0 + 1e-12
    np.testing.assert_allclose(after[[0, 2, 3]], before * ratio, rtol=1e-9, atol=1e-12)
    same = new[:, [0, 2, 3]].argmax(axis=1) == scores.argmax(axis=1)
    # A new label takes a share of every expert's probability, not the same of each: their mixture may shift a little.
    assert same.mean() > 0.9 if case.algorithm == "advised-gaptron" else same.all()
    assert learner.settings == case.learner(classes=list(learner.classes)).settings
    np.testing.assert_allclose(learner.distribution(stream.X).sum(axis=1), 1.0)
    # An example whose true label is always the new one: it must become the prediction.
    X = np.zeros((400, WIDE))
    X[:, 3] = 1.0
    learner.play(rows(X), ["b"] * 400)
    assert learner.predict(X[:1])[0] == "b"
    assert np.isfinite(learner.weights).all()


@pytest.mark.parametrize("rows", EITHER)
@pytest.mark.parametrize("case", ORDERLESS, ids=str)
def test_it_does_not_matter_where_a_new_label_stands(case, rows):
    one, two = case.stream(100, K=3), case.stream(100, K=4, seed=1)
    first, last = case.learner(classes=[0, 1, 2]), case.learner(classes=[0, 1, 2])
    first.play(rows(one.X), one.y)
    last.play(rows(one.X), one.y)
    first.grow(classes=[3, 0, 1, 2])
    last.grow(classes=[0, 1, 2, 3])
    first.play(rows(two.X), two.y)
    last.play(rows(two.X), two.y)
    np.testing.assert_allclose(first.weights[[1, 2, 3, 0]], last.weights, rtol=1e-6, atol=1e-9)


def test_frugal_gaptron_steps_as_its_new_number_of_labels_allows():
    case = Case("frugal-gaptron", "hinge", "full", "", {})
    one, two = case.stream(100, K=2), case.stream(200, K=4, seed=1)
    learner = case.learner(2)
    learner.play(one.X, one.y)
    learner.grow(classes=range(4))
    trace = learner.play(two.X, two.y)
    assert (trace.note("step") <= case.learner(4).settings.first).all()
    assert (trace.note("level") == 0.0).all()


def test_a_new_label_of_frugal_gaptron_starts_at_the_mean_of_the_others():
    """Its sums leave out the centring over labels: zero is not the middle of them."""
    stream = random_stream(120, K=3)
    learner = Learner("frugal-gaptron", classes=[0, 1, 2], feedback="bandit", seed=0)
    learner.play(stream.X, stream.y)
    before, old = learner.weights, learner.scores(stream.X)
    assert np.abs(old.sum(axis=1)).max() > 0.1, "then zero would do"
    learner.grow(classes=[0, 3, 1, 2])
    after, new = learner.weights, learner.scores(stream.X)
    np.testing.assert_allclose(new[:, 1], new[:, [0, 2, 3]].mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(after[1], 0.0, atol=1e-12)
    ratio = np.abs(after).sum() / np.abs(before).sum()  # the step is smaller for more labels
    np.testing.assert_allclose(after[[0, 2, 3]], before * ratio, atol=1e-12)


class Filled(NamedTuple):
    """A state whose every number says which label and feature it is about."""

    W: np.ndarray
    A: np.ndarray  # all weights × all weights
    S: np.ndarray  # a matrix a label, below each other
    b: np.ndarray  # a number a label, or a feature
    total: np.ndarray


def filled(labels, features, sparse, joint, grows, fill=True):
    pairs = [(k, i) for k in labels for i in features]
    name = np.array([[10 * k + i for i in features] for k in labels], dtype=float)
    if joint == "blocks" or (joint == "rows" and sparse):
        pairs = [(k, i) for i in features for k in labels]
    flat = np.array([10 * k + i for k, i in pairs], dtype=float)
    A = flat[:, None] * 100 + flat
    S = np.array([[100 * (10 * k + i) + j for j in features] for k in labels for i in features], dtype=float)
    scale = 1.0 if fill else 0.0
    W = name.T if sparse else name
    b = np.array(labels if grows == "labels" else features, dtype=float) + 1
    return Filled(W * scale - 1 + scale, A * scale, S * scale, b * scale, named(level=scale, rounds=int(scale)))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "joint, grows",
    [("label", "labels"), ("label", "features"), ("rows", "labels"), ("rows", "features"), ("blocks", "labels")],
)
def test_every_number_goes_to_its_place(joint, sparse, grows):
    old = filled([1, 3], [0, 1, 2], sparse, joint, grows)
    labels, features = ([1, 2, 3], [0, 1, 2]) if grows == "labels" else ([1, 3], [0, 1, 2, 3, 4])
    new = filled(labels, features, sparse, joint, grows, fill=False)
    want = filled(labels, features, sparse, joint, grows)
    places, room = (np.array([0, 2]), 3) if grows == "labels" else (np.arange(3), 5)
    growth.move(Growth(joint=joint), old, new, places, room, labels=grows == "labels", sparse=sparse)
    for part in ("W", "A", "S", "b"):
        if part == "S" and joint != "label":
            continue  # no such algorithm has one
        known = np.isin(getattr(want, part), getattr(old, part))
        assert known.sum() == getattr(old, part).size
        np.testing.assert_array_equal(getattr(new, part)[known], getattr(want, part)[known], err_msg=part)
        assert (getattr(new, part)[~known] == (-1 if part == "W" else 0)).all()
    np.testing.assert_array_equal(new.total, old.total)


def test_what_an_algorithm_brings_over_by_hand_is_left_to_it():
    old, new = (filled([1, 3], [0, 1, 2], False, "label", "labels", fill=fill) for fill in (True, False))
    growth.move(Growth(by_hand=("A",)), old, new, np.arange(2), 2, labels=True, sparse=False)
    np.testing.assert_array_equal(new.W, old.W)
    assert not new.A.any()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", MIXTURES)
def test_mixtures_cannot_grow_and_say_so(algorithm):
    case = CASES[algorithm, ""]
    stream = case.stream(30, K=3)
    learner = case.learner(3)
    learner.grow(classes=range(4))  # before the first round it only is another problem
    learner.play(stream.X, stream.y)
    before = portrait(learner)
    with pytest.raises(SettingError, match=rf"{algorithm} cannot grow.*classes="):
        learner.grow(classes=range(5))
    with pytest.raises(SettingError, match=rf"{algorithm} cannot grow.*n_features="):
        learner.grow(n_features=9)
    assert portrait(learner) == before


def perceptron(K=3):
    return Case("perceptron", "hinge", "full", "", {}).learner(K)


@pytest.mark.parametrize(
    "asked, error, words",
    [
        ({"classes": [0, 1, 5]}, InputError, "2 is missing"),
        ({"classes": [0, 1, 2, 2]}, InputError, "twice"),
        ({"n_features": 3}, InputError, "it has 6, and n_features=3 is fewer"),
        ({"n_features": 2.5}, SettingError, "n_features=2.5"),
        ({}, SettingError, "either classes"),
        ({"classes": range(4), "n_features": 9}, SettingError, "either classes"),
    ],
)
def test_a_refused_growth_changes_nothing(asked, error, words):
    stream = CASES["perceptron", ""].stream(20, K=3)
    learner = perceptron()
    learner.play(stream.X, stream.y)
    before = portrait(learner)
    with pytest.raises(error, match=words):
        learner.grow(**asked)
    assert portrait(learner) == before


def test_two_labels_of_aioli_and_the_labels_of_a_graph_stay():
    aioli = CASES["aioli", ""].learner(2)
    with pytest.raises(SettingError, match="at most 2 classes, not 3"):
        aioli.grow(classes=range(3))
    for case in cases():
        if case.feedback == "graph":
            with pytest.raises(SettingError, match="graph"):
                case.learner(3).grow(classes=range(4))


def test_before_the_first_rows_it_is_only_another_problem():
    stream = CASES["gaptron", ""].stream(40)
    late, early = Learner("gaptron", n_classes=2, seed=0), Learner("gaptron", n_classes=4, n_features=6, seed=0)
    late.grow(classes=range(4))
    late.grow(n_features=6)
    assert late.settings is None and late.problem == early.problem
    np.testing.assert_array_equal(late.play(stream.X, stream.y).codes, early.play(stream.X, stream.y).codes)
    assert late.settings == early.settings and portrait(late) == portrait(early)


def test_new_labels_end_the_bound_and_new_features_do_not():
    stream = CASES["gaptron", ""].stream(40, K=3)
    for algorithm in ("gaptron", "frugal-gaptron"):
        learner = Case(algorithm, "logistic", "full", "", {}).learner(3)
        learner.grow(classes=range(4))  # nothing was played: the theorem is for four labels
        learner.play(stream.X, stream.y)
        learner.grow(n_features=8)
        wide = np.hstack([stream.X, np.zeros((40, 2))])
        assert learner.bound(wide, stream.y).value > 0.0
        learner.grow(classes=range(5))
        with pytest.raises(NoBoundError, match="labels were added after round 40"):
            learner.bound(wide, stream.y)
    with pytest.raises(NoBoundError, match="labels were added"):
        _ = learner.certificate


def test_a_waiting_decision_outlives_new_features_but_not_new_labels():
    case = CASES["perceptron", ""]
    stream = case.stream(30, K=3)
    wide = np.hstack([stream.X, np.zeros((30, 3))])
    for rows in BOTH.values():
        late, early = case.learner(3), case.learner(3)
        for learner, X in ((late, stream.X), (early, wide)):
            learner.play(rows(X), stream.y)
        one, two = late.decide(rows(stream.X[:1])), early.decide(rows(wide[:1]))
        late.grow(n_features=9)
        late.learn(one, label=(one.label + 1) % 3)
        early.learn(two, label=(two.label + 1) % 3)
        np.testing.assert_array_equal(late.weights, early.weights)
        waiting = late.decide(rows(wide[:1]))
        late.grow(classes=range(4))
        before = portrait(late)
        with pytest.raises(DecisionError, match="labels were added"):
            late.learn(waiting, label=0)
        assert portrait(late) == before


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
def test_a_copy_goes_on_as_the_original_and_alone(twin):
    case = Case("frugal-gaptron", "logistic", "bandit", "", {})
    stream = case.stream(60)
    learner = case.learner()
    assert portrait(twin(learner)) == portrait(learner)
    learner.play(stream.X, stream.y)
    other = twin(learner)
    assert portrait(other) == portrait(learner)
    before = portrait(learner)
    after = other.play(stream.X, stream.y)
    assert portrait(learner) == before
    np.testing.assert_array_equal(learner.play(stream.X, stream.y).codes, after.codes)
