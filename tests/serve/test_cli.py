"""The commands of the service on the command line."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.news import choose, likes, make_news, visits
from tests.serve.postgres import with_schema
from tests.serve.process import make_triage, running
from tests.serve.served import Served, secret_of

pytestmark = pytest.mark.slow  # it starts processes


def gaptron(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gaptron", *arguments], capture_output=True, text=True, **more)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store in which something was learned."""
    place = str(tmp_path / "store")
    served = Served(place)
    served.make()
    for t in range(40):
        label = served.decide(f"e{t}", (0.1 * (t % 7), 0.5)).json()["label"]
        served.send_outcome(f"e{t}", correct=label == "chat")
    served.close()
    return place


def test_replay_says_equal_or_exits_with_1(store: str) -> None:
    done = gaptron("replay", store)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Equal: 81 events, 40 decisions recomputed, 1 snapshot compared, 1 model.\n"
    import sqlite3  # noqa: PLC0415

    with sqlite3.connect(f"{store}/gaptron.db") as file:
        (text,) = file.execute("select body from log where event_id = 'e3' and kind = 'outcome'").fetchone()
        turned = {"outcome": {"correct": not json.loads(text)["outcome"]["correct"]}}
        file.execute("update log set body = ? where event_id = 'e3' and kind = 'outcome'", (json.dumps(turned),))
    file.close()
    changed = gaptron("replay", store)
    assert changed.returncode == 1 and changed.stdout.startswith("DIFFERENT: ")
    nowhere = gaptron("replay", f"{store}-not-there")
    assert nowhere.returncode == 2 and "contains no store" in nowhere.stderr


def test_replay_and_evaluate_work_on_a_read_only_mount(store: str, tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    quoted = f"mount --bind {store} {mount} && mount -o remount,ro,bind {mount}"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("this process may not mount")

    def with_mount(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = shlex.join([sys.executable, "-m", "gaptron", *arguments])
        return subprocess.run(["unshare", "-m", "sh", "-c", f"{quoted} && {command}"], capture_output=True, text=True)

    done = with_mount("replay", str(mount))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Equal: 81 events, 40 decisions recomputed, 1 snapshot compared, 1 model.\n"
    options = ("--model", "triage", "-a", "banditron", "--set", "gamma=0.2", "--json")
    there, here = with_mount("evaluate", str(mount), *options), gaptron("evaluate", store, *options)
    assert json.loads(there.stdout)["estimates"] == json.loads(here.stdout)["estimates"]
    refused = with_mount("serve", "--store", str(mount))
    assert refused.returncode == 2 and "can only be read" in refused.stderr
    with running(store, tmp_path) as server:
        server.wait_ready()
        httpx.post(f"{server.url}/v1/models/triage/decisions", json={"event_id": "last", "x": [0.1, 0.5]})
        server.kill()
    assert "82 events, 41 decisions" in with_mount("replay", str(mount)).stdout, "with what is in the WAL file only"


def test_evaluate_reads_the_store_itself(store: str) -> None:
    done = gaptron("evaluate", store, "--model", "triage", "-a", "banditron", "--set", "gamma=0.2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_rounds"] == 40
    alone = gaptron("evaluate", store, "-a", "banditron", "--set", "gamma=0.2", "--json")
    assert json.loads(alone.stdout) == json.loads(done.stdout), "it has one model"
    wrong = gaptron("evaluate", store, "--model", "other", "-a", "banditron")
    assert wrong.returncode == 2 and "available models: triage" in wrong.stderr


def test_evaluate_reads_a_model_with_actions(tmp_path: Path) -> None:
    place = str(tmp_path / "store")
    served = Served(place)
    make_news(served)
    for visit in visits(40):
        action = choose(served, visit).json()["action"]
        served.send_outcome(visit["event_id"], "news", correct=likes(visit, action))
    served.make()
    served.close()
    replayed = gaptron("replay", place)
    assert replayed.returncode == 0 and "40 decisions recomputed" in replayed.stdout
    options = "-a", "frugal-gaptron", "--json"
    done = gaptron("evaluate", place, "--model", "news", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_rounds"] == 40
    assert gaptron("evaluate", place, "--model", "news", "--actions", *options).stdout == done.stdout
    refused = gaptron("evaluate", place, "--model", "triage", "--actions", *options)
    assert refused.returncode == 2 and "triage chooses between labels" in refused.stderr


def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    place = str(tmp_path / "store")
    host = gaptron("serve", "--store", place, "--host", "0.0.0.0")
    assert host.returncode == 2 and "create a key first" in host.stderr
    made = gaptron("keys", "add", "--role", "admin", "--role", "read", "--store", place)
    (text,) = re.findall(r"^gap_\w+_[\w-]+$", made.stdout, re.M)
    assert "shown only once" in made.stderr
    listed = gaptron("keys", "list", "--store", place).stdout
    assert "admin read" in listed and secret_of(text) not in listed
    with running(place, tmp_path) as server:
        server.wait_ready()
        second = gaptron("serve", "--store", place)
        assert second.returncode in (1, 2) and "another process is using this store" in second.stderr
        assert "Serving" not in second.stdout
        assert httpx.get(f"{server.url}/v1/models").status_code == 401
        allowed = httpx.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {text}"})
        assert allowed.status_code == 200
        server.stop()
    assert gaptron("keys", "revoke", text.split("_")[1], "--store", place).returncode == 0
    assert "revoked" in gaptron("keys", "list", "--store", place).stdout
    assert gaptron("keys", "revoke", "nobody", "--store", place).returncode == 2
    assert gaptron("keys", "add", "--role", "king", "--store", place).returncode == 2


def test_a_key_of_a_database_counts_while_it_is_served(postgres: str, tmp_path: Path) -> None:
    place = with_schema(postgres, f"test_{uuid.uuid4().hex}")
    add = ("keys", "add", "--role", "read", "--store", place)
    first = gaptron(*add).stdout.split()[0]
    with running(place, tmp_path, "--host", "0.0.0.0") as server:
        server.wait_ready()

        def status(text: str) -> int:
            return httpx.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {text}"}).status_code

        assert status(first) == 200
        second = gaptron(*add).stdout.split()[0]
        assert gaptron("keys", "revoke", first.split("_")[1], "--store", place).returncode == 0
        end = time.monotonic() + 60
        while (status(first), status(second)) != (401, 200):
            assert time.monotonic() < end
            time.sleep(0.1)


def test_event_streams_end_without_an_error_when_the_service_stops(tmp_path: Path) -> None:
    with running(str(tmp_path / "store"), tmp_path) as server:
        server.wait_ready()
        make_triage(server.url)
        with httpx.stream("GET", f"{server.url}/v1/models/triage/events", timeout=60) as events:
            lines = events.iter_lines()
            assert next(lines).startswith("id: ")
            server.process.terminate()
            assert [line for line in lines if line.startswith("event: report")], "to the end, without an error"
        server.ended()
        assert "Traceback" not in server.messages.read_text()


def test_the_lines_that_serve_prints_work(tmp_path: Path) -> None:
    with running(str(tmp_path / "store"), tmp_path) as server:
        server.wait_ready()
        text = server.messages.read_text()
        commands = re.findall(r"^  (curl (?:.*\\\n)*.*)", text, re.M)
        assert len(commands) == 3
        for command in commands:
            done = subprocess.run(f"{command} -s --fail-with-body", shell=True, capture_output=True, text=True)
            if done.returncode == 127:
                pytest.skip("no curl")
            assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["status"] == "recorded"
        server.stop()


def test_with_keys_the_lines_that_serve_prints_send_one(tmp_path: Path) -> None:
    place = str(tmp_path / "store")
    key = gaptron("keys", "add", "--role", "admin", "--role", "decide", "--role", "feedback", "--store", place).stdout
    with running(place, tmp_path) as server:
        server.wait_ready()
        commands = re.findall(r"^  (curl (?:.*\\\n)*.*)", server.messages.read_text(), re.M)
        assert len(commands) == 3 and all('-H "Authorization: Bearer $GAPTRON_KEY"' in one for one in commands)
        for command in commands:
            done = subprocess.run(
                f"{command} -s --fail-with-body",
                shell=True,
                capture_output=True,
                text=True,
                env=os.environ | {"GAPTRON_KEY": key.strip()},
            )
            if done.returncode == 127:
                pytest.skip("no curl")
            assert done.returncode == 0, done.stdout + done.stderr
        server.stop()


def test_a_store_that_cannot_be_opened_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "store" / "gaptron.db").mkdir(parents=True)
    refused = gaptron("serve", "--store", str(tmp_path / "store"))
    assert refused.returncode == 2 and refused.stdout == ""
    assert refused.stderr.startswith("gaptron: ") and "cannot be opened" in refused.stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "gaptron.db").write_text("not a database, but long enough to be read as one " * 100)
    refused = gaptron("serve", "--store", str(tmp_path / "other"))
    assert refused.returncode == 2 and "file is not a database" in refused.stderr
