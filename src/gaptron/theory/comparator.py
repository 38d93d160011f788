"""The best fixed linear rule U in hindsight, and the mistake bound that it gives.

A mistake bound has the form E[M_T] ≤ f(L_T(U), ‖U‖) and holds for every U, so the tightest one on a stream comes from
the U that minimises f. If f increases with L and with ‖U‖², that U also minimises L_T(U) + c‖U‖² for one coefficient c,
the ratio of f's partial derivatives at U. For f = L + c‖U‖² + constant, as in most theorems, c is known. Otherwise a
few iterations of "solve for U, take the derivatives at U" find it. Every U tried gives a valid bound and the smallest
is returned, so a solver that stops early gives a looser bound but never a wrong one.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gaptron.data.actions import ActionExamples
from gaptron.errors import InputError
from gaptron.types import Comparator, Flags, Integers, Loss, Matrix, Vector

LN2 = math.log(2.0)
MAX_ITERATIONS = 8  # of the search for c
Bound = Callable[[Comparator], float]


class Best(NamedTuple):
    """The comparator found, and the bound that it gives."""

    U: Matrix
    comparator: Comparator
    bound: float


def best(
    X: Any,
    y: Integers,
    n_classes: int,
    loss: Loss,
    bound: Bound,
    radius: float = math.inf,
    excused: Flags | None = None,
) -> Best:
    """Find the U that minimises `bound` on the stream (X, y).

    Args:
        X: the examples, a dense array or a SciPy CSR matrix; or rounds of actions.
        y: the true labels.
        n_classes: the number of labels.
        loss: the surrogate loss of the bound.
        bound: the bound as a function of the comparator's loss and norm.
        radius: the largest norm of U.
        excused: rounds without a loss (the mask of the truncated hinge).

    Returns:
        The best U that was found, and its bound.
    """
    if len(y) == 0:
        raise InputError("there are no rounds, so there is no comparator")
    if isinstance(X, ActionExamples):
        task: _Task = _ActionTask(X, y)
    else:
        counted = np.ones(len(y), dtype=bool) if excused is None else ~excused
        task = _Task(X if counted.all() else X[counted], y[counted], n_classes, loss, len(y))
    tightest = task.evaluate(np.zeros((n_classes, task.X.shape[1])), bound)
    c, tried = _coefficient(bound, tightest.comparator._replace(norm=min(1.0, radius))), set[float]()
    for _ in range(MAX_ITERATIONS):
        if not 0.0 < c < math.inf or float(f"{c:.2g}") in tried:
            break
        tried.add(float(f"{c:.2g}"))
        U = task.solve_within(c, radius)
        found = task.evaluate(U, bound)
        tightest = min(tightest, found, key=lambda b: b.bound)
        c = _coefficient(bound, found.comparator)
    return tightest


def _coefficient(bound: Bound, at: Comparator) -> float:
    """Return c = (∂f/∂‖U‖²) / (∂f/∂L) at a comparator, by one-sided differences."""
    n = max(at.norm, 1e-6)
    f = bound(at._replace(norm=n))
    if not math.isfinite(f):
        return math.inf
    dL, dn = max(at.loss, f, 1.0) * 1e-6, n * 1e-6  # large compared with the rounding error of f
    by_loss = (bound(at._replace(norm=n, loss=at.loss + dL)) - f) / dL
    by_norm = (f - bound(at._replace(norm=n - dn))) / (n * n - (n - dn) ** 2)
    return by_norm / by_loss if by_loss > 0.0 else math.inf


class _Task:
    """Minimises L_T(U) + c‖U‖² for one stream and one loss."""

    def __init__(self, X: Any, y: Integers, n_classes: int, loss: Loss, rounds: int) -> None:
        self.X, self.y, self.K, self.loss, self.rounds = X, y, n_classes, loss, rounds

    def losses(self, U: Matrix) -> tuple[Vector, Matrix]:
        """Return the loss of every round, and the coefficients of its gradient, as `losses` does."""
        return losses(self.loss, np.asarray(self.X @ U.T), self.y)

    def comparator(self, U: Matrix) -> Comparator:
        """Return what bounds need to know of U."""
        return Comparator(float(self.losses(U)[0].sum()), float(np.linalg.norm(U)), self.rounds)

    def evaluate(self, U: Matrix, bound: Bound) -> Best:
        comparator = self.comparator(U)
        return Best(U, comparator, bound(comparator))

    def solve_within(self, c: float, radius: float) -> Matrix:
        """Return the minimiser, with c increased until its norm is at most `radius`."""
        U = self.solve(c)
        if np.linalg.norm(U) <= radius:
            return U
        low, high = c, c
        while np.linalg.norm(U) > radius:
            low, high = high, 4 * high
            U = self.solve(high, U)
        inside = U
        for _ in range(8):
            middle = math.sqrt(low * high)
            U = self.solve(middle, inside)
            if np.linalg.norm(U) > radius:
                low = middle
            else:
                inside, high = U, middle
        return inside

    def _class_means(self) -> Matrix:
        """Return the centred sums of the examples of each class, scaled to norm 1."""
        chosen = np.zeros((len(self.y), self.K))
        chosen[np.arange(len(self.y)), self.y] = 1.0
        U = np.asarray(self.X.T @ (chosen - chosen.sum(axis=0) / max(1, len(self.y)))).T
        return np.asarray(U / max(float(np.linalg.norm(U)), 1e-300))

    def solve(self, c: float, start: Matrix | None = None) -> Matrix:
        if self.loss is Loss.HINGE and len(np.unique(self.y)) > 1:
            return _crammer_singer(self.X, self.y, self.K, c)
        from scipy.optimize import minimize  # noqa: PLC0415  (half of the time of `import gaptron`)

        shape = (self.K, self.X.shape[1])

        def objective(flat: Vector) -> tuple[float, Vector]:
            U = flat.reshape(shape)
            value, C = self.losses(U)
            G = np.asarray(self.X.T @ C).T + 2 * c * U
            return float(value.sum() + c * np.sum(U * U)), np.ascontiguousarray(G).ravel()

        # Start near 0, towards the class means: at 0 the hinges have a kink that a smooth solver cannot leave.
        first = self._class_means() / 100 if start is None else start
        # Four digits suffice for a bound, and any U gives a valid one.
        solution = minimize(
            objective, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200, "ftol": 1e-5}
        )
        return np.asarray(solution.x).reshape(shape)


class _ActionTask(_Task):
    """The same where every round brings its own actions: U is one row, and y holds the right action of each round."""

    def __init__(self, rounds: ActionExamples, y: Integers) -> None:
        super().__init__(rounds.as_matrix(), y, 1, Loss.LOGISTIC, len(y))
        self.counts, self.first = rounds.counts, rounds.first[:-1] - rounds.first[0]

    def losses(self, U: Matrix) -> tuple[Vector, Matrix]:
        z = np.asarray(self.X @ U[0])
        z -= np.repeat(np.maximum.reduceat(z, self.first), self.counts)
        p = np.exp(z)
        total = np.add.reduceat(p, self.first)
        right = self.first + self.y
        value = (np.log(total) - z[right]) / LN2
        p /= np.repeat(total, self.counts)
        p[right] -= 1.0
        return value, p[:, None] / LN2

    def comparator(self, U: Matrix) -> Comparator:
        return super().comparator(U)._replace(actions=int(self.counts.sum()), most_actions=int(self.counts.max()))

    def _class_means(self) -> Matrix:
        """Return the sum of the right actions minus the mean of their rounds, scaled to norm 1."""
        weights = -np.repeat(1.0 / self.counts, self.counts)
        weights[self.first + self.y] += 1.0
        U = np.asarray(self.X.T @ weights)[None]
        return np.asarray(U / max(float(np.linalg.norm(U)), 1e-300))


def of_actions(rounds: ActionExamples, y: Integers, U: Matrix) -> Comparator:
    """Evaluate one rule on rounds of actions.

    Args:
        rounds: the actions.
        y: the right action of each round.
        U: the rule, 1 × d.

    Returns:
        What bounds need to know of it.
    """
    return _ActionTask(rounds, y).comparator(U)


def losses(loss: Loss, Z: Matrix, y: Integers) -> tuple[Vector, Matrix]:
    """Return ℓ and the coefficients c of its gradient c ⊗ x for every row of scores; the hinge without its mask."""
    T = len(y)
    each = np.arange(T)
    if loss is Loss.LOGISTIC:
        Z = Z - Z.max(axis=1, keepdims=True)
        P = np.exp(Z)
        total = P.sum(axis=1)
        value = (np.log(total) - Z[each, y]) / LN2
        P /= total[:, None]
        P[each, y] -= 1.0
        P /= LN2
        return value, P
    own = Z[each, y]
    others = Z.copy()
    others[each, y] = -np.inf
    rival = others.argmax(axis=1)
    m = own - others[each, rival]
    slack = np.maximum(1.0 - m, 0.0)
    if loss is Loss.HINGE:
        value, v = slack, np.where(slack > 0.0, 1.0, 0.0)
    else:
        value, v = np.where(m <= 0.0, 1.0 - 2.0 * m, slack**2), np.where(m <= 0.0, 2.0, 2.0 * slack)
    C = np.zeros_like(Z)
    C[each, rival] = v
    C[each, y] = -v
    return value, C


def _crammer_singer(X: Any, y: Integers, K: int, c: float) -> Matrix:
    """Minimise Σ max(1 - m, 0) + c‖U‖²: the multiclass SVM of Crammer & Singer, by LIBLINEAR's dual solver.

    A class without examples can still be the rival of another. A zero example, whose loss does not depend on U, is
    added for it.
    """
    import warnings  # noqa: PLC0415

    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.svm import LinearSVC  # noqa: PLC0415

    svm = LinearSVC(
        C=1 / (2 * c), multi_class="crammer_singer", fit_intercept=False, tol=1e-3, max_iter=200, random_state=0
    )
    absent = np.setdiff1d(np.arange(K), y)
    if len(absent):
        blank = np.zeros((len(absent), X.shape[1]))
        X = sp.vstack([cast(Any, X), sp.csr_matrix(blank)]) if sp.issparse(X) else np.vstack([X, blank])
        y = np.concatenate([y, absent])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an early stop is harmless: see the module docstring
        svm.fit(X, y)
    U: NDArray[np.float64] = np.zeros((K, X.shape[1]))
    rows = svm.coef_ if len(svm.classes_) > 2 else np.vstack([-svm.coef_ / 2, svm.coef_ / 2])
    U[svm.classes_] = rows
    return U
