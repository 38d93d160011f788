"""Run the commands shown in README and docs: `scripts/outputs` updates their output, a test compares it.

A command is a line `$ gaptron ...` in a block marked `console`; the lines up to the next command are its output. The
Python blocks of a page are one program; a block marked `text title="Output"` is what the one before it prints. A block
with a file name as its title is a file, which `$ python NAME` runs. Numbers that depend on the machine (time) are
masked before comparing.

A tutorial is run from its first command to its last, in one folder; the commands of other pages do not depend on each
other.
"""

import contextlib
import gzip
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaptron import Learner

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIALS = ROOT / "docs" / "tutorials"
LONG = {"gaptron compare"}  # takes minutes
OUTPUT = 'text title="Output"'
END = "--- the last block ---"
MARK = f"print({END!r})"
ROW = re.compile(  # of a comparison
    r"(?P<name>\S.*?) +(?P<error>[\d.]+) +(?P<behind>[-+][\d.]+) ± (?P<interval>[\d.]+) +(?P<first>\d+/\d+ …)"
)
REPLAY = "replay_personalizer.py"
GAPTRON = [sys.executable, "-m", "gaptron"]


class Shown(NamedTuple):
    """A command on a page and the output shown below it."""

    page: Path
    line: int  # of the command; the first line of a file is 0
    command: str
    output: str


def shown(page: Path) -> list[Shown]:
    """Every command and program of a page with its output, in the order of the page."""
    text = page.read_text(encoding="utf-8")
    return sorted([*_commands(page, text.splitlines()), *_programs(page, text.splitlines())], key=lambda one: one.line)


def _commands(page: Path, lines: list[str]) -> Iterator[Shown]:
    """Every command, with output or, in a tutorial, without."""
    inside, command, start = False, "", 0
    least = 0 if page.parent == TUTORIALS else 1  # lines of output
    for number, line in enumerate([*lines, "```"]):
        if line.startswith("```"):
            if inside and command and number > start + least:
                yield Shown(page, start, command, "\n".join(lines[start + 1 : number]))
            inside, command = line == "```console", ""
        elif inside and line.startswith("$ "):
            if command and number > start + least:
                yield Shown(page, start, command, "\n".join(lines[start + 1 : number]))
            command, start = line[2:].rpartition("&& ")[2].partition("  #")[0].strip(), number


def _programs(page: Path, lines: list[str]) -> Iterator[Shown]:
    """Every block of Python whose output is shown, as one program with the blocks before it."""
    code: list[str] = []
    block: list[str] = []
    kind, start = "", 0
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            block.append(line)
            continue
        if kind == "python":
            code.append("\n".join(block))
        elif kind == OUTPUT:
            yield Shown(page, start, "\n".join([*code[:-1], MARK, code[-1]]), "\n".join(block))
        kind, start, block = line[3:] if not kind else "", number, []


def write_files(page: Path, folder: Path) -> None:
    """Write the files that a page shows."""
    text = page.read_text(encoding="utf-8")
    for name, content in re.findall(r'^```\w+ title="([\w-]+\.\w+)"\n(.*?)^```', text, re.M | re.S):
        (folder / name).write_text(content, encoding="utf-8")


def run_alone(command: str, folder: Path) -> str:
    """The output of a command that needs no other one before it."""
    if "gaptron replay" in command:
        store(folder)
    if REPLAY not in command:
        return run(command, folder)
    with serving(folder, "personalizer") as address:
        _send("POST", f"{address}/v1/models", {"name": "replay", "actions": True})
        return run(command, folder, PERSONALIZER_ENDPOINT=address)


def run(command: str, folder: Path, **environment: str) -> str:
    """The output of a command in a folder that `inputs` has filled."""
    environment = {**os.environ, "COLUMNS": "100", **environment}
    if MARK in command:
        done = subprocess.run(
            [sys.executable, "-c", command], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.partition(f"{END}\n")[2].rstrip("\n")
    words = shlex.split(command)
    programs = {"gaptron": GAPTRON, "python": [sys.executable]}
    assert words[0] in programs, f"{command!r} is not a command of gaptron: show it in a block marked bash"
    done = subprocess.run(
        [*programs[words[0]], *words[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.rstrip("\n").splitlines())


def run_tutorial(page: Path, folder: Path) -> list[tuple[Shown, str]]:
    """Every command of a tutorial with what it prints, run in the order of the page in an empty folder."""
    runpy.run_path(str(TUTORIALS / "tickets.py"))["write"](folder)
    write_files(page, folder)
    served = re.search(r"gaptron serve --store (\w+)", page.read_text(encoding="utf-8"))
    with serving(folder, served[1]) if served else contextlib.nullcontext("") as address:
        return [(one, run(one.command, folder, GAPTRON_URL=address)) for one in shown(page)]


def masked(output: str) -> str:
    """The output without the numbers that depend on the machine."""
    output = re.sub(r"[\d,.]+ rounds/s", "… rounds/s", output)
    output = re.sub(r"\d+ snapshots? compared", "… snapshots compared", output)  # one every ten seconds
    return re.sub(r"^(\S.*\d+/\d+) +[\d.]+$", r"\1 …", output, flags=re.M)  # the last column of a comparison: µs/round


def agrees(printed: str, shown: str) -> bool:
    """Whether an output is the one shown, without the numbers that depend on the machine.

    Other kinds of processors round scores in another way. A draw under bandit feedback may then fall differently, and
    the run is another one, equally likely: rows of a comparison under bandit feedback agree within their intervals.
    """
    lines, expected = masked(printed).splitlines(), masked(shown).splitlines()
    bandit = False
    for line, other in zip(lines, expected):
        bandit = line.startswith("Bandit feedback") or (bandit and line != "")
        if line == other:
            continue
        row, its = (ROW.fullmatch(text) if bandit else None for text in (line, other))
        if row is None or its is None or row["name"] != its["name"] or row["first"] != its["first"]:
            return False
        apart = max(abs(float(row[part]) - float(its[part])) for part in ("error", "behind"))
        if apart > float(its["interval"]):
            return False
    return len(lines) == len(expected)


def update(found: Shown, output: str) -> None:
    """Write the new output of a command into its page."""
    lines = found.page.read_text(encoding="utf-8").splitlines()
    after = found.line + 1 + len(found.output.splitlines())
    lines[found.line + 1 : after] = output.splitlines()
    found.page.write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- the files that the commands read -----------------------------------------------------------------------


def inputs(folder: Path) -> None:
    """Write the files that the shown commands read and that no page shows."""
    _decisions(folder / "decisions.jsonl.gz")
    _advice(folder / "advice.csv")
    _clicks(folder / "clicks.dsjson")
    _personalizer(folder / "personalizer.dsjson")
    shutil.copy(ROOT / "docs" / "how-to" / REPLAY, folder)


def _decisions(path: Path, rounds: int = 4_000) -> None:
    """A log of a learner that explores a tenth of its decisions."""
    rng = np.random.default_rng(0)
    learner = Learner("frugal-gaptron", classes=["cat", "dog", "owl"], feedback="bandit", epsilon=0.1, seed=1)
    U = rng.normal(size=(3, 3))
    with gzip.open(path, "wt", encoding="utf-8") as file:
        head = {"format": "gaptron-log", "version": 1, "classes": list(learner.classes), "n_features": 3}
        file.write(json.dumps(head) + "\n")
        for x in rng.normal(size=(rounds, 3)):
            x /= np.linalg.norm(x)
            truth = learner.classes[int((U @ x + rng.gumbel(size=3) / 4).argmax())]
            decision = learner.decide(x)
            learner.learn(decision, correct=decision.label == truth)
            line = {
                "x": x.tolist(),
                "label": decision.label,
                "propensity": decision.propensity,
                "reward": int(decision.label == truth),
                "distribution": decision.distribution.tolist(),
            }
            file.write(json.dumps(line) + "\n")


def _advice(path: Path, rounds: int = 3_000) -> None:
    """Three experts' predictions in [-1, 1] of a label that is -1 or 1."""
    rng = np.random.default_rng(2)
    truth = rng.random(rounds) < 0.5
    lines = ["bayes,tree,linear,label"]
    for right in truth:
        signs = np.where(rng.random(3) < (0.8, 0.75, 0.7), 1, -1) * (1 if right else -1)
        lines.append(",".join([*(f"{value:.3f}" for value in signs * rng.random(3)), "1" if right else "-1"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _clicks(path: Path, rounds: int = 2_000) -> None:
    """A log of articles shown at random, as a service that speaks Vowpal Wabbit's format writes it."""
    rng = np.random.default_rng(3)
    topics, likes = ("sport", "news", "art"), {"student": "sport", "senior": "art"}
    lines = []
    for t in range(rounds):
        user, K = str(rng.choice(list(likes))), int(rng.integers(3, 7))
        articles = [
            {"_tag": f"article-{t // 50}-{k}", "Article": {"topic": str(rng.choice(topics)), "age_h": t % 50}}
            for k in range(K)
        ]
        played = int(rng.integers(K))
        chance = 0.5 if articles[played]["Article"]["topic"] == likes[user] else 0.1
        order = [played + 1, *(k + 1 for k in range(K) if k != played)]
        line = {
            "_label_cost": -int(rng.random() < chance),
            "_label_probability": 1 / K,
            "_label_Action": played + 1,
            "_labelIndex": played,
            "EventId": str(t),
            "a": order,
            "c": {"User": {"segment": user, "hour": t % 24}, "_multi": articles},
            "p": [1 / K] * K,
        }
        lines.append(json.dumps(line))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _personalizer(path: Path, rounds: int = 600) -> None:
    """A log of Personalizer that explores 60 % of its decisions, with some lines that cannot be replayed."""
    rng = np.random.default_rng(4)
    topics, likes = ("sport", "news", "art", "food"), {"student": "sport", "senior": "art"}
    lines = []
    for t in range(rounds):
        user = str(rng.choice(list(likes)))
        articles = [
            {"_tag": f"{topic}-{t // 60}", "i": {"constant": 1, "id": f"{topic}-{t // 60}"}, "j": [{"topic": topic}]}
            for topic in rng.permutation(topics).tolist()
        ]
        played = int(rng.choice(4, p=(0.55, 0.15, 0.15, 0.15)))
        clicked = rng.random() < (0.6 if articles[played]["j"][0]["topic"] == likes[user] else 0.1)
        line = {
            "_label_cost": -float(clicked),
            "_label_probability": 0.15 if played else 0.55,
            "_label_Action": played + 1,
            "_labelIndex": played,
            "EventId": f"{t:08x}",
            "a": [played + 1, *(k + 1 for k in range(4) if k != played)],
            "c": {"FromUrl": [{"user": {"segment": user}}, {"hour": t % 24}], "_multi": articles},
        }
        line |= {"_skipLearn": True} if t in (100, 300) else {"_label_cost": -1.5} if t == 200 else {}
        lines.append(json.dumps(line))
    path.write_text("\n".join(lines) + "\n" + lines[0][:200], encoding="utf-8")


def store(folder: Path, rounds: int = 50) -> None:
    """A service's store, `gaptron-serve`, after some decisions and outcomes over HTTP."""
    with serving(folder, "gaptron-serve") as address:
        url = f"{address}/v1/models"
        _send("POST", url, {"name": "triage", "labels": ["mail", "chat", "phone"]})
        for t in range(rounds):
            _send("POST", f"{url}/triage/decisions", {"event_id": f"order-{t}", "x": [t % 3, 1.0]})
            _send("PUT", f"{url}/triage/decisions/order-{t}/outcome", {"correct": t % 2 == 0})


# A service whose draws are the same in every run, so that what it decides can be shown.
SERVE = """
import gaptron.serve.coordinator as coordinator
from gaptron.cli import main
coordinator.new_draw_key = lambda: "00" * 32
main()
"""


@contextlib.contextmanager
def serving(folder: Path, store: str) -> Iterator[str]:
    """Run a service with its store in a folder; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SERVE, "serve", "--store", store, "--port", str(port)]
    service = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/v1/models")
        yield f"http://127.0.0.1:{port}"
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(30)


def _wait(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url).read()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"{url} did not respond within 30 seconds")


def _send(method: str, url: str, body: Any) -> None:
    head = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head, method=method)).read()
