"""Actions with features in textbook numpy: dense rows Φ (K × d), no formula of the library."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

import gaptron
from gaptron import ActionExamples
from tests import plain

LN2 = math.log(2.0)
LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_array}


def diameter(Phi: np.ndarray) -> float:
    """The largest ‖φ_j - φ_k‖."""
    return max(float(np.linalg.norm(a - b)) for a in Phi for b in Phi)


def loss(w: np.ndarray, Phi: np.ndarray, y: int) -> float:
    """ℓ^y(w) = -log₂ p_y."""
    return float(-np.log2(plain.softmax(Phi @ w)[y]))


def gradient(w: np.ndarray, Phi: np.ndarray, y: int) -> np.ndarray:
    """∇ℓ^y(w)."""
    return (plain.softmax(Phi @ w) @ Phi - Phi[y]) / LN2


def estimate(p: np.ndarray, q: np.ndarray, Phi: np.ndarray, played: int, reward: float) -> np.ndarray:
    """ĝ of the theorem."""
    c = Phi.mean(axis=0)
    return ((p @ Phi - c) + reward / q[played] * (c - Phi[played])) / LN2


def second_moment(p: np.ndarray, q: np.ndarray, Phi: np.ndarray, y: int) -> float:
    """E‖ĝ‖² if y is the only right action, by enumeration of the draws."""
    squares = [float(np.sum(estimate(p, q, Phi, k, float(k == y)) ** 2)) for k in range(len(Phi)) if q[k] > 0.0]
    away = float(np.sum((Phi.mean(axis=0) - Phi[y]) ** 2)) > 1e-20
    return math.inf if away and q[y] == 0.0 else float(np.dot(q[q > 0.0], squares))


def gap(w: np.ndarray, Phi: np.ndarray, q: np.ndarray, y: int, eta: float, bandit: bool, risk: float = 1.0) -> float:
    """The surrogate gap of action y, from its definition."""
    p = plain.softmax(Phi @ w)
    square = second_moment(p, q, Phi, y) if bandit else float(np.sum(gradient(w, Phi, y) ** 2))
    return risk * (1.0 - float(q[y])) - loss(w, Phi, y) + eta / 2.0 * square


def rounds(T: int, d: int = 4, most: int = 5, seed: int = 0, scale: float = 1.0) -> list[np.ndarray]:
    """Rounds of 1 to `most` actions; a third of the entries are zero."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, T)
    return [scale * rng.normal(size=(K, d)) * (rng.random((K, d)) > 0.33) for K in sizes]


def world(T: int = 300, d: int = 4, most: int = 5, seed: int = 0, noise: float = 0.5) -> tuple[list[np.ndarray], Any]:
    """Rounds, and the right actions: those of a fixed rule, with Gumbel noise."""
    rng = np.random.default_rng(seed + 1_000)
    offers, u = rounds(T, d, most, seed), 3.0 * rng.normal(size=d)
    return offers, np.array([int((Phi @ u + noise * rng.gumbel(size=len(Phi))).argmax()) for Phi in offers])


def learner(feedback: str = "full", algorithm: str = "frugal-gaptron", seed: int = 0, **more: Any) -> gaptron.Learner:
    return gaptron.Learner(algorithm, actions=True, feedback=feedback, seed=seed, **more)


def give_feedback(who: gaptron.Learner, decision: Any, right: int) -> None:
    """Reveal what the learner's feedback reveals."""
    if who.problem.feedback.word == "full":
        who.learn(decision, action=int(right))
    else:
        who.learn(decision, correct=bool(decision.action == right))


def together(offers: list[np.ndarray], layout: str = "dense") -> ActionExamples:
    """All rounds in one layout."""
    return ActionExamples.of(LAYOUTS[layout](np.concatenate(offers)), [len(Phi) for Phi in offers])
