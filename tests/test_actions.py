"""Rounds that bring their own actions, as a user meets them."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron import (
    ActionExamples,
    DecisionError,
    InputError,
    InUseError,
    Learner,
    ModelFileError,
    NoBoundError,
    SettingError,
)
from gaptron.algorithms import load
from gaptron.learner import model_file
from tests.conftest import portrait
from tests.plain_actions import LAYOUTS, give_feedback, learner, together, world

ABLE = [("frugal-gaptron", "full"), ("frugal-gaptron", "bandit"), ("softmax", "full")]
ABLE += [("squarecb", "bandit"), ("epsilon-greedy", "bandit")]
WITHOUT_CONTEXT = ABLE.copy()
ABLE += [("advised-gaptron", "full"), ("advised-gaptron", "bandit")]
PHI = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.3, 0.3, -1.0]])
WITH_CONTEXTS = ActionExamples.of(np.concatenate([PHI, PHI[:2]]), [3, 2], sp.csr_array([[0, 1.0, 2.0], [0, 3.0, 0]]))


def able(algorithm, feedback, **more):
    return learner(feedback, algorithm, norm=20.0, **more)


# --- one by one, and at once --------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("algorithm", "feedback"), ABLE)
def test_playing_is_deciding_and_learning_one_by_one(algorithm, feedback, layout):
    offers, right = world(120, most=6)
    one, other = able(algorithm, feedback), able(algorithm, feedback)
    trace = one.play(together(offers, layout), right)
    for t, (Phi, y) in enumerate(zip(offers, right)):
        decision = other.decide(actions=LAYOUTS[layout](Phi))
        assert decision.action == trace.labels[t]
        assert decision.distribution[y] == trace.truth_probability[t]
        give_feedback(other, decision, y)
    assert portrait(one) == portrait(other)
    assert trace.mistakes == int((trace.labels != right).sum())
    np.testing.assert_array_equal(trace.right_actions, right)


@pytest.mark.parametrize(("algorithm", "feedback"), ABLE)
def test_dense_and_sparse_rows_agree(algorithm, feedback):
    offers, right = world(120, most=6)
    dense, sparse = (able(algorithm, feedback).play(together(offers, layout), right) for layout in LAYOUTS)
    np.testing.assert_array_equal(dense.labels, sparse.labels)
    np.testing.assert_allclose(dense.truth_probability, sparse.truth_probability, atol=1e-9)


def test_a_learner_keeps_the_layout_of_its_first_round():
    offers, right = world(60)
    one, other = learner(), learner()
    one.play(together(offers[:20]), right[:20])
    other.play(together(offers[:20]), right[:20])
    one.play(together(offers[20:]), right[20:])
    other.play(together(offers[20:], "sparse"), right[20:])
    assert portrait(one) == portrait(other)


def test_chunks_single_precision_and_lists_of_rounds():
    offers, right = world(2_500, most=3)
    whole, parts, listed = learner("bandit"), learner("bandit"), learner("bandit")
    trace = whole.play(together(offers), right)
    both = parts.play(together(offers)[:1_300], right[:1_300]) + parts.play(together(offers)[1_300:], right[1_300:])
    np.testing.assert_array_equal(trace.labels, both.labels)
    np.testing.assert_array_equal(trace.first(10).labels, trace.labels[:10])
    np.testing.assert_array_equal(trace.curve.mistakes, both.curve.mistakes)
    listed.play(offers, right)
    assert portrait(whole) == portrait(parts) == portrait(listed)
    narrow = ActionExamples.of(np.concatenate(offers).astype(np.float32), [len(Phi) for Phi in offers])
    single = learner("bandit", precision="single")
    assert single.play(narrow, right).mistakes < 1_200
    with pytest.raises(NoBoundError):
        _ = single.certificate


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("algorithm", "feedback"), [each for each in ABLE if load(each[0]).CARD.single])
def test_single_precision_takes_half_the_memory_and_gives_nearly_the_same(algorithm, feedback, layout, tmp_path):
    offers, right = world(200, most=6)
    double, single = (able(algorithm, feedback, precision=precision) for precision in ("double", "single"))
    for who in (double, single):
        who.play(together(offers[:1], layout), right[:1])
    assert single._engine.state.W.dtype == np.float32 and double._engine.state.W.dtype == np.float64
    for Phi, y in zip(offers[1:], right[1:]):
        for who in (double, single):
            given = {"truth": y} if feedback == "full" else {"correct": y == 0}
            who.learn_logged(actions=LAYOUTS[layout](Phi), action=0, propensity=0.5, **given)
        np.testing.assert_allclose(single.scores(Phi), double.scores(Phi), rtol=1e-3, atol=1e-3)
    single.save(tmp_path / "model")
    assert portrait(Learner.load(tmp_path / "model")) == portrait(single)


@pytest.mark.parametrize(("algorithm", "feedback"), [each for each in ABLE if each[1] == "bandit"])
def test_every_action_may_have_its_own_reward(algorithm, feedback):
    offers, _ = world(150)
    rewards = [np.random.default_rng(t).random(len(Phi)) * (t % 3 > 0) for t, Phi in enumerate(offers)]
    one, other = able(algorithm, feedback), able(algorithm, feedback)
    trace = one.play(together(offers), rewards=np.concatenate(rewards))
    earned = []
    for Phi, reward in zip(offers, rewards):
        decision = other.decide(actions=Phi)
        earned.append(reward[decision.action])
        other.learn(decision, reward=float(earned[-1]))
    np.testing.assert_array_equal(trace.reward, earned)
    assert trace.mistakes == earned.count(0.0)
    assert portrait(one) == portrait(other)
    assert portrait(able(algorithm, feedback)) != portrait(one)
    listed = able(algorithm, feedback)
    np.testing.assert_array_equal(listed.play(offers, rewards=rewards).labels, trace.labels)


def test_available_rows_in_play_and_one_by_one():
    offers, right = world(150, most=6)
    rng = np.random.default_rng(3)
    allowed = [rng.random(len(Phi)) < 0.6 for Phi in offers]
    for flags, y in zip(allowed, right):
        flags[y] = True
    one, other, listed = learner("bandit"), learner("bandit"), learner("bandit")
    trace = one.play(together(offers), right, available=np.concatenate(allowed))
    for t, (Phi, flags, y) in enumerate(zip(offers, allowed, right)):
        decision = other.decide(actions=Phi, available=flags)
        assert decision.action == trace.labels[t]
        assert not decision.distribution[~flags].any()
        give_feedback(other, decision, y)
    assert portrait(one) == portrait(other)
    np.testing.assert_array_equal(trace.right_actions, right)
    listed.play(offers, right, available=[np.flatnonzero(flags) for flags in allowed])
    assert portrait(one) == portrait(listed)
    with pytest.raises(NoBoundError, match="unavailable"):
        one.bound(offers, right)


def test_it_learns():
    offers, right = world(1_500, most=6, noise=0.2)
    guess = sum(1.0 - 1.0 / len(Phi) for Phi in offers)
    for algorithm, feedback in ABLE:
        more = {} if algorithm in ("frugal-gaptron", "advised-gaptron") else {"norm": 6.0}
        assert learner(feedback, algorithm, **more).play(offers, right).mistakes < 0.5 * guess, algorithm


# --- decisions ----------------------------------------------------------------------------------------------


def test_a_decision_shows_its_action_and_the_ranking():
    who = learner("bandit")
    decision = who.decide(actions=PHI, available=[0, 2])
    assert decision.action in (0, 2)
    assert decision.label == decision.action
    assert decision.propensity == decision.distribution[decision.action]
    assert decision.distribution[1] == 0.0
    assert next(row for row, _ in decision.ranking) == decision.action
    assert sorted(row for row, _ in decision.ranking) == [0, 2]
    assert sum(p for _, p in decision.ranking) == pytest.approx(1.0)
    copied = copy.deepcopy(who)
    assert copied.pending[1].ranking == decision.ranking
    who.learn(decision, correct=True)
    record = pickle.loads(pickle.dumps(decision))
    assert (record.action, record.ranking) == (decision.action, decision.ranking)


def test_scores_rank_and_predict_change_nothing():
    offers, right = world(60)
    who = learner("bandit")
    who.play(offers, right)
    before = portrait(who)
    scores, p = who.scores(PHI.repeat(2, axis=1)[:, :4]), who.distribution(PHI.repeat(2, axis=1)[:, :4])
    Phi = PHI.repeat(2, axis=1)[:, :4]
    assert who.rank(Phi) == list(np.argsort(-scores))
    assert who.rank(Phi, available=[True, False, True]) == [k for k in np.argsort(-scores) if k != 1]
    assert p.sum() == pytest.approx(1.0)
    assert list(who.predict(Phi)) == [int(scores.argmax())]
    limited = who.scores(Phi, available=[0, 1])
    assert limited[2] == -np.inf
    np.testing.assert_array_equal(who.predict(offers), [who.rank(one)[0] for one in offers])
    np.testing.assert_array_equal(who.scores(together(offers)), np.concatenate([who.scores(one) for one in offers]))
    assert portrait(who) == before
    assert learner().rank(PHI) == [0, 1, 2]  # nothing is learned


def test_the_decision_keeps_its_own_rows():
    rows = PHI.copy()
    one, other = learner("bandit"), learner("bandit")
    first, second = one.decide(actions=rows), other.decide(actions=PHI)
    rows[:] = 7.0
    one.learn(first, correct=True)
    other.learn(second, correct=True)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.weights.shape == (1, 3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("algorithm", "feedback"), ABLE)
def test_late_feedback_learns_as_if_the_actions_were_scored_today(algorithm, feedback, layout):
    offers, right = world(40)
    who, held = able(algorithm, feedback), []
    for Phi in offers:
        held.append(who.decide(actions=LAYOUTS[layout](Phi)))
    for decision, y in list(zip(held, right))[::-1]:
        give_feedback(who, decision, y)
    assert who.rounds == 40
    assert np.ptp(who.scores(np.eye(4))) > 0.0
    with pytest.raises(DecisionError, match="learned from already"):
        give_feedback(who, held[0], right[0])


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("algorithm", "feedback"), ABLE)
def test_a_file_keeps_pending_decisions_of_any_size(algorithm, feedback, layout, tmp_path):
    offers, right = world(80, most=7)
    who = able(algorithm, feedback)
    who.play(together(offers[:40], layout), right[:40])
    held = [who.decide(actions=LAYOUTS[layout](Phi), available=[0, len(Phi) - 1]) for Phi in offers[40:46]]
    who.save(tmp_path / "model")
    back = Learner.load(tmp_path / "model")
    assert repr(back) == repr(who)
    for decision, y in zip(held, right[40:46]):
        again = back.pending[decision.round]
        assert (again.action, again.propensity, again.ranking) == (
            decision.action,
            decision.propensity,
            decision.ranking,
        )
        answer = y if y in (0, len(again.distribution) - 1) else 0
        give_feedback(who, decision, answer)
        give_feedback(back, again, answer)
    one, other = (each.play(together(offers[46:], layout), right[46:]) for each in (who, back))
    np.testing.assert_array_equal(one.labels, other.labels)
    assert portrait(who) == portrait(back)


def test_a_file_before_the_first_round(tmp_path):
    who = learner("bandit", n_features=3)
    who.save(tmp_path / "model")
    back = Learner.load(tmp_path / "model")
    assert back.decide(actions=PHI).action == who.decide(actions=PHI).action


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("offered", lambda a: a * 0),
        ("offered", lambda a: a + 1),
        ("offered", lambda a: a - 10**6),
        ("given", lambda a: a * 10**9),
        ("given", lambda a: a * 0),
        ("code", lambda a: a + 99),
        ("code", lambda a: a - 99),
        ("round", lambda a: a * 0),
        ("round", lambda a: a + 10**6),
        ("places", lambda a: a - 5),
        ("places", lambda a: a + 10**6),
        ("places", lambda a: a * 0),
        ("scores", lambda a: a * np.nan),
        ("scores", lambda a: a[:-1]),
        ("drawn_from", lambda a: a * 0.0),
        ("drawn_from", lambda a: a - 2.0),
        ("drawn_from", lambda a: a.astype(np.float32)),
        ("drawn_with", lambda a: a + 1.0),
        ("rows", lambda rows: rows | {"indices": rows["indices"] + 9}),
        ("rows", lambda rows: rows | {"indptr": rows["indptr"][:-1]}),
        ("contexts", lambda rows: rows | {"indices": rows["indices"] + 9}),
        ("contexts", lambda rows: rows | {"indices": rows["indices"] * 0}),
        ("contexts", lambda rows: rows | {"values": rows["values"] * np.nan}),
        ("contexts", lambda rows: rows | {"indptr": rows["indptr"][:-1]}),
    ],
)
def test_a_forged_pending_decision_is_refused(name, change, tmp_path):
    who = learner("bandit")
    held = [who.decide(actions=offer) for offer in WITH_CONTEXTS]
    tree = who.__getstate__()
    assert len(held) == 2
    tree["pending"][name] = change(tree["pending"][name])
    model_file.write(tmp_path / "model", tree)
    with pytest.raises(ModelFileError, match=r"pending|column"):
        Learner.load(tmp_path / "model")


@pytest.mark.parametrize("value", [None, 1, "yes", False])
def test_a_forged_kind_is_refused(value, tmp_path):
    who = learner("bandit", n_features=3)
    tree = who.__getstate__() | {"actions": value}
    model_file.write(tmp_path / "model", tree)
    with pytest.raises(ModelFileError):
        Learner.load(tmp_path / "model")


# --- growing, warming up, threads ---------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("algorithm", "feedback"), ABLE)
def test_features_can_be_added(algorithm, feedback, layout):
    offers, right = world(60)
    wide = [np.pad(Phi, ((0, 0), (0, 2))) for Phi in offers]
    one, other = able(algorithm, feedback), able(algorithm, feedback)
    one.play(together(offers[:30], layout), right[:30])
    held = one.decide(actions=LAYOUTS[layout](offers[30]))
    one.grow(n_features=6)
    give_feedback(one, held, right[30])
    one.play(together(wide[31:], layout), right[31:])
    other.play(together(wide[:30], layout), right[:30])
    again = other.decide(actions=LAYOUTS[layout](wide[30]))
    other._engine.last_scored_round = 0  # growing ends it
    give_feedback(other, again, right[30])
    other.play(together(wide[31:], layout), right[31:])
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-12)
    np.testing.assert_allclose(one.scores(np.eye(6)), other.scores(np.eye(6)), atol=1e-12)


def test_warming_up_changes_nothing_and_compiles_both_ways():
    for layout in LAYOUTS:
        who = learner("bandit", n_features=3)
        before = portrait(who)
        who.warm_up(sparse=layout == "sparse")
        who.warm_up(LAYOUTS[layout](PHI))
        assert portrait(who) == before


def test_warming_up_says_what_one_round_at_a_time_needs():
    for layout in LAYOUTS:
        who = Learner("softmax", actions=True, n_features=3, feedback="full")
        with pytest.raises(SettingError, match="norm="):
            who.warm_up(sparse=layout == "sparse")
        who.warm_up(LAYOUTS[layout](PHI), one_by_one=False)


def test_another_thread_is_refused_while_one_plays():
    offers, right = world(3_000, most=2)
    who, refused = learner("bandit"), []

    def look(_):
        with pytest.raises(InUseError):
            who.decide(actions=offers[0])
        refused.append(who.rank(offers[0]))  # the thread that plays may read

    who.play(together(offers), right, progress=look)
    assert refused


def test_an_interruption_leaves_whole_chunks():
    offers, right = world(3_000, most=2)
    whole, who = learner("bandit"), learner("bandit")
    through = whole.play(together(offers), right)

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        who.play(together(offers), right, progress=stop)
    done = who.rounds
    assert 0 < done < 3_000
    np.testing.assert_array_equal(who.interrupted.labels, through.labels[:done])
    who.play(together(offers)[done:], right[done:])
    assert portrait(who) == portrait(whole)


def test_epsilon_draws_a_share_uniformly_over_the_available_actions():
    who = learner("bandit", epsilon=0.5)
    decision = who.decide(actions=PHI, available=[0, 1])
    plain = learner("bandit").distribution(PHI, available=[0, 1])
    np.testing.assert_allclose(decision.distribution, 0.5 * plain + [0.25, 0.25, 0.0])
    np.testing.assert_allclose(who.distribution(PHI[:2]), decision.distribution[:2])
    with pytest.raises(SettingError, match="epsilon"):
        who.play([PHI], [0])


# --- contexts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_context_changes_nothing_where_the_algorithm_has_no_use_for_it(layout):
    offers, right = world(60)
    contexts = np.pad(np.random.default_rng(1).normal(size=(60, 2)), ((0, 0), (4, 0)))
    wide = [np.pad(Phi, ((0, 0), (0, 2))) for Phi in offers]
    counts = [len(Phi) for Phi in offers]
    rows = LAYOUTS[layout](np.concatenate(wide))
    plain, given = ActionExamples.of(rows, counts), ActionExamples.of(rows, counts, sp.csr_array(contexts))
    for algorithm, feedback in [*WITHOUT_CONTEXT, ("advised-gaptron", "full")]:
        one, other, single = (able(algorithm, feedback) for _ in range(3))
        one.play(plain, right)
        other.play(given, right)
        assert portrait(one) == portrait(other)
        for t in range(60):
            give_feedback(single, single.decide(actions=given[t]), right[t])
        assert portrait(one) == portrait(single)


def test_a_round_of_many_has_its_own_context():
    contexts = np.array([[0, 0, 0, 2.0], [0, 0, 0, 0], [0, 0, 0, -1.0]])
    rows = np.pad(np.concatenate([PHI, PHI, PHI[:2]]), ((0, 0), (0, 1)))
    rounds = ActionExamples.of(rows, [3, 3, 2], contexts.astype(np.float32))
    for part, expected in ((rounds, contexts), (rounds[1:], contexts[1:]), (rounds[1:][1:], contexts[2:])):
        for t, row in enumerate(expected):
            np.testing.assert_array_equal(part[t].context.indices, np.flatnonzero(row))
            np.testing.assert_array_equal(part[t].context.values, row[row != 0.0])
            whole = part[t].as_examples()
            np.testing.assert_array_equal(whole[0].context.values, part[t].context.values)
    kept = rounds.only(np.tile([True, False], 4))
    assert [len(kept[t].places) for t in range(3)] == [2, 1, 1]
    np.testing.assert_array_equal(kept[2].context.values, [-1.0])


def test_pending_decisions_keep_their_contexts_in_a_file(tmp_path):
    who = learner("bandit")
    held = [who.decide(actions=offer) for offer in WITH_CONTEXTS]
    who.save(tmp_path / "model")
    back = Learner.load(tmp_path / "model")
    for decision in held:
        for one, other in zip(back.pending[decision.round]._x.context, decision._x.context):
            np.testing.assert_array_equal(one, other)
            assert (one.dtype, one.flags.writeable) == (other.dtype, other.flags.writeable)
    assert len(held[0]._x.context.values) == 2


@pytest.mark.parametrize(
    ("contexts", "words"),
    [
        (np.zeros((1, 3)), "one row for each of 2 rounds"),
        (np.zeros((2, 2)), "as many columns as the actions have, 3"),
        (np.full((2, 3), np.nan), "row 0 of contexts holds NaN"),
        (np.full((2, 3), 1e200), "row 0 of contexts"),
        (np.zeros(2), "contexts must have two dimensions"),
        ([["a", "b", "c"]] * 2, "contexts"),
    ],
)
def test_bad_contexts_are_refused(contexts, words):
    with pytest.raises(InputError, match=words):
        ActionExamples.of(PHI, [2, 1], contexts)


# --- bad input ----------------------------------------------------------------------------------------------

NAN = np.where(np.eye(3) > 0, np.nan, 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"actions": np.zeros((0, 3))}, "at least one"),
        ({"actions": np.ones((201, 3))}, "at most 200"),
        ({"actions": np.ones((1_000, 3))}, "there are 1000 actions"),
        ({"actions": NAN}, "row 0 of actions holds NaN"),
        ({"actions": np.ones((2, 4))}, "4 columns; the learner has 3"),
        ({"actions": np.ones(3)}, "one row per action"),
        ({"actions": [[1.0, 2.0, 3.0], [1.0]]}, "one row per action"),
        ({"actions": [["a", "b", "c"]]}, "not numbers"),
        ({"actions": np.full((2, 3), 1e200)}, "norm"),
        ({"actions": sp.csr_array(NAN)}, "row 0 of actions holds NaN"),
        ({}, "actions=..."),
        ({"x": PHI[0]}, "only actions"),
        ({"actions": PHI, "advice": [1, 0, 0]}, "advice"),
        ({"actions": PHI, "available": []}, "at least one action"),
        ({"actions": PHI, "available": [False, False, False]}, "at least one action"),
        ({"actions": PHI, "available": [True, False]}, "there are 3 actions"),
        ({"actions": PHI, "available": [0, 3]}, "rows 0 to 2"),
        ({"actions": PHI, "available": [-1]}, "rows 0 to 2"),
        ({"actions": PHI, "available": [0.5]}, "3 booleans"),
        ({"actions": PHI, "available": [[0], [1, 2]]}, "3 booleans"),
    ],
)
def test_a_bad_round_is_one_clear_error_and_changes_nothing(arguments, words):
    who = learner("bandit")
    who.play([PHI], [0])
    before = portrait(who)
    with pytest.raises(InputError, match=words):
        who.decide(**arguments)
    assert portrait(who) == before


@pytest.mark.parametrize(
    ("given", "more", "words"),
    [
        ([PHI, PHI], {"y": [0]}, "2 rounds"),
        ([PHI, PHI], {"y": [0, 3]}, "round 1: action 3"),
        ([PHI, PHI], {"y": [0, -1]}, "round 1: action -1"),
        ([PHI, PHI], {"y": [0.0, 1.0]}, "whole numbers"),
        ([PHI, PHI], {}, "needs the right action"),
        ([PHI, PHI], {"y": [0, 0], "rewards": np.ones(6)}, "not both"),
        ([PHI, PHI], {"rewards": np.ones(5)}, "6 rounds|6"),
        ([PHI, PHI], {"rewards": [[1, 0, 0], [1, 0]]}, "round 1 has 3 actions, but 2 rewards"),
        ([PHI, PHI], {"rewards": np.full(6, 2.0)}, "between 0"),
        ([PHI, PHI[:, :2]], {"y": [0, 0]}, "width"),
        ([PHI, np.zeros((0, 3))], {"y": [0, 0]}, "round 1 of actions: there is no action"),
        ([], {"y": []}, "no rounds"),
        ([PHI, NAN], {"y": [0, 0]}, "NaN"),
        ([PHI], {"y": [0], "available": np.array([True])}, "one per row"),
        ([PHI], {"y": [0], "available": np.array([False] * 3)}, "round 0"),
        ([PHI], {"y": [0], "available": [[1]]}, "right action 0 is not available"),
        ([PHI], {"y": [0], "available": [[1], [2]]}, "each of 1 rounds"),
        ([PHI], {"y": [0], "available": [[7]]}, "round 0: available holds 7"),
    ],
)
def test_bad_rounds_are_one_clear_error_and_change_nothing(given, more, words):
    who = learner("bandit")
    who.play([PHI], [0])
    before = portrait(who)
    with pytest.raises(InputError, match=words):
        who.play(given, **more)
    assert portrait(who) == before


def test_counts_must_fit_the_rows():
    for counts, words in (([2, 2], "sum to 4"), ([3, 0], "no action"), ([1.5, 1.5], "whole"), ([[3]], "whole")):
        with pytest.raises(InputError, match=words):
            ActionExamples.of(PHI, counts)
    with pytest.raises(InputError, match="step"):
        _ = ActionExamples.of(PHI, [1, 1, 1])[::2]


@pytest.mark.parametrize(
    ("feedback", "answer", "words"),
    [
        ("full", {"label": 0}, "action="),
        ("full", {"correct": True}, "action="),
        ("full", {}, "action="),
        ("bandit", {"action": 0}, "correct="),
        ("bandit", {}, "correct="),
        ("bandit", {"correct": True, "reward": 1.0}, "correct="),
    ],
)
def test_feedback_of_another_kind(feedback, answer, words):
    who = learner(feedback)
    decision = who.decide(actions=PHI)
    with pytest.raises(DecisionError, match=words):
        who.learn(decision, **answer)
    give_feedback(who, decision, 0)


@pytest.mark.parametrize("action", [3, -1, "a", 1.0, True, None])
def test_an_action_that_is_not_there(action):
    who = learner()
    decision = who.decide(actions=PHI)
    with pytest.raises((InputError, DecisionError)):
        who.learn(decision, action=action)
    limited = who.decide(actions=PHI, available=[0, 1])
    with pytest.raises(InputError, match="not available"):
        who.learn(limited, action=2)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"n_classes": 3}, "leave out n_classes"),
        ({"classes": ["a", "b"]}, "leave out n_classes"),
        ({"features": "auto"}, "leave out n_features=... and norm=..."),
        ({"algorithm": "gaptron"}, "advised-gaptron, epsilon-greedy, frugal-gaptron, softmax, squarecb"),
        ({"feedback": "apple-tasting"}, "'full' or 'bandit'"),
        ({"feedback": np.eye(2, dtype=bool)}, "'full' or 'bandit'"),
        ({"loss": "hinge"}, "logistic"),
        ({"algorithm": "frugal-gaptron", "delay": 2}, "no theorem"),
        ({"algorithm": "frugal-gaptron", "beta": 0.5}, "no theorem"),
        ({"delay": 2}, "does not apply"),
        ({"delay": 2, "feedback": "bandit"}, "no theorem"),
        ({"algorithm": "softmax", "step": "adagrad"}, "fixed"),
        ({"algorithm": "squarecb", "feedback": "bandit", "steps": "adagrad"}, "constant"),
        ({"actions": 1}, "True or False"),
    ],
)
def test_settings_that_do_not_go_with_actions(more, words):
    with pytest.raises(SettingError, match=words):
        Learner(**{"actions": True, "norm": 1.0, **more})


def test_what_is_for_labels_is_refused_in_one_sentence():
    who = learner("bandit")
    with pytest.raises(SettingError, match="no labels"):
        who.grow(classes=["a", "b"])
    with pytest.raises(DecisionError, match="in place of label"):
        who.learn_logged(PHI, 0, 0.5, correct=True)
    assert who.observed is None
    trace = who.play([PHI], [0])
    with pytest.raises(InputError, match="labels"):
        trace.count_against([0])
    with pytest.raises(InputError, match="labels"):
        trace.in_order(np.array([0]))
    labels = Learner(n_classes=3, norm=2.0)
    with pytest.raises(SettingError, match="rank"):
        labels.rank(PHI)
    with pytest.raises(SettingError, match="preview"):
        labels.preview(PHI)
    with pytest.raises(InputError, match="actions=True"):
        labels.decide(PHI[0], actions=PHI)
    with pytest.raises(DecisionError, match="actions=True"):
        labels.learn(labels.decide(PHI[0]), action=1)
    with pytest.raises(InputError, match="different"):
        _ = trace + labels.play(PHI, [0, 1, 2])


def test_a_preview_has_scores_and_distribution_in_one_pass():
    who = learner("bandit")
    who.play([PHI, PHI, PHI], [0, 1, 1])
    before = portrait(who)
    preview = who.preview(PHI, available=[2, 0])
    scores, p = who.scores(PHI, available=[2, 0]), who.distribution(PHI, available=[2, 0])
    assert preview.actions == (0, 2)
    assert preview.scores.tolist() == scores[[0, 2]].tolist()
    assert preview.distribution.tolist() == p[[0, 2]].tolist()
    assert [preview.actions[k] for k in preview.order] == who.rank(PHI, available=[2, 0])
    assert portrait(who) == before


@pytest.mark.parametrize(("algorithm", "feedback"), ABLE)
def test_every_algorithm_learns_from_a_decision_of_another_policy(algorithm, feedback):
    who = able(algorithm, feedback)
    given = {"truth": 1} if feedback == "full" else {"correct": True}
    for propensity in (0.3, 1.0):
        who.learn_logged(actions=PHI, action=0, propensity=propensity, **given)
    assert who.decided == 2 and np.isfinite(who.weights).all()


@pytest.mark.parametrize(
    ("feedback", "given", "problem"),
    [
        ("bandit", {"correct": True}, None),
        ("bandit", {"reward": 1.0}, None),
        ("bandit", {"reward": 1.5}, InputError),
        ("bandit", {"correct": True, "reward": 1.0}, DecisionError),
        ("bandit", {"truth": 2}, DecisionError),
        ("full", {"truth": 2}, None),
        ("full", {"truth": 1}, InputError),
        ("full", {"correct": True}, DecisionError),
        ("full", {}, DecisionError),
    ],
)
def test_feedback_can_be_checked_before_it_is_learned_from(feedback, given, problem):
    who = learner(feedback)
    who.learn_logged(
        actions=PHI, action=0, propensity=0.5, **({"truth": 0} if feedback == "full" else {"correct": True})
    )
    before = portrait(who)
    for call in (
        lambda: who.check_feedback(0, available=[0, 2], **given),
        lambda: who.learn_logged(actions=PHI, action=0, propensity=0.5, available=[0, 2], **given),
    ):
        if problem is None:
            call()
        else:
            with pytest.raises(problem):
                call()
            assert portrait(who) == before
    with pytest.raises(InputError, match="label holds 1"):
        who.check_feedback(1, available=[0, 2], **given)
    with pytest.raises(InputError, match="available"):
        who.check_feedback(0, **given)


def test_the_default_algorithm():
    assert Learner(actions=True).algorithm == "advised-gaptron"
    assert Learner(n_classes=2).algorithm == "advised-gaptron"
    assert Learner(actions=True, n_features=50).classes == ()
    assert "actions=True" in repr(Learner(actions=True))
    assert gaptron.ActionDecision is type(learner().decide(actions=PHI))
