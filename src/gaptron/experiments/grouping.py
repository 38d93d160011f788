"""The results of a comparison in groups: which runs belong together, and which of a grid's settings was best.

Every algorithm saw the same rows in the same order with the same uniform draws at a given seed, so runs are kept by
seed: two algorithms are compared seed by seed.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import InputError
from gaptron.experiments.task import GRID, Result

Settings = tuple[tuple[str, Any], ...]  # in the order of their names, so that equal ones are equal


class Arena(NamedTuple):
    """One stream as it was prepared: what runs must share to be compared."""

    stream: str
    data: str
    rounds: int
    n_classes: int
    n_features: int


class Variant(NamedTuple):
    """One line of a ranking: an algorithm at a setting, or at the best of its grid in hindsight."""

    algorithm: str
    loss: str
    settings: Settings
    tuned: str = ""  # the grid's parameter, if the setting was chosen by looking at the results

    @property
    def bare(self) -> "Variant":
        """The same without its grid."""
        return self._replace(tuned="")


Runs = dict[int, Result]  # by seed


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
        return min((c for c in self.candidates if len(c.runs) == most), key=lambda c: mean_error(c.runs))


class Groups(NamedTuple):
    """Runs under one feedback, by who played and where."""

    runs: dict[tuple[Variant, Arena], Runs]
    grids: dict[tuple[Variant, Arena], Grid]


def group(results: Iterable[Result]) -> Groups:
    """Results that are ok, all of one feedback."""
    published: dict[tuple[Variant, Arena], Runs] = {}
    tried: dict[tuple[Variant, Arena], dict[tuple[Any, ...], Runs]] = {}
    for result in results:
        if not result.ok:
            continue
        arena = _arena(result)
        if result.role == GRID:
            variant, value = _grid_variant(result)
            tried.setdefault((variant, arena), {}).setdefault(value, {})[result.seed] = result
        else:
            variant = Variant(result.algorithm, result.loss, _sorted(result.settings))
            published.setdefault((variant, arena), {})[result.seed] = result
    grids = {}
    for (variant, arena), settings in tried.items():
        candidates = [Candidate(value, False, runs) for value, runs in settings.items()]
        if (variant.bare, arena) in published:
            runs = published[variant.bare, arena]
            used = next(iter(runs.values())).used
            value = tuple(used.get(name) for name in variant.tuned.split(","))
            candidates.append(Candidate(value, True, runs))
        grids[variant, arena] = Grid(sorted(candidates, key=lambda c: tuple(map(_sortable, c.value))))
    return Groups(published | {place: grid.best.runs for place, grid in grids.items()}, grids)


# --- one result ----------------------------------------------------------------------------------------------


def error(result: Result) -> float:
    """Mistakes a round. With full information the expected ones: they are exact, and free of the luck of the draws."""
    count = result.expected_mistakes if result.feedback == "full" else result.mistakes
    if count is None or not result.rounds:
        raise InputError(f"the result of {result.algorithm} on {result.stream}, seed {result.seed}, has no mistakes")
    return count / result.rounds


def counts(result: Result) -> tuple[list[float], list[float]] | None:
    """Rounds and the mistakes up to them, of the kind `error` counts."""
    if not result.curve:
        return None
    return result.curve["rounds"], result.curve["expected" if result.feedback == "full" else "mistakes"]


def settings_text(settings: Settings) -> str:
    """Settings in words."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in settings
    )


def _arena(result: Result) -> Arena:
    return Arena(result.stream, result.data or "", result.rounds or 0, result.n_classes or 0, result.n_features or 0)


def _grid_variant(result: Result) -> tuple[Variant, tuple[Any, ...]]:
    if not result.tuned:
        raise InputError(f"a grid result of {result.algorithm} does not say which setting it tries")
    names = result.tuned.split(",")
    rest = {name: value for name, value in result.settings.items() if name not in names}
    value = tuple(result.settings.get(name) for name in names)
    return Variant(result.algorithm, result.loss, _sorted(rest), result.tuned), value


def _sorted(settings: dict[str, Any]) -> Settings:
    return tuple((name, _frozen(settings[name])) for name in sorted(settings))


def _frozen(value: Any) -> Any:
    """JSON's lists as tuples, which can be compared and looked up."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def variant_order(variant: Variant) -> tuple[Any, ...]:
    """By the alphabet, then by the size of settings."""
    settings = [(name, _sortable(value)) for name, value in variant.settings]
    return variant.algorithm, variant.loss, settings, variant.tuned


def _sortable(value: Any) -> tuple[int, float, str]:
    """Numbers in their order, words after them, nothing first."""
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, (int, float)):
        return 1, float(value), ""
    return 2, 0.0, str(value)


def mean_error(runs: Runs) -> float:
    """The mean over seeds."""
    return float(np.mean([error(result) for result in runs.values()]))
