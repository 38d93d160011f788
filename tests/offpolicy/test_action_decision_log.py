"""Decisions between named actions, written as they are made, read back, and read by Vowpal Wabbit."""

import json

import numpy as np
import pytest

from gaptron import DecisionError, InputError, Learner, StreamError
from gaptron.offpolicy import ActionDecisionLog, ActionLog, DamagedLogWarning, evaluate_learning
from gaptron.streams.actions import open_actions, save_actions
from tests.conftest import portrait
from tests.offpolicy.action_worlds import rounds

CONTEXT, ACTIONS = {"user": "student"}, {"a7": {"topic": "sport", "age": 3}, "a9": {"topic": None, "new": True}}


def learner():
    return Learner("squarecb", actions=True, features="auto", feedback="bandit", seed=1)


def written(path, T=60, seed=3):
    """A learner that wrote its decisions to a log, and the decisions with their rewards."""
    who, rng, made = learner(), np.random.default_rng(seed), []
    with ActionDecisionLog(path) as log:
        for context, actions, likely in rounds(T, seed):
            decision = who.decide(context, actions=actions)
            reward = float(rng.random() < likely[list(actions).index(decision.action)])
            log.write(decision, context, actions, reward=reward)
            who.learn(decision, reward=reward)
            made.append((decision, reward))
    return who, made


@pytest.mark.parametrize("name", ["live.dsjson", "live.jsonl", "live.dsjson.gz"])
def test_what_was_written_is_read(name, tmp_path):
    who, made = written(tmp_path / name)
    log = ActionLog(open_actions(tmp_path / name))
    assert log.n_rounds == 60 and log.stream.named
    for t, ((context, actions, _), (decision, reward)) in enumerate(zip(rounds(60, 3), made)):
        assert log.stream.contexts[t] == context and log.stream.actions[t] == actions
        assert log.stream.action(t) == decision.action and log.propensity[t] == decision.propensity
        assert log.reward[t] == reward
        assert log.stream.distribution_at(t).tolist() == list(decision.distribution.values())
    other = learner()
    evaluate_learning(other, log)
    np.testing.assert_array_equal(who.weights, other.weights)


@pytest.mark.parametrize("name", ["live.dsjson", "live.jsonl.gz"])
def test_a_log_is_continued_and_a_torn_line_removed(name, tmp_path):
    path = tmp_path / name
    who = learner()
    for reward in (0.0, 0.25):
        with ActionDecisionLog(path, sync=True) as log:
            log.write(who.decide(CONTEXT, actions=ACTIONS), CONTEXT, ACTIONS, reward=reward)
    assert open_actions(path).reward.tolist() == [0.0, 0.25]
    if name.endswith(".gz"):
        path.write_bytes(path.read_bytes()[:-12])
    else:
        path.write_text(path.read_text() + '{"_label_co')
    with pytest.warns(DamagedLogWarning), ActionDecisionLog(path) as log:
        log.write(who.decide(CONTEXT, actions=ACTIONS), CONTEXT, ACTIONS, correct=True)
    assert open_actions(path).reward[-1] == 1.0
    with pytest.raises(DecisionError, match="is closed"):
        log.write(who.decide(CONTEXT, actions=ACTIONS), CONTEXT, ACTIONS, correct=True)


def test_excluded_actions_are_not_in_the_log(tmp_path):
    who, path = learner(), tmp_path / "live.jsonl"
    with ActionDecisionLog(path) as log:
        log.write(who.decide(CONTEXT, actions=ACTIONS, excluded=["a7"]), CONTEXT, list(ACTIONS.items()), reward=1)
    stream = open_actions(path)
    assert list(stream.actions[0]) == ["a9"] and stream.actions[0]["a9"] == {"topic": None, "new": True}


def test_what_does_not_fit_is_refused_and_nothing_is_written(tmp_path):
    who, path = learner(), tmp_path / "live.dsjson"
    decision = who.decide(CONTEXT, actions=ACTIONS)
    rows = Learner("squarecb", actions=True, feedback="bandit", norm=2.0).decide(actions=np.eye(2))
    with ActionDecisionLog(path) as log:
        for given, error, problem in (
            ((decision, CONTEXT, ACTIONS), DecisionError, "give either correct"),
            ((decision, CONTEXT, {"a7": {}}), DecisionError, "between other actions"),
            ((decision, CONTEXT, {"a7": 3}), InputError, "give its features as a dict"),
            ((decision, [1], ACTIONS), InputError, "context is a list"),
            ((rows, None, ACTIONS), DecisionError, "not a decision between named actions"),
            ((decision, CONTEXT, ACTIONS, 1.5), InputError, "reward"),
            ((decision, {"\ud800": 1}, ACTIONS, 1.0), InputError, "surrogate"),
        ):
            *first, reward = given if len(given) == 4 else (*given, None if "either" in problem else 1.0)
            with pytest.raises(error, match=problem):
                log.write(*first, reward=reward)
    assert not path.exists()
    for name, problem in (("live.vw", "logs that grow"), ("live.jsonl.xz", "buffers lines"), ("live.txt", "unknown")):
        with pytest.raises(StreamError, match=problem):
            ActionDecisionLog(tmp_path / name)
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"format":"gaptron-log"}\n')
    with pytest.raises(StreamError, match="not a log of actions"), ActionDecisionLog(labels) as log:
        log.write(decision, CONTEXT, ACTIONS, reward=1.0)
    assert labels.read_text() == '{"format":"gaptron-log"}\n'


def test_reading_writing_and_reading_gives_the_same_learner(tmp_path):
    written(tmp_path / "live.dsjson")
    save_actions(open_actions(tmp_path / "live.dsjson"), tmp_path / "again.jsonl")
    found = []
    for name in ("live.dsjson", "again.jsonl"):
        who = learner()
        evaluate_learning(who, ActionLog(open_actions(tmp_path / name)))
        found.append(portrait(who))
    assert found[0] == found[1]


@pytest.mark.slow
def test_vowpal_wabbit_reads_the_log(tmp_path):
    """VW learns from every line, sees as many actions in each, and counts the same rewards."""
    vw = pytest.importorskip("vowpalwabbit", reason="needs Vowpal Wabbit: pip install vowpalwabbit")
    _, made = written(tmp_path / "live.dsjson", T=300)
    files = f"-d {tmp_path}/live.dsjson -p {tmp_path}/predictions.txt --extra_metrics {tmp_path}/metrics.json"
    vw.Workspace(f"--cb_explore_adf --dsjson -q CA {files}", quiet=True).finish()
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["line_parse_error"] == metrics["number_skipped_events"] == 0
    found = metrics["cb_explore_adf_greedy"]
    assert found["cbea_labeled_ex"] == 300
    assert found["cbea_sum_cost"] == -sum(reward for _, reward in made)
    assert found["cbea_label_first_action"] == sum(d.action == next(iter(d.distribution)) for d, _ in made)
    lines = [line for line in (tmp_path / "predictions.txt").read_text().splitlines() if line]
    assert [len(line.split(",")) for line in lines] == [len(d.distribution) for d, _ in made]


@pytest.mark.slow
def test_vowpal_wabbit_counts_the_rewards_that_we_read_from_its_text(tmp_path):
    vw = pytest.importorskip("vowpalwabbit", reason="needs Vowpal Wabbit: pip install vowpalwabbit")
    rng, path = np.random.default_rng(2), tmp_path / "log.vw"
    with open(path, "w") as file:
        for context, actions, likely in rounds(200, 5):
            played = int(rng.integers(len(actions)))
            file.write(f"shared |C segment={context['segment']} hour:{context['hour']}\n")
            for k, (name, own) in enumerate(actions.items()):
                label = f"0:{-int(rng.random() < likely[k])}:{1 / len(actions)} " if k == played else ""
                file.write(f"{label}'{name} |A topic={own['topic']} age:{own['age']}\n")
            file.write("\n")
    log = open_actions(path)
    vw.Workspace(f"--cb_explore_adf -q CA -d {path} --extra_metrics {tmp_path}/metrics.json", quiet=True).finish()
    found = json.loads((tmp_path / "metrics.json").read_text())["cb_explore_adf_greedy"]
    assert found["cbea_labeled_ex"] == log.n_rounds == 200 and found["cbea_sum_cost"] == -log.reward.sum()
    assert (found["cbea_min_actions"], found["cbea_max_actions"]) == (log.counts.min(), log.counts.max())
