"""Bandit classification of linearly separable rows: K binary Perceptrons.

Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei & Zhang, "Bandit Multiclass Linear Classification: Efficient
Algorithms for the Separable Case", ICML 2019, Algorithm 1 (strongly separable) and its kernel version (weakly
separable).   Feedback: bandit.   Cost: O(dK) a round; kernel: O((d + K)·support).

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  S = {k: z_k ≥ 0}
      2   play ŷ = argmax z if S is not empty, else any label, uniformly
      3   right:  W_ŷ ← W_ŷ + x  if z_ŷ < 0;   W_k ← W_k - x  for every other k in S
          wrong:  W_ŷ ← W_ŷ - x  if z_ŷ ≥ 0

Every update is that of a binary Perceptron that erred on "is it k?": nothing is learned that is not certain. So the
data may choose anything but noise: once labels contradict each other there is no exploration that would mend it.

Labels that are not available in a round are not in S and are not played; nothing is learned of them.

The kernel version runs the same lines in the space of k(x, x') = 1/(1 - ⟨x, x'⟩/2), ‖x‖ ≤ 1, in which rows that an
argmax separates with a margin are strongly separable. It keeps the rows it learned from, at most `support` of them:
when there is no room, a new one takes the place of one drawn uniformly (as in the authors' own experiments; the
theorem is for no limit).

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
from gaptron.kernels.dice import Dice, new_dice, shake, uniform
from gaptron.kernels.jit import REORDER, by_rows, jit
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add_one, by_label, scores, zeros
from gaptron.kernels.simplex import best, draw, exclude, mix_uniform, point
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Variant, Vector, named

CARD = Card(
    paper="Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei & Zhang 2019, Algorithm 1",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.HINGE,),
    time="O(dK)",
    memory="dK",
    regret_full="",
    among=True,
    variants={"kernel": Variant({"kernel": True, "support": 40}, traits=frozenset({"mixture"}))},
    regret_bandit="(K-1)⌊4X²/g²⌋ mistakes at margin g",
)
NOTES = ()
LARGEST = 2 << 30  # bytes the rows kept may take


class Separable(NamedTuple):
    """The settings. There is no step size: the scale of the weights does not matter."""

    kernel: bool  # the version for weakly separable rows?
    support: int  # kernel: most rows kept
    scale: float  # kernel: 1/X², so that rows longer than 1 are divided by the norm promised


class SeparableState(NamedTuple):
    """What is learned: W, or with the kernel the rows S and what each says for every label."""

    W: Matrix
    S: Matrix
    A: Matrix  # support × K: -1, 0 or 1
    size: Any  # rows: how many are kept; half_scale


def init(settings: Separable, problem: Problem, sparse: bool) -> SeparableState:
    """W = 0."""
    K, d = problem.n_classes, problem.n_features
    _check_room(settings, d)
    n = settings.support if settings.kernel else 0
    W, S = (zeros(0, 0, sparse), zeros(n, d, sparse)) if settings.kernel else (zeros(K, d, sparse), zeros(0, 0, sparse))
    return SeparableState(W, S, np.zeros((n, K)), named(rows=0, half_scale=settings.scale / 2))


class SeparableScratch(NamedTuple):
    """Work space of the kernel."""

    r: Vector  # the kernel between x and the rows kept
    coin: Any  # u, which also says what row goes when there is no room
    dice: Dice


def scratch(settings: Separable, problem: Problem, sparse: bool) -> SeparableScratch:
    """A number for each row that may be kept."""
    return SeparableScratch(np.zeros(settings.support if settings.kernel else 0), named(u=0.0), new_dice())


def check_state(settings: Separable, problem: Problem, state: SeparableState) -> None:
    """No more rows are kept than there is room for."""
    if state.size[0].rows > state.A.shape[0]:
        raise ValueError(f"state.size.rows={state.size[0].rows} points outside the {state.A.shape[0]} rows there are")


def weights(state: SeparableState, sparse: bool) -> Matrix:
    """W, K × d. With the kernel: the linear term of its rule, since k = 1 + ⟨x, x'⟩/2 + ⟨x, x'⟩²/4 + ..."""
    if state.A.shape[0] == 0:
        return by_label(state.W, sparse)
    return np.asarray(state.size[0].half_scale * (state.A.T @ by_label(state.S, sparse)))


# --- theory -----------------------------------------------------------------------------------------------


def recommend(problem: Problem, kernel: bool = False, support: int = 1000) -> Separable:
    """Nothing to turn, but whether to use the kernel, and how many rows it may keep."""
    if support != int(support) or support < 1:
        raise SettingError(f"support={support!r} must be a whole number of at least 1")
    scale = 0.0
    if kernel:
        (X,) = problem.need("norm")
        scale = 1.0 / max(X, 1.0) ** 2
    settings = Separable(bool(kernel), int(support), scale)
    _check_room(settings, problem.n_features)
    return settings


def _check_room(settings: Separable, d: int) -> None:
    if settings.kernel and 8 * settings.support * d > LARGEST:
        raise SettingError(
            f"the rows kept would take {settings.support} × {d} numbers, {8 * settings.support * d / 1e6:.0f} MB: "
            "give a smaller support=..., or kernel=False"
        )


def margin_bound(K: int, X: float, g: float) -> float:
    """E[M_T] ≤ (K-1)⌊4X²/g²⌋ for the linear version on strongly separable rows.

    That is: ‖x‖ ≤ X, and some U with ‖U‖ ≤ 1 has ⟨U_y, x⟩ ≥ g/2 and ⟨U_k, x⟩ ≤ -g/2 for all k ≠ y, on every round.
    Then there are at most 4X²/g² updates. A mistake with S not empty is one of them; on a round with S empty the
    chance of a mistake is K-1 times that of an update.
    """
    return (K - 1) * math.floor(4 * (X / g) ** 2)


def theorem(problem: Problem, settings: Separable) -> str:
    """Where the bound comes from."""
    if settings.kernel:
        return "Beygelzimer et al. 2019, for weakly separable rows, while there is room for every row"
    return "Beygelzimer et al. 2019, for strongly separable rows"


def bound(problem: Problem, settings: Separable, comparator: Comparator) -> float:
    """None from a comparator's hinge loss: see `margin_bound`."""
    if settings.kernel:
        raise NoBoundError(
            "the kernel version's bound is exponential in the margin and holds only while every row has room"
        )
    raise NoBoundError(
        "the bound is for strongly separable rows (every label told from all others by its own hyperplane through 0), "
        "and no comparator's hinge loss, not even 0, says that they are; where you know the margin g, "
        "gaptron.algorithms.separable.margin_bound(K, X, g) is the number"
    )


# --- the algorithm ------------------------------------------------------------------------------------------


# Rows kept for later, the support of the kernel's rule, lie as weights do, with one "label" per row kept.


def _keep_dense(S: Matrix, x: Any, j: int) -> None:
    for i in range(S.shape[1]):
        S[j, i] = x[i]


def _keep_sparse(S: Matrix, x: Any, j: int) -> None:
    for i in range(S.shape[0]):
        S[i, j] = 0.0
    for i in range(x.indices.shape[0]):
        S[x.indices[i], j] += x.values[i]


keep = by_rows(_keep_dense, _keep_sparse)
keep.__doc__ = "S_j ← x, over whatever row was there. O(d)."


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


compare = by_rows(_compare_dense, _compare_sparse, **REORDER)
compare.__doc__ = "out_j = ⟨S_j, x⟩ for the first n rows kept. O(nnz·n)."


@jit
def rational(inner: Vector, n: int, scale: float) -> None:
    """⟨x, x'⟩ → 1/(1 - ⟨x, x'⟩·scale/2), in place; rows are promised to have ⟨x, x'⟩·scale ≤ 1.

    A row longer than promised (one may look at any) is held to the promise, so that the kernel stays at most 2.
    """
    for j in range(n):
        inner[j] = 1.0 / (1.0 - min(inner[j] * scale, 1.0) / 2.0)


def decide(s: Separable, state: SeparableState, x: Row, rd: Round, work: SeparableScratch, u: float) -> int:
    """Lines 1-2."""
    K = rd.z.shape[0]
    if s.kernel:
        work.coin[0].u = u
        n = state.size[0].rows
        compare(state.S, x, n, work.r)
        rational(work.r, n, s.scale)
        for k in range(K):
            rd.z[k] = 0.0
        for j in range(n):
            for k in range(K):
                rd.z[k] += state.A[j, k] * work.r[j]
    else:
        scores(state.W, x, rd.z)
    exclude(rd.z, rd.among)
    top = best(rd.z)
    if rd.z[top] >= 0.0:
        point(rd.p, top)
        return top
    mix_uniform(rd.p, rd.among, top, 1.0)
    return draw(rd.p, top, u)


def learn(
    s: Separable, state: SeparableState, x: Row, rd: Round, work: SeparableScratch, label: int, truth: int
) -> None:
    """Line 3. With the kernel, a row that moves several labels is kept once."""
    slot = -1
    for k in range(rd.z.shape[0]):
        positive = rd.z[k] >= 0.0
        if k == label:
            v = (0.0 if positive else 1.0) if truth == label else (-1.0 if positive else 0.0)
        else:
            v = -1.0 if positive and truth == label else 0.0
        if v == 0.0:
            continue
        if not s.kernel:
            add_one(state.W, x, k, v)
            continue
        if slot < 0:
            slot = state.size[0].rows
            if slot < s.support:
                state.size[0].rows += 1
            else:
                shake(work.dice, work.coin[0].u, 1)
                slot = min(int(uniform(work.dice) * s.support), s.support - 1)
            keep(state.S, x, slot)
            for j in range(rd.z.shape[0]):
                state.A[slot, j] = 0.0
        state.A[slot, k] = v


algorithm(Separable, decide, learn)
