"""Gappletron: Gaptron for feedback graphs, where the label played decides which labels are revealed.

After van der Hoeven, Fusco & Cesa-Bianchi, "Beyond Bandit Feedback in Online Multiclass Classification", NeurIPS 2021
(structure as there; settings and bound derived here).   Feedback: full, bandit, graph.   Cost: O(dK) a round.

    S a dominating set of the graph: its labels together reveal every label;  ρ = |S|
    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  y* = argmax z;  a the gap map of the loss, as in Gaptron
      2   p = (1 - a) e_y* + a/K;   p' = (1 - γ) p + γ·uniform on S      (γ = 0 if y* alone reveals every label)
      3   play y' ~ p';  if it reveals y:  v = 1/P(y is revealed) = 1/Σ_{k reveals y} p'(k)
      4   W ← W - η v ∇ℓ(W; x, y);  project onto ‖W‖ ≤ D if there is a ball
          fixed       γ = min{1, √(ρD²/(2η₁T))},  η = η₁γ/ρ, η₁ the step of Gaptron with full information
          adaptive    γ_t = min{½, √ρ·D·X/√n}, n the rounds so far whose y* does not reveal all;  η_t = D/√(2Σ‖vg‖²)

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("gappletron", classes=stream.classes, feedback="label-efficient", radius=10.0, seed=0)
    >>> learner.play(stream).mistakes
    1659

To cite:

    @inproceedings{vanderhoeven2021beyond,
      title     = {Beyond Bandit Feedback in Online Multiclass Classification},
      author    = {van der Hoeven, Dirk and Fusco, Federico and Cesa-Bianchi, Nicolò},
      booktitle = {Advances in Neural Information Processing Systems},
      year      = {2021}
    }
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.algorithms.feedback import dominating_set
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.ball import adaptive_step, add_and_project, new_ball, scale
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.losses import descent, gap_map, paper_step
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, draw, mix_uniform, multiply
from gaptron.types import UNKNOWN, Card, Comparator, Feedback, Flags, Loss, Matrix, Problem, Round, Row, Vector, named

STEPS = ("adaptive", "fixed")
CARD = Card(
    paper="after van der Hoeven, Fusco & Cesa-Bianchi 2021",
    feedback=(Feedback.FULL, Feedback.BANDIT, Feedback.GRAPH),
    losses=(Loss.LOGISTIC, Loss.HINGE, Loss.SMOOTH_HINGE),
    time="O(dK)",
    memory="dK + K²",
    regret_full="O(K ‖U‖²)",
    regret_bandit="O(D √(ρKT)), ρ = K for bandit",
    words={"steps": STEPS},
)
NOTES = ("gap",)  # a, before the exploration γ
GAP = NOTES.index("gap")
FIXED = STEPS.index("fixed")


class Gappletron(NamedTuple):
    """The settings."""

    loss: int  # logistic, hinge or smooth hinge
    steps: int  # adaptive or fixed
    eta: float  # η > 0       fixed: the step size
    gamma: float  # γ ∈ [0, 1]  fixed: the exploration; adaptive: its factor √ρ·D·X
    ball: float  # D           adaptive: factor of the steps and radius of the ball; inf: no ball
    beta: float  # β ∈ [0, 1)  margin above which the truncated hinge is zero


class GappletronState(NamedTuple):
    """The state."""

    W: Matrix  # V of W = c·V
    ball: Any  # c and ‖W‖², see `kernels.ball`
    sums: Any  # square: Σ‖vg‖², narrow: n


def graph_of(problem: Problem) -> Flags:
    """The feedback graph; full information and bandit feedback are graphs too."""
    if problem.graph is not None:
        return problem.graph
    K = problem.n_classes
    return np.ones((K, K), dtype=np.bool_) if problem.feedback is Feedback.FULL else np.eye(K, dtype=np.bool_)


def init(settings: Gappletron, problem: Problem, sparse: bool) -> GappletronState:
    """W = 0."""
    W = zeros(problem.n_classes, problem.n_features, sparse)
    return GappletronState(W, new_ball(), named(square=0.0, narrow=0))


class GappletronScratch(NamedTuple):
    """Work space, and the graph with its dominating set."""

    p: Vector  # p̃, for the gradient of the logistic loss
    r: Vector  # coefficients of the update
    reveals: Flags  # the graph
    wide: Flags  # which labels reveal every label
    cover: Vector  # the uniform distribution on S


def scratch(settings: Gappletron, problem: Problem, sparse: bool) -> GappletronScratch:
    """Two numbers per label, the graph and its dominating set."""
    K, graph = problem.n_classes, graph_of(problem)
    chosen = dominating_set(graph)
    cover = np.zeros(K)
    cover[chosen] = 1.0 / len(chosen)
    return GappletronScratch(np.zeros(K), np.zeros(K), graph, np.asarray(graph.all(axis=1)), cover)


def weights(state: GappletronState, sparse: bool) -> Matrix:
    """W, K × d."""
    return np.asarray(by_label(state.W, sparse) * state.ball[0].scale)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem,
    steps: str = "adaptive",
    eta: float | None = None,
    gamma: float | None = None,
    beta: float | None = None,
) -> Gappletron:
    """Adaptive: needs X and D (default 10). Fixed: the settings of the bound, from D, T and X.

    With full information there is no exploration and the fixed step is Gaptron's.
    """
    K = problem.n_classes
    if steps not in STEPS:
        raise SettingError(f"steps={steps!r} must be one of {', '.join(STEPS)}")
    beta = 1.0 / K if beta is None else beta
    if not 0.0 <= beta < 1.0:
        raise SettingError(f"beta={beta!r} must lie in [0, 1)")
    rho = len(dominating_set(graph_of(problem)))
    everything = bool(graph_of(problem).all())
    if steps == "adaptive":
        D = 10.0 if problem.radius is None else problem.radius
        if gamma is None:
            gamma = 0.0 if everything else math.sqrt(rho) * D * (problem.need("norm")[0] or 1.0)
        if not (gamma >= 0.0 and math.isfinite(gamma)):
            raise SettingError(f"gamma={gamma!r} must be a number of at least 0")
        return Gappletron(int(problem.loss), STEPS.index(steps), 0.0, float(gamma), float(D), float(beta))
    (X,) = problem.need("norm")
    first = paper_step(problem.loss, K, beta) / ((X or 1.0) ** 2)
    if gamma is None:
        gamma = 0.0
        if not everything:
            D, T = problem.need("radius", "horizon")
            gamma = min(1.0, D * math.sqrt(rho / (2 * first * T)))
    if not 0.0 <= gamma <= 1.0 or (gamma == 0.0 and not everything):
        raise SettingError(f"gamma={gamma!r} must lie in (0, 1]")
    eta = (first if everything else first * gamma / rho) if eta is None else eta
    if not (eta > 0.0 and math.isfinite(eta)):
        raise SettingError(f"eta={eta!r} must be a positive number")
    return Gappletron(int(problem.loss), FIXED, float(eta), float(gamma), math.inf, float(beta))


def theorem(problem: Problem, settings: Gappletron) -> str:
    """The source of the bound."""
    return "Lemma 1 of van der Hoeven 2020, for feedback graphs"


def bound(problem: Problem, settings: Gappletron, comparator: Comparator) -> float:
    """E[M_T] ≤ L_T(U) + ‖U‖²/(2η) + γT for the fixed settings and every U fixed before the draws.

    Every label is revealed with probability at least γ/ρ, so E‖vg‖² ≤ (ρ/γ)‖g‖², and with η = η₁γ/ρ Gaptron's surrogate
    gap is never positive; playing p' instead of p costs at most γ a round. With full information there is no γ.
    """
    if settings.steps != FIXED:
        raise NoBoundError("for adaptive steps only the order of the regret is known; steps='fixed' has a bound")
    proved = recommend(problem, steps="fixed")
    if settings != proved:
        raise NoBoundError(f"the bound is for the recommended {proved}")
    return comparator.loss + comparator.norm**2 / (2 * settings.eta) + settings.gamma * comparator.rounds


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def mix_with(p: Vector, cover: Vector, gamma: float) -> None:
    """p ← (1 - γ) p + γ·cover."""
    for k in range(p.shape[0]):
        p[k] = (1.0 - gamma) * p[k] + gamma * cover[k]


@jit
def reveal_probability(reveals: Flags, p: Vector, y: int) -> float:
    """The probability that the label drawn from p reveals y."""
    total = 0.0
    for k in range(p.shape[0]):
        if reveals[k, y]:
            total += p[k]
    return total


def decide(s: Gappletron, state: GappletronState, x: Row, rd: Round, work: GappletronScratch, u: float) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    scale(state.ball, rd.z)
    top = best(rd.z)
    a = gap_map(s.loss, s.beta, rd.z, work.p, top)
    rd.note[GAP] = a
    mix_uniform(rd.p, rd.available, top, a)
    if not work.wide[top]:
        gamma = s.gamma if s.steps == FIXED else min(0.5, s.gamma / math.sqrt(state.sums[0].narrow + 1.0))
        mix_with(rd.p, work.cover, gamma)
    return draw(rd.p, top, u)


def commit(s: Gappletron, state: GappletronState, rd: Round, work: GappletronScratch) -> None:
    """Count the rounds whose top label does not reveal every label."""
    if not work.wide[best(rd.z)]:
        state.sums[0].narrow += 1


def learn(
    s: Gappletron, state: GappletronState, x: Row, rd: Round, work: GappletronScratch, label: int, truth: int
) -> None:
    """Lines 3-4. Without the true label there is no update."""
    if truth == UNKNOWN:
        return
    v = 1.0 / reveal_probability(work.reveals, rd.p, truth)
    descent(s.loss, s.beta, rd.z, work.p, truth, v, work.r)
    eta = s.eta if s.steps == FIXED else adaptive_step(s.ball, state.sums, sqnorm(work.r) * sqnorm(x))
    multiply(work.r, eta)
    add_and_project(state.W, state.ball, s.ball, x, work.r, rd.z)


algorithm(Gappletron, decide, learn, commit)
