"""A learner with features: rows by name from the first decision to the file and back."""

import copy
import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gaptron import Features, InputError, Learner, ModelFileError, NoBoundError, OnlineClassifier, SettingError
from gaptron.streams import Stream

LABELS = ["no", "yes", "perhaps"]


def clicks(rounds: int, seed: int = 0) -> tuple[list[dict], list[str]]:
    """A log of clicks: the label depends on a word, a number of another scale and a gap."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for _ in range(rounds):
        device, age = str(rng.choice(["phone", "tablet", "desktop"])), rng.lognormal(10.0, 1.0)
        known = rng.random() < 0.8
        score = {"phone": 1.0, "tablet": -1.0, "desktop": 0.0}[device] + 0.5 * (age > 22_000) + (0.0 if known else 2.0)
        labels.append(LABELS[int(score > 0.5) + int(score > 1.5)])
        rows.append(
            {
                "age": float(age) if known else None,
                "device": device,
                "member": bool(rng.integers(2)),
                "when": datetime.datetime(2026, 1, 1) + datetime.timedelta(minutes=int(rng.integers(100_000))),
            }
        )
    return rows, labels


def learner(**more) -> Learner:
    return Learner(**{"algorithm": "gaptron", "classes": LABELS, "features": "auto", "seed": 3} | more)


def test_playing_a_table_is_deciding_and_learning_dicts():
    rows, labels = clicks(300)
    one, many, listed = learner(), learner(), learner()
    played = []
    for x, label in zip(rows, labels):
        decision = one.decide(x)
        played.append(decision.label)
        one.learn(decision, label=label)
    trace = many.play(pd.DataFrame(rows), labels)
    assert trace.labels.tolist() == played
    assert listed.play(rows, labels).labels.tolist() == played
    assert np.array_equal(one.weights, many.weights)
    assert np.array_equal(one.weights, listed.weights)
    assert one.features == many.features
    assert trace.top_mistakes < 0.7 * sum(label != "no" for label in labels)  # the commonest


def test_looking_is_what_deciding_would_be_and_changes_nothing():
    rows, labels = clicks(200)
    one = learner()
    one.play(rows, labels)
    before = copy.deepcopy(one)
    strange = {"age": "old", "device": "watch", "new": 7, "member": None}
    table = pd.DataFrame(rows)
    for x in (rows[0], rows[7], strange):
        expected = one.distribution([x])[0]
        assert np.allclose(copy.deepcopy(one).decide(x).distribution, expected, atol=0.02)
    assert one.predict(table).tolist() == one.predict(rows).tolist()
    assert np.array_equal(one.scores(table), one.scores(rows))
    assert one.features == before.features
    assert one.play(table, labels).labels.tolist() == before.play(table, labels).labels.tolist()


def test_columns_in_another_order_are_the_same_rows():
    rows, labels = clicks(300)
    table = pd.DataFrame(rows)
    one = learner()
    one.play(table[:200], labels[:200])
    other = copy.deepcopy(one)
    assert (
        one.play(table[200:], labels[200:]).labels.tolist()
        == other.play(table[200:][table.columns[::-1]], labels[200:]).labels.tolist()
    )
    assert np.array_equal(one.weights, other.weights)


def test_save_load_continue_is_continue(tmp_path):
    rows, labels = clicks(400)
    one = learner(features=Features({"age": "log"}, cross=[("device", "member")], most_words=5, buckets=3))
    one.play(rows[:200], labels[:200])
    waiting = one.decide(rows[0])
    one.save(tmp_path / "model.gaptron")
    other = Learner.load(tmp_path / "model.gaptron")
    assert other.features == one.features
    one.learn(waiting, label="yes")
    other.learn(other.pending[waiting.round], label="yes")
    assert one.play(rows[200:], labels[200:]).labels.tolist() == other.play(rows[200:], labels[200:]).labels.tolist()
    assert np.array_equal(one.weights, other.weights)


def test_a_file_with_a_damaged_encoder_is_refused(tmp_path, monkeypatch):
    rows, labels = clicks(50)
    one = learner()
    one.play(rows, labels)
    state = one.__getstate__()
    state["features"]["columns"][0]["places"][:] = 10**9
    monkeypatch.setattr(Learner, "__getstate__", lambda self: state)
    one.save(tmp_path / "model.gaptron")
    with pytest.raises(ModelFileError, match="features"):
        Learner.load(tmp_path / "model.gaptron")


def test_an_interruption_leaves_encoder_and_weights_at_the_same_round():
    rows, labels = clicks(3000)
    table = pd.DataFrame(rows)
    one, other = learner(), learner()

    def stop(rounds: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one.play(table, labels, progress=stop)
    assert 0 < one.rounds < 3000
    assert one.interrupted.rounds == one.rounds
    rest = one.play(table[one.rounds :], labels[one.rounds :])
    whole = other.play(table, labels)
    assert rest.labels.tolist() == whole.labels.tolist()[-rest.rounds :]
    assert np.array_equal(one.weights, other.weights)
    assert one.features == other.features


def test_an_interruption_before_the_rows_are_played_forgets_them(monkeypatch):
    rows, labels = clicks(500)
    one, other = learner(), learner()
    for each in (one, other):
        each.play(rows[:100], labels[:100])

    def stop(*_) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gaptron.kernels.play.play", stop)
        with pytest.raises(KeyboardInterrupt):
            one.play(rows[100:], labels[100:])
    assert one.rounds == 100
    assert one.features == other.features
    assert one.play(rows[100:], labels[100:]).labels.tolist() == other.play(rows[100:], labels[100:]).labels.tolist()


def test_the_bound_is_of_the_rows_that_were_played():
    rows, labels = clicks(200)
    one = learner()
    trace = one.play(rows, labels)
    one.predict(rows)
    bound = one.bound(rows, labels, trace)
    assert trace.expected_mistakes <= bound.value
    with pytest.raises(NoBoundError, match="in their order"):
        one.bound(rows[::-1], labels)


def test_refusals_change_nothing():
    rows, labels = clicks(50)
    one = learner()
    one.play(rows, labels)
    before = one.features
    for call, words in (
        (lambda: one.play(rows, labels[:3]), "50 rows but y has 3 labels"),
        (lambda: one.play(rows, ["who"] * 50), "not one of the 3 classes"),
        (lambda: one.play([{"age": [1]}], ["no"]), "column age"),
        (lambda: one.decide({"age": {}}), "column age"),
        (lambda: one.decide(7), "give a dict"),
        (lambda: one.decide(rows[0], advice=[1.0, 0.0, 0.0]), "advice"),
        (lambda: one.play(7, ["no"]), "X is a int"),
    ):
        with pytest.raises(InputError, match=words):
            call()
    assert one.features == before
    assert one.decided == 50


def test_without_features_a_dict_names_the_way():
    plain = Learner("gaptron", classes=LABELS, seed=0)
    for call in (lambda: plain.decide({"age": 1.0}), lambda: plain.play([{"age": 1.0}], ["no"])):
        with pytest.raises(InputError, match='features="auto"'):
            call()
    with pytest.raises(InputError, match='features="auto"'):
        plain.play(pd.DataFrame({"device": ["phone"]}), ["no"])
    assert plain.features is None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"n_features": 3}, "leave out n_features"),
        ({"norm": 1.0}, "leave out n_features=... and norm"),
        ({"features": "all"}, "must be"),
        ({"algorithm": "exp4", "horizon": 10, "radius": 1.0}, "cannot grow"),
    ],
)
def test_settings_that_make_no_sense_are_refused(more, words):
    with pytest.raises(SettingError, match=words):
        learner(**more)


def test_arrays_and_streams_are_tables_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, 1e6, 1e-6] + [0.0, 1e7, 0.0]
    y = np.array(LABELS)[np.argmax(X / [1.0, 1e6, 1e-6] - [0.0, 10.0, 0.0], axis=1)].tolist()
    one, other, third = learner(), learner(), learner()
    expected = one.play(X, y).labels.tolist()
    assert other.play(pd.DataFrame(X), y).labels.tolist() == expected
    stream = Stream.from_arrays(X, y, classes=LABELS)
    assert third.play(stream).labels.tolist() == expected
    assert [column.name for column in one.features] == ["0", "1", "2"]


@pytest.mark.parametrize("algorithm", ["advised-gaptron", "perceptron", "arow", "newtron"])
@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_algorithms_of_every_make_grow_with_the_words(algorithm, feedback):
    if (algorithm, feedback) in (("newtron", "full"), ("perceptron", "bandit"), ("arow", "bandit")):
        pytest.skip("not its feedback")
    more = {"radius": 1.0, "horizon": 60} if algorithm == "newtron" else {}
    one = learner(algorithm=algorithm, feedback=feedback, **more)
    rows = [{"id": f"user {i % 40}", "x": float(i)} for i in range(60)]
    labels = [LABELS[i % 3] for i in range(60)]
    one.play(pa.Table.from_pylist(rows), labels)
    assert one.problem.n_features == 64
    assert one.rounds == 60


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist, list], ids=lambda make: make.__name__
)
def test_the_scikit_learn_estimator_takes_rows_by_name(make):
    rows, labels = clicks(300)
    model = OnlineClassifier("gaptron", features="auto", epochs=2, random_state=0).fit(make(rows), labels)
    expected = OnlineClassifier("gaptron", features="auto", epochs=2, random_state=0).fit(rows, labels)
    assert model.predict(make(rows)).tolist() == expected.predict(rows).tolist()
    assert model.score(make(rows), labels) > 0.7
    assert model.decision_function(make(rows[:5])).shape == (5, 3)
    model.partial_fit(make(rows), labels, sample_weight=[2] * 300)
    assert model.t_ == 1200
    with pytest.raises(AttributeError, match="encoded"):
        _ = model.coef_
    with pytest.raises(InputError, match="300 rows but y has 2"):
        model.partial_fit(make(rows), labels[:2])


@pytest.mark.parametrize("feedback", ["full", "bandit", "apple-tasting"])
def test_warming_changes_nothing(feedback):
    more = {"algorithm": "gappletron", "classes": ["no", "yes"]} if feedback == "apple-tasting" else {}
    one = learner(feedback=feedback, radius=1.0, horizon=100, **more)
    other = copy.deepcopy(one)
    one.warm_up()
    assert (one.decided, one.rounds, one.features) == (0, 0, [])
    rows, _ = clicks(20)
    assert [one.decide(x).label for x in rows] == [other.decide(x).label for x in rows]
    plain = Learner("gaptron", n_classes=3, norm=1.0, seed=0)
    plain.warm_up()
    plain.warm_up(sparse=True)
    assert plain.problem.n_features == 0


def test_examples_that_were_checked_once_are_taken_by_index():
    rows, labels = clicks(60)
    one, other = (learner(feedback="bandit", algorithm="advised-gaptron") for _ in range(2))
    examples = one.check(rows)
    for at, (x, label) in enumerate(zip(rows, labels)):
        assert np.array_equal(one.distribution(examples[at]), other.distribution([x]))
        one.learn_logged(examples[at], label, 0.5, correct=at % 2 == 0)
        other.learn_logged(x, label, 0.5, correct=at % 2 == 0)
    assert np.array_equal(one.weights, other.weights) and one.features == other.features
    assert one.check(examples) is examples
