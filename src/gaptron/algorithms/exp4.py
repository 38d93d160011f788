"""EXP4 over linear rules: many fixed experts, trusted by the exponent of what they cost.

Auer, Cesa-Bianchi, Freund & Schapire, "The Nonstochastic Multiarmed Bandit Problem", SIAM J. Comput. 2002; losses
instead of gains and no forced exploration, as in Bubeck & Cesa-Bianchi 2012, Theorem 4.2.
Feedback: bandit.   Cost: O(N nnz K) to predict, O(N) to learn.

    W¹ ... Wᴺ fixed: normal numbers drawn from a seed, or for dK ≤ 4 a grid;  L_j = 0;  for t = 1, 2, ...
      1   see x;  expert j says ŷ_j = argmax_k ⟨Wʲ_k, x⟩
      2   q_j ∝ exp(-η L_j);  p = Σ_j q_j e_{ŷ_j}            η = √(2 ln N/(TK)), or √(ln N/(tK)) without a horizon
      3   play y' ~ p
      4   if y' was wrong:  L_j ← L_j + 1/p(y') for every j with ŷ_j = y'

Labels that are not available in a round are nobody's ŷ_j: an expert says the best of the others.

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
from gaptron.kernels.exponential import exponentials
from gaptron.kernels.history import refuse_beyond
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores
from gaptron.kernels.simplex import available, best, draw, exclude, point
from gaptron.types import (
    UNKNOWN,
    Card,
    Comparator,
    Feedback,
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
    among=True,
    grid={"eta": (0.001, 0.01, 0.1, 1.0)},
    growth=Growth(possible=False),
    traits=frozenset({"mixture"}),
)
NOTES = ()
EXPERTS = 1000  # unless a caller says otherwise
FEW = 4  # dK up to which the experts are a grid


class Exp4(NamedTuple):
    """The settings."""

    experts: int  # N ≥ 2, or the most points of the grid
    eta: float  # η > 0; 0: √(ln N/(tK)) in round t
    experts_seed: int  # which experts


class Exp4State(NamedTuple):
    """What is learned."""

    W: NDArray[np.float64]  # N experts
    L: Vector  # what each has cost, less the least
    q: Vector  # how each is trusted
    clock: Any  # answers so far


def experts(settings: Exp4, problem: Problem) -> NDArray[np.float64]:
    """The experts, N × K × d."""
    N, K, d = settings.experts, problem.n_classes, problem.n_features
    refuse_beyond(N * K * d, f"{N} experts of {K} × {d} numbers", "fewer experts=...")
    if K * d > FEW or N < 2 ** (K * d):
        return np.random.default_rng(settings.experts_seed).standard_normal((N, K, d))
    points = 2
    while (points + 1) ** (K * d) <= N:
        points += 1
    axes = np.meshgrid(*[np.linspace(-1.0, 1.0, points)] * (K * d), indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, K, d)


def init(settings: Exp4, problem: Problem, sparse: bool) -> Exp4State:
    """All experts alike."""
    W = experts(settings, problem)
    N = W.shape[0]
    W = np.ascontiguousarray(W.transpose(0, 2, 1)) if sparse else W
    return Exp4State(W, np.zeros(N), np.full(N, 1.0 / N), named(answers=0))


class Exp4Scratch(NamedTuple):
    """Work space."""

    labels: Integers  # what each expert would play; a grid may leave some room unused
    z: Vector  # one expert's scores


def scratch(settings: Exp4, problem: Problem, sparse: bool) -> Exp4Scratch:
    """A number an expert, and one a label."""
    return Exp4Scratch(np.zeros(settings.experts, dtype=np.int64), np.zeros(problem.n_classes))


def weights(state: Exp4State, sparse: bool) -> Matrix:
    """The experts' mean as trusted, less their plain mean: zero while all are trusted alike. No rule that is played."""
    return by_label(np.asarray(np.tensordot(state.q - 1.0 / len(state.q), state.W, 1)), sparse)


def recommend(problem: Problem, experts: int = EXPERTS, eta: float | None = None, experts_seed: int = 0) -> Exp4:
    """1000 experts; η for the horizon if it is known, else for every round in turn."""
    if experts != int(experts) or experts < 2:
        raise SettingError(f"experts={experts!r} must be a whole number of at least 2")
    if experts_seed != int(experts_seed) or experts_seed < 0:
        raise SettingError(f"experts_seed={experts_seed!r} must be a whole number of at least 0")
    if eta is None:
        T = problem.horizon
        eta = 0.0 if T is None else math.sqrt(2 * math.log(experts) / (T * problem.n_classes))
    elif not (eta > 0.0 and math.isfinite(eta)):
        raise SettingError(f"eta={eta!r} must be a positive number; left out, it follows the horizon or the rounds")
    return Exp4(int(experts), float(eta), int(experts_seed))


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """Products of a weight and a number of the row that a round takes: every expert scores every row."""
    return float(settings.get("experts", EXPERTS)) * size.nonzeros * size.n_classes


def theorem(problem: Problem, settings: Exp4) -> str:
    """Where the regret to the experts comes from."""
    return "Theorem 4.2 of Bubeck & Cesa-Bianchi 2012, against the best of its own experts"


def bound(problem: Problem, settings: Exp4, comparator: Comparator) -> float:
    """None: nothing is promised about a U that is not among the experts."""
    raise NoBoundError(
        "EXP4 is proved against the best of its own experts, which may all be far from U: "
        "algorithms.exp4.regret_to_experts gives that number"
    )


def regret_to_experts(problem: Problem, settings: Exp4, rounds: int) -> float:
    """E[M_T] less the mistakes of any one expert is at most ln N/η + ηTK/2, or 2√(TK ln N) without a fixed η.

    For rows and labels fixed before the draws, answers in order. At T = the horizon it is √(2TK ln N).
    """
    K, N = problem.n_classes, settings.experts
    if settings.eta == 0.0:
        return 2 * math.sqrt(rounds * K * math.log(N))
    return math.log(N) / settings.eta + settings.eta * rounds * K / 2


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Exp4, state: Exp4State, x: Row, rd: Round, work: Exp4Scratch, u: float) -> int:
    """Lines 1-3."""
    K, n = rd.p.shape[0], available(rd.among)
    for k in range(K):
        rd.p[k] = 0.0
    for j in range(state.q.shape[0]):
        scores(state.W[j], x, work.z)
        if n < K:
            exclude(work.z, rd.among)
        label = best(work.z)
        work.labels[j] = label
        rd.p[label] += state.q[j]
    for k in range(K):
        rd.z[k] = rd.p[k]
    exclude(rd.z, rd.among)
    top = best(rd.z)
    if n == 1:
        point(rd.p, top)  # the q_j sum to 1 but for rounding
    return draw(rd.p, top, u)


def learn(s: Exp4, state: Exp4State, x: Row, rd: Round, work: Exp4Scratch, label: int, truth: int) -> None:
    """Line 4, and line 2's q for the next round."""
    N, K = state.q.shape[0], rd.p.shape[0]
    state.clock[0].answers += 1
    if truth == UNKNOWN:
        least = math.inf
        for j in range(N):
            if work.labels[j] == label:
                state.L[j] += 1.0 / rd.p[label]
            least = min(least, state.L[j])
        for j in range(N):
            state.L[j] -= least
    eta = s.eta if s.eta > 0.0 else math.sqrt(math.log(N) / ((state.clock[0].answers + 1.0) * K))
    total = 0.0
    for j in range(N):
        state.q[j] = -eta * state.L[j]
    exponentials(state.q, 0.0, state.q)
    for j in range(N):
        total += state.q[j]
    for j in range(N):
        state.q[j] /= total


algorithm(Exp4, decide, learn)
