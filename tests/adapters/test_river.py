"""River's classifier: River's own checks, features and labels that appear over time, and decisions."""

import copy
import itertools
import pickle

import numpy as np
import pytest

from gaptron import Learner
from gaptron.algorithms import NAMES, load
from gaptron.errors import DecisionError, InputError, SettingError
from gaptron.learner import DEFAULT
from gaptron.types import Feedback
from tests.algorithms.laws import GRAPH
from tests.conftest import ON_SPARSE, noisy_stream, portrait

pytest.importorskip("river", reason="River is not installed: pip install '.[river]'")

from river import checks, datasets, evaluate, metrics, preprocessing

from gaptron.river import Classifier

X, Y, _ = noisy_stream(120)
WORDS = np.array(["ant", "bee", "cat"])[Y].tolist()
DICTS = [{f"x{i}": float(v) for i, v in enumerate(x)} for x in X]
NEEDS = {"norm": 1.0, "radius": 1.0, "horizon": 1000, "seed": 0}


@pytest.mark.slow
@pytest.mark.xdist_group(NAMES[DEFAULT])
@pytest.mark.parametrize("model", [Classifier(), Classifier(feedback="bandit", seed=1)], ids=["full", "bandit"])
def test_rivers_own_checks(model):
    names = [check.__name__ for check in checks.yield_checks(model)]
    assert len(names) > 20 and not model._unit_test_skips()
    checks.check_estimator(model)


EVERY = [  # where all tests of one algorithm run in one process, it is compiled once
    pytest.param(
        name,
        told.word,
        marks=[pytest.mark.xdist_group(NAMES[name]), *([] if name in ON_SPARSE else [pytest.mark.slow])],
    )
    for name in NAMES
    for told in load(name).CARD.feedback
]


@pytest.mark.parametrize("name, feedback", EVERY)
def test_every_algorithm_learns_and_predicts(name, feedback):
    told = GRAPH if feedback == "graph" else feedback
    labels = ["ant", "bee"] if load(name).CARD.most_classes == 2 else ["ant", "bee", "cat"]
    model = Classifier(name, feedback=told, classes=labels, n_features=6, **NEEDS)
    assert model.predict_one(DICTS[0]) in labels
    for x, y in zip(DICTS[:40], WORDS[:40]):
        if y in labels:
            model.learn_one(x, y)
    predicted = [model.predict_one(x) for x in DICTS]
    assert set(predicted) <= set(labels)
    assert [pickle.loads(pickle.dumps(model)).predict_one(x) for x in DICTS[:3]] == predicted[:3]
    assert [copy.deepcopy(model).predict_one(x) for x in DICTS[:3]] == predicted[:3]
    assert sum(model.playing_distribution_one(DICTS[0]).values()) == pytest.approx(1.0)
    if feedback == "full" and load(name).CARD.losses[0].word == "logistic":
        propensities = model.predict_proba_one(DICTS[0])
        assert list(propensities) == labels and sum(propensities.values()) == pytest.approx(1.0)
        assert max(propensities, key=propensities.get) == predicted[0]
    else:
        with pytest.raises(NotImplementedError, match=f"{name} .*no class probabilities"):
            model.predict_proba_one(DICTS[0])


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_it_plays_what_the_learner_plays(feedback):
    """The same rounds as a learner that knew the labels and the width: here in another order of columns.

    The kernel expert is left out, because its frequencies depend on the order.
    """
    model = Classifier(classes=["ant", "bee", "cat"], feedback=feedback, seed=3, settings={"kernel": False})
    learner = Learner(classes=["ant", "bee", "cat"], feedback=feedback, seed=3, kernel=False)
    learner.play(np.hstack([np.ones((len(X), 1)), X]), WORDS)
    for x, y in zip(DICTS, WORDS):
        model.learn_one(dict(reversed(x.items())), y)
    columns = [0] + [1 + model.names.index(f"x{i}") for i in range(6)]
    np.testing.assert_allclose(model.learner.weights[:, columns], learner.weights, rtol=1e-9, atol=1e-12)
    assert model.learner.rounds == 120


def test_features_may_appear_at_any_time():
    """Names met late, more than one doubling, names that go: as if all had been known."""
    rng = np.random.default_rng(0)
    stream = []
    for t in range(150):
        names = rng.choice(10 + t // 2, size=5, replace=False)
        stream.append(({f"w{n}": float(rng.normal()) for n in names}, bool(rng.integers(2))))
    late = Classifier("gaptron", classes=[False, True], norm=20.0, seed=0)
    early = Classifier("gaptron", classes=[False, True], norm=20.0, seed=0, n_features=100)
    for x, y in stream:
        assert late.predict_one(x) == early.predict_one(x)
        late.learn_one(x, y)
        early.learn_one(x, y)
    assert late.names == early.names and len(late.names) > 64
    width = late.learner.problem.n_features
    assert width == 128 and early.learner.problem.n_features == 101
    np.testing.assert_allclose(late.learner.weights[:, :101], early.learner.weights, rtol=1e-9, atol=1e-12)
    assert (late.learner.weights[:, len(late.names) + 1 :] == 0).all()


def test_labels_may_appear_at_any_time():
    model = Classifier("perceptron")
    assert model.predict_one({"a": 1.0}) is False and model.learner is None
    model.learn_one({"a": 1.0}, "ant")
    assert model.predict_one({"a": 1.0}) == "ant" and model.learner is None  # nothing to choose, nothing learned
    model.learn_one({"b": 1.0}, "bee")
    model.learn_one({"c": 1.0}, "cat")
    assert model.learner.classes == ("ant", "bee", "cat") and model.learner.rounds == 2
    for _ in range(5):
        for name, label in (("a", "ant"), ("b", "bee"), ("c", "cat")):
            model.learn_one({name: 1.0}, label)
    assert [model.predict_one({name: 1.0}) for name in "abc"] == ["ant", "bee", "cat"]


def test_first_probabilities():
    model = Classifier()
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    model.learn_one({"a": 1.0}, "ant")
    assert model.predict_proba_one({"a": 1.0}) == {"ant": 1.0}
    assert Classifier(classes="xyz").predict_proba_one({}) == pytest.approx(dict.fromkeys("xyz", 1 / 3))


def test_predicting_changes_nothing():
    model = Classifier(feedback="bandit", seed=0)
    for x, y in zip(DICTS[:30], WORDS[:30]):
        model.learn_one(x, y)
    before = portrait(model.learner), model.names
    stranger = {"x1": 1.0, **{f"new{n}": 5.0 for n in range(50)}}
    assert model.predict_one(stranger) == model.predict_one({"x1": 1.0})
    model.playing_distribution_one(stranger)
    assert (portrait(model.learner), model.names) == before


def test_zeros_and_numpy_numbers_and_truths():
    model = Classifier("perceptron", seed=0)
    model.learn_one({"a": np.float32(1.0), "b": 0, "c": True}, np.bool_(True))
    model.learn_one({"a": np.float32(-1.0), "b": 0, "c": True}, np.bool_(False))
    assert model.names == ("a", "c")
    assert type(model.predict_one({"a": 1})) is bool


@pytest.mark.parametrize(
    "x, y, error, words",
    [
        ({"x0": "red"}, "ant", InputError, "feature 'x0' is 'red', not a number"),
        ({"x0": "3.5"}, "ant", InputError, "feature 'x0' is '3.5', not a number"),
        ({"x0": None}, "ant", InputError, "'x0' is None"),
        ({"x0": float("nan")}, "ant", InputError, "'x0' is nan"),
        ({"x0": [1.0]}, "ant", InputError, "not a number"),
        ({"x0": 1.0}, None, InputError, "label None is not one of"),
        ({"x0": 1.0}, float("nan"), InputError, "label nan is not one of"),
        ({"new": 1.0, "x0": 9.0}, "dog", InputError, "row of norm|norm 9"),
    ],
)
def test_a_refused_round_changes_nothing(x, y, error, words):
    model = Classifier("gaptron", norm=3.0, seed=0)
    for pair in zip(DICTS[:20], WORDS[:20]):
        model.learn_one(*pair)
    before = portrait(model.learner), model.names, model._labels
    with pytest.raises(error, match=words):
        model.learn_one(x, y)
    assert (portrait(model.learner), model.names, model._labels) == before


def test_declared_labels_and_widths_hold():
    model = Classifier("perceptron", classes=["ant", "bee"], n_features=2)
    model.learn_one({"a": 1.0, "b": 1.0}, "bee")
    with pytest.raises(InputError, match="label 'cat' is not one of the classes"):
        model.learn_one({"a": 1.0}, "cat")
    with pytest.raises(InputError, match="feature 'c' exceeds n_features=2"):
        model.learn_one({"c": 1.0, "a": 1.0}, "ant")
    assert model.names == ("a", "b")


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [name for name in NAMES if not load(name).CARD.growth.possible])
def test_mixtures_need_their_labels_and_width_beforehand(name):
    model = Classifier(name, feedback=load(name).CARD.feedback[0].word, **NEEDS)
    model.learn_one({"a": 0.1}, "ant")
    model.learn_one({"a": 0.1}, "bee")
    with pytest.raises(SettingError, match=rf"{name} cannot grow.*classes="):
        model.learn_one({"a": 0.1}, "cat")
    with pytest.raises(SettingError, match=rf"{name} cannot grow.*n_features="):
        model.learn_one({f"x{n}": 0.1 for n in range(20)}, "ant")
    assert model.learner.classes == ("ant", "bee") and model.names == ("a",)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"algorithm": "magic"}, "unknown algorithm 'magic'"),
        ({"classes": ["one"]}, "at least two classes"),
        ({"n_features": 0}, "n_features=0 must be"),
        ({"n_features": "ten"}, "n_features='ten' must be"),
        ({"settings": {"classes": [1, 2]}}, "'classes' is a parameter of the estimator"),
        ({"settings": {"eta": 2.0}}, "has no setting 'eta'"),
    ],
)
def test_wrong_parameters_are_named_at_once(given, words):
    with pytest.raises(SettingError, match=words):
        Classifier(**{"algorithm": "perceptron", **given})


def test_an_algorithm_that_needs_a_norm_asks_for_it():
    model = Classifier("gaptron", classes=["ant", "bee"])
    with pytest.raises(SettingError, match="needs norm="):
        model.learn_one({"a": 1.0}, "ant")


# --- as a contextual bandit ---------------------------------------------------------------------------------


def test_feedback_may_come_later_and_after_new_features():
    model = Classifier("perceptron", classes=["ant", "bee"], seed=0)
    first = model.decide_one({"a": 1.0})
    for n in range(40):  # two doublings later
        model.learn_one({f"w{n}": 1.0}, "ant")
    model.learn_decision(first, label="bee" if first.label == "ant" else "ant")
    assert model.learner.rounds == 41
    assert model.predict_one({"a": 1.0}) != first.label
    with pytest.raises(DecisionError, match="learned from already"):
        model.learn_decision(first, label="ant")


def test_labels_may_be_unavailable_and_rewards_fractional():
    model = Classifier("squarecb", classes=["ant", "bee", "cow"], feedback="bandit", seed=0, norm=2.0)
    decision = model.decide_one({"a": 1.0}, available=["bee", "cow"])
    assert decision.distribution.tolist() == [0.0, 0.5, 0.5]
    model.learn_decision(decision, reward=0.5)
    assert model.learner.rounds == 1 and model.learner.weights.max() > 0


def test_new_labels_end_pending_decisions():
    model = Classifier("perceptron")
    for label in ("ant", "bee"):
        model.learn_one({"a": 1.0}, label)
    waiting = model.decide_one({"a": 1.0})
    model.learn_one({"b": 1.0}, "cat")
    with pytest.raises(DecisionError, match="labels were added after round 2"):
        model.learn_decision(waiting, label="ant")


def test_a_bandit_learns_from_yes_and_no():
    model = Classifier(classes=["ant", "bee", "cat"], feedback="bandit", seed=0)
    right = 0
    for x, y in itertools.islice(itertools.cycle(zip(DICTS, WORDS)), 600):
        decision = model.decide_one(x)
        assert decision.propensity == decision.distribution[model.learner.classes.index(decision.label)]
        model.learn_decision(decision, correct=decision.label == y)
        right += decision.label == y
    assert right > 300
    with pytest.raises(DecisionError, match="bandit feedback"):
        model.learn_decision(model.decide_one(DICTS[0]), label="ant")


def test_nothing_can_be_decided_without_labels():
    for ask in (Classifier().decide_one, Classifier().playing_distribution_one):
        with pytest.raises(DecisionError, match="give classes="):
            ask({"a": 1.0})


def test_a_graph_reveals_its_edges_only():
    model = Classifier("gappletron", classes=["open", "bin"], feedback=[[1, 1], [0, 0]], norm=2.0, seed=0)
    for _ in range(20):
        model.learn_one({"spam": 1.0}, "bin")
    assert model.learner.rounds == 20 and model.learner.problem.feedback is Feedback.GRAPH
    assert model.predict_one({"spam": 1.0}) == "bin"


# --- River's tools ------------------------------------------------------------------------------------------


def test_progressive_validation_and_pipelines():
    model = preprocessing.StandardScaler() | Classifier(seed=0)
    accuracy = evaluate.progressive_val_score(datasets.ImageSegments().take(600), model, metrics.Accuracy())
    assert accuracy.get() > 0.5
    assert accuracy.cm.n_samples == 600  # every round counts, the first one too
    scored = metrics.ROCAUC() + metrics.LogLoss()
    evaluate.progressive_val_score(datasets.Phishing().take(600), model.clone(), scored)
    assert scored[0].get() > 0.9 and scored[1].get() < 0.5


def test_strings_missing_values_and_scales_are_encoded_by_the_same_encoder():
    rng = np.random.default_rng(0)
    rows = [
        {"device": str(rng.choice(["phone", "tablet"])), "age": None if t % 7 == 0 else float(rng.normal(1e6, 10))}
        for t in range(300)
    ]
    labels = ["yes" if x["device"] == "phone" else "no" for x in rows]
    model = Classifier("gaptron", classes=["no", "yes"], features="auto", seed=0)
    learner = Learner("gaptron", classes=["no", "yes"], features="auto", seed=0)
    learner.play(rows, labels)
    wrong = 0
    for x, y in zip(rows, labels):
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
    assert wrong < 10
    assert np.array_equal(model.learner.weights, learner.weights)
    assert model.names == ("device", "age")
    assert model.predict_proba_one({"device": "watch"}).keys() == {"no", "yes"}
