"""Online multinomial logistic regression by gradient descent.

Zinkevich, "Online Convex Programming and Generalized Infinitesimal Gradient Ascent", ICML 2003, on the logistic loss;
adaptive step of Streeter & McMahan 2010, AdaGrad of Duchi, Hazan & Singer 2011.
Feedback: full.   Cost: O(dK) a round.

    for t = 1, 2, ...
      1   see x;  z_k = ⟨W_k, x⟩;  q = softmax z
      2   play argmax z                                       or, if asked, y' ~ q
      3   W ← W - η_t g,  g = (q - e_y) ⊗ x = ∇(-ln q_y):
              fixed           η_t = η
              decaying        η_t = η/√t                      η = D/X
              adaptive        η_t = η/√(Σ_{s ≤ t} ‖g_s‖²)     η = √2 D
              adagrad         each weight its own: η/√(Σ_{s ≤ t} g_s² + 10⁻⁸X²)
          decaying and adaptive project onto ‖W‖ ≤ D

Where rounds bring their own actions w is one row, z_k = ⟨w, φ_k⟩ and g = Σ (q - e_y)_k φ_k; the step is fixed.

Labels that are not available in a round have z = -∞. They are not played, and q and g are over the other labels.

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("softmax", classes=stream.classes, step="adagrad", eta=0.5, seed=0)
    >>> learner.play(stream).mistakes
    169

To cite:

    @inproceedings{zinkevich2003online,
      title     = {Online Convex Programming and Generalized Infinitesimal Gradient Ascent},
      author    = {Zinkevich, Martin},
      booktitle = {International Conference on Machine Learning},
      year      = {2003}
    }
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels import adagrad
from gaptron.kernels.ball import add_and_project, new_ball, scale
from gaptron.kernels.compile.jit import by_rows, jit
from gaptron.kernels.likelihood import label_gradient
from gaptron.kernels.losses import LN2
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add, by_label, scores, sqnorm, zeros
from gaptron.kernels.simplex import best, draw, mask_unavailable, multiply, point, softmax
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Vector, named

STEPS = ("fixed", "decaying", "adaptive", "adagrad")
PLAYS = ("top", "sample")
CARD = Card(
    paper="Zinkevich 2003; Duchi, Hazan & Singer 2011",
    feedback=(Feedback.FULL,),
    losses=(Loss.LOGISTIC,),
    time="O(dK)",
    memory="dK",
    regret_full="O(D √L_T + D²) adaptive, O(D √T) decaying",
    regret_bandit="",
    available=True,
    actions=True,
    single=("W", "N"),
    words={"step": STEPS, "play": PLAYS},
    grid={"eta": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)},
)
NOTES = ()

FIXED, DECAYING, ADAPTIVE, ADAGRAD = range(4)
# ‖q - e_y‖² ≤ 2(1 - q_y)² ≤ 2·SELF·(-ln q_y): (1 - q)²/(-ln q) is largest, 0.407264, at q = 0.2847
SELF = 0.40727


class Softmax(NamedTuple):
    """The settings."""

    step: int  # fixed, decaying, adaptive or adagrad
    eta: float  # η > 0 step size, or its first value
    ball: float  # D, for decaying and adaptive; inf: no ball
    floor: float  # adagrad: the first value of the sums of squares
    play: bool  # sample (True): draw the label from q; top: play the top label


class SoftmaxState(NamedTuple):
    """The state."""

    W: Matrix  # V of W = c·V
    N: Matrix  # adagrad: sum of squared gradients, entry by entry
    ball: Any  # c and ‖W‖², see `kernels.ball`
    total: Any  # rounds: their number so far, square: Σ ‖g‖²


def init(settings: Softmax, problem: Problem, sparse: bool) -> SoftmaxState:
    """W = 0."""
    K, d = problem.n_classes, problem.n_features
    N = zeros(K, d if settings.step == ADAGRAD else 0, sparse)
    return SoftmaxState(zeros(K, d, sparse), N, new_ball(), named(rounds=0, square=0.0))


class SoftmaxScratch(NamedTuple):
    """Work space."""

    r: Vector  # coefficients of the update


def scratch(settings: Softmax, problem: Problem, sparse: bool) -> SoftmaxScratch:
    """One number per label."""
    return SoftmaxScratch(np.zeros(problem.n_classes))


def weights(state: SoftmaxState, sparse: bool) -> Matrix:
    """W, K × d."""
    return np.asarray(by_label(state.W, sparse) * state.ball[0].scale)


# --- theory -----------------------------------------------------------------------------------------------


def recommend(problem: Problem, step: str = "fixed", eta: float | None = None, play: str = "top") -> Softmax:
    """η = 1/X² (fixed), D/X (decaying) and √2 D (adaptive), both in the ball of radius D, or 0.3/X (adagrad)."""
    if step not in STEPS:
        raise SettingError(f"step={step!r} must be one of {', '.join(STEPS)}")
    if play not in PLAYS:
        raise SettingError(f"play={play!r} must be one of {', '.join(PLAYS)}")
    kind = STEPS.index(step)
    if problem.actions and kind != FIXED:
        raise SettingError(f"step={step!r} is for labels: softmax with actions=True has the step 'fixed'")
    D = problem.need("radius")[0] if kind in (DECAYING, ADAPTIVE) else math.inf
    X = 1.0
    if kind == ADAGRAD or (eta is None and kind != ADAPTIVE):
        X = problem.need("norm")[0] or 1.0  # only zero examples: no step is ever taken
    if eta is None:
        eta = (1 / X**2, D / X, math.sqrt(2) * D, 0.3 / X)[kind]
    if not (eta > 0.0 and math.isfinite(eta)):
        raise SettingError(f"eta={eta!r} must be a positive number")
    return Softmax(kind, float(eta), D, 1e-8 * X * X, play == "sample")


def theorem(problem: Problem, settings: Softmax) -> str:
    """The source of the bound."""
    return f"gradient descent, {STEPS[settings.step]} step, on the self-bounding logistic loss"


def bound(problem: Problem, settings: Softmax, comparator: Comparator) -> float:
    """From Σ S(W_t) ≤ ..., S = -ln q_y: the top label is wrong at most Σ S/ln 2 times, a drawn one in expectation Σ S.

    With L = ln 2·L_T(U), c = 2·0.40727·X² and so ‖g‖² ≤ c S, every step size η and every path, ‖x‖ ≤ X, in order (for
    actions ‖g‖² ≤ (1 - q_y)²Δ², Δ ≤ 2X, and so c = 4·0.40727·X²):
        fixed       Σ S ≤ (L + ‖U‖²/(2η))/(1 - cη/2), if cη < 2, for every U
        decaying    Σ S ≤ L + (2D²/η + 2ηX²)√T for ‖U‖ ≤ D
        adaptive    Σ S ≤ L + (2D²/η + η)√(c Σ S) for ‖U‖ ≤ D, solved for Σ S
    """
    if settings.step == ADAGRAD:
        raise NoBoundError("AdaGrad's theorem is for weights projected onto a box, and these are not projected")
    (X,) = problem.need("norm")
    eta, D, L = settings.eta, settings.ball, LN2 * comparator.loss
    c = 2 * SELF * X * X * (2 if problem.actions else 1)
    if settings.step == FIXED:
        if c * eta >= 2:
            raise NoBoundError(f"the step eta={eta:g} is too large: the bound needs eta below {2 / c:.4g}")
        total = (L + comparator.norm**2 / (2 * eta)) / (1 - c * eta / 2)
    elif comparator.norm > D * (1 + 1e-12):
        return math.inf
    elif settings.step == DECAYING:
        total = L + (2 * D * D / eta + 2 * eta * X * X) * math.sqrt(comparator.rounds)
    else:
        a = (2 * D * D / eta + eta) * math.sqrt(c)
        total = (a / 2 + math.sqrt(a * a / 4 + L)) ** 2
    return total if settings.play else total / LN2


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def shrinking_step(s: Softmax, total: Any, square: float) -> float:
    """η_t of the decaying and the adaptive step; square = ‖g_t‖². 0 where g_t = 0."""
    total[0].rounds += 1
    total[0].square += square
    if square == 0.0:
        return 0.0
    return float(s.eta / math.sqrt(total[0].rounds if s.step == DECAYING else total[0].square))


def decide(s: Softmax, state: SoftmaxState, x: Row, rd: Round, work: SoftmaxScratch, u: float) -> int:
    """Lines 1-2."""
    scores(state.W, x, rd.z)
    scale(state.ball, rd.z)
    mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    if s.play:
        softmax(rd.z, top, rd.p)
        return draw(rd.p, top, u)
    point(rd.p, top)
    return top


def _descend(s: Softmax, state: SoftmaxState, x: Row, r: Vector, z: Vector) -> None:
    if s.step == ADAGRAD:
        adagrad.descend(state.W, state.N, x, r, s.eta, s.floor)
        return
    multiply(r, -s.eta if s.step == FIXED else -shrinking_step(s, state.total, sqnorm(r) * sqnorm(x)))
    add_and_project(state.W, state.ball, s.ball, x, r, z)


def _descend_actions(s: Softmax, state: SoftmaxState, x: Any, r: Vector, z: Vector) -> None:
    multiply(r, -s.eta)
    add(state.W, x, r)


descend = by_rows(_descend, _descend, _descend_actions)
descend.__doc__ = "Update W ← W - η_t r ⊗ x; r is overwritten, and z are the scores before the update."


def learn(s: Softmax, state: SoftmaxState, x: Row, rd: Round, work: SoftmaxScratch, label: int, truth: int) -> None:
    """Line 3."""
    softmax(rd.z, best(rd.z), work.r)
    label_gradient(work.r, truth, work.r)
    descend(s, state, x, work.r, rd.z)


def cut(s: Softmax, work: SoftmaxScratch, n: int) -> SoftmaxScratch:
    """The work space of a round with n actions."""
    return SoftmaxScratch(work.r[:n])


algorithm(Softmax, decide, learn, cut=cut)
