"""The command `gaptron evaluate`."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from gaptron import Learner
from gaptron.cli import app
from gaptron.errors import GaptronError
from gaptron.offpolicy import (
    Log,
    evaluate_frozen,
    evaluate_learning,
    evaluate_policy,
    open_log,
    record,
    replay,
    save_log,
    to_obp,
)
from tests.conftest import noisy_stream

X, Y, K = noisy_stream(600, noise=0.1)
WORDS = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, K, 600)
    log = Log.from_arrays(X, WORDS[labels], labels == Y, np.full(600, 1 / K), classes=WORDS)
    place = tmp_path_factory.mktemp("logs") / "uniform.jsonl.gz"
    save_log(log, place)
    return str(place)


def run(*words, stdin=None):
    result = CliRunner().invoke(app, ["evaluate", *words], input=stdin, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def account(*words):
    return json.loads(run(*words, "-a", "squarecb", "--json"))


def learner(log, horizon=None):
    return Learner(
        "squarecb", classes=log.classes, feedback="bandit", norm=log.norm, horizon=horizon, seed=4, n_features=6
    )


@pytest.mark.parametrize("method", ["learning", "holdout", "replay"])
def test_it_says_what_the_library_says(path, method):
    said, log = account(path, "--method", method, "--seed", "4", "--level", "0.9"), open_log(path)
    mine = learner(log)
    if method == "learning":
        result = evaluate_learning(mine, log, level=0.9)
    elif method == "replay":
        result = replay(mine, log, level=0.9, seed=4)
    else:
        evaluate_learning(mine, log[:300])
        result = evaluate_frozen(mine, log[300:], level=0.9)
    assert {name: tuple(each.values()) for name, each in said["estimates"].items()} == {
        estimate.name: tuple(estimate[1:]) for estimate in result.estimates
    }
    assert tuple(said["proven"].values()) == tuple(result.proven[1:])
    assert (said["evaluated_rounds"], said["used_rounds"], said["method"]) == (result.rounds, result.used, method)
    assert said["settings"]["c"] == 10.0


def test_the_summary_says_what_is_estimated(path):
    text = run(path, "-a", "squarecb")
    lines, text = text.splitlines(), text.replace("\n    ", " ")
    assert "squarecb: learns from every round" in text and "600 rounds, 6 features, 3 classes" in text
    for name in ("logged policy", "inverse propensity", "self-normalised", "doubly robust", "proven interval"):
        assert re.search(rf"^{name} .*\d+\.\d\d% to \d+\.\d\d%", text, re.M), name
    assert "95% interval" in text and "use --method replay (about 200 rounds)" in text
    assert re.search(r"weights: mean [01]\.\d+ .*effective rounds: \d+", text)
    assert (
        re.search(r"^conclusion: (better than the log|inconclusive): .*$", text.splitlines()[-1])
        and max(map(len, lines[1:])) <= 80
    )
    replayed = run(path, "-a", "squarecb", "--method", "replay", "--set", "c=5")
    assert "conclusion: a replay is not comparable with the log" in replayed
    assert "of 600 rounds kept" in replayed and "c=5" in replayed and "weights:" not in replayed


def test_the_other_forms_say_the_same(path, tmp_path):
    log = open_log(path)
    expected = account(path)["estimates"]
    for name in ("log.dsjson", "log.npz"):
        save_log(log, tmp_path / name)
        # VW's form has sparse rows, and for those the ridge regressions are solved step by step.
        found = account(str(tmp_path / name))["estimates"]
        for estimate, numbers in expected.items():
            assert found[estimate] == pytest.approx(numbers, abs=1e-5)


def test_standard_input(path):
    log = open_log(path)
    lines = [json.dumps({"format": "gaptron-log", "version": 1, "classes": ["ant", "bee", "cat"], "n_features": 6})]
    for t in range(100):
        line = {"x": log.X[t].tolist(), "label": log.classes[log.codes[t]], "propensity": 1 / 3}
        lines.append(json.dumps({**line, "reward": log.reward[t]}))
    assert "standard input: 100 rounds" in run("-", "-a", "squarecb", stdin="\n".join(lines))


def test_warnings_are_shown(tmp_path):
    log = record(Learner("squarecb", n_classes=K, feedback="bandit", norm=1.0, seed=0), X, Y)
    lying = Log.from_arrays(log.X, log.codes, log.reward, np.sqrt(log.propensity), classes=range(K))
    save_log(lying, tmp_path / "log.jsonl")
    assert "warning: the weights have mean" in run(str(tmp_path / "log.jsonl"), "-a", "squarecb")


def test_a_proven_interval_beside_the_estimate_is_explained(tmp_path):
    log = record(Learner("squarecb", n_classes=K, feedback="bandit", norm=1.0, seed=0), X, Y)
    lying = Log.from_arrays(log.X, log.codes, log.reward, 0.6 * log.propensity, classes=range(K))
    save_log(lying, tmp_path / "log.jsonl")
    report = account(str(tmp_path / "log.jsonl"))
    proven = report["proven"]
    assert not proven["low"] <= proven["mistakes"] <= proven["high"]
    assert "does not contain the first estimate" in run(str(tmp_path / "log.jsonl"), "-a", "squarecb")


def test_a_replay_of_next_to_nothing_is_not_recommended(tmp_path):
    p = np.where(np.arange(K) == Y[:, None], 1 - 2e-3, 1e-3)
    log = Log.from_arrays(X, Y, np.ones(600), p[np.arange(600), Y], classes=range(K), distribution=p)
    save_log(log, tmp_path / "log.jsonl")
    text = run(str(tmp_path / "log.jsonl"), "-a", "squarecb").replace("\n    ", " ")
    assert "this log explores too little for it (about 1 rounds)" in text


# --- a saved model, and the caller's own policy ---------------------------------------------------


def test_a_saved_model_is_evaluated_without_learning(path, tmp_path):
    log = open_log(path)
    mine = learner(log)
    evaluate_learning(mine, log[:300])
    mine.save(tmp_path / "model.gaptron")
    save_log(log[300:], tmp_path / "later.jsonl")
    words = [str(tmp_path / "later.jsonl"), "--load", str(tmp_path / "model.gaptron")]
    said, result = json.loads(run(*words, "--json")), evaluate_frozen(mine, log[300:])
    assert said["estimates"]["doubly robust"]["mistakes"] == result.estimates[-1].mistakes
    assert (said["method"], said["algorithm"], said["evaluated_rounds"]) == ("frozen", "squarecb", 300)
    text = run(*words).replace("\n    ", " ")
    assert "model.gaptron: evaluated on every round, without learning" in text and "--method replay" not in text
    assert text.splitlines()[-1].startswith("conclusion: ")
    learning = json.loads(run(*words, "--method", "learning", "--json"))
    assert learning["estimates"] != said["estimates"]


def with_field(path, place, field):
    """The log of a file with an additional field on every line."""
    log = open_log(path)
    save_log(log, place)
    first, *lines = place.read_text().splitlines()
    own = [json.dumps(json.loads(line) | {"mine": value}) for line, value in zip(lines, field(log))]
    place.write_text("\n".join([first, *own]) + "\n")
    return str(place)


def whole(log):
    """A policy that plays mostly the true label."""
    return np.where(np.arange(K) == Y[:, None], 0.8, 0.1)


def test_a_policy_of_the_caller(path, tmp_path):
    every = with_field(path, tmp_path / "every.jsonl", lambda log: whole(log).tolist())
    named = with_field(path, tmp_path / "named.jsonl", lambda log: [dict(zip(WORDS, p)) for p in whole(log).tolist()])
    played = with_field(path, tmp_path / "played.jsonl", lambda log: whole(log)[np.arange(600), log.codes].tolist())
    said = [json.loads(run(place, "--probabilities", "mine", "--json")) for place in (every, named, played)]
    assert said[0]["estimates"] == said[1]["estimates"]
    by_hand = evaluate_policy(open_log(path).with_policy(whole(None)))
    assert said[0]["estimates"]["doubly robust"]["mistakes"] == by_hand.estimates[-1].mistakes
    truth = 1 - 0.8  # it plays the true label with this probability for every example
    assert said[0]["estimates"]["doubly robust"]["low"] < truth < said[0]["estimates"]["doubly robust"]["high"]
    assert list(said[2]["estimates"]) == ["inverse propensity", "self-normalised"]
    for name in said[2]["estimates"]:
        assert said[2]["estimates"][name]["mistakes"] == said[0]["estimates"][name]["mistakes"]
    text = run(played, "--probabilities", "mine")
    assert "probabilities in 'mine': evaluated on every round" in text and "conclusion: better than the log" in text


def test_a_policy_of_the_caller_in_the_other_forms(path, tmp_path):
    log = open_log(path)
    save_log(log, tmp_path / "log.dsjson")
    lines = (tmp_path / "log.dsjson").read_text().splitlines()
    own = [json.dumps(json.loads(line) | {"mine": p}) for line, p in zip(lines, whole(log).tolist())]
    (tmp_path / "log.dsjson").write_text("\n".join(own) + "\n")
    np.savez(tmp_path / "log.npz", mine=whole(log)[:, :, None], **to_obp(log))
    expected = json.loads(run(str(tmp_path / "log.npz"), "--probabilities", "mine", "--json"))["estimates"]
    found = json.loads(run(str(tmp_path / "log.dsjson"), "--probabilities", "mine", "--json"))["estimates"]
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, abs=1e-5)


WRONG = {
    "sum": (lambda log: [[0.5, 0.4, 0.0]] * 600, "line 2: the policy's probabilities sum to 0.9"),
    "range": (lambda log: [1.5] * 600, r"line 2: a probability of the policy is not in \[0, 1\]"),
    "label": (lambda log: [{"dog": 1.0}] * 600, 'line 2: mine names "dog"'),
    "kind": (lambda log: ["0.5"] * 600, 'line 2: mine is "0.5", not a number'),
    "mixed": (lambda log: [0.5, [0.5, 0.5, 0.0]] * 300, "line 3: some lines have"),
    "length": (lambda log: [[0.5, 0.5]] * 600, "line 2: mine has 2 entries, expected 3"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_probabilities_are_named_by_line(path, tmp_path, wrong):
    field, said = WRONG[wrong]
    place = with_field(path, tmp_path / "log.jsonl", field)
    result = CliRunner().invoke(app, ["evaluate", place, "--probabilities", "mine"])
    assert isinstance(result.exception, GaptronError) and re.search(said, str(result.exception))
    assert result.output == ""


def test_a_log_without_exploration_is_warned_of(tmp_path):
    p = np.where(np.arange(K) == Y[:, None], 1 - 2e-3, 1e-3)
    log = Log.from_arrays(X, Y, np.ones(600), p[np.arange(600), Y], classes=range(K), distribution=p)
    save_log(log, tmp_path / "log.jsonl")
    words = ["evaluate", str(tmp_path / "log.jsonl"), "-a", "squarecb"]
    said = "warning: the logger hardly explored: 100% of its labels"
    assert said in CliRunner().invoke(app, words).stdout
    machine = CliRunner().invoke(app, [*words, "--json"])
    assert said in machine.stderr and json.loads(machine.stdout)["warnings"]


BAD = {
    "two": (["LOG", "-a", "squarecb", "--load", "m"], "give only one of"),
    "frozen": (["LOG", "-a", "squarecb", "--method", "frozen"], "give one with --load"),
    "learning-probabilities": (["LOG", "--probabilities", "mine", "--method", "learning"], "does not learn here"),
    "set": (["LOG", "--load", "m", "--set", "c=1"], "--set is only for a new learner"),
    "no-model": (["LOG", "--load", "none.gaptron"], "none.gaptron"),
    "no-field": (["LOG", "--probabilities", "mine"], "line 2: field 'mine' is missing"),
    "no-file": (["none.jsonl", "-a", "squarecb"], "none.jsonl: file not found"),
    "no-form": ([__file__, "-a", "squarecb"], "give --format one of csv, dsjson, jsonl, obp"),
    "method": (["LOG", "-a", "squarecb", "--method", "magic"], "learning, holdout, replay"),
    "split": (["LOG", "-a", "squarecb", "--method", "holdout", "--split", "1"], "between 0 and 1"),
    "narrow-split": (["LOG", "-a", "squarecb", "--method", "holdout", "--split", "0.001"], "leaves one part"),
    "level": (["LOG", "-a", "squarecb", "--level", "95"], "level"),
    "algorithm": (["LOG", "-a", "magic"], "unknown algorithm"),
    "full-information": (["LOG", "-a", "perceptron"], "not bandit"),
    "own-coin": (["LOG", "-a", "newtron"], "how it drew its own label"),
    "setting": (["LOG", "-a", "squarecb", "--set", "magic=1"], "no setting 'magic'"),
    "features": (["LOG", "-a", "squarecb", "--features", "6"], "only for dsjson"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_mistake_is_named(path, bad):
    words, said = BAD[bad]
    result = CliRunner().invoke(app, ["evaluate", *(path if word == "LOG" else word for word in words)])
    assert isinstance(result.exception, GaptronError) and said in str(result.exception)
    assert result.output == ""


def test_a_log_whose_actions_differ_needs_actions(tmp_path):
    events = [
        {
            "_label_cost": -1.0,
            "_label_probability": 0.5,
            "_label_Action": 1,
            "a": [1, 2],
            "p": [0.5, 0.5],
            "c": {"user": {"age": 30}, "_multi": [{"item": {"id": name}} for name in names]},
        }
        for names in (("a", "b"), ("b", "c"))
    ]
    file = tmp_path / "log.dsjson"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    said = str(CliRunner().invoke(app, ["evaluate", str(file)]).exception)
    assert "line 2: its actions differ from those of the lines before" in said
    assert said.endswith("; --actions reads a log whose actions differ from line to line")
    assert CliRunner().invoke(app, ["evaluate", str(file), "--actions"]).exit_code == 0


def test_a_mistake_is_one_line(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"format":"gaptron-log","version":1,"classes":[0,1],"n_features":1}\n{\n')
    words = ["evaluate", str(tmp_path / "log.jsonl"), "-a", "squarecb"]
    code = "from gaptron.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert re.fullmatch(r"gaptron: .*log\.jsonl, line 2: not JSON \(.*\); --skip-damaged skips .*\n", done.stderr)
