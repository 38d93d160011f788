"""Feedback in practice, through the public interface: unavailable labels, fractional rewards, late feedback."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron.algorithms import NAMES, able, load
from gaptron.errors import DecisionError, InputError, NoBoundError, SettingError
from gaptron.learner.playing import play_delayed
from gaptron.streams import open_stream, prepare
from gaptron.types import Feedback
from tests.conftest import noisy_stream, portrait, random_stream, shared_data

X, Y, K = random_stream(80)
WORDS = ["mail", "chat", "phone", "fax"]


def make(algorithm="squarecb", feedback="bandit", **more):
    given = {"norm": 3.0, "radius": 1.0, "horizon": 100, "classes": WORDS, "seed": 5, **more}
    return gaptron.Learner(algorithm, feedback=feedback, **given)


# --- which labels are available ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "available",
    [["mail", "chat"], ("chat", "mail"), {"mail", "chat"}, np.array(["mail", "chat"]), ["mail", "mail", "chat"],
     [True, True, False, False], np.array([True, True, False, False]), iter(["mail", "chat"])],
)  # fmt: skip
def test_available_labels_are_named_in_any_collection(available):
    p = make().decide(X[0], available=available).distribution
    np.testing.assert_array_equal(p, [0.5, 0.5, 0, 0])


@pytest.mark.parametrize(
    "available, problem",
    [
        ([], "at least one"),
        ("mail", "must be a list of labels"),
        (3, "must be a list of labels"),
        (["mail", "letter"], "'letter' is not one of the 4 classes"),
        ([True, False], "2 booleans for 4 labels"),
        ([False] * 4, "at least one"),
        (["mail", None], "missing"),
        ([["mail"]], "not one of"),
    ],
)
def test_what_names_no_labels_is_refused_and_changes_nothing(available, problem):
    learner = make()
    learner.play(X[:20], [WORDS[k] for k in Y[:20]])
    before = portrait(learner)
    for call in (
        lambda: learner.decide(X[0], available=available),
        lambda: learner.play(X[:2], WORDS[:2], available=[["mail"], available]),
        lambda: learner.distribution(X[:2], available=[["mail"], available]),
        lambda: learner.learn_logged(X[0], "mail", 0.5, correct=True, available=available),
    ):
        with pytest.raises(InputError, match=problem):
            call()
    assert portrait(learner) == before


@pytest.mark.parametrize(
    "available, problem",
    [
        (3, "for each round"),
        ([["mail"]], "1 rounds, but there are 2"),
        (np.ones((2, 3), dtype=bool), "round 0 has 3 booleans for 4 labels"),
        (np.ones((3, 4), dtype=bool), "3 rounds, but there are 2"),
    ],
)
def test_availability_of_many_rounds_must_fit(available, problem):
    with pytest.raises(InputError, match=problem):
        make().play(X[:2], WORDS[:2], available=available)


def test_booleans_are_labels_where_labels_are_booleans():
    learner = make("softmax", "full", classes=[False, True])
    assert learner.decide(X[0], available=[True]).label is True
    assert learner.decide(X[0], available=[False]).label is False


def test_a_right_label_that_was_not_available_is_refused_and_changes_nothing():
    learner = make("softmax", "full")
    decision = learner.decide(X[0], available=["mail", "chat"])
    before = portrait(learner)
    with pytest.raises(InputError, match="'fax' cannot be the true one"):
        learner.learn(decision, label="fax")
    available = np.ones((3, 4), dtype=bool)
    available[1, 2] = False
    with pytest.raises(InputError, match="row 1: the true label 'phone' is not available"):
        learner.play(X[:3], ["mail", "phone", "fax"], available=available)
    with pytest.raises(InputError, match="'fax' cannot be the true one"):
        learner.learn_logged(X[0], "mail", 1.0, truth="fax", available=["mail"])
    assert portrait(learner) == before
    learner.learn(decision, label="chat")


def test_under_bandit_feedback_the_right_label_may_be_out():
    learner = make()
    available = np.zeros((3, 4), dtype=bool)
    available[:, :2] = True
    trace = learner.play(X[:3], ["fax", "fax", "fax"], available=available)
    assert trace.mistakes == 3 and trace.expected_mistakes == 3.0


def test_a_logged_label_was_available():
    with pytest.raises(InputError, match="'fax' was played, but it is not one of the available"):
        make().learn_logged(X[0], "fax", 0.5, correct=True, available=["mail"])


def test_one_label_alone_is_played():
    learner = make("frugal-gaptron")
    decision = learner.decide(X[0], available=["phone"])
    assert (decision.label, decision.propensity) == ("phone", 1.0)
    before = learner.weights
    learner.learn(decision, correct=True)
    np.testing.assert_array_equal(learner.weights, before)  # nothing could have been learned


def test_looking_before_the_settings_are_known():
    learner = make(norm=None)
    np.testing.assert_array_equal(learner.distribution(X[:1], available=[["mail", "fax"]]), [[0.5, 0, 0, 0.5]])
    assert learner.predict(X[:1], available=[["fax"]]) == ["fax"]


def test_sparse_rows_too():
    available = np.tile([True, False, True, True], (80, 1))
    dense, sparse = make(), make()
    one = dense.play(X, [WORDS[k] for k in Y], available=available)
    two = sparse.play(sp.csr_matrix(X), [WORDS[k] for k in Y], available=available)
    np.testing.assert_array_equal(one.codes, two.codes)
    assert not (one.codes == 1).any()


@pytest.mark.parametrize("trait", ["available", "rewards", "advice"])
def test_those_who_cannot_name_those_who_can(trait):
    names = able(trait).split(", ")
    assert names == [name for name in NAMES if getattr(load(name).CARD, trait)]


# --- rewards -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [-0.1, 1.1, math.nan, math.inf, "0.5", [0.5], 1j])
def test_rewards_that_are_none_are_refused_and_change_nothing(reward):
    learner = make()
    decision = learner.decide(X[0])
    before = portrait(learner)
    with pytest.raises(InputError, match="reward"):
        learner.learn(decision, reward=reward)
    with pytest.raises(InputError, match="reward"):
        learner.play(X[:2], WORDS[:2], rewards=[1.0, reward])
    with pytest.raises(InputError, match="reward"):
        learner.learn_logged(X[0], "mail", 0.5, reward=reward)
    assert portrait(learner) == before


@pytest.mark.parametrize("answer", [{}, {"correct": True, "reward": 1.0}, {"label": "mail", "reward": 1.0}])
def test_bandit_feedback_is_correct_or_reward(answer):
    learner = make()
    decision = learner.decide(X[0])
    with pytest.raises(DecisionError, match=r"correct=True or False\), or learn\(decision, reward="):
        learner.learn(decision, **answer)


def test_full_information_has_no_rewards():
    learner = make("softmax", "full")
    with pytest.raises(DecisionError, match="full information"):
        learner.learn(learner.decide(X[0]), reward=1.0)
    with pytest.raises(InputError, match="feedback='bandit'"):
        learner.play(X[:2], WORDS[:2], rewards=[1.0, 1.0])


@pytest.mark.parametrize("reward", [np.ones(3), np.ones((2, 3)), [["a"] * 4] * 2, [[1.0], [1.0, 2.0]]])
def test_rewards_of_many_rounds_must_fit(reward):
    with pytest.raises(InputError, match="reward"):
        make().play(X[:2], WORDS[:2], rewards=reward)


@pytest.mark.parametrize("yes", [True, 1, 1.0, np.bool_(True), np.int8(1), np.float32(1)])
def test_correct_may_be_a_number(yes):
    one, two = make(), make()
    one.learn(one.decide(X[0]), correct=yes), two.learn(two.decide(X[0]), reward=1)
    assert portrait(one) == portrait(two)


@pytest.mark.parametrize("algorithm", ["squarecb", "exp4", "confidit"])
def test_a_reward_of_nothing_is_a_wrong_label_even_if_it_was_the_right_one(algorithm):
    """The first learns from the reward alone, the others from whether the label played was the true one."""
    one, two = (make(algorithm, experts=16) if algorithm == "exp4" else make(algorithm) for _ in range(2))
    labels = [WORDS[k] for k in Y]
    paid = one.play(X, labels, rewards=np.zeros(80))
    others = [WORDS[(code + 1) % K] for code in paid.codes]
    two.play(X, others)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert not paid.reward.any()


def test_a_trace_counts_rewards():
    rewards = np.random.default_rng(0).random(80).round(2)
    labels = [WORDS[k] for k in Y]
    whole = make().play(X, labels, rewards=rewards)
    np.testing.assert_array_equal(whole.reward, np.where(whole.wrong, 0.0, rewards))
    again = make()
    parts = again.play(X[:30], labels[:30], rewards=rewards[:30]) + again.play(
        X[30:], labels[30:], rewards=rewards[30:]
    )
    np.testing.assert_array_equal(parts.reward, whole.reward)
    np.testing.assert_array_equal(whole.first(10).reward, whole.reward[:10])
    np.testing.assert_array_equal(whole.in_order(np.arange(80)[::-1]).reward, whole.reward[::-1])
    with pytest.raises(InputError, match="rewards of different kinds"):
        _ = whole + again.play(X[:1], labels[:1])


# --- what is promised then ---------------------------------------------------------------------------------------


def test_the_bound_ends_where_no_rules_loss_is_known():
    learner = make("frugal-gaptron", classes=None, n_classes=K)
    learner.play(X, Y, rewards=np.ones(80))
    assert learner.bound(X, Y).value > 0
    learner.play(X, Y, rewards=np.full(80, 0.5))
    with pytest.raises(NoBoundError, match="rewards were fractions"):
        learner.bound(np.vstack([X, X]), np.r_[Y, Y])
    assert learner.certificate.norm > 0  # a number of another theorem, still there to be read
    none = make("frugal-gaptron", classes=None, n_classes=K)
    none.play(X, Y, rewards=np.arange(80) > 0)
    with pytest.raises(NoBoundError, match="or none"):  # y was not right in the first round, whatever is said of it
        none.bound(X, Y)
    for rewards in (np.eye(K)[Y], np.ones((80, K))):
        several = make("frugal-gaptron", classes=None, n_classes=K)
        several.play(X, rewards=rewards)
        with pytest.raises(NoBoundError, match="several labels"):
            several.bound(X, Y)


def test_with_labels_left_out_the_bound_is_that_of_a_certificate_with_full_information():
    s = noisy_stream(200)
    available = np.random.default_rng(0).random((200, s.K)) < 0.5
    available[np.arange(200), s.y] = True
    full = gaptron.Learner("frugal-gaptron", n_classes=s.K, seed=1)
    trace = full.play(s.X, s.y, available=available)
    assert full.certificate.level <= 1e-9
    assert trace.expected_mistakes <= full.bound(s.X, s.y).value
    bandit = gaptron.Learner("frugal-gaptron", n_classes=s.K, feedback="bandit", seed=1)
    bandit.play(s.X, s.y, available=available)
    with pytest.raises(NoBoundError, match="the true label may have been one of them"):
        bandit.bound(s.X, s.y)
    other = gaptron.Learner("gaptron", n_classes=s.K, seed=1, norm=1.0, radius=1.0)
    other.play(s.X, s.y, available=available)
    with pytest.raises(NoBoundError, match="all labels in every round"):
        other.bound(s.X, s.y)


def test_a_file_stores_that_labels_were_unavailable_and_rewards_were_fractions(tmp_path):
    learner = make("frugal-gaptron")
    learner.learn(learner.decide(X[0], available=["mail", "fax"]), reward=0.5)
    learner.save(tmp_path / "model")
    loaded = gaptron.Learner.load(tmp_path / "model")._conditions
    assert loaded.left_out is True and loaded.fractions is True


# --- late --------------------------------------------------------------------------------------------------------


def test_advised_keeps_its_certificate_for_as_much_missing_feedback_as_its_delay():
    learner = make("advised-gaptron", delay=3)
    waiting = [learner.decide(x) for x in X[:3]]
    for decision, x in zip(list(waiting), X[3:]):
        learner.learn(waiting.pop(0), correct=decision.label == "mail")
        waiting.append(learner.decide(x))
    assert learner.certificate.in_expectation and learner.certificate.cost(1.0) > 0
    waiting += [learner.decide(x) for x in X[10:13]]
    with pytest.raises(NoBoundError, match="the theorem allows 3"):
        _ = learner.certificate
    with pytest.raises(SettingError, match="delay=2 does not apply to full feedback"):
        make("advised-gaptron", feedback="full", delay=2)


@pytest.mark.parametrize("algorithm, feedback", [("squarecb", "bandit"), ("softmax", "full")])
def test_a_wait_of_nothing_is_playing(algorithm, feedback):
    one, two = (make(algorithm, feedback, classes=None, n_classes=K) for _ in range(2))
    trace = one.play(X, Y)
    np.testing.assert_array_equal(play_delayed(two, X, Y, 0), trace.wrong)
    assert portrait(one) == portrait(two)


def test_feedback_comes_when_it_is_due_and_not_after_the_last_example():
    learner = make(classes=None, n_classes=K)
    waits = np.full(80, 5.0)
    waits[::4] = math.inf
    play_delayed(learner, X, Y, waits)
    assert learner.decided == 80 and learner.rounds == sum(t % 4 > 0 and t + 5 < 80 for t in range(80))


@pytest.mark.parametrize("wait", [-1.0, [1.0, 2.0], np.full(80, math.nan)])
def test_waits_that_are_none_are_refused(wait):
    with pytest.raises(InputError, match="delay"):
        play_delayed(make(classes=None, n_classes=K), X, Y, wait)


CASES = [
    (name, feedback.word)
    for name in ("advised-gaptron", "squarecb", "softmax", "arow")
    for feedback in load(name).CARD.feedback
    if feedback is not Feedback.GRAPH
]


@pytest.mark.slow
@pytest.mark.parametrize("data", ["digits", "usps", "pendigits", "covtype"])
@pytest.mark.parametrize("algorithm, feedback", CASES)
def test_feedback_a_thousand_rounds_late_costs_at_most_two_points_at_the_end(algorithm, feedback, data, request):
    """The last thousand of 10,000 rounds, a mean over seeds."""
    if (algorithm, data) == ("squarecb", "pendigits"):
        # Measured: 11.9 % at once, 15.1 % late. A label that is thought too good is played for a thousand rounds
        # before the first of them gets feedback; with oracle="softmax", which lowers it for all, it is 9.7 and 10.6 %.
        request.applymarker(pytest.mark.xfail(strict=True, reason="it loses three points there"))
    shared_data()
    made = prepare(open_stream(data), standardize=True, constant=True, unit_norm=True)
    late, prompt = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        order = np.concatenate([rng.permutation(made.n_rounds) for _ in range(-(-10_000 // made.n_rounds))])[:10_000]
        rows, y = made.X[order], made.y[order]
        for errors, wait in ((prompt, 0), (late, 1000)):
            who = gaptron.Learner(algorithm, n_classes=made.n_classes, feedback=feedback, seed=seed, norm=1.001)
            errors.append(play_delayed(who, rows, y, wait)[-1000:].mean())
    assert np.mean(late) <= np.mean(prompt) + 0.02
