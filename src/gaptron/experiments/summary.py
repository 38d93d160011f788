"""What the records of a comparison say: who errs least, by how much, how sure. Numbers only; the report draws them.

Every algorithm saw the same rows in the same order with the same uniform draws at a given seed, so runs are compared
in pairs: the difference of two algorithms is taken seed by seed, and its interval is over seeds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from gaptron.errors import InputError
from gaptron.experiments.record import GRID, Record
from gaptron.types import Matrix

LEVEL = 0.95  # of every interval
LATER = 0.1  # slopes are fitted from this share of the rounds on

Settings = tuple[tuple[str, Any], ...]  # in the order of their names, so that equal ones are equal


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


# --- who and where ------------------------------------------------------------------------------------------


class Arena(NamedTuple):
    """One stream as it was prepared: what runs must share to be compared."""

    stream: str
    data: str
    rounds: int
    n_classes: int
    n_features: int


class Entry(NamedTuple):
    """One line of a ranking: an algorithm at a setting, or at the best of its grid in hindsight."""

    algorithm: str
    loss: str
    settings: Settings
    tuned: str = ""  # the grid's parameter, if the setting was chosen by looking at the results

    @property
    def bare(self) -> "Entry":
        """The same without its grid."""
        return self._replace(tuned="")


Runs = dict[int, Record]  # by seed


class Candidate(NamedTuple):
    """A setting that was tried, and its runs."""

    value: tuple[Any, ...]  # of the grid's parameters, () where the published setting says nothing of them
    published: bool
    runs: Runs


class Grid(NamedTuple):
    """All that was tried of one algorithm on one stream."""

    candidates: list[Candidate]

    @property
    def best(self) -> Candidate:
        """The least mean error over seeds, among the settings that were played on the most seeds."""
        most = max(len(candidate.runs) for candidate in self.candidates)
        return min((c for c in self.candidates if len(c.runs) == most), key=lambda c: _mean(c.runs))


class Standing(NamedTuple):
    """An entry's place over all streams."""

    entry: Entry
    error: float  # mistakes a round: mean over seeds, then over streams
    behind: Interval | None  # its error minus the leader's, paired; None: no pair
    wins: int  # streams on which nobody has fewer mistakes
    streams: int  # played, of those of the field
    runs: int
    missing: int  # runs others have and it has not
    microseconds: float | None  # a round, median over streams


@dataclass(frozen=True)
class Field:
    """All runs under one feedback."""

    feedback: str
    arenas: tuple[Arena, ...]
    entries: tuple[Entry, ...]
    runs: dict[tuple[Entry, Arena], Runs]
    grids: dict[tuple[Entry, Arena], Grid]
    failed: tuple[Record, ...]

    # --- names ---

    @cached_property
    def names(self) -> dict[Entry, str]:
        """What to call each entry: as short as tells them apart."""
        return {entry: self._name(entry) for entry in self.entries}

    def _name(self, entry: Entry) -> str:
        family = [other for other in self.entries if other.algorithm == entry.algorithm]
        words = [entry.algorithm]
        if len({other.loss for other in family}) > 1:
            words.append(entry.loss)
        if len({other.settings for other in family if other.loss == entry.loss}) > 1:
            words.append(said(entry.settings) or "as published")
        grids = {other.tuned for other in family if other.tuned and other.bare == entry.bare}
        if entry.tuned:
            words.append(f"tuned ({entry.tuned})" if len(grids) > 1 else "tuned")
        return " ".join(words)

    @cached_property
    def places(self) -> dict[Arena, str]:
        """What to call each stream: its name, with what sets it apart if several bear it."""
        return {arena: _place(arena, [a for a in self.arenas if a.stream == arena.stream]) for arena in self.arenas}

    # --- one stream ---

    def played(self, arena: Arena) -> list[Entry]:
        """The entries on a stream, the fewest mistakes first."""
        there = [entry for entry in self.entries if (entry, arena) in self.runs]
        return sorted(there, key=lambda entry: (_mean(self.runs[entry, arena]), bool(entry.tuned)))

    def error(self, entry: Entry, arena: Arena) -> Interval:
        """Mistakes a round, over seeds."""
        return interval(error(record) for record in self.runs[entry, arena].values())

    def difference(self, entry: Entry, other: Entry, arena: Arena) -> Interval | None:
        """The error of one minus that of the other, seed by seed; None if no seed has both."""
        a, b = self.runs[entry, arena], self.runs[other, arena]
        pairs = [error(a[seed]) - error(b[seed]) for seed in sorted(a.keys() & b.keys())]
        return interval(pairs) if pairs else None

    def slope(self, entry: Entry, arena: Arena) -> Slope | None:
        """How mistakes grow with rounds: fitted seed by seed; None where too few mistakes are there to fit."""
        found = []
        for record in self.runs[entry, arena].values():
            curve = counts(record)
            value = exponent(*curve) if curve else None
            if value is None:
                return None
            found.append(value)
        spread = float(np.std(found, ddof=1)) / len(found) ** 0.5 if len(found) > 1 else None
        return Slope(float(np.mean(found)), spread, len(found))

    def bound(self, entry: Entry, arena: Arena) -> tuple[float, float] | None:
        """Mean expected mistakes and mean bound, over the seeds that have a bound; None if none has."""
        pairs = [
            (record.expected_mistakes, record.bound["value"])
            for record in self.runs[entry, arena].values()
            if record.bound and record.expected_mistakes is not None
        ]
        if not pairs:
            return None
        expected, value = np.mean(np.array(pairs, dtype=float), axis=0)
        return float(expected), float(value)

    def microseconds(self, entry: Entry, arena: Arena) -> float | None:
        """Of playing, a round: the median over seeds."""
        known = [1e6 * r.seconds / r.rounds for r in self.runs[entry, arena].values() if r.seconds and r.rounds]
        return float(np.median(known)) if known else None

    # --- all streams ---

    def over_streams(self, entry: Entry, other: Entry) -> Interval | None:
        """The paired difference averaged over the streams both played, then a t interval over the seeds common to all.

        It speaks of these streams and new seeds, not of new streams; `ranks` does that.
        """
        shared = [a for a in self.arenas if (entry, a) in self.runs and (other, a) in self.runs]
        seeds = [self.runs[entry, a].keys() & self.runs[other, a].keys() for a in shared]
        shared, seeds = [a for a, s in zip(shared, seeds) if s], [s for s in seeds if s]
        if not shared:
            return None
        common = sorted(set.intersection(*map(set, seeds)))
        if not common:  # streams were played on other seeds: a mean, no interval
            found = [self.difference(entry, other, arena) for arena in shared]
            return Interval(float(np.mean([d.mean for d in found if d])), None, 1)
        return interval(
            float(np.mean([error(self.runs[entry, a][seed]) - error(self.runs[other, a][seed]) for a in shared]))
            for seed in common
        )

    @cached_property
    def ranking(self) -> list[Standing]:
        """The entries by mean error over streams; those that lack streams come last."""
        most = {a: set().union(*(self.runs[e, a].keys() for e in self.played(a))) for a in self.arenas}
        best = {a: min(_mean(self.runs[e, a]) for e in self.played(a)) for a in self.arenas}
        standings = []
        for entry in self.entries:
            there = [a for a in self.arenas if (entry, a) in self.runs]
            if not there:
                continue
            errors = {a: _mean(self.runs[entry, a]) for a in there}
            times = [t for t in (self.microseconds(entry, a) for a in there) if t is not None]
            runs = sum(len(self.runs[entry, a]) for a in there)
            standings.append(
                Standing(
                    entry,
                    float(np.mean(list(errors.values()))),
                    None,
                    sum(errors[a] == best[a] for a in there),
                    len(there),
                    runs,
                    sum(map(len, most.values())) - runs,
                    float(np.median(times)) if times else None,
                )
            )
        standings.sort(key=lambda s: (-s.streams, s.error, bool(s.entry.tuned), self.names[s.entry]))
        return [s._replace(behind=self.over_streams(s.entry, standings[0].entry)) for s in standings]

    @cached_property
    def at_their_best(self) -> list[Entry]:
        """One line an algorithm and loss: tuned where it has a grid, as published where it has none. By rank."""
        tuned = {entry.bare for entry in self.entries if entry.tuned}
        return [s.entry for s in self.ranking if s.entry.tuned or s.entry not in tuned]

    def table(self, entries: Sequence[Entry]) -> Matrix:
        """Mean errors, a row a stream and a column an entry; only streams that all of them played."""
        there = [a for a in self.arenas if all((entry, a) in self.runs for entry in entries)]
        rows = [[_mean(self.runs[entry, a]) for entry in entries] for a in there]
        return np.array(rows).reshape(len(there), len(entries))


# --- from records -------------------------------------------------------------------------------------------


def error(record: Record) -> float:
    """Mistakes a round. With full information the expected ones: they are exact, and free of the luck of the draws."""
    count = record.expected_mistakes if record.feedback == "full" else record.mistakes
    if count is None or not record.rounds:
        raise InputError(f"the record of {record.algorithm} on {record.stream}, seed {record.seed}, has no mistakes")
    return count / record.rounds


def counts(record: Record) -> tuple[list[float], list[float]] | None:
    """Rounds and the mistakes up to them, of the kind `error` counts."""
    if not record.curve:
        return None
    return record.curve["rounds"], record.curve["expected" if record.feedback == "full" else "mistakes"]


def said(settings: Settings) -> str:
    """Settings in words."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in settings
    )


def fields(records: Iterable[Record]) -> list[Field]:
    """The records by feedback: full information first, then bandit, then graphs."""
    latest: dict[str, Record] = {}
    for record in records:  # a task that failed and was tried again counts as it ended
        if record.ok or not (record.key in latest and latest[record.key].ok):
            latest[record.key] = record
    found = sorted({record.feedback for record in latest.values()}, key=lambda word: (_order(word), word))
    return [_field(word, [r for r in latest.values() if r.feedback == word]) for word in found]


def _order(feedback: str) -> int:
    return {"full": 0, "bandit": 1}.get(feedback, 2)


def _field(feedback: str, records: list[Record]) -> Field:
    published: dict[tuple[Entry, Arena], Runs] = {}
    tried: dict[tuple[Entry, Arena], dict[tuple[Any, ...], Runs]] = {}
    for record in records:
        if not record.ok:
            continue
        arena = _arena(record)
        if record.role == GRID:
            entry, value = _grid_entry(record)
            tried.setdefault((entry, arena), {}).setdefault(value, {})[record.seed] = record
        else:
            entry = Entry(record.algorithm, record.loss, _sorted(record.settings))
            published.setdefault((entry, arena), {})[record.seed] = record
    grids = {}
    for (entry, arena), settings in tried.items():
        candidates = [Candidate(value, False, runs) for value, runs in settings.items()]
        if (entry.bare, arena) in published:
            runs = published[entry.bare, arena]
            used = next(iter(runs.values())).used
            value = tuple(used.get(name) for name in entry.tuned.split(","))
            candidates.append(Candidate(value, True, runs))
        grids[entry, arena] = Grid(sorted(candidates, key=lambda c: tuple(map(_sortable, c.value))))
    runs_of = published | {place: grid.best.runs for place, grid in grids.items()}
    return Field(
        feedback,
        tuple(sorted({arena for _, arena in runs_of}, key=lambda a: (a.stream.lower(), a))),
        tuple(sorted({entry for entry, _ in runs_of}, key=_entry_order)),
        runs_of,
        grids,
        tuple(record for record in records if not record.ok),
    )


def _arena(record: Record) -> Arena:
    return Arena(record.stream, record.data or "", record.rounds or 0, record.n_classes or 0, record.n_features or 0)


def _grid_entry(record: Record) -> tuple[Entry, tuple[Any, ...]]:
    if not record.tuned:
        raise InputError(f"a grid record of {record.algorithm} does not say which setting it tries")
    names = record.tuned.split(",")
    rest = {name: value for name, value in record.settings.items() if name not in names}
    value = tuple(record.settings.get(name) for name in names)
    return Entry(record.algorithm, record.loss, _sorted(rest), record.tuned), value


def _sorted(settings: dict[str, Any]) -> Settings:
    return tuple((name, _frozen(settings[name])) for name in sorted(settings))


def _frozen(value: Any) -> Any:
    """JSON's lists as tuples, which can be compared and looked up."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _entry_order(entry: Entry) -> tuple[Any, ...]:
    return entry.algorithm, entry.loss, [(name, _sortable(value)) for name, value in entry.settings], entry.tuned


def _sortable(value: Any) -> tuple[int, float, str]:
    """Numbers in their order, words after them, nothing first."""
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, (int, float)):
        return 1, float(value), ""
    return 2, 0.0, str(value)


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


def _mean(runs: Runs) -> float:
    return float(np.mean([error(record) for record in runs.values()]))
