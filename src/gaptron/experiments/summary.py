"""Statistics of a comparison: errors, paired differences with intervals, slopes and rankings. The report draws them.

With a given seed every algorithm played the same examples in the same order with the same uniform draws. Runs are
therefore compared in pairs: the difference of two algorithms is taken seed by seed, and its interval is over seeds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import stats

from gaptron.errors import InputError
from gaptron.experiments.grouping import (
    Grid,
    Runs,
    StreamInfo,
    Variant,
    counts,
    error,
    group,
    mean_error,
    settings_text,
    variant_order,
)
from gaptron.experiments.store import latest
from gaptron.experiments.task import Result
from gaptron.types import Matrix

LEVEL = 0.95  # of every interval
FIT_FROM = 0.1  # slopes are fitted from this share of the rounds on


# --- numbers ------------------------------------------------------------------------------------------------


class Interval(NamedTuple):
    """A mean with its 95 % t interval, mean ± half_width."""

    mean: float
    half_width: float | None  # None for a single value, and for runs that are all the same
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside the interval."""
        return self.half_width is not None and abs(self.mean) > self.half_width


def interval(values: Iterable[float]) -> Interval:
    """Return the mean of the values with its t interval.

    Runs of a deterministic learner in the same order are one run: values that are all equal have no interval.
    """
    x = np.array(list(values), dtype=float)
    if not len(x):
        raise InputError("an interval needs at least one value")
    if (x == x[0]).all():
        return Interval(float(x[0]), None, len(x))
    spread = float(x.std(ddof=1)) / len(x) ** 0.5
    return Interval(float(x.mean()), float(stats.t.ppf((1 + LEVEL) / 2, len(x) - 1)) * spread, len(x))


class Slope(NamedTuple):
    """The exponent a in mistakes ~ roundsᵃ over the last nine tenths of the rounds."""

    value: float
    error: float | None  # standard error over seeds; None for one seed
    n: int


def exponent(rounds: Sequence[float], counts: Sequence[float]) -> float | None:
    """Fit log counts on log rounds by least squares, from a tenth of the rounds on; None for fewer than 3 points."""
    t, m = np.asarray(rounds, dtype=float), np.asarray(counts, dtype=float)
    later = (t >= FIT_FROM * t[-1]) & (m > 0)
    if later.sum() < 3:
        return None
    return float(np.polyfit(np.log(t[later]), np.log(m[later]), 1)[0])


class Standing(NamedTuple):
    """A variant's place in the ranking over all streams."""

    variant: Variant
    error: float  # mistakes per round: mean over seeds, then over streams
    behind: Interval | None  # its error minus the leader's, paired; None without a common seed
    wins: int  # streams on which no other variant makes fewer mistakes
    streams: int  # number of streams played
    runs: int
    missing: int  # runs that other variants have and this one does not
    microseconds: float | None  # per round, median over streams


@dataclass(frozen=True)
class Summary:
    """All runs under one feedback."""

    feedback: str
    streams: tuple[StreamInfo, ...]
    variants: tuple[Variant, ...]
    runs: dict[tuple[Variant, StreamInfo], Runs]
    grids: dict[tuple[Variant, StreamInfo], Grid]
    failed: tuple[Result, ...]

    # --- names ---

    @cached_property
    def names(self) -> dict[Variant, str]:
        """The name of each variant, as short as keeps them distinct."""
        return {variant: self._name(variant) for variant in self.variants}

    def _name(self, variant: Variant) -> str:
        family = [other for other in self.variants if other.algorithm == variant.algorithm]
        parts = [variant.algorithm]
        if len({other.loss for other in family}) > 1:
            parts.append(variant.loss)
        if len({other.settings for other in family if other.loss == variant.loss}) > 1:
            parts.append(settings_text(variant.settings) or "as published")
        grids = {other.tuned for other in family if other.tuned and other.untuned == variant.untuned}
        if variant.tuned:
            parts.append(f"tuned ({variant.tuned})" if len(grids) > 1 else "tuned")
        return " ".join(parts)

    @cached_property
    def stream_names(self) -> dict[StreamInfo, str]:
        """The name of each stream, with a distinguishing property where several share a name."""
        return {
            stream: _stream_name(stream, [other for other in self.streams if other.name == stream.name])
            for stream in self.streams
        }

    # --- one stream ---

    def variants_on(self, stream: StreamInfo) -> list[Variant]:
        """Return the variants that played a stream, the fewest mistakes first."""
        played = [variant for variant in self.variants if (variant, stream) in self.runs]
        return sorted(played, key=lambda variant: (mean_error(self.runs[variant, stream]), bool(variant.tuned)))

    def error(self, variant: Variant, stream: StreamInfo) -> Interval:
        """Return the mistakes per round, with an interval over seeds."""
        return interval(error(result) for result in self.runs[variant, stream].values())

    def difference(self, variant: Variant, other: Variant, stream: StreamInfo) -> Interval | None:
        """Return the error of one variant minus that of the other, paired by seed; None without a common seed."""
        a, b = self.runs[variant, stream], self.runs[other, stream]
        pairs = [error(a[seed]) - error(b[seed]) for seed in sorted(a.keys() & b.keys())]
        return interval(pairs) if pairs else None

    def share_of_best(self, variant: Variant, stream: StreamInfo) -> Interval | None:
        """Return the reward as a share of the best labels' reward; None where that is unknown."""
        runs = self.runs[variant, stream].values()
        known = [r.reward / r.best_reward for r in runs if r.reward is not None and r.best_reward]
        return interval(known) if known else None

    def slope(self, variant: Variant, stream: StreamInfo) -> Slope | None:
        """Return the growth exponent of the mistakes, fitted per seed; None if there are too few mistakes to fit."""
        slopes = []
        for result in self.runs[variant, stream].values():
            curve = counts(result)
            value = exponent(*curve) if curve else None
            if value is None:
                return None
            slopes.append(value)
        spread = float(np.std(slopes, ddof=1)) / len(slopes) ** 0.5 if len(slopes) > 1 else None
        return Slope(float(np.mean(slopes)), spread, len(slopes))

    def bound(self, variant: Variant, stream: StreamInfo) -> tuple[float, float] | None:
        """Return mean expected mistakes and mean bound, over the seeds that have a bound; None if none has."""
        pairs = [
            (result.expected_mistakes, result.bound["value"])
            for result in self.runs[variant, stream].values()
            if result.bound and result.expected_mistakes is not None
        ]
        if not pairs:
            return None
        expected, value = np.mean(np.array(pairs, dtype=float), axis=0)
        return float(expected), float(value)

    def microseconds(self, variant: Variant, stream: StreamInfo) -> float | None:
        """Return the microseconds per round, the median over seeds."""
        known = [1e6 * r.seconds / r.rounds for r in self.runs[variant, stream].values() if r.seconds and r.rounds]
        return float(np.median(known)) if known else None

    # --- all streams ---

    def over_streams(self, variant: Variant, other: Variant) -> Interval | None:
        """Return the paired difference, averaged over the streams both played, with an interval over common seeds.

        The interval is for new seeds on these streams, not for new streams; see `ranks` for those.
        """
        shared = [a for a in self.streams if (variant, a) in self.runs and (other, a) in self.runs]
        seeds = [self.runs[variant, a].keys() & self.runs[other, a].keys() for a in shared]
        shared, seeds = [a for a, s in zip(shared, seeds) if s], [s for s in seeds if s]
        if not shared:
            return None
        common = sorted(set.intersection(*map(set, seeds)))
        if not common:  # no seed is common to all streams: a mean without an interval
            differences = [self.difference(variant, other, stream) for stream in shared]
            return Interval(float(np.mean([d.mean for d in differences if d])), None, 1)
        return interval(
            float(np.mean([error(self.runs[variant, a][seed]) - error(self.runs[other, a][seed]) for a in shared]))
            for seed in common
        )

    @cached_property
    def ranking(self) -> list[Standing]:
        """The variants by mean error over streams; those with missing streams come last."""
        seeds = {a: set().union(*(self.runs[e, a].keys() for e in self.variants_on(a))) for a in self.streams}
        best = {a: min(mean_error(self.runs[e, a]) for e in self.variants_on(a)) for a in self.streams}
        standings = []
        for variant in self.variants:
            played = [a for a in self.streams if (variant, a) in self.runs]
            if not played:
                continue
            errors = {a: mean_error(self.runs[variant, a]) for a in played}
            times = [t for t in (self.microseconds(variant, a) for a in played) if t is not None]
            runs = sum(len(self.runs[variant, a]) for a in played)
            standings.append(
                Standing(
                    variant,
                    float(np.mean(list(errors.values()))),
                    None,
                    sum(errors[a] == best[a] for a in played),
                    len(played),
                    runs,
                    sum(map(len, seeds.values())) - runs,
                    float(np.median(times)) if times else None,
                )
            )
        standings.sort(key=lambda s: (-s.streams, s.error, bool(s.variant.tuned), self.names[s.variant]))
        return [s._replace(behind=self.over_streams(s.variant, standings[0].variant)) for s in standings]

    @cached_property
    def best_variants(self) -> list[Variant]:
        """One variant per algorithm and loss, by rank: tuned if it has a grid, otherwise as published."""
        tuned = {variant.untuned for variant in self.variants if variant.tuned}
        return [s.variant for s in self.ranking if s.variant.tuned or s.variant not in tuned]

    def table(self, variants: Sequence[Variant]) -> Matrix:
        """Return mean errors, a row per stream and a column per variant, for the streams that all of them played."""
        shared = [a for a in self.streams if all((variant, a) in self.runs for variant in variants)]
        rows = [[mean_error(self.runs[variant, a]) for variant in variants] for a in shared]
        return np.array(rows).reshape(len(shared), len(variants))


# --- summaries by feedback --------------------------------------------------------------------------


def summarize(results: Iterable[Result]) -> list[Summary]:
    """Summarize results by feedback: full information first, then bandit, then graphs. Repeated tasks count once."""
    kept = latest(results)
    feedbacks = sorted({result.feedback for result in kept}, key=lambda word: (_order(word), word))
    return [_summary(word, [r for r in kept if r.feedback == word]) for word in feedbacks]


def _order(feedback: str) -> int:
    return {"full": 0, "bandit": 1}.get(feedback, 2)


def _summary(feedback: str, results: list[Result]) -> Summary:
    runs, grids = group(results)
    return Summary(
        feedback,
        tuple(sorted({stream for _, stream in runs}, key=lambda a: (a.name.lower(), a))),
        tuple(sorted({variant for variant, _ in runs}, key=variant_order)),
        runs,
        grids,
        tuple(result for result in results if not result.ok),
    )


def _stream_name(stream: StreamInfo, namesakes: list[StreamInfo]) -> str:
    descriptions = (
        lambda a: "",
        lambda a: f"T={a.rounds:,}",
        lambda a: f"K={a.n_classes}",
        lambda a: f"T={a.rounds:,}, K={a.n_classes}",
        lambda a: f"d={a.n_features:,}",
        lambda a: a.data[:8],
    )
    distinct = (d for d in descriptions if len({d(a) for a in namesakes}) == len(namesakes))
    detail = next(distinct, descriptions[-1])(stream)
    return f"{stream.name} ({detail})" if detail else stream.name
