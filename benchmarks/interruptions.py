"""Interrupt `play` with Ctrl-C and `save` with kill -9 at random moments, and check that no state is lost or damaged.

    python benchmarks/interruptions.py [--times 200] [--seed 0]

After every interruption of `play` the counters must match what was learned, and continuing must give the same bits
as an uninterrupted run. After every kill of a process that saves repeatedly, the file must hold one of the saved
learners, complete. Prints the number of attempts; a failed check stops it.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gaptron import Learner
from gaptron.streams import synsep

ROUNDS = 20_000
SAVER = """
import sys
from gaptron import Learner
from gaptron.streams import synsep
stream = synsep(4_000, seed=3)
learner = Learner("frugal-gaptron", n_classes=9, feedback="bandit", seed=0)
print("ready", flush=True)
for start in range(0, 4_000, 4):
    learner.play(stream.X[start:start + 4], stream.y[start:start + 4])
    learner.save(sys.argv[1])
"""


def interrupted(call: Callable[[], object], after: float) -> None:
    """Call a function, and raise KeyboardInterrupt if it takes longer than this many seconds."""
    armed = True

    def interrupt(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        call()
        armed = False
    except KeyboardInterrupt:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def make() -> Learner:
    return Learner("frugal-gaptron", n_classes=9, feedback="bandit", seed=0)


def interrupt_play(times: int, rng: random.Random) -> tuple[int, int]:
    """Return the number of runs, and of interruptions in the middle of one."""
    stream = synsep(ROUNDS)
    whole = make()
    whole.play(stream.X, stream.y)  # compiles
    whole, start = make(), time.perf_counter()
    expected = whole.play(stream.X, stream.y)
    duration, caught = time.perf_counter() - start, 0
    for _ in range(times):
        learner, done = make(), 0
        while done < ROUNDS:
            last = learner.interrupted
            rest = stream.X[done:], stream.y[done:]
            interrupted(lambda learner=learner, rest=rest: learner.play(*rest), rng.uniform(0.0001, duration))
            assert learner.rounds == learner.decided, "counters disagree"
            if learner.interrupted is not last and learner.interrupted is not None:
                played = slice(done, learner.rounds)
                assert np.array_equal(learner.interrupted.codes, expected.codes[played]), (
                    "the trace is of different rounds"
                )
                caught += 0 < learner.rounds < ROUNDS
            done = learner.rounds
        assert np.array_equal(learner.weights, whole.weights), "the weights differ"
    return times, caught


def kill_save(times: int, rng: random.Random) -> tuple[int, int]:
    """Return the number of killed processes, and of temporary files they left."""
    drafts = 0
    with TemporaryDirectory() as folder:
        path = Path(folder, "model")
        for _ in range(times):
            child = subprocess.Popen([sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE)
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0.05, 1.0))
            child.kill()
            child.wait()
            if path.exists():
                learner = Learner.load(path)
                assert learner.rounds == learner.decided and learner.rounds % 4 == 0, "not a learner that was saved"
            for draft in Path(folder).glob(".gaptron-*"):
                drafts += 1
                os.unlink(draft)
    return times, drafts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    tried, caught = interrupt_play(options.times, rng)
    print(f"play: {tried} runs, {caught} interruptions, 0 failed checks", flush=True)
    tried, drafts = kill_save(options.times, rng)
    print(f"save: {tried} kills, {drafts} temporary files left, 0 damaged", flush=True)


if __name__ == "__main__":
    main()
