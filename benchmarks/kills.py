"""Kill and interrupt `gaptron compare` at random moments, again and again; no finished result may be lost.

    python benchmarks/kills.py --kills 200 --seed 0

Each time the command is started in a folder that goes on from the last time, and ended at a random moment: half of the
times by SIGKILL to the parent, half by SIGINT to its whole group, as Ctrl-C does; three times of four after it has
written something, else at any time from its start. Every line that was whole before is
looked for afterwards, letter by letter. When all tasks have a result, the folder is compared with one that nobody
interrupted, and a new folder is begun. Prints one line a folder and a last one; the exit code is 1 if anything differs.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STREAM = "synsep:rounds=2000"
WORDS = ["compare", STREAM, "-a", "frugal-gaptron,banditron", "--no-grid", "--bounds", "none", "--no-report"]


def start(folder: Path, seeds: int, jobs: int) -> subprocess.Popen[bytes]:
    """The command, in a group of its own."""
    words = [*WORDS, "--seeds", str(seeds), "-j", str(jobs), "-o", str(folder)]
    return subprocess.Popen(
        [sys.executable, "-m", "gaptron", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def whole_lines(folder: Path) -> list[bytes]:
    """The lines of the results that have an end."""
    file = folder / "results.jsonl"
    return file.read_bytes().split(b"\n")[:-1] if file.exists() else []


def numbers(folder: Path) -> dict[str, dict[str, object]]:
    """Results by key, without the clock."""
    results = map(json.loads, whole_lines(folder))
    return {result["key"]: {name: value for name, value in result.items() if name != "seconds"} for result in results}


def end(command: subprocess.Popen[bytes], kill: bool) -> bytes:
    """End the command; returns what it wrote to standard error, when all of its processes are gone."""
    group = command.pid
    try:
        if kill:
            os.kill(command.pid, signal.SIGKILL)
        else:
            os.killpg(group, signal.SIGINT)
    except ProcessLookupError:
        pass
    _, text = command.communicate()
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return text
        time.sleep(0.02)


def main() -> int:
    """Run the loop."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=300, help="of the comparison; three tasks each")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--longest", type=float, help="seconds until an end at most; default: a whole run's")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long")
    options = parser.parse_args()
    # A shell starts its background jobs with SIGINT ignored, and the command would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chance, began = random.Random(options.seed), time.monotonic()
    ended = early = lost = wrong = number = 0

    def more() -> bool:
        return bool(ended < options.kills and time.monotonic() - began < options.seconds)

    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        command = start(root / "whole", options.seeds, options.jobs)
        text = command.communicate()[1]
        if command.returncode:
            raise SystemExit(text.decode())
        whole, expected = time.monotonic() - began, numbers(root / "whole")
        longest = options.longest or whole
        print(f"uninterrupted: {len(expected):,} tasks in {whole:.1f} s", flush=True)
        while more():
            number += 1
            folder, here = root / f"try{number}", 0
            while more() and len(numbers(folder)) < len(expected):
                before = whole_lines(folder)
                command, kill = start(folder, options.seeds, options.jobs), chance.random() < 0.5
                late = chance.random() < 0.75  # only after a first new result, else at any time from the start
                while late and command.poll() is None and whole_lines(folder) == before:
                    time.sleep(0.02)
                try:
                    command.wait(timeout=chance.uniform(0.0, longest))
                except subprocess.TimeoutExpired:
                    text = end(command, kill)
                    ended, here = ended + 1, here + 1
                    early += whole_lines(folder) == before
                    if not kill and b"Traceback" in text and before != whole_lines(folder):
                        wrong += 1
                        print(text.decode(), file=sys.stderr)
                lost += whole_lines(folder)[: len(before)] != before
            finished, lines = numbers(folder), len(whole_lines(folder))
            wrong += any(expected[key] != result for key, result in finished.items())
            wrong += lines != len(finished)  # a task that was run twice
            tasks = f"{len(finished):,} of {len(expected):,} tasks"
            print(f"folder {number}: {here} ends, {lines:,} lines, {tasks}", flush=True)
    print(f"{ended} ends at random moments, {early} of them before a new result: {lost} lost results, {wrong} wrong")
    return 1 if lost or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
