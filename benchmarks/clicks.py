"""Measure learners on rare rewards, where several labels or none may earn 1, as a share of the best reward.

Each world is played for 10,000 rounds, of which the second half counts. The best reward is that of the best label of
each round on the same draws. Examples get a constant 1 and unit norm. Worlds are named labels/rate/kind.

    python benchmarks/clicks.py [--algorithms squarecb,confidit:matrix=full] [--seeds 2]
"""

import argparse
from typing import Any

import numpy as np

from gaptron import Learner
from gaptron.streams import prepare
from gaptron.streams.clicks import clicks

WORLDS: dict[str, dict[str, Any]] = {
    "10/.1": {},
    "10/.02": {"rate": 0.02},
    "10/.3": {"rate": 0.3},
    "5/.1": {"labels": 5},
    "50/.1": {"labels": 50},
    "sig .1": {"world": "sigmoid"},
    "sig .3": {"world": "sigmoid", "rate": 0.3},
    "drift": {"world": "drifting"},
}
ALGORITHMS = (
    "advised-gaptron frugal-gaptron squarecb squarecb:oracle=logistic,c=4096 epsilon-greedy "
    "epsilon-greedy:epsilon=0.01 banditron:gamma=0.1 confidit:matrix=full,eta=0.1"
)


def share(algorithm: str, settings: dict[str, Any], world: dict[str, Any], seed: int) -> float:
    stream = prepare(clicks(seed=seed, **world), constant=True, unit_norm=True)
    learner = Learner(
        algorithm,
        n_classes=stream.n_classes,
        feedback="bandit",
        norm=stream.norm,
        horizon=stream.n_rounds,
        seed=seed,
        **settings,
    )
    earned = learner.play(stream).reward
    assert stream.rewards is not None
    best = stream.rewards[np.arange(stream.n_rounds), stream.y]
    half = stream.n_rounds // 2
    return float(earned[half:].sum() / best[half:].sum())


def read(text: str) -> tuple[str, dict[str, Any]]:
    """Parse an algorithm and its settings, as in confidit:matrix=full,eta=0.1."""
    name, _, rest = text.partition(":")
    pairs = (pair.split("=") for pair in rest.split(",") if pair)
    return name, {key: float(value) if value[0].isdigit() else value for key, value in pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", nargs="+", default=ALGORITHMS.split())
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{'share of the best rate':<34}" + "".join(f"{name:>8}" for name in WORLDS) + f"{'mean':>8}")
    for algorithm in arguments.algorithms:
        name, settings = read(algorithm)
        shares = [
            np.mean([share(name, settings, world, seed) for seed in range(arguments.seeds)])
            for world in WORLDS.values()
        ]
        print(f"{algorithm:<34}" + "".join(f"{number:8.2f}" for number in [*shares, np.mean(shares)]), flush=True)


if __name__ == "__main__":
    main()
