"""How often the intervals of off-policy estimates hold the truth.

    python benchmarks/interval_coverage.py [logs] [rounds] [K ...]

Rows are drawn around K random directions, a tenth of the labels is replaced at random. The logger learns all the while
(inverse-gap weighting over least squares, as in SquareCB), or is a fixed softmax, or uniform. Judged is a learner that
the log teaches, or a good fixed rule, or a poor one. The truth is the mean over the rounds of the mistakes of what it
would have played. Of the intervals at 95 %, "before" uses only the deviation of the terms, "after" also the one that
the logger's distribution implies (`drawable_variance`). A second number says how many lie wholly below the truth.
"Known deviation" is a normal interval with the deviation of the estimate over all logs: what would be reached if the
deviation were not estimated.
"""

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from gaptron.logged import Log
from gaptron.logged.confidence_sequence import proved_interval
from gaptron.logged.estimates import FIRST_FIT, guesses
from gaptron.logged.judge import estimate_all

LEVEL, WIDTH, NOISE = 0.95, 6, 0.1
LOGGERS, JUDGED = ("learning", "fixed", "uniform"), ("taught", "good", "poor")


def inverse_gap(scores: Any, gamma: float) -> Any:
    """Each label by how far it is behind the best, for many logs at once."""
    logs, K = scores.shape
    top = scores.argmax(axis=1)
    chances = 1.0 / (K + gamma * (scores[np.arange(logs), top][:, None] - scores))
    chances[np.arange(logs), top] = 0.0
    chances[np.arange(logs), top] = 1.0 - chances.sum(axis=1)
    return chances


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def simulate(logs: int, T: int, K: int, logger: str, judged: str, seed: int) -> tuple[Any, ...]:
    """X, labels played, rewards, distribution of the logger, play of the learner, truth: all with one row for a log."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(K, WIDTH))
    y = rng.integers(0, K, (logs, T))
    X = centres[y] + 0.7 * rng.normal(size=(logs, T, WIDTH))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    y = np.where(rng.random((logs, T)) < NOISE, rng.integers(0, K, (logs, T)), y)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    own, pupil = np.zeros((logs, K, WIDTH)), np.zeros((logs, K, WIDTH))
    draws, each = rng.random((logs, T)), np.arange(logs)
    labels, distribution, play = np.empty((logs, T), dtype=int), np.empty((logs, T, K)), np.empty((logs, T, K))
    for t in range(T):
        x = X[:, t]
        if logger == "learning":
            distribution[:, t] = inverse_gap(np.einsum("nkd,nd->nk", own, x), 10.0 * (t + 1) ** 0.5)
        else:
            sharpness = 6.0 if logger == "fixed" else 0.0
            distribution[:, t] = 0.9 * softmax(sharpness * x @ centres.T) + 0.1 / K
        if judged == "taught":
            play[:, t] = inverse_gap(np.einsum("nkd,nd->nk", pupil, x), 20.0 * (t + 1) ** 0.5)
        else:
            play[:, t] = softmax(10.0 * x @ centres.T if judged == "good" else 3.0 * x @ np.roll(centres, 1, axis=0).T)
        a = (draws[:, t, None] > distribution[:, t].cumsum(axis=1)[:, :-1]).sum(axis=1)
        labels[:, t], right = a, a == y[:, t]
        for weights in (own, pupil):
            weights[each, a] += (0.5 * (right - (weights[each, a] * x).sum(axis=1)))[:, None] * x
    truth = 1.0 - np.take_along_axis(play, y[..., None], axis=2)[..., 0].mean(axis=1)
    return X, labels, (labels == y).astype(float), distribution, play, truth


def guess_all(X: Any, labels: Any, rewards: Any, K: int) -> Any:
    """`guesses` for many logs at once: rows of norm 1, so that the penalty is 1."""
    logs, T, _ = X.shape
    extended = np.concatenate([X, np.ones((logs, T, 1))], axis=2)
    guessed, start = np.full((logs, T, K), 1.0 / K), FIRST_FIT
    while start < T:
        seen, later = extended[:, :start], extended[:, start : 2 * start]
        for k in range(K):
            played = (labels[:, :start] == k)[..., None] * seen
            moments = played.swapaxes(1, 2) @ seen + np.diag([1.0] * WIDTH + [1e-12])
            fitted = np.linalg.solve(moments, (played * rewards[:, :start, None]).sum(axis=1)[..., None])
            few = (played[..., -1].sum(axis=1) < 2)[:, None]
            guessed[:, start : 2 * start, k] = np.where(
                few, rewards[:, :start].mean(axis=1, keepdims=True), (later @ fitted)[..., 0]
            ).clip(0.0, 1.0)
        start *= 2
    return guessed


def measure(logs: int, T: int, K: int, logger: str, judged: str, seed: int) -> dict[str, tuple[float, float, float]]:
    """For each interval: how often it holds the truth, how often it lies below, its mean width."""
    X, labels, rewards, distribution, play, truth = simulate(logs, T, K, logger, judged, seed)
    intervals: dict[str, list[tuple[float, float]]] = {}
    values, effective, skewness = [], [], []
    guessed = guess_all(X, labels, rewards, K)
    for n in range(logs):
        p = distribution[n, np.arange(T), labels[n]]
        log = Log.from_arrays(X[n], labels[n], rewards[n], p, classes=range(K), distribution=distribution[n])
        weights, costs = play[n, np.arange(T), labels[n]] / p, 1.0 - guessed[n]
        if n < 3:
            np.testing.assert_allclose(guessed[n], guesses(log), atol=1e-6)
        before = estimate_all(replace(log, distribution=None), play[n], weights, costs, LEVEL)
        after = estimate_all(log, play[n], weights, costs, LEVEL)
        for when, estimates in (("before", before), ("after", after)):
            for estimate in estimates:
                intervals.setdefault(f"{estimate.name}, {when}", []).append((estimate.low, estimate.high))
        sure = proved_interval(weights, log.mistakes, LEVEL)
        intervals.setdefault("sure", []).append((sure.low, sure.high))
        values.append(before[0].mistakes)
        effective.append(weights.sum() ** 2 / np.square(weights).sum())
        terms = weights * log.mistakes
        skewness.append(((terms - terms.mean()) ** 3).mean() / (terms.std() ** 3 + 1e-300))
    off = np.array(values) - truth
    ends = {"inverse propensity, known deviation": np.array(values)[:, None] + [-1.96 * off.std(), 1.96 * off.std()]}
    ends |= {name: np.array(each) for name, each in intervals.items()}
    print(
        f"K={K} T={T} logger {logger}, judged {judged}: truth {truth.mean():.3f}, "
        f"effective rounds {np.median(effective):.0f}, skewness of w·m {np.median(skewness):.1f}"
    )
    result = {}
    for name, (low, high) in ((name, each.T) for name, each in ends.items()):
        held, below = ((low <= truth) & (truth <= high)).mean(), (high < truth).mean()
        result[name] = (float(held), float(below), float((high - low).mean()))
        print(f"    {name:36s} holds {held:.3f}  below {below:.3f}  width {(high - low).mean():.3f}", flush=True)
    return result


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    logs, T = (numbers + [1000, 1000][len(numbers) :])[:2]
    for K in numbers[2:] or [3, 10]:
        for logger in LOGGERS:
            for judged in JUDGED:
                measure(logs, T, K, logger, judged, seed=K)
