"""Rounds of actions with named features, as a user meets them."""

import copy
import datetime
import itertools
import math
import pickle
import threading

import numpy as np
import pytest

from gaptron import (
    ActionRecords,
    DecisionError,
    Features,
    InputError,
    InUseError,
    Learner,
    ModelFileError,
    NoBoundError,
    SettingError,
)
from gaptron.features import ActionEncoder, Encoder, action_encoder
from gaptron.features.rounds import record_of
from gaptron.learner import model_file
from tests.conftest import portrait

STUDENT = {"user": "student", "hour": 14}
ARTICLES = {"article-7": {"topic": "sport", "age_h": 3}, "article-9": {"topic": "news"}, "article-2": {}}


def learner(feedback="bandit", algorithm="frugal-gaptron", **more):
    return Learner(algorithm, actions=True, feedback=feedback, seed=3, **{"features": "auto"} | more)


def news(rounds, seed=0, start=0):
    """Visitors with a taste for topics; articles come and go. The rounds, and the right article of each."""
    rng = np.random.default_rng(seed)
    found, right = [], []
    for t in range(start, start + rounds):
        user, hour = str(rng.choice(["student", "senior"])), float(rng.uniform(0, 24))
        articles = {}
        for at in rng.choice(12, size=int(rng.integers(2, 6)), replace=False).tolist():
            cells = {"topic": ["sport", "news", "art"][at % 3], "age_h": float(rng.lognormal(1.0, 1.0))}
            if rng.random() < 0.2:
                cells["age_h"] = None
            articles[f"article-{t // 40}-{at}"] = cells
        liked = {"student": "sport", "senior": "art"}[user]
        context = {"user": user, "hour": hour} if rng.random() < 0.9 else {}
        names = list(articles)
        score = [(articles[name]["topic"] == liked) - 0.01 * (articles[name]["age_h"] or 0.0) for name in names]
        best = names[int(np.argmax(score))]
        out = [name for name in names if name != best and rng.random() < 0.2]
        found.append({"context": context, "actions": articles, "excluded": out})
        right.append(best)
    return found, right


def decide(who, each):
    return who.decide(each["context"], actions=each["actions"], excluded=each["excluded"])


def answer(who, decision, right):
    if who.problem.feedback.word == "full":
        who.learn(decision, action=right)
    else:
        who.learn(decision, correct=bool(decision.action == right))


def run(who, rounds, right):
    played = []
    for each, best in zip(rounds, right):
        decision = decide(who, each)
        played.append(decision.action)
        answer(who, decision, best)
    return played


# --- decisions ----------------------------------------------------------------------------------------------


def test_a_decision_among_named_actions():
    who = learner()
    decision = who.decide(STUDENT, actions=ARTICLES, excluded=["article-9"])
    assert decision.action in ("article-7", "article-2")
    assert decision.label == decision.action
    assert decision.distribution.keys() == {"article-7", "article-2"}
    assert decision.propensity == decision.distribution[decision.action]
    assert decision.ranking[0] == (decision.action, decision.propensity)
    assert dict(decision.ranking) == decision.distribution
    assert sum(decision.distribution.values()) == pytest.approx(1.0)
    assert copy.deepcopy(who).pending[1].ranking == decision.ranking
    who.learn(decision, reward=1.0)
    record = pickle.loads(pickle.dumps(decision))
    assert (record.action, record.distribution) == (decision.action, decision.distribution)
    names = [column.name for column in who.features]
    assert names == [
        *("context.user", "context.hour", "action.topic", "action.age_h", "action id", "context*action"),
    ]


def test_it_learns_and_new_actions_profit():
    rounds, right = news(600)
    who = learner("full")
    run(who, rounds, right)
    for user, liked in (("student", "sport"), ("senior", "art")):
        unseen = {f"new-{topic}": {"topic": topic, "age_h": 2.0} for topic in ("sport", "news", "art")}
        assert who.rank({"user": user, "hour": 12.0}, unseen)[0] == f"new-{liked}"


@pytest.mark.parametrize(
    ("algorithm", "feedback"),
    [
        ("frugal-gaptron", "full"),
        ("frugal-gaptron", "bandit"),
        pytest.param("squarecb", "bandit", marks=pytest.mark.slow),
        pytest.param("advised-gaptron", "full", marks=pytest.mark.slow),
        pytest.param("advised-gaptron", "bandit", marks=pytest.mark.slow),
    ],
)
def test_playing_rounds_is_deciding_and_learning_one_by_one(algorithm, feedback):
    rounds, right = news(150)
    one, many, checked = (learner(feedback, algorithm) for _ in range(3))
    played = run(one, rounds, right)
    trace = many.play(rounds, right)
    assert trace.labels.tolist() == played
    assert trace.right_actions.tolist() == right
    records = ActionRecords.of(rounds)
    parts = [checked.play(records[:70], right[:70]), checked.play(records[70:], right[70:])]
    assert (parts[0] + parts[1]).labels.tolist() == played
    assert (parts[0] + parts[1]).first(10).labels.tolist() == played[:10]
    assert portrait(one) == portrait(many) == portrait(checked)
    assert one.features == many.features


def test_every_action_may_have_its_own_reward():
    rounds, _ = news(80)
    rng = np.random.default_rng(1)
    rewards = [{name: float(rng.random()) for name in each["actions"]} for each in rounds]
    one, named, listed, flat = learner(), learner(), learner(), learner()
    earned = []
    for each, own in zip(rounds, rewards):
        decision = decide(one, each)
        earned.append(own[decision.action])
        one.learn(decision, reward=earned[-1])
    assert named.play(rounds, rewards=rewards).reward.tolist() == earned
    assert listed.play(rounds, rewards=[list(own.values()) for own in rewards]).reward.tolist() == earned
    flat.play(rounds, rewards=np.concatenate([list(own.values()) for own in rewards]))
    assert portrait(one) == portrait(named) == portrait(listed) == portrait(flat)


def test_looking_is_what_deciding_would_be_and_changes_nothing():
    rounds, right = news(120)
    who = learner()
    run(who, rounds[:100], right[:100])
    before = portrait(who)
    records = ActionRecords.of(rounds[100:])
    together = who.distribution(records)
    tops = who.predict(records)
    assert portrait(who) == before
    at = 0
    for each, top in zip(rounds[100:], tops):
        given = each["context"], each["actions"]
        looked = who.distribution(*given, excluded=each["excluded"])
        scores = who.scores(*given, excluded=each["excluded"])
        ranked = who.rank(*given, excluded=each["excluded"])
        assert portrait(who) == before
        assert ranked == sorted(scores, key=lambda name: -scores[name])
        assert ranked[0] == top
        own = together[at : at + len(given[1])]
        assert {name: p for name, p in zip(given[1], own) if name in looked} == looked
        assert not any(p for name, p in zip(given[1], own) if name not in looked)
        at += len(given[1])
    decision = decide(copy.deepcopy(who), rounds[100])
    assert decision.distribution == pytest.approx(
        who.distribution(rounds[100]["context"], rounds[100]["actions"], excluded=rounds[100]["excluded"])
    )


def test_the_order_of_actions_and_of_features_in_a_round_does_not_matter():
    rounds, right = news(60)
    who = learner()
    rng = np.random.default_rng(5)
    for each, best in zip(rounds, right):
        mixed = [(name, dict(reversed(cells.items()))) for name, cells in each["actions"].items()]
        rng.shuffle(mixed)
        context, out = dict(reversed(each["context"].items())), each["excluded"]
        scores = who.scores(each["context"], each["actions"], excluded=out)
        assert who.scores(context, mixed, excluded=out) == pytest.approx(scores, abs=1e-9)
        other = copy.deepcopy(who)
        decision = other.decide(context, actions=mixed, excluded=out)
        expected = decide(who, each)
        if len(set(scores.values())) == len(scores):  # of equal scores the first is the top action
            assert decision.distribution == pytest.approx(expected.distribution, abs=1e-9)
        answer(who, expected, best)


def test_ids_are_texts_or_whole_numbers():
    who = learner()
    decision = who.decide(actions={7: {"x": 1.0}, "8": {"x": 2.0}}, excluded=["7"])
    assert decision.action == "8"
    decision = who.decide(actions=[(np.int64(7), {"x": 1.0}), ("9", {})], excluded=[np.int64(9)])
    assert decision.action == 7 and type(decision.action) is int
    full = learner("full")
    full.learn(full.decide(actions={7: {}, 8: {}}), action="7")
    with pytest.raises(InputError, match="two actions have the id '7'"):
        who.decide(actions=[(7, {}), ("7", {})])


def test_late_feedback_in_any_order_and_a_file_with_pending_decisions(tmp_path):
    rounds, right = news(90)
    who = learner()
    held = [decide(who, each) for each in rounds[:40]]
    for decision, best in list(zip(held, right))[19::-1]:
        answer(who, decision, best)
    who.save(tmp_path / "model")
    back = Learner.load(tmp_path / "model")
    assert list(back.pending) == list(range(21, 41))
    for decision, best in list(zip(held, right))[:19:-1]:
        again = back.pending[decision.round]
        assert (again.action, again.ranking) == (decision.action, decision.ranking)
        answer(who, decision, best)
        answer(back, again, best)
    with pytest.raises(DecisionError, match="learned from already"):
        answer(who, held[0], right[0])
    assert run(who, rounds[40:], right[40:]) == run(back, rounds[40:], right[40:])
    assert portrait(who) == portrait(back)
    assert who.features == back.features


def test_epsilon_draws_a_share_uniformly_over_the_actions_that_are_left():
    who = learner(epsilon=0.5)
    decision = who.decide(STUDENT, actions=ARTICLES, excluded=["article-2"])
    assert min(decision.distribution.values()) >= 0.25
    assert set(decision.distribution) == {"article-7", "article-9"}
    with pytest.raises(SettingError, match="epsilon"):
        who.play([{"actions": ARTICLES}], ["article-7"])


def test_warming_up_changes_nothing():
    who = learner()
    before = portrait(who)
    who.warm_up()
    who.warm_up([{"context": STUDENT, "actions": ARTICLES}])
    assert portrait(who) == before


def test_another_thread_is_refused_while_one_plays():
    rounds, right = news(1_100)
    who, refused = learner(), []

    def other():
        with pytest.raises(InUseError):
            decide(who, rounds[0])
        with pytest.raises(InUseError):
            who.rank({}, ARTICLES)
        refused.append(True)

    def look(_):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    who.play(rounds, right, progress=look)
    assert refused


def test_an_interruption_leaves_whole_chunks():
    rounds, right = news(2_100)
    whole, who = learner(), learner()
    through = whole.play(rounds, right)

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        who.play(rounds, right, progress=stop)
    done = who.rounds
    assert 0 < done < 2_100
    assert who.interrupted.labels.tolist() == through.labels[:done].tolist()
    who.play(rounds[done:], right[done:])
    assert portrait(who) == portrait(whole)


def test_an_interruption_between_encoding_and_playing_undoes_the_encoding(monkeypatch):
    rounds, right = news(60)
    who, whole = learner(), learner()
    for each in (who, whole):
        each.play(rounds[:20], right[:20])
    before = portrait(who)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):

        def stop(*_):
            raise KeyboardInterrupt

        patched.setattr(type(who._engine), "play_actions", stop)
        who.play(rounds[20:], right[20:])
    after = portrait(who)
    assert after["features"] == before["features"]
    who.play(rounds[20:], right[20:])
    whole.play(rounds[20:], right[20:])
    assert np.array_equal(who.weights, whole.weights)


# --- what a round is encoded as -------------------------------------------------------------------------------


def encoded(encoder, context, actions, learn=True):
    """The rows of a round as dicts column → value, the context first."""
    offer = encoder.encode_offer(record_of(context, actions, None), learn=learn)
    ends, indices, values = offer.rows
    rows = [dict(zip(indices[a:b].tolist(), values[a:b].tolist())) for a, b in itertools.pairwise(ends)]
    return [dict(zip(offer.context.indices.tolist(), offer.context.values.tolist())), *rows]


def test_context_and_actions_follow_the_rules_of_examples_by_name():
    rng = np.random.default_rng(2)
    shared, own = Encoder(Features()), Encoder(Features())
    encoder = ActionEncoder(Features(ids=False))
    for t in range(60):
        context = {"price": float(rng.lognormal(3, 1)), "user": str(rng.integers(4))}
        if t % 5 == 0:
            context["price"] = None
        action = {
            "price": float(rng.normal(5, 2)),
            "topic": str(rng.integers(3)),
            "when": datetime.datetime(2026, 1, 1 + t % 28),
        }
        c, a = encoded(encoder, context, {"a": action})
        expected = shared.encode_row(shared.read_row(context), learn=True).row
        assert list(c.values()) == pytest.approx(expected.values.tolist(), rel=1e-12)
        alone = own.encode_row(own.read_row(action), learn=True).row
        features = alone.values / alone.values[0]
        crossed = [v / expected.values[0] for v, at in zip(expected.values, c) if at != 0 and encoder._counts[at] != -1]
        products = [f * v for f in features for v in crossed]
        whole = np.array([*features, *products])
        whole = whole[whole != 0.0] / np.linalg.norm(whole) if whole.any() else whole
        assert features[0] == 1.0
        assert sorted(a.values()) == pytest.approx(sorted(whole), rel=1e-12)
        assert not set(c) & set(a)  # a price of both is two columns
        assert math.isclose(sum(v * v for v in a.values()), 1.0)


def test_all_actions_of_a_round_are_encoded_by_the_rounds_before():
    encoder = ActionEncoder(Features())
    for t in range(30):
        encoded(encoder, {"u": "a"}, {f"{t}-{k}": {"x": float(k + t % 3)} for k in range(4)})
    twice = encoded(encoder, {"u": "a"}, {"p": {"x": 9.0}, "q": {"x": 9.0}, "r": {"x": 0.0}})
    assert twice[1] == twice[2] != twice[3]


def test_a_column_that_is_left_out_gives_nothing_and_an_empty_one_is_missing():
    encoder = ActionEncoder(Features(cross=(), ids=False))
    for _ in range(3):
        encoded(encoder, {}, {"a": {"topic": "x", "age": 1.0}, "b": {"topic": "y", "age": 2.0}})
    _, full, none, empty = encoded(
        encoder, {}, {"a": {"topic": "x", "age": 9.0}, "b": {"topic": None, "age": None}, "c": {}}
    )
    assert len(full) == len(none) == 3 and set(full) & set(none) == {1}
    assert empty == {}


def test_an_id_gets_its_column_when_it_is_offered_again():
    encoder = ActionEncoder(Features())
    widths = [len(encoded(encoder, {}, {"a": {"x": "w"}, f"once-{t}": {"x": "w"}})[1]) for t in range(3)]
    assert widths == [2, 3, 3]
    ids = encoder.columns[-2]
    assert (ids.name, ids.words) == ("action id", 1)
    assert len(encoder._waiting) == 3
    without = ActionEncoder(Features(ids=False))
    assert [len(encoded(without, {}, {"a": {"x": "w"}})[1]) for t in range(3)] == [2, 2, 2]
    assert not without._waiting


def test_ids_that_never_return_take_no_columns(monkeypatch):
    monkeypatch.setattr(action_encoder, "MOST_WAITING", 50)
    encoder = ActionEncoder(Features())
    for t in range(300):
        encoded(encoder, {"u": "a"}, {f"{t}-{k}": {"x": "w"} for k in range(3)})
    assert encoder.width == 16
    assert len(encoder._waiting) == 50


def test_crosses_can_be_listed_or_left_out():
    context, action = {"user": "u", "when": "2026-01-31 23:15"}, {"topic": "t", "age": 3.0}
    sizes = {}
    for cross in (
        None,
        "context*action",
        (),
        [("user", "topic")],
        [("when.hour", "topic"), ("user", "age")],
        [("x", "y")],
    ):
        encoder = ActionEncoder(Features(cross=cross, ids=False))
        encoded(encoder, context, {"a": action})
        sizes[str(cross)] = encoder._n_pairs
    assert list(sizes.values()) == [21, 21, 0, 1, 2, 0]  # user and six parts of the time, times constant, topic and age


def test_crosses_past_the_cap_share_the_columns_of_others():
    rng = np.random.default_rng(0)
    encoder = ActionEncoder(Features(most_crosses=20, ids=False))
    words = [
        ({"u": str(rng.integers(30))}, {str(k): {"w": str(rng.integers(30))} for k in range(4)}) for _ in range(200)
    ]
    rows = [encoded(encoder, *each) for each in words]
    assert encoder._n_pairs == 20
    assert all(2 <= len(row) <= 4 for each in rows for row in each[1:])  # two crosses may be in one column
    assert all(math.isclose(sum(v * v for v in row.values()), 1.0) for each in rows for row in each)
    again = ActionEncoder(Features(most_crosses=20, ids=False))
    assert [encoded(again, *each) for each in words] == rows


def test_declared_kinds_hold_on_whichever_side_the_column_occurs():
    encoder = ActionEncoder(Features({"code": "word", "price": "log", "skip": "ignore"}, ids=False))
    encoded(encoder, {"code": 7, "price": 3.0}, {"a": {"price": 2.0, "skip": "x"}})
    kinds = {column.name: column.kind for column in encoder.columns}
    assert kinds == {
        "context.code": "word",
        "context.price": "log",
        "action.price": "log",
        "action.skip": "ignore",
        "context*action": "cross",
    }


# --- ids that are not offered any more --------------------------------------------------------------------------


def short_lived(rounds, seed=0):
    """Articles live for 30 rounds; the ids of the rounds after are others."""
    found, right = [], []
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        names = [f"{t // 30}-{k}" for k in range(4)]
        found.append(
            {"context": {"u": "ab"[t % 2]}, "actions": {n: {"x": float(rng.normal())} for n in names}, "excluded": None}
        )
        right.append(names[t % 2])
    return found, right


def test_columns_of_ids_that_are_not_offered_any_more_are_used_again(monkeypatch):
    rounds, right = short_lived(1_000)
    kept = learner()
    kept.play(rounds, right)
    monkeypatch.setattr(action_encoder, "IDLE", 50)
    one, many = learner(), learner()
    assert many.play(rounds, right).labels.tolist() == run(one, rounds, right)
    assert portrait(one) == portrait(many)
    assert len(many._encoder.ids.places) <= 4 * 5 < len(kept._encoder.ids.places)
    assert many.problem.n_features < kept.problem.n_features
    with pytest.raises(NoBoundError, match="not offered any more"):
        many.bound(rounds, right)


def test_an_id_that_lost_its_column_and_one_that_gets_it_start_from_zero(monkeypatch):
    monkeypatch.setattr(action_encoder, "IDLE", 10)
    who = learner("full", features=Features(cross=()))
    for _ in range(8):
        who.learn(who.decide(actions={"a": {}, "b": {}}), action="a")
    column = who._encoder.ids.places["a"]
    late = who.decide(actions={"a": {}, "b": {}})
    assert who.weights[0, column] > 0.0
    for t in range(20):
        who.learn(who.decide(actions={f"{t}": {"x": 1.0}, "y": {"x": 2.0}}), action="y")
    assert "a" not in who._encoder.ids.places
    assert who.weights[0, column] == 0.0
    free = list(who._encoder._free)
    for _ in range(2):
        new = who.decide(actions={"c": {}, "d": {}})
    taken = {who._encoder.ids.places[name] for name in ("c", "d")}
    assert taken == set(free)
    before = who.weights[:, sorted(taken)].copy()
    who.learn(late, action="a")  # it was about "a" and "b", which have no columns any more
    np.testing.assert_array_equal(who.weights[:, sorted(taken)], before)
    who.learn(new, action="c")
    assert who.weights[0, who._encoder.ids.places["c"]] > 0.0


def test_a_file_between_retirements_goes_on_alike(monkeypatch, tmp_path):
    monkeypatch.setattr(action_encoder, "IDLE", 50)
    rounds, right = short_lived(400)
    who = learner()
    who.play(rounds[:230], right[:230])
    held = decide(who, rounds[230])
    assert who._encoder.freed
    who.save(tmp_path / "model")
    back = Learner.load(tmp_path / "model")
    assert who.play(rounds[231:], right[231:]).labels.tolist() == back.play(rounds[231:], right[231:]).labels.tolist()
    answer(who, held, right[230])
    answer(back, back.pending[231], right[230])
    assert portrait(who) == portrait(back)


# --- theory -----------------------------------------------------------------------------------------------------


def test_the_bound_holds_for_the_rounds_that_were_played():
    rounds, right = news(300)
    who = learner("full")
    trace = who.play(rounds, right)
    bound = who.bound(rounds, right, trace)
    assert trace.expected_mistakes <= bound.value < len(rounds)
    with pytest.raises(NoBoundError, match="in their order"):
        who.bound(rounds[::-1], right[::-1])
    with pytest.raises(InputError, match="is excluded"):
        who.bound(rounds, [(each["excluded"] or right[at : at + 1])[0] for at, each in enumerate(rounds)])


# --- bad input --------------------------------------------------------------------------------------------------


class Strange:
    pass


@pytest.mark.parametrize(
    ("x", "more", "words"),
    [
        (STUDENT, {"actions": ARTICLES, "excluded": ["article-1"]}, "excluded holds 'article-1'"),
        (STUDENT, {"actions": ARTICLES, "excluded": list(ARTICLES)}, "every action is excluded"),
        (STUDENT, {"actions": ARTICLES, "excluded": "article-7"}, "must list ids"),
        (STUDENT, {"actions": ARTICLES, "excluded": [True]}, "excluded holds True"),
        (STUDENT, {"actions": {}}, "there is no action"),
        (STUDENT, {"actions": [("a", {}), ("b", {}), ("a", {})]}, "two actions have the id 'a'"),
        (STUDENT, {"actions": {str(k): {} for k in range(1_000)}}, "there are 1000 actions"),
        (STUDENT, {"actions": {str(k): {} for k in range(201)}}, "at most 200"),
        (STUDENT, {"actions": {1.5: {}}}, "the id of an action is 1.5"),
        (STUDENT, {"actions": {None: {}}}, "the id of an action is None"),
        (STUDENT, {"actions": {True: {}}}, "the id of an action is True"),
        (STUDENT, {"actions": {("a",): {}}}, "the id of an action is"),
        (STUDENT, {"actions": {"a": None}}, "action 'a' is a NoneType"),
        (STUDENT, {"actions": {"a": [1.0]}}, "action 'a' is a list"),
        (STUDENT, {"actions": {"a": {"tags": ["x"]}}}, "action 'a': column tags holds"),
        (STUDENT, {"actions": {"a": {"x": Strange()}}}, "action 'a': column x holds"),
        ({"x": {"y": 1}}, {"actions": ARTICLES}, "context: column x holds"),
        (["student"], {"actions": ARTICLES}, "context is a list"),
        ("student", {"actions": ARTICLES}, "context is a str"),
        (STUDENT, {"actions": ["a", "b"]}, "give a dict"),
        (STUDENT, {"actions": np.eye(3)}, "give a dict"),
        (STUDENT, {"actions": "abc"}, "give a dict"),
        (STUDENT, {}, "give the actions of the round by name"),
        (STUDENT, {"actions": ARTICLES, "available": [0]}, "excluded=..."),
        (STUDENT, {"actions": ARTICLES, "advice": {"article-7": 1.0}}, "advice"),
        (STUDENT, {"actions": {"a": {"x": 1, 1: 2, "1": 3}}}, "two columns have the same name"),
    ],
)
def test_a_bad_round_is_one_clear_error_and_changes_nothing(x, more, words):
    who = learner()
    who.learn(who.decide(STUDENT, actions=ARTICLES), correct=True)
    before = portrait(who)
    with pytest.raises(InputError, match=words):
        who.decide(x, **more)
    assert portrait(who) == before
    if "advice" not in more:
        with pytest.raises(InputError):
            who.rank(x, **more)
        assert portrait(who) == before


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, None, "", "NA", "word", True, 10**400, datetime.date(2026, 1, 31)]
)
def test_values_of_other_kinds_than_before_are_encoded_as_for_examples(value):
    who = learner()
    for name in ("a", "b", "a"):
        who.learn(
            who.decide({"age": 3.0}, actions={name: {"price": 1.0, "topic": "x"}, "c": {"price": 2.0}}), correct=True
        )
    decision = who.decide({"age": value}, actions={"a": {"price": value, "topic": value}, "c": {}})
    who.learn(decision, correct=True)
    assert np.isfinite(who.weights).all()
    assert all(np.isfinite(p) for p in decision.distribution.values())


@pytest.mark.parametrize(
    ("rounds", "more", "words"),
    [
        ([{"actions": ARTICLES}], {}, "needs the right action"),
        ([{"actions": ARTICLES}], {"y": ["x"]}, "round 0: y holds 'x'"),
        ([{"actions": ARTICLES}], {"y": "article-7"}, "must list the id"),
        ([{"actions": ARTICLES}], {"y": ["article-7", "article-7"]}, "1 rounds of actions, but y has 2"),
        ([{"actions": ARTICLES, "excluded": ["article-7"]}], {"y": ["article-7"]}, "'article-7' is excluded"),
        ([{"actions": ARTICLES}], {"rewards": [{"article-7": 1.0}]}, "round 0: the rewards are not those"),
        ([{"actions": ARTICLES}], {"rewards": [{}, {}]}, "1 rounds of actions, but rewards of 2"),
        ([{"actions": ARTICLES}], {"rewards": [dict.fromkeys(ARTICLES, 2.0)]}, "between 0"),
        (
            [{"actions": ARTICLES}, {"context": STUDENT}],
            {"y": ["article-7"] * 2},
            "round 1 must be a dict with actions",
        ),
        ([{"actions": ARTICLES, "contexts": {}}], {"y": ["article-7"]}, "round 0 must be a dict with actions"),
        ([{"actions": {"a": {"x": []}}}], {"y": ["a"]}, "round 0: action 'a': column x holds"),
        ({"actions": ARTICLES}, {"y": ["article-7"]}, "list of dicts"),
        (np.eye(3), {"y": [0]}, "list of dicts"),
        ([{"actions": ARTICLES}], {"y": ["article-7"], "available": [[0]]}, "excluded"),
    ],
)
def test_bad_rounds_are_one_clear_error_and_change_nothing(rounds, more, words):
    who = learner()
    who.play([{"context": STUDENT, "actions": ARTICLES}], ["article-7"])
    before = portrait(who)
    with pytest.raises(InputError, match=words):
        who.play(rounds, **more)
    assert portrait(who) == before


def test_feedback_on_an_action_that_is_not_there():
    who = learner("full")
    decision = who.decide(STUDENT, actions=ARTICLES, excluded=["article-9"])
    for wrong in ("article-9", "x", 0, None, True, 1.0):
        with pytest.raises((InputError, DecisionError)):
            who.learn(decision, action=wrong)
    who.learn(decision, action="article-2")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"features": "all"}, '"auto" or'),
        ({"features": Features(cross=[("a", "b", "c")])}, "column of context, column of actions"),
        ({"n_features": 3}, "leave out n_features"),
        ({"norm": 1.0}, "leave out n_features"),
        ({"classes": ["a", "b"]}, "leave out n_classes"),
    ],
)
def test_settings_that_do_not_go_with_named_actions(more, words):
    with pytest.raises(SettingError, match=words):
        learner(**more)


def test_what_is_for_actions_is_refused_for_labels_and_for_arrays():
    for features in (Features(cross="context*action"), Features(ids=True), Features(ids=False)):
        with pytest.raises(SettingError, match="actions=True"):
            Learner(n_classes=2, features=features)
    labels = Learner(n_classes=2, features="auto")
    with pytest.raises(InputError, match="excluded"):
        labels.decide({}, excluded=["a"])
    with pytest.raises(InputError, match="by name"):
        labels.scores({}, ARTICLES)
    arrays = Learner(actions=True)
    with pytest.raises(InputError, match="features="):
        arrays.decide(actions=ARTICLES)
    with pytest.raises(InputError, match="available="):
        arrays.decide(actions=np.eye(2), excluded=[0])
    with pytest.raises(SettingError, match="by itself"):
        learner().grow(n_features=100)


def test_the_declaration_of_the_columns_is_checked():
    for wrong in ({"cross": "all"}, {"cross": 3}, {"ids": "yes"}, {"most_crosses": 0}):
        with pytest.raises(SettingError):
            Features(**wrong)
    declared = Features({"x": "log"}, cross=[("a", "b")], ids=False, most_crosses=5)
    assert Features.from_tree(declared.as_tree()) == declared
    old = {"columns": [["x", "log"]], "cross": [], "most_words": 7, "buckets": 3}  # of a file of labels
    assert Features.from_tree(old).most_words == 7


# --- files that were made to do harm ----------------------------------------------------------------------------


def forged(change, tmp_path):
    rounds, right = short_lived(70)
    who = learner(features=Features(most_crosses=50))
    run(who, rounds, right)
    held = [decide(who, each) for each in rounds[:2]]
    tree = who.__getstate__()
    assert held
    change(tree)
    model_file.write(tmp_path / "model", tree)
    return tmp_path / "model"


def test_a_file_that_is_not_forged_loads(tmp_path):
    assert Learner.load(forged(lambda tree: None, tmp_path)).rounds == 70


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pairs", lambda a: a - (5 << 32)),
        ("pairs", lambda a: a | 0xFFFF),
        ("pairs", lambda a: a * 0 + a[0]),
        ("pairs", lambda a: a[:-1]),
        ("pairs", lambda a: a.astype(float)),
        ("pair_places", lambda a: a + 10**6),
        ("pair_places", lambda a: a * 0),
        ("pair_places", lambda a: a[::-1] * 0 + 1),
        ("last_offered", lambda a: a[:-1]),
        ("offered_once", lambda a: np.append(a, [3, 3])),
        ("offered_once", lambda a: a.astype(float)),
        ("free", lambda a: np.array([1])),
        ("free", lambda a: np.array([10**9])),
        ("freed", lambda a: np.array([10**9])),
        ("freed_after", lambda a: np.array([1])),
        ("shared", lambda a: -1),
        ("ids", lambda a: a | {"total": 10**6}),
        ("ids", lambda a: a | {"places": a["places"] + 1}),
        ("counts", lambda a: a * 0),
        ("columns_of_actions", lambda a: []),
        ("columns_of_actions", lambda a: [*a, *a]),
        ("features", lambda a: a | {"ids": False}),
        ("features", lambda a: a | {"most_crosses": 1}),
        ("features", lambda a: a | {"cross": [["a", "b", "c"]]}),
    ],
)
def test_a_forged_encoder_is_refused(name, change, tmp_path):
    def forge(tree):
        tree["features"][name] = change(tree["features"][name])

    with pytest.raises(ModelFileError):
        Learner.load(forged(forge, tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        lambda ids: ids[:-1],
        lambda ids: [],
        lambda ids: [one[:-1] for one in ids],
        lambda ids: [[1.5] * len(one) for one in ids],
        lambda ids: [["a"] * len(one) for one in ids],
        lambda ids: [None for _ in ids],
        lambda ids: "ids",
    ],
)
def test_forged_ids_of_pending_decisions_are_refused(change, tmp_path):
    def forge(tree):
        tree["pending"]["ids"] = change(tree["pending"]["ids"])

    with pytest.raises(ModelFileError):
        Learner.load(forged(forge, tmp_path))
