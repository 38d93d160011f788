"""The cost of delayed feedback: error rate of the last half of a run in per cent, by the delay in rounds.

Examples are prepared as in real.py and played for 10,000 rounds; smaller sets are repeated in new orders. Besides
constant delays: "heavy" has a median of 50 rounds and a heavy tail (Pareto, 1.2), "midnight" gives the feedback of
1,000 rounds at their end, "never" gives no feedback in 70 % of the rounds.

    python benchmarks/delays.py --data FOLDER [--algorithms squarecb,softmax,arow] [--streams digits,usps] [--seeds 2]
"""

import argparse
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gaptron import Learner
from gaptron.algorithms import load
from gaptron.learner.playing import play_delayed
from gaptron.streams import Stream

ROUNDS = 10_000
DELAYS = ("0", "10", "50", "200", "1000", "5000", "heavy", "midnight", "never")


def delays(kind: str, rounds: int, seed: int) -> Any:
    rng = np.random.default_rng([seed, 7])
    if kind == "heavy":
        return np.round(50.0 / 2.0 ** (1 / 1.2) * (1.0 + rng.pareto(1.2, rounds)))
    if kind == "midnight":
        return 999.0 - np.arange(rounds) % 1000
    if kind == "never":
        return np.where(rng.random(rounds) < 0.7, np.inf, 0.0)
    return float(kind)


def long_enough(made: Stream, rounds: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    times = -(-rounds // made.n_rounds)
    order = np.concatenate([rng.permutation(made.n_rounds) for _ in range(times)])[:rounds]
    return made.X[order], made.y[order]


def errors(algorithm: str, feedback: str, made: Stream, kind: str, seed: int, rounds: int = ROUNDS) -> float:
    """The error rate of the last half."""
    X, y = long_enough(made, rounds, seed)
    learner = Learner(algorithm, n_classes=made.n_classes, feedback=feedback, seed=seed, norm=1.001)
    wrong = play_delayed(learner, X, y, delays(kind, rounds, seed))
    return float(wrong[rounds // 2 :].mean())


def sibling(name: str) -> ModuleType:
    """Import another file of this folder."""
    spec = util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--algorithms", default="advised-gaptron,squarecb,softmax,arow")
    arguments.add_argument("--streams", default="digits,usps,pendigits,covtype")
    arguments.add_argument("--delays", default=",".join(DELAYS))
    arguments.add_argument("--seeds", type=int, default=2)
    options = arguments.parse_args()
    real, kinds = sibling("real"), options.delays.split(",")
    data = real.loader(options.data)
    print(f"{'stream':<12}{'algorithm':<18}{'feedback':<10}" + "".join(f"{kind:>10}" for kind in kinds))
    for name in options.streams.split(","):
        made = [real.stream(name, seed, data) for seed in range(options.seeds)]
        for algorithm in options.algorithms.split(","):
            for feedback in load(algorithm).CARD.feedback:
                means = [
                    np.mean([errors(algorithm, feedback.word, made[seed], kind, seed) for seed in range(options.seeds)])
                    for kind in kinds
                ]
                numbers = "".join(f"{100 * mean:10.1f}" for mean in means)
                print(f"{name:<12}{algorithm:<18}{feedback.word:<10}{numbers}", flush=True)


if __name__ == "__main__":
    main()
