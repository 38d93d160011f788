"""What the answers' delay and rarity cost a service's learner: the figures of docs/serve.md.

    python benchmarks/serve_answers.py [--seeds 3]

Each learner is the service's default, fed as the service feeds it: a row is looked at, a label drawn, and when its
answer counts the row is scored with the weights of that moment.
"""

import argparse
from collections import deque

import numpy as np
from sklearn.datasets import load_digits

import gaptron

ROUNDS, LATE = 10_000, 1000


class Taught:
    """A learner that decides by looking, and is taught its own log."""

    def __init__(self, labels: int, seed: int) -> None:
        self._learner = gaptron.Learner(classes=list(range(labels)), feedback="bandit", seed=seed)
        self._chance = np.random.default_rng(seed + 1000)

    def decide(self, x: np.ndarray) -> tuple[np.ndarray, int, float]:
        """The row, a label and its probability."""
        p = self._learner.distribution(x[None])[0]
        label = int(self._chance.choice(len(p), p=p / p.sum()))
        return x, label, float(p[label])

    def learn(self, decision: tuple[np.ndarray, int, float], right: bool) -> None:
        """From an answer."""
        self._learner.learn_logged(*decision, correct=right)


def digits(way: str, seed: int) -> float:
    """Mistakes in the last half, in %. at once; late: all answers after LATE rounds; early: right ones at once."""
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    taught, wrong = Taught(10, seed), []
    waiting: deque[tuple[int, tuple[np.ndarray, int, float], bool]] = deque()  # with the round they are learned in
    for t, row in enumerate(np.random.default_rng(seed).integers(0, len(X), ROUNDS)):
        while waiting and waiting[0][0] <= t:
            taught.learn(*waiting.popleft()[1:])
        decision = taught.decide(X[row])
        right = decision[1] == y[row]
        wrong.append(not right)
        if way == "at once" or (way == "early" and right):
            taught.learn(decision, right)
        else:
            waiting.append((t + LATE, decision, right))
    return 100.0 * float(np.mean(wrong[ROUNDS // 2 :]))


def clicks(rate: float, seed: int) -> float:
    """What is earned in the last half beside always playing the best label, which is right in this share of rounds."""
    chance = np.random.default_rng(seed)
    directions, taught, earned = chance.normal(size=(10, 10)), Taught(10, seed), []
    for _ in range(ROUNDS):
        x = chance.normal(size=10)
        x /= np.linalg.norm(x)
        decision = taught.decide(x)
        right = decision[1] == int((directions @ x).argmax()) and chance.random() < rate
        taught.learn(decision, right)
        earned.append(right)
    return float(np.mean(earned[ROUNDS // 2 :])) / rate


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=3)
    seeds = range(options.parse_args().seeds)
    for way in ("at once", "late", "early"):
        errors = [digits(way, seed) for seed in seeds]
        print(f"digits, answers {way:8}: {np.mean(errors):5.1f} % wrong ({np.min(errors):.1f} to {np.max(errors):.1f})")
    for rate in (1.0, 0.5, 0.25, 0.1):
        shares = [clicks(rate, seed) for seed in seeds]
        low, high = min(shares), max(shares)
        print(f"best label right in {rate:4.0%}: earns {np.mean(shares):.2f} of it ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
