"""The cost of delayed and rare feedback for the learner of a service: the figures of docs/how-to/serve.md.

    python benchmarks/serve_feedback.py [--seeds 3]

Each learner is the default of the service, used as the service uses it: a label is drawn from its distribution, and
when the outcome is learned from, the example is scored with the weights of that moment.
"""

import argparse
from collections import deque

import numpy as np
from sklearn.datasets import load_digits

import gaptron

ROUNDS, DELAY = 10_000, 1000


class LogLearner:
    """A learner that decides without changing, and learns from its own log."""

    def __init__(self, labels: int, seed: int) -> None:
        self._learner = gaptron.Learner(classes=list(range(labels)), feedback="bandit", seed=seed)
        self._rng = np.random.default_rng(seed + 1000)

    def decide(self, x: np.ndarray) -> tuple[np.ndarray, int, float]:
        """Return the example, a label and its propensity."""
        p = self._learner.distribution(x[None])[0]
        label = int(self._rng.choice(len(p), p=p / p.sum()))
        return x, label, float(p[label])

    def learn(self, decision: tuple[np.ndarray, int, float], correct: bool) -> None:
        """Learn from an outcome."""
        self._learner.learn_logged(*decision, correct=correct)


def digits(timing: str, seed: int) -> float:
    """Error rate of the last half in %. late: all outcomes after DELAY rounds; early: correct ones at once."""
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    learner, errors = LogLearner(10, seed), []
    pending: deque[tuple[int, tuple[np.ndarray, int, float], bool]] = deque()  # with the round to learn in
    for t, row in enumerate(np.random.default_rng(seed).integers(0, len(X), ROUNDS)):
        while pending and pending[0][0] <= t:
            learner.learn(*pending.popleft()[1:])
        decision = learner.decide(X[row])
        correct = decision[1] == y[row]
        errors.append(not correct)
        if timing == "at once" or (timing == "early" and correct):
            learner.learn(decision, correct)
        else:
            pending.append((t + DELAY, decision, correct))
    return 100.0 * float(np.mean(errors[ROUNDS // 2 :]))


def clicks(rate: float, seed: int) -> float:
    """Reward of the last half, relative to always playing the best label, which is correct with probability `rate`."""
    rng = np.random.default_rng(seed)
    directions, learner, rewards = rng.normal(size=(10, 10)), LogLearner(10, seed), []
    for _ in range(ROUNDS):
        x = rng.normal(size=10)
        x /= np.linalg.norm(x)
        decision = learner.decide(x)
        correct = decision[1] == int((directions @ x).argmax()) and rng.random() < rate
        learner.learn(decision, correct)
        rewards.append(correct)
    return float(np.mean(rewards[ROUNDS // 2 :])) / rate


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=3)
    seeds = range(options.parse_args().seeds)
    for timing in ("at once", "late", "early"):
        errors = [digits(timing, seed) for seed in seeds]
        low, high = np.min(errors), np.max(errors)
        print(f"digits, outcomes {timing:8}: error rate {np.mean(errors):5.1f} % ({low:.1f} to {high:.1f})")
    for rate in (1.0, 0.5, 0.25, 0.1):
        shares = [clicks(rate, seed) for seed in seeds]
        low, high = min(shares), max(shares)
        print(f"best label correct in {rate:4.0%}: {np.mean(shares):.2f} of its reward ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
