"""HingeLMC: Langevin samples of exponential weights on the hinge loss, played in proportion to their hinges.

After Foster & Krishnamurthy, "Contextual bandits with surrogate losses: Margin bounds and efficient algorithms",
NeurIPS 2018, Algorithm 1.   Feedback: bandit.   Cost: O(C nnz K) to predict, O(CJt nnz K) to learn, t wrong labels.

    for t = 1, 2, ...
      1   see x;  for every chain W:  f_k = ⟨W_k, x⟩ minus the mean over labels;  ψ_k = max{1 + f_k/γ, 0};  π = ψ/Σψ
      2   p = (1 - Kμ) π̄ + μ,  π̄ the mean over the C chains
      3   play y' ~ p
      4   if y' was wrong:  keep (x, y', 1/p(y')), and J times for every chain
              W ← W - (h/2) η Σ_s ∇ψ(y'_s)/p_s + √h ξ,   ξ standard normal;   project onto ‖W‖ ≤ D
          h = c/(η Σ ‖x‖²/(p γ²) + dK/D²)

This is a practical form without a guarantee. The paper draws one rule, plays it, and estimates 1/p by drawing again
until the same label comes up; here C chains are averaged, so that p is known. The paper's chains make as many steps as
its theorem requires; here they make J steps from where they were. The last `memory` rounds with a wrong label are kept.

Example:

    >>> import numpy as np
    >>> from gaptron import Learner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> learner = Learner("hinge-lmc", n_classes=2, feedback="bandit", radius=1.0, horizon=100, seed=0)
    >>> learner.play(X, y).mistakes
    42

To cite:

    @inproceedings{foster2018contextual,
      title     = {Contextual Bandits with Surrogate Losses: Margin Bounds and Efficient Algorithms},
      author    = {Foster, Dylan J. and Krishnamurthy, Akshay},
      booktitle = {Advances in Neural Information Processing Systems},
      year      = {2018}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.compile.jit import jit
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
from gaptron.kernels.mixture import Rules, check_labels, langevin_step
from gaptron.kernels.play import algorithm
from gaptron.kernels.prng import PrngState, new_prng, next_bits, seed_prng, uniform
from gaptron.kernels.rows import add, by_label, scores, sqnorm, zeros
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
    paper="after Foster & Krishnamurthy 2018, Algorithm 1",
    feedback=(Feedback.BANDIT,),
    losses=(Loss.HINGE,),
    time="O(CJt nnz K)",
    memory="data + CdK",
    regret_full="",
    regret_bandit="none here; the paper's own Õ((B/γ) √(dKT))",
    grid={"eta": (0.01, 0.1, 1.0)},
    growth=Growth(possible=False),
    linear=False,
)
NOTES = ()
MEMORY = 10_000
CHAINS, STEPS = 16, 2  # the defaults


class HingeLmc(NamedTuple):
    """The settings."""

    eta: float  # η > 0      rate of the exponential weights; 0: the paper's, computed when d is known
    mu: float  # μ ∈ (0, 1/K] least probability of a label
    margin: float  # γ > 0   margin of the hinge
    ball: float  # D > 0     largest norm of a rule
    chains: int  # C ≥ 1
    steps: int  # J ≥ 1      of each chain, after each wrong label
    batch: int  # b ≥ 0      rounds that a step uses; 0: all
    step: float  # c > 0     factor of the step
    memory: int  # rounds with a wrong label that are kept
    nonzeros: int  # of a sparse example on average; memory × nonzeros numbers are allocated


class HingeLmcState(NamedTuple):
    """The state."""

    W: Rules  # C chains
    values: Vector  # the history of examples: its five arrays
    indices: NDArray[np.int32]
    begin: Integers
    end: Integers
    span: Any
    y: Integers  # the wrong labels
    v: Vector  # 1/p of each
    pace: Any  # eta, square: Σ v‖x‖², wrong: wrong labels so far


def init(settings: HingeLmc, problem: Problem, sparse: bool) -> HingeLmcState:
    """Chains at zero, the mean of the uniform prior on the ball."""
    s, K, d = settings, problem.n_classes, problem.n_features
    check_array_size(s.chains * K * d, f"{s.chains} chains of {K} × {d} numbers", "fewer chains")
    kind = zeros(K, d, sparse)
    return HingeLmcState(
        np.zeros((s.chains, *kind.shape)),
        *new_history(s.memory, d, sparse, s.nonzeros),
        np.zeros(s.memory, dtype=np.int64),
        np.zeros(s.memory),
        named(eta=sharpness(problem, s), square=0.0, wrong=0),
    )


class HingeLmcScratch(NamedTuple):
    """Work space."""

    G: Matrix  # the gradient
    r: Vector  # one number per label
    prng: PrngState  # the random numbers of line 4
    coin: Any  # u, which seeds them


def scratch(settings: HingeLmc, problem: Problem, sparse: bool) -> HingeLmcScratch:
    """As many numbers as one chain."""
    K = problem.n_classes
    return HingeLmcScratch(zeros(K, problem.n_features, sparse), np.zeros(K), new_prng(), named(u=0.0))


def check_state(settings: HingeLmc, problem: Problem, state: HingeLmcState) -> None:
    """The history's indices and labels must lie inside their arrays."""
    check_history(state, problem.n_features)
    check_labels(state.y, problem.n_classes)


def weights(state: HingeLmcState, sparse: bool) -> Matrix:
    """The chains' mean, K × d. The predictions are those of the mixture, not of this mean."""
    return by_label(np.asarray(state.W.mean(axis=0)), sparse)


# --- theory -----------------------------------------------------------------------------------------------


def sharpness(problem: Problem, settings: HingeLmc) -> float:
    """η as given, or √(n γ² ln(e + BTK/γ)/(5K²B²T)) with n = dK and scores up to B = XD."""
    if settings.eta > 0.0:
        return settings.eta
    X, T = problem.need("norm", "horizon")
    K, n, g = problem.n_classes, problem.n_classes * problem.n_features, settings.margin
    B = X * settings.ball
    eta = math.sqrt(n * g * g * math.log(math.e + B * T * K / g) / (5 * K**2 * B * B * T))  # B**2 could raise
    if not (eta > 0.0 and math.isfinite(eta)):
        raise SettingError(f"margin={g!r} is too far from XD={B:g} to compute eta: give eta=... too")
    return eta


def recommend(
    problem: Problem,
    eta: float | None = None,
    mu: float | None = None,
    margin: float = 1.0,
    ball: float | None = None,
    chains: int = CHAINS,
    steps: int = STEPS,
    batch: int = 0,
    step: float = 0.5,
    memory: int | None = None,
    nonzeros: int = 64,
) -> HingeLmc:
    """The paper's η (computed when the number of features is known) and μ = 1/(K√T); D = the radius, γ = 1."""
    K = problem.n_classes
    if eta is None:
        problem.need("norm", "horizon")
    if mu is None:
        (T,) = problem.need("horizon")
        mu = 1.0 / (K * math.sqrt(T))
    if ball is None:
        (ball,) = problem.need("radius")
    if memory is None:
        memory = MEMORY if problem.horizon is None else min(MEMORY, problem.horizon)
    if not 0.0 < mu <= 1.0 / K:
        raise SettingError(f"mu={mu!r} must lie in (0, 1/K], here (0, {1 / K:.6g}]")
    for name, number in (("eta", 1.0 if eta is None else eta), ("margin", margin), ("ball", ball), ("step", step)):
        if not (number > 0.0 and math.isfinite(number)):
            raise SettingError(f"{name}={number!r} must be a positive number")
    counts = {"chains": chains, "steps": steps, "batch": batch, "memory": memory, "nonzeros": nonzeros}
    for name, count in counts.items():
        least = 0 if name == "batch" else 1
        if count != int(count) or count < least:
            raise SettingError(f"{name}={count!r} must be a whole number of at least {least}")
    first = 0.0 if eta is None else float(eta), float(mu), float(margin), float(ball)
    return HingeLmc(*first, int(chains), int(steps), int(batch), float(step), int(memory), int(nonzeros))


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round. Every step of every chain goes through the history, or through a batch of it.

    On average the history is half as long as at the end.
    """
    kept = min(size.rounds, settings.get("memory") or MEMORY) / 2
    steps = settings.get("chains", CHAINS) * settings.get("steps", STEPS)
    return float(steps * (settings.get("batch") or kept) * size.nonzeros * size.n_classes)


def theorem(problem: Problem, settings: HingeLmc) -> str:
    """Return why there is no bound."""
    return "none: a practical form of HingeLMC, after Foster & Krishnamurthy 2018"


def bound(problem: Problem, settings: HingeLmc, comparator: Comparator) -> float:
    """Raise NoBoundError: the paper's theorem is for a different form."""
    raise NoBoundError(
        "HingeLMC's theorem is for chains run to convergence and 1/p estimated by drawing again; "
        "here chains of few steps are averaged"
    )


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def policy(f: Vector, margin: float, pi: Vector) -> None:
    """Line 1: π from the scores. Σψ ≥ K, so that ⟨ℓ, π⟩ ≤ ⟨ℓ, ψ⟩/K for every ℓ ≥ 0."""
    K, mean, total = f.shape[0], 0.0, 0.0
    for k in range(K):
        mean += f[k] / K
    for k in range(K):
        pi[k] = max(1.0 + (f[k] - mean) / margin, 0.0)
        total += pi[k]
    for k in range(K):
        pi[k] /= total


@jit
def push(s: HingeLmc, state: HingeLmcState, work: HingeLmcScratch, x: Row, W: Matrix, j: int, v: float) -> None:
    """G ← G + v∇ψ(y') for round j of the history; x selects the layout of its example."""
    old, K = stored_row(state, x, j), work.r.shape[0]
    scores(W, old, work.r)
    mean = 0.0
    for k in range(K):
        mean += work.r[k] / K
    if 1.0 + (work.r[state.y[j]] - mean) / s.margin <= 0.0:
        return
    for k in range(K):
        work.r[k] = -v / (K * s.margin)
    work.r[state.y[j]] += v / s.margin
    add(work.G, old, work.r)


@jit
def project(W: Matrix, ball: float) -> None:
    """The nearest point of ‖W‖ ≤ D."""
    total = 0.0
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            total += W[i, j] * W[i, j]
    if total > ball * ball:
        shrink = ball / math.sqrt(total)
        for i in range(W.shape[0]):
            for j in range(W.shape[1]):
                W[i, j] *= shrink


@jit
def scatter(s: HingeLmc, state: HingeLmcState, work: HingeLmcScratch, x: Row) -> None:
    """Before the first wrong label: chains uniform on the ball."""
    n = work.G.shape[0] * work.G.shape[1]
    for c in range(state.W.shape[0]):
        W = state.W[c]
        length = s.ball * uniform(work.prng) ** (1.0 / n)
        reach = length / math.sqrt(langevin_step(W, x, W, W, 0.0, 1.0, work.prng))
        for i in range(W.shape[0]):
            for j in range(W.shape[1]):
                W[i, j] *= reach


@jit
def langevin(s: HingeLmc, state: HingeLmcState, work: HingeLmcScratch, x: Row) -> None:
    """The steps of line 4."""
    eta, count = state.pace[0].eta, state.span[0].count
    n = work.G.shape[0] * work.G.shape[1]
    curve = eta * max(state.pace[0].square, 0.0) / (s.margin * s.margin) + n / (s.ball * s.ball)
    h = s.step / curve
    for _ in range(s.steps):
        for c in range(state.W.shape[0]):
            W = state.W[c]
            work.G[:] = 0.0
            if s.batch == 0:
                for i in range(count):
                    j = slot(state, i)
                    push(s, state, work, x, W, j, eta * state.v[j])
            else:
                for _ in range(s.batch):
                    j = slot(state, next_bits(work.prng) % count)
                    push(s, state, work, x, W, j, eta * state.v[j] * count / s.batch)
            langevin_step(W, x, W, work.G, h / 2.0, math.sqrt(h), work.prng)
            project(W, s.ball)


@jit
def mean_policy(s: HingeLmc, W: Rules, x: Row, r: Vector, pi: Vector) -> None:
    """π̄ of lines 1-2 into pi. r is work space."""
    for k in range(pi.shape[0]):
        pi[k] = 0.0
    for c in range(W.shape[0]):
        scores(W[c], x, r)
        policy(r, s.margin, r)
        for k in range(pi.shape[0]):
            pi[k] += r[k] / W.shape[0]


@jit
def remember(state: HingeLmcState, x: Row, label: int, weight: float) -> None:
    """Keep (x, y', 1/p(y')) and Σ v‖x‖² of the rounds kept; the oldest rounds make space."""
    pace = state.pace[0]
    while is_full(state, x):
        j = slot(state, 0)
        pace.square -= state.v[j] * sqnorm(stored_row(state, x, j))
        drop_oldest(state)
    if state.span[0].count == 0:
        pace.square = 0.0
    j = append(state, x)
    state.y[j], state.v[j] = label, weight
    pace.square += weight * sqnorm(stored_row(state, x, j))
    pace.wrong += 1


def decide(s: HingeLmc, state: HingeLmcState, x: Row, rd: Round, work: HingeLmcScratch, u: float) -> int:
    """Lines 1-3."""
    mean_policy(s, state.W, x, work.r, rd.z)
    for k in range(rd.p.shape[0]):
        rd.p[k] = (1.0 - rd.p.shape[0] * s.mu) * rd.z[k] + s.mu
    work.coin[0].u = u
    return draw(rd.p, best(rd.p), u)


def learn(s: HingeLmc, state: HingeLmcState, x: Row, rd: Round, work: HingeLmcScratch, label: int, truth: int) -> None:
    """Line 4. After a right label there is no loss and no update."""
    if truth != UNKNOWN:
        return
    seed_prng(work.prng, work.coin[0].u, 1)
    if state.pace[0].wrong == 0:
        scatter(s, state, work, x)
    remember(state, x, label, 1.0 / rd.p[label])
    langevin(s, state, work, x)


algorithm(HingeLmc, decide, learn)
