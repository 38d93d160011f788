"""Logs with features by name: written while a learner decides, read, and used for evaluation."""

import datetime
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from gaptron import Learner
from gaptron.cli import app
from gaptron.errors import DecisionError, GaptronError, InputError, StreamError
from gaptron.offpolicy import DecisionLog, Log, evaluate_frozen, evaluate_learning, open_log, replay, save_log

DEVICES = ("tablet", "phone", "desk")


def rows(T, seed=0):
    rng = np.random.default_rng(seed)
    start = datetime.datetime(2026, 1, 31, 23, 15)
    found = []
    for t in range(T):
        x = {"device": str(rng.choice(DEVICES)), "age": int(rng.integers(18, 80)), "member": bool(rng.integers(2))}
        x["income"] = None if t % 7 == 0 else 1e4 * rng.normal()
        found.append(x | {"when": start + datetime.timedelta(hours=t)})
    return found


def truth(x):
    return DEVICES.index(x["device"])


def learner(algorithm="frugal-gaptron", **more):
    return Learner(algorithm, classes=["a", "b", "c"], features="auto", feedback="bandit", seed=3, **more)


@pytest.fixture
def logged(tmp_path):
    """A learner that decided on rows by name and logged them, and the file."""
    mine, path = learner(), tmp_path / "decisions.jsonl"
    with DecisionLog(path) as log:
        for x in rows(300):
            decision = mine.decide(x)
            right = decision.label == "abc"[truth(x)]
            mine.learn(decision, correct=right)
            log.write(decision, correct=right, x=x)
    return mine, path


def test_learning_from_the_log_is_learning_from_the_decisions(logged):
    """Strings, missing values and times in the file are encoded as in the decisions."""
    mine, path = logged
    log = open_log(path)
    assert log.n_rounds == 300 and log.feature_dicts[0]["device"] in DEVICES and log.feature_dicts[0]["income"] is None
    again = learner()
    for t in range(300):
        x = log.feature_dicts[t]
        again.learn_logged(x, log.classes[log.codes[t]], log.propensity[t], correct=bool(log.reward[t]))
    np.testing.assert_array_equal(again.weights, mine.weights)


def test_a_log_by_name_is_kept_cut_and_gone_on_with(logged, tmp_path):
    log = open_log(logged[1])
    save_log(log, tmp_path / "again.jsonl.gz")
    other = open_log(tmp_path / "again.jsonl.gz")
    assert other.feature_dicts == log.feature_dicts and other.classes == log.classes
    np.testing.assert_array_equal(other.X.toarray(), log.X.toarray())
    part = log[100:200]
    assert part.feature_dicts == log.feature_dicts[100:200] and part.X.shape == (100, log.n_features)
    with DecisionLog(logged[1]) as more:
        x = rows(1, seed=9)[0]
        decision = logged[0].decide(x)
        more.write(decision, correct=True, x=x)
    assert open_log(logged[1]).n_rounds == 301


@pytest.mark.parametrize("by_name", [True, False])
def test_learners_with_and_without_features_are_evaluated_by_it(logged, by_name):
    """Learners without features take the numbers that `Features()` makes of the dicts."""
    log = open_log(logged[1])
    mine = learner() if by_name else _wide(log)
    result = evaluate_learning(mine, log[:200])
    assert result.rounds == 200 and 0.0 <= result.proven.low <= result.proven.high <= 1.0
    before = mine.rounds
    assert evaluate_frozen(mine, log[200:]).rounds == 100 and mine.rounds == before


def _wide(log):
    return Learner(
        "squarecb", classes=log.classes, feedback="bandit", n_features=log.n_features, norm=1.001, horizon=300, seed=1
    )


def test_numbers_made_of_the_rows_are_those_a_learner_with_features_sees(logged):
    """A learner is therefore evaluated alike whether it encodes the examples itself or gets them encoded.

    The exception are examples with new words: when scored, such a word only adds to the norm.
    """
    log = open_log(logged[1])[:100]
    inside, outside = learner(), Learner("frugal-gaptron", classes=log.classes, feedback="bandit", norm=1.0, seed=3)
    one, two = evaluate_learning(inside, log), evaluate_learning(outside, log)
    np.testing.assert_array_equal(inside.weights, outside.weights)
    for first, second in zip(one.estimates, two.estimates):
        assert first[1:] == pytest.approx(second[1:], abs=0.01)


def test_replay_by_name():
    rng = np.random.default_rng(1)
    xs = rows(200)
    labels = rng.integers(0, 3, 200)
    right = labels == [truth(x) for x in xs]
    log = Log.from_arrays(xs, ["abc"[k] for k in labels], right, np.full(200, 1 / 3), classes="abc")
    mine = learner()
    assert replay(mine, log).used == mine.rounds > 20


def test_evaluate_takes_a_saved_model_by_name(logged, tmp_path):
    mine, path = logged
    mine.save(tmp_path / "model.gaptron")
    words = ["evaluate", str(path), "--load", str(tmp_path / "model.gaptron"), "--json"]
    said = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert (
        said["estimates"]["doubly robust"]["mistakes"] == evaluate_frozen(mine, open_log(path)).estimates[-1].mistakes
    )
    new = CliRunner().invoke(app, ["evaluate", str(path), "-a", "squarecb"], catch_exceptions=False)
    assert "\nconclusion: " in new.stdout


# --- refusals ---


def test_numbers_do_not_evaluate_a_learner_with_features_nor_names_one_without(logged, tmp_path):
    mine, path = logged
    numbers = Log.from_arrays(np.eye(3), list("abc"), [1, 0, 1], [0.5] * 3, classes="abc")
    with pytest.raises(InputError, match="takes features by name, but this log has numbers"):
        evaluate_frozen(mine, numbers)
    mine.save(tmp_path / "names.gaptron")
    _wide(open_log(path)).save(tmp_path / "numbers.gaptron")
    save_log(numbers, tmp_path / "numbers.jsonl")
    for log, model, said in (
        (tmp_path / "numbers.jsonl", "names", "takes features by name"),
        (path, "numbers", "takes numbers, but"),
    ):
        result = CliRunner().invoke(app, ["evaluate", str(log), "--load", str(tmp_path / f"{model}.gaptron")])
        assert isinstance(result.exception, GaptronError) and said in str(result.exception)


def test_the_row_must_be_given_where_the_learner_does_not_keep_it(logged, tmp_path):
    mine, _ = logged
    decision = mine.decide(rows(1)[0])
    with DecisionLog(tmp_path / "log.jsonl") as log, pytest.raises(DecisionError, match=r"x=\{\.\.\.\}"):
        log.write(decision, correct=True)
    plain = Learner("frugal-gaptron", n_classes=3, feedback="bandit", norm=1.0)
    decision = plain.decide(np.ones(2) / 2)
    with DecisionLog(tmp_path / "log.jsonl") as log, pytest.raises(DecisionError, match="leave out x="):
        log.write(decision, correct=True, x={"a": 1.0})
    assert not (tmp_path / "log.jsonl").exists()


FIRST = '{"format":"gaptron-log","version":1,"classes":["a","b"],"features":"auto"}'
LINE = '{"x":%s,"label":"a","propensity":0.5,"reward":1}'
BAD = {
    "array": (LINE % "[1,2]", "line 2: x is not an object of features by name"),
    "nested": (LINE % '{"a":[1]}', "line 2: column a holds"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_line_is_named(tmp_path, bad):
    line, said = BAD[bad]
    (tmp_path / "log.jsonl").write_text(f"{FIRST}\n{line}\n")
    with pytest.raises(StreamError, match=said):
        open_log(tmp_path / "log.jsonl")


def test_a_header_says_one_of_the_two(tmp_path):
    (tmp_path / "log.jsonl").write_text(FIRST[:-1] + ',"n_features":2}\n')
    with pytest.raises(StreamError, match="without n_features"):
        open_log(tmp_path / "log.jsonl")
