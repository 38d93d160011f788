"""OnlineClassifier: scikit-learn's own checks, every algorithm by name, and labels that come later."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import parametrize_with_checks

from gaptron import Learner, OnlineClassifier
from gaptron.adapters.sklearn import SEEDS
from gaptron.algorithms import NAMES, load
from gaptron.errors import InputError, SettingError
from gaptron.learner import DEFAULT
from gaptron.types import Feedback, Loss
from tests.algorithms.variants import traits_of
from tests.conftest import noisy_stream, portrait, separable_stream

X, Y, _ = noisy_stream(150)
WORDS = np.array(["ant", "bee", "cat"])[Y]
NEEDS = {"radius": 1.0}  # what some algorithms cannot do without; `fit` knows the norm and the horizon


@pytest.mark.sample(40)
@pytest.mark.xdist_group(NAMES[DEFAULT])
@parametrize_with_checks(
    [
        OnlineClassifier(),
        OnlineClassifier("gaptron", loss="hinge"),
        OnlineClassifier("perceptron"),
        OnlineClassifier(feedback="bandit"),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


# --- every algorithm ----------------------------------------------------------------------------------------


EVERY = [  # where all tests of one algorithm run in one process, it is compiled once
    pytest.param(name, told.word, marks=pytest.mark.xdist_group(NAMES[name]))
    for name in NAMES
    for told in load(name).CARD.feedback
    if told is not Feedback.GRAPH
]


@pytest.mark.parametrize("name, feedback", EVERY)
def test_every_algorithm_fits_and_predicts(name, feedback):
    keep = WORDS != "cat" if load(name).CARD.most_classes == 2 else slice(None)
    rows, labels = X[keep], WORDS[keep]
    model = OnlineClassifier(name, feedback=feedback, epochs=2, random_state=0, **NEEDS).fit(rows, labels)
    assert model.classes_.tolist() == sorted(set(labels))
    assert model.t_ == 2 * len(rows) and model.n_iter_ == 2
    predicted = model.predict(rows)
    np.testing.assert_array_equal(clone(model).fit(rows, labels).predict(rows), predicted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(rows), predicted)
    scores = model.decision_function(rows)
    n = len(model.classes_)
    assert scores.shape == ((len(rows),) if n == 2 else (len(rows), n))
    top = (scores > 0).astype(int) if n == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[top], predicted)
    np.testing.assert_allclose(model.playing_distribution(rows).sum(axis=1), 1.0)
    if not load(name).CARD.linear:
        assert not hasattr(model, "coef_") and not hasattr(model, "intercept_")
    elif "own row" not in traits_of(name):
        linear = rows @ model.coef_.T + model.intercept_
        linear = linear[:, 0] if n == 2 else linear
        if n > 2:  # one number for all labels of a row changes nothing
            linear, scores = linear - linear[:, :1], scores - scores[:, :1]
        np.testing.assert_allclose(linear, scores, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name, feedback", EVERY)
def test_probabilities_are_there_where_they_mean_something(name, feedback):
    file = load(name)
    for loss in file.CARD.losses:
        model = OnlineClassifier(name, feedback=feedback, loss=loss.word, **NEEDS)
        assert hasattr(model, "predict_proba") == (loss is Loss.LOGISTIC and feedback == "full")
        assert hasattr(model, "predict_log_proba") == hasattr(model, "predict_proba")
    assert not hasattr(OnlineClassifier(feedback=np.eye(3, dtype=bool)), "predict_proba")
    assert not hasattr(OnlineClassifier("magic"), "predict_proba")


@pytest.mark.parametrize("name", ["frugal-gaptron", "softmax"])
def test_probabilities_are_better_than_none(name):
    model = OnlineClassifier(name, random_state=0).fit(X[:100], WORDS[:100])
    propensities = model.predict_proba(X[100:])
    np.testing.assert_allclose(propensities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(propensities), model.predict_log_proba(X[100:]))
    assert log_loss(WORDS[100:], propensities, labels=model.classes_) < 0.8 * np.log(3)


# --- what fit and partial_fit do ----------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "csr_matrix", "csr_array"])
def test_fit_plays_the_learner(rows):
    model = OnlineClassifier("gaptron", epochs=2, shuffle=False, random_state=0).fit(rows(X), WORDS)
    learner = Learner("gaptron", classes=["ant", "bee", "cat"])
    constant = np.hstack([X, np.ones((len(X), 1))])
    first, second = learner.play(constant, WORDS), learner.play(constant, WORDS)
    np.testing.assert_allclose(np.c_[model.coef_, model.intercept_], learner.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.predict(rows(X)), learner.predict(constant))
    assert model.learner_.problem.horizon == 300
    assert first.rounds + second.rounds == model.t_
    bare = OnlineClassifier("gaptron", fit_intercept=False, random_state=0).fit(rows(X), WORDS)
    assert bare.coef_.shape == (3, 6) and (bare.intercept_ == 0).all()


def test_batches_are_one_stream():
    whole = OnlineClassifier(epochs=1, shuffle=False, random_state=0).fit(X, WORDS)
    parts = OnlineClassifier(random_state=0)
    for start in range(0, len(X), 40):
        parts.partial_fit(X[start : start + 40], WORDS[start : start + 40], classes=["cat", "ant", "bee"])
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-9)
    assert parts.t_ == whole.t_ == 150 and parts.n_iter_ == 4
    assert parts.classes_.tolist() == ["ant", "bee", "cat"]
    assert 0 < parts.mistakes_ < 150
    again = copy.deepcopy(whole).partial_fit(X, WORDS)  # after fit it goes on
    assert again.t_ == 300


def test_shuffling_depends_on_random_state_alone():
    fits = [OnlineClassifier("perceptron", random_state=seed).fit(X, WORDS).coef_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])
    still = [OnlineClassifier("perceptron", shuffle=False, random_state=s).fit(X, WORDS).coef_ for s in (0, 1)]
    np.testing.assert_array_equal(*still)


def test_a_bandit_learns_only_whether_it_was_correct():
    clean = separable_stream(400)
    model = OnlineClassifier(feedback="bandit", epochs=1, shuffle=False, random_state=0).fit(clean.X, clean.y)
    assert model.learner_.problem.feedback is Feedback.BANDIT
    assert 0 < model.mistakes_ < 200
    # A truth that was not guessed may be any other label that was not guessed: nothing changes.
    rows = np.hstack([clean.X, np.ones((400, 1))])
    again = Learner(
        model.algorithm, classes=[0, 1, 2], feedback="bandit", seed=np.random.RandomState(0).randint(2**31 - 1)
    )
    trace = again.play(rows, clean.y)
    other = np.where(trace.wrong, 3 - trace.codes - clean.y, clean.y)
    swapped = OnlineClassifier(feedback="bandit", epochs=1, shuffle=False, random_state=0).fit(clean.X, other)
    np.testing.assert_array_equal(model.decision_function(clean.X), swapped.decision_function(clean.X))


# --- labels that come later ---------------------------------------------------------------------------------


def test_labels_may_come_later_and_stand_in_their_order():
    model = OnlineClassifier("perceptron", random_state=0)
    ants, bees, cats = (np.flatnonzero(WORDS == word) for word in ("ant", "bee", "cat"))
    model.partial_fit(X[cats], WORDS[cats])
    assert model.classes_.tolist() == ["cat"] and model.t_ == 0 and model.learner_ is None
    assert set(model.predict(X)) == {"cat"} and model.decision_function(X).shape == (150, 1)
    np.testing.assert_array_equal(model.playing_distribution(X), np.ones((150, 1)))
    assert model.coef_.shape == (1, 6) and model.intercept_.shape == (1,)
    both = np.sort(np.r_[ants, cats])
    model.partial_fit(X[both], WORDS[both])
    assert model.classes_.tolist() == ["ant", "cat"]
    before = model.learner_.weights
    one = bees[:1]
    model.partial_fit(X[one], WORDS[one])
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    row = np.r_[X[one[0]], 1.0]
    wrong = before @ row  # the perceptron's update by hand: "bee" had weight zero and was taken for the best
    want = np.array([before[0], 0 * row, before[1]])
    if wrong.max() >= 0.0:
        want[[0, 2][wrong.argmax()]] -= row
        want[1] += row
    np.testing.assert_allclose(model.coef_, want[:, :-1], rtol=1e-12)
    for _ in range(5):
        model.partial_fit(X, WORDS)
    assert model.score(X, WORDS) > 0.6


def snapshot(model):
    return portrait(model.learner_), model.classes_.tolist(), model.n_iter_, model.mistakes_


@pytest.mark.parametrize(
    "name, first, second, words",
    [
        ("perceptron", {"classes": ["ant", "bee"]}, {}, "'cat' is not one of the classes.*given in the first call"),
        ("perceptron", {}, {"classes": ["ant", "bee", "cat"]}, "differ from the known ones"),
        ("aioli", {}, {}, "at most 2 classes, not 3"),
        ("aggregating", {}, {}, "cannot grow.*classes="),
        ("gaptron", {}, {"times": 100}, "norm .* measured on the first play: give a larger norm"),
    ],
)
def test_a_refused_batch_changes_nothing(name, first, second, words):
    model = OnlineClassifier(name, random_state=0, **NEEDS)
    two = WORDS != "cat"
    times = second.pop("times", 1)
    model.partial_fit(X[two], WORDS[two], **first)
    before = snapshot(model)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(X * times, WORDS, **second)
    assert snapshot(model) == before
    model.partial_fit(X[two], WORDS[two])


def test_words_cannot_join_numbers():
    model = OnlineClassifier("perceptron").partial_fit(X, Y)
    before = snapshot(model)
    with pytest.raises(InputError, match=r"label '\w+' has another type than the known labels: \[0, 1, 2\]"):
        model.partial_fit(X, WORDS)
    assert snapshot(model) == before


def test_longer_rows_later():
    """Three remedies for algorithms that need a norm."""
    promised = OnlineClassifier("gaptron", norm=100.0)
    promised.partial_fit(X, WORDS).partial_fit(50 * X, WORDS)
    assert promised.learner_.problem.norm == pytest.approx(np.hypot(100.0, 1.0))
    scaled = make_pipeline(Normalizer(), OnlineClassifier("gaptron"))
    scaled[-1].partial_fit(scaled[0].transform(X), WORDS)
    scaled[-1].partial_fit(scaled[0].transform(50 * X), WORDS)
    OnlineClassifier("frugal-gaptron").partial_fit(X, WORDS).partial_fit(50 * X, WORDS)


# --- scikit-learn's tools -----------------------------------------------------------------------------------


def test_pipelines_searches_and_scores():
    model = make_pipeline(StandardScaler(), OnlineClassifier("perceptron", random_state=0))
    assert cross_val_score(model, X, WORDS, cv=3).mean() > 0.6
    grid = {
        "onlineclassifier__epochs": [1, 3],
        "onlineclassifier__settings": [None, {"update": "uniform"}],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, WORDS)
    assert search.best_score_ > 0.6 and len(search.cv_results_["params"]) == 4
    assert "OnlineClassifier" in estimator_html_repr(search)
    assert cross_val_score(OnlineClassifier(random_state=0), X, WORDS, cv=3, scoring="roc_auc_ovr").mean() > 0.7


def test_classes_can_be_routed():
    with config_context(enable_metadata_routing=True):
        model = OnlineClassifier().set_partial_fit_request(classes=True)
    assert model.get_metadata_routing().partial_fit.requests == {
        "classes": True,
        "rewards": None,
        "sample_weight": None,
    }


def test_feature_names_are_kept():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: no table with named columns")
    table = pandas.DataFrame(X, columns=list("abcdef"))
    model = OnlineClassifier("perceptron").fit(table, WORDS)
    assert model.feature_names_in_.tolist() == list("abcdef") and model.n_features_in_ == 6
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[list("fedcba")])


@pytest.mark.parametrize(
    "given, words",
    [
        ({"algorithm": "magic"}, "unknown algorithm 'magic'; available"),
        ({"epochs": 0}, "epochs=0 must be an integer"),
        ({"epochs": 1.5}, "epochs=1.5 must be an integer"),
        ({"settings": ["eta"]}, "must be a dictionary"),
        ({"settings": {"norm": 3.0}}, "'norm' is a parameter of the estimator"),
        ({"settings": {"seed": 3}}, "'seed' is a parameter of the estimator"),
        ({"settings": {"eta": 3.0}}, "perceptron has no setting 'eta'; it has: update"),
        ({"norm": -1.0}, "norm=-1.0 must be a positive number"),
        ({"norm": "long"}, "norm='long' must be a number"),
        ({"feedback": "bandit"}, "perceptron takes feedback full, not bandit"),
    ],
)
def test_wrong_parameters_are_named_by_fit(given, words):
    model = OnlineClassifier(**{"algorithm": "perceptron", **given})
    for learn in (model.fit, model.partial_fit):
        if "epochs" in given and learn == model.partial_fit:
            continue
        with pytest.raises(SettingError, match=words):
            learn(X, WORDS)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_weight_is_a_number_of_times():
    times = np.arange(len(X)) % 3
    weighted = OnlineClassifier(random_state=0).partial_fit(X, WORDS, ["ant", "bee", "cat"], times)
    repeated = OnlineClassifier(random_state=0)
    repeated.partial_fit(np.repeat(X, times, axis=0), np.repeat(WORDS, times), ["ant", "bee", "cat"])
    assert weighted.t_ == times.sum()
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    before = weighted.decision_function(X)
    for bad, words in ((times[:-1], "150 rows"), (times - 1, "integers"), (times + 0.5, "integers")):
        with pytest.raises(InputError, match=words):
            weighted.partial_fit(X, WORDS, sample_weight=bad)
    np.testing.assert_array_equal(weighted.decision_function(X), before)


def test_rewards_are_those_of_play():
    reward = np.random.default_rng(0).choice([0.0, 0.25, 1.0], len(X))
    given = {"algorithm": "squarecb", "feedback": "bandit", "norm": 3.0, "fit_intercept": False, "random_state": 0}
    model = OnlineClassifier(**given).partial_fit(X[:100], WORDS[:100], ["ant", "bee", "cat"], rewards=reward[:100])
    model.partial_fit(X[100:], WORDS[100:], rewards=reward[100:].tolist())
    plain = OnlineClassifier(**given).partial_fit(X, WORDS, ["ant", "bee", "cat"])
    seed = int(np.random.RandomState(0).randint(SEEDS))
    learner = Learner("squarecb", classes=["ant", "bee", "cat"], feedback="bandit", norm=3.0, seed=seed)
    trace = learner.play(X, WORDS, rewards=reward)
    np.testing.assert_array_equal(model.decision_function(X), learner.scores(X))
    assert model.mistakes_ == trace.mistakes
    assert (model.decision_function(X) != plain.decision_function(X)).any()
    times = np.arange(len(X)) % 3
    weighted, repeated = OnlineClassifier(**given), OnlineClassifier(**given)
    weighted.partial_fit(X, WORDS, sample_weight=times, rewards=reward)
    repeated.partial_fit(np.repeat(X, times, axis=0), np.repeat(WORDS, times), rewards=np.repeat(reward, times))
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    before = model.decision_function(X)
    for bad, words in ((reward[:-1], "each of 150 rounds"), (reward + 1.0, "between 0"), (["much"] * 150, "a number")):
        with pytest.raises(InputError, match=words):
            model.partial_fit(X, WORDS, rewards=bad)
        with pytest.raises(InputError, match=words):
            clone(model).fit(X, WORDS, rewards=bad)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_fit_takes_the_rewards_along_in_every_order():
    reward = np.random.default_rng(1).choice([0.0, 0.25, 1.0], len(X))
    model = OnlineClassifier("squarecb", feedback="bandit", epochs=2, random_state=0).fit(X, WORDS, rewards=reward)
    rng, rows = np.random.RandomState(0), np.column_stack([X, np.ones(len(X))])
    known = {"classes": ["ant", "bee", "cat"], "feedback": "bandit", "horizon": 2 * len(X)}
    learner = Learner("squarecb", **known, seed=int(rng.randint(SEEDS)))
    for _ in range(2):
        order = rng.permutation(len(X))
        learner.play(rows[order], WORDS[order], rewards=reward[order])
    np.testing.assert_array_equal(model.decision_function(X), learner.scores(rows))


def test_full_information_has_no_rewards():
    for model in (OnlineClassifier("perceptron"), OnlineClassifier("softmax")):
        for learn in (model.fit, model.partial_fit):
            with pytest.raises(InputError, match="feedback='bandit'"):
                learn(X, WORDS, rewards=np.ones(len(X)))
    with pytest.raises(InputError, match="newtron cannot learn from rewards between 0 and 1"):
        OnlineClassifier("newtron", feedback="bandit", **NEEDS).fit(X, WORDS, rewards=np.full(len(X), 0.5))


@pytest.mark.parametrize("value", [np.nan, "tablet"])
def test_missing_values_and_words_name_the_remedy(value):
    table = X.astype(object)
    table[3, 1] = value
    model = OnlineClassifier("softmax")
    for call in (lambda: model.fit(table, WORDS), lambda: model.partial_fit(table, WORDS)):
        with pytest.raises(InputError, match=r'OnlineClassifier\(features="auto"\) takes'):
            call()
    model.fit(X, WORDS)
    with pytest.raises(InputError, match=r'OnlineClassifier\(features="auto"\) takes'):
        model.predict(table)


def test_a_table_by_name_keeps_its_names_and_warns_of_missing_columns():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: no table with named columns")
    table = pandas.DataFrame({"device": ["phone", None, "tablet"] * 9, "age": [31.0, 25.0, None] * 9})
    model = OnlineClassifier("softmax", features="auto", random_state=0).fit(table, ["a", "b", "c"] * 9)
    assert model.feature_names_in_.tolist() == ["device", "age"] and model.n_features_in_ == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turned = model.predict(table[["age", "device"]])
        assert (turned == model.predict(table)).all()
        model.predict(table.to_dict("records"))
    with pytest.warns(UserWarning, match="X does not have the columns age, which count as missing"):
        model.predict(table[["device"]])
    wider = table.assign(country="FR")
    model.partial_fit(wider, ["a", "b", "c"] * 9)
    with pytest.raises(ValueError, match="27 rows"):
        model.partial_fit(wider.assign(city="Lyon"), ["a", "b"])
    assert model.feature_names_in_.tolist() == ["device", "age", "country"]
    with pytest.warns(UserWarning, match="columns country"):
        model.predict_proba(table)
    assert model.fit(table[["age"]], ["a", "b", "c"] * 9).feature_names_in_.tolist() == ["age"]


def test_unsupported_arguments_are_refused():
    with pytest.raises(TypeError, match=r"does not take sample_weight.*partial_fit"):
        OnlineClassifier().fit(X, WORDS, sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match="class_weight"):
        OnlineClassifier().fit(X, WORDS, class_weight="balanced")
    with pytest.raises(TypeError, match="class_weight"):
        OnlineClassifier(class_weight="balanced")
    with pytest.raises(NotFittedError):
        _ = OnlineClassifier().t_
    assert not hasattr(OnlineClassifier(), "coef_")
    kernel = OnlineClassifier("separable", feedback="bandit", settings={"kernel": True, "support": 20})
    assert not hasattr(kernel.fit(X, WORDS), "coef_")
    with pytest.raises(SettingError, match="graph on 3 classes"):
        OnlineClassifier("gappletron", feedback=np.ones((2, 2), dtype=bool), radius=1.0).fit(X, WORDS)
