"""What the results of a comparison say: who errs least, by how much, how sure. Numbers only; the report draws them.

Every algorithm saw the same rows in the same order with the same uniform draws at a given seed, so runs are compared
in pairs: the difference of two algorithms is taken seed by seed, and its interval is over seeds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import stats

from gaptron.errors import InputError
from gaptron.experiments.grouping import (
    Arena,
    Grid,
    Runs,
    Variant,
    counts,
    error,
    group,
    mean_error,
    settings_text,
    variant_order,
)
from gaptron.experiments.task import Result
from gaptron.types import Matrix

LEVEL = 0.95  # of every interval
LATER = 0.1  # slopes are fitted from this share of the rounds on


# --- numbers ------------------------------------------------------------------------------------------------


class Interval(NamedTuple):
    """A mean and what it may be off by: mean ± half is the t interval at 95 %."""

    mean: float
    half: float | None  # None: one number alone says nothing of its spread
    n: int

    @property
    def clear(self) -> bool:
        """Whether zero lies outside."""
        return self.half is not None and abs(self.mean) > self.half


def interval(values: Iterable[float]) -> Interval:
    """The mean of the values with its t interval."""
    x = np.array(list(values), dtype=float)
    if not len(x):
        raise InputError("an interval needs at least one value")
    if len(x) == 1:
        return Interval(float(x[0]), None, 1)
    spread = float(x.std(ddof=1)) / len(x) ** 0.5
    return Interval(float(x.mean()), float(stats.t.ppf((1 + LEVEL) / 2, len(x) - 1)) * spread, len(x))


class Slope(NamedTuple):
    """The exponent a in mistakes ~ roundsᵃ over the later rounds."""

    value: float
    error: float | None  # standard error over seeds; None with one seed
    n: int


def exponent(rounds: Sequence[float], counts: Sequence[float]) -> float | None:
    """Least squares of log counts on log rounds, from a tenth of the rounds on; None with under three points."""
    t, m = np.asarray(rounds, dtype=float), np.asarray(counts, dtype=float)
    later = (t >= LATER * t[-1]) & (m > 0)
    if later.sum() < 3:
        return None
    return float(np.polyfit(np.log(t[later]), np.log(m[later]), 1)[0])


class Standing(NamedTuple):
    """A variant's place over all streams."""

    variant: Variant
    error: float  # mistakes a round: mean over seeds, then over streams
    behind: Interval | None  # its error minus the leader's, paired; None: no pair
    wins: int  # streams on which no other has fewer mistakes
    streams: int  # played, of those of the field
    runs: int
    missing: int  # runs others have and it has not
    microseconds: float | None  # a round, median over streams


@dataclass(frozen=True)
class Field:
    """All runs under one feedback."""

    feedback: str
    arenas: tuple[Arena, ...]
    variants: tuple[Variant, ...]
    runs: dict[tuple[Variant, Arena], Runs]
    grids: dict[tuple[Variant, Arena], Grid]
    failed: tuple[Result, ...]

    # --- names ---

    @cached_property
    def names(self) -> dict[Variant, str]:
        """What to call each variant: as short as tells them apart."""
        return {variant: self._name(variant) for variant in self.variants}

    def _name(self, variant: Variant) -> str:
        family = [other for other in self.variants if other.algorithm == variant.algorithm]
        words = [variant.algorithm]
        if len({other.loss for other in family}) > 1:
            words.append(variant.loss)
        if len({other.settings for other in family if other.loss == variant.loss}) > 1:
            words.append(settings_text(variant.settings) or "as published")
        grids = {other.tuned for other in family if other.tuned and other.bare == variant.bare}
        if variant.tuned:
            words.append(f"tuned ({variant.tuned})" if len(grids) > 1 else "tuned")
        return " ".join(words)

    @cached_property
    def places(self) -> dict[Arena, str]:
        """What to call each stream: its name, with what sets it apart if several bear it."""
        return {arena: _place(arena, [a for a in self.arenas if a.stream == arena.stream]) for arena in self.arenas}

    # --- one stream ---

    def played(self, arena: Arena) -> list[Variant]:
        """The variants on a stream, the fewest mistakes first."""
        there = [variant for variant in self.variants if (variant, arena) in self.runs]
        return sorted(there, key=lambda variant: (mean_error(self.runs[variant, arena]), bool(variant.tuned)))

    def error(self, variant: Variant, arena: Arena) -> Interval:
        """Mistakes a round, over seeds."""
        return interval(error(result) for result in self.runs[variant, arena].values())

    def difference(self, variant: Variant, other: Variant, arena: Arena) -> Interval | None:
        """The error of one minus that of the other, seed by seed; None if no seed has both."""
        a, b = self.runs[variant, arena], self.runs[other, arena]
        pairs = [error(a[seed]) - error(b[seed]) for seed in sorted(a.keys() & b.keys())]
        return interval(pairs) if pairs else None

    def share_of_best(self, variant: Variant, arena: Arena) -> Interval | None:
        """What was earned, as a share of what the best labels would have earned; None where that is not known."""
        runs = self.runs[variant, arena].values()
        known = [r.reward / r.best_reward for r in runs if r.reward is not None and r.best_reward]
        return interval(known) if known else None

    def slope(self, variant: Variant, arena: Arena) -> Slope | None:
        """How mistakes grow with rounds: fitted seed by seed; None where too few mistakes are there to fit."""
        slopes = []
        for result in self.runs[variant, arena].values():
            curve = counts(result)
            value = exponent(*curve) if curve else None
            if value is None:
                return None
            slopes.append(value)
        spread = float(np.std(slopes, ddof=1)) / len(slopes) ** 0.5 if len(slopes) > 1 else None
        return Slope(float(np.mean(slopes)), spread, len(slopes))

    def bound(self, variant: Variant, arena: Arena) -> tuple[float, float] | None:
        """Mean expected mistakes and mean bound, over the seeds that have a bound; None if none has."""
        pairs = [
            (result.expected_mistakes, result.bound["value"])
            for result in self.runs[variant, arena].values()
            if result.bound and result.expected_mistakes is not None
        ]
        if not pairs:
            return None
        expected, value = np.mean(np.array(pairs, dtype=float), axis=0)
        return float(expected), float(value)

    def microseconds(self, variant: Variant, arena: Arena) -> float | None:
        """Of playing, a round: the median over seeds."""
        known = [1e6 * r.seconds / r.rounds for r in self.runs[variant, arena].values() if r.seconds and r.rounds]
        return float(np.median(known)) if known else None

    # --- all streams ---

    def over_streams(self, variant: Variant, other: Variant) -> Interval | None:
        """The paired difference averaged over the streams both played, then a t interval over the seeds common to all.

        It speaks of these streams and new seeds, not of new streams; `ranks` does that.
        """
        shared = [a for a in self.arenas if (variant, a) in self.runs and (other, a) in self.runs]
        seeds = [self.runs[variant, a].keys() & self.runs[other, a].keys() for a in shared]
        shared, seeds = [a for a, s in zip(shared, seeds) if s], [s for s in seeds if s]
        if not shared:
            return None
        common = sorted(set.intersection(*map(set, seeds)))
        if not common:  # streams were played on other seeds: a mean, no interval
            differences = [self.difference(variant, other, arena) for arena in shared]
            return Interval(float(np.mean([d.mean for d in differences if d])), None, 1)
        return interval(
            float(np.mean([error(self.runs[variant, a][seed]) - error(self.runs[other, a][seed]) for a in shared]))
            for seed in common
        )

    @cached_property
    def ranking(self) -> list[Standing]:
        """The variants by mean error over streams; those that lack streams come last."""
        most = {a: set().union(*(self.runs[e, a].keys() for e in self.played(a))) for a in self.arenas}
        best = {a: min(mean_error(self.runs[e, a]) for e in self.played(a)) for a in self.arenas}
        standings = []
        for variant in self.variants:
            there = [a for a in self.arenas if (variant, a) in self.runs]
            if not there:
                continue
            errors = {a: mean_error(self.runs[variant, a]) for a in there}
            times = [t for t in (self.microseconds(variant, a) for a in there) if t is not None]
            runs = sum(len(self.runs[variant, a]) for a in there)
            standings.append(
                Standing(
                    variant,
                    float(np.mean(list(errors.values()))),
                    None,
                    sum(errors[a] == best[a] for a in there),
                    len(there),
                    runs,
                    sum(map(len, most.values())) - runs,
                    float(np.median(times)) if times else None,
                )
            )
        standings.sort(key=lambda s: (-s.streams, s.error, bool(s.variant.tuned), self.names[s.variant]))
        return [s._replace(behind=self.over_streams(s.variant, standings[0].variant)) for s in standings]

    @cached_property
    def at_their_best(self) -> list[Variant]:
        """One line an algorithm and loss: tuned where it has a grid, as published where it has none. By rank."""
        tuned = {variant.bare for variant in self.variants if variant.tuned}
        return [s.variant for s in self.ranking if s.variant.tuned or s.variant not in tuned]

    def table(self, variants: Sequence[Variant]) -> Matrix:
        """Mean errors, a row a stream and a column a variant; only streams that all of them played."""
        there = [a for a in self.arenas if all((variant, a) in self.runs for variant in variants)]
        rows = [[mean_error(self.runs[variant, a]) for variant in variants] for a in there]
        return np.array(rows).reshape(len(there), len(variants))


# --- the standings of each feedback --------------------------------------------------------------------------


def fields(results: Iterable[Result]) -> list[Field]:
    """The results by feedback: full information first, then bandit, then graphs."""
    latest: dict[str, Result] = {}
    for result in results:  # a task that failed and was tried again counts as it ended
        if result.ok or not (result.key in latest and latest[result.key].ok):
            latest[result.key] = result
    feedbacks = sorted({result.feedback for result in latest.values()}, key=lambda word: (_order(word), word))
    return [_field(word, [r for r in latest.values() if r.feedback == word]) for word in feedbacks]


def _order(feedback: str) -> int:
    return {"full": 0, "bandit": 1}.get(feedback, 2)


def _field(feedback: str, results: list[Result]) -> Field:
    runs, grids = group(results)
    return Field(
        feedback,
        tuple(sorted({arena for _, arena in runs}, key=lambda a: (a.stream.lower(), a))),
        tuple(sorted({variant for variant, _ in runs}, key=variant_order)),
        runs,
        grids,
        tuple(result for result in results if not result.ok),
    )


def _place(arena: Arena, namesakes: list[Arena]) -> str:
    ways = (
        lambda a: "",
        lambda a: f"T={a.rounds:,}",
        lambda a: f"K={a.n_classes}",
        lambda a: f"T={a.rounds:,}, K={a.n_classes}",
        lambda a: f"d={a.n_features:,}",
        lambda a: a.data[:8],
    )
    way = next((way for way in ways if len({way(a) for a in namesakes}) == len(namesakes)), ways[-1])
    return f"{arena.stream} ({way(arena)})" if way(arena) else arena.stream
