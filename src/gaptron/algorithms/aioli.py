"""AIOLI: logistic regression on two classes with regret linear in the radius, O(d²) a round.

Jézéquel, Gaillard & Rudi, "Efficient Improper Learning for Online Logistic Regression", COLT 2020, Algorithm 1.
Feedback: full.   Cost: O(d²) a round.

    A = λI;  b = 0;  for t = 1, 2, ...                        y = ±1: labels 1 and 0;  σ(z) = 1/(1 + exp(-z))
      1   see x;  θ = argmin ½⟨θ, Aθ⟩ - ⟨b, θ⟩ + ln(1 + e^⟨θ, x⟩) + ln(1 + e^-⟨θ, x⟩):
              v = ⟨x, A⁻¹x⟩,  z₀ = ⟨x, A⁻¹b⟩,  z = ⟨θ, x⟩ solves z + v tanh(z/2) = z₀
      2   play the sign of z (that of z₀)                     or, if asked, 1 with probability σ(z)
      3   g = -yσ(-yz);  h = σ(z)σ(-z)/(1 + C)                C ≥ |⟨u, x⟩| for the u compared with
      4   A ← A + h xx';  b ← b + (hz - g) x

The two logarithms of line 1, the loss of both labels at the current example, pull z towards 0 where the example is
unlike the past. No fixed θ predicts like this.

If only one label is available it is played, and there is no update.

Example:

    >>> import numpy as np
    >>> from gaptron import Learner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> learner = Learner("aioli", n_classes=2, norm=6.0, radius=1.0, seed=0)
    >>> learner.play(X, y).mistakes
    17

To cite:

    @inproceedings{jezequel2020efficient,
      title     = {Efficient Improper Learning for Online Logistic Regression},
      author    = {Jézéquel, Rémi and Gaillard, Pierre and Rudi, Alessandro},
      booktitle = {Conference on Learning Theory},
      year      = {2020}
    }
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import SettingError
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.linalg import move_one
from gaptron.kernels.losses import LN2
from gaptron.kernels.newton import clear, dot, times, update_inverse
from gaptron.kernels.oracles import sigmoid
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import add_one, by_label, score_one, zeros
from gaptron.kernels.simplex import best, count_available, draw, mask_unavailable, point
from gaptron.types import Card, Comparator, Feedback, Loss, Matrix, Problem, Round, Row, Size, Vector, named

PLAYS = ("top", "sample")
CARD = Card(
    paper="Jézéquel, Gaillard & Rudi 2020, Algorithm 1",
    feedback=(Feedback.FULL,),
    losses=(Loss.LOGISTIC,),
    time="O(d²)",
    memory="d²",
    regret_full="O(D d ln T), K = 2",
    regret_bandit="",
    available=True,
    words={"play": PLAYS},
    grid={"lam": (0.01, 0.1, 1.0, 10.0)},
    most_classes=2,
)
NOTES = ()

LARGEST = 2**31  # bytes


class Aioli(NamedTuple):
    """The settings."""

    lam: float  # λ > 0 A before the first round is λI
    reach: float  # C ≥ 0 the largest |⟨u, x⟩| of the comparators
    play: bool  # sample (True): draw label 1 with probability σ(z); top: play the more likely label


class AioliState(NamedTuple):
    """The state."""

    theta: Matrix  # A⁻¹b
    P: Matrix  # A⁻¹


def init(settings: Aioli, problem: Problem, sparse: bool) -> AioliState:
    """A = λI, b = 0."""
    d = problem.n_features
    check_size(d)
    return AioliState(zeros(1, d, sparse), np.eye(d) / settings.lam)


def check_size(d: int) -> None:
    """Refuse a matrix of more than 2 GiB."""
    if 8 * d * d > LARGEST:
        size = f"{d} × {d} numbers, {8e-9 * d * d:.1f} GB"
        raise SettingError(f"AIOLI needs a matrix of {size}: use ons or softmax, whose memory is that of the weights")


class AioliScratch(NamedTuple):
    """Work space."""

    row: Matrix  # x as a dense vector
    image: Vector  # A⁻¹x
    own: Any  # z of line 1


def scratch(settings: Aioli, problem: Problem, sparse: bool) -> AioliScratch:
    """Two vectors over the features."""
    d = problem.n_features
    return AioliScratch(zeros(1, d, sparse), np.zeros(d), named(z=0.0))


def weights(state: AioliState, sparse: bool) -> Matrix:
    """-A⁻¹b/2 for label 0 and A⁻¹b/2 for label 1, the weights of z₀."""
    theta = by_label(state.theta, sparse)
    return np.concatenate((-0.5 * theta, 0.5 * theta))


# --- theory -----------------------------------------------------------------------------------------------


def recommend(problem: Problem, lam: float | None = None, reach: float | None = None, play: str = "top") -> Aioli:
    """λ = X² and C = √2 DX, for ‖U_1 - U_0‖ ≤ √2‖U‖."""
    if play not in PLAYS:
        raise SettingError(f"play={play!r} must be one of {', '.join(PLAYS)}")
    if lam is None:
        lam = (problem.need("norm")[0] or 1.0) ** 2
    if reach is None:
        X, D = problem.need("norm", "radius")
        reach = math.sqrt(2) * D * X
    if not (lam > 0.0 and math.isfinite(lam)):
        raise SettingError(f"lam={lam!r} must be a positive number")
    if not (reach >= 0.0 and math.isfinite(reach)):
        raise SettingError(f"reach={reach!r} must be a number of at least 0")
    check_size(problem.n_features)
    return Aioli(float(lam), float(reach), play == "sample")


def passes(settings: Mapping[str, Any], size: Size) -> float:
    """The number of products in a round: one per entry of the matrix."""
    return float(size.n_features**2)


def theorem(problem: Problem, settings: Aioli) -> str:
    """The source of the bound."""
    return "the theorem of Jézéquel et al. 2020, with the constants of its proof"


def bound(problem: Problem, settings: Aioli, comparator: Comparator) -> float:
    """Σ ℓ(z_t) ≤ L + λ‖U‖² + d(1 + C) ln(1 + TX²/(4dλ(1 + C))), ℓ = -ln σ(yz), L = ln 2·L_T(U), on every path.

    Holds for √2‖U‖X ≤ C, ‖x‖ ≤ X, feedback in order and any λ. With u = U_1 - U_0 and so ‖u‖² ≤ 2‖U‖², the parabola of
    line 3 lies below the loss at every u with |⟨u, x⟩| ≤ C, and each round adds at most (1 + C) ln(1 + h⟨x, A⁻¹x⟩),
    because σ(±z)² - tanh(z/2)² ≤ 2σ(z)σ(-z). The top label is wrong at most Σ ℓ/ln 2 times, a drawn one in expectation
    Σ ℓ times.
    """
    (X,) = problem.need("norm")
    d, lam, C = problem.n_features, settings.lam, settings.reach
    if math.sqrt(2) * comparator.norm * X > C * (1 + 1e-12):
        return math.inf
    regret = d * (1 + C) * math.log1p(comparator.rounds * X * X / (4 * d * lam * (1 + C)))
    total = LN2 * comparator.loss + lam * comparator.norm**2 + regret
    return total if settings.play else total / LN2


# --- the algorithm ------------------------------------------------------------------------------------------


@jit
def with_bonus(v: float, z0: float) -> float:
    """The root of z + v tanh(z/2) = z₀, v ≥ 0.

    For z₀ ≥ 0 the left side is concave, so that Newton's method from below increases to the root.
    """
    goal = abs(z0)
    z = max(goal / (1.0 + v / 2.0), goal - v)
    for _ in range(100):
        t = math.tanh(z / 2.0)
        step = (goal - z - v * t) / (1.0 + v / 2.0 * (1.0 - t * t))
        z += step
        if step <= 1e-15 * z:
            break
    return z if z0 >= 0.0 else -z


@jit
def times_inverse(P: Matrix, x: Row, row: Matrix, image: Vector) -> float:
    """Write x into row and A⁻¹x into image. Returns ⟨x, A⁻¹x⟩."""
    clear(row.reshape(-1))
    add_one(row, x, 0, 1.0)
    times(P, row.reshape(-1), image)
    return max(dot(row.reshape(-1), image), 0.0)


def decide(s: Aioli, state: AioliState, x: Row, rd: Round, work: AioliScratch, u: float) -> int:
    """Lines 1-2. The scores are ∓z₀/2, whose signs are those of ∓z/2."""
    z0 = score_one(state.theta, x, 0)
    z = with_bonus(times_inverse(state.P, x, work.row, work.image), z0)
    work.own[0].z = z
    rd.z[0], rd.z[1] = -z0 / 2.0, z0 / 2.0
    n = mask_unavailable(rd.z, rd.available)
    top = best(rd.z)
    if s.play and n > 1:
        rd.p[0], rd.p[1] = sigmoid(-z), sigmoid(z)
        return draw(rd.p, top, u)
    point(rd.p, top)
    return top


def learn(s: Aioli, state: AioliState, x: Row, rd: Round, work: AioliScratch, label: int, truth: int) -> None:
    """Lines 3-4, on A⁻¹ and A⁻¹b."""
    if count_available(rd.available) == 1:
        return
    z = work.own[0].z
    g = -sigmoid(-z) if truth == 1 else sigmoid(z)
    h = sigmoid(z) * sigmoid(-z) / (1.0 + s.reach)
    before = score_one(state.theta, x, 0)
    clear(work.row.reshape(-1))
    add_one(work.row, x, 0, 1.0)
    update_inverse(state.P, work.row.reshape(-1), h, work.image)
    move_one(state.theta, x, 0, work.image, h * z - g - h * before)


algorithm(Aioli, decide, learn)
