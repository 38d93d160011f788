"""Synthetic clicks: in every round the reward of each label is drawn, so that several labels or none may earn 1.

Examples are uniform on the unit sphere, z_k = ⟨w_k, x⟩ with w_k standard normal, and label k earns 1 with probability

    near       rate·exp(4(z_k - max z))        the best label earns at this rate in every round, the others less
    drifting   as near, while each w_k moves in a straight line, over the whole stream, to another such vector
    sigmoid    1/(1 + exp(-2z_k - b))          with b such that the best label earns at this rate on average

independently of the other labels. The best rate is therefore known: y is the label with the largest probability, and
the reward of this label on the same draws is what the best policy would have earned.
"""

import numpy as np

from gaptron.data.examples import measured
from gaptron.errors import InputError
from gaptron.streams.stream import Stream
from gaptron.types import Matrix

WORLDS = ("near", "drifting", "sigmoid")
SHARPNESS, SLOPE = 4.0, 2.0


def clicks(
    n_rounds: int = 10_000,
    seed: int = 0,
    world: str = "near",
    labels: int = 10,
    features: int = 20,
    rate: float = 0.1,
) -> Stream:
    """Generate a stream with the reward of every label.

    Args:
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.
        world: near, drifting or sigmoid.
        labels: the number of labels.
        features: the number of features.
        rate: the rate at which the best label earns 1.

    Returns:
        The stream: `rewards` has the reward of every label, y the label with the largest expected reward.
    """
    for name, number, least in (("rounds", n_rounds, 1), ("labels", labels, 2), ("features", features, 1)):
        if number < least:
            raise InputError(f"{name} must be at least {least}, not {number}")
    if world not in WORLDS:
        raise InputError(f"world must be one of {', '.join(WORLDS)}, not {world!r}")
    if not 0.0 < rate < 1.0:
        raise InputError(f"rate must be a probability between 0 and 1, not {rate}")
    if seed < 0:
        raise InputError(f"seed must not be negative, but is {seed}")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rounds, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    z = X @ rng.normal(size=(features, labels))
    if world == "drifting":
        elapsed = np.arange(n_rounds)[:, None] / n_rounds
        z = (1.0 - elapsed) * z + elapsed * (X @ rng.normal(size=(features, labels)))
    probability = (
        _sigmoids(z, rate) if world == "sigmoid" else rate * np.exp(SHARPNESS * (z - z.max(axis=1, keepdims=True)))
    )
    rewards = (rng.random(probability.shape) < probability).astype(np.float64)
    note = f"{world} world: the best label earns 1 in {rate:.0%} of the rounds; mistakes are rounds without a reward"
    return Stream(
        measured(X),
        probability.argmax(axis=1),
        tuple(range(labels)),
        "clicks",
        notes=(f"seed {seed}", note),
        rewards=rewards,
    )


def _sigmoids(z: Matrix, rate: float) -> Matrix:
    """Return probabilities whose largest is `rate` on average; bisection finds the offset b."""
    low, high = -50.0, 50.0
    for _ in range(100):
        b = (low + high) / 2.0
        probability: Matrix = 1.0 / (1.0 + np.exp(-SLOPE * z - b))
        low, high = (b, high) if probability.max(axis=1).mean() < rate else (low, b)
    return probability
