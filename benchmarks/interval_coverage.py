"""How often the intervals of off-policy estimates contain the true value.

    python benchmarks/interval_coverage.py [logs] [rounds] [K ...]

Examples are drawn around K random directions; a tenth of the labels is replaced at random. The logger learns throughout
(inverse-gap weighting over least squares, as in SquareCB), or is a fixed softmax, or uniform. The evaluated policy is a
learner that learns from the log, or a good fixed rule, or a poor one. The true value is the mean over the rounds of the
mistakes of what it would have played. Of the 95 % intervals, "before" uses only the deviation of the terms, "after"
also the one that the logger's distribution implies (`variance_over_draws`). A second number is the share of intervals
that lie entirely below the true value. "Known deviation" is a normal interval with the deviation of the estimate over
all logs: the coverage that would be reached if the deviation were not estimated.
"""

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from gaptron.offpolicy import Log
from gaptron.offpolicy.confidence_sequence import proven_interval
from gaptron.offpolicy.estimates import FIRST_FIT, predict_rewards
from gaptron.offpolicy.evaluate import estimate_all

LEVEL, WIDTH, NOISE = 0.95, 6, 0.1
LOGGERS, POLICIES = ("learning", "fixed", "uniform"), ("learning", "good", "poor")


def inverse_gap(scores: Any, gamma: float) -> Any:
    """Inverse-gap weighting, for many logs at once."""
    logs, K = scores.shape
    top = scores.argmax(axis=1)
    p = 1.0 / (K + gamma * (scores[np.arange(logs), top][:, None] - scores))
    p[np.arange(logs), top] = 0.0
    p[np.arange(logs), top] = 1.0 - p.sum(axis=1)
    return p


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def simulate(logs: int, T: int, K: int, logger: str, policy: str, seed: int) -> tuple[Any, ...]:
    """Return X, labels played, rewards, the logger's and the policy's distributions and true values, per log."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(K, WIDTH))
    y = rng.integers(0, K, (logs, T))
    X = centres[y] + 0.7 * rng.normal(size=(logs, T, WIDTH))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    y = np.where(rng.random((logs, T)) < NOISE, rng.integers(0, K, (logs, T)), y)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    own, learned = np.zeros((logs, K, WIDTH)), np.zeros((logs, K, WIDTH))
    draws, each = rng.random((logs, T)), np.arange(logs)
    labels, distribution, play = np.empty((logs, T), dtype=int), np.empty((logs, T, K)), np.empty((logs, T, K))
    for t in range(T):
        x = X[:, t]
        if logger == "learning":
            distribution[:, t] = inverse_gap(np.einsum("nkd,nd->nk", own, x), 10.0 * (t + 1) ** 0.5)
        else:
            sharpness = 6.0 if logger == "fixed" else 0.0
            distribution[:, t] = 0.9 * softmax(sharpness * x @ centres.T) + 0.1 / K
        if policy == "learning":
            play[:, t] = inverse_gap(np.einsum("nkd,nd->nk", learned, x), 20.0 * (t + 1) ** 0.5)
        else:
            play[:, t] = softmax(10.0 * x @ centres.T if policy == "good" else 3.0 * x @ np.roll(centres, 1, axis=0).T)
        a = (draws[:, t, None] > distribution[:, t].cumsum(axis=1)[:, :-1]).sum(axis=1)
        labels[:, t], correct = a, a == y[:, t]
        for weights in (own, learned):
            weights[each, a] += (0.5 * (correct - (weights[each, a] * x).sum(axis=1)))[:, None] * x
    truth = 1.0 - np.take_along_axis(play, y[..., None], axis=2)[..., 0].mean(axis=1)
    return X, labels, (labels == y).astype(float), distribution, play, truth


def predict_all(X: Any, labels: Any, rewards: Any, K: int) -> Any:
    """`predict_rewards` for many logs at once; examples have norm 1, so that the penalty is 1."""
    logs, T, _ = X.shape
    extended = np.concatenate([X, np.ones((logs, T, 1))], axis=2)
    predicted, start = np.full((logs, T, K), 1.0 / K), FIRST_FIT
    while start < T:
        earlier, later = extended[:, :start], extended[:, start : 2 * start]
        for k in range(K):
            played = (labels[:, :start] == k)[..., None] * earlier
            moments = played.swapaxes(1, 2) @ earlier + np.diag([1.0] * WIDTH + [1e-12])
            fitted = np.linalg.solve(moments, (played * rewards[:, :start, None]).sum(axis=1)[..., None])
            few = (played[..., -1].sum(axis=1) < 2)[:, None]
            predicted[:, start : 2 * start, k] = np.where(
                few, rewards[:, :start].mean(axis=1, keepdims=True), (later @ fitted)[..., 0]
            ).clip(0.0, 1.0)
        start *= 2
    return predicted


def measure(logs: int, T: int, K: int, logger: str, policy: str, seed: int) -> dict[str, tuple[float, float, float]]:
    """For each interval: how often it contains the true value, how often it lies below it, and its mean width."""
    X, labels, rewards, distribution, play, truth = simulate(logs, T, K, logger, policy, seed)
    intervals: dict[str, list[tuple[float, float]]] = {}
    values, effective, skewness = [], [], []
    predicted = predict_all(X, labels, rewards, K)
    for n in range(logs):
        p = distribution[n, np.arange(T), labels[n]]
        log = Log.from_arrays(X[n], labels[n], rewards[n], p, classes=range(K), distribution=distribution[n])
        weights, costs = play[n, np.arange(T), labels[n]] / p, 1.0 - predicted[n]
        if n < 3:
            np.testing.assert_allclose(predicted[n], predict_rewards(log), atol=1e-6)
        before = estimate_all(replace(log, distribution=None), play[n], weights, costs, LEVEL)
        after = estimate_all(log, play[n], weights, costs, LEVEL)
        for when, estimates in (("before", before), ("after", after)):
            for estimate in estimates:
                intervals.setdefault(f"{estimate.name}, {when}", []).append((estimate.low, estimate.high))
        proven = proven_interval(weights, log.mistakes, LEVEL)
        intervals.setdefault("proven", []).append((proven.low, proven.high))
        values.append(before[0].mistakes)
        effective.append(weights.sum() ** 2 / np.square(weights).sum())
        terms = weights * log.mistakes
        skewness.append(((terms - terms.mean()) ** 3).mean() / (terms.std() ** 3 + 1e-300))
    off = np.array(values) - truth
    ends = {"inverse propensity, known deviation": np.array(values)[:, None] + [-1.96 * off.std(), 1.96 * off.std()]}
    ends |= {name: np.array(each) for name, each in intervals.items()}
    print(
        f"K={K} T={T} logger {logger}, evaluated policy {policy}: true value {truth.mean():.3f}, "
        f"effective rounds {np.median(effective):.0f}, skewness of w·m {np.median(skewness):.1f}"
    )
    result = {}
    for name, (low, high) in ((name, each.T) for name, each in ends.items()):
        held, below = ((low <= truth) & (truth <= high)).mean(), (high < truth).mean()
        result[name] = (float(held), float(below), float((high - low).mean()))
        print(f"    {name:36s} contains {held:.3f}  below {below:.3f}  width {(high - low).mean():.3f}", flush=True)
    return result


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    logs, T = (numbers + [1000, 1000][len(numbers) :])[:2]
    for K in numbers[2:] or [3, 10]:
        for logger in LOGGERS:
            for policy in POLICIES:
                measure(logs, T, K, logger, policy, seed=K)
