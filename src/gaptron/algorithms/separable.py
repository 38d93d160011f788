"""Bandit classification of linearly separable data: K binary Perceptrons.

Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei & Zhang, "Bandit Multiclass Linear Classification: Efficient
Algorithms for the Separable Case", ICML 2019, Algorithm 1 (strongly separable) and its kernel version (weakly
separable).   Feedback: bandit.   Cost: O(dK) a round; kernel: O((d + K)·support).

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  S = {k: z_k ≥ 0}
      2   play ŷ = argmax z if S is not empty, else any label, uniformly
      3   right:  W_ŷ ← W_ŷ + x  if z_ŷ < 0;   W_k ← W_k - x  for every other k in S
          wrong:  W_ŷ ← W_ŷ - x  if z_ŷ ≥ 0

Every update is that of a binary Perceptron that was wrong about "is it k?", so that only certain facts are learned. The
data may be chosen by an adversary but not be noisy: there is no exploration that would correct contradictory labels.

Labels that are not available in a round are not in S, are not played and are not updated.

The kernel version runs the same lines in the space of k(x, x') = 1/(1 - ⟨x, x'⟩/2), ‖x‖ ≤ 1, in which examples that an
argmax separates with a margin are strongly separable. It keeps the examples of its updates, at most `support` of them.
Beyond that a new one replaces one drawn uniformly (as in the authors' experiments; the theorem has no limit).

Example:

    >>> import numpy as np
    >>> from gaptron import Learner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> learner = Learner("separable", n_classes=2, feedback="bandit", seed=0)
    >>> learner.play(X, y).mistakes
    28

To cite:

    @inproceedings{beygelzimer2019bandit,
      title     = {Bandit Multiclass Linear Classification: Efficient Algorithms for the Separable Case},
      author    = {Beygelzimer, Alina and Pál, Dávid and Szörényi, Balázs and Thiruvenkatachari, Devanathan and Wei,
                   Chen-Yu and Zhang, Chicheng},
      booktitle = {International Conference on Machine Learning},
      year      = {2019}
    }
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.compile.jit import by_rows, jit
from gaptron.kernels.play import algorithm
from gaptron.kernels.prng import PrngState, new_prng, seed_prng, uniform
from gaptron.kernels.rows import add_one, by_label, scores, zeros
from gaptron.kernels.simplex import best, draw, mask_unavailable, mix_uniform, point
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Vector, named

CARD = Card(
    paper="Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei & Zhang 2019, Algorithm 1",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.HINGE,),
    time="O(dK)",
    memory="dK",
    regret_full="",
    available=True,
    regret_bandit="(K-1)⌊4X²/g²⌋ mistakes at margin g",
)
NOTES = ()
LARGEST = 2 << 30  # bytes that the kept examples may take


class Separable(NamedTuple):
    """The settings. There is no step size: the scale of the weights does not matter."""

    kernel: bool  # the version for weakly separable data?
    support: int  # kernel: the most examples kept
    scale: float  # kernel: 1/X², which scales examples longer than 1 to norm at most 1


class SeparableState(NamedTuple):
    """The state: W, or with the kernel the examples S and their coefficients A."""

    W: Matrix
    S: Matrix
    A: Matrix  # support × K: -1, 0 or 1
    size: Any  # rows: the number of examples kept; half_scale: scale/2


def init(settings: Separable, problem: Problem, sparse: bool) -> SeparableState:
    """W = 0."""
    K, d = problem.n_classes, problem.n_features
    _check_size(settings, d)
    n = settings.support if settings.kernel else 0
    W, S = (zeros(0, 0, sparse), zeros(n, d, sparse)) if settings.kernel else (zeros(K, d, sparse), zeros(0, 0, sparse))
    return SeparableState(W, S, np.zeros((n, K)), named(rows=0, half_scale=settings.scale / 2))


class SeparableScratch(NamedTuple):
    """Work space of the kernel."""

    r: Vector  # the kernel between x and the examples kept
    coin: Any  # u, which also draws the example that is replaced
    prng: PrngState


def scratch(settings: Separable, problem: Problem, sparse: bool) -> SeparableScratch:
    """One number for each example that may be kept."""
    return SeparableScratch(np.zeros(settings.support if settings.kernel else 0), named(u=0.0), new_prng())


def check_state(settings: Separable, problem: Problem, state: SeparableState) -> None:
    """The number of examples kept must not exceed `support`."""
    if state.size[0].rows > state.A.shape[0]:
        raise ValueError(f"state.size.rows={state.size[0].rows} is above the {state.A.shape[0]} rows of state.A")


def weights(state: SeparableState, sparse: bool) -> Matrix:
    """W, K × d. With the kernel: the linear term of its rule, since k = 1 + ⟨x, x'⟩/2 + ⟨x, x'⟩²/4 + ..."""
    if state.A.shape[0] == 0:
        return by_label(state.W, sparse)
    return np.asarray(state.size[0].half_scale * (state.A.T @ by_label(state.S, sparse)))


# --- theory -----------------------------------------------------------------------------------------------


def recommend(problem: Problem, kernel: bool = False, support: int = 1000) -> Separable:
    """No tuning: only whether to use the kernel, and how many examples it may keep."""
    if support != int(support) or support < 1:
        raise SettingError(f"support={support!r} must be a whole number of at least 1")
    scale = 0.0
    if kernel:
        (X,) = problem.need("norm")
        scale = 1.0 / max(X, 1.0) ** 2
    settings = Separable(bool(kernel), int(support), scale)
    _check_size(settings, problem.n_features)
    return settings


def _check_size(settings: Separable, d: int) -> None:
    if settings.kernel and 8 * settings.support * d > LARGEST:
        raise SettingError(
            f"the kept examples would take {settings.support} × {d} numbers, {8 * settings.support * d / 1e6:.0f} MB: "
            "give a smaller support=..., or kernel=False"
        )


def margin_bound(K: int, X: float, g: float) -> float:
    """E[M_T] ≤ (K-1)⌊4X²/g²⌋ for the linear version on strongly separable data.

    That is: ‖x‖ ≤ X, and some U with ‖U‖ ≤ 1 has ⟨U_y, x⟩ ≥ g/2 and ⟨U_k, x⟩ ≤ -g/2 for all k ≠ y, in every round.
    Then there are at most 4X²/g² updates. A mistake with S not empty is one of them; in a round with S empty the
    probability of a mistake is K-1 times that of an update.
    """
    return (K - 1) * math.floor(4 * (X / g) ** 2)


def theorem(problem: Problem, settings: Separable) -> str:
    """The source of the bound."""
    if settings.kernel:
        return "Beygelzimer et al. 2019, for weakly separable data, while every example is kept"
    return "Beygelzimer et al. 2019, for strongly separable data"


def bound(problem: Problem, settings: Separable, comparator: Comparator) -> float:
    """None from a comparator's hinge loss: see `margin_bound`."""
    if settings.kernel:
        raise NoBoundError(
            "the kernel version's bound is exponential in the margin and holds only while every example is kept"
        )
    raise NoBoundError(
        "the bound is for strongly separable data (every label is separated from all others by its own hyperplane "
        "through 0), and a comparator's hinge loss does not show that they are, even if it is 0; if you know the "
        "margin g, gaptron.algorithms.separable.margin_bound(K, X, g) is the bound"
    )


# --- the algorithm ------------------------------------------------------------------------------------------


# The kept examples, the support of the kernel's rule, have the layout of weights, with one "label" per example.


def _keep_dense(S: Matrix, x: Any, j: int) -> None:
    for i in range(S.shape[1]):
        S[j, i] = x[i]


def _keep_sparse(S: Matrix, x: Any, j: int) -> None:
    for i in range(S.shape[0]):
        S[i, j] = 0.0
    for i in range(x.indices.shape[0]):
        S[x.indices[i], j] += x.values[i]


keep = by_rows(_keep_dense, _keep_sparse)
keep.__doc__ = "S_j ← x. O(d)."


def _compare_dense(S: Matrix, x: Any, n: int, out: Vector) -> None:
    for j in range(n):
        s = 0.0
        for i in range(S.shape[1]):
            s += S[j, i] * x[i]
        out[j] = s


def _compare_sparse(S: Matrix, x: Any, n: int, out: Vector) -> None:
    for j in range(n):
        out[j] = 0.0
    for i in range(x.indices.shape[0]):
        w = S[x.indices[i]]
        v = x.values[i]
        for j in range(n):
            out[j] += w[j] * v


compare = by_rows(_compare_dense, _compare_sparse, reorder=True)
compare.__doc__ = "out_j = ⟨S_j, x⟩ for the first n examples kept. O(nnz·n)."


@jit
def rational(inner: Vector, n: int, scale: float) -> None:
    """⟨x, x'⟩ → 1/(1 - ⟨x, x'⟩·scale/2), in place, for ⟨x, x'⟩·scale ≤ 1.

    A larger product (an example that is only scored may have any norm) counts as 1, so that the kernel is at most 2.
    """
    for j in range(n):
        inner[j] = 1.0 / (1.0 - min(inner[j] * scale, 1.0) / 2.0)


@jit
def kernel_scores(S: Matrix, A: Matrix, n: int, scale: float, x: Row, r: Vector, z: Vector) -> None:
    """Line 1 with the kernel: z_k = Σ_j A_jk k(S_j, x) over the n examples kept."""
    compare(S, x, n, r)
    rational(r, n, scale)
    for k in range(z.shape[0]):
        z[k] = 0.0
    for j in range(n):
        for k in range(z.shape[0]):
            z[k] += A[j, k] * r[j]


@jit
def coefficient(positive: bool, played: bool, right: bool) -> float:
    """Line 3: the coefficient of x in the update of one label; positive: z_k ≥ 0."""
    if played:
        return (0.0 if positive else 1.0) if right else (-1.0 if positive else 0.0)
    return -1.0 if positive and right else 0.0


@jit
def new_support(s: Separable, S: Matrix, A: Matrix, size: Any, x: Row, work: SeparableScratch) -> int:
    """Keep x, with coefficients of zero, and return its place."""
    j = int(size[0].rows)
    if j < s.support:
        size[0].rows += 1
    else:
        seed_prng(work.prng, work.coin[0].u, 1)
        j = min(int(uniform(work.prng) * s.support), s.support - 1)
    keep(S, x, j)
    for k in range(A.shape[1]):
        A[j, k] = 0.0
    return j


def decide(s: Separable, state: SeparableState, x: Row, rd: Round, work: SeparableScratch, u: float) -> int:
    """Lines 1-2."""
    work.coin[0].u = u
    if s.kernel:
        kernel_scores(state.S, state.A, state.size[0].rows, s.scale, x, work.r, rd.z)
    else:
        scores(state.W, x, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    if rd.z[top] >= 0.0:
        point(rd.p, top)
        return top
    mix_uniform(rd.p, rd.available, top, 1.0)
    return draw(rd.p, top, u)


def learn(
    s: Separable, state: SeparableState, x: Row, rd: Round, work: SeparableScratch, label: int, truth: int
) -> None:
    """Line 3. With the kernel, an example that changes several labels is kept once."""
    place = -1
    for k in range(rd.z.shape[0]):
        v = coefficient(rd.z[k] >= 0.0, k == label, truth == label)
        if v != 0.0 and not s.kernel:
            add_one(state.W, x, k, v)
        elif v != 0.0:
            place = place if place >= 0 else new_support(s, state.S, state.A, state.size, x, work)
            state.A[place, k] = v


algorithm(Separable, decide, learn)
