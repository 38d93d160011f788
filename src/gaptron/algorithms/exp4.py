"""EXP4 over linear rules: exponential weights on many fixed experts.

Auer, Cesa-Bianchi, Freund & Schapire, "The Nonstochastic Multiarmed Bandit Problem", SIAM J. Comput. 2002; losses
instead of gains and no forced exploration, as in Bubeck & Cesa-Bianchi 2012, Theorem 4.2.
Feedback: bandit.   Cost: O(N nnz K) to predict, O(N) to learn.

    W¹ ... Wᴺ fixed: normal numbers drawn from a seed, or for dK ≤ 4 a grid;  L_j = 0;  for t = 1, 2, ...
      1   see x;  expert j recommends ŷ_j = argmax_k ⟨Wʲ_k, x⟩
      2   q_j ∝ exp(-η L_j);  p = Σ_j q_j e_{ŷ_j}            η = √(2 ln N/(TK)), or √(ln N/(tK)) without a horizon
      3   play y' ~ p
      4   if y' was wrong:  L_j ← L_j + 1/p(y') for every j with ŷ_j = y'

Labels that are not available in a round are left out of the argmax of line 1.

Example:

    >>> import numpy as np
    >>> from gaptron import Learner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> learner = Learner("exp4", n_classes=2, feedback="bandit", horizon=500, experts=500, seed=0)
    >>> learner.play(X, y).mistakes
    62

To cite:

    @article{auer2002nonstochastic,
      title     = {The Nonstochastic Multiarmed Bandit Problem},
      author    = {Auer, Peter and Cesa-Bianchi, Nicolò and Freund, Yoav and Schapire, Robert E.},
      journal   = {SIAM Journal on Computing},
      year      = {2002}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.compile.exponential import exponentials
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.history import check_array_size
from gaptron.kernels.mixture import Rules
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores
from gaptron.kernels.simplex import best, count_available, draw, mask_unavailable, point
from gaptron.types import (
    UNKNOWN,
    Card,
    Comparator,
    Feedback,
    Flags,
    Growth,
    Integers,
    Loss,
    Matrix,
    Problem,
    Round,
    Row,
    Size,
    Vector,
    named,
)

CARD = Card(
    paper="Auer, Cesa-Bianchi, Freund & Schapire 2002",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.HINGE,),
    time="O(N nnz K)",
    memory="N dK",
    regret_full="",
    regret_bandit="O(√(KT ln N)) to the best of N experts",
    available=True,
    grid={"eta": (0.001, 0.01, 0.1, 1.0)},
    growth=Growth(possible=False),
    linear=False,
)
NOTES = ()
EXPERTS = 1000  # the default
FEW = 4  # dK up to which the experts are a grid


class Exp4(NamedTuple):
    """The settings."""

    experts: int  # N ≥ 2; for dK ≤ 4 the most points of the grid
    eta: float  # η > 0; 0: √(ln N/(tK)) in round t
    experts_seed: int  # seed of the experts' weights


class Exp4State(NamedTuple):
    """The state."""

    W: NDArray[np.float64]  # N experts
    L: Vector  # the estimated loss of each, minus the least
    q: Vector  # their weights
    clock: Any  # rounds: those with feedback so far


def experts(settings: Exp4, problem: Problem) -> NDArray[np.float64]:
    """The experts, N × K × d."""
    N, K, d = settings.experts, problem.n_classes, problem.n_features
    check_array_size(N * K * d, f"{N} experts of {K} × {d} numbers", "fewer experts=...")
    if K * d > FEW or N < 2 ** (K * d):
        return np.random.default_rng(settings.experts_seed).standard_normal((N, K, d))
    points = 2
    while (points + 1) ** (K * d) <= N:
        points += 1
    axes = np.meshgrid(*[np.linspace(-1.0, 1.0, points)] * (K * d), indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, K, d)


def init(settings: Exp4, problem: Problem, sparse: bool) -> Exp4State:
    """All experts have the same weight."""
    W = experts(settings, problem)
    N = W.shape[0]
    W = np.ascontiguousarray(W.transpose(0, 2, 1)) if sparse else W
    return Exp4State(W, np.zeros(N), np.full(N, 1.0 / N), named(rounds=0))


class Exp4Scratch(NamedTuple):
    """Work space."""

    labels: Integers  # the label of each expert; a grid may have fewer experts
    z: Vector  # the scores of one expert


def scratch(settings: Exp4, problem: Problem, sparse: bool) -> Exp4Scratch:
    """One number per expert, and one per label."""
    return Exp4Scratch(np.zeros(settings.experts, dtype=np.int64), np.zeros(problem.n_classes))


def weights(state: Exp4State, sparse: bool) -> Matrix:
    """The experts' weighted mean minus their mean: zero while all weights are equal. This rule is not played."""
    return by_label(np.asarray(np.tensordot(state.q - 1.0 / len(state.q), state.W, 1)), sparse)


def recommend(problem: Problem, experts: int = EXPERTS, eta: float | None = None, experts_seed: int = 0) -> Exp4:
    """1000 experts; η for the horizon if it is known, otherwise for each round."""
    if experts != int(experts) or experts < 2:
        raise SettingError(f"experts={experts!r} must be a whole number of at least 2")
    if experts_seed != int(experts_seed) or experts_seed < 0:
        raise SettingError(f"experts_seed={experts_seed!r} must be a whole number of at least 0")
    if eta is None:
        T = problem.horizon
        eta = 0.0 if T is None else math.sqrt(2 * math.log(experts) / (T * problem.n_classes))
    elif not (eta > 0.0 and math.isfinite(eta)):
        raise SettingError(f"eta={eta!r} must be a positive number; by default it depends on the horizon or the round")
    return Exp4(int(experts), float(eta), int(experts_seed))


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round: every expert scores the example."""
    return float(settings.get("experts", EXPERTS)) * size.nonzeros * size.n_classes


def theorem(problem: Problem, settings: Exp4) -> str:
    """The source of the regret to the experts."""
    return "Theorem 4.2 of Bubeck & Cesa-Bianchi 2012, against the best of its own experts"


def bound(problem: Problem, settings: Exp4, comparator: Comparator) -> float:
    """Raise NoBoundError: the theorem compares with the experts, not with any U."""
    raise NoBoundError(
        "EXP4's theorem compares with the best of its own experts, which may all be far from U: "
        "gaptron.algorithms.exp4.regret_to_experts gives that bound"
    )


def regret_to_experts(problem: Problem, settings: Exp4, rounds: int) -> float:
    """E[M_T] minus the mistakes of any one expert is at most ln N/η + ηTK/2, or 2√(TK ln N) without a fixed η.

    For examples and labels fixed before the draws, feedback in order. At T = the horizon it is √(2TK ln N).
    """
    K, N = problem.n_classes, settings.experts
    if settings.eta == 0.0:
        return 2 * math.sqrt(rounds * K * math.log(N))
    return math.log(N) / settings.eta + settings.eta * rounds * K / 2


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def votes(W: Rules, x: Row, available: Flags, q: Vector, z: Vector, labels: Integers, p: Vector) -> None:
    """Lines 1-2: ŷ_j into labels, Σ_j q_j e_{ŷ_j} into p. z is work space."""
    some = count_available(available) < p.shape[0]
    for k in range(p.shape[0]):
        p[k] = 0.0
    for j in range(q.shape[0]):
        scores(W[j], x, z)
        if some:
            mask_unavailable(z, available)
        labels[j] = best(z)
        p[labels[j]] += q[j]


@jit
def add_loss(L: Vector, labels: Integers, label: int, loss: float) -> None:
    """Line 4: add the loss to the experts with this label, then subtract the least."""
    least = math.inf
    for j in range(L.shape[0]):
        if labels[j] == label:
            L[j] += loss
        least = min(least, L[j])
    for j in range(L.shape[0]):
        L[j] -= least


@jit
def exponential_weights(L: Vector, eta: float, q: Vector) -> None:
    """Line 2: q_j ∝ exp(-η L_j)."""
    total = 0.0
    for j in range(q.shape[0]):
        q[j] = -eta * L[j]
    exponentials(q, 0.0, q)
    for j in range(q.shape[0]):
        total += q[j]
    for j in range(q.shape[0]):
        q[j] /= total


def decide(s: Exp4, state: Exp4State, x: Row, rd: Round, work: Exp4Scratch, u: float) -> int:
    """Lines 1-3."""
    votes(state.W, x, rd.available, state.q, work.z, work.labels, rd.p)
    for k in range(rd.z.shape[0]):
        rd.z[k] = rd.p[k]
    n = mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    if n == 1:
        point(rd.p, top)  # the q_j sum to 1 only up to rounding
    return draw(rd.p, top, u)


def learn(s: Exp4, state: Exp4State, x: Row, rd: Round, work: Exp4Scratch, label: int, truth: int) -> None:
    """Line 4, and line 2's q for the next round."""
    N, K = state.q.shape[0], rd.p.shape[0]
    state.clock[0].rounds += 1
    if truth == UNKNOWN:
        add_loss(state.L, work.labels, label, 1.0 / rd.p[label])
    eta = s.eta if s.eta > 0.0 else math.sqrt(math.log(N) / ((state.clock[0].rounds + 1.0) * K))
    exponential_weights(state.L, eta, state.q)


algorithm(Exp4, decide, learn)
