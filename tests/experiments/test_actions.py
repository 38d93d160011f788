"""Comparisons on rounds that bring their own actions."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gaptron.cli import app
from gaptron.errors import GaptronError, SettingError
from gaptron.experiments.backends import serial
from gaptron.experiments.compare import compare
from gaptron.experiments.plan import Plan, PlannedAlgorithm, PlannedStream
from gaptron.experiments.plan_file import parse, read_plan
from tests.cli.test_actions import write_right
from tests.offpolicy.action_worlds import write_log

PLANS = Path(__file__).parents[2] / "experiments"


def planned(*streams, algorithms=("squarecb", "frugal-gaptron"), **more):
    chosen = tuple(PlannedAlgorithm(name, grid={}) for name in algorithms)
    return Plan(tuple(PlannedStream(each, actions=True) for each in streams), chosen, seeds=(0, 1), **more)


def test_the_reward_is_that_of_the_run_that_the_command_repeats(tmp_path):
    plan = planned("choice:rounds=120,seed=2", feedback=("bandit",), bounds="none")
    results = compare(plan, tmp_path / "out", serial)
    assert len(results) == 4 and all(result.ok for result in results), [r.error for r in results]
    for result in results:
        words = shlex.split(result.command)
        assert words[:4] == ["gaptron", "play", "choice:rounds=120,seed=2", "--actions"]
        played = CliRunner().invoke(app, [*words[1:], "--json"], catch_exceptions=False)
        found = json.loads(played.stdout)
        assert result.reward / result.best_reward == pytest.approx(found["share_of_best"], rel=1e-9)
        assert result.rounds == found["rounds"] == 120 and 0 < result.mistakes < 120
        assert result.bound is None
    # A second call finds every result.
    assert [each.key for each in compare(plan, tmp_path / "out", serial)] == [each.key for each in results]


def test_full_information_has_mistakes_and_a_bound(tmp_path):
    path = write_right(tmp_path / "right.jsonl", 60)
    plan = planned(str(path), algorithms=("frugal-gaptron",), feedback=("full", "bandit"))
    full, *rest = compare(plan, tmp_path / "out", serial)
    assert full.ok and full.reward is None and full.bound["value"] >= full.expected_mistakes
    assert {each.feedback for each in rest} == {"full", "bandit"} and all(each.ok for each in rest)


def test_a_log_cannot_be_compared(tmp_path):
    path = write_log(tmp_path / "log.jsonl", 5)
    with pytest.raises(GaptronError, match="a log cannot be compared: gaptron evaluate --actions"):
        compare(planned(str(path)), tmp_path / "out", serial)


def test_algorithms_without_actions_are_refused_or_left_out():
    with pytest.raises(SettingError, match="banditron does not support actions=True"):
        planned("news", algorithms=("banditron",))
    both = Plan(
        (PlannedStream("news", actions=True), PlannedStream("synsep")),
        tuple(PlannedAlgorithm(name, grid={}) for name in ("banditron", "squarecb")),
        ("bandit",),
        (0,),
    )
    names = [[task.algorithm for task in both.tasks(stream)] for stream in both.streams]
    assert names == [["squarecb"], ["banditron", "squarecb"]]
    assert not next(both.tasks(both.streams[0])).shuffle


def test_plans_with_actions_are_read():
    plan = read_plan(PLANS / "actions.toml")
    assert len(plan.streams) == 8 and all(stream.actions for stream in plan.streams)
    text = 'feedback = ["bandit"]\n[[algorithms]]\nname = "squarecb"\n[[streams]]\ndata = "news"\nactions = true\n'
    assert parse(text + 'limit = 5\ncosts = "0..1"\n', "p").streams[0].preparing == {"limit": 5}
    with pytest.raises(SettingError, match="p, line 7: unit_norm does not apply with actions"):
        parse(text + "unit_norm = true\n", "p")
    with pytest.raises(SettingError, match="costs is for streams with actions"):
        parse(text.replace("actions = true", 'costs = "0..1"'), "p")


def test_the_command_compares_worlds(tmp_path):
    given = ["compare", "ids:rounds=60", "--actions", "--seeds", "1", "--no-grid", "--no-report", "-j", "1"]
    done = CliRunner().invoke(app, [*given, "-a", "squarecb", "-o", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0 and "squarecb" in done.stdout
    for wrong, problem in (
        ([*given, "--label", "y"], "--label is not for --actions"),
        (["compare", "--actions"], "--actions needs DATA"),
        (["compare", "plan.toml", "--actions"], "actions = true"),
    ):
        assert problem in str(CliRunner().invoke(app, wrong).exception)
