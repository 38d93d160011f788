"""How another learner would have done, judged by decisions that were logged. Three questions, three verbs:

    judge    a learner that does not learn any more: how often would it be wrong? (`judge_policy`: no learner of ours)
    teach    a learner that is taught by every logged round: how often would it have been wrong just before each?
    replay   a learner that begins from scratch and decides for itself: how would that have gone?

`judge` and `teach` weigh each round by how much more, or less, likely the learner was to play the logged label than
the logger was. `replay` keeps a round with the chance that the learner would have played the logged label, thinned so
that the logger's preferences cancel: what is kept is a run as it could have happened, only shorter (Li, Chu, Langford &
Wang 2011, where the log is uniform).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.logged import estimates as by
from gaptron.logged.confidence_sequence import proved_interval
from gaptron.logged.estimates import Estimate, check_level, drawable_variance, guesses
from gaptron.logged.log import Log
from gaptron.logged.teaching import check_labels, check_teachable, learn_round, would_play
from gaptron.types import Matrix, Vector

Progress = Callable[[int], None]
SELDOM, RARE = 10, 0.01  # out of reach: due fewer than 10 times in the log, and less than once in 100 rounds
REPLAY = 0x4E91A7  # sets the draws of a replay apart from those of learners
FEW, HEAVY, OFF = 100, 0.1, 4.0  # when to warn: effective rounds, one round's share of the weight, standard errors
TOO_SURE = 0.5  # the share of rounds that could hardly have gone another way
UNSEEN = 1e-3  # and the share of play on labels the log could not show
SKEWED = 25.0  # a normal interval needs this many rounds, times the square of the skewness (Cochran 1977, section 2.15)


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a log says of a learner."""

    estimates: tuple[Estimate, ...]  # of the learner's mistakes a round
    sure: Estimate  # with an interval that is proved
    logged: Estimate  # the log's own mistakes, on the same rounds
    level: float  # of confidence of every interval
    rounds: int  # judged by
    used: int  # of them kept: all, or in a replay those that the learner could have played itself
    weights: Vector = field(repr=False)  # q(a)/p(a), a round each
    out_of_reach: float | None  # how much of its play falls on labels the log could not show; None: not known
    skewness: float | None = None  # of w·m, where nothing but these terms says how much they vary
    certain: float = 0.0  # share of rounds whose label was all but certain to be played

    @property
    def effective(self) -> float:
        """(Σw)²/Σw², or the rounds of a replay: about how many rounds of its own the learner is judged by."""
        return min(float(self.used), float(self.weights.sum() ** 2 / np.square(self.weights).sum()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the estimates."""
        reasons, w = [], self.weights
        if self.certain > TOO_SURE:
            reasons.append(
                f"the log is too sure to judge by: {self.certain:.0%} of its labels were all but certain to be played, "
                "so that little is known of others; log with control=0.02"
            )
        if self.effective < FEW:
            reasons.append(f"only {self.effective:.0f} effective rounds: the estimates may be far off")
        if w.max() > HEAVY * w.sum() and self.used == self.rounds > 1:
            reasons.append(
                f"one round carries {w.max() / w.sum():.0%} of the weight: the normal intervals are too narrow"
            )
        if any(estimate.low == estimate.high for estimate in self.estimates):
            reasons.append("all terms are equal, so that a normal interval has no width: read the sure one")
        if self.skewness is not None and SKEWED * self.skewness**2 > self.rounds:
            reasons.append(
                "few rounds with heavy weights decide the estimates, so that the normal intervals may be too narrow: "
                "read the sure one, or log the whole distribution"
            )
        if self._unseen > 0.0:
            reasons.append(
                f"{self._unseen:.1%} of the learner's play falls on labels the logger hardly ever played: "
                "nothing is known of those"
            )
        elif self._wrong_probabilities:
            reasons.append(
                f"the weights have mean {w.mean():.3f}, not 1: the logged probabilities are not those the labels were "
                "drawn with, or the learner plays labels the logger never did"
            )
        return tuple(reasons)

    @property
    def conclusion(self) -> str:
        """Better than the log, worse, or cannot tell, in words, and what would tell."""
        learner, log = self.estimates[-1], self.logged
        if self.used < self.rounds:
            return f"no comparison with the log: compare with other runs of {self.used:,} rounds"
        if self._unseen == 0.0 and self._wrong_probabilities:
            return "cannot tell: the logged probabilities seem to be wrong. Check how they were logged"
        numbers = f"{learner.mistakes:.2%} mistakes against {log.mistakes:.2%}"
        if self.effective < FEW:
            return (
                f"cannot tell: {numbers}, but the log is worth only {self.effective:.0f} rounds of this learner. "
                "A log of a more random logger would tell"
            )
        gap, half_widths = log.mistakes - learner.mistakes, (log.high - log.low + learner.high - learner.low) / 2.0
        if abs(gap) <= half_widths + self._unseen:
            return f"cannot tell: {numbers}, and the intervals overlap. {self._what_would_tell(gap, half_widths)}"
        word = "better" if gap > 0.0 else "worse"
        proved = self.sure.high < log.low if gap > 0.0 else self.sure.low > log.high
        return f"{word} than the log: {numbers}" + (", also by the sure interval" if proved else "")

    def _what_would_tell(self, gap: float, half_widths: float) -> str:
        """Intervals narrow with the root of the rounds."""
        room = abs(gap) - self._unseen
        if room <= 0.0 or half_widths**2 > 1000.0 * room**2:
            return "A log of a logger that plays more like this learner would tell more"
        rounds = self.rounds * (half_widths / room) ** 2
        return f"About {float(f'{rounds:.1e}'):,.0f} such rounds would tell, if this difference is real"

    @property
    def _unseen(self) -> float:
        """How much of the learner's play nothing is known of, as far as the log can say and where it matters."""
        return self.out_of_reach if self.out_of_reach is not None and self.out_of_reach > UNSEEN else 0.0

    @property
    def _wrong_probabilities(self) -> bool:
        error = float(self.weights.std()) / np.sqrt(len(self.weights))
        astray = abs(float(self.weights.mean()) - 1.0) > OFF * error + 1e-9
        return astray or self.sure.low > self.sure.high


def judge(learner: Learner, log: Log, *, level: float = 0.95) -> Verdict:
    """A learner as it is, frozen. It must not have learned from this log."""
    check_level(level)
    check_labels(learner, log)
    return _weigh(log, learner.distribution(log.X, among=log.among), level)


def judge_policy(log: Log, *, level: float = 0.95) -> Verdict:
    """A policy of your own, whose probabilities the log carries: `open_log(path, column=...)` or `log.with_policy`.

    They must not depend on the answers of this log. Where only the chance of the label played is known there is no
    doubly robust estimate, which needs that of every label.
    """
    check_level(level)
    if log.policy is None:
        raise InputError(f"{log.name}: it carries no policy: open_log(path, column=...), or log.with_policy(...)")
    if not log.n_rounds:
        raise InputError(f"{log.name}: this part of the log holds no decisions")
    if log.policy.shape[1] > 1:
        return _weigh(log, log.policy, level)
    weights: Vector = log.policy[:, 0] / log.probability
    _check_some_weight(log, weights)
    mistakes = log.mistakes
    return Verdict(
        (by.inverse_propensity(weights, mistakes, level), by.self_normalised(weights, mistakes, level)),
        proved_interval(weights, mistakes, level),
        by.on_policy(mistakes, level),
        level,
        log.n_rounds,
        log.n_rounds,
        weights,
        None,
        _skewness(weights * mistakes),
        log.certain,
    )


def teach(learner: Learner, log: Log, *, level: float = 0.95, progress: Progress | None = None) -> Verdict:
    """A learner that is taught by the log: it learns from every round, with the probability logged, judged before.

    What is estimated is the mean over the rounds of the mistakes of what it would have played, given the log so far.
    The learner has learned afterwards; go on with `judge` on later rounds, or another log.
    """
    check_level(level)
    check_teachable(learner, log)
    play = np.empty((log.n_rounds, log.n_classes))
    for t in range(log.n_rounds):
        play[t] = would_play(learner, log, t)
        learn_round(learner, log, t, log.probability[t])
        if progress is not None:
            progress(1)
    return _weigh(log, play, level)


def replay(
    learner: Learner, log: Log, *, level: float = 0.95, seed: int = 0, progress: Progress | None = None
) -> Verdict:
    """A run of the learner's own, out of rounds the log happens to hold the answers for.

    A round is kept with probability q(a)·p_min/p(a), and then learned from as the learner's own. If rows and answers
    do not depend on time, what is kept has the law of a run of the learner. About p_min·T rounds are kept: 1/K of a
    uniform log.
    """
    check_level(level)
    if seed < 0:
        raise SettingError(f"seed={seed!r} must not be negative")
    check_teachable(learner, log)
    # Not default_rng(seed): a logger of the same seed drew its labels with those very numbers.
    rng, least = np.random.default_rng([seed, REPLAY]), log.least
    play, kept = np.empty((log.n_rounds, log.n_classes)), []
    for t, u in enumerate(rng.random(log.n_rounds)):
        play[t] = would_play(learner, log, t)
        code = log.codes[t]
        if u < play[t, code] * least / log.probability[t]:
            learn_round(learner, log, t, play[t, code])
            kept.append(t)
        if progress is not None:
            progress(1)
    if not kept:
        raise InputError(
            f"{log.name}: no round could be replayed, as the least probability in it is {least:g}: "
            "teach the learner instead (--way taught), which uses every round"
        )
    mistakes = log.mistakes[kept]
    return Verdict(
        (by.on_policy(mistakes, level)._replace(name="replay"),),
        proved_interval(np.ones(len(kept)), mistakes, level),
        by.on_policy(log.mistakes, level),
        level,
        log.n_rounds,
        len(kept),
        _weights(log, play),
        _out_of_reach(log, play),
        certain=log.certain,
    )


def _weigh(log: Log, play: Matrix, level: float) -> Verdict:
    mistakes = log.mistakes
    weights = _weights(log, play)
    _check_some_weight(log, weights)
    return Verdict(
        estimate_all(log, play, weights, 1.0 - guesses(log), level),
        proved_interval(weights, mistakes, level),
        by.on_policy(mistakes, level),
        level,
        log.n_rounds,
        log.n_rounds,
        weights,
        _out_of_reach(log, play),
        _skewness(weights * mistakes) if log.distribution is None else None,
        log.certain,
    )


def _check_some_weight(log: Log, weights: Vector) -> None:
    if not weights.any():
        raise InputError(
            f"{log.name}: the learner would have played none of the labels logged: this log cannot judge it"
        )


def estimate_all(log: Log, play: Matrix, weights: Vector, costs: Matrix, level: float) -> tuple[Estimate, ...]:
    """The three estimates, given a guess of the cost of every label in every round."""
    mistakes = log.mistakes
    expected: Vector = (play * costs).sum(axis=1)

    def variance(costs: Matrix, baseline: float | Matrix) -> float:
        return 0.0 if log.distribution is None else drawable_variance(play, log.distribution, costs, baseline)

    guessed = costs[np.arange(log.n_rounds), log.codes]
    doubly_robust = by.doubly_robust(weights, mistakes, guessed, expected, level, variance(costs, costs))
    # Guesses that say more mistakes than this learner can make would widen the other intervals for nothing.
    costs = costs * min(1.0, doubly_robust.high / max(float(expected.mean()), 1e-300))
    ratio = float((weights * mistakes).sum() / weights.sum())
    return (
        by.inverse_propensity(weights, mistakes, level, variance(costs, 0.0)),
        by.self_normalised(weights, mistakes, level, variance(costs, ratio)),
        doubly_robust,
    )


def _skewness(terms: Vector) -> float:
    centred = terms - terms.mean()
    deviation = float(np.sqrt(np.square(centred).mean()))
    return 0.0 if deviation == 0.0 else float((centred**3).mean()) / deviation**3


def _weights(log: Log, play: Matrix) -> Vector:
    weights: Vector = play[np.arange(log.n_rounds), log.codes] / log.probability
    return weights


def _out_of_reach(log: Log, play: Matrix) -> float | None:
    if log.distribution is None:
        return None
    least = min(SELDOM / log.n_rounds, RARE)
    return float(play[log.distribution < least].sum() / log.n_rounds)
