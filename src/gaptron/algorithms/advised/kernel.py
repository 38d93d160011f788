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

Dense examples and encoded ones (named features) of at most 1024 columns have it; for all others its arrays are empty,
and nothing is computed. An encoded example gets new columns while it runs: the frequencies look at the columns in use,
rounded up to a power of two, and start from zero when that number doubles. Results thus do not depend on how many
columns are allocated.

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
from gaptron.kernels.rows import aligned_zeros, scores, zeros
from gaptron.types import Integers, Matrix, Problem, Vector

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
FIRST_SIZE = 16  # the smallest number of columns of an encoded example that has its own frequencies


class Frequencies(NamedTuple):
    """The frequencies, for one or more numbers of columns in use."""

    sizes: Integers  # the numbers of columns; a row of the next three for each
    columns: NDArray[np.int64]  # the columns of those that look at few, 4 per frequency
    near: Floats  # their coefficients; 0 where there are fewer than 4 columns
    shrink: Vector  # the factor of `far`
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


def is_present(problem: Problem, sparse: bool, wanted: bool) -> bool:
    """Whether a learner has this expert."""
    return wanted and (problem.encoded or not sparse) and problem.n_features <= MAX_FEATURES


@jit
def n_experts(V: Floats, most: int) -> int:
    """The number of a learner's own experts, at most so many. The kernel expert is the last, and absent without V."""
    return most if V.shape[0] > 0 else most - 1


def tables(problem: Problem, sparse: bool, present: bool) -> tuple[Matrix, Floats, Blocks, Floats, Matrix]:
    """U, V, B, R and the knots before the first example."""
    K, d, D = (problem.n_classes, problem.n_features, DIMENSION) if present else (0, 0, 0)
    R = aligned_zeros((D, D), np.float32)
    np.fill_diagonal(R, VARIANCE)
    n_knots = KNOTS if d <= MAX_FINE_FEATURES or sparse else FEW_KNOTS
    return (
        zeros(K, d, sparse),
        aligned_zeros((K, D), np.float32),
        new_blocks(d),
        R,
        np.full((d, n_knots), UNUSED),
    )


def grown(old: Any, new: Any, places: Integers, labels: bool, sparse: bool, rounds: float) -> None:
    """Copy the tables to a larger state. For dense examples with more columns, R and V start from zero."""
    if not len(old.V) or not len(new.V):
        return
    U, old_U = (new.U.T, old.U.T) if sparse else (new.U, old.U)
    new.B[: len(old.B)] = old.B
    if labels:
        U[places], new.V[places] = old_U, old.V
        new.R[:], new.knots[:] = old.R, old.knots
        return
    U[:, places] = old_U
    if sparse:
        new.V[:], new.R[:] = old.V, old.R
    few, m = new.knots.shape[1], in_use(old.knots, rounds)
    size = min(m, few)
    new.knots[:, :size] = 0.0  # a new column was zero so far
    new.knots[places, :size] = old.knots[:, (np.arange(size) * m) // max(size, 1)]


def check_state(state: Any) -> None:
    """Raise `ValueError` for knots that are not sorted or too large, and impossible numbers of rounds or columns."""
    knots, t = state.knots, state.total[0]
    if t.rounds < 0.0:
        raise ValueError(f"the number of rounds is {t.rounds}")
    if not (0.0 <= t.columns <= len(knots) and t.columns == int(t.columns)):
        raise ValueError(f"the number of columns in use is {t.columns}, of {len(knots)}")
    if (np.diff(knots) < 0.0).any() or (np.abs(knots[:, : in_use(knots, t.rounds)]) > LARGEST).any():
        raise ValueError("the knots of a column are not sorted")


def new_scratch(problem: Problem, sparse: bool, present: bool) -> Scratch:
    """The buffers; empty without the expert."""
    K, d, D = (problem.n_classes, problem.n_features, DIMENSION) if present else (0, 0, 0)
    x, u, phi, g = (
        aligned_zeros((size,), kind)
        for size, kind in ((d, np.float64), (d, np.float32), (D, np.float32), (D, np.float32))
    )
    return Scratch(frequencies(d, sparse), x, u, np.zeros(D // 2), phi, np.zeros(K), np.zeros(K), g)


# --- frequencies ----------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=16)
def frequencies(n_features: int, doubling: bool) -> Frequencies:
    """The frequencies of this many columns; or of 16, 32, ... of them, up to this many.

    The coefficient of a column depends on its number alone. A frequency that looks at few columns takes those with the
    smallest hashes.
    """
    d, thirds = n_features, np.arange(FREQUENCIES) % 3
    doublings = ((d - 1) // FIRST_SIZE).bit_length() if doubling and d else 0
    sizes = [min(FIRST_SIZE << i, d) for i in range(doublings)] + [d]
    draws = np.stack([_draws(j) for j in range(d)], axis=1) if d else np.ones((3, 0, FREQUENCIES))  # 3 × d × 128
    normal = np.sqrt(-2.0 * np.log(draws[0])) * np.cos(2.0 * math.pi * draws[1])  # Box and Muller
    few = np.flatnonzero(thirds < 2)
    columns, near = np.zeros((len(sizes), len(few), NEAR), dtype=np.int64), np.zeros((len(sizes), len(few), NEAR))
    for at, d_used in enumerate(sizes):
        for i, frequency in enumerate(few):
            size = min(d_used, 2 if thirds[frequency] == 0 else NEAR)
            chosen = np.argsort(draws[2, :d_used, frequency], kind="stable")[:size]
            columns[at, i, :size] = chosen
            near[at, i, :size] = BANDWIDTH / math.sqrt(max(size, 1)) * normal[chosen, frequency]
    far, shrink = aligned_zeros((FREQUENCIES - len(few), d), np.float32), 1.0 / np.sqrt(np.maximum(sizes, 1.0))
    far[:] = BANDWIDTH * (1.0 if doubling else shrink[0]) * normal[:, thirds == 2].T
    found = Frequencies(
        np.array(sizes, dtype=np.int64),
        columns.reshape(len(sizes), -1),
        near.reshape(len(sizes), -1).astype(np.float32),
        shrink if doubling else np.ones(1),
        far,
    )
    for part in found:
        part.flags.writeable = False
    return found


def _draws(column: int) -> NDArray[np.float64]:
    """Three uniform numbers on (0, 1) for each frequency: raw bits, whose values no later version of numpy changes."""
    bits = np.random.Philox(key=SEED, counter=[0, 0, 0, column]).random_raw(3 * FREQUENCIES)
    uniforms = ((bits >> np.uint64(11)) + 0.5) / 2.0**53
    return np.asarray(uniforms, dtype=np.float64).reshape(3, FREQUENCIES)


@jit
def row_of_frequencies(sizes: Integers, n_columns: float) -> int:
    """The first number of columns that is large enough for those in use; the last if none is."""
    at = 0
    while at + 1 < sizes.shape[0] and sizes[at] < n_columns:
        at += 1
    return at


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
    a, b = 0, 0  # the numbers of knots below v, and of those at most v
    for i in range(knots.shape[0]):  # vectorised, so faster than a search (measured, d = 784: 5 instead of 18 µs)
        a += knots[i] < v
        b += knots[i] <= v
    below, above = knots[max(a - 1, 0)], knots[min(a, knots.shape[0] - 1)]
    between = (a > 0) & (a < m)
    width = above - below if between else 1.0
    rho = a + ((v - below) / width - 0.5) if between else float(a)
    rho = 0.5 * (a + b) if a < b else rho
    return math.sqrt(12.0) * ((rho + 0.5) / (m + 1.0) - 0.5)


@jit_reordered
def turn(columns: Integers, near: Floats, far: Floats, shrink: float, u: Floats, angles: Vector) -> None:
    """Write the angles ⟨ω_i, u⟩ in turns; those that look at few columns come first."""
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
        angles[n + i] = shrink * t / (2.0 * math.pi)


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
def cut(v: float) -> float:
    """A value that can be compared with the knots."""
    return min(max(v, -LARGEST), LARGEST)


@jit
def transform(knots: Matrix, rounds: float, n_columns: float, work: Scratch) -> None:
    """Write φ of `work.x`, after so many rounds, with so many columns in use."""
    frequencies, m = work.frequencies, in_use(knots, rounds)
    at = row_of_frequencies(frequencies.sizes, n_columns)
    u = work.u[: frequencies.sizes[at]]
    for j in range(u.shape[0]):
        u[j] = scaled_rank(knots[j], m, work.x[j])
    turn(frequencies.columns[at], frequencies.near[at], frequencies.far, frequencies.shrink[at], u, work.angles)
    wave(work.angles, work.phi[:FREQUENCIES], work.phi[FREQUENCIES:])


@jit
def predict(state: Any, x: Any, scale: float, work: Scratch) -> None:
    """Write φ and the scores z of all labels."""
    if state.V.shape[0] == 0:
        return
    write_example(x, work.x)
    transform(state.knots, state.total[0].rounds, state.total[0].columns, work)
    scores(state.U, x, work.raw)
    scores_of_features(state.V, work.phi, work.z)
    for k in range(work.z.shape[0]):
        work.z[k] += scale * work.raw[k]


def _write_dense(x: Any, own: Vector) -> None:
    for j in range(own.shape[0]):
        own[j] = cut(np.float64(x[j]))


def _write_sparse(x: Any, own: Vector) -> None:
    for j in range(own.shape[0]):
        own[j] = 0.0
    for j in range(x.indices.shape[0]):
        own[x.indices[j]] = cut(x.values[j])


write_example = by_rows(_write_dense, _write_sparse)
write_example.__doc__ = "Write the example as numbers that can be compared with the knots."


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


@jit
def commit(state: Any, work: Scratch) -> None:
    """Count the columns of the example, and add it to the knots, before its feedback.

    Where the number of columns in use doubles, V and R start from zero, and the feedback changes U alone.
    """
    t, sizes = state.total[0], work.frequencies.sizes
    if sizes.shape[0] > 1:
        n = work.x.shape[0]
        while n > t.columns and work.x[n - 1] == 0.0:
            n -= 1
        if n > t.columns:
            before = row_of_frequencies(sizes, t.columns)
            t.columns = n
            if row_of_frequencies(sizes, t.columns) != before:
                state.V[:] = 0.0
                work.phi[:] = 0.0
                reset(state.R)
    add_knots(state.knots, work.x, t.rounds)


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
def reset(R: Floats) -> None:
    """Set R to what it was before the first example."""
    for i in range(R.shape[0]):
        for j in range(R.shape[0]):
            R[i, j] = VARIANCE if i == j else 0.0


@jit
def precondition_features(R: Floats, phi: Floats, g: Floats) -> float:
    """g = Rφ. Returns ⟨φ, g⟩; a matrix that rounding has made invalid is reset before."""
    own = multiply(R, phi, g)
    if is_valid(own):
        return own
    reset(R)
    return multiply(R, phi, g)


@jit
def add_feature_step(V: Floats, g: Floats, r: Vector, c: float) -> None:
    """V_k ← V_k + c·r_k·g."""
    for k in range(V.shape[0]):
        step = np.float32(c * r[k])
        if step != 0.0:
            for i in range(g.shape[0]):
                V[k, i] += step * g[i]


@jit
def kernel_step(
    state: Any, x: Any, scale: float, G: Vector, labels: Integers, r: Vector, h: float, steps: Workspace, work: Scratch
) -> None:
    """Take a step on the gradient r over the available labels, at the example of `predict`.

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
    rescale(G, labels, r, HALF_WAY, steps)
    own = precondition_features(state.R, work.phi, work.g)
    c = -1.0 / (1.0 + h * (precondition(state.B, x, scale, steps) + own))
    add_step(state.U, x, 0, G.shape[0], steps, c)
    add_feature_step(state.V, work.g, steps.r, c)
    update_precision(state.B, steps, h)
    lower(state.R, work.g, h / (1.0 + h * own))
