"""Mixtures of softmax rules: q̄(x) = Σ_c a_c softmax(W_c x), where W ~ exp(-Φ) and

    Φ(W) = Σ_s v_s ℓ_s(W) + ‖W‖²/(2ν²),    ℓ_s(W) = -ln softmax(W x_s)_{y_s}    (nats)

over the rounds s stored in a history. There are two methods, which share one set of arrays (fields of the algorithm's
state):

    chains   the W_c are Markov chains of equal weight: the Metropolis-adjusted Langevin algorithm on Φ
    grid     the W_c are fixed and a_c ∝ exp(-Φ(W_c)): no history and no randomness, for dK ≤ 4

    W, G     the rules and ∇Φ there        E, a   Φ and the weight of each
    y, v     label and weight of the stored rounds, beside the five arrays of the history
    pace     square: Σ v‖x‖² of them, log_step: ln of the step's factor, rounds learned, steps accepted and tried

and in their scratch
    V, H     a proposal and its ∇Φ         r      one number per label         prng   the random number generator
    coin     u: the number that the round's label was drawn with, which seeds the generator
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import SettingError
from gaptron.kernels.compile.exponential import exponentials
from gaptron.kernels.compile.jit import by_rows, jit
from gaptron.kernels.history import (
    append,
    check_array_size,
    check_history,
    drop_oldest,
    is_full,
    new_history,
    slot,
    stored_row,
)
from gaptron.kernels.prng import PrngState, new_prng, next_bits, normal, seed_prng, uniform
from gaptron.kernels.rows import add, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, logsumexp, softmax
from gaptron.types import Integers, Matrix, Problem, Vector, named

MAX_GRID_WEIGHTS = 4  # largest dK for which a grid is used
GRID_RADIUS = 4.0  # times ν: the grid covers [-4ν, 4ν] on every axis
TARGET_ACCEPTANCE = 0.57  # the share of accepted steps at which such chains move fastest
Rules = NDArray[np.float64]  # C × K × d or, for sparse examples, C × d × K


# --- construction -------------------------------------------------------------------------------------------------


def uses_grid(problem: Problem, most: int) -> bool:
    """Return whether this problem is small enough for a grid of at most `most` points."""
    return 0 < problem.n_features * problem.n_classes <= MAX_GRID_WEIGHTS and most > 0


def grid_axis(n: int, most: int, nu: float) -> Vector:
    """Return the points on each of n axes, symmetric about zero."""
    points = 2
    while (points + 1) ** n <= most:
        points += 1
    return np.asarray((np.arange(points) - (points - 1) / 2) * (2 * GRID_RADIUS * nu / (points - 1)))


def check(nu: float, step: float, grid: int, **counts: int) -> None:
    """Refuse settings that do not define a mixture."""
    for name, number in (("nu", nu), ("step", step)):
        if not (number > 0.0 and math.isfinite(number)):
            raise SettingError(f"{name}={number!r} must be a positive number")
    for name, count in {**counts, "grid": grid}.items():
        least = 0 if name in ("batch", "grid") else 1
        if count != int(count) or count < least:
            raise SettingError(f"{name}={count!r} must be an integer of at least {least}")
    if 0 < grid < 2**MAX_GRID_WEIGHTS:
        raise SettingError(
            f"grid={grid!r} must be 0 or at least {2**MAX_GRID_WEIGHTS}: two points on each of {MAX_GRID_WEIGHTS} axes"
        )


def new_mixture(
    problem: Problem, sparse: bool, nu: float, chains: int, memory: int, nonzeros: int, grid: int, step: float
) -> dict[str, Any]:
    """Return the arrays before the first round. Chains start at zero, where q̄ is 1/K as under the prior."""
    K, d = problem.n_classes, problem.n_features
    shape = zeros(K, d, sparse).shape
    if uses_grid(problem, grid):
        points = grid_axis(K * d, grid, nu)
        W = np.stack(np.meshgrid(*[points] * (K * d), indexing="ij"), axis=-1).reshape(-1, K, d)
        E = (W**2).sum(axis=(1, 2)) / (2 * nu * nu)
        a = np.exp(E.min() - E)
        a /= a.sum()
        if sparse:
            W = np.ascontiguousarray(W.transpose(0, 2, 1))
        G, memory = np.zeros((0, *shape)), 0
    else:
        check_array_size(
            2 * chains * K * d, f"{chains} chains of {K} × {d} numbers, each with its gradient", "fewer chains"
        )
        W, E, a = np.zeros((chains, *shape)), np.zeros(chains), np.full(chains, 1.0 / chains)
        G = np.zeros_like(W)
    history = new_history(memory, d, sparse, nonzeros)
    log_step = math.log(step) - math.log(K * d) / 3
    pace = named(square=0.0, log_step=log_step, rounds=0, accepted=0, tried=0)
    labelled = {"y": np.zeros(memory, dtype=np.int64), "v": np.zeros(memory), "pace": pace}
    return {"W": W, "G": G, "E": E, "a": a, **history._asdict(), **labelled}


class MixtureScratch(NamedTuple):
    """The buffers of a mixture."""

    V: Matrix
    H: Matrix
    r: Vector
    prng: PrngState
    coin: Any


def mixture_scratch(problem: Problem, sparse: bool, grid: int) -> MixtureScratch:
    """Allocate the buffers; the proposal and its gradient are empty for a grid."""
    K, d = (0, 0) if uses_grid(problem, grid) else (problem.n_classes, problem.n_features)
    V = zeros(K, d, sparse)
    return MixtureScratch(V, np.zeros_like(V), np.zeros(problem.n_classes), new_prng(), named(u=0.0))


def check_mixture(state: Any, problem: Problem) -> None:
    """Refuse a mixture, read from a file, with which compiled code would access memory outside its arrays."""
    check_history(state, problem.n_features)
    check_labels(state.y, problem.n_classes)


def check_labels(y: Integers, n_classes: int) -> None:
    """Refuse stored labels, read from a file, that are out of range."""
    if len(y) and not (y.min() >= 0 and y.max() < n_classes):
        raise ValueError(f"the history has a label outside 0..{n_classes - 1}")


def mean(state: Any) -> Matrix:
    """Return Σ a_c W_c. On a grid it is summed over pairs ±W, so that it is exactly zero before the first round."""
    if state.begin.shape[0] == 0:
        return np.asarray(np.tensordot((state.a - state.a[::-1]) / 2, state.W, 1))
    return np.asarray(np.tensordot(state.a, state.W, 1))


# --- regret bounds --------------------------------------------------------------------------------------


def mixture_regret(problem: Problem, nu: float, norm: float, rounds: float) -> float:
    """Return a bound on Σ -ln q̄(y) - Σ ℓ(U), in nats, for the mixture over N(0, ν²I) and any U with ‖U‖ = norm.

    ‖U‖²/(2ν²) + (dK/2) ln(1 + ν² T X² (1 - 1/K)/(dK)): the loss is -ln E exp(-L), at most E_Q L + KL(Q ‖ prior) for
    Q = N(U, ε²I), and E_Q ℓ ≤ ℓ(U) + ε²X²(1 - 1/K)/2 (after Kakade & Ng 2005). `rounds` may be a sum of weights v ≤ 1.
    """
    (X,) = problem.need("norm")
    K, n = problem.n_classes, problem.n_features * problem.n_classes
    return norm**2 / (2 * nu**2) + n / 2 * math.log1p(nu**2 * rounds * X**2 * (1 - 1 / K) / n)


def grid_regret(problem: Problem, nu: float, most: int, norm: float, rounds: float) -> float:
    """Return the same bound for the grid, whose prior weights its points by exp(-‖W‖²/(2ν²)).

    Q rounds every entry of U at random to a neighbouring grid point (spacing δ), without bias: each changes the loss by
    at most δ²x²/32, and -ln prior is (‖U‖² + dK δ²/4)/(2ν²) + dK ln Σ exp(-g²/(2ν²)), g along one axis.
    """
    if norm > GRID_RADIUS * nu:
        return math.inf
    (X,) = problem.need("norm")
    K, n = problem.n_classes, problem.n_features * problem.n_classes
    points = grid_axis(n, most, nu)
    delta = points[1] - points[0]
    prior = (norm**2 + n * delta**2 / 4) / (2 * nu**2) + n * math.log(np.exp(-(points**2) / (2 * nu**2)).sum())
    return float(prior + rounds * K * (X * delta) ** 2 / 32)


# --- prediction ---------------------------------------------------------------------------------------------


@jit
def mix(state: Any, work: MixtureScratch, x: Any, q: Vector) -> None:
    """Write q = q̄(x). O(C·nnz·K)."""
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
def log_probabilities(q: Vector, z: Vector) -> None:
    """Write z = ln q, at least ln 1e-300."""
    for k in range(q.shape[0]):
        z[k] = math.log(max(q[k], 1e-300))


# --- updates -----------------------------------------------------------------------------------------------


@jit
def add_loss(W: Matrix, G: Matrix, x: Any, y: int, v: float, r: Vector) -> float:
    """Update G ← G + v∇ℓ(W; x, y), and return vℓ. O(nnz·K)."""
    scores(W, x, r)
    loss = float(v * (logsumexp(r) - r[y]))
    softmax(r, best(r), r)
    for k in range(r.shape[0]):
        r[k] *= v
    r[y] -= v
    add(G, x, r)
    return loss


@jit
def set_prior(W: Matrix, G: Matrix, precision: float) -> float:
    """Write G = W/ν², the prior's part of ∇Φ, and return ‖W‖²/(2ν²)."""
    total = 0.0
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            G[i, j] = precision * W[i, j]
            total += W[i, j] * W[i, j]
    return precision * total / 2.0


@jit
def potential(state: Any, work: MixtureScratch, x: Any, W: Matrix, G: Matrix, precision: float) -> float:
    """Return Φ(W), and write G = ∇Φ(W). O(t·nnz·K)."""
    total = set_prior(W, G, precision)
    for i in range(state.span[0].count):
        j = slot(state, i)
        total += add_loss(W, G, stored_row(state, x, j), state.y[j], state.v[j], work.r)
    return total


def _langevin_step_dense(V: Matrix, x: Any, W: Matrix, G: Matrix, h: float, scale: float, prng: Any) -> float:
    square = 0.0
    for k in range(W.shape[0]):
        for i in range(W.shape[1]):
            e = normal(prng)
            V[k, i] = W[k, i] - h * G[k, i] + scale * e
            square += e * e
    return square


def _langevin_step_sparse(V: Matrix, x: Any, W: Matrix, G: Matrix, h: float, scale: float, prng: Any) -> float:
    square = 0.0
    for k in range(W.shape[1]):
        for i in range(W.shape[0]):
            e = normal(prng)
            V[i, k] = W[i, k] - h * G[i, k] + scale * e
            square += e * e
    return square


langevin_step = by_rows(_langevin_step_dense, _langevin_step_sparse)
langevin_step.__doc__ = (
    "Write V = W - hG + scale·ξ, ξ standard normal, drawn label by label in either layout, and return ‖ξ‖²."
)


@jit
def reverse_noise(V: Matrix, H: Matrix, W: Matrix, h: float) -> float:
    """Return ‖W - V + hH‖²: the squared noise of a step from V back to W."""
    total = 0.0
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            e = W[i, j] - V[i, j] + h * H[i, j]
            total += e * e
    return total


@jit
def copy_into(W: Matrix, V: Matrix) -> None:
    """Write W = V."""
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            W[i, j] = V[i, j]


@jit
def store_round(state: Any, work: MixtureScratch, x: Any, y: int, v: float, precision: float, exact: bool) -> None:
    """Store a round, drop the oldest ones as needed, and update Φ and ∇Φ of every chain."""
    if state.pace[0].rounds == 0.0:  # the first states are drawn from the prior
        for c in range(state.W.shape[0]):
            langevin_step(state.W[c], x, state.W[c], state.W[c], 0.0, 1.0 / math.sqrt(precision), work.prng)
            state.E[c] = set_prior(state.W[c], state.G[c], precision)
    while is_full(state, x):
        j = slot(state, 0)
        old = stored_row(state, x, j)
        state.pace[0].square -= state.v[j] * sqnorm(old)
        if exact:
            for c in range(state.W.shape[0]):
                state.E[c] += add_loss(state.W[c], state.G[c], old, state.y[j], -state.v[j], work.r)
        drop_oldest(state)
        if state.span[0].count == 0:
            state.pace[0].square = 0.0
    j = append(state, x)
    state.y[j], state.v[j] = y, v
    state.pace[0].square += v * sqnorm(stored_row(state, x, j))
    state.pace[0].rounds += 1
    if exact:
        for c in range(state.W.shape[0]):
            state.E[c] += add_loss(state.W[c], state.G[c], x, y, v, work.r)


@jit
def metropolis_steps(state: Any, work: MixtureScratch, x: Any, steps: int, precision: float) -> None:
    """Take J Metropolis-adjusted Langevin steps with every chain, and adapt the step size. O(C·J·t·nnz·K)."""
    h = math.exp(state.pace[0].log_step) / (max(state.pace[0].square, 0.0) / 2.0 + precision)
    accepted, tried = 0, steps * state.W.shape[0]
    for _ in range(steps):
        for c in range(state.W.shape[0]):
            W, G = state.W[c], state.G[c]
            forward = langevin_step(work.V, x, W, G, h, math.sqrt(2.0 * h), work.prng) / 2.0
            energy = potential(state, work, x, work.V, work.H, precision)
            backward = reverse_noise(work.V, work.H, W, h) / (4.0 * h)
            if math.log(uniform(work.prng)) < state.E[c] - energy + forward - backward:
                copy_into(W, work.V)
                copy_into(G, work.H)
                state.E[c] = energy
                accepted += 1
    state.pace[0].accepted += accepted
    state.pace[0].tried += tried
    correction = (accepted / tried - TARGET_ACCEPTANCE) / math.sqrt(state.pace[0].rounds)
    state.pace[0].log_step = min(max(state.pace[0].log_step + correction, -30.0), 30.0)


@jit
def stochastic_steps(state: Any, work: MixtureScratch, x: Any, steps: int, precision: float, batch: int) -> None:
    """Take J Langevin steps with every chain, ∇Φ estimated from `batch` stored rounds, all accepted. O(C·J·b·nnz·K)."""
    h = math.exp(state.pace[0].log_step) / (max(state.pace[0].square, 0.0) / 2.0 + precision)
    for _ in range(steps):
        for c in range(state.W.shape[0]):
            W = state.W[c]
            set_prior(W, work.H, precision)
            for _ in range(batch):
                j = slot(state, next_bits(work.prng) % state.span[0].count)
                add_loss(
                    W, work.H, stored_row(state, x, j), state.y[j], state.v[j] * state.span[0].count / batch, work.r
                )
            langevin_step(W, x, W, work.H, h, math.sqrt(2.0 * h), work.prng)


@jit
def update_grid(state: Any, work: MixtureScratch, x: Any, y: int, v: float) -> None:
    """Update Φ of every grid point, relative to the smallest, and the weights exp(-Φ). O(C·nnz·K)."""
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
def update_mixture(
    state: Any, work: MixtureScratch, x: Any, y: int, v: float, nu: float, steps: int, batch: int
) -> None:
    """Learn that x has label y, with weight v: reweight the grid, or store the round and move the chains."""
    if state.begin.shape[0] == 0:
        update_grid(state, work, x, y, v)
        return
    seed_prng(work.prng, work.coin[0].u, 1)
    precision = 1.0 / (nu * nu)
    store_round(state, work, x, y, v, precision, batch == 0)
    if batch > 0:
        stochastic_steps(state, work, x, steps, precision, batch)
    else:
        metropolis_steps(state, work, x, steps, precision)
