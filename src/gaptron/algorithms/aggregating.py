"""Vovk's aggregating algorithm for the logistic loss: predict with the mean of the posterior.

Foster, Kale, Luo, Mohri & Sridharan, "Logistic Regression: The Importance of Being Improper", COLT 2018, Algorithm 1,
with the Gaussian prior of Kakade & Ng 2005 in place of the uniform one. For dK ≤ 4 the mixture is summed on a grid;
otherwise it is sampled by warm-started Langevin chains, after Di Gennaro, Chakraborty & Zhivotovskiy 2026.
Feedback: full.   Cost: O(C nnz K) to predict, O(CJt nnz K) to learn in round t; with batches of b O(CJb nnz K).

    P = N(0, ν²I);  for t = 1, 2, ...
      1   see x;  q̄ = E[softmax(Wx)], W ~ P          chains: the mean over W_1 ... W_C;  grid: the weighted sum
      2   play y' ~ q̄
      3   P(W) ← P(W)·softmax(Wx)_y / q̄_y            grid: this, at every point
          chains: keep (x, y), and J times for every chain
              V = W - h∇Φ(W) + √(2h) ξ                Φ = Σ ℓ + ‖W‖²/(2ν²),  ξ standard normal
              W ← V with probability min{1, exp(Φ(W) - Φ(V) + ‖ξ‖²/2 - ‖W - V + h∇Φ(V)‖²/(4h))}
          h = c/(½Σ‖x‖² + 1/ν²), c adapted so that 57 % of the steps are accepted

The last `memory` rounds are kept, and the posterior is that of these rounds. With batch=b line 3 of the chains uses b
rounds drawn from the history and accepts every step. This is faster, and no longer samples the posterior (stochastic
gradient Langevin dynamics, Welling & Teh 2011).

Example:

    >>> import numpy as np
    >>> from gaptron import Learner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> learner = Learner("aggregating", n_classes=2, radius=1.0, seed=0)
    >>> learner.play(X, y).mistakes
    12

To cite:

    @inproceedings{foster2018logistic,
      title     = {Logistic Regression: The Importance of Being Improper},
      author    = {Foster, Dylan J. and Kale, Satyen and Luo, Haipeng and Mohri, Mehryar and Sridharan, Karthik},
      booktitle = {Conference on Learning Theory},
      year      = {2018}
    }
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import NoBoundError
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
)

CARD = Card(
    paper="Foster et al. 2018, Algorithm 1",
    feedback=(Feedback.FULL,),
    losses=(Loss.LOGISTIC,),
    time="O(CJt nnz K)",
    memory="data + CdK",
    regret_full="O(dK log T)",
    regret_bandit="",
    grid={"nu": (0.3, 1.0, 3.0, 10.0)},
    growth=Growth(possible=False),
    linear=False,
)
NOTES = ()
MEMORY = 10_000
CHAINS, STEPS = 16, 2  # the defaults


class Aggregating(NamedTuple):
    """The settings."""

    nu: float  # ν > 0  standard deviation of the prior in every coordinate
    chains: int  # C ≥ 1
    steps: int  # J ≥ 1  of each chain, in each round
    batch: int  # b ≥ 0  rounds that a step uses; 0: all, and steps may be rejected
    step: float  # c > 0  the first factor of the step, times (dK)^⅓; with batches the only one
    memory: int  # rounds kept
    nonzeros: int  # of a sparse example on average; memory × nonzeros numbers are allocated
    grid: int  # most points of the grid where dK ≤ 4; 0: always chains


class AggregatingState(NamedTuple):
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
    v: Vector  # the weights, here 1
    pace: Any  # Σ‖x‖², ln c, rounds, steps accepted, steps tried


def init(settings: Aggregating, problem: Problem, sparse: bool) -> AggregatingState:
    """The prior."""
    s = settings
    made = new_mixture(problem, sparse, s.nu, s.chains, s.memory, s.nonzeros, s.grid, s.step)
    return AggregatingState(**made)


def scratch(settings: Aggregating, problem: Problem, sparse: bool) -> MixtureScratch:
    """A proposal and its gradient."""
    return mixture_scratch(problem, sparse, settings.grid)


def check_state(settings: Aggregating, problem: Problem, state: AggregatingState) -> None:
    """The history's indices and labels must lie inside their arrays."""
    check_mixture(state, problem)


def weights(state: AggregatingState, sparse: bool) -> Matrix:
    """The posterior's mean, K × d. The predictions are those of the mixture, not of this mean."""
    return by_label(mean(state), sparse)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem,
    nu: float | None = None,
    chains: int = CHAINS,
    steps: int = STEPS,
    batch: int = 0,
    step: float = 1.0,
    memory: int | None = None,
    nonzeros: int = 64,
    grid: int = 10_000,
) -> Aggregating:
    """ν = D; all rounds are kept, up to 10 000."""
    if nu is None:
        (nu,) = problem.need("radius")
    if memory is None:
        memory = MEMORY if problem.horizon is None else min(MEMORY, problem.horizon)
    check(nu, step, grid, chains=chains, steps=steps, batch=batch, memory=memory, nonzeros=nonzeros)
    return Aggregating(
        float(nu), int(chains), int(steps), int(batch), float(step), int(memory), int(nonzeros), int(grid)
    )


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round. Every step of every chain goes through the history, or through a batch of it.

    On average the history is half as long as at the end.
    """
    kept = min(size.rounds, settings.get("memory") or MEMORY) / 2
    steps = settings.get("chains", CHAINS) * settings.get("steps", STEPS)
    return float(steps * (settings.get("batch") or kept) * size.nonzeros * size.n_classes)


def theorem(problem: Problem, settings: Aggregating) -> str:
    """The source of the bound."""
    return "Vovk's mixture over a Gaussian prior, after Kakade & Ng 2005 and Foster et al. 2018"


def bound(problem: Problem, settings: Aggregating, comparator: Comparator) -> float:
    """E[M_T] ≤ ln 2·L_T(U) + R, L_T the base-2 logistic loss and R what the mixture on the grid costs, in nats.

    1 - q̄(y) ≤ -ln q̄(y), and Σ -ln q̄(y) ≤ Σ ℓ(U) + R(‖U‖, T) on every path and for every U with ‖U‖ ≤ 4ν.
    Needs ‖x‖ ≤ X and the grid, dK ≤ 4. Chains only approximate the mixture and have no bound.
    """
    if not uses_grid(problem, settings.grid):
        raise NoBoundError(
            f"the bound is for the exact mixture, which chains only approximate; "
            f"the mixture is exact for dK ≤ {MAX_GRID_WEIGHTS} with grid > 0"
        )
    return LN2 * comparator.loss + grid_regret(problem, settings.nu, settings.grid, comparator.norm, comparator.rounds)


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Aggregating, state: AggregatingState, x: Row, rd: Round, work: MixtureScratch, u: float) -> int:
    """Lines 1-2."""
    mix(state, work, x, rd.p)
    log_probabilities(rd.p, rd.z)
    work.coin[0].u = u
    return draw(rd.p, best(rd.p), u)


def learn(
    s: Aggregating, state: AggregatingState, x: Row, rd: Round, work: MixtureScratch, label: int, truth: int
) -> None:
    """Line 3."""
    if truth == UNKNOWN:
        return
    update_mixture(state, work, x, truth, 1.0, s.nu, s.steps, s.batch)


algorithm(Aggregating, decide, learn)
