"""docs/how-to/replay_personalizer.py replays logs of Personalizer through a service in another process."""

import contextlib
import importlib.util
import io
import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import numpy as np
import pytest

import gaptron
from gaptron.offpolicy import ActionDecisionLog
from gaptron.streams.actions import open_actions
from tests.serve.news import NEWS, likes, visits
from tests.serve.process import PATIENCE, Process, running

pytestmark = pytest.mark.xdist_group("replay personalizer")  # it starts a process
SCRIPT = Path(__file__).parents[2] / "docs" / "how-to" / "replay_personalizer.py"
ROUNDS = 200


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replay_personalizer", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _script()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("replayed")
    with running(str(folder / "store"), folder) as process:
        process.wait_ready()
        yield process


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a learner that explores half of its decisions."""
    path = tmp_path_factory.mktemp("logged") / "log.dsjson"
    learner = gaptron.Learner("frugal-gaptron", actions=True, features="auto", feedback="bandit", epsilon=0.5, seed=1)
    with ActionDecisionLog(path) as written:
        for visit in visits(ROUNDS):
            actions = {one["id"]: one["features"] for one in visit["actions"]}
            decision = learner.decide(visit["context"], actions=actions)
            correct = likes(visit, decision.action)
            learner.learn(decision, correct=correct)
            written.write(decision, visit["context"], actions, correct=correct)
    return path


def make(service: Process, name: str, **more: Any) -> None:
    response = httpx.post(f"{service.url}/v1/models", json=NEWS | {"name": name, **more}, timeout=PATIENCE)
    assert response.status_code == 201, response.text


def run(path: Path, endpoint: str, *options: str) -> str:
    """What the script prints, and the error it ends with."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.setattr(sys, "argv", ["replay_personalizer.py", str(path), "--endpoint", endpoint, *options])
        try:
            script.main()
        except SystemExit as ended:
            return f"{printed.getvalue()}{ended.code}"
    return printed.getvalue()


def numbers(printed: str, line: str) -> list[float]:
    (rest,) = re.findall(rf"^{line} (.*)$", printed, re.M)
    return [float(number) for number in re.findall(r"-?[\d.]+", rest)]


# In a model with "on_timeout": "wrong", an event without a reward counts as wrong unless it was deferred.
@pytest.mark.parametrize("more", [{}, {"feedback_timeout": 600.0, "on_timeout": "wrong"}], ids=["at once", "waits"])
def test_the_estimate_is_that_of_the_decisions_of_the_service(service: Process, log: Path, more: dict) -> None:
    name = "waits" if more else "replayed"
    make(service, name, **more)
    printed = run(log, service.url, "--model", name)
    rounds, agreed, weighted = open_actions(log), 0, 0.0
    for t in range(ROUNDS):
        event, logged = str(t + 1), str(rounds.action(t))
        decision = httpx.get(f"{service.url}/v1/models/{name}/decisions/{event}").json()
        q = {one["id"]: one["propensity"] for one in decision["ranking"]}[logged]
        weighted += q / rounds.propensity[t] * (1.0 - rounds.reward[t])
        assert ("outcome" in decision) == (decision["action"] == logged)
        if decision["action"] == logged:
            assert decision["outcome"]["reward"] == rounds.reward[t]
            agreed += 1
    assert 20 < agreed < ROUNDS
    assert f"{ROUNDS} lines: {ROUNDS} replayed, 0 skipped\n" in printed
    assert f"chose the logged action in {agreed} of {ROUNDS} events ({agreed / ROUNDS:.1%})" in printed
    assert numbers(printed, "of the log")[0] == pytest.approx(rounds.reward.mean(), abs=6e-4)
    value, low, high = numbers(printed, "of the service, estimated")
    assert value == pytest.approx(1.0 - weighted / ROUNDS, abs=6e-4) and low < value < high
    with contextlib.closing(sqlite3.connect(f"{service.place}/gaptron.db")) as database:
        query = "select body from log where kind = 'decided' and model = ?"
        bodies = [json.loads(body) for (body,) in database.execute(query, [name])]
    assert [body["request"]["context"] for body in bodies] == list(rounds.contexts)
    assert all(body["request"]["deferred"] for body in bodies)
    assert run(log, service.url, "--model", name) == printed  # every event is known


def test_lines_that_cannot_be_replayed_are_counted_by_reason(service: Process, tmp_path: Path, log: Path) -> None:
    make(service, "skips")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[:40]]
    lines[3]["_skipLearn"] = lines[4]["_skipLearn"] = True
    lines[6]["_label_cost"] = -3.0
    lines[8]["_label_probability"] = 0.0
    lines[10] = {"_outcomes": [], "c": {}}
    lines[12]["EventId"] = lines[11]["EventId"]
    lines[14]["c"]["_multi"][1]["_tag"] = lines[14]["c"]["_multi"][0]["_tag"]
    del lines[16]["_label_Action"]
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(map(json.dumps, lines)) + '\n{"_label_co', encoding="utf-8")
    printed = run(path, service.url, "--model", "skips")
    assert "41 lines: 32 replayed, 9 skipped\n" in printed
    for reason in (
        "2 deferred and never activated: first in line 4",
        "1 no reward from 0 to 1: line 7 (3)",
        "1 no probability from 0.000001 to 1: line 9 (0)",
        "1 several slots: line 11",
        "1 event id that was used before: line 13 (12)",
        "1 refused by the service with 400: line 15 (",
        "1 not a decision: line 17 (KeyError('_label_Action'))",
        "1 not a JSON object: line 41",
    ):
        assert f"  {reason}" in printed


def test_rewards_from_minus_one_to_one_are_shown_as_they_are(service: Process, tmp_path: Path, log: Path) -> None:
    make(service, "signed", reward_range="-1..1")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["_label_cost"] = 1.0 + 2.0 * line["_label_cost"]  # 0 → 1, -1 → -1
    path = tmp_path / "signed.dsjson"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    printed = run(path, service.url, "--model", "signed", "--lowest-reward", "-1")
    assert f"{ROUNDS} lines: {ROUNDS} replayed" in printed
    mean = -np.mean([line["_label_cost"] for line in lines])
    value, low, high = numbers(printed, "of the log")
    assert value == pytest.approx(mean, abs=6e-4) and -1.0 <= low < value < high <= 1.0


def test_what_ends_a_replay_is_said_in_a_sentence(service: Process, tmp_path: Path, log: Path) -> None:
    assert "got 404" in run(log, service.url, "--model", "unknown")
    assert "ConnectionRefused" in run(log, "http://127.0.0.1:9")
    assert "No such file" in run(tmp_path / "nothing.dsjson", service.url)
    (tmp_path / "empty.dsjson").write_text("", encoding="utf-8")
    assert "no line can be replayed" in run(tmp_path / "empty.dsjson", service.url)


@pytest.mark.parametrize(
    ("context", "action"),
    [
        ({"FromUrl": [{"hour": 3}]}, {"_tag": "a", "i": {"constant": 1, "id": "a"}, "j": [{"topic": "news"}]}),
        ({"C": {"hour": 3}}, {"_tag": "a", "i": {"id": "a"}, "A": {"topic": "news"}}),
        ({"hour": 3, "_synthetic": False}, {"i": {"id": "a"}, "topic": "news"}),
    ],
    ids=["Personalizer", "gaptron", "Vowpal Wabbit"],
)
def test_rank_has_what_the_application_sent(context: dict, action: dict) -> None:
    line = {"_label_cost": 0, "_label_probability": 1, "_label_Action": 1, "c": {**context, "_multi": [action]}}
    event = script.event_of(json.dumps(line), 7, 0.0)
    assert event == (
        {
            "contextFeatures": [{"hour": 3}],
            "actions": [{"id": "a", "features": [{"topic": "news"}]}],
            "deferActivation": True,
            "eventId": "line-7",
        },
        "a",
        1.0,
        0.0,
    )
