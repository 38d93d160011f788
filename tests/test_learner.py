"""The Learner at its front door: what it takes, what it refuses, and that a refusal changes nothing."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron.algorithms import NAMES
from gaptron.data.labels import EncodedLabels
from gaptron.errors import DecisionError, InputError, NoBoundError, SettingError
from tests.conftest import KINDS, portrait, random_stream, separable_stream

X, Y, K = random_stream(80)


def make(algorithm="gaptron", feedback="full", **more):
    given = {"norm": 3.0, "radius": 1.0, "horizon": 100, "n_classes": K, "seed": 5, **more}
    return gaptron.Learner(algorithm, feedback=feedback, **given)


def started(**more):
    learner = make(**more)
    learner.play(X[:40], Y[:40])
    return learner


def unharmed(learner, before):
    """As it was, and going on as a twin does that was never asked anything wrong."""
    assert portrait(learner) == before
    twin = started(feedback=learner.problem.feedback.word)
    one, two = learner.play(X[40:], Y[40:]), twin.play(X[40:], Y[40:])
    np.testing.assert_array_equal(one.codes, two.codes)
    np.testing.assert_array_equal(learner.weights, twin.weights)


def spoiled(value, at=(3, 2)):
    bad = X.copy()
    bad[at] = value
    return bad


def damaged_csr():
    bad = sp.csr_matrix(X)
    bad.indices[4] = 6
    return bad


def negative_csr():
    bad = sp.csr_matrix(X)
    bad.indices[4] = -1
    return bad


def broken_pointers():
    bad = sp.csr_matrix(X)
    bad.indptr[5] = bad.indptr[3] - 1
    return bad


BAD_PLAYS = {
    "nan": (lambda: (spoiled(np.nan), Y), "row 3 .*NaN"),
    "inf": (lambda: (spoiled(np.inf), Y), "row 3 .*infinity"),
    "too-large-to-square": (
        lambda: (spoiled(1e200), Y),
        "row 3 of X has norm 1e\\+200; a row must be zero or have a norm between",
    ),
    "nan-in-csr": (lambda: (sp.csr_matrix(spoiled(np.nan)), Y), "row 3"),
    "nan-in-float32": (lambda: (spoiled(np.nan).astype(np.float32), Y), "row 3"),
    "too-narrow": (lambda: (X[:, :5], Y), "5 columns.*6 features"),
    "too-wide-csr": (lambda: (sp.csr_matrix(np.hstack([X, X])), Y), "12 columns.*6 features"),
    "no-columns": (lambda: (X[:, :0], Y), "0 columns|no columns"),
    "one-dimension": (lambda: (X[0], Y), "two dimensions"),
    "three-dimensions": (lambda: (X[None], Y), "two dimensions"),
    "ragged": (lambda: ([[1, 2], [3]], [0, 1]), "rectangular|numbers"),
    "words": (lambda: ([["a"] * 6], [0]), "not numbers"),
    "complex": (lambda: (X.astype(complex), Y), "complex"),
    "above-the-promised-norm": (lambda: (100 * X, Y), "above the norm 3 given"),
    "label-too-large": (lambda: (X, np.where(np.arange(80) == 7, K, Y)), f"row 7.*{K} is not one of the {K} classes"),
    "label-negative": (lambda: (X, np.where(np.arange(80) == 7, -1, Y)), "row 7.*-1 is not one of"),
    "label-none": (lambda: (X, [*Y[:7].tolist(), None, *Y[8:].tolist()]), "row 7.*missing"),
    "label-nan": (lambda: (X, np.where(np.arange(80) == 7, np.nan, Y)), "row 7.*missing"),
    "label-half": (lambda: (X, Y + 0.5), "row 0.*not one of"),
    "label-word": (lambda: (X, ["cat"] * 80), "row 0.*'cat' is not one of"),
    "labels-short": (lambda: (X, Y[:-1]), "80 rows.*79 labels"),
    "labels-2d": (lambda: (X, Y[:, None]), "one dimension"),
    "damaged-csr": (lambda: (damaged_csr(), Y), "damaged"),
    "negative-index": (lambda: (negative_csr(), Y), "damaged"),
    "broken-row-pointers": (lambda: (broken_pointers(), Y), "damaged"),
}


@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize("case", BAD_PLAYS)
def test_bad_data_is_refused_and_changes_nothing(case, feedback):
    data, message = BAD_PLAYS[case]
    learner = started(feedback=feedback)
    before = portrait(learner)
    with pytest.raises(InputError, match=message):
        learner.play(*data())
    unharmed(learner, before)


@pytest.mark.parametrize("case", BAD_PLAYS)
def test_bad_data_in_the_first_call_leaves_a_fresh_learner(case):
    data, message = BAD_PLAYS[case]
    learner = make(n_features=6)
    before = portrait(learner)
    with pytest.raises(InputError, match=message):
        learner.play(*data())
    assert portrait(learner) == before
    np.testing.assert_array_equal(learner.play(X, Y).codes, make(n_features=6).play(X, Y).codes)


BAD_ROWS = {
    "nan": ([np.nan] * 6, "NaN"),
    "inf": ([np.inf] * 6, "infinity"),
    "too-narrow": ([1.0] * 5, "5 columns"),
    "a-matrix": (X[:2], "one row"),
    "a-number": (1.0, "one row"),
    "words": (["a"] * 6, "numbers"),
    "two-sparse-rows": (sp.csr_matrix(X[:2]), "one row"),
    "too-long": ([2.0] * 6, "above the norm 3"),
    "nothing": (None, "row|number"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_refused_and_changes_nothing(case):
    x, message = BAD_ROWS[case]
    learner = started()
    before = portrait(learner)
    with pytest.raises(InputError, match=message):
        learner.decide(x)
    unharmed(learner, before)


@pytest.mark.parametrize("look", ["predict", "scores", "distribution"])
def test_looking_refuses_bad_rows_but_not_long_ones(look):
    learner = started()
    with pytest.raises(InputError, match="row 3"):
        getattr(learner, look)(spoiled(np.nan))
    with pytest.raises(InputError, match="5 columns"):
        getattr(learner, look)(X[:, :5])
    assert len(getattr(learner, look)(100 * X)) == 80


# --- decisions ------------------------------------------------------------------------------------------------


def test_a_decision_gets_feedback_once():
    learner = started()
    decision = learner.decide(X[40])
    learner.learn(decision, label=1)
    before = portrait(learner)
    with pytest.raises(DecisionError, match=r"round 41 .*already"):
        learner.learn(decision, label=1)
    assert portrait(learner) == before


def test_a_decision_gets_feedback_through_its_own_learner():
    mine, other = started(), started()
    decision = other.decide(X[40])
    before = portrait(mine)
    with pytest.raises(DecisionError, match="another learner"):
        mine.learn(decision, label=0)
    unharmed(mine, before)


@pytest.mark.parametrize(
    "feedback, answer, error",
    [
        ("full", {}, DecisionError),
        ("full", {"correct": True}, DecisionError),
        ("full", {"label": 1, "correct": True}, DecisionError),
        ("full", {"label": 99}, InputError),
        ("full", {"label": "cat"}, InputError),
        ("full", {"label": math.nan}, InputError),
        ("full", {"label": [1, 2]}, InputError),
        ("full", {"label": np.array([1, 2])}, InputError),
        ("bandit", {}, DecisionError),
        ("bandit", {"label": 1}, DecisionError),
        ("bandit", {"label": 1, "correct": True}, DecisionError),
        ("bandit", {"correct": 2}, DecisionError),
        ("bandit", {"correct": 0.5}, DecisionError),
        ("bandit", {"correct": "yes"}, DecisionError),
    ],
)
def test_feedback_of_the_wrong_kind_changes_nothing_and_can_be_corrected(feedback, answer, error):
    learner, twin = started(feedback=feedback), started(feedback=feedback)
    decision, same = learner.decide(X[40]), twin.decide(X[40])
    before = portrait(learner)
    with pytest.raises(error):
        learner.learn(decision, **answer)
    assert portrait(learner) == before
    right = {"label": 2} if feedback == "full" else {"correct": True}
    learner.learn(decision, **right), twin.learn(same, **right)
    assert portrait(learner) == portrait(twin)


def test_a_numpy_bool_is_a_bool():
    learner = started(feedback="bandit")
    learner.learn(learner.decide(X[40]), correct=np.bool_(True))
    assert learner.rounds == 41


def test_a_decision_shows_label_probability_distribution_and_round():
    learner = make()
    decision = learner.decide(X[0])
    assert decision.label in range(K) and decision.round == 1
    assert decision.distribution.shape == (K,)
    assert decision.propensity == decision.distribution[decision.label]
    assert "distribution" not in repr(decision) and "label" in repr(decision)


def test_a_decision_keeps_its_own_copy_of_the_row():
    x = X[40].copy()
    learner, twin = started(), started()
    decision, same = learner.decide(x), twin.decide(X[40])
    x[:] = 1e9
    learner.learn(decision, label=1), twin.learn(same, label=1)
    np.testing.assert_array_equal(learner.weights, twin.weights)


@pytest.mark.parametrize("late", [0, 3, 20])
def test_late_feedback_is_learned_from_as_if_the_example_were_scored_today(late):
    """With full information it cannot be told from a decision made just before its feedback."""
    learner, twin = started(), started()
    decision = learner.decide(X[40])
    for x, label in zip(X[41 : 41 + late], Y[41 : 41 + late]):
        for one in (learner, twin):
            one.learn(one.decide(x), label=label)
    drawn, before = decision.distribution, (decision.label, decision.propensity)
    learner.learn(decision, label=1)
    twin.learn(twin.decide(X[40]), label=1)
    np.testing.assert_array_equal(learner.weights, twin.weights)
    assert (decision.label, decision.propensity) == before
    np.testing.assert_array_equal(decision.distribution, drawn)  # stays what it was drawn from


def test_late_feedback_is_weighted_by_the_propensity_of_the_draw():
    """Bandit: today's scores, but the probability of the draw."""
    learner = started(algorithm="banditron", feedback="bandit", gamma=0.3)
    waiting = [learner.decide(x) for x in X[40:60]]
    learner.play(X[60:], Y[60:])
    propensities = learner.distribution(X[40:60])
    at, decision = next((t, d) for t, d in enumerate(waiting) if abs(propensities[t, d.label] - d.propensity) > 0.01)
    twin = copy.deepcopy(learner)
    twin.learn_logged(X[40 + at], decision.label, decision.propensity, correct=True)
    learner.learn(decision, correct=True)
    np.testing.assert_array_equal(learner.weights, twin.weights)


@pytest.mark.parametrize("between", ["learned", "played", "logged", "interrupted"])
def test_a_waiting_decision_is_scored_again_after_its_buffers_were_overwritten(between, monkeypatch):
    """A copy has no buffers to reuse: both must learn the same from the last decision."""
    learner = started(algorithm="softmax")
    first, last = learner.decide(X[40]), learner.decide(X[41])
    if between == "learned":
        learner.learn(first, label=1)
    elif between == "played":
        learner.play(X[42:60], Y[42:60])
    elif between == "logged":
        learner.learn_logged(X[42], 0, 0.5, truth=1)
    else:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(learner._engine, "learn", interrupt)
            learner.learn(first, label=1)
    twin = copy.deepcopy(learner)
    learner.learn(last, label=2), twin.learn(twin.pending[42], label=2)
    np.testing.assert_array_equal(learner.weights, twin.weights)
    assert first.round == 41


def interrupt(*_):
    raise KeyboardInterrupt


def test_a_late_answer_with_full_information_keeps_todays_distribution():
    """Gappletron divides by a sum of probabilities, which a probability of another distribution would change."""
    learner = make("gappletron", loss="hinge", radius=5.0)
    waiting = [learner.decide(x) for x in X[:20]]
    learner.play(X[20:], Y[20:])
    today = learner.distribution(X[:20])
    at = next(t for t in range(20) if abs(today[t, waiting[t].label] - waiting[t].propensity) > 0.1)
    twin = copy.deepcopy(learner)
    learner.learn(waiting[at], label=1)
    twin.learn(twin.decide(X[at]), label=1)
    np.testing.assert_array_equal(learner.weights, twin.weights)


# --- construction -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"algorithm": "magic"}, ", ".join(NAMES)),
        ({"feedback": "partial"}, "full, bandit"),
        ({"loss": "squared"}, "logistic, hinge, smooth-hinge"),
        ({"algorithm": "perceptron", "feedback": "bandit"}, "perceptron takes feedback full, not bandit"),
        ({"algorithm": "banditron", "feedback": "full"}, "banditron takes feedback bandit, not full"),
        ({"speed": 3}, "gaptron has no setting 'speed'; it has: eta, gamma, beta, ball"),
        ({"n_classes": None}, "either n_classes=K or classes"),
        ({"classes": ["a", "b"]}, "either n_classes=K or classes"),
        ({"n_classes": 0}, "n_classes=0"),
        ({"n_classes": 1}, "at least two"),
        ({"n_classes": -3}, "n_classes=-3"),
        ({"n_classes": 2.5}, "n_classes=2.5"),
        ({"n_classes": True}, "n_classes=True"),
        ({"n_classes": "many"}, "n_classes='many'"),
        ({"n_classes": math.nan}, "n_classes=nan"),
        ({"n_classes": math.inf}, "n_classes=inf"),
        ({"n_features": 0}, "n_features=0"),
        ({"n_classes": None, "classes": []}, "at least two"),
        ({"n_classes": None, "classes": ["a"]}, "at least two"),
        ({"norm": 0.0}, "norm=0.0"),
        ({"norm": -1.0}, "norm=-1.0"),
        ({"norm": math.nan}, "norm=nan"),
        ({"norm": math.inf}, "norm=inf"),
        ({"norm": "long"}, "norm='long'"),
        ({"radius": 0.0}, "radius=0.0"),
        ({"horizon": 0}, "horizon=0"),
        ({"horizon": 1.5}, "horizon=1.5"),
        ({"eta": "fast"}, "eta='fast'"),
        ({"feedback": "bandit", "radius": None}, "radius=... "),
        ({"feedback": "bandit", "horizon": None}, "horizon=... "),
    ],
)
def test_impossible_learners_say_what_is_possible(arguments, message):
    with pytest.raises(SettingError) as raised:
        make(**arguments)
    assert message in str(raised.value)


def test_classes_twice_is_refused():
    with pytest.raises(InputError, match="twice"):
        make(n_classes=None, classes=["a", "b", "a"])


def test_unhashable_classes_are_refused():
    with pytest.raises(InputError):
        make(n_classes=None, classes=[[1], [2]])


def test_errors_have_the_types_the_tree_says():
    for error in (InputError, SettingError, DecisionError, NoBoundError, gaptron.StreamError):
        assert issubclass(error, gaptron.GaptronError) and issubclass(error, ValueError)
    problem = gaptron.StreamError("a.svm", "bad number", 7)
    assert str(problem) == "a.svm, line 7: bad number" and problem.line == 7


def test_it_tells_what_it_is():
    learner = started()
    assert repr(learner).startswith("Learner('gaptron', n_classes=4, n_features=6, feedback='full', loss='logistic'")
    assert learner.classes == (0, 1, 2, 3) and learner.rounds == 40
    assert learner.problem.n_features == 6


# --- the norm ---------------------------------------------------------------------------------------------------


def test_the_first_play_measures_the_norm():
    learner = make(norm=None)
    assert learner.settings is None
    learner.play(X, Y)
    longest = float(np.linalg.norm(X, axis=1).max())
    assert learner.problem.norm == pytest.approx(longest, rel=1e-12)
    assert learner.settings == make(norm=learner.problem.norm).settings
    before = portrait(learner)
    with pytest.raises(InputError, match="measured on the first play"):
        learner.play(2 * X, Y)
    assert portrait(learner) == before


def test_deciding_first_asks_for_the_norm():
    learner = make(norm=None)
    before = portrait(learner)
    with pytest.raises(SettingError, match=r"norm=\.\.\."):
        learner.decide(X[0])
    assert portrait(learner) == before
    learner.play(X, Y)
    learner.decide(X[0])


def test_looking_before_the_first_round():
    for norm in (None, 3.0):
        learner = make("gaptron", norm=norm, loss="hinge")
        assert not learner.scores(X).any() and not learner.weights.any()
        np.testing.assert_allclose(learner.distribution(sp.csr_matrix(X)), 1 / K)
        assert (learner.predict(X) == 0).all()


@pytest.mark.parametrize("source", KINDS.values(), ids=list(KINDS))
def test_rows_of_unit_norm_keep_a_promise_of_one(source):
    """Whatever float type they were scaled in."""
    unit = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    assert unit.dtype == np.float32
    assert make(norm=1.0).play(source(unit), Y).rounds == 80


def test_a_promise_is_kept_to_rounding_and_no_further():
    for factor, kept in ((1 + 1e-7, True), (1 + 1e-4, False)):
        learner, row = make(norm=1.0), np.eye(6)[:1] * factor
        if kept:
            assert learner.play(row, Y[:1]).rounds == 1
        else:
            with pytest.raises(InputError, match=r"above the norm 1 given"):
                learner.play(row, Y[:1])


# --- empty and odd plays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [None, 3.0])
@pytest.mark.parametrize("empty", [np.zeros((0, 6)), sp.csr_matrix((0, 6))], ids=["dense", "csr"])
def test_an_empty_play_is_an_empty_trace_and_no_harm(empty, norm):
    learner = make(norm=norm)
    trace = learner.play(empty, [])
    assert trace.rounds == trace.mistakes == learner.rounds == 0
    assert trace.expected_mistakes == 0.0 and len(trace.labels) == 0
    assert len(trace.curve.rounds) == 0
    assert learner.predict(empty).shape == (0,)
    np.testing.assert_array_equal(learner.play(X, Y).codes, make(norm=norm).play(X, Y).codes)


def test_zero_rows_first_do_not_measure_a_norm_of_zero():
    learner = make(norm=None)
    with pytest.raises(gaptron.InputError, match="norm="):
        learner.play(np.zeros((3, 6)), [0, 1, 2])
    assert learner.play(X, Y).rounds == 80


@pytest.mark.parametrize(
    "rows",
    [
        lambda: X.tolist(),
        lambda: np.asfortranarray(X),
        lambda: np.hstack([X, X])[:, :6],
        lambda: np.repeat(X, 2, axis=0)[::2],
        lambda: X.astype(object),
        lambda: sp.csc_matrix(X),
        lambda: sp.coo_matrix(X),
        lambda: sp.csr_array(X),
        lambda: sp.lil_matrix(X),
    ],
    ids=["list", "fortran", "slice-of-columns", "every-other-row", "objects", "csc", "coo", "csr-array", "lil"],
)
def test_any_shape_of_the_same_numbers_plays_alike(rows):
    one, two = make(), make()
    expected, got = one.play(X, Y), two.play(rows(), Y)
    np.testing.assert_array_equal(expected.codes, got.codes)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-12)


def test_whole_numbers_and_flags_are_numbers():
    Z = np.random.default_rng(0).integers(-2, 3, size=(50, 4))
    y = np.arange(50) % 3
    want = make(n_classes=3, norm=10.0).play(Z.astype(float), y)
    for kind in (np.int64, np.int8, np.float16):
        np.testing.assert_array_equal(make(n_classes=3, norm=10.0).play(Z.astype(kind), y).codes, want.codes)
    np.testing.assert_array_equal(make(n_classes=3, norm=10.0).play(sp.csr_matrix(Z), y).codes, want.codes)
    make(n_classes=3, norm=10.0).play(Z > 0, y)


def test_duplicate_entries_of_a_csr_add_up():
    rows, cols = np.array([0, 0, 1, 1]), np.array([1, 1, 2, 0])
    twice = sp.csr_matrix((4, 3))
    twice.indptr, twice.indices = np.array([0, 2, 4, 4, 4], np.int32), cols.astype(np.int32)
    twice.data = np.array([1.0, 0.5, 2.0, -1.0])
    twice.has_canonical_format = False
    assert rows.shape == cols.shape
    dense = np.array([[0, 1.5, 0], [-1, 0, 2], [0, 0, 0], [0, 0, 0]])
    one, two = make(n_features=3), make(n_features=3)
    before = twice.data.copy()
    np.testing.assert_array_equal(one.play(dense, [0, 1, 2, 3]).codes, two.play(twice, [0, 1, 2, 3]).codes)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-15)
    np.testing.assert_array_equal(twice.data, before)


@pytest.mark.sample(3)
@pytest.mark.parametrize("first", ["dense64", "dense32", "csr"])
@pytest.mark.parametrize("later", ["dense64", "dense32", "csr"])
def test_rows_may_change_their_kind_on_the_way(first, later):
    mixed, plain = make(), make()
    mixed.play(KINDS[first](X[:40]), Y[:40])
    trace = mixed.play(KINDS[later](X[40:]), Y[40:])
    expected = plain.play(X, Y)
    np.testing.assert_array_equal(trace.codes, expected.codes[40:])
    np.testing.assert_allclose(mixed.weights, plain.weights, atol=1e-12)
    np.testing.assert_allclose(mixed.scores(KINDS[first](X)), mixed.scores(KINDS[later](X)), atol=1e-12)
    decision = mixed.decide(KINDS[later](X)[0])
    np.testing.assert_allclose(decision.distribution, plain.decide(X[0]).distribution, atol=1e-12)


def test_one_sparse_row_and_one_dense_matrix_row():
    answers = []
    for x in (X[0], X[:1], X[0].tolist(), sp.csr_matrix(X[:1]), sp.csr_array(X[:1]), sp.coo_array(X[0])):
        learner = started()
        decision = learner.decide(x)
        answers.append((decision.label, tuple(np.round(decision.distribution, 12))))
    assert len(set(answers)) == 1


def test_blocks_do_not_show(monkeypatch):
    whole, blocks = make(), make()
    monkeypatch.setattr("gaptron.learner.engine.MOST", 80)
    one = whole.play(X, Y)
    monkeypatch.setattr("gaptron.learner.engine.MOST", 7)
    monkeypatch.setattr("gaptron.learner.engine.DENSE_BLOCK", 18)
    calls = []
    two = blocks.play(X, Y, progress=calls.append)
    np.testing.assert_array_equal(one.codes, two.codes)
    assert calls == [7] * 11 + [3]
    assert portrait(whole) == portrait(blocks)
    np.testing.assert_array_equal(whole.scores(X), blocks.scores(X))
    dense_then_sparse = make()
    dense_then_sparse.play(X[:1], Y[:1])
    np.testing.assert_array_equal(dense_then_sparse.play(sp.csr_matrix(X[1:]), Y[1:]).codes, one.codes[1:])


# --- labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classes",
    [["d", "a", "c", "b"], [10, 20, -5, 0], [0.5, 1.5, 2.0, -1.0], ["cat", 7, "7", (1, 2)], [True, False, 2, 3]],
    ids=["words", "numbers", "fractions", "mixed", "flags"],
)
def test_labels_of_any_kind(classes):
    y = np.empty(80, dtype=object)
    y[:] = [classes[code] for code in Y]
    named, plain = make(n_classes=None, classes=classes), make()
    one, two = named.play(X, y), plain.play(X, Y)
    np.testing.assert_array_equal(one.codes, two.codes)
    assert one.labels.tolist() == [classes[code] for code in two.codes]
    assert named.classes == tuple(classes)
    assert all(label in classes for label in named.predict(X).tolist())


def test_mixed_labels_in_a_plain_list():
    classes = ["cat", 7, "7", 2.5]
    y = [classes[code] for code in Y]
    np.testing.assert_array_equal(make(n_classes=None, classes=classes).play(X, y).codes, make().play(X, Y).codes)


def test_missing_word_among_words_is_named_missing():
    with pytest.raises(InputError, match="row 1: the label is missing"):
        make(n_classes=None, classes=["a", "b"]).play(X[:2], ["a", math.nan])


def test_numpy_labels_are_their_values():
    learner = make(n_classes=None, classes=np.array(["a", "b", "c", "d"]))
    assert learner.classes == ("a", "b", "c", "d") and type(learner.classes[0]) is str
    learner.learn(learner.decide(X[0]), label=np.str_("c"))
    for kind in (np.uint8, np.int32, np.float64):
        assert make().play(X, Y.astype(kind)).rounds == 80


# --- the bound ----------------------------------------------------------------------------------------------------


def test_no_bound_before_a_round():
    with pytest.raises(NoBoundError):
        make(norm=None).bound(X, Y)
    with pytest.raises(NoBoundError):
        make().bound(X[:0], Y[:0])


def test_the_bound_wants_the_stream_that_was_played():
    learner = started()
    with pytest.raises(NoBoundError, match=r"40 rounds.*80"):
        learner.bound(X, Y)
    with pytest.raises(InputError, match="5 columns"):
        learner.bound(X[:40, :5], Y[:40])
    with pytest.raises(InputError):
        learner.bound(X[:40], Y[:40], started().play(X[40:60], Y[40:60]))
    assert learner.bound(X[:40], Y[:40]).value > 0


def test_a_trace_of_another_run_is_refused():
    """Its mask would make the number too small: labels and rounds are alike, and still it is not this run."""
    learner = make(loss="hinge")
    own, foreign = learner.play(X, Y), make("perceptron", loss="hinge").play(X, Y)
    for trace in (foreign, make(loss="hinge", seed=6).play(X, Y)):
        with pytest.raises(InputError, match="this trace is of another run"):
            learner.bound(X, Y, trace)
    with pytest.raises(InputError, match="labels of this trace"):
        learner.bound(X, (Y + 1) % K, own)
    assert learner.bound(X, Y, own).value > 0


def test_a_trace_tells_runs_apart_by_their_chances_too():
    learner = make(loss="hinge")
    own = learner.play(X, Y)
    other = replace(own, truth_probability=own.truth_probability * 0.5)
    with pytest.raises(InputError, match="this trace is of another run"):
        learner.bound(X, Y, other)


def test_rounds_with_a_wide_correct_margin_are_left_out_of_the_loss():
    rows, labels, classes = separable_stream(400)
    learner = make(loss="hinge", norm=1.0, n_classes=classes)
    trace = learner.play(rows, labels)
    U = 0.5 * learner.bound(rows, labels).U
    without, masked = learner.bound(rows, labels, U=U), learner.bound(rows, labels, trace, U=U)
    assert masked.comparator.loss < without.comparator.loss and masked.value < without.value
    assert learner.bound(rows, labels, trace).value < learner.bound(rows, labels).value


def test_a_trace_of_some_rounds_is_not_one_of_all():
    learner = make(loss="hinge")
    learner.learn(learner.decide(X[0]), label=int(Y[0]))
    rest = learner.play(X[1:], Y[1:])
    first = make(loss="hinge").play(X[:1], Y[:1])
    with pytest.raises(InputError, match="this trace is of another run"):
        learner.bound(X, Y, first + rest)


def test_a_bound_for_a_rule_of_ones_own():
    learner = make()
    learner.play(X, Y)
    best = learner.bound(X, Y)
    own = learner.bound(X, Y, U=best.U)
    assert own.value == pytest.approx(best.value, rel=1e-9) and own.comparator.norm == pytest.approx(
        np.linalg.norm(best.U)
    )
    nothing = learner.bound(X, Y, U=np.zeros((K, 6)))
    assert nothing.comparator == (pytest.approx(80 * math.log2(K)), 0.0, 80, 0, 0) and nothing.value >= best.value
    for wrong in (np.zeros((K, 5)), np.zeros(6), np.full((K, 6), np.nan)):
        with pytest.raises(InputError, match="U must be"):
            learner.bound(X, Y, U=wrong)


def test_the_longest_row_is_that_of_all_calls():
    whole, parts = make("frugal-gaptron", norm=None), make("frugal-gaptron", norm=None)
    order = np.argsort(-np.linalg.norm(X, axis=1))
    rows, labels = X[order], Y[order]
    whole.play(rows, labels), parts.play(rows[:40], labels[:40]), parts.play(rows[40:], labels[40:])
    assert parts.bound(rows, labels).value == whole.bound(rows, labels).value
    assert parts._conditions.longest == whole._conditions.longest == pytest.approx(np.linalg.norm(X, axis=1).max())


def test_open_decisions_make_the_rounds_played_after_them_late():
    learner = make()
    waiting = learner.decide(X[0])
    learner.play(X[1:20], Y[1:20])
    learner.learn(waiting, label=int(Y[0]))
    with pytest.raises(NoBoundError, match="late"):
        learner.bound(X[:20], Y[:20])
    alone = make()
    given_up = alone.decide(X[0])
    alone.play(X[1:20], Y[1:20])
    assert alone._conditions.late >= 1
    alone.forget(given_up)


def test_an_open_decision_ends_the_certificate_of_those_after_it():
    """Under bandit feedback; with full information it goes on, and counts the cost of late feedback."""
    learner = make("frugal-gaptron", norm=None, feedback="bandit")
    waiting, prompt = learner.decide(X[0]), learner.decide(X[1])
    learner.learn(prompt, correct=True)
    with pytest.raises(NoBoundError, match="1 decisions late"):
        _ = learner.certificate
    learner.forget(waiting)


def test_a_theorem_with_delay_counts_the_decisions_made_before_the_feedback():
    """At most one other decision ever waits, and still the first one waits for three."""
    learner = make("frugal-gaptron", norm=None, feedback="bandit", delay=1)
    first = learner.decide(X[0])
    for x in X[1:4]:
        learner.learn(learner.decide(x), correct=True)
    assert learner.certificate.in_expectation
    learner.learn(first, correct=True)
    with pytest.raises(NoBoundError, match="up to 3 decisions late, and the theorem allows 1"):
        _ = learner.certificate


def test_another_seed_from_now_on():
    one, two = started(feedback="bandit"), started(feedback="bandit")
    two.reseed(99)
    a, b = one.play(X[40:], Y[40:]), two.play(X[40:], Y[40:])
    assert (a.codes != b.codes).any()
    again = started(feedback="bandit")
    again.reseed(99)
    np.testing.assert_array_equal(again.play(X[40:], Y[40:]).codes, b.codes)


@pytest.mark.parametrize("end", ["open", "late"])
def test_late_feedback_ends_the_bound(end):
    learner = make()
    first, second = learner.decide(X[0]), learner.decide(X[1])
    learner.learn(second, label=0)
    if end == "late":
        learner.learn(first, label=0)
    with pytest.raises(NoBoundError, match=r"open|late|no feedback"):
        learner.bound(X[: learner.rounds], [0] * learner.rounds)


def test_feedback_in_order_keeps_the_bound():
    learner = make()
    for t in range(5):
        learner.learn(learner.decide(X[t]), label=int(Y[t]))
    whole = make()
    whole.play(X[:5], Y[:5])
    assert learner.bound(X[:5], Y[:5]).value == whole.bound(X[:5], Y[:5]).value


def test_sparse_and_dense_streams_have_the_same_bound():
    learner = make()
    trace = learner.play(X, Y)
    dense, sparse = learner.bound(X, Y, trace), learner.bound(sp.csr_matrix(X), Y, trace)
    assert dense.value == pytest.approx(sparse.value, rel=1e-4)
    assert "Theorem 1" in dense.theorem


def test_a_bandit_radius_below_one_still_finds_a_rule():
    """The best U with ‖U‖ ≤ D, not just U = 0."""
    T = 4000
    rows = np.tile(np.eye(2), (T // 2, 1))
    y = np.arange(T) % 2
    learner = make(feedback="bandit", loss="hinge", n_classes=2, norm=1.0, radius=0.9, horizon=T)
    learner.play(rows, y)
    bound = learner.bound(rows, y)
    assert 0.5 < bound.comparator.norm <= 0.9 * (1 + 1e-9)


# --- seeds --------------------------------------------------------------------------------------------------------


def test_no_seed_is_a_fresh_one():
    draws = {tuple(make(seed=None, gamma=1.0).play(X, Y).codes) for _ in range(3)}
    assert len(draws) == 3


@pytest.mark.parametrize(
    "make, draw",
    [
        (lambda seed: gaptron.Learner(n_classes=2, seed=seed), lambda learner: learner._engine.rng.random()),
        (lambda seed: gaptron.Abstainer(2, seed=seed), lambda abstainer: abstainer._rng.random()),
    ],
    ids=["learner", "abstainer"],
)
def test_data_made_with_the_same_seed_do_not_foresee_the_draws(make, draw):
    assert draw(make(0)) != np.random.default_rng(0).random()
    assert draw(make(0)) == draw(make(np.int64(0))) != draw(make(1))
    for bad in (-1, 1.5, "a", True, [1]):
        with pytest.raises(SettingError, match="seed="):
            make(bad)


def test_bad_advice_labels_and_settings_are_named():
    learner = gaptron.Learner(n_classes=3, seed=0)
    with pytest.raises(InputError, match="advice, row 0: label 7 is not one"):
        learner.decide([1.0], advice=7)
    assert learner.decide([1.0], advice=np.array([[0.2, 0.3, 0.5]])).propensity > 0  # as predict_proba gives it
    with pytest.raises(InputError, match="does not reorder"):
        learner.grow(classes=[2, 1, 0])
    with pytest.raises(InputError, match="must be a list of labels"):
        gaptron.Learner(classes=5)
    with pytest.raises(DecisionError, match="not a decision"):
        learner.learn(None, label=0)
    with pytest.raises(SettingError, match="scale='2' must be a number"):
        gaptron.Learner(n_classes=3, scale="2")
    with pytest.raises(InputError, match="x has norm 1e\\+200; a row must be zero"):
        learner.decide([1e200])


def test_scoring_does_not_depend_on_earlier_scoring():
    """Scoring reuses buffers: no labels or advice of earlier calls may be left in them."""
    X, y, K = random_stream(60)
    learner = gaptron.Learner(n_classes=K, feedback="bandit", seed=0)
    learner.play(X, y)
    plain = learner.distribution(X[:3])
    learner.distribution(X[:3], available=[[0, 1]] * 3, advice=[1, 1, 1])
    np.testing.assert_array_equal(learner.distribution(X[:3]), plain)


@pytest.mark.sample(1)
@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array])
def test_float32_examples_score_the_same_once_an_example_was_decided(rows):
    """What was compiled for one row is in double precision: it may not be handed others."""
    rng = np.random.default_rng(4)
    X, y = rng.integers(-3, 4, size=(30, 4)).astype(np.float64), np.arange(30) % 3
    learner = gaptron.Learner("softmax", n_classes=3, norm=20.0, horizon=100, seed=0)
    learner.play(rows(X), y)
    before = learner.scores(rows(X))
    learner.decide(rows(X)[0])
    np.testing.assert_array_equal(learner.scores(rows(X)), before)
    np.testing.assert_allclose(learner.scores(rows(X.astype(np.float32))), before, rtol=1e-12)


# --- checked examples, encoded labels, warming up ---------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_matrix])
def test_examples_that_were_checked_once_are_taken_by_index(form, monkeypatch):
    given = form(X)
    one, other = make(feedback="bandit", norm=10.0), make(feedback="bandit", norm=10.0)
    examples = one.check(given)
    expected = []
    for t in range(20):
        x = given[t] if form is not sp.csr_matrix else given[t : t + 1]
        expected.append(other.distribution(x.reshape(1, -1))[0])
        other.learn_logged(x, int(Y[t]), 0.5, correct=True)
    monkeypatch.setattr("gaptron.data.examples.norms", lambda *_: pytest.fail("checked again"))
    monkeypatch.setattr("gaptron.data.examples.as_row", lambda *_: pytest.fail("checked again"))
    for t in range(20):
        np.testing.assert_array_equal(one.distribution(examples[t])[0], expected[t])
        np.testing.assert_array_equal(one.distribution(examples[t : t + 1])[0], expected[t])
        one.learn_logged(examples[t], int(Y[t]), 0.5, correct=True)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.play(examples, Y).rounds == len(Y)


def test_labels_that_were_encoded_are_not_encoded_again():
    classes = tuple("abcdef"[:K])
    words = [classes[code] for code in Y]
    codes = np.array(Y, dtype=np.int64)
    codes.flags.writeable = False
    one, other, third = (gaptron.Learner("gaptron", classes=classes, norm=10.0, seed=0) for _ in range(3))
    trace = one.play(X, EncodedLabels(codes, classes))
    np.testing.assert_array_equal(trace.codes, other.play(X, words).codes)
    assert one.bound(X, EncodedLabels(codes, classes)).value == other.bound(X, words).value
    with pytest.raises(InputError, match="not the learner's"):
        third.play(X, EncodedLabels(codes, classes[::-1]))


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_matrix])
def test_warming_up_changes_nothing(form):
    """Before the first round and later, with and without a norm."""
    one, other = (gaptron.Learner("gaptron", n_classes=K, seed=0) for _ in range(2))
    with pytest.raises(SettingError, match="norm"):
        one.warm_up()
    one.warm_up(form(X), one_by_one=False)
    assert one.settings is None and one.decided == 0
    np.testing.assert_array_equal(one.play(form(X), Y).codes, other.play(form(X), Y).codes)
    before = portrait(one)
    one.warm_up()
    one.warm_up(form(X))
    assert portrait(one) == before
    shared = make(feedback="bandit", epsilon=0.1)
    shared.warm_up()
    assert shared.decided == 0
