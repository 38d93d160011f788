"""evaluate_frozen, evaluate_learning and replay: what they estimate, what they refuse, and that they do not peek."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from gaptron import Learner
from gaptron.data import examples
from gaptron.errors import InputError, SettingError
from gaptron.offpolicy import Log, evaluate_frozen, evaluate_learning, evaluate_policy, record, replay
from gaptron.offpolicy.estimates import FIRST_FIT, Estimate, predict_rewards
from gaptron.offpolicy.result import OffPolicyEstimate
from tests.conftest import noisy_stream, portrait
from tests.offpolicy.worlds import some_log

X, Y, K = noisy_stream(1500, noise=0.1)
LOGS = 25


def learner(algorithm="squarecb", **more):
    given = {"n_classes": K, "feedback": "bandit", "norm": 1.0, "seed": 3, **more}
    return Learner(algorithm, **given)


def uniform_log(X=X, Y=Y, seed=0, whole=False):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, len(Y))
    propensities = np.full((len(Y), K), 1 / K) if whole else None
    return Log.from_arrays(X, labels, labels == Y, np.full(len(Y), 1 / K), classes=range(K), distribution=propensities)


# --- a log of a simulation ----------------------------------------------------------------------------------


def test_recording_is_playing():
    recorded, played = learner(), learner()
    log, trace = record(recorded, X[:200], Y[:200]), played.play(X[:200], Y[:200])
    np.testing.assert_array_equal(log.codes, trace.codes)
    np.testing.assert_array_equal(log.mistakes, trace.wrong)
    np.testing.assert_array_equal(log.distribution[np.arange(200), Y[:200]], trace.truth_probability)
    np.testing.assert_array_equal(recorded.weights, played.weights)
    assert log.smallest_propensity == log.distribution.min()


def test_recording_with_full_information_and_words():
    words = np.array(["one", "two", "three"])
    mine = Learner("gaptron", classes=words, norm=1.0, seed=3)
    log = record(mine, X[:100], words[Y[:100]])
    twin = Learner("gaptron", classes=words, norm=1.0, seed=3)
    np.testing.assert_array_equal(log.codes, twin.play(X[:100], words[Y[:100]]).codes)
    assert log.classes == ("one", "two", "three")


@pytest.mark.parametrize(
    ("rows", "labels", "said"),
    [
        (X[:5], Y[:4], "5 rows but y has 4"),
        (100 * X[:5], Y[:5], "above the norm"),
        (np.where(np.eye(5, X.shape[1]) > 0, np.nan, X[:5]), Y[:5], "NaN"),
        (X[:5], [0, 1, 2, 9, 0], "row 3"),
        (X[:0], Y[:0], "contains no decisions"),
    ],
)
def test_what_cannot_be_recorded_changes_nothing(rows, labels, said):
    mine = learner()
    before = portrait(mine)
    with pytest.raises(InputError, match=said):
        record(mine, rows, labels)
    assert portrait(mine) == before


def test_a_graph_is_not_recorded():
    with pytest.raises(SettingError, match="only whether the label played was correct"):
        record(Learner("gappletron", n_classes=K, feedback=np.eye(K, dtype=bool), norm=1.0), X[:5], Y[:5])


# --- evaluate_frozen ----------------------------------------------------------------------------------------


def test_evaluating_by_hand():
    """A learner that has seen nothing plays every label alike: its weights are 1/(K p)."""
    log = some_log(T=50)
    fresh = learner(classes=log.classes, n_classes=None, norm=10.0)
    result = evaluate_frozen(fresh, log)
    weights = 1 / (3 * log.propensity)
    np.testing.assert_allclose(result.weights, weights)
    ips, snips, dr = result.estimates
    assert ips.mistakes == pytest.approx((weights * log.mistakes).mean())
    assert snips.mistakes == pytest.approx((weights * log.mistakes).sum() / weights.sum())
    assert dr.mistakes == pytest.approx((2 / 3 + weights * (log.mistakes - 2 / 3)).mean())  # too short for a fit
    assert result.effective_rounds == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert result.logged.mistakes == pytest.approx(log.mistakes.mean())
    assert (result.rounds, result.used, result.unsupported) == (50, 50, 0.0)


def test_evaluating_a_frozen_learner_changes_nothing():
    mine = learner()
    mine.play(X[:200], Y[:200])
    before = portrait(mine)
    evaluate_frozen(mine, uniform_log())
    assert portrait(mine) == before


def test_the_intervals_of_a_frozen_learner_contain_the_truth():
    """Trained elsewhere, evaluated on logs of rows whose truth is known: the intervals hold what it would have done."""
    mine = learner()
    mine.play(X[:300], Y[:300])
    held = {}
    for seed in range(LOGS):
        part = np.random.default_rng(seed).integers(300, 1500, 400)
        truth = 1 - mine.distribution(X[part])[np.arange(400), Y[part]].mean()
        result = evaluate_frozen(mine, uniform_log(X[part], Y[part], seed=1000 + seed))
        for estimate in (*result.estimates, result.proven):
            held[estimate.name] = held.get(estimate.name, 0) + (estimate.low <= truth <= estimate.high)
    for name, count in held.items():  # rows fixed, the intervals can only be too wide
        assert binom.cdf(count, LOGS, 0.95) > 0.001, name


def test_a_log_of_fractions_and_restricted_labels_is_learned_round_by_round():
    log = some_log(T=60, fractional=True, left_out=True)
    mine, other = (Learner("squarecb", classes=log.classes, feedback="bandit", norm=10.0, seed=3) for _ in range(2))
    result = evaluate_learning(mine, log)
    assert result.used == 60 and 0 < result.estimates[1].mistakes < 1
    for t in range(60):
        label, available = log.classes[log.codes[t]], [c for c, there in zip(log.classes, log.available[t]) if there]
        other.learn_logged(log.example(t), label, log.propensity[t], reward=log.reward[t], available=available)
    assert portrait(mine) == portrait(other) and mine.decided == mine.rounds == 60
    assert evaluate_frozen(mine, log).used == 60
    assert not mine.distribution(log.X, available=log.available)[~log.available].any()


def test_labels_left_out_ask_for_a_learner_that_can():
    log = some_log(left_out=True)
    mine = Learner("hinge-lmc", classes=log.classes, feedback="bandit", norm=10.0, radius=1.0, horizon=100)
    for verb in (evaluate_frozen, evaluate_learning):
        with pytest.raises((InputError, SettingError), match=r"cannot restrict.*squarecb|how it drew"):
            verb(mine, log)


def test_any_learner_can_be_evaluated_on_fractional_rewards_but_not_all_learn_from_them():
    log = some_log(fractional=True)
    mine = Learner(
        "randomized-decoding", classes=log.classes, feedback="bandit", norm=10.0, radius=1.0, horizon=100, seed=1
    )
    assert 0 < evaluate_frozen(mine, log).estimates[1].mistakes < 1
    before = portrait(mine)
    for verb in (evaluate_learning, replay):
        with pytest.raises(InputError, match=r"round 1 has reward .* only from rewards of 0 and 1"):
            verb(mine, log)
    assert portrait(mine) == before


# --- evaluate_learning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["squarecb", "banditron"])
def test_learning_from_its_own_decisions_it_is_what_it_was(algorithm):
    """A learner that learns from the log of its twin, drawn as the twin drew, ends up as the twin."""
    given = {"gamma": 0.2} if algorithm == "banditron" else {}
    twin = learner(algorithm, **given)
    log = record(twin, X[:300], Y[:300])
    mine = learner(algorithm, seed=99, **given)
    result = evaluate_learning(mine, log)
    np.testing.assert_array_equal(mine.weights, twin.weights)
    np.testing.assert_allclose(result.weights, 1.0)
    for estimate in result.estimates[:2]:
        assert estimate.mistakes == pytest.approx(log.mistakes.mean())


def test_learning_weights_by_the_logged_propensity():
    """Banditron by hand: right, W moves by e_y/p with the p of the log; its own top label falls by 1."""
    log = Log.from_arrays([[1.0, 0.0]], [2], [1], [0.25], classes=range(3))
    mine = learner("banditron", gamma=0.3)
    evaluate_learning(mine, log)
    np.testing.assert_allclose(mine.weights[:, 0], [-1.0, 0.0, 4.0])


def test_learning_needs_no_whole_distribution():
    one, two = learner(), learner()
    first, second = evaluate_learning(one, uniform_log(whole=True)), evaluate_learning(two, uniform_log())
    np.testing.assert_array_equal(one.weights, two.weights)
    assert [e.mistakes for e in first.estimates] == [e.mistakes for e in second.estimates]
    assert first.unsupported == 0.0 and second.unsupported is None


def watched(mine):
    """Every distribution it is evaluated by, as it goes."""
    seen, distribution = [], mine.distribution

    def recording(X, available=None):
        seen.append(distribution(X, available=available)[0])
        return seen[-1:]

    mine.distribution = recording
    return seen


@pytest.mark.parametrize("algorithm", ["squarecb", "frugal-gaptron", "banditron", "soba"])
def test_a_learner_that_learns_from_the_log_of_its_twin_is_that_twin(algorithm):
    """Each round counts once: clock, norms and level are those of the learner that decided."""
    given = {"n_classes": 3, "feedback": "bandit", "norm": 10.0, "horizon": 500, "seed": 4}
    twin, mine = Learner(algorithm, **given), Learner(algorithm, **given)
    log = record(twin, X[:200], Y[:200])
    evaluate_learning(mine, log)
    one, two = portrait(twin), portrait(mine)
    assert {part for part in one if one[part] != two[part]} == {"off_policy"}
    assert mine.decided == mine.rounds == 200


def test_the_intervals_of_a_learning_learner_contain_the_truth():
    """The truth: what it would have played just before each round, on the very rows, whose labels we know."""
    held = {}
    for seed in range(LOGS):
        mine = learner()
        would = watched(mine)
        result = evaluate_learning(mine, uniform_log(X[:400], Y[:400], seed))
        truth = 1 - np.array(would)[np.arange(400), Y[:400]].mean()
        for estimate in (*result.estimates, result.proven):
            held[estimate.name] = held.get(estimate.name, 0) + (estimate.low <= truth <= estimate.high)
    for name, count in held.items():
        assert binom.cdf(count, LOGS, 0.95) > 0.001, name


@pytest.mark.parametrize("sparse", [False, True])
def test_the_examples_of_a_log_are_checked_once(monkeypatch, sparse):
    """Past the border nothing computes a norm again, however often a round is scored or learned from."""
    log = some_log(sparse=sparse)
    for name in ("norms", "measured", "within_range", "as_row", "example_of"):
        monkeypatch.setattr(examples, name, None)
    for verb in (evaluate_frozen, evaluate_learning):
        verb(learner(classes=log.classes, n_classes=None, norm=10.0), log)


def test_progress_counts_the_rounds():
    for verb in (evaluate_learning, replay):
        seen = []
        verb(learner(), uniform_log()[:50], progress=seen.append)
        assert sum(seen) == 50


# --- replay -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("logger", [[1 / 3] * 3, [0.6, 0.2, 0.2]], ids=["uniform", "skewed"])
def test_a_replay_is_a_run(logger):
    """Over many logs, the mistakes of replays are those of the learner itself in as many rounds."""
    ours, theirs = [], []
    for seed in range(LOGS):
        rng = np.random.default_rng(seed)
        part = rng.permutation(1500)[:600]
        labels = rng.choice(K, 600, p=logger)
        log = Log.from_arrays(X[part], labels, labels == Y[part], np.array(logger)[labels], classes=range(K))
        result = replay(learner(seed=seed), log, seed=seed)
        ours.append(result.estimates[0].mistakes)
        n = result.used
        assert n == pytest.approx(600 * min(logger), abs=60) and result.rounds == 600
        theirs.append(learner(seed=1000 + seed).play(X[part[:n]], Y[part[:n]]).mistakes / n)
    error = np.sqrt((np.var(ours) + np.var(theirs)) / LOGS)
    assert abs(np.mean(ours) - np.mean(theirs)) < 3.5 * error


def test_a_replay_keeps_its_share_though_the_logger_had_the_same_seed():
    """Were its draws the logger's own, number by number, it would keep a round in fifty here, not one in twenty."""
    propensities = np.array([0.9, 0.05, 0.05])
    labels = np.searchsorted(propensities.cumsum(), np.random.default_rng(0).random(1500))
    log = Log.from_arrays(X, labels, labels == Y, propensities[labels], classes=range(K))
    result = replay(learner(c=1e-9, seed=0), log, seed=0)  # plays every label alike
    assert abs(result.used - 75) < 4 * np.sqrt(75)


def test_a_replay_of_nothing_says_so():
    shy = np.tile([1 - 2e-12, 1e-12, 1e-12], (3, 1))
    log = Log.from_arrays(X[:3], [0] * 3, [1] * 3, shy[:, 0], classes=range(K), distribution=shy)
    with pytest.raises(InputError, match="no round could be replayed"):
        replay(learner(), log)


# --- refusals and warnings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: learner(n_classes=4), "labels differ from the learner's"),
        (lambda: Learner("gaptron", n_classes=K, norm=1.0), "feedback='bandit'"),
        (lambda: learner("newtron", horizon=100, radius=1.0), "how it drew its own label"),
        (lambda: learner(norm=0.01), "above the norm"),
        (lambda: learner(n_features=5), "5 features"),
        (lambda: learner(norm=None), "norm="),
    ],
)
@pytest.mark.parametrize("verb", [evaluate_learning, replay])
def test_what_cannot_be_learned_from_is_refused(make, said, verb):
    mine = make()
    before = portrait(mine)
    with pytest.raises((InputError, SettingError), match=said):
        verb(mine, uniform_log())
    assert portrait(mine) == before


def test_an_empty_part_and_a_bad_level_are_refused():
    for verb in (evaluate_frozen, evaluate_learning, replay):
        with pytest.raises(InputError, match="no decisions"):
            verb(learner(), uniform_log()[:0])
        with pytest.raises(SettingError, match="level"):
            verb(learner(), uniform_log(), level=95)
    with pytest.raises(InputError, match="slice"):
        uniform_log()[3]


def test_wrong_propensities_are_noticed():
    honest, mine = uniform_log(), learner()
    mine.play(X[:300], Y[:300])
    assert not evaluate_frozen(mine, honest).warnings
    lying = Log.from_arrays(X, honest.codes, honest.reward, np.full(len(Y), 0.6), classes=range(K))
    (warning,) = evaluate_frozen(mine, lying).warnings
    assert "not those the labels were drawn with" in warning


def test_unsupported_labels_are_noticed():
    propensities = np.tile([0.5, 0.5, 0.0], (len(Y), 1))
    labels = np.random.default_rng(0).integers(0, 2, len(Y))
    half = Log.from_arrays(X, labels, labels == Y, np.full(len(Y), 0.5), classes=range(K), distribution=propensities)
    result = evaluate_frozen(learner(), half)
    assert result.unsupported == pytest.approx(1 / 3)
    assert "33.3% of the policy's play" in result.warnings[0]


def test_heavy_weights_are_noticed():
    log = Log.from_arrays(X[:300], Y[:300], np.ones(300), np.r_[1e-4, np.ones(299)], classes=range(K))
    said = " ".join(evaluate_frozen(learner(), log).warnings)
    assert "effective rounds" in said and "of the total weight" in said


def test_an_interval_without_width_is_noticed():
    log = Log.from_arrays(X[:300], Y[:300], np.ones(300), np.full(300, 1 / 3), classes=range(K))
    result = evaluate_frozen(learner(), log)
    assert result.estimates[0].high == 0.0 < result.proven.high < 0.1
    assert any("no width" in said for said in result.warnings)


def test_a_replay_has_its_warnings_too():
    honest = uniform_log()
    assert not replay(learner(), honest).warnings
    lying = Log.from_arrays(X, honest.codes, honest.reward, np.full(len(Y), 0.6), classes=range(K))
    assert "not those the labels were drawn with" in replay(learner(), lying).warnings[0]
    few = replay(learner(), honest[:60])
    assert few.effective_rounds == few.used < 60 and "effective rounds" in few.warnings[0]
    with pytest.raises(SettingError, match="seed"):
        replay(learner(), honest, seed=-1)


def test_a_learner_that_plays_none_of_the_labels_is_said_to_be_unknown():
    mine = learner("confidit")
    mine.play(X[:300], Y[:300])
    never = X[mine.distribution(X)[:, 2] == 0.0][:5]
    log = Log.from_arrays(never, [2] * 5, [1] * 5, [1.0] * 5, classes=range(K))
    with pytest.raises(InputError, match="none of the logged labels"):
        evaluate_frozen(mine, log)


# --- the conclusion in words --------------------------------------------------------------------------------


def trained():
    mine = learner()
    mine.play(X[:300], Y[:300])
    return mine


def test_a_better_learner_is_said_to_be_better():
    words = evaluate_frozen(trained(), uniform_log(whole=True)).conclusion
    assert words.startswith("better than the log: ") and words.endswith("also by the proven interval")


def test_a_worse_learner_is_said_to_be_worse():
    p = np.where(np.arange(K) == Y[:, None], 0.9, 0.05)
    labels = (np.random.default_rng(0).random((len(Y), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    propensities = p[np.arange(len(Y)), labels]
    good = Log.from_arrays(X, labels, labels == Y, propensities, classes=range(K), distribution=p)
    assert evaluate_frozen(learner(), good).conclusion.startswith("worse than the log: ")


def test_an_inconclusive_result_says_what_data_would_decide():
    """A learner that has seen nothing plays as the uniform log did."""
    words = evaluate_frozen(learner(), uniform_log(whole=True)).conclusion
    assert words.startswith("inconclusive: ") and "overlap" in words
    few = evaluate_frozen(trained(), uniform_log(whole=True)[:60]).conclusion
    assert "effective rounds" in few and "more exploration" in few
    honest = uniform_log()
    lying = Log.from_arrays(X, honest.codes, honest.reward, np.full(len(Y), 0.6), classes=range(K))
    assert "propensities seem to be wrong" in evaluate_frozen(trained(), lying).conclusion
    assert "a replay is not comparable with the log" in replay(learner(), honest).conclusion


def test_rounds_of_propensity_99_percent_or_more_are_near_certain():
    log = Log.from_arrays(np.ones((4, 1)), [0, 0, 1, 1], [1, 0, 1, 0], [0.98, 0.99, 1.0, 0.5], classes=[0, 1])
    assert log.near_certain == 0.5


@pytest.mark.parametrize(("rounds", "unsupported"), [(100, 1.0), (5000, 0.0)])
def test_play_is_unsupported_where_the_logger_hardly_ever_tried(rounds, unsupported):
    """Label 2 has propensity 0.005: expected less than once in 100 rounds, and 25 times in 5,000 rounds."""
    P = np.tile([0.6, 0.395, 0.005], (rounds, 1))
    codes = np.arange(rounds) % 2
    codes[0] = 2
    propensity = P[np.arange(rounds), codes]
    log = Log.from_arrays(
        np.ones((rounds, 1)), codes, np.ones(rounds), propensity, classes=range(3), distribution=P
    ).with_policy(np.tile([0.0, 0.0, 1.0], (rounds, 1)))
    assert evaluate_policy(log).unsupported == unsupported


@pytest.mark.parametrize(
    ("policy", "proven", "words"),
    [
        (
            Estimate("", 0.2, 0.18, 0.22),
            (0.1, 0.44),
            "better than the log: 20.00% mistakes against 50.00%, also by the",
        ),
        (Estimate("", 0.2, 0.18, 0.22), (0.1, 0.46), "better than the log: 20.00% mistakes against 50.00%"),
        (Estimate("", 0.8, 0.78, 0.82), (0.56, 0.9), "worse than the log: 80.00% mistakes against 50.00%, also by the"),
        (Estimate("", 0.8, 0.78, 0.82), (0.54, 0.9), "worse than the log: 80.00% mistakes against 50.00%"),
        (
            Estimate("", 0.43, 0.41, 0.45),
            (0.3, 0.44),
            "inconclusive: 43.00% mistakes against 50.00%, and the intervals",
        ),
    ],
)
def test_a_conclusion_compares_intervals(policy, proven, words):
    """The log's interval is 45 % to 55 %: what lies between its ends and its mean is not proven."""
    logged = Estimate("", 0.5, 0.45, 0.55)
    weights = np.tile([0.5, 1.5], 500)
    result = OffPolicyEstimate((policy,), Estimate("", 0.2, *proven), logged, 0.95, 1000, 1000, weights, 0.0)
    said = result.conclusion
    assert said.startswith(words) and ("by the proven interval" in said) == words.endswith("also by the")


def test_a_learner_that_learns_from_a_log_plays_and_learns_only_what_was_available():
    """The same as `distribution` and `learn_logged` with the labels of each round."""
    log = some_log(60, classes=(0, 1, 2), left_out=True)
    mine, twin = (learner("frugal-gaptron", norm=10.0) for _ in range(2))
    weights = evaluate_learning(mine, log).weights
    for t, x in enumerate(log.X):
        p = twin.distribution(log.X[t : t + 1], available=log.available[t : t + 1])[0]
        assert weights[t] == p[log.codes[t]] / log.propensity[t]
        correct, available = bool(log.reward[t]), np.flatnonzero(log.available[t])
        twin.learn_logged(x, log.codes[t].item(), log.propensity[t], correct=correct, available=available.tolist())
    np.testing.assert_array_equal(mine.weights, twin.weights)


def test_rounds_that_would_tell_are_about_right():
    p = np.where(np.arange(K) == Y[:, None], 0.7, 0.15)
    slightly = np.random.default_rng(1)
    labels = (slightly.random((len(Y), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    log = Log.from_arrays(X, labels, labels == Y, p[np.arange(len(Y)), labels], classes=range(K), distribution=p)
    result = evaluate_frozen(trained(), log[:150])
    estimate, logged = result.estimates[-1], result.logged
    if "overlap" in result.conclusion:
        halves = (estimate.high - estimate.low + logged.high - logged.low) / 2
        rounds = 150 * (halves / (logged.mistakes - estimate.mistakes)) ** 2
        assert f"{rounds:,.0f} such rounds" in result.conclusion


def test_few_heavy_rounds_are_noticed_where_nothing_else_says_how_much_they_vary():
    rng = np.random.default_rng(4)
    p = np.where(np.arange(K) == Y[:, None], 0.98, 0.01)
    labels = (rng.random((len(Y), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    given = (X, labels, labels == Y, p[np.arange(len(Y)), labels])
    mine = trained()
    bare = evaluate_frozen(mine, Log.from_arrays(*given, classes=range(K)))
    assert any("a few rounds with large weights" in warning for warning in bare.warnings)
    whole = evaluate_frozen(mine, Log.from_arrays(*given, classes=range(K), distribution=p))
    assert whole.skewness is None
    assert whole.estimates[0].high > bare.estimates[0].high


# --- the reward model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_predictions_use_the_past_alone(sparse):
    log = some_log(T=400, sparse=sparse)
    before = predict_rewards(log)
    assert before.shape == (400, 3) and before.min() >= 0.0 and before.max() <= 1.0
    np.testing.assert_array_equal(before[:FIRST_FIT], 1 / 3)
    turned = log.reward.copy()
    turned[200:] = 1 - turned[200:]
    after = predict_rewards(replace(log, reward=turned))
    np.testing.assert_array_equal(before[:256], after[:256])
    assert not np.array_equal(before[256:], after[256:])


def test_predictions_learn():
    log = uniform_log()
    late = predict_rewards(log)[1024:]
    assert (late.argmax(axis=1) == Y[1024:]).mean() > 0.75


def test_a_label_never_played_is_predicted_by_the_mean_reward():
    log = Log.from_arrays(X[:200], np.arange(200) % 2, [1, 0, 0, 0] * 50, [0.5] * 200, classes=range(K))
    np.testing.assert_allclose(predict_rewards(log)[128:, 2], 0.25)
