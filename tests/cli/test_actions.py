"""`gaptron play --actions` and `gaptron evaluate --actions`, from files that a user has."""

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from gaptron import Learner
from gaptron.cli import app
from gaptron.errors import GaptronError
from gaptron.offpolicy import ActionLog, evaluate_frozen, evaluate_learning
from gaptron.streams.actions import open_actions, save_actions
from tests.conftest import portrait
from tests.offpolicy.action_worlds import rounds, write_log


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def values(*arguments):
    return json.loads(run(*arguments, "--json"))


def refused(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(result.exception, GaptronError), result.output
    return str(result.exception)


def write_right(path, T, seed=0):
    """Full information: the likeliest action is right."""
    with open(path, "w") as file:
        for context, actions, likely in rounds(T, seed):
            line = {"context": context, "actions": actions, "right": list(actions)[likely.argmax()]}
            file.write(json.dumps(line) + "\n")
    return path


def write_rewards(path, T, seed=0):
    """A table with the chance of a click on every action as its reward."""
    with open(path, "w") as file:
        file.write("round,action,segment,hour,topic,age,reward\n")
        for t, (context, actions, likely) in enumerate(rounds(T, seed)):
            for (action, own), reward in zip(actions.items(), likely):
                cells = t, action, context["segment"], context["hour"], own["topic"], own["age"], reward
                file.write(",".join(map(str, cells)) + "\n")
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return write_log(tmp_path_factory.mktemp("logs") / "log.jsonl", 600, greed=0.3)


def test_playing_a_log_is_learning_from_it(log, tmp_path):
    found = values("play", log, "--actions", "-a", "squarecb", "--seed", 4, "--save", tmp_path / "m.gaptron")
    who = Learner("squarecb", actions=True, features="auto", feedback="bandit", seed=4, horizon=600)
    result = evaluate_learning(who, ActionLog(open_actions(log)))
    assert found["kind"] == "played" and found["rounds"] == 600
    estimated = found["estimated"]["the learner"]
    assert estimated["reward"] == pytest.approx(1.0 - result.estimates[-1].mistakes, rel=1e-12)
    assert estimated["low"] < estimated["reward"] < estimated["high"]
    assert found["estimated"]["logged policy"]["reward"] == pytest.approx(1.0 - result.logged.mistakes)
    assert found["estimated"]["uniform play"]["high"] < estimated["reward"]
    saved = Learner.load(tmp_path / "m.gaptron")
    assert saved.reading.pop("learned_from")
    assert portrait(saved) == portrait(who)
    shown = run("play", log, "--actions", "-a", "squarecb", "--verbose")
    for part in ("600 rounds, 2 to 6 actions in each", "mean reward", "uniform play", "conclusion:", "settings:"):
        assert part in shown


def test_a_model_goes_on_where_it_stopped(tmp_path):
    whole, parts = write_right(tmp_path / "all.jsonl", 120), [tmp_path / f"{k}.jsonl" for k in range(2)]
    lines = whole.read_text().splitlines(keepends=True)
    for part, own in zip(parts, (lines[:70], lines[70:])):
        part.write_text("".join(own))
    first = values("play", parts[0], "--actions", "--save", tmp_path / "m.gaptron")
    second = values("play", parts[1], "--actions", "--load", tmp_path / "m.gaptron", "--save", tmp_path / "n.gaptron")
    together = values("play", whole, "--actions", "--save", tmp_path / "o.gaptron")
    assert first["mistakes"] + second["mistakes"] == together["mistakes"]
    assert together["kind"] == "right" and together["feedback"] == "full" and together["best"] == 1.0
    assert together["bound"]["value"] >= together["bound"]["comparator_loss"]
    ends = [Learner.load(tmp_path / name) for name in ("n.gaptron", "o.gaptron")]
    assert (ends[0].weights == ends[1].weights).all()
    assert "it is not for" not in run("play", whole, "--actions", "--feedback", "bandit")


def test_playing_rewards_of_every_action(tmp_path):
    path = write_rewards(tmp_path / "all.csv", 400)
    found = values("play", path, "--actions", "-a", "squarecb", "--save", tmp_path / "m.gaptron")
    assert found["kind"] == "rewards" and found["feedback"] == "bandit" and found["bound"] is None
    assert found["uniform"] < found["reward"] <= found["best"]
    assert found["share_of_best"] == pytest.approx(found["reward"] / found["best"])
    chances = [likely for _, _, likely in rounds(400, 0)]
    assert found["uniform"] == pytest.approx(sum(each.mean() for each in chances) / 400)
    assert found["best"] == pytest.approx(sum(each.max() for each in chances) / 400)
    names = {column["name"] for column in found["columns"]}
    assert {"context.segment", "context.hour", "action.topic", "action.age"} <= names
    # A second file, in which a feature of the actions happens not to differ, is read as the first one was.
    short = tmp_path / "short.csv"
    short.write_text("round,action,segment,hour,topic,age,reward\n1,x,pilot,3,art,1,0\n1,y,pilot,3,news,1,1\n")
    again = values("play", short, "--actions", "--load", tmp_path / "m.gaptron")
    assert {column["name"] for column in again["columns"]} == names


def test_evaluating_a_saved_model(log, tmp_path):
    run("play", log, "--actions", "-a", "squarecb", "--save", tmp_path / "m.gaptron")
    other = write_log(tmp_path / "other.jsonl", 200, seed=8)
    found = values("evaluate", other, "--actions", "--load", tmp_path / "m.gaptron")
    result = evaluate_frozen(Learner.load(tmp_path / "m.gaptron"), ActionLog(open_actions(other)))
    for estimate in result.estimates:
        expected = pytest.approx([estimate.mistakes, estimate.low, estimate.high], rel=1e-9)
        assert list(found["estimates"][estimate.name].values()) == expected
    assert found["n_rounds"] == 200 and found["n_actions"] == sum(len(actions) for _, actions, _ in rounds(200, 8))
    shown = run("evaluate", other, "--actions", "--load", tmp_path / "m.gaptron")
    assert "a mistake is 1 - reward" in shown and "doubly robust" in shown


@pytest.mark.parametrize("method", ["learning", "holdout", "replay"])
def test_evaluating_a_new_learner(method, log):
    found = values("evaluate", log, "--actions", "-a", "squarecb", "--method", method)
    assert found["method"] == method and 0.0 <= found["logged"]["mistakes"] <= 1.0
    assert found["evaluated_rounds"] == (300 if method == "holdout" else 600)


def test_the_same_log_in_other_formats_gives_the_same_estimates(log, tmp_path):
    expected = values("evaluate", log, "--actions", "-a", "squarecb")
    save_actions(open_actions(log), tmp_path / "log.dsjson.gz")
    found = values("evaluate", tmp_path / "log.dsjson.gz", "--actions", "-a", "squarecb")
    assert found["estimates"] == expected["estimates"] and found["proven"] == expected["proven"]


def test_positions_are_not_taken_for_ids(tmp_path):
    text = "".join(f"|A n:{t % 3}\n0:-1:0.5 |A n:{t % 2}\n\n" for t in range(30))
    (tmp_path / "log.vw").write_text(text)
    found = values("play", tmp_path / "log.vw", "--actions", "-a", "squarecb")
    assert "the actions have no ids" in found["notes"][0]
    assert "action id" not in {column["name"] for column in found["columns"]}


def test_damaged_lines_are_skipped_on_request(log, tmp_path):
    damaged = tmp_path / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    damaged.write_text("".join([*lines[:50], "{\n", *lines[50:100]]))
    message = refused("evaluate", damaged, "--actions", "-a", "squarecb")
    assert "line 51" in message and "--skip-damaged skips lines" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = values("evaluate", damaged, "--actions", "-a", "squarecb", "--skip-damaged")
    assert found["n_rounds"] == 100 and any("line 51" in warning for warning in found["warnings"])


def test_options_that_do_not_fit_are_refused(log, tmp_path):
    assert refused("play", log, "--actions", "--norm", 3) == "--norm is not for --actions: leave it out"
    assert refused("play", log, "--costs", "0..1") == "--costs is for files of actions with features: add --actions"
    assert "--costs is not for jsonl files" in refused("play", log, "--actions", "--costs", "0..1")
    assert "use --feedback bandit" in refused("play", log, "--actions", "--feedback", "full")
    assert "banditron does not support --actions" in refused("play", log, "--actions", "-a", "banditron")
    assert "--probabilities is not for --actions" in refused("evaluate", log, "--actions", "--probabilities", "p")
    assert "--reward ... is only for tables" in refused("evaluate", log, "--reward", "r", "-a", "squarecb")
    right = write_right(tmp_path / "right.jsonl", 5)
    assert "this is not a log" in refused("evaluate", right, "--actions", "-a", "squarecb")
    Learner(n_classes=2, n_features=2).save(tmp_path / "labels.gaptron")
    assert "chooses between labels" in refused("play", log, "--actions", "--load", tmp_path / "labels.gaptron")
    by_label = refused("evaluate", log, "--actions", "--load", tmp_path / "labels.gaptron")
    assert "this log has actions by name" in by_label
    run("play", right, "--actions", "--save", tmp_path / "m.gaptron")
    assert "does not say which action is right" in refused("play", log, "--actions", "--load", tmp_path / "m.gaptron")
    header = {"format": "gaptron-log", "version": 1, "classes": ["a", "b"], "n_features": 1}
    decision = {"x": [1], "label": "a", "propensity": 0.5, "reward": 1}
    (tmp_path / "x.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(decision)}\n")
    assert "add --actions" in refused("evaluate", tmp_path / "x.jsonl", "--load", tmp_path / "m.gaptron")


def test_a_world_is_played_by_its_name():
    found, stream = values("play", "news:rounds=150", "--actions", "-a", "squarecb"), open_actions("news:rounds=150")
    starts = stream.first[:-1]
    assert found["best"] == pytest.approx(np.maximum.reduceat(stream.expected, starts).mean())
    who = Learner("squarecb", actions=True, features="auto", feedback="bandit", horizon=150, seed=0)
    trace = who.play(stream.records, rewards=stream.reward)
    assert found["reward"] == pytest.approx(trace.reward.mean())
    assert found["share_of_best"] == pytest.approx(stream.expected[starts + trace.codes].mean() / found["best"])
    assert "on average" in run("play", "news:rounds=150", "--actions", "-a", "squarecb", "--limit", 100)
