"""Kernel expert: a Newton softmax over the example and 256 random Fourier features of the ranks of its columns.

The other experts are linear; this one approximates a Gaussian kernel machine at a fixed cost. Ranks make it insensitive
to every increasing transformation of a column, and give it bounded inputs without a scale to be chosen.

    before the first example, from a hash of (i, j) alone: the frequencies ω_i, i = 1..128. A third of them looks at 2
    columns, a third at 4, and a third at all d:  ω_ij = 1.5/√c_i · a standard normal number, c_i = 2, 4, d

    predict    u_j = √12·((ρ_j + ½)/(m + 1) - ½), ρ_j the rank of x_j among the m knots of column j, ties in the middle
               φ = (cos⟨ω_i, u⟩, sin⟨ω_i, u⟩)_i/√128, so that ‖φ‖ = 1
               z = Ux̃ + Vφ, f = softmax z
    commit     the first knots of a column are its first values. Later the values of an example replace the knots of one
               random rank, with a probability that keeps the knots a sample of about the last 4096 examples
    learn      r and h from the feedback; g_x = Bx̃ in blocks, g_φ = Rφ;  v = ⟨x̃, g_x⟩ + ⟨φ, g_φ⟩
               U_k ← U_k - r_k g_x/(1 + hv);  V_k ← V_k - r_k g_φ/(1 + hv)
               B_q as in `newton`;  R ← R - h g_φ g_φ'/(1 + h⟨φ, g_φ⟩)

Dense examples of at most 1024 features have it; for all others its arrays are empty, and nothing is computed.
Which knot is replaced depends on the number of the round alone and not on the generator that draws labels, because
advice must not foresee a draw.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.algorithms.advised.newton import (
    HALF_WAY,
    VARIANCE,
    Workspace,
    add_step,
    is_valid,
    new_blocks,
    precondition,
    rescale,
    update_precision,
)
from gaptron.kernels.compile.jit import by_rows, jit, jit_reordered
from gaptron.kernels.compile.vectors import Blocks
from gaptron.kernels.prng import hashed
from gaptron.kernels.rows import aligned_zeros, scores
from gaptron.types import Integers, Matrix, Vector

MAX_FEATURES = 1_024
FREQUENCIES = 128
DIMENSION = 2 * FREQUENCIES  # of φ
NEAR = 4  # the most columns that a frequency looks at, unless it looks at all
BANDWIDTH = 1.5
KNOTS, FEW_KNOTS = 128, 32  # of a column
MAX_FINE_FEATURES = 256  # with more features, columns have few knots
MEMORY = 4_096.0  # examples that the knots are a sample of
LARGEST = 1e300  # larger values count as this one, and as smaller than a knot that is not in use
UNUSED = 2e300
SEED = 0x6B65_726E  # of frequencies and knots
TABLES = ("U", "V", "B", "R", "knots")  # the state's tables that belong to this expert
ROUND = 1.5 * 2.0**52  # adding and subtracting it rounds to a whole number
S3, S5, S7, S9, S11, S13, S15 = ((-1.0) ** (i // 2) / math.factorial(i) for i in range(3, 17, 2))
C2, C4, C6, C8, C10, C12, C14, C16 = ((-1.0) ** (i // 2) / math.factorial(i) for i in range(2, 18, 2))
Floats = NDArray[np.float32]


class Frequencies(NamedTuple):
    """The frequencies of a number of columns."""

    columns: Integers  # the columns of those that look at few, 4 per frequency
    near: Floats  # their coefficients; 0 where there are fewer than 4 columns
    far: Floats  # the coefficients of those that look at all columns


class Scratch(NamedTuple):
    """Buffers of one round."""

    frequencies: Frequencies
    x: Vector  # the example, for `commit`
    u: Floats  # the ranks, scaled
    angles: Vector
    phi: Floats
    raw: Vector  # ⟨U_k, x⟩
    z: Vector  # ⟨V_k, φ⟩
    g: Floats  # Rφ


def is_present(n_features: int, sparse: bool, wanted: bool) -> bool:
    """Whether a learner has this expert."""
    return wanted and not sparse and n_features <= MAX_FEATURES


@jit
def n_experts(V: Floats, most: int) -> int:
    """The number of a learner's own experts, at most so many. The kernel expert is the last, and absent without V."""
    return most if V.shape[0] > 0 else most - 1


def tables(n_classes: int, n_features: int, present: bool) -> tuple[Matrix, Floats, Blocks, Floats, Matrix]:
    """U, V, B, R and the knots before the first example."""
    K, d, D = (n_classes, n_features, DIMENSION) if present else (0, 0, 0)
    R = aligned_zeros((D, D), np.float32)
    np.fill_diagonal(R, VARIANCE)
    n_knots = KNOTS if d <= MAX_FINE_FEATURES else FEW_KNOTS
    return (
        aligned_zeros((K, d)),
        aligned_zeros((K, D), np.float32),
        new_blocks(d),
        R,
        np.full((d, n_knots), UNUSED),
    )


def grown(old: Any, new: Any, places: Integers, labels: bool, rounds: float) -> None:
    """Copy the tables to a larger state. A frequency with other columns or coefficients starts from zero."""
    if not len(old.V) or not len(new.V):
        return
    if labels:
        new.U[places], new.V[places] = old.U, old.V
        new.B[:], new.R[:], new.knots[:] = old.B, old.R, old.knots
        return
    new.U[:, places], new.B[: len(old.B)] = old.U, old.B
    few, m = new.knots.shape[1], in_use(old.knots, rounds)
    size = min(m, few)
    new.knots[:, :size] = 0.0  # a new feature was zero so far
    new.knots[places, :size] = old.knots[:, (np.arange(size) * m) // max(size, 1)]
    kept = unchanged_frequencies(len(old.knots), len(new.knots), places)
    kept = np.concatenate([kept, FREQUENCIES + kept])  # cosines, sines
    new.V[:, kept] = old.V[:, kept]
    new.R[np.ix_(kept, kept)] = old.R[np.ix_(kept, kept)]


def unchanged_frequencies(n_features: int, more: int, places: Integers) -> Integers:
    """Those that look at the same columns with the same coefficients; `places` has the new index of each column."""
    old, new = frequencies(n_features), frequencies(more)
    same = np.append(places, 0)[old.columns] == new.columns
    same &= old.near == new.near
    return np.flatnonzero(same.reshape(-1, NEAR).all(axis=1))


def check_knots(knots: Matrix, rounds: float) -> None:
    """Raise `ValueError` for knots that are not sorted, or too large, or for a negative number of rounds."""
    if (np.diff(knots) < 0.0).any() or (np.abs(knots[:, : in_use(knots, max(rounds, 0.0))]) > LARGEST).any():
        raise ValueError("the knots of a column are not sorted")
    if rounds < 0.0:
        raise ValueError(f"the number of rounds is {rounds}")


def new_scratch(n_classes: int, n_features: int, present: bool) -> Scratch:
    """The buffers; empty without the expert."""
    K, d, D = (n_classes, n_features, DIMENSION) if present else (0, 0, 0)
    x, u, phi, g = (
        aligned_zeros((size,), kind)
        for size, kind in ((d, np.float64), (d, np.float32), (D, np.float32), (D, np.float32))
    )
    return Scratch(frequencies(d), x, u, np.zeros(D // 2), phi, np.zeros(K), np.zeros(K), g)


# --- frequencies ----------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=16)
def frequencies(n_features: int) -> Frequencies:
    """The frequencies of this many columns; the coefficient of a column depends on its number alone.

    A frequency that looks at few columns takes those with the smallest hashes, so that another column seldom changes
    which ones they are.
    """
    d, thirds = n_features, np.arange(FREQUENCIES) % 3
    if d == 0:
        return Frequencies(np.zeros(0, dtype=np.int64), np.zeros(0, np.float32), aligned_zeros((0, 0), np.float32))
    draws = np.stack([_draws(j) for j in range(d)], axis=1)  # 3 × d × 128
    normal = np.sqrt(-2.0 * np.log(draws[0])) * np.cos(2.0 * math.pi * draws[1])  # Box and Muller
    columns, near = np.zeros((int((thirds < 2).sum()), NEAR), dtype=np.int64), []
    at = 0
    for i in np.flatnonzero(thirds < 2):
        size = min(d, 2 if thirds[i] == 0 else 4)
        chosen = np.argsort(draws[2, :, i], kind="stable")[:size]
        columns[at, :size] = chosen
        near.append(np.append(BANDWIDTH / math.sqrt(size) * normal[chosen, i], np.zeros(NEAR - size)))
        at += 1
    every = aligned_zeros((FREQUENCIES - len(columns), d), np.float32)
    every[:] = BANDWIDTH / math.sqrt(d) * normal[:, thirds == 2].T
    few = np.array(near, dtype=np.float32).ravel()
    for part in (columns, few, every):
        part.flags.writeable = False
    return Frequencies(columns.ravel(), few, every)


def _draws(column: int) -> NDArray[np.float64]:
    """Three uniform numbers on (0, 1) for each frequency: raw bits, whose values no later version of numpy changes."""
    bits = np.random.Philox(key=SEED, counter=[0, 0, 0, column]).random_raw(3 * FREQUENCIES)
    uniforms = ((bits >> np.uint64(11)) + 0.5) / 2.0**53
    return np.asarray(uniforms, dtype=np.float64).reshape(3, FREQUENCIES)


# --- predict --------------------------------------------------------------------------------------------------


@jit
def rank(knots: Vector, v: float) -> int:
    """The number of knots smaller than v. Their number, with those not in use, is a power of two."""
    at, step = 0, knots.shape[0] // 2
    while step > 0:  # without branches, which the processor could not predict
        at += step * (knots[at + step - 1] < v)
        step //= 2
    return int(at + (knots[at] < v))


@jit
def scaled_rank(knots: Vector, m: int, v: float) -> float:
    """u of a value among the m knots of its column: about uniform, with mean 0 and variance 1; 0 for m = 0."""
    a = rank(knots, v)
    b, rho = a, float(a)
    while b < m and knots[b] == v:
        b += 1
    if a < b:
        rho = 0.5 * (a + b)
    elif 0 < a < m:
        below = knots[a - 1]
        rho += (v - below) / (knots[a] - below) - 0.5
    return math.sqrt(12.0) * ((rho + 0.5) / (m + 1.0) - 0.5)


@jit_reordered
def turn(frequencies: Frequencies, u: Floats, angles: Vector) -> None:
    """Write the angles ⟨ω_i, u⟩ in turns; those that look at few columns come first."""
    columns, near, far = frequencies
    n = columns.shape[0] // NEAR
    for i in range(n):
        s = 0.0
        for j in range(NEAR * i, NEAR * i + NEAR):
            s += near[j] * u[columns[j]]
        angles[i] = s / (2.0 * math.pi)
    for i in range(far.shape[0]):
        t = np.float32(0.0)
        for j in range(u.shape[0]):
            t += far[i, j] * u[j]
        angles[n + i] = t / (2.0 * math.pi)


@jit
def wave(angles: Vector, cosines: Floats, sines: Floats) -> None:
    """Write φ from the angles.

    Sine and cosine of half an angle are Taylor polynomials, exact to 1e-10, because the compiler vectorises them.
    """
    size = 1.0 / math.sqrt(angles.shape[0])
    for i in range(angles.shape[0]):
        t = math.pi * (angles[i] - ((angles[i] + ROUND) - ROUND))  # from -π/2 to π/2
        q = t * t
        s = t * (1 + q * (S3 + q * (S5 + q * (S7 + q * (S9 + q * (S11 + q * (S13 + q * S15)))))))
        c = 1 + q * (C2 + q * (C4 + q * (C6 + q * (C8 + q * (C10 + q * (C12 + q * (C14 + q * C16)))))))
        cosines[i] = size * (c * c - s * s)
        sines[i] = size * 2.0 * s * c


@jit_reordered
def scores_of_features(V: Floats, phi: Floats, z: Vector) -> None:
    """Write z_k = ⟨V_k, φ⟩."""
    for k in range(V.shape[0]):
        s = np.float32(0.0)
        for i in range(phi.shape[0]):
            s += V[k, i] * phi[i]
        z[k] = s


@jit
def in_use(knots: Matrix, rounds: float) -> int:
    """m, the number of knots of a column that are in use."""
    return int(min(rounds, float(knots.shape[1])))


@jit
def ranks(knots: Matrix, x: Any, m: int, own: Vector, u: Floats) -> None:
    """Write the example and its ranks."""
    for j in range(u.shape[0]):
        own[j] = min(max(np.float64(x[j]), -LARGEST), LARGEST)
        u[j] = scaled_rank(knots[j], m, own[j])


def _predict_dense(state: Any, x: Any, scale: float, rounds: float, work: Scratch) -> None:
    if state.V.shape[0] > 0:
        ranks(state.knots, x, in_use(state.knots, rounds), work.x, work.u)
        turn(work.frequencies, work.u, work.angles)
        wave(work.angles, work.phi[:FREQUENCIES], work.phi[FREQUENCIES:])
        scores(state.U, x, work.raw)
        scores_of_features(state.V, work.phi, work.z)
        for k in range(work.z.shape[0]):
            work.z[k] += scale * work.raw[k]


def _predict_sparse(state: Any, x: Any, scale: float, rounds: float, work: Scratch) -> None:
    pass


predict = by_rows(_predict_dense, _predict_sparse)
predict.__doc__ = "Write φ and the scores z of all labels, after so many rounds."


# --- commit ---------------------------------------------------------------------------------------------------


@jit
def add_knots(knots: Matrix, x: Vector, rounds: float) -> None:
    """Add an example to the knots; so many rounds came before it."""
    n = knots.shape[1]
    last = n - 1
    if rounds < n:
        last = int(rounds)
    else:
        if hashed(int(rounds), SEED) >= n / min(rounds + 1.0, MEMORY):
            return
        last = int(n * hashed(int(rounds), SEED + 1))
    for j in range(x.shape[0]):
        column = knots[j]
        a = rank(column, x[j])
        if a > last:  # the knot of this rank leaves, and those above it move down
            for i in range(last, a - 1):
                column[i] = column[i + 1]
            column[a - 1] = x[j]
        else:
            for i in range(last, a, -1):
                column[i] = column[i - 1]
            column[a] = x[j]


# --- learn ----------------------------------------------------------------------------------------------------


@jit_reordered
def multiply(R: Floats, phi: Floats, g: Floats) -> float:
    """Write g = Rφ and return ⟨φ, g⟩."""
    v = np.float32(0.0)
    for i in range(R.shape[0]):
        s = np.float32(0.0)
        for j in range(R.shape[0]):
            s += R[i, j] * phi[j]
        g[i] = s
        v += s * phi[i]
    return float(v)


@jit
def lower(R: Floats, g: Floats, c: float) -> None:
    """Update R ← R - c·gg'. Overwrites g by g·√c, so that R stays symmetric to the last bit."""
    root = np.float32(math.sqrt(c))
    for i in range(g.shape[0]):
        g[i] *= root
    for i in range(g.shape[0]):
        own = g[i]
        for j in range(g.shape[0]):
            R[i, j] -= own * g[j]


@jit
def precondition_features(R: Floats, phi: Floats, g: Floats) -> float:
    """g = Rφ. Returns ⟨φ, g⟩; a matrix that rounding has made invalid is reset before."""
    own = multiply(R, phi, g)
    if is_valid(own):
        return own
    for i in range(R.shape[0]):
        for j in range(R.shape[0]):
            R[i, j] = VARIANCE if i == j else 0.0
    return multiply(R, phi, g)


@jit
def add_feature_step(V: Floats, g: Floats, r: Vector, c: float) -> None:
    """V_k ← V_k + c·r_k·g."""
    for k in range(V.shape[0]):
        step = np.float32(c * r[k])
        if step != 0.0:
            for i in range(g.shape[0]):
                V[k, i] += step * g[i]


def _step_dense(
    state: Any, x: Any, scale: float, G: Vector, labels: Integers, r: Vector, h: float, steps: Workspace, work: Scratch
) -> None:
    rescale(G, labels, r, HALF_WAY, steps)
    own = precondition_features(state.R, work.phi, work.g)
    c = -1.0 / (1.0 + h * (precondition(state.B, x, scale, steps) + own))
    add_step(state.U, x, 0, G.shape[0], steps, c)
    add_feature_step(state.V, work.g, steps.r, c)
    update_precision(state.B, steps, h)
    lower(state.R, work.g, h / (1.0 + h * own))


def _step_sparse(
    state: Any, x: Any, scale: float, G: Vector, labels: Integers, r: Vector, h: float, steps: Workspace, work: Scratch
) -> None:
    pass


kernel_step = by_rows(_step_dense, _step_sparse)
kernel_step.__doc__ = """Take a step on the gradient r over the available labels, at the example of `predict`.

Args:
    state: the state, with U, V, B and R.
    x: the example.
    scale: x̃ = scale·x.
    G: Σ|r_k| of every label.
    labels: the available labels.
    r: the gradient in their scores.
    h: the curvature times the size of r.
    steps: buffers of a Newton step.
    work: φ, and a buffer.
"""
