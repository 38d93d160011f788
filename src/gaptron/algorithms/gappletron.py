"""Gappletron: Gaptron when a graph on the labels says what a round shows.

After van der Hoeven, Fusco & Cesa-Bianchi, "Beyond Bandit Feedback in Online Multiclass Classification", NeurIPS 2021
(structure as there; settings and bound derived here).   Feedback: full, bandit, graph.   Cost: O(dK) a round.

    S a dominating set of the graph: its labels together show every label;  ρ = |S|
    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  y* = argmax z;  a the gap map of the loss, as in Gaptron
      2   p = (1 - a) e_y* + a/K;   p' = (1 - γ) p + γ·uniform on S      (γ = 0 if y* alone shows every label)
      3   play y' ~ p';  if it shows y:  v = 1/P(y is shown) = 1/Σ_{k shows y} p'(k)
      4   W ← W - η v ∇ℓ(W; x, y);  project onto ‖W‖ ≤ D if there is a ball
          fixed       γ = min{1, √(ρD²/(2η₁T))},  η = η₁γ/ρ, η₁ the step of Gaptron with full information
          adaptive    γ_t = min{½, √ρ·D·X/√n}, n the rounds so far whose y* did not show all;  η_t = D/√(2Σ‖vg‖²)

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

from gaptron.errors import NoBoundError, SettingError
from gaptron.feedback import dominating_set
from gaptron.kernels.ball import moved, new_ball, scale
from gaptron.kernels.losses import LN2, LOGISTIC, gap_map, paper_step, pull
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add, add_one, by_label, score_one, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, draw, mix_uniform, rival
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


class Gappletron(NamedTuple):
    """The settings."""

    loss: int  # logistic, hinge or smooth hinge
    steps: int  # adaptive or fixed
    eta: float  # η > 0       fixed: the step size
    gamma: float  # γ ∈ [0, 1]  fixed: the exploration; adaptive: its factor √ρ·D·X
    ball: float  # D           adaptive: scale of the steps and radius of the ball; inf: no ball
    beta: float  # β ∈ [0, 1)  margin past which the hinge is sure


class GappletronState(NamedTuple):
    """What is learned."""

    W: Matrix  # without the ball's scale
    ball: Any
    sums: Any  # square: Σ‖vg‖², narrow: n


def graph_of(problem: Problem) -> Flags:
    """Full information and bandit feedback as graphs."""
    if problem.graph is not None:
        return problem.graph
    K = problem.n_classes
    return np.ones((K, K), dtype=np.bool_) if problem.feedback is Feedback.FULL else np.eye(K, dtype=np.bool_)


def init(settings: Gappletron, problem: Problem, sparse: bool) -> GappletronState:
    """W = 0."""
    W = zeros(problem.n_classes, problem.n_features, sparse)
    return GappletronState(W, new_ball(), named(square=0.0, narrow=0))


class GappletronScratch(NamedTuple):
    """Work space, and what follows from the graph."""

    p: Vector  # p̃, for the gradient of the logistic loss
    r: Vector  # coefficients of the update
    shows: Flags  # the graph
    wide: Flags  # which labels show every label
    cover: Vector  # the uniform distribution on S


def scratch(settings: Gappletron, problem: Problem, sparse: bool) -> GappletronScratch:
    """Two numbers a label, the graph and its dominating set."""
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
    """Adaptive: nothing to know but D (10 if not given) and X; fixed: the settings of the bound, from D, T and X.

    With full information nothing is explored and the fixed step is Gaptron's.
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
        return Gappletron(int(problem.loss), 0, 0.0, float(gamma), float(D), float(beta))
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
    return Gappletron(int(problem.loss), 1, float(eta), float(gamma), math.inf, float(beta))


def theorem(problem: Problem, settings: Gappletron) -> str:
    """Where the bound comes from."""
    return "Lemma 1 of van der Hoeven 2020, with what the graph shows"


def bound(problem: Problem, settings: Gappletron, comparator: Comparator) -> float:
    """E[M_T] ≤ L_T(U) + ‖U‖²/(2η) + γT for the fixed settings and every U fixed before the draws.

    Every label is shown with probability at least γ/ρ, so E‖vg‖² ≤ (ρ/γ)‖g‖², and with η = η₁γ/ρ Gaptron's surrogate
    gap is never positive; playing p' instead of p costs at most γ a round. With full information there is no γ.
    """
    if settings.steps == 0:
        raise NoBoundError("adaptive steps: only the order of the regret is known; steps='fixed' has a bound")
    right = recommend(problem, steps="fixed")
    if settings != right:
        raise NoBoundError(f"the bound is for the recommended {right}")
    return comparator.loss + comparator.norm**2 / (2 * settings.eta) + settings.gamma * comparator.rounds


# --- the algorithm ------------------------------------------------------------------------------------------


def decide(s: Gappletron, state: GappletronState, x: Row, rd: Round, work: GappletronScratch, u: float) -> int:
    """Lines 1-3."""
    scores(state.W, x, rd.z)
    scale(state.ball, rd.z)
    top = best(rd.z)
    a = gap_map(s.loss, s.beta, rd.z, work.p, top)
    rd.note[GAP] = a
    mix_uniform(rd.p, rd.among, top, a)
    if not work.wide[top]:
        gamma = s.gamma if s.steps == 1 else min(0.5, s.gamma / math.sqrt(state.sums[0].narrow + 1.0))
        for k in range(rd.p.shape[0]):
            rd.p[k] = (1.0 - gamma) * rd.p[k] + gamma * work.cover[k]
    return draw(rd.p, top, u)


def commit(s: Gappletron, state: GappletronState, rd: Round, work: GappletronScratch) -> None:
    """Count the rounds whose top label does not show all."""
    if not work.wide[best(rd.z)]:
        state.sums[0].narrow += 1


def learn(
    s: Gappletron, state: GappletronState, x: Row, rd: Round, work: GappletronScratch, label: int, truth: int
) -> None:
    """Lines 3-4. Nothing shown, nothing learned."""
    if truth == UNKNOWN:
        return
    chance = 0.0
    for k in range(rd.p.shape[0]):
        if work.shows[k, truth]:
            chance += rd.p[k]
    K = work.r.shape[0]
    for k in range(K):
        work.r[k] = 0.0
    if s.loss == LOGISTIC:
        for k in range(K):
            work.r[k] = work.p[k] / (LN2 * chance)
        work.r[truth] -= 1.0 / (LN2 * chance)
    else:
        v = pull(s.loss, s.beta, rd.z, truth) / chance
        if v == 0.0:
            return
        work.r[rival(rd.z, truth)] = v
        work.r[truth] = -v
    square = 0.0
    for k in range(K):
        square += work.r[k] * work.r[k]
    square *= sqnorm(x)
    if square == 0.0:
        return
    state.sums[0].square += square
    eta = s.eta if s.steps == 1 else s.ball / math.sqrt(2.0 * state.sums[0].square)
    inner = 0.0
    for k in range(K):
        if work.r[k] != 0.0:
            if s.ball < math.inf:
                inner -= eta * work.r[k] * state.ball[0].scale * score_one(state.W, x, k)
            work.r[k] *= -eta / state.ball[0].scale
    if s.loss == LOGISTIC:
        add(state.W, x, work.r)
    else:
        for k in range(K):
            if work.r[k] != 0.0:
                add_one(state.W, x, k, work.r[k])
    if s.ball < math.inf:
        moved(state.W, state.ball, s.ball, inner, eta * square * eta)


algorithm(Gappletron, decide, learn, commit)
