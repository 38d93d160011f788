"""The result of an off-policy evaluation: estimates, diagnostics, warnings and a conclusion."""

from dataclasses import dataclass, field

import numpy as np

from gaptron.offpolicy.estimates import Estimate
from gaptron.types import Vector

FEW, HEAVY, OFF = 100, 0.1, 4.0  # warning limits: effective rounds, one round's share of the weight, standard errors
DETERMINISTIC = 0.5  # warn above this share of rounds whose label had propensity 0.99 or more
UNSUPPORTED = 1e-3  # ignore smaller shares of play on labels that the logger hardly ever played
SKEWED = 25.0  # a normal interval needs this many rounds, times the squared skewness (Cochran 1977, section 2.15)


@dataclass(frozen=True, eq=False)
class OffPolicyEstimate:
    """What a log says about a policy that did not make its decisions."""

    estimates: tuple[Estimate, ...]  # of the policy's mistakes per round
    proven: Estimate  # inverse propensity, with the interval of a confidence sequence
    logged: Estimate  # of the logged policy's mistakes in the same rounds
    level: float  # confidence level of every interval
    rounds: int  # of the log
    used: int  # rounds the estimates use: all, or in a replay those in which the learner played the logged label
    weights: Vector = field(repr=False)  # importance weights q(a)/p(a), one per round
    unsupported: float | None  # share of the policy's play on labels the logger hardly ever played; None: unknown
    skewness: float | None = None  # of w·m, where the log has no distribution to compute the variance from
    near_certain: float = 0.0  # share of rounds whose label had propensity 0.99 or more

    @property
    def effective_rounds(self) -> float:
        """Effective sample size (Σw)²/Σw², at most the rounds used."""
        return min(float(self.used), float(self.weights.sum() ** 2 / np.square(self.weights).sum()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the estimates."""
        reasons, w = [], self.weights
        if self.near_certain > DETERMINISTIC:
            reasons.append(
                f"the logger hardly explored: {self.near_certain:.0%} of its labels had propensity 0.99 or more, so "
                "the log says little about other labels; log with epsilon=0.02"
            )
        if self.effective_rounds < FEW:
            reasons.append(f"only {self.effective_rounds:.0f} effective rounds: the estimates may be far off")
        if w.max() > HEAVY * w.sum() and self.used == self.rounds > 1:
            reasons.append(
                f"one round has {w.max() / w.sum():.0%} of the total weight: the normal intervals are too narrow"
            )
        if any(estimate.low == estimate.high for estimate in self.estimates):
            reasons.append("all terms are equal, so a normal interval has no width: use the proven interval")
        if self.skewness is not None and SKEWED * self.skewness**2 > self.rounds:
            reasons.append(
                "a few rounds with large weights dominate the estimates, so the normal intervals may be too narrow: "
                "use the proven interval, or log the whole distribution"
            )
        if self._ignored > 0.0:
            reasons.append(
                f"{self._ignored:.1%} of the policy's play is on labels that the logger hardly ever played: "
                "the log says nothing about them"
            )
        elif self._wrong_propensities:
            reasons.append(
                f"the weights have mean {w.mean():.3f} instead of 1: the logged propensities are not those the labels "
                "were drawn with, or the policy plays labels that the logger never played"
            )
        return tuple(reasons)

    @property
    def conclusion(self) -> str:
        """Whether the policy is better or worse than the logged one, or what data would decide it."""
        policy, log = self.estimates[-1], self.logged
        if self.used < self.rounds:
            return f"a replay is not comparable with the log: compare it with other runs of {self.used:,} rounds"
        if self._ignored == 0.0 and self._wrong_propensities:
            return "inconclusive: the logged propensities seem to be wrong. Check how they were logged"
        numbers = f"{policy.mistakes:.2%} mistakes against {log.mistakes:.2%}"
        if self.effective_rounds < FEW:
            return (
                f"inconclusive: {numbers}, but there are only {self.effective_rounds:.0f} effective rounds. Use a log "
                "with more exploration"
            )
        gap, half_widths = log.mistakes - policy.mistakes, (log.high - log.low + policy.high - policy.low) / 2.0
        if abs(gap) <= half_widths + self._ignored:
            return f"inconclusive: {numbers}, and the intervals overlap. {self._rounds_needed(gap, half_widths)}"
        word = "better" if gap > 0.0 else "worse"
        proven = self.proven.high < log.low if gap > 0.0 else self.proven.low > log.high
        return f"{word} than the log: {numbers}" + (", also by the proven interval" if proven else "")

    def _rounds_needed(self, gap: float, half_widths: float) -> str:
        """How many rounds would separate the intervals, whose width falls with the root of the rounds."""
        margin = abs(gap) - self._ignored
        if margin <= 0.0 or half_widths**2 > 1000.0 * margin**2:
            return "A logger that plays more like this policy would help"
        rounds = self.rounds * (half_widths / margin) ** 2
        return f"About {float(f'{rounds:.1e}'):,.0f} such rounds would be enough if this difference is real"

    @property
    def _ignored(self) -> float:
        """The unsupported share of play, as far as it is known and matters."""
        return self.unsupported if self.unsupported is not None and self.unsupported > UNSUPPORTED else 0.0

    @property
    def _wrong_propensities(self) -> bool:
        error = float(self.weights.std()) / np.sqrt(len(self.weights))
        biased = abs(float(self.weights.mean()) - 1.0) > OFF * error + 1e-9
        return biased or self.proven.low > self.proven.high
