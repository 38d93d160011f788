"""Count the functions and modules of gaptron that five ordinary calls touch, and Python calls per logged decision.

A newcomer who follows one call through the code has to read that many functions. Compiled code does not count; each
call runs once before it is counted, so that imports and compiling do not count either.

    python benchmarks/walks.py
"""

import contextlib
import csv
import io
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gaptron import Learner
from gaptron.cli import app

PACKAGE = str(Path(sys.modules["gaptron"].__file__ or "").parent)


_profile: Any = None


def _in_threads(frame: Any, event: str, argument: Any) -> None:
    """The profile function of every other thread."""
    if _profile is not None:
        _profile(frame, event, argument)


def counted(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Run twice; return distinct functions, distinct modules and all calls of the second run."""
    call()
    functions: set[tuple[str, int]] = set()
    calls = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            if not frame.f_code.co_name.startswith("<"):  # comprehensions and module bodies
                functions.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    global _profile
    _profile = profile
    sys.setprofile(profile)
    try:
        call()
        time.sleep(0.05)  # what the service does after it has responded
    finally:
        sys.setprofile(None)
        _profile = None
    return len(functions), len({file for file, _ in functions}), calls


def command(*arguments: str) -> Callable[[], None]:
    """A command of `gaptron`, its output thrown away."""

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            app(list(arguments), standalone_mode=False)

    return run


def compare() -> None:
    """A comparison of one task, in this process."""
    shutil.rmtree("out", ignore_errors=True)
    command("compare", "plan.toml", "--output", "out", "--jobs", "1", "--seeds", "1", "--no-grid", "--no-report")()


def table(path: Path, rounds: int = 200) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "device", "clicked"])
        for _ in range(rounds):
            age = int(rng.integers(18, 80))
            writer.writerow([age, rng.choice(["phone", "tablet"]), "yes" if age > 40 else "no"])


def log(path: Path, rounds: int) -> None:
    rng = np.random.default_rng(1)
    with path.open("w") as file:
        file.write(json.dumps({"format": "gaptron-log", "version": 1, "classes": ["a", "b"], "n_features": 3}) + "\n")
        for _ in range(rounds):
            x = rng.normal(size=3).round(3).tolist()
            line = {"x": x, "label": "ab"[rng.integers(2)], "propensity": 0.5, "reward": int(rng.integers(2))}
            file.write(json.dumps(line) + "\n")


class Server:
    """A service in a thread of this process, so that its Python calls can be counted."""

    def __init__(self, folder: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        arguments = ["serve", "--store", folder, "--port", self.url.rpartition(":")[2]]
        threading.Thread(target=command(*arguments), daemon=True).start()
        for _ in range(100):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/v1/models").read()
                break
            time.sleep(0.1)
        self.post("/v1/models", {"name": "m", "labels": ["a", "b"]})
        self.number = 0

    def post(self, path: str, body: Any) -> None:
        """Send JSON."""
        data, head = json.dumps(body).encode(), {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(self.url + path, data, head)).read()

    def decide(self) -> None:
        """Ask for one decision."""
        self.number += 1
        self.post("/v1/models/m/decisions", {"event_id": f"e{self.number}", "x": [0.3, 1.0]})


PLAN = """
[[streams]]
name = "s"
data = "synsep:rounds=300"

[[algorithms]]
name = "perceptron"
"""


def main() -> None:
    threading.setprofile(_in_threads)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        table(folder / "t.csv")
        log(folder / "200.jsonl", 200)
        log(folder / "400.jsonl", 400)
        (folder / "plan.toml").write_text(PLAN)
        learner = Learner(n_classes=3, seed=0)
        learner.play(np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 3)
        walks = {
            "CSV row to weight": command("play", "t.csv", "--label", "clicked"),
            "compare task": compare,
            "logged decision": command("evaluate", "200.jsonl", "-a", "squarecb"),
            "model file: save": lambda: learner.save("m"),
            "model file: load": lambda: Learner.load("m"),
        }
        print(f"{'':<20}{'functions':>10}{'modules':>9}")
        for title, call in walks.items():
            functions, modules, _ = counted(call)
            print(f"{title:<20}{functions:>10}{modules:>9}")
        short, long = (counted(command("evaluate", f"{n}.jsonl", "-a", "squarecb"))[2] for n in (200, 400))
        print(f"Python calls per logged decision: {(long - short) / 200:.1f}")
        functions, modules, _ = counted(Server("store").decide)  # last: its threads go on
        print(f"{'HTTP decision':<20}{functions:>10}{modules:>9}", file=sys.__stdout__, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
