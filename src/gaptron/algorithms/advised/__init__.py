"""Advised Gaptron: an ensemble of experts chooses the label, and a certificate bounds the mistakes.

This library, docs page "Advised Gaptron" (2026); it extends Frugal Gaptron, whose proof requires only q(y) ≥ ρ_y of a
label y. The rest of the distribution may go to any label, and goes to the one that an ensemble of experts prefers.
Feedback: full, bandit.   Cost: O(dK) a round, and where the kernel expert learns 65,536 multiplications more.   Nothing
to know in advance or to tune.

The experts are Newton softmaxes (`newton.py`): one learns from its whole past, the other, the tracker, keeps adapting.
For dense and encoded examples a third, the kernel expert (`kernel.py`), also sees features that are not linear in x.
Bandit feedback adds a one-against-all regression. Their input is x̃ = x/√n, n = max(‖x‖², mean of ‖x_s‖²).

    for t = 1, 2, ...
      1   observe x and the available labels A: everything below is over A;  X = max ‖x_s‖ so far
          w = ⟨W, x⟩ with W = -(ε/X²) Σ ĝ, the certified learner
      2   the experts predict f_1, ..., the caller may add f, the certified learner f_0 = softmax w.  Combined, with a
          bonus for the label that was true last, they give scores;  k̂ is their top label
          a = those scores, clipped and centred:  a feature of the certified learner, weight v = 1 - ερ² Σ ĝ_v
      3   z = w + v a,  p̃ = softmax z;  every label y gets the least q(y) that keeps its surrogate gap at most λ,
          with the second moment of the gradient in v;  the rest of q goes to k̂
          (labels that tie for k̂ share it)
      4   play y' ~ q
      5   update the certified learner, the weights of the experts, and the experts

                full information                                bandit feedback
      1   ε     min{e₀, max{σ²/(2H*), e₀/50}}                   min{e₀, cD/√(Kt), D²/(2Λ)}, never increasing
      2   scores  stacking: softmax Σ u_j L_j                   Bayes' rule: Σ ω_j f_j; labels never hit get a bonus;
                                                                then (1 - g) of that + g f_newton exp(0.3 s),
                                                                g = f_newton(none)·(1 - hit rate)², s of newton's scores
          a     without f_0, range 5                            ln of all together, range 10
      3         λ = 0                                           certified rounds: as above.  Exploiting rounds: q = e_k̂,
                                                                while their cost M + O - Ψ (mistakes, no feedback yet,
                                                                what hits prove) keeps to the budget θ(D² + 10)/(2ε);
                                                                after a reward in (0, 1), others by inverse gap to k̂
      5   ĝ     (p̃ - e_y)/ln 2, e_y is revealed                 (p̃ - (r/q(y'))·e_y')/ln 2, only in certified rounds
          H     += 1[k° = y] - q(y), k° without f_0

Where most feedback is "no", newton is the expert that says so, and the share g follows it beyond its weight. s is the
standard deviation of each score under newton's precision; predictions leave the bonuses out.
An exploiting round plays k̂ without exploration and is paid for by the budget; a certified round explores as much as the
certificate requires. For any experts, with full information on every path, for all U and v at once,
    Σ(1 - q_t(y_t)) ≤ L_T(U, v) + (‖U‖²X² + 25(v - 1)²)/(2ε_T),   L_T(U, v) = Σ ℓ_t(Ux_t + v a_t),  1/(2ε_T) ≤ 52.1:
with v = 0 this is a bound for linear rules, with U = 0 and v = 1 it is at most the base-2 log loss of the advice.
Under bandit feedback E[M_T] ≤ L_T(U) + E[C_T(U)] for U fixed before the draws, of order √(KT), with
    C_T(U) = c'X²‖U‖² + (‖U‖²X² + 10)/(2ε) + Λ_T + M - Ψ of the exploiting rounds   (second term: after the first
    certified round).

Where every round brings its own actions with features, the ensemble is that of `actions.py` (bandit) or
`actions_full.py`, with eight numbers per feature (`table.py`).

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

from gaptron.algorithms.advised import actions, actions_full, bandit, full, kernel, table
from gaptron.algorithms.advised.actions import AdvisedActions
from gaptron.algorithms.advised.actions_full import AdvisedActionsFull
from gaptron.algorithms.advised.bandit import AdvisedBandit
from gaptron.algorithms.advised.experts import COPIES, MAX_STICKINESS, TINY, log_odds
from gaptron.algorithms.advised.experts import NOTES as NOTES
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
    memory="4dK, bandit 6dK",
    regret_full="O(‖U‖²)",
    regret_bandit="O(‖U‖² √(KT))",
    advice=True,
    available=True,
    rewards=True,
    actions=True,
    growth=Growth(by_hand=("W", "P", "A", *kernel.TABLES, "u", "squares", "omega")),
    linear=False,
    single=("W", "A", "C", "U"),  # not P and B: their blocks are inverses, and small
)
EXPERTS = bandit.EXPERTS
Settings = AdvisedFull | AdvisedBandit | AdvisedActions | AdvisedActionsFull
MODULES = {AdvisedFull: full, AdvisedBandit: bandit, AdvisedActions: actions, AdvisedActionsFull: actions_full}
FULL, FOR_ACTIONS = (AdvisedFull, AdvisedActionsFull), (AdvisedActions, AdvisedActionsFull)


def _module(settings: Settings) -> Any:
    return MODULES[type(settings)]


def init(settings: Settings, problem: Problem, sparse: bool) -> Any:
    """The state before the first round."""
    return _module(settings).init(settings, problem, sparse)


def scratch(settings: Settings, problem: Problem, sparse: bool) -> Any:
    """The buffers of one caller."""
    return _module(settings).scratch(settings, problem, sparse)


def weights(state: Any, sparse: bool) -> Matrix:
    """The certified W at the last ε, centred over labels, without the weights of the experts."""
    t = state.total[0]
    if not hasattr(state, "G"):  # of actions
        return np.asarray(state.W[None, :, table.CERTIFIED] * (t.step / t.square if t.square > TINY else 0.0))
    W, K = by_label(state.W, sparse), state.G.shape[1]
    W = W[:K] if isinstance(state, AdvisedFullState) else W[bandit.CERTIFIED * K :]
    return np.asarray((W - W.mean(axis=0)) * (t.step / t.square if t.square > TINY else 0.0))


def grown(settings: Settings, old: Any, new: Any, places: Integers, labels: bool, sparse: bool) -> None:
    """Copy the weights of all learners and their precisions; new labels get the mean of the certified weights.

    Where there are now too many features for blocks, the diagonal continues with that of the blocks.
    """
    if isinstance(settings, FOR_ACTIONS):
        new.W[places] = old.W
        for name in {"omega", "u", "squares"} & set(new._fields):
            getattr(new, name)[:] = getattr(old, name)
        return
    W, old_W = (new.W.T, old.W.T) if sparse else (new.W, old.W)
    if labels:
        old_K, K = len(places), new.G.shape[1]
        added = np.setdiff1d(np.arange(K), places)
        for j in range(W.shape[0] // K):
            W[j * K + places] = old_W[j * old_K : (j + 1) * old_K]
        for j in (full.CERTIFIED,) if isinstance(settings, AdvisedFull) else (bandit.SIDE, bandit.CERTIFIED):
            W[j * K + added] = old_W[j * old_K : (j + 1) * old_K].mean(axis=0)
        if old.total[0].last_label != UNKNOWN:
            new.total[0].last_label = places[old.total[0].last_label]
        if isinstance(settings, AdvisedBandit):
            new.total[0].step = min(old.total[0].step, settings.first)
    else:
        W[:, places] = old_W
    if len(new.P):
        new.P[: len(old.P)] = old.P
    elif len(old.P):
        variances = np.diagonal(old.P, axis1=1, axis2=2).ravel()[: len(places)]
        new.A[places] = 1.0 / np.maximum(variances, 1e-300)
    else:
        new.A[places if not labels else slice(None)] = old.A
    kernel.grown(old, new, places, labels, sparse, old.total[0].rounds)
    _module(settings).copy_weights(old, new)


def check_state(settings: Settings, problem: Problem, state: Any) -> None:
    """Check that the last true label is a label, or UNKNOWN, and that knots are sorted."""
    if isinstance(settings, FOR_ACTIONS):
        table.check(state.W)
        return
    kernel.check_state(state)
    if not UNKNOWN <= state.total[0].last_label < problem.n_classes:
        raise ValueError(f"the last true label {state.total[0].last_label} is not one of {problem.n_classes} labels")


# --- theory -----------------------------------------------------------------------------------------------


def recommend(
    problem: Problem,
    scale: float | None = None,
    reach: float | None = None,
    budget: float | None = None,
    guard: float | None = None,
    delay: int = 0,
    kernel: bool = True,
) -> Settings:
    """Full information: σ = 2. Bandit: D = 20, θ = 2, c = ½. They were used on 34 data sets and need no tuning.

    Args:
        problem: the problem.
        scale: full information: σ; the larger, the tighter the certificate and the more mistakes.
        reach: bandit: D, the ‖U‖X that steps and budget are balanced for.
        budget: bandit: θ, what exploiting rounds may cost, relative to the certified ones.
        guard: with a caller's advice in every round, at most 1.1 times the caller's mistakes and this many more.
        delay: bandit: so many decisions may be without feedback at any time, and the certificate still holds.
        kernel: whether the kernel expert, which learns rules that are not linear, is among the experts, where the
            examples are dense or encoded from named features, and have at most 1024 columns. Not for actions.

    Returns:
        The settings.
    """
    K, is_bandit = problem.n_classes, problem.feedback is Feedback.BANDIT
    other = {"scale": scale} if is_bandit else {"reach": reach, "budget": budget, "delay": delay or None}
    for name, value in other.items():
        if value is not None:
            raise SettingError(f"{name}={value!r} does not apply to {problem.feedback.word} feedback: leave it out")
    if not isinstance(kernel, bool):
        raise SettingError(f"kernel={kernel!r} must be True or False")
    limit = math.inf if guard is None else float(guard)
    if not limit >= 0.0:
        raise SettingError(f"guard={guard!r} must be a number of mistakes, at least 0")
    for name, value in (("scale", scale), ("reach", reach)):
        if value is not None and not 1e-100 <= value <= 1e100:
            raise SettingError(f"{name}={value!r} must be a positive number from 1e-100 to 1e100")
    if not (0 <= delay < math.inf and delay == int(delay)):
        raise SettingError(f"delay={delay!r} must be a whole number of at least 0")
    if problem.actions and guard is not None:
        raise SettingError("guard needs the caller's advice, which actions with features do not take: leave it out")
    if not is_bandit:
        sigma = 2.0 if scale is None else float(scale)
        return AdvisedActionsFull(sigma) if problem.actions else AdvisedFull(sigma, limit, kernel)
    theta = 2.0 if budget is None else float(budget)
    if not 0.0 <= theta <= 1e100:
        raise SettingError(f"budget={budget!r} must be a number of at least 0")
    distance, first = 20.0 if reach is None else float(reach), 2 * LN2**2 / K
    if problem.actions:
        if delay:
            raise SettingError("delay has no theorem for actions with features: leave it out")
        return AdvisedActions(distance, theta, 0.5)
    return AdvisedBandit(distance, theta, 0.5, limit, int(delay), first, kernel)


def theorem(problem: Problem, settings: Settings) -> str:
    """The name of the certificate."""
    delay = getattr(settings, "delay", 0)
    return "certificate of Advised Gaptron" + (f", feedback up to {delay} rounds late" if delay else "")


def late_fields(settings: Settings) -> tuple[str, ...]:
    """The decision's own facts and, for the proof with delay, its p̃ and a; everything else is computed again."""
    if isinstance(settings, AdvisedActionsFull):
        return ()
    return ("decision", "p", "a", "late") if isinstance(settings, AdvisedBandit) and settings.delay else ("decision",)


def adopt_logged(settings: Settings, scratch: Any, propensity: float) -> None:
    """A decision that another policy drew with a propensity below 1 was not an exploiting one."""
    if propensity < 1.0 and not isinstance(settings, FULL):
        scratch.decision[0].exploiting = 0


def late_proof(settings: Settings) -> bool:
    """With full information the sum of the gaps pays for any delay, in any order of the feedback."""
    return isinstance(settings, FULL)


def certificate(settings: Settings, state: Any) -> Certificate:
    """C_T(U), known from the run.

    Full information: (‖U‖²X² + 25)/(2ε_T), and the sum of the surrogate gaps where late feedback or a guard has made it
    positive. Bandit: c'‖U‖²X² + (‖U‖²X² + 10)/(2ε) + Λ_T + M + O - Ψ; the second term after a certified round.
    """
    t = state.total[0]
    if isinstance(settings, FULL):
        return Certificate(max(float(t.gap), 0.0), float(t.step), math.sqrt(t.square), 1.0, False, 1 / full.V_RATE)
    last = t.step if isinstance(settings, AdvisedActions) else t.last_step
    certified = 1.0 / (2.0 * float(last)) if t.certified else 0.0
    whole = certified + 1.0 / (2.0 * float(t.side_step))
    apart = certified / whole / bandit.V_RATE
    cost = bandit.exploiting_cost(t)
    return Certificate(float(t.level), 1.0 / (2.0 * whole), math.sqrt(t.square), 1.0, True, apart, cost)


def advice(settings: Settings, state: Any) -> Advice:
    """The weights of the experts, the regret to each, and what the certificate cost."""
    t = state.total[0]
    called = not isinstance(settings, FOR_ACTIONS) and bool(t.with_caller)
    names: tuple[str, ...] = _module(settings).EXPERTS
    own = len(names) if isinstance(settings, FOR_ACTIONS) else kernel.n_experts(state.V, len(names))
    names, stickiness, discovery = names[:own], 0.0, None
    if isinstance(settings, FULL):
        copies, share = slice(own, own + COPIES), state.u
        cost, rate = float(t.cost), full.V_RATE
    else:
        copies = slice(own, own + COPIES + 1)
        share = state.omega / state.omega[: own + COPIES + 1 if called else own].sum()
        cost, rate = bandit.exploiting_cost(t), bandit.V_RATE
    if isinstance(settings, AdvisedFull):
        stickiness = log_odds(state.stay[0])
    elif isinstance(settings, AdvisedBandit):
        discovery = float((1.0 + t.finds) / (len(state.hits) + t.tries))
        stickiness = log_odds(state.stay[0]) - max(log_odds(state.other[0]), 0.0)
    expert_weights = dict(zip(names, map(float, share)))
    regret = dict(zip(names, map(float, state.regret)))
    if called:
        expert_weights["caller"], regret["caller"] = float(share[copies].sum()), float(t.caller_regret)
    repeated = not isinstance(settings, FOR_ACTIONS) and t.last_label != UNKNOWN
    stickiness = float(min(max(stickiness, 0.0), MAX_STICKINESS)) if repeated else 0.0
    return Advice(cost, expert_weights, regret, stickiness, discovery, float(1.0 - t.step * rate * t.v_gradient))


def bound(problem: Problem, settings: Settings, comparator: Comparator) -> float:
    """What is known before the run: L_T(U) + the largest C_T(U).

    With full information C_T ≤ (‖U‖²X² + 25)·52.1, for every U on every path. Under bandit feedback, in expectation and
    for U fixed before the draws, it grows like √(KT), with constants so large that it says nothing below about 10⁵K
    rounds. The certificate is the smaller number.
    """
    if not isinstance(settings, FOR_ACTIONS) and settings.guard < math.inf:
        raise NoBoundError("with guard=... the cost of following the caller is known after the run: read `certificate`")
    if isinstance(settings, AdvisedBandit) and settings.delay:
        raise NoBoundError(
            "with delay=... the cost of late feedback is known after the run: give your own U, or read `certificate`"
        )
    (X,) = problem.need("norm")
    N = (X * comparator.norm) ** 2
    if isinstance(settings, FULL):
        least = full.LEAST_STEP
        if isinstance(settings, AdvisedActionsFull):
            N, least = 4 * N, actions_full.LEAST_STEP  # Δ ≤ 2X
        return comparator.loss + (N + 1 / full.V_RATE) / (2 * least)
    if isinstance(settings, AdvisedActions):
        return actions.bound(settings, 4 * N, comparator)
    K, T, D, apart = problem.n_classes, comparator.rounds, settings.reach, 1 / bandit.V_RATE
    level = largest_level(problem, settings, T)
    c = max(1 / (2 * settings.first), math.sqrt(K * T) / (2 * settings.pace * D), level / D**2)
    budget = settings.budget * (D**2 + apart) * c
    side = max(1 / (4 * LN2**2), budget / D**2)
    return comparator.loss + N * (c + side) + apart * c + budget + level


def largest_level(problem: Problem, settings: AdvisedBandit, rounds: int) -> float:
    """Under bandit feedback Λ_T ≤ D²/(2e₁) + λ̄ + 2α̃cD√(T/K) on every path, e₁ = ln²2/(8K(1 + 300ρ²))."""
    K, D = problem.n_classes, settings.reach
    wide = 1 + 3 * bandit.ADVICE_RANGE**2 * bandit.V_RATE
    alpha, early = 0.22 * (K - 1) * wide, LN2**2 / (8 * K * wide)
    most = 2 + bandit.V_RATE * bandit.ADVICE_RANGE**2 * (1 + 3 / K)
    return D**2 / (2 * early) + most + 2 * alpha * settings.pace * D * math.sqrt(rounds / K)


algorithm(AdvisedFull, full.decide, full.learn, full.commit)
algorithm(AdvisedBandit, bandit.decide, bandit.learn, bandit.commit)
algorithm(AdvisedActions, actions.decide, actions.learn, actions.commit)
algorithm(AdvisedActionsFull, actions_full.decide, actions_full.learn, actions_full.commit)
