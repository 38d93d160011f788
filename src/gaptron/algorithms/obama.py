"""OBAMA: the aggregating algorithm for bandit feedback, with importance weights of at most one.

Foster, Kale, Luo, Mohri & Sridharan, "Logistic Regression: The Importance of Being Improper", COLT 2018, the bandit
algorithm of section 4, with a Gaussian prior in place of the uniform one. For dK ≤ 4 the mixture is summed on a
grid; otherwise it is sampled by warm-started Langevin chains.
Feedback: bandit.   Cost: O(C nnz K) to predict, O(CJt nnz K) to learn after t right labels; O(CJb nnz K) in batches.

    P = N(0, ν²I);  for t = 1, 2, ...
      1   see x;  q̄ = E[softmax(Wx)], W ~ P          chains: the mean over W_1 ... W_C;  grid: the weighted sum
      2   p = (1 - μ) q̄ + μ/K
      3   play y' ~ p
      4   if y' was right:  P(W) ← P(W)·softmax(Wx)_y'^v up to scale,  v = (1/p(y'))/(K/μ) ≤ 1
          grid: this, at every point;  chains: keep (x, y', v), then J steps of every chain on
              Φ = Σ vℓ + ‖W‖²/(2ν²)                   Metropolis-adjusted Langevin, 57 % accepted

The last `memory` rounds with a right label are kept, and the posterior is that of these rounds. With batch=b a step
uses b of them and is always accepted. This is faster, and no longer samples the posterior.

Example:

    >>> import numpy as np
    >>> from gaptron import Learner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> learner = Learner("obama", n_classes=2, feedback="bandit", radius=1.0, horizon=100, seed=0)
    >>> learner.play(X, y).mistakes
    31

To cite:

    @inproceedings{foster2018logistic,
      title     = {Logistic Regression: The Importance of Being Improper},
      author    = {Foster, Dylan J. and Kale, Satyen and Luo, Haipeng and Mohri, Mehryar and Sridharan, Karthik},
      booktitle = {Conference on Learning Theory},
      year      = {2018}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.losses import LN2
from gaptron.kernels.mixture import (
    MAX_GRID_WEIGHTS,
    MixtureScratch,
    Rules,
    check,
    check_mixture,
    grid_regret,
    log_probabilities,
    mean,
    mix,
    mixture_regret,
    mixture_scratch,
    new_mixture,
    update_mixture,
    uses_grid,
)
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label
from gaptron.kernels.simplex import best, draw
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
    paper="Foster et al. 2018, section 4",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.LOGISTIC,),
    time="O(CJt nnz K)",
    memory="data + CdK",
    regret_full="",
    regret_bandit="O(K √(dT log T))",
    grid={"mu": (0.01, 0.03, 0.1, 0.3)},
    growth=Growth(possible=False),
    linear=False,
)
NOTES = ()
MEMORY = 10_000
CHAINS, STEPS = 16, 2  # the defaults


class Obama(NamedTuple):
    """The settings."""

    mu: float  # μ ∈ (0, 1] exploration; 0: √(KR/T), computed when d is known
    nu: float  # ν > 0  standard deviation of the prior in every coordinate
    chains: int  # C ≥ 1
    steps: int  # J ≥ 1  of each chain, after each right label
    batch: int  # b ≥ 0  rounds that a step uses; 0: all, and steps may be rejected
    step: float  # c > 0  the first factor of the step, times (dK)^⅓; with batches the only one
    memory: int  # rounds with a right label that are kept
    nonzeros: int  # of a sparse example on average; memory × nonzeros numbers are allocated
    grid: int  # most points of the grid where dK ≤ 4; 0: always chains


class ObamaState(NamedTuple):
    """The state."""

    W: Rules  # C chains, or the points of the grid
    G: Rules  # ∇Φ at each
    E: Vector  # Φ at each
    a: Vector  # their weights in the mixture
    values: Vector  # the history of examples: its five arrays
    indices: NDArray[np.int32]
    begin: Integers
    end: Integers
    span: Any
    y: Integers  # the labels
    v: Vector  # the weights v
    pace: Any  # Σ v‖x‖², ln c, right labels, steps accepted, steps tried
    explore: Any  # share: μ


def init(settings: Obama, problem: Problem, sparse: bool) -> ObamaState:
    """The prior, and μ."""
    s = settings
    made = new_mixture(problem, sparse, s.nu, s.chains, s.memory, s.nonzeros, s.grid, s.step)
    return ObamaState(**made, explore=named(share=exploration(problem, s)))


def scratch(settings: Obama, problem: Problem, sparse: bool) -> MixtureScratch:
    """A proposal and its gradient."""
    return mixture_scratch(problem, sparse, settings.grid)


def check_state(settings: Obama, problem: Problem, state: ObamaState) -> None:
    """The history's indices and labels must lie inside their arrays."""
    check_mixture(state, problem)


def weights(state: ObamaState, sparse: bool) -> Matrix:
    """The tempered posterior's mean, K × d. The predictions are those of the mixture, not of this mean."""
    return by_label(mean(state), sparse)


# --- theory -----------------------------------------------------------------------------------------------


def exploration(problem: Problem, settings: Obama) -> float:
    """μ as given, or √(KR/T), at most 1, with R the regret of the mixture at ‖U‖ = D over T rounds."""
    if settings.mu > 0.0:
        return settings.mu
    D, T = problem.need("radius", "horizon")
    return min(1.0, math.sqrt(problem.n_classes * mixture_regret(problem, settings.nu, D, T) / T))


def recommend(
    problem: Problem,
    mu: float | None = None,
    nu: float | None = None,
    chains: int = CHAINS,
    steps: int = STEPS,
    batch: int = 0,
    step: float = 1.0,
    memory: int | None = None,
    nonzeros: int = 64,
    grid: int = 10_000,
) -> Obama:
    """μ = √(KR/T), computed when the number of features is known; ν = D; up to 10 000 rounds are kept."""
    if mu is None:
        problem.need("norm", "radius", "horizon")
    elif not 0.0 < mu <= 1.0:
        raise SettingError(f"mu={mu!r} must lie in (0, 1]")
    if nu is None:
        (nu,) = problem.need("radius")
    if memory is None:
        memory = MEMORY if problem.horizon is None else min(MEMORY, problem.horizon)
    check(nu, step, grid, chains=chains, steps=steps, batch=batch, memory=memory, nonzeros=nonzeros)
    sizes = int(chains), int(steps), int(batch), float(step), int(memory), int(nonzeros), int(grid)
    return Obama(0.0 if mu is None else float(mu), float(nu), *sizes)


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round. Every step of every chain goes through the history, or through a batch of it.

    On average the history is half as long as at the end.
    """
    kept = min(size.rounds, settings.get("memory") or MEMORY) / 2
    steps = settings.get("chains", CHAINS) * settings.get("steps", STEPS)
    return float(steps * (settings.get("batch") or kept) * size.nonzeros * size.n_classes)


def theorem(problem: Problem, settings: Obama) -> str:
    """The source of the bound."""
    return "the tempered mixture over a Gaussian prior, after Foster et al. 2018"


def bound(problem: Problem, settings: Obama, comparator: Comparator) -> float:
    """E[M_T] ≤ ln 2·L_T(U) + (K/μ)R + μT, L_T the base-2 logistic loss, R what the mixture on the grid costs in nats.

    With s = v ≤ 1, (E q_y)^s ≥ E q_y^s, so that Σ -v ln q̄(y) ≤ Σ vℓ(U) + R; v is μ/K on average, so R counts μT/K
    rounds. Needs ‖x‖ ≤ X, ‖U‖ ≤ 4ν, U fixed before the draws and the grid, dK ≤ 4. Chains only approximate the mixture.
    """
    if not uses_grid(problem, settings.grid):
        raise NoBoundError(
            f"the bound is for the exact mixture, which chains only approximate; "
            f"the mixture is exact for dK ≤ {MAX_GRID_WEIGHTS} with grid > 0"
        )
    K, T, mu = problem.n_classes, comparator.rounds, exploration(problem, settings)
    R = grid_regret(problem, settings.nu, settings.grid, comparator.norm, mu * T / K)
    return LN2 * comparator.loss + K / mu * R + mu * T


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Obama, state: ObamaState, x: Row, rd: Round, work: MixtureScratch, u: float) -> int:
    """Lines 1-3."""
    mix(state, work, x, rd.p)
    log_probabilities(rd.p, rd.z)
    K, mu = rd.p.shape[0], state.explore[0].share
    for k in range(K):
        rd.p[k] = (1.0 - mu) * rd.p[k] + mu / K
    work.coin[0].u = u
    return draw(rd.p, best(rd.p), u)


def learn(s: Obama, state: ObamaState, x: Row, rd: Round, work: MixtureScratch, label: int, truth: int) -> None:
    """Line 4. After a wrong label there is no update."""
    if truth == UNKNOWN:
        return
    v = min(1.0, state.explore[0].share / (rd.p[truth] * rd.p.shape[0]))
    update_mixture(state, work, x, truth, v, s.nu, s.steps, s.batch)


algorithm(Obama, decide, learn)
