"""Worlds in which more than one label, or none, may be right: what each label would earn is drawn in every round.

Rows are uniform on the unit sphere, z_k = ⟨w_k, x⟩ with w_k standard normal, and label k earns 1 with probability

    near       rate·exp(4(z_k - max z))        the best label earns at this rate in every round, others less
    drifting   the same, while each w_k moves in a straight line, over the whole stream, to another such vector
    sigmoid    1/(1 + exp(-2z_k - b))          b such that the best label earns at this rate on average

independently of each other. So the best rate is known: y holds the label with the largest chance, and what this label
earns on the same draws is what a learner that knew the world would have earned.
"""

import numpy as np

from gaptron.errors import InputError
from gaptron.streams.stream import Stream
from gaptron.types import Matrix
from gaptron.validation import measured

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
    """A stream whose `worth` says what each label would earn; y is the label that earns most on average."""
    for name, number, least in (("rounds", n_rounds, 1), ("labels", labels, 2), ("features", features, 1)):
        if number < least:
            raise InputError(f"{name} must be at least {least}, not {number}")
    if world not in WORLDS:
        raise InputError(f"world must be one of {', '.join(WORLDS)}, not {world!r}")
    if not 0.0 < rate < 1.0:
        raise InputError(f"rate is a probability between 0 and 1, not {rate}")
    if seed < 0:
        raise InputError(f"seed must not be negative, like {seed}")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rounds, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    z = X @ rng.normal(size=(features, labels))
    if world == "drifting":
        gone = np.arange(n_rounds)[:, None] / n_rounds
        z = (1.0 - gone) * z + gone * (X @ rng.normal(size=(features, labels)))
    chance = _sigmoids(z, rate) if world == "sigmoid" else rate * np.exp(SHARPNESS * (z - z.max(axis=1, keepdims=True)))
    worth = (rng.random(chance.shape) < chance).astype(np.float64)
    word = f"{world} world: the best label earns in {rate:.0%} of the rounds; mistakes are rounds that earned nothing"
    return Stream(
        measured(X), chance.argmax(axis=1), tuple(range(labels)), "clicks", notes=(f"seed {seed}", word), worth=worth
    )


def _sigmoids(z: Matrix, rate: float) -> Matrix:
    """Chances whose largest is `rate` on average, the offset b found by halving."""
    low, high = -50.0, 50.0
    for _ in range(100):
        b = (low + high) / 2.0
        chance: Matrix = 1.0 / (1.0 + np.exp(-SLOPE * z - b))
        low, high = (b, high) if chance.max(axis=1).mean() < rate else (low, b)
    return chance
