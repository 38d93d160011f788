"""Group the results of a comparison by variant and stream, and select the best setting of each grid.

With a given seed every algorithm played the same examples in the same order with the same uniform draws. Runs are
therefore kept by seed, and two algorithms are compared seed by seed.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import InputError
from gaptron.experiments.task import GRID, Result

Settings = tuple[tuple[str, Any], ...]  # sorted by name, so that equal settings compare equal


class StreamInfo(NamedTuple):
    """One prepared stream: runs on the same one can be compared."""

    name: str
    data: str
    rounds: int
    n_classes: int
    n_features: int


class Variant(NamedTuple):
    """One row of a ranking: an algorithm with a setting, or with the best setting of its grid in hindsight."""

    algorithm: str
    loss: str
    settings: Settings
    tuned: str = ""  # the grid's parameters, if the setting was chosen in hindsight

    @property
    def untuned(self) -> "Variant":
        """The same variant without its grid."""
        return self._replace(tuned="")


Runs = dict[int, Result]  # by seed


class Candidate(NamedTuple):
    """A setting that was tried, and its runs."""

    value: tuple[Any, ...]  # of the grid's parameters
    published: bool
    runs: Runs


class Grid(NamedTuple):
    """All settings of one algorithm that were tried on one stream."""

    candidates: list[Candidate]

    @property
    def best(self) -> Candidate:
        """The setting with the smallest mean error, among those played with the most seeds."""
        most = max(len(candidate.runs) for candidate in self.candidates)
        return min((c for c in self.candidates if len(c.runs) == most), key=lambda c: mean_error(c.runs))


class Groups(NamedTuple):
    """Runs under one feedback, by variant and stream."""

    runs: dict[tuple[Variant, StreamInfo], Runs]
    grids: dict[tuple[Variant, StreamInfo], Grid]


def group(results: Iterable[Result]) -> Groups:
    """Group the successful results, which must all have the same feedback."""
    published: dict[tuple[Variant, StreamInfo], Runs] = {}
    tried: dict[tuple[Variant, StreamInfo], dict[tuple[Any, ...], Runs]] = {}
    for result in results:
        if not result.ok:
            continue
        stream = _stream_info(result)
        if result.role == GRID:
            variant, value = _grid_variant(result)
            tried.setdefault((variant, stream), {}).setdefault(value, {})[result.seed] = result
        else:
            variant = Variant(result.algorithm, result.loss, _sorted(result.settings))
            published.setdefault((variant, stream), {})[result.seed] = result
    grids = {}
    for (variant, stream), settings in tried.items():
        candidates = [Candidate(value, False, runs) for value, runs in settings.items()]
        if (variant.untuned, stream) in published:
            runs = published[variant.untuned, stream]
            used = next(iter(runs.values())).used
            value = tuple(used.get(name) for name in variant.tuned.split(","))
            candidates.append(Candidate(value, True, runs))
        grids[variant, stream] = Grid(sorted(candidates, key=lambda c: tuple(map(_sortable, c.value))))
    return Groups(published | {pair: grid.best.runs for pair, grid in grids.items()}, grids)


# --- one result ----------------------------------------------------------------------------------------------


def error(result: Result) -> float:
    """Return the mistakes per round; with full information the expected ones, which do not vary with the draws."""
    count = result.expected_mistakes if result.feedback == "full" else result.mistakes
    if count is None or not result.rounds:
        raise InputError(f"the result of {result.algorithm} on {result.stream}, seed {result.seed}, has no mistakes")
    return count / result.rounds


def counts(result: Result) -> tuple[list[float], list[float]] | None:
    """Return round numbers and the mistakes up to each, counted as in `error`; None without a curve."""
    if not result.curve:
        return None
    return result.curve["rounds"], result.curve["expected" if result.feedback == "full" else "mistakes"]


def settings_text(settings: Settings) -> str:
    """Format settings as name=value pairs."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in settings
    )


def _stream_info(result: Result) -> StreamInfo:
    return StreamInfo(
        result.stream, result.data or "", result.rounds or 0, result.n_classes or 0, result.n_features or 0
    )


def _grid_variant(result: Result) -> tuple[Variant, tuple[Any, ...]]:
    if not result.tuned:
        raise InputError(f"a grid result of {result.algorithm} does not name the setting it tries")
    names = result.tuned.split(",")
    rest = {name: value for name, value in result.settings.items() if name not in names}
    value = tuple(result.settings.get(name) for name in names)
    return Variant(result.algorithm, result.loss, _sorted(rest), result.tuned), value


def _sorted(settings: dict[str, Any]) -> Settings:
    return tuple((name, _frozen(settings[name])) for name in sorted(settings))


def _frozen(value: Any) -> Any:
    """Convert JSON's lists to tuples, which are hashable."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def variant_order(variant: Variant) -> tuple[Any, ...]:
    """Return the sort key of a variant: alphabetical, then by the values of its settings."""
    settings = [(name, _sortable(value)) for name, value in variant.settings]
    return variant.algorithm, variant.loss, settings, variant.tuned


def _sortable(value: Any) -> tuple[int, float, str]:
    """Return a sort key: None, then numbers, then strings."""
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, (int, float)):
        return 1, float(value), ""
    return 2, 0.0, str(value)


def mean_error(runs: Runs) -> float:
    """Return the mean error over seeds."""
    return float(np.mean([error(result) for result in runs.values()]))
