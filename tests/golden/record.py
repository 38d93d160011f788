"""The stream and the runs whose mistakes are frozen in mistakes.json. `scripts/golden` rewrites that file."""

from pathlib import Path
from typing import Any

import numpy as np

import gaptron
from gaptron.algorithms import NAMES, load

FILE = Path(__file__).parent / "mistakes.json"
K, D, T, SEED = 4, 5, 400, 20
PROMISES: dict[str, Any] = {"norm": 1.0, "radius": 4.0, "horizon": T}


def stream() -> tuple[np.ndarray, np.ndarray]:
    """Unit rows around four means, an eighth of the labels wrong."""
    rng = np.random.default_rng(2020)
    means = rng.normal(size=(K, D))
    y = rng.integers(0, K, T)
    X = means[y] + 0.5 * rng.normal(size=(T, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-9)
    return X, np.where(rng.random(T) < 0.125, rng.integers(0, K, T), y)


def record() -> dict[str, dict[str, float]]:
    book = {}
    for name in NAMES:
        X, y = stream()
        y, labels = (y % 2, 2) if name == "aioli" else (y, K)  # which knows two classes only
        card = load(name).CARD
        for loss in card.losses:
            for feedback in card.feedback:
                told = "label-efficient" if feedback.word == "graph" else feedback.word
                learner = gaptron.Learner(name, n_classes=labels, loss=loss.word, feedback=told, seed=SEED, **PROMISES)
                trace = learner.play(X, y)
                book[f"{name} {loss.word} {feedback.word}"] = {
                    "mistakes": trace.mistakes,
                    "top_mistakes": trace.top_mistakes,
                    "expected_mistakes": round(trace.expected_mistakes, 6),
                }
    return book
