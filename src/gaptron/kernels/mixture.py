"""Mixtures of softmax rules: q̄(x) = Σ_c a_c softmax(W_c x), where W ~ exp(-Φ) and

    Φ(W) = Σ_s v_s ℓ_s(W) + ‖W‖²/(2ν²),    ℓ_s(W) = -ln softmax(W x_s)_{y_s}    (nats)

over the rounds s kept in a history. Two ways, in one set of arrays (fields of the algorithm's state):

    chains   the W_c wander by the Metropolis-adjusted Langevin algorithm on Φ and count alike
    grid     the W_c stand still and a_c ∝ exp(-Φ(W_c)): no history and no chance, for dK ≤ 4

    W, G     the rules and ∇Φ there        E, a   Φ and the weight of each
    y, v     label and weight of the rounds kept; the history's own five arrays
    pace     square: Σ v‖x‖² of them, log_step: ln of the step's factor, rounds learned, steps accepted and tried

and in their scratch
    V, H     a proposal and its ∇Φ         r      one number per label         dice   its random numbers
    coin     u: the number the round was drawn with, for the dice
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import SettingError
from gaptron.kernels.dice import Dice, new_dice, normal, shake, throw, uniform
from gaptron.kernels.exponential import exponentials
from gaptron.kernels.history import check_history, crowded, forget, keep, new_history, recall, refuse_beyond, slot
from gaptron.kernels.jit import by_rows, jit
from gaptron.kernels.rows import add, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, logsumexp, softmax
from gaptron.types import Integers, Matrix, Problem, Vector, named

FEW = 4  # dK up to which a grid is laid
REACH = 4.0  # the grid covers [-4ν, 4ν] on every axis
WANTED = 0.57  # the share of steps accepted at which such chains move fastest
Rules = NDArray[np.float64]  # C × K × d or, for sparse rows, C × d × K


# --- making -------------------------------------------------------------------------------------------------


def on_grid(problem: Problem, most: int) -> bool:
    """Is this problem small enough for a grid of at most `most` points?"""
    return 0 < problem.n_features * problem.n_classes <= FEW and most > 0


def axis(n: int, most: int, nu: float) -> Vector:
    """The points on each of n axes, the same below and above zero."""
    points = 2
    while (points + 1) ** n <= most:
        points += 1
    return np.asarray((np.arange(points) - (points - 1) / 2) * (2 * REACH * nu / (points - 1)))


def check(nu: float, step: float, grid: int, **counts: int) -> None:
    """Refuse what no mixture can be made of."""
    for name, number in (("nu", nu), ("step", step)):
        if not (number > 0.0 and math.isfinite(number)):
            raise SettingError(f"{name}={number!r} must be a positive number")
    for name, count in {**counts, "grid": grid}.items():
        least = 0 if name in ("batch", "grid") else 1
        if count != int(count) or count < least:
            raise SettingError(f"{name}={count!r} must be a whole number of at least {least}")
    if 0 < grid < 2**FEW:
        raise SettingError(f"grid={grid!r} must be 0 or at least {2**FEW}: two points on each of {FEW} axes")


def new_mixture(
    problem: Problem, sparse: bool, nu: float, chains: int, memory: int, nonzeros: int, grid: int, step: float
) -> dict[str, Any]:
    """The arrays before the first round. Chains begin at zero, where q̄ is what it is under the prior: 1/K."""
    K, d = problem.n_classes, problem.n_features
    shape = zeros(K, d, sparse).shape
    if on_grid(problem, grid):
        line = axis(K * d, grid, nu)
        W = np.stack(np.meshgrid(*[line] * (K * d), indexing="ij"), axis=-1).reshape(-1, K, d)
        E = (W**2).sum(axis=(1, 2)) / (2 * nu * nu)
        a = np.exp(E.min() - E)
        a /= a.sum()
        if sparse:
            W = np.ascontiguousarray(W.transpose(0, 2, 1))
        G, memory = np.zeros((0, *shape)), 0
    else:
        refuse_beyond(
            2 * chains * K * d, f"{chains} chains of {K} × {d} numbers, each with its gradient", "fewer chains"
        )
        W, E, a = np.zeros((chains, *shape)), np.zeros(chains), np.full(chains, 1.0 / chains)
        G = np.zeros_like(W)
    history = new_history(memory, d, sparse, nonzeros)
    log_step = math.log(step) - math.log(K * d) / 3
    pace = named(square=0.0, log_step=log_step, rounds=0, accepted=0, tried=0)
    kept = {"y": np.zeros(memory, dtype=np.int64), "v": np.zeros(memory), "pace": pace}
    return {"W": W, "G": G, "E": E, "a": a, **history._asdict(), **kept}


class MixtureScratch(NamedTuple):
    """Work space of a mixture."""

    V: Matrix
    H: Matrix
    r: Vector
    dice: Dice
    coin: Any


def mixture_scratch(problem: Problem, sparse: bool, grid: int) -> MixtureScratch:
    """A proposal and its gradient, unless the rules stand on a grid."""
    K, d = (0, 0) if on_grid(problem, grid) else (problem.n_classes, problem.n_features)
    V = zeros(K, d, sparse)
    return MixtureScratch(V, np.zeros_like(V), np.zeros(problem.n_classes), new_dice(), named(u=0.0))


def check_mixture(state: Any, problem: Problem) -> None:
    """Refuse a mixture, read from a file, that would send compiled code outside its arrays."""
    check_history(state, problem.n_features)
    check_labels(state.y, problem.n_classes)


def check_labels(y: Integers, n_classes: int) -> None:
    """Refuse kept labels, read from a file, that are none."""
    if len(y) and not (y.min() >= 0 and y.max() < n_classes):
        raise ValueError(f"the history holds a label outside 0..{n_classes - 1}")


def mean(state: Any) -> Matrix:
    """Σ a_c W_c, in the layout of the rows. On a grid by pairs ±W, so that it is nothing when nothing is known."""
    if state.begin.shape[0] == 0:
        return np.asarray(np.tensordot((state.a - state.a[::-1]) / 2, state.W, 1))
    return np.asarray(np.tensordot(state.a, state.W, 1))


# --- what mixing costs --------------------------------------------------------------------------------------


def price(problem: Problem, nu: float, norm: float, rounds: float) -> float:
    """Mixture over N(0, ν²I) less the loss of any U with ‖U‖ = norm, in nats: Σ -ln q̄(y) - Σ ℓ(U) is at most this.

    ‖U‖²/(2ν²) + (dK/2) ln(1 + ν² T X² (1 - 1/K)/(dK)): the loss is -ln E exp(-L), at most E_Q L + KL(Q ‖ prior) for
    Q = N(U, ε²I), and E_Q ℓ ≤ ℓ(U) + ε²X²(1 - 1/K)/2 (after Kakade & Ng 2005). `rounds` may be a sum of weights v ≤ 1.
    """
    (X,) = problem.need("norm")
    K, n = problem.n_classes, problem.n_features * problem.n_classes
    return norm**2 / (2 * nu**2) + n / 2 * math.log1p(nu**2 * rounds * X**2 * (1 - 1 / K) / n)


def grid_price(problem: Problem, nu: float, most: int, norm: float, rounds: float) -> float:
    """The same for the grid, whose prior is its points weighted by exp(-‖W‖²/(2ν²)).

    Q rounds every number of U up or down to the grid (spacing δ), by chance and on average right: each moves the loss
    by at most δ²x²/32, and -ln prior costs (‖U‖² + dK δ²/4)/(2ν²) + dK ln Σ exp(-g²/(2ν²)), g along one axis.
    """
    if norm > REACH * nu:
        return math.inf
    (X,) = problem.need("norm")
    K, n = problem.n_classes, problem.n_features * problem.n_classes
    line = axis(n, most, nu)
    delta = line[1] - line[0]
    prior = (norm**2 + n * delta**2 / 4) / (2 * nu**2) + n * math.log(np.exp(-(line**2) / (2 * nu**2)).sum())
    return float(prior + rounds * K * (X * delta) ** 2 / 32)


# --- predicting ---------------------------------------------------------------------------------------------


@jit
def mix(state: Any, work: MixtureScratch, x: Any, q: Vector) -> None:
    """q̄(x). O(C·nnz·K)."""
    for k in range(q.shape[0]):
        q[k] = 0.0
    for c in range(state.a.shape[0]):
        if state.a[c] == 0.0:
            continue
        scores(state.W[c], x, work.r)
        softmax(work.r, best(work.r), work.r)
        for k in range(q.shape[0]):
            q[k] += state.a[c] * work.r[k]


@jit
def logs(q: Vector, z: Vector) -> None:
    """z = ln q, and no less than ln of the smallest number."""
    for k in range(q.shape[0]):
        z[k] = math.log(max(q[k], 1e-300))


# --- learning -----------------------------------------------------------------------------------------------


@jit
def charge(W: Matrix, G: Matrix, x: Any, y: int, v: float, r: Vector) -> float:
    """G ← G + v∇ℓ(W; x, y); returns vℓ. O(nnz·K)."""
    scores(W, x, r)
    loss = float(v * (logsumexp(r) - r[y]))
    softmax(r, best(r), r)
    for k in range(r.shape[0]):
        r[k] *= v
    r[y] -= v
    add(G, x, r)
    return loss


@jit
def pull_home(W: Matrix, G: Matrix, precision: float) -> float:
    """G = W/ν², the prior's part of ∇Φ; returns ‖W‖²/(2ν²)."""
    total = 0.0
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            G[i, j] = precision * W[i, j]
            total += W[i, j] * W[i, j]
    return precision * total / 2.0


@jit
def potential(state: Any, work: MixtureScratch, x: Any, W: Matrix, G: Matrix, precision: float) -> float:
    """Φ(W), and G = ∇Φ(W). O(t·nnz·K)."""
    total = pull_home(W, G, precision)
    for i in range(state.span[0].count):
        j = slot(state, i)
        total += charge(W, G, recall(state, x, j), state.y[j], state.v[j], work.r)
    return total


def _leap_dense(V: Matrix, x: Any, W: Matrix, G: Matrix, h: float, wide: float, dice: Any) -> float:
    square = 0.0
    for k in range(W.shape[0]):
        for i in range(W.shape[1]):
            e = normal(dice)
            V[k, i] = W[k, i] - h * G[k, i] + wide * e
            square += e * e
    return square


def _leap_sparse(V: Matrix, x: Any, W: Matrix, G: Matrix, h: float, wide: float, dice: Any) -> float:
    square = 0.0
    for k in range(W.shape[1]):
        for i in range(W.shape[0]):
            e = normal(dice)
            V[i, k] = W[i, k] - h * G[i, k] + wide * e
            square += e * e
    return square


leap = by_rows(_leap_dense, _leap_sparse)
leap.__doc__ = "V = W - hG + wide·ξ, ξ standard normal, label by label whatever the layout; returns ‖ξ‖²."


@jit
def way_back(V: Matrix, H: Matrix, W: Matrix, h: float) -> float:
    """‖W - V + hH‖²: how far from its drift a leap from V back to W would be."""
    total = 0.0
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            e = W[i, j] - V[i, j] + h * H[i, j]
            total += e * e
    return total


@jit
def take(W: Matrix, V: Matrix) -> None:
    """W ← V."""
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            W[i, j] = V[i, j]


@jit
def settle(state: Any, work: MixtureScratch, x: Any, y: int, v: float, precision: float, exact: bool) -> None:
    """Keep a round, forget what it crowds out, and bring Φ and ∇Φ of every chain up to date."""
    if state.pace[0].rounds == 0.0:  # the chains leave zero for the prior
        for c in range(state.W.shape[0]):
            leap(state.W[c], x, state.W[c], state.W[c], 0.0, 1.0 / math.sqrt(precision), work.dice)
            state.E[c] = pull_home(state.W[c], state.G[c], precision)
    while crowded(state, x):
        j = slot(state, 0)
        old = recall(state, x, j)
        state.pace[0].square -= state.v[j] * sqnorm(old)
        if exact:
            for c in range(state.W.shape[0]):
                state.E[c] += charge(state.W[c], state.G[c], old, state.y[j], -state.v[j], work.r)
        forget(state)
        if state.span[0].count == 0:
            state.pace[0].square = 0.0
    j = keep(state, x)
    state.y[j], state.v[j] = y, v
    state.pace[0].square += v * sqnorm(recall(state, x, j))
    state.pace[0].rounds += 1
    if exact:
        for c in range(state.W.shape[0]):
            state.E[c] += charge(state.W[c], state.G[c], x, y, v, work.r)


@jit
def wander(state: Any, work: MixtureScratch, x: Any, steps: int, precision: float) -> None:
    """J Metropolis-adjusted Langevin steps of every chain; the step's factor learns. O(C·J·t·nnz·K)."""
    h = math.exp(state.pace[0].log_step) / (max(state.pace[0].square, 0.0) / 2.0 + precision)
    accepted, tried = 0, steps * state.W.shape[0]
    for _ in range(steps):
        for c in range(state.W.shape[0]):
            W, G = state.W[c], state.G[c]
            out = leap(work.V, x, W, G, h, math.sqrt(2.0 * h), work.dice) / 2.0
            energy = potential(state, work, x, work.V, work.H, precision)
            back = way_back(work.V, work.H, W, h) / (4.0 * h)
            if math.log(uniform(work.dice)) < state.E[c] - energy + out - back:
                take(W, work.V)
                take(G, work.H)
                state.E[c] = energy
                accepted += 1
    state.pace[0].accepted += accepted
    state.pace[0].tried += tried
    lesson = (accepted / tried - WANTED) / math.sqrt(state.pace[0].rounds)
    state.pace[0].log_step = min(max(state.pace[0].log_step + lesson, -30.0), 30.0)


@jit
def stray(state: Any, work: MixtureScratch, x: Any, steps: int, precision: float, batch: int) -> None:
    """J Langevin steps of every chain with ∇Φ guessed from `batch` kept rounds, none refused. O(C·J·b·nnz·K)."""
    h = math.exp(state.pace[0].log_step) / (max(state.pace[0].square, 0.0) / 2.0 + precision)
    for _ in range(steps):
        for c in range(state.W.shape[0]):
            W = state.W[c]
            pull_home(W, work.H, precision)
            for _ in range(batch):
                j = slot(state, throw(work.dice) % state.span[0].count)
                charge(W, work.H, recall(state, x, j), state.y[j], state.v[j] * state.span[0].count / batch, work.r)
            leap(W, x, W, work.H, h, math.sqrt(2.0 * h), work.dice)


@jit
def weigh(state: Any, work: MixtureScratch, x: Any, y: int, v: float) -> None:
    """The grid's round: Φ of every point, less the least of them, and the weights exp(-Φ). O(C·nnz·K)."""
    least = math.inf
    for c in range(state.E.shape[0]):
        scores(state.W[c], x, work.r)
        state.E[c] += v * (logsumexp(work.r) - work.r[y])
        least = min(least, state.E[c])
    total = 0.0
    for c in range(state.E.shape[0]):
        state.E[c] -= least
        state.a[c] = -state.E[c]
    exponentials(state.a, 0.0, state.a)
    for c in range(state.E.shape[0]):
        total += state.a[c]
    for c in range(state.E.shape[0]):
        state.a[c] /= total


@jit
def absorb(state: Any, work: MixtureScratch, x: Any, y: int, v: float, nu: float, steps: int, batch: int) -> None:
    """Learn that x had label y, with weight v: the grid weighs, the chains keep the round and move."""
    if state.begin.shape[0] == 0:
        weigh(state, work, x, y, v)
        return
    shake(work.dice, work.coin[0].u, 1)
    precision = 1.0 / (nu * nu)
    settle(state, work, x, y, v, precision, batch == 0)
    if batch > 0:
        stray(state, work, x, steps, precision, batch)
    else:
        wander(state, work, x, steps, precision)
