"""What the answers of a log prove of every linear rule, on its own rounds and without any probability.

Beside a learner (`kernels.observed`) two small learners bound from below, for all U at once, what U pays on the
answers. With the whole log at hand the least that any U pays can be looked for itself. For any price c > 0

    Ψ_c = min_U [part of U's loss that the answers show + c·X²‖U‖²]

is as good a level, and tighter. The bracket is 2cX²-strongly convex: at whatever Û the search stops, the minimum is no
less than its value there less ‖gradient‖²/(4cX²), so that a search that stops early costs tightness, never truth. Each
price gives a proof for all U. Of rules with ‖U‖X ≤ B the largest Ψ_c - cB² says most: it falls with c once ‖Û‖X > B.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from gaptron.comparator import losses
from gaptron.kernels.observed import hear_all, new_watch, proved
from gaptron.logged.log import Log
from gaptron.types import Flags, Integers, Loss, Matrix, Observed, Proof, Sparse, Vector
from gaptron.validation import as_rows

LN2 = math.log(2.0)
PRICES = tuple(32.0 / 4.0**i for i in range(9))  # from dear to cheap: each search starts where the last one ended
STEPS = 200  # of a search at most
Proofs = tuple[Proof, ...]
Objective = Callable[[Vector], tuple[float, Vector]]


def observe(log: Log, *, radius: float = 20.0, search: bool = True) -> Observed:
    """What the answers of a log prove of every linear rule, whoever made its decisions and however.

    Args:
        log: of right and wrong answers; rewards between 0 and 1 are refused.
        radius: the ‖U‖X of the rules that are to be spoken of; what is proved holds for every U.
        search: look for the best rule, in time O(nnz·K) times some hundred. False: one pass, as beside a learner.
    """
    right = log.right
    if not search:
        return _one_pass(log, right)
    mistakes, norm = int(np.count_nonzero(~right)), log.norm
    rows: Any = log.X / norm if norm > 0.0 else log.X
    K, out = log.n_classes, None if log.among is None else ~log.among[right]
    softmax = _proofs(lambda c, V: _softmax(rows[right], log.codes[right], out, K, c, V), mistakes, radius)
    one_vs_all = _proofs(lambda c, V: _one_vs_all(rows, log.codes, right, K, c, V), mistakes, radius)
    return Observed(log.n_rounds, 0, mistakes, norm, softmax, one_vs_all)


def _one_pass(log: Log, right: Flags) -> Observed:
    rows, width = as_rows(log.X)
    seen = new_watch(log.n_classes, width, isinstance(rows, Sparse))
    among = np.ones((log.n_rounds, 0), dtype=np.bool_) if log.among is None else log.among
    room = np.ones(log.n_classes, dtype=np.bool_), np.zeros(log.n_classes)
    hear_all(seen, rows, log.codes, right.astype(np.float64), among, *room)
    return proved(seen, 0)


def _proofs(solve: Callable[[float, Matrix | None], tuple[Matrix, float]], mistakes: int, radius: float) -> Proofs:
    """One for each price, until cheaper ones say less of rules with ‖U‖X ≤ radius."""
    found: list[Proof] = []
    V: Matrix | None = None
    for price in PRICES:
        V, level = solve(price, V)
        found.append(Proof(level, price, max(0.0, mistakes - level)))
        if level < mistakes and np.linalg.norm(V) >= radius:
            break
    return tuple(found)


def _softmax(
    X: Any, y: Integers, out: NDArray[np.bool_] | None, K: int, c: float, start: Matrix | None
) -> tuple[Matrix, float]:
    """min Σ -log₂ softmax(Vx)_y + c‖V‖² over the hits: where it was looked for, and a level it does not go below.

    Labels that were `out` are left out of the softmax of their round.
    """
    shape = (K, X.shape[1])

    def objective(flat: Vector) -> tuple[float, Vector]:
        V = flat.reshape(shape)
        Z = np.asarray(X @ V.T)
        if out is not None:
            Z[out] = -np.inf
        value, C = losses(Loss.LOGISTIC, Z, y)
        G = np.asarray(X.T @ C).T + 2.0 * c * V
        return float(value.sum() + c * np.sum(V * V)), np.ascontiguousarray(G).ravel()

    return _least(objective, np.zeros(shape) if start is None else start, c)


def _one_vs_all(X: Any, codes: Integers, right: Flags, K: int, c: float, start: Matrix | None) -> tuple[Matrix, float]:
    """The same for the questions "is it k?" of the labels played. Each label's is a search of its own."""
    V = np.zeros((K, X.shape[1])) if start is None else start.copy()
    total = 0.0
    for k in np.unique(codes):
        asked = codes == k
        V[k], level = _least(_question(X[asked], np.where(right[asked], 1.0, -1.0), c), V[k], c)
        total += level
    return V, total


def _question(X: Any, sign: Vector, c: float) -> Objective:
    def objective(v: Vector) -> tuple[float, Vector]:
        z = sign * np.asarray(X @ v)
        value = np.logaddexp(0.0, -z).sum() / LN2 + c * (v @ v)
        return float(value), np.asarray(X.T @ (-sign * expit(-z))) / LN2 + 2.0 * c * v

    return objective


def _least(objective: Objective, start: Matrix, c: float) -> tuple[Matrix, float]:
    """A point near the minimum, and a number that the minimum is not below: the objective is 2c-strongly convex."""
    from scipy.optimize import minimize  # noqa: PLC0415  (slow to import)

    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "ftol": 1e-8})
    value, gradient = objective(found.x)
    return found.x.reshape(start.shape), max(0.0, value - float(gradient @ gradient) / (4.0 * c))
