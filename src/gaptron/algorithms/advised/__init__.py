"""Advised Gaptron: the certificate plays what it must, practical learners play the rest.

This library, docs page "Advised Gaptron" (2026); it extends Frugal Gaptron, whose proof asks of a label no more than
q(y) ≥ ρ_y: what is left of the distribution may go anywhere, and goes to the label that a council of advisers favours.
Feedback: full, bandit.   Cost: O(dK) a round, three to six times Frugal's.   Nothing to know in advance or to tune.

The advisers are Newton softmaxes (`newton.py`), one with all it has seen and one, the tracker, that goes on moving;
under bandit feedback a one-against-all regression too. They see x̃ = x/√n, n = max(‖x‖², mean of ‖x_s‖²).

    for t = 1, 2, ...
      1   see x, and which labels A are available: all that follows is over A;  X = max ‖x_s‖ so far
          w = ⟨W, x⟩ with W = -(ε/X²) Σ ĝ, the certified learner
      2   the advisers say f_1, ..., the caller perhaps f, the certified learner f_0 = softmax w.  Heard together, with
          a push for the label that was right last, they give scores;  k̂ is their top label
          a = those scores, cut to a range and centred:  a feature of the certified learner, weight v = 1 - ερ² Σ ĝ_v
      3   z = w + v a,  p̃ = softmax z;  ask of every label y the least q(y) that keeps its surrogate gap at most λ,
          counting the second moment of the gradient in v too;  what is left goes to k̂
      4   play y' ~ q
      5   learn, all of them

                full information                                bandit feedback
      1   ε     min{e₀, max{σ²/(2H*), e₀/50}}                   min{e₀, cD/√(Kt), D²/(2Λ)}, never rising
      2   heard by stacking: softmax Σ u_j L_j                  by Bayes' rule: Σ ω_j f_j; labels never hit get more
          a     without f_0, range 5                            ln of all together, range 10
      3         λ = 0                                           free rounds: q = e_k̂, nothing is asked, while
                                                                M + O - Ψ of them (misses, unanswered, what their hits
                                                                prove) leaves room in θ(D² + 10)/(2ε); once an answer
                                                                was worth a fraction, others by their inverse gap to k̂
      5   ĝ     (p̃ - e_y)/ln 2, e_y told                        (p̃ - (r/q(y'))·e_y')/ln 2, not in free rounds
          H     += 1[k° = y] - q(y), k° without f_0

Whatever the advisers say, with full information on every path, for all U and v at once,
    Σ(1 - q_t(y_t)) ≤ L_T(U, v) + (‖U‖²X² + 25(v - 1)²)/(2ε_T),   L_T(U, v) = Σ ℓ_t(Ux_t + v a_t),  1/(2ε_T) ≤ 52.1:
with v = 0 a bound for linear rules, with U = 0 and v = 1 at most the base-2 log loss of the advice, nothing added.
Under bandit feedback E[M_T] ≤ L_T(U) + E[C_T(U)] for U fixed before the draws, of order √(KT), with
    C_T(U) = c'X²‖U‖² + (‖U‖²X² + 10)/(2ε) + Λ_T + M - Ψ of the free rounds   (second term: once one was certified).

Example:

    >>> from gaptron import Learner
    >>> from gaptron.streams import open_stream, prepare
    >>> stream = prepare(open_stream("digits"), unit_norm=True)
    >>> learner = Learner("advised-gaptron", classes=stream.classes, feedback="bandit", seed=0)
    >>> learner.play(stream).mistakes < 300
    True

To cite:

    @software{gaptron,
      title     = {gaptron: online multiclass classification with guarantees you can see},
      author    = {{The gaptron developers}},
      year      = {2026}
    }
"""

import math
from typing import Any

import numpy as np

from gaptron.algorithms.advised import bandit, full
from gaptron.algorithms.advised.bandit import AdvisedBandit
from gaptron.algorithms.advised.council import MOST_STAY, TINY, log_odds
from gaptron.algorithms.advised.council import NOTES as NOTES
from gaptron.algorithms.advised.full import AdvisedFull, AdvisedFullState
from gaptron.errors import NoBoundError, SettingError
from gaptron.kernels.losses import LN2
from gaptron.kernels.play import algorithm
from gaptron.kernels.rows import by_label
from gaptron.types import (
    UNKNOWN,
    Advice,
    Card,
    Certificate,
    Comparator,
    Feedback,
    Growth,
    Integers,
    Loss,
    Matrix,
    Problem,
)

CARD = Card(
    paper="this library; extends Frugal Gaptron (2026)",
    feedback=(Feedback.FULL, Feedback.BANDIT),
    losses=(Loss.LOGISTIC,),
    time="O(dK)",
    memory="3dK, bandit 5dK",
    regret_full="O(‖U‖²)",
    regret_bandit="O(‖U‖² √(KT))",
    advice=True,
    among=True,
    rewards=True,
    growth=Growth(by_hand=("W", "P", "A")),
    traits=frozenset({"mixture", "axes"}),
    single=("W", "A", "C"),  # not P: its blocks are inverses, and small
)
EXPERTS = bandit.EXPERTS
Settings = AdvisedFull | AdvisedBandit


def _file(settings: Settings) -> Any:
    return full if isinstance(settings, AdvisedFull) else bandit


def init(settings: Settings, problem: Problem, sparse: bool) -> Any:
    """Nothing learned, all advisers heard alike."""
    return _file(settings).init(settings, problem, sparse)


def scratch(settings: Settings, problem: Problem, sparse: bool) -> Any:
    """Work space of either feedback."""
    return _file(settings).scratch(settings, problem, sparse)


def weights(state: Any, sparse: bool) -> Matrix:
    """The certified W at the last ε, centred over labels. The advisers' are not in it."""
    W, t, K = by_label(state.W, sparse), state.total[0], state.G.shape[1]
    W = W[:K] if isinstance(state, AdvisedFullState) else W[bandit.CERTIFIED * K :]
    return np.asarray((W - W.mean(axis=0)) * (t.step / t.square if t.square > TINY else 0.0))


def grown(settings: Settings, old: Any, new: Any, places: Integers, labels: bool, sparse: bool) -> None:
    """The weights of all learners, the mean of the certified ones for their new labels, and the precisions.

    Where features become too many for blocks, the diagonal goes on with the blocks' own.
    """
    W, was = (new.W.T, old.W.T) if sparse else (new.W, old.W)
    if labels:
        K, room = len(places), new.G.shape[1]
        fresh = np.setdiff1d(np.arange(room), places)
        for j in range(W.shape[0] // room):
            W[j * room + places] = was[j * K : (j + 1) * K]
        for j in (0,) if isinstance(settings, AdvisedFull) else (bandit.SIDE, bandit.CERTIFIED):
            W[j * room + fresh] = was[j * K : (j + 1) * K].mean(axis=0)
        if old.total[0].last != UNKNOWN:
            new.total[0].last = places[old.total[0].last]
        if isinstance(settings, AdvisedBandit):
            new.total[0].step = min(old.total[0].step, settings.first)
    else:
        W[:, places] = was
    if len(new.P):
        new.P[: len(old.P)] = old.P
    elif len(old.P):
        variances = np.diagonal(old.P, axis1=1, axis2=2).ravel()[: len(places)]
        new.A[places] = 1.0 / np.maximum(variances, 1e-300)
    else:
        new.A[places if not labels else slice(None)] = old.A


def check_state(settings: Settings, problem: Problem, state: Any) -> None:
    """Refuse a last label that is none."""
    if not UNKNOWN <= state.total[0].last < problem.n_classes:
        raise ValueError("the last right label is none")


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem,
    scale: float | None = None,
    reach: float | None = None,
    budget: float | None = None,
    guard: float | None = None,
    delay: int = 0,
) -> Settings:
    """Full information: σ = 2. Bandit: D = 20, θ = 2, c = ½. They served 34 data sets: change nothing.

    guard: with a caller's advice in every round, at most 1.1 times the caller's own mistakes and this many more.
    delay: bandit: so many answers may be missing at any time, and the certificate still holds.
    """
    K, is_bandit = problem.n_classes, problem.feedback is Feedback.BANDIT
    foreign = {"scale": scale} if is_bandit else {"reach": reach, "budget": budget, "delay": delay or None}
    for name, value in foreign.items():
        if value is not None:
            raise SettingError(f"{name}={value!r} has no meaning with {problem.feedback.word} feedback")
    limit = math.inf if guard is None else float(guard)
    if not limit >= 0.0:
        raise SettingError(f"guard={guard!r} must be a number of mistakes, at least 0")
    for name, value in (("scale", scale), ("reach", reach)):
        if value is not None and not 1e-100 <= value <= 1e100:
            raise SettingError(f"{name}={value!r} must be a positive number, of a size that can be squared")
    if not (0 <= delay < math.inf and delay == int(delay)):
        raise SettingError(f"delay={delay!r} must be a whole number of at least 0")
    if not is_bandit:
        return AdvisedFull(2.0 if scale is None else float(scale), limit)
    theta = 2.0 if budget is None else float(budget)
    if not 0.0 <= theta <= 1e100:
        raise SettingError(f"budget={budget!r} must be a number of at least 0")
    return AdvisedBandit(20.0 if reach is None else float(reach), theta, 0.5, limit, int(delay), 2 * LN2**2 / K)


def theorem(problem: Problem, settings: Settings) -> str:
    """Where the certificate comes from."""
    late = getattr(settings, "delay", 0)
    return "certificate of Advised Gaptron" + (f", {late} answers late" if late else "")


def remembers(settings: Settings) -> tuple[str, ...]:
    """The proof for late answers needs p̃ and a of the decision's own time; all else looks again."""
    return ("p", "a", "due") if isinstance(settings, AdvisedBandit) and settings.delay else ()


def late_proof(settings: Settings) -> bool:
    """With full information lateness is paid for by the sum of the gaps, whatever the order of the answers."""
    return isinstance(settings, AdvisedFull)


def certificate(settings: Settings, state: Any) -> Certificate:
    """C_T(U), known from the run.

    Full information: (‖U‖²X² + 25)/(2ε_T), and the sum of the surrogate gaps where late answers or a guard have made it
    positive. Bandit: c'‖U‖²X² + (‖U‖²X² + 10)/(2ε) + Λ_T + M + O - Ψ; the second term once a round was certified.
    """
    t = state.total[0]
    if isinstance(settings, AdvisedFull):
        return Certificate(max(float(t.gap), 0.0), float(t.step), math.sqrt(t.square), 1.0, False, 1 / full.PULL)
    certified = 1.0 / (2.0 * float(t.last_step)) if t.certified else 0.0
    whole = certified + 1.0 / (2.0 * float(t.side_step))
    apart = certified / whole / bandit.PULL
    free = float(t.missed + t.waiting - t.psi)
    return Certificate(float(t.level), 1.0 / (2.0 * whole), math.sqrt(t.square), 1.0, True, apart, free)


def advice(settings: Settings, state: Any) -> Advice:
    """Who is heard, and how the learner got on with its advisers so far."""
    t, called = state.total[0], bool(state.total[0].called)
    if isinstance(settings, AdvisedFull):
        names: tuple[str, ...] = full.EXPERTS
        copies, share = slice(full.LEARNERS, full.STICK), state.voice
        cost, discovery, pull = float(t.cost), None, full.PULL
        stickiness = log_odds(state.stay[0])
    else:
        names, copies = bandit.EXPERTS, slice(bandit.INSIDE, None)
        share = state.omega / state.omega[: None if called else bandit.INSIDE].sum()
        cost, pull = float(t.missed + t.waiting - t.psi), bandit.PULL
        discovery = float((1.0 + t.finds) / (len(state.hits) + t.tries))
        stickiness = log_odds(state.stay[0]) - max(log_odds(state.other[0]), 0.0)
    heard = dict(zip(names, map(float, share)))
    ahead = dict(zip(names, map(float, state.ahead)))
    if called:
        heard["caller"], ahead["caller"] = float(share[copies].sum()), float(t.lead)
    stickiness = float(min(max(stickiness, 0.0), MOST_STAY)) if t.last != UNKNOWN else 0.0
    return Advice(cost, heard, ahead, stickiness, discovery, float(1.0 - t.step * pull * t.moved))


def bound(problem: Problem, settings: Settings, comparator: Comparator) -> float:
    """What is known before the run: L_T(U) + the largest C_T(U).

    With full information C_T ≤ (‖U‖²X² + 25)·52.1, for every U on every path. Under bandit feedback, in expectation and
    for U fixed before the draws, it grows like √(KT), but from so far up that it says nothing below some 10⁵K rounds.
    The certificate is the smaller number.
    """
    if settings.guard < math.inf:
        raise NoBoundError("a guard follows the caller wherever it leads: what that costs is known only after the run")
    if isinstance(settings, AdvisedBandit) and settings.delay:
        raise NoBoundError("what late answers cost is known only after the run: give your own U, or read `certificate`")
    (X,) = problem.need("norm")
    N = (X * comparator.norm) ** 2
    if isinstance(settings, AdvisedFull):
        return comparator.loss + (N + 1 / full.PULL) / (2 * full.LEAST)
    K, T, D, apart = problem.n_classes, comparator.rounds, settings.reach, 1 / bandit.PULL
    level = largest_level(problem, settings, T)
    c = max(1 / (2 * settings.first), math.sqrt(K * T) / (2 * settings.pace * D), level / D**2)
    room = settings.budget * (D**2 + apart) * c
    side = max(1 / (4 * LN2**2), room / D**2)
    return comparator.loss + N * (c + side) + apart * c + room + level


def largest_level(problem: Problem, settings: AdvisedBandit, rounds: int) -> float:
    """Under bandit feedback Λ_T ≤ D²/(2e₁) + λ̄ + 2α̃cD√(T/K) on every path, e₁ = ln²2/(8K(1 + 300ρ²))."""
    K, D = problem.n_classes, settings.reach
    wide = 1 + 3 * bandit.REACH**2 * bandit.PULL
    alpha, early = 0.22 * (K - 1) * wide, LN2**2 / (8 * K * wide)
    most = 2 + bandit.PULL * bandit.REACH**2 * (1 + 3 / K)
    return D**2 / (2 * early) + most + 2 * alpha * settings.pace * D * math.sqrt(rounds / K)


algorithm(AdvisedFull, full.decide, full.learn, full.commit)
algorithm(AdvisedBandit, bandit.decide, bandit.learn, bandit.commit)
