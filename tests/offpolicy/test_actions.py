"""Logs of decisions between named actions: learning from them, and estimates of how another learner would have done."""

import numpy as np
import pytest

from gaptron import DecisionError, InputError, Learner, NoBoundError, SettingError
from gaptron.offpolicy import ActionLog, Log, evaluate_frozen, evaluate_learning, replay
from gaptron.offpolicy.evaluate import estimate_all
from gaptron.streams.actions import NamedRounds, open_actions
from tests.conftest import portrait
from tests.offpolicy.action_worlds import rounds, write_log

ABLE = ["advised-gaptron", "frugal-gaptron", "squarecb", "epsilon-greedy"]


def learner(algorithm="squarecb", feedback="bandit", **more):
    return Learner(algorithm, actions=True, features="auto", feedback=feedback, seed=1, **more)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log of a logger that likes the likeliest action in 3 of 10 rounds, and plays at random in the others."""
    return ActionLog(open_actions(write_log(tmp_path_factory.mktemp("logs") / "log.jsonl", 1_500, greed=0.3)))


# --- learning from a log --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ABLE)
def test_learning_ones_own_decisions_from_a_log_is_learning_them(algorithm):
    live, other = learner(algorithm), learner(algorithm)
    rng = np.random.default_rng(5)
    for context, actions, likely in rounds(40, 3):
        decision = live.decide(context, actions=actions)
        reward = float(rng.random() < likely[list(actions).index(decision.action)])
        live.learn(decision, reward=reward)
        given = {"action": decision.action, "propensity": decision.propensity, "reward": reward}
        other.learn_logged(context, actions=actions, **given)
    np.testing.assert_array_equal(live.weights, other.weights)
    assert other.rounds == other.decided == 40
    if algorithm == "frugal-gaptron":
        with pytest.raises(NoBoundError, match="log"):
            _ = other.certificate


def test_learning_rows_and_excluded_actions():
    Phi = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    one = Learner("squarecb", actions=True, feedback="bandit", norm=2.0, seed=1)
    two = Learner("squarecb", actions=True, feedback="bandit", norm=2.0, seed=1)
    one.learn_logged(actions=Phi, action=2, propensity=0.5, reward=1.0, available=[0, 2])
    two.learn_logged(actions=Phi[[0, 2]], action=1, propensity=0.5, correct=True)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert np.abs(one.weights).max() > 0.0
    actions = {7: {"topic": "sport"}, 8: {"topic": "news"}, 9: {"topic": "art"}}
    one, two = learner(), learner()
    one.learn_logged(None, actions=actions, action="8", propensity=0.5, reward=1, excluded=[9])
    two.learn_logged(None, actions={k: actions[k] for k in (7, 8)}, action=8, propensity=0.5, reward=1)
    assert portrait(one) == portrait(two)


def test_learning_the_right_action_of_a_log():
    live, other = learner("frugal-gaptron", "full"), learner("frugal-gaptron", "full")
    for context, actions, likely in rounds(20, 3):
        right = list(actions)[likely.argmax()]
        decision = live.decide(context, actions=actions)
        live.learn(decision, action=right)
        given = {"action": decision.action, "propensity": decision.propensity}
        other.learn_logged(context, actions=actions, truth=right, **given)
    np.testing.assert_array_equal(live.weights, other.weights)


@pytest.mark.parametrize(
    ("changes", "error", "problem"),
    [
        ({"propensity": 9e-7}, InputError, "propensity=9e-07 must lie between 1e-06 and 1"),
        ({"propensity": 1.5}, InputError, "propensity=1.5"),
        ({"propensity": None}, SettingError, "propensity"),
        ({"action": "c"}, InputError, "action holds 'c', which is not the id"),
        ({"action": None}, InputError, "give action=..., the id"),
        ({"excluded": ["a"]}, InputError, "action holds 'a', which is not the id"),
        ({"actions": None}, InputError, "give the actions of the round by name"),
        ({"reward": 1.5}, InputError, "reward"),
        ({"reward": None}, DecisionError, "bandit feedback"),
        ({"truth": "a"}, DecisionError, "bandit feedback"),
        ({"label": "a"}, DecisionError, "give action=... in place of label"),
        ({"advice": [0.5, 0.5]}, InputError, "advice"),
        ({"available": [0]}, InputError, "excluded"),
    ],
)
def test_what_cannot_be_learned_is_refused_and_changes_nothing(changes, error, problem):
    who = learner()
    good = {"actions": {"a": {"n": 1}, "b": {"n": 2}}, "action": "a", "propensity": 0.5, "reward": 1}
    who.learn_logged({"u": "x"}, **good)
    before = portrait(who)
    with pytest.raises(error, match=problem):
        who.learn_logged({"u": "x"}, **(good | changes))
    assert portrait(who) == before


def test_rows_and_labels_are_told_apart():
    rows = Learner("squarecb", actions=True, feedback="bandit", norm=2.0)
    with pytest.raises(InputError, match="action=3 must be the row"):
        rows.learn_logged(actions=np.eye(2), action=3, propensity=0.5, reward=1)
    labels = Learner("squarecb", n_classes=2, feedback="bandit", norm=2.0)
    with pytest.raises(InputError, match="between labels"):
        labels.learn_logged([1.0], 0, 0.5, reward=1, actions=np.eye(2))
    full = learner("frugal-gaptron", "full")
    with pytest.raises(DecisionError, match="truth=the right action"):
        full.learn_logged(actions={"a": {}}, action="a", propensity=1.0, reward=1)


# --- estimates ------------------------------------------------------------------------------------------------


def as_actions(labels):
    """The rounds of a log of labels as rounds of the same actions."""
    T, K = labels.n_rounds, labels.n_classes
    actions = tuple({f"k{k}": {"n": float(k)} for k in range(K)} for _ in range(T))
    given = labels.codes, labels.reward, labels.propensity, labels.distribution.ravel()
    return ActionLog(NamedRounds("same", ({},) * T, actions, "played", *given))


@pytest.mark.parametrize("whole", [True, False])
def test_estimates_of_equally_many_actions_are_those_of_labels(whole):
    rng = np.random.default_rng(2)
    T, K = 300, 4
    p, q, costs = rng.dirichlet(np.ones(K), T), rng.dirichlet(np.ones(K), T), rng.random((T, K))
    codes = np.array([rng.choice(K, p=row) for row in p])
    given = np.ones((T, 1)), codes, rng.random(T) < 0.4, p[np.arange(T), codes]
    labels = Log.from_arrays(*given, classes=range(K), distribution=p)
    actions = as_actions(labels)
    weights = labels.of_played(q) / labels.propensity
    assert weights.tolist() == (actions.of_played(q.ravel()) / actions.propensity).tolist()
    expected = estimate_all(labels, q, weights, costs, 0.95)
    found = estimate_all(actions, q.ravel(), weights, costs.ravel(), 0.95)
    for one, other in zip(found, expected):
        assert one.name == other.name and one[1:] == pytest.approx(other[1:], rel=1e-12)
    assert actions.smallest_propensity == labels.smallest_propensity and actions.near_certain == labels.near_certain


def true_mistakes(who, log, likely):
    return 1.0 - float(log.sums(who.distribution(log.records) * np.concatenate(likely)).mean())


def test_estimates_are_right_on_average(tmp_path):
    """Over 40 logs, each estimate of a frozen policy is unbiased up to four standard errors."""
    who = learner()
    evaluate_learning(who, ActionLog(open_actions(write_log(tmp_path / "first.jsonl", 600, seed=99))))
    errors = {}
    for seed in range(40):
        log = ActionLog(open_actions(write_log(tmp_path / "log.jsonl", 150, seed=seed, greed=0.2)))
        truth = true_mistakes(who, log, [likely for _, _, likely in rounds(150, seed)])
        for estimate in evaluate_frozen(who, log).estimates:
            errors.setdefault(estimate.name, []).append(estimate.mistakes - truth)
    for name, off in errors.items():
        assert abs(np.mean(off)) < 4 * np.std(off) / np.sqrt(len(off)), name
    assert np.std(errors["doubly robust"]) < np.std(errors["inverse propensity"])


def test_a_learner_that_learns_from_a_log_becomes_better_than_its_logger(log):
    who = learner()
    result = evaluate_learning(who, log)
    assert who.rounds == log.n_rounds and result.used == log.n_rounds
    assert result.conclusion.startswith("better than the log") and not result.warnings
    assert result.logged.mistakes == pytest.approx(log.mistakes.mean())
    rest = evaluate_frozen(who, log[1_000:])
    assert rest.unsupported == 0.0 and rest.weights.shape == (500,)


def test_without_a_distribution_the_proven_interval_stays(tmp_path):
    log = ActionLog(open_actions(write_log(tmp_path / "log.jsonl", 300, distribution=False)))
    result = evaluate_learning(learner(), log)
    assert result.unsupported is None and result.skewness is not None
    assert result.proven.low <= result.estimates[0].mistakes <= result.proven.high


def test_a_replay_keeps_the_rounds_of_the_smallest_propensity(tmp_path):
    log = ActionLog(open_actions(write_log(tmp_path / "log.jsonl", 600)))
    who = learner()
    result = replay(who, log, seed=3)
    # Each round is kept with probability 1/6 Σ q(a): the actions of a uniform logger have 1/6 to 1/2.
    assert 70 <= result.used <= 130 and who.rounds == result.used
    assert replay(learner(), log, seed=3).estimates == result.estimates


def test_a_log_is_refused_for_learners_that_cannot_use_it(log, tmp_path):
    with pytest.raises(InputError, match="actions=True and features='auto'"):
        evaluate_frozen(Learner("squarecb", n_classes=2, feedback="bandit"), log)
    with pytest.raises(InputError, match="actions=True and features='auto'"):
        evaluate_frozen(Learner("squarecb", actions=True, feedback="bandit"), log)
    with pytest.raises(SettingError, match="feedback='bandit'"):
        evaluate_learning(learner("frugal-gaptron", "full"), log)
    with pytest.raises(InputError, match="contains no decisions"):
        evaluate_frozen(learner(), log[:0])
    labels = Log.from_arrays(np.eye(2), [0, 1], [1, 0], [0.5, 0.5], classes=range(2))
    with pytest.raises(InputError, match="this is a log of labels"):
        evaluate_frozen(learner(), labels)
    path = tmp_path / "full.jsonl"
    path.write_text('{"actions":{"a":{},"b":{}},"right":"a"}\n')
    with pytest.raises(InputError, match="this is not a log"):
        ActionLog(open_actions(path))


def test_fractions_are_refused_before_anything_is_learned(tmp_path):
    path = tmp_path / "log.jsonl"
    good = '{"actions":{"a":{},"b":{}},"played":"a","probability":0.5,"reward":1}\n'
    path.write_text(good + good.replace('"reward":1', '"reward":0.5'))
    log, banditron = ActionLog(open_actions(path)), learner("frugal-gaptron")
    if banditron._engine.algorithm.CARD.rewards:
        evaluate_learning(banditron, log)
        assert banditron.rounds == 2
    else:
        with pytest.raises(InputError, match=r"round 2 has reward 0.5"):
            evaluate_learning(banditron, log)
        assert banditron.rounds == 0
