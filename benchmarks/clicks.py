"""Rare answers: what learners earn in worlds where several labels, or none, may be right, as a share of the best rate.

Each world is played 10,000 rounds; counted is the last half, and the best rate is what the best label of each round
earned on the same draws. Rows get a constant 1 and unit norm. Worlds are named labels/rate/kind.

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
RIVALS = (
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
    assert stream.worth is not None
    best = stream.worth[np.arange(stream.n_rounds), stream.y]
    half = stream.n_rounds // 2
    return float(earned[half:].sum() / best[half:].sum())


def read(words: str) -> tuple[str, dict[str, Any]]:
    """An algorithm and its settings, as in confidit:matrix=full,eta=0.1."""
    name, _, rest = words.partition(":")
    pairs = (pair.split("=") for pair in rest.split(",") if pair)
    return name, {key: float(value) if value[0].isdigit() else value for key, value in pairs}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--algorithms", nargs="+", default=RIVALS.split())
    arguments.add_argument("--seeds", type=int, default=2)
    given = arguments.parse_args()
    print(f"{'share of the best rate':<34}" + "".join(f"{name:>8}" for name in WORLDS) + f"{'mean':>8}")
    for words in given.algorithms:
        name, settings = read(words)
        shares = [
            np.mean([share(name, settings, world, seed) for seed in range(given.seeds)]) for world in WORLDS.values()
        ]
        print(f"{words:<34}" + "".join(f"{number:8.2f}" for number in [*shares, np.mean(shares)]), flush=True)


if __name__ == "__main__":
    main()
