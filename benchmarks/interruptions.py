"""Interruptions at random moments: `play` by Ctrl-C, `save` by kill -9. Nothing may be lost, doubled or torn.

    python benchmarks/interruptions.py [--times 200] [--seed 0]

After every interruption of `play` the counters must agree with what was learned, and going on must end where an
uninterrupted run ends, to the last bit. After every kill of a process that saves again and again the file must hold
one of the learners that were saved, whole. Prints what was tried; a disagreement ends it.
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
    """Run it, with a Ctrl-C after so many seconds if it takes longer."""
    armed = True

    def ring(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, ring)
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
    """How many runs were tried, and how many were caught half-way."""
    stream = synsep(ROUNDS)
    whole = make()
    whole.play(stream.X, stream.y)  # compiled now
    whole, clock = make(), time.perf_counter()
    through = whole.play(stream.X, stream.y)
    takes, caught = time.perf_counter() - clock, 0
    for _ in range(times):
        learner, done = make(), 0
        while done < ROUNDS:
            last = learner.interrupted
            rest = stream.X[done:], stream.y[done:]
            interrupted(lambda learner=learner, rest=rest: learner.play(*rest), rng.uniform(0.0001, takes))
            assert learner.rounds == learner.decided, "counters disagree"
            if learner.interrupted is not last and learner.interrupted is not None:
                part = slice(done, learner.rounds)
                assert np.array_equal(learner.interrupted.codes, through.codes[part]), "the trace is of other rounds"
                caught += 0 < learner.rounds < ROUNDS
            done = learner.rounds
        assert np.array_equal(learner.weights, whole.weights), "the weights are others"
    return times, caught


def kill_save(times: int, rng: random.Random) -> tuple[int, int]:
    """How many processes were killed, and how many drafts they left."""
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
                assert learner.rounds == learner.decided and learner.rounds % 4 == 0, "no learner that was saved"
            for draft in Path(folder).glob(".gaptron-*"):
                drafts += 1
                os.unlink(draft)
    return times, drafts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    tried, caught = interrupt_play(given.times, rng)
    print(f"play: {tried} runs, {caught} interruptions half-way, 0 disagreements", flush=True)
    tried, drafts = kill_save(given.times, rng)
    print(f"save: {tried} kills, {drafts} drafts left, 0 lost", flush=True)


if __name__ == "__main__":
    main()
