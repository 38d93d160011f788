"""What the feedback of a learner proves about every linear rule, through the public interface."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from gaptron import InputError, Learner, ModelFileError, NoBoundError, SettingError
from gaptron.learner import model_file
from gaptron.offpolicy import Log, observe
from tests.conftest import noisy_stream, random_stream

X, Y, K = noisy_stream(400, noise=0.2)


def made(algorithm="gaptron", n_classes=K, seed=3, **more):
    given = {"norm": 4.0, "radius": 1.0, "horizon": 400} | more
    return Learner(algorithm, n_classes=n_classes, feedback="bandit", seed=seed, **given)


def loss(U, X, y):
    """The base-2 logistic loss of a linear rule on all rounds, with the true labels."""
    return float(-log_softmax(X @ U.T, axis=1)[np.arange(len(y)), y].sum() / np.log(2))


def rules(X, y, K):
    """Rules that know every label, short and long."""
    fit = LogisticRegression(C=100.0, fit_intercept=False, max_iter=300).fit(X, y)
    best = fit.coef_ if len(fit.coef_) == K else np.vstack([-fit.coef_, fit.coef_]) / 2
    random = np.random.default_rng(0).normal(size=best.shape)
    return [np.zeros_like(best), random, *(best * scale for scale in (0.02, 0.1, 0.3, 1.0, 3.0))]


def check(observed, X, y, K):
    """The theorem, for rules that were fitted afterwards to the true labels."""
    for U in rules(X, y, K):
        norm = float(np.linalg.norm(U))
        assert observed.mistakes <= loss(U, X, y) + observed.cost(norm) + 1e-9
        assert observed.least_loss(norm * observed.norm) <= loss(U, X, y) + 1e-9
        # The questions of all labels together cost at least as much as those that were asked.
        Z = X @ U.T
        asked = np.where(np.arange(K) == y[:, None], -Z, Z)
        each = float(np.logaddexp(0, asked).sum() / np.log(2))
        assert all(
            proof.level <= each + proof.price * (norm * observed.norm) ** 2 + 1e-9 for proof in observed.one_vs_all
        )


@pytest.mark.sample(1)
@pytest.mark.parametrize("algorithm", ["gaptron", "advised-gaptron", "banditron"])
def test_digits_whatever_learner_plays(algorithm):
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    learner = Learner(algorithm, n_classes=10, feedback="bandit", seed=0, radius=1.0, horizon=len(y))
    trace = learner.play(X, y)
    observed = learner.observed
    assert (observed.mistakes, observed.rounds, observed.waiting) == (trace.mistakes, len(y), 0)
    assert observed.norm == pytest.approx(1.0)
    check(observed, X, y, 10)
    if algorithm == "advised-gaptron":
        best = rules(X, y, 10)[-2]
        assert 100.0 < observed.least_loss(20.0) < loss(best * 20.0 / np.linalg.norm(best), X, y)
        assert f"has base-2 log loss at least {observed.least_loss():,.1f} on these 1,797 rounds" in observed.sentence()


def test_one_round_at_a_time_is_the_same():
    whole, single = made(), made()
    whole.play(X, Y)
    for x, y in zip(X, Y):
        decision = single.decide(x)
        single.learn(decision, correct=bool(decision.label == y))
    assert single.observed == whole.observed


@pytest.mark.sample(1)
@pytest.mark.parametrize("rows", [sp.csr_matrix, np.float32])
def test_any_kind_of_rows(rows):
    one, two = made("banditron"), made("banditron")
    one.play(X, Y)
    two.play(rows(X), Y)
    assert two.observed.mistakes == one.observed.mistakes
    for mine, other in zip(
        two.observed.softmax + two.observed.one_vs_all, one.observed.softmax + one.observed.one_vs_all
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-5)


def test_feedback_late_in_any_order_and_never():
    learner, rng = made(), np.random.default_rng(5)
    decisions = [learner.decide(x) for x in X]
    order = rng.permutation(len(X))[:300]
    for t in order:
        learner.learn(decisions[t], correct=bool(decisions[t].label == Y[t]))
    observed = learner.observed
    assert (observed.rounds, observed.waiting) == (300, 100)
    assert observed.mistakes == sum(decisions[t].label != Y[t] for t in order)
    check(observed, X[order], Y[order], K)


def test_only_with_bandit_feedback_and_only_if_wanted():
    assert Learner("gaptron", n_classes=K).observed is None
    assert made(observe=False).observed is None and made().observed is None
    silent = made(observe=False)
    silent.play(X[:50], Y[:50])
    assert silent.observed is None and silent.rounds == 50
    full = Learner("gaptron", n_classes=K, norm=4.0)
    full.play(X[:50], Y[:50])
    assert full.observed is None
    with pytest.raises(SettingError, match="observe=1 must be True or False"):
        made(observe=1)


def test_it_changes_nothing_in_the_run():
    one, two = made(), made(observe=False)
    np.testing.assert_array_equal(one.play(X, Y).codes, two.play(X, Y).codes)
    np.testing.assert_array_equal(one.weights, two.weights)


def test_before_anything_is_proved_it_says_so():
    learner = made()
    learner.play(X[:3], Y[:3])
    assert learner.observed.sentence().startswith("nothing yet about every linear rule of norm ≤ 20/X")
    assert learner.observed.least_loss() == 0.0


def test_more_features_keep_it_more_labels_end_it():
    learner, wide = made(), made()
    learner.play(X[:200], Y[:200])
    learner.grow(n_features=9)
    more = np.hstack([X, np.random.default_rng(1).normal(size=(len(X), 3)) / 4])
    learner.play(more[200:], Y[200:])
    first = more.copy()
    first[:200, 6:] = 0.0
    wide.play(first, Y)
    for mine, other in zip(
        learner.observed.softmax + learner.observed.one_vs_all, wide.observed.softmax + wide.observed.one_vs_all
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-9)
    decision = learner.decide(more[0])
    learner.learn(decision, correct=False)  # compiled for a learner that observes
    learner.grow(classes=range(K + 1))
    with pytest.raises(NoBoundError, match=r"labels were added after round 401"):
        _ = learner.observed
    decision = learner.decide(more[0])
    learner.learn(decision, correct=True)
    learner.play(more[:9], Y[:9])


def test_labels_that_are_added_before_the_first_round_do_not():
    learner = made()
    learner.grow(classes=range(K + 1))
    learner.play(X, Y)
    check(learner.observed, X, Y, K)


def test_a_file_goes_on_with_it(tmp_path):
    whole, first = made(), made()
    whole.play(X, Y)
    first.play(X[:150], Y[:150])
    first.save(tmp_path / "model")
    second = Learner.load(tmp_path / "model")
    assert second.observed == first.observed
    second.play(X[150:], Y[150:])
    assert second.observed == whole.observed
    ended = Learner.load(tmp_path / "model")
    ended.grow(classes=range(K + 1))
    ended.save(tmp_path / "ended")
    with pytest.raises(NoBoundError, match="labels were added"):
        _ = Learner.load(tmp_path / "ended").observed
    silent = made(observe=False)
    silent.play(X[:9], Y[:9])
    silent.save(tmp_path / "silent")
    assert Learner.load(tmp_path / "silent").observed is None


def forged(tree, path, value):
    *way, last = path
    for name in way:
        tree = tree[name]
    tree[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("softmax", "mistakes"), 10_000),
        (("softmax", "mistakes"), -1),
        (("one_vs_all", "mistakes"), 0),
        (("softmax", "step"), 2.0),
        (("softmax", "step"), 0.0),
        (("one_vs_all", "step"), float("nan")),
        (("softmax", "level"), -1.0),
        (("one_vs_all", "square"), 0.25),
        (("count", "rounds"), 9_999),
        (("count", "partial"), 1),
        (("softmax_sum",), np.zeros((K + 1, 6))),
        (("one_vs_all_sum",), np.full((K, 6), np.nan)),
        (("softmax",), {}),
    ],
)
def test_a_file_with_numbers_that_no_run_leaves_is_refused(tmp_path, path, value):
    learner = made()
    learner.play(X[:50], Y[:50])
    tree = learner.__getstate__()
    forged(tree["engine"]["observed"], path, value)
    model_file.write(tmp_path / "forged", tree)
    with pytest.raises(ModelFileError):
        Learner.load(tmp_path / "forged")


def test_a_file_that_lost_it_or_never_had_it_is_refused(tmp_path):
    learner, silent = made(), made(observe=False)
    for each in (learner, silent):
        each.play(X[:50], Y[:50])
    lost, gained = learner.__getstate__(), silent.__getstate__()
    gained["engine"]["observed"], lost["engine"]["observed"] = lost["engine"]["observed"], None
    for tree in (lost, gained):
        model_file.write(tmp_path / "forged", tree)
        with pytest.raises(ModelFileError, match="is missing, or is there without observe"):
            Learner.load(tmp_path / "forged")


def test_an_interruption_leaves_it_in_step_with_the_count():
    learner, calls = made(), []

    def stop(done):
        calls.append(done)
        if len(calls) == 2:
            raise KeyboardInterrupt

    many = np.tile(X, (60, 1)), np.tile(Y, 60)
    with pytest.raises(KeyboardInterrupt):
        learner.play(*many, progress=stop)
    T = learner.rounds
    assert 0 < T < len(many[1])
    observed = learner.observed
    assert observed.rounds == T and observed.mistakes == learner.interrupted.mistakes
    again = made()
    again.play(many[0][:T], many[1][:T])
    assert again.observed == observed


def test_a_reward_between_0_and_1_ends_it(tmp_path):
    learner = made("squarecb")
    learner.play(X[:50], Y[:50])
    for reward in (1.0, 0.0):
        learner.learn(learner.decide(X[50]), reward=reward)
    assert learner.observed.rounds == 52
    learner.learn(learner.decide(X[50]), reward=0.5)
    with pytest.raises(NoBoundError, match="neither right nor wrong"):
        _ = learner.observed
    learner.save(tmp_path / "model")
    with pytest.raises(NoBoundError, match="neither right nor wrong"):
        _ = Learner.load(tmp_path / "model").observed


def test_labels_that_are_not_available_are_left_out_of_the_softmax():
    rng = np.random.default_rng(4)
    available = rng.random((len(Y), K)) < 0.5
    available[np.arange(len(Y)), Y] = True  # the right one can be played
    available[np.arange(len(Y)), (Y + 1) % K] = True
    whole, single = made("squarecb"), made("squarecb")
    trace = whole.play(X, Y, available=available)
    waiting = [single.decide(x, available=np.flatnonzero(row).tolist()) for x, row in zip(X, available)]
    for decision, y in zip(waiting, Y):  # all late: each round's own labels must still be known
        single.learn(decision, correct=bool(decision.label == y))
    for observed in (whole.observed, single.observed):
        for U in rules(X, Y, K):
            Z = np.where(available, X @ U.T, -np.inf)
            paid = float(-log_softmax(Z, axis=1)[np.arange(len(Y)), Y].sum() / np.log(2))
            assert observed.mistakes <= paid + observed.cost(float(np.linalg.norm(U))) + 1e-9
    log = Log.from_arrays(X, trace.codes, trace.codes == Y, np.ones(len(Y)), classes=range(K), available=available)
    assert observe(log, search=False) == whole.observed
    tight = observe(log)
    assert tight.least_loss(5.0) >= whole.observed.least_loss(5.0) - 1e-6
    for U in rules(X, Y, K):
        Z = np.where(available, X @ U.T, -np.inf)
        paid = float(-log_softmax(Z, axis=1)[np.arange(len(Y)), Y].sum() / np.log(2))
        assert tight.least_loss(float(np.linalg.norm(U)) * tight.norm) <= paid + 1e-9
    everything = Log.from_arrays(X, trace.codes, trace.codes == Y, np.ones(len(Y)), classes=range(K))
    assert observe(everything, search=False) != whole.observed  # over all labels it is another loss


def test_decisions_of_a_log_count_as_played():
    learner, log = made("banditron"), random_stream(60)
    for x, y in zip(log.X, log.y % K):
        learner.learn_logged(x, 0, 0.5, correct=bool(y == 0))
    assert learner.observed.rounds == 60 and learner.observed.mistakes == np.count_nonzero(log.y % K)


# --- what may not be concluded ---------------------------------------------------------------------------------


def played(X, labels, right):
    """What a learner next to this feedback would have collected."""
    return observe(Log.from_arrays(X, labels, right, np.full(len(X), 0.5), classes=[0, 1]), search=False)


def test_a_rule_without_mistakes_may_exist_all_the_same():
    rng = np.random.default_rng(0)
    side = rng.integers(2, size=10_000)
    X = np.stack([np.ones(10_000), np.where(side, 0.005, -0.005)], axis=1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    right = rng.random(10_000) < 0.7
    observed = played(X, np.where(right, side, 1 - side), right)
    assert observed.softmax[0].excess == 0.0 and observed.softmax[0].price == pytest.approx(0.52, abs=0.01)
    assert observed.least_loss(20.0) > 1_000
    assert np.array_equal(X[:, 1] > 0, side)  # its sign makes no mistake


def test_the_excess_does_not_rank_players():
    rng = np.random.default_rng(0)
    y, X = rng.integers(2, size=10_000), np.ones((10_000, 1))
    constant, alternating = np.zeros(10_000, dtype=int), np.arange(10_000) % 2
    one, two = (played(X, labels, labels == y) for labels in (constant, alternating))
    assert abs(one.mistakes - two.mistakes) < 300
    assert one.softmax[0].excess > 5 * two.softmax[0].excess


# --- counts against a given rule ------------------------------------------------------------------------------


def test_a_count_bounds_the_mistakes_made_more_than_any_rule():
    learner, rng = made(), np.random.default_rng(2)
    trace = learner.play(X, Y)
    fitted = LogisticRegression(max_iter=300).fit(X, Y).predict(X)
    for rule in (Y, fitted, rng.integers(K, size=len(Y)), np.zeros(len(Y), dtype=int), trace.labels):
        count = trace.count_against(rule)
        wrong = int(np.count_nonzero(rule != Y))
        assert trace.mistakes - wrong <= count.more
        assert count.at_least <= wrong
        assert count.rounds == len(Y) and count.alone_wrong + count.both_wrong == trace.mistakes
        loose = trace.count_against(rule, several_right=True)
        assert loose.more >= count.more and loose.at_least <= count.at_least
    assert trace.count_against(trace.labels).more == 0


def test_several_right_labels_are_counted_so_that_it_stays_true():
    """Both labels are right: we play 0, the rule 1, and neither errs."""
    log = Log.from_arrays(np.ones((9, 1)), [0] * 9, np.ones(9), np.ones(9), classes=[0, 1])
    assert log.count_against([1] * 9).more == -9  # true only if one label is right
    assert log.count_against([1] * 9, several_right=True).more == 0
    assert log.count_against([1] * 9, several_right=True).at_least == 0


def test_a_trace_in_which_several_labels_earn_asks_for_the_other_count():
    learner = made("squarecb")
    rewards = np.eye(K)[Y[:40]]
    assert learner.play(X[:40], Y[:40], rewards=rewards).count_against(Y[:40]).rounds == 40
    rewards[7] = 1.0
    trace = learner.play(X[:40], Y[:40], rewards=rewards)
    with pytest.raises(InputError, match="several labels have a reward in round 8: give several_right=True"):
        trace.count_against(Y[:40])
    assert trace.count_against(Y[:40], several_right=True).rounds == 40


def test_what_cannot_be_counted_is_refused():
    log = Log.from_arrays(np.ones((3, 1)), [0, 1, 0], [1.0, 0.25, 0.0], np.ones(3), classes=[0, 1])
    with pytest.raises(InputError, match=r"round 2 has reward 0.25, but only rewards of 1 \(correct\)"):
        log.count_against([0, 1, 0])
    with pytest.raises(InputError, match="there are 2 rounds, but the rule has 1 labels"):
        log[::2].count_against([0])
    with pytest.raises(InputError):
        log[::2].count_against([0, 7])
