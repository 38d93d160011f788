"""Kill and interrupt `gaptron compare` at random times, and check that no finished result is lost.

    python benchmarks/kills.py --kills 200 --seed 0

Each time, the command resumes in the same folder and is ended at a random time: half of the times by SIGKILL to the
parent, half by SIGINT to its whole process group, as Ctrl-C does; in three of four cases after it has written a result,
otherwise at any time. Afterwards, every complete line from before must be unchanged. When all tasks have a result, the
folder is compared with one that was not interrupted, and a new folder is started. Prints one line for each folder and a
summary; the exit code is 1 if anything differs.
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
    """Start the command in a new process group."""
    words = [*WORDS, "--seeds", str(seeds), "-j", str(jobs), "-o", str(folder)]
    return subprocess.Popen(
        [sys.executable, "-m", "gaptron", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def complete_lines(folder: Path) -> list[bytes]:
    """The complete lines of the results."""
    file = folder / "results.jsonl"
    return file.read_bytes().split(b"\n")[:-1] if file.exists() else []


def numbers(folder: Path) -> dict[str, dict[str, object]]:
    """The results by key, without their run times."""
    results = map(json.loads, complete_lines(folder))
    return {result["key"]: {name: value for name, value in result.items() if name != "seconds"} for result in results}


def end(command: subprocess.Popen[bytes], kill: bool) -> bytes:
    """End the command; when all of its processes are gone, return what it wrote to standard error."""
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
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=300, help="seeds of the comparison, three tasks each")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--longest", type=float, help="maximum number of seconds until an end; default: the time of a whole run"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long")
    options = parser.parse_args()
    # A shell starts background jobs with SIGINT ignored, which the command would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng, started = random.Random(options.seed), time.monotonic()
    ended = early = lost = wrong = number = 0

    def more() -> bool:
        return bool(ended < options.kills and time.monotonic() - started < options.seconds)

    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        command = start(root / "whole", options.seeds, options.jobs)
        text = command.communicate()[1]
        if command.returncode:
            raise SystemExit(text.decode())
        whole, expected = time.monotonic() - started, numbers(root / "whole")
        longest = options.longest or whole
        print(f"uninterrupted: {len(expected):,} tasks in {whole:.1f} s", flush=True)
        while more():
            number += 1
            folder, here = root / f"try{number}", 0
            while more() and len(numbers(folder)) < len(expected):
                before = complete_lines(folder)
                command, kill = start(folder, options.seeds, options.jobs), rng.random() < 0.5
                late = rng.random() < 0.75  # only after a first new result, otherwise at any time
                while late and command.poll() is None and complete_lines(folder) == before:
                    time.sleep(0.02)
                try:
                    command.wait(timeout=rng.uniform(0.0, longest))
                except subprocess.TimeoutExpired:
                    text = end(command, kill)
                    ended, here = ended + 1, here + 1
                    early += complete_lines(folder) == before
                    if not kill and b"Traceback" in text and before != complete_lines(folder):
                        wrong += 1
                        print(text.decode(), file=sys.stderr)
                lost += complete_lines(folder)[: len(before)] != before
            finished, lines = numbers(folder), len(complete_lines(folder))
            wrong += any(expected[key] != result for key, result in finished.items())
            wrong += lines != len(finished)  # a task ran twice
            tasks = f"{len(finished):,} of {len(expected):,} tasks"
            print(f"folder {number}: {here} ends, {lines:,} lines, {tasks}", flush=True)
    print(f"{ended} ends at random times, {early} of them before a new result: {lost} lost results, {wrong} wrong")
    return 1 if lost or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
