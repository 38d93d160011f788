"""Learners whose files are kept beside this one, to notice changes of the format. `scripts/models` writes them."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import gaptron
from tests.conftest import random_stream

FOLDER = Path(__file__).parent
FILE = FOLDER / "expected.json"
X, Y, K = random_stream(80)
Made = tuple[gaptron.Learner, list[gaptron.Decision]]  # decisions nobody holds are not saved


def bandit() -> Made:
    learner = gaptron.Learner("frugal-gaptron", n_classes=K, feedback="bandit", norm=4.0, radius=1.0, seed=1)
    learner.play(X[:60], Y[:60])
    decisions = [learner.decide(x) for x in X[60:63]]
    learner.learn(decisions[1], correct=True)
    return learner, decisions


def graph() -> Made:
    classes = ("a", 7, "7", (True, 2.5))
    learner = gaptron.Learner("gappletron", classes=classes, feedback="label-efficient", loss="hinge", norm=4.0, seed=2)
    labels = np.empty(60, dtype=object)
    labels[:] = [classes[code] for code in Y[:60]]
    learner.play(sp.csr_matrix(X[:60]), labels)
    return learner, [learner.decide(sp.csr_matrix(X[60:61]))]


def unborn() -> Made:
    return gaptron.Learner("gaptron", n_classes=K, seed=3, ball=2.0), []


def late() -> Made:
    learner = gaptron.Learner("frugal-gaptron", n_classes=K, delay=2, seed=4)
    learner.play(X[:60], Y[:60])
    return learner, [learner.decide(x) for x in X[60:62]]


KEPT = {"bandit": bandit, "graph": graph, "late": late, "unborn": unborn}


def portrait(learner: gaptron.Learner) -> dict[str, Any]:
    """What a file promises to bring back, and how it goes on."""
    return {
        "repr": repr(learner),
        "classes": repr(learner.classes),
        "settings": repr(learner.settings),
        "weights": [float(w).hex() for w in learner.weights.ravel()],
        "pending": {str(n): [repr(d.label), d.propensity.hex()] for n, d in learner.pending.items()},
        "next": [int(code) for code in learner.play(X[63:], [learner.classes[code] for code in Y[63:]]).codes],
    }
