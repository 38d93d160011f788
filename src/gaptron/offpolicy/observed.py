"""Deterministic lower bounds, from the feedback in a log, on the loss of every linear rule in the logged rounds.

While a learner runs (`kernels.observed`), two small learners compute lower bounds, for all U simultaneously, on the
part of U's loss that the feedback reveals. With the whole log available, that minimum can be computed directly. For any
price c > 0

    Ψ_c = min_U [part of U's loss that the feedback reveals + c·X²‖U‖²]

is a valid and tighter level. The bracket is 2cX²-strongly convex: wherever the search stops, at Û, the minimum is at
least its value there minus ‖gradient‖²/(4cX²). Stopping early therefore makes the bound less tight but never invalid.
Each price gives a proof for all U. For rules with ‖U‖X ≤ B the largest Ψ_c - cB² is the strongest; it decreases with c
once ‖Û‖X > B.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from gaptron.kernels.observed import new_evidence, observe_all, proved
from gaptron.offpolicy.log import Log
from gaptron.theory.comparator import losses
from gaptron.types import Flags, Integers, Loss, Matrix, Observed, Proof, Sparse, Vector

LN2 = math.log(2.0)
PRICES = tuple(32.0 / 4.0**i for i in range(9))  # decreasing: each search starts where the previous one ended
STEPS = 200  # upper limit for the iterations of a search
Proofs = tuple[Proof, ...]
Objective = Callable[[Vector], tuple[float, Vector]]


def observe(log: Log, *, radius: float = 20.0, search: bool = True) -> Observed:
    """Prove a lower bound on the loss of every linear rule in the logged rounds, for any logger.

    Args:
        log: A log with rewards of 0 and 1 only.
        radius: The ‖U‖X for which the bound should be tight; it holds for every U.
        search: Search for the best rule, in O(nnz·K) time times a few hundred. False: one pass, as during learning.

    Returns:
        The proofs and the log's mistakes.
    """
    correct = log.correct
    if not search:
        return _one_pass(log, correct)
    mistakes, norm = int(np.count_nonzero(~correct)), log.norm
    X: Any = log.X / norm if norm > 0.0 else log.X
    K, unavailable = log.n_classes, None if log.available is None else ~log.available[correct]
    softmax = _proofs(lambda c, V: _softmax(X[correct], log.codes[correct], unavailable, K, c, V), mistakes, radius)
    one_vs_all = _proofs(lambda c, V: _one_vs_all(X, log.codes, correct, K, c, V), mistakes, radius)
    return Observed(log.n_rounds, 0, mistakes, norm, softmax, one_vs_all)


def _one_pass(log: Log, correct: Flags) -> Observed:
    rows = log.examples.rows
    evidence = new_evidence(log.n_classes, log.n_features, isinstance(rows, Sparse))
    available = np.ones((log.n_rounds, 0), dtype=np.bool_) if log.available is None else log.available
    buffers = np.ones(log.n_classes, dtype=np.bool_), np.zeros(log.n_classes)
    observe_all(evidence, rows, log.codes, correct.astype(np.float64), available, *buffers)
    return proved(evidence, 0)


def _proofs(solve: Callable[[float, Matrix | None], tuple[Matrix, float]], mistakes: int, radius: float) -> Proofs:
    """Compute one proof per price, until smaller prices give weaker bounds for rules with ‖U‖X ≤ radius."""
    found: list[Proof] = []
    V: Matrix | None = None
    for price in PRICES:
        V, level = solve(price, V)
        found.append(Proof(level, price, max(0.0, mistakes - level)))
        if level < mistakes and np.linalg.norm(V) >= radius:
            break
    return tuple(found)


def _softmax(
    X: Any, y: Integers, unavailable: NDArray[np.bool_] | None, K: int, c: float, start: Matrix | None
) -> tuple[Matrix, float]:
    """Minimise Σ -log₂ softmax(Vx)_y + c‖V‖² over the correct rounds; return the last V and a lower bound.

    Unavailable labels are excluded from the softmax of their round.
    """
    shape = (K, X.shape[1])

    def objective(flat: Vector) -> tuple[float, Vector]:
        V = flat.reshape(shape)
        Z = np.asarray(X @ V.T)
        if unavailable is not None:
            Z[unavailable] = -np.inf
        value, C = losses(Loss.LOGISTIC, Z, y)
        G = np.asarray(X.T @ C).T + 2.0 * c * V
        return float(value.sum() + c * np.sum(V * V)), np.ascontiguousarray(G).ravel()

    return _least(objective, np.zeros(shape) if start is None else start, c)


def _one_vs_all(
    X: Any, codes: Integers, correct: Flags, K: int, c: float, start: Matrix | None
) -> tuple[Matrix, float]:
    """The same for the binary question "is label k correct?", with one search per label played."""
    V = np.zeros((K, X.shape[1])) if start is None else start.copy()
    total = 0.0
    for k in np.unique(codes):
        asked = codes == k
        V[k], level = _least(_question(X[asked], np.where(correct[asked], 1.0, -1.0), c), V[k], c)
        total += level
    return V, total


def _question(X: Any, sign: Vector, c: float) -> Objective:
    def objective(v: Vector) -> tuple[float, Vector]:
        z = sign * np.asarray(X @ v)
        value = np.logaddexp(0.0, -z).sum() / LN2 + c * (v @ v)
        return float(value), np.asarray(X.T @ (-sign * expit(-z))) / LN2 + 2.0 * c * v

    return objective


def _least(objective: Objective, start: Matrix, c: float) -> tuple[Matrix, float]:
    """Return a point near the minimum and a lower bound on the minimum of a 2c-strongly convex objective."""
    from scipy.optimize import minimize  # noqa: PLC0415  (slow to import)

    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "ftol": 1e-8})
    value, gradient = objective(found.x)
    return found.x.reshape(start.shape), max(0.0, value - float(gradient @ gradient) / (4.0 * c))
