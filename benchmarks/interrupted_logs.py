"""Stop a process that writes logs, at random moments: python benchmarks/interrupted_logs.py [stops of each kind] [seed]

A child process repeatedly writes decisions to a DecisionLog or replaces a log with save_log (plain, .gz), and reports
each completed write. It is stopped by SIGKILL or SIGINT (Ctrl-C) after a random time. The file must then be readable
and contain every acknowledged decision, in order (save_log: one of the last two logs, complete).
"""

import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gaptron import Learner
from gaptron.offpolicy import DamagedLogWarning, DecisionLog, Log, open_log, save_log

ROUNDS = 400  # of each log that save_log writes


def numbered(value: float) -> Log:
    """Make a log in which every reward is the same number."""
    return Log.from_arrays(np.ones((ROUNDS, 2)), [0] * ROUNDS, [value] * ROUNDS, [0.5] * ROUNDS, classes=[0, 1])


LOGS = [numbered(share / 100) for share in range(101)]
LEARNER = Learner("squarecb", n_classes=3, feedback="bandit", norm=1e9, seed=0)
LEARNER.decide(np.array([0.0, 1.0]))  # compiles, once


def write_decisions(path: Path, first: int, done: Callable[[int], None]) -> None:
    """Decide and log until stopped; feature 0 of an example is its number."""
    with DecisionLog(path) as log:
        for number in range(first, 10**9):
            log.write(LEARNER.decide(np.array([float(number), 1.0])), correct=True)
            done(number)


def replace_logs(path: Path, first: int, done: Callable[[int], None]) -> None:
    """Save one log after another until stopped."""
    for number in range(first, 10**9):
        save_log(LOGS[number % len(LOGS)], path)
        done(number)


def stop_one(write: Callable[..., None], path: Path, how: signal.Signals, wait: float, first: int) -> list[int]:
    """Run a child, stop it, and return the numbers it acknowledged."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            write(path, first, lambda number: os.write(send, b"%d\n" % number))
        finally:
            os._exit(1)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        started = pipe.readline()
        time.sleep(wait)
        os.kill(child, how)
        numbers = [int(line) for line in (started + pipe.read()).splitlines(keepends=True) if line.endswith(b"\n")]
    os.waitpid(child, 0)
    return numbers


def interrupt(kind: str, name: str, stops: int, seed: int) -> Counter[str]:
    """Count what `stops` interruptions did to one kind of file."""
    rng, outcomes = np.random.default_rng(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedLogWarning)
        path, acknowledged, first = Path(folder) / name, list[int](), 0
        for stop in range(stops):
            how = signal.SIGKILL if stop % 2 else signal.SIGINT
            write = write_decisions if kind == "decisions" else replace_logs
            numbers = stop_one(write, path, how, float(rng.uniform(0.0, 0.05)), first)
            outcomes[how.name] += 1
            try:
                log = open_log(path)
            except Exception as error:  # what this benchmark looks for
                outcomes["unreadable"] += 1
                print(repr(error))
                continue
            if kind == "decisions":
                acknowledged += numbers
                found = set(log.X[:, 0].astype(int).tolist())
                outcomes["acknowledged"] += len(numbers)
                outcomes["lost"] += len(set(acknowledged) - found)
                outcomes["out of order"] += int((np.diff(log.X[:, 0]) <= 0).sum())
                first = int(log.X[-1, 0]) + 1
                if first > 3000:  # start a new file now and then, otherwise reading dominates
                    path.unlink()
                    acknowledged, first = [], 0
            else:
                allowed = {numbers[-1] % len(LOGS), (numbers[-1] + 1) % len(LOGS)}
                complete = log.n_rounds == ROUNDS and len(set(log.reward)) == 1
                outcomes["acknowledged"] += len(numbers)
                outcomes["lost"] += not (complete and round(100 * log.reward[0]) in allowed)
        outcomes["temporary files left"] = len(list(Path(folder).iterdir())) - int(path.exists())
    return outcomes


KINDS = (("decisions", "log.jsonl"), ("decisions", "log.jsonl.gz"), ("save", "log.jsonl"), ("save", "log.jsonl.gz"))

if __name__ == "__main__":
    stops, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for kind, name in KINDS:
        print(kind, name, dict(interrupt(kind, name, stops, seed)), flush=True)
