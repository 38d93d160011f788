"""A table with one row per action (CSV, TSV, Parquet): the rows of a round follow each other and share its number.

    round,action,hour,topic,age,propensity,reward
    1,article-7,14,sport,3,,
    1,article-9,14,news,1,0.8,1
    2,article-7,15,sport,4,0.5,0

The columns round, action (the id; optional), propensity (or probability), reward, played and right have roles, under
these names or others that the caller gives. With a column `right`, it is 1 in the row of the right action. Otherwise
the action played is the row with 1 in the column `played` or, without that column, the only row with a reward; if there
is no column of propensities, the rewards are those of every action. A column that has one value in all rows of a round,
in every round, belongs to the context, unless the caller names those that do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.data.text_numbers import as_number
from gaptron.errors import StreamError
from gaptron.features.cells import Time
from gaptron.features.tables import Column as TableColumn
from gaptron.features.tables import Numbers, Texts, of_arrow
from gaptron.streams import csv_text, parquet
from gaptron.streams.actions.features import finite
from gaptron.streams.actions.ids import NO_IDS
from gaptron.streams.actions.rounds import PLAYED, REWARDS, RIGHT, NamedRounds, Round, RoundCollector, short_id
from gaptron.streams.columns import Column, check_unique, find_column
from gaptron.streams.raw_chunk import ErrorAt
from gaptron.streams.separator import SEPARATORS
from gaptron.streams.source import Source
from gaptron.types import Flags, Integers

USUAL = {
    "round": ("round",),
    "action": ("action",),
    "reward": ("reward",),
    "propensity": ("propensity", "probability"),
    "played": ("played",),
    "right": ("right",),
}


@dataclass(frozen=True)
class Roles:
    """The columns that are not features, by name or number. None: the column with the usual name, if there is one."""

    round: Column | None = None
    action: Column | None = None
    reward: Column | None = None
    propensity: Column | None = None
    played: Column | None = None
    right: Column | None = None
    context: Sequence[Column] | None = field(default=None)  # features of the context; None: found


class CellTable(NamedTuple):
    """A table in memory."""

    names: list[str]
    cells: list[list[Any]]  # of each column: numbers, texts and None
    error_at: ErrorAt


def read(source: Source, format: str, roles: Roles) -> NamedRounds:
    """Read a table; `format` is csv, tsv or parquet."""
    table = read_cells(source, format)
    check_unique(source.name, table.names)
    places = _places(source.name, table.names, roles)
    by_role = {role: table.cells[at] for role, at in places.items()}
    features = [at for at in range(len(table.names)) if at not in places.values()]
    starts, rows = _starts(table, by_role["round"])
    in_context = _context(source.name, table, features, starts, roles.context)
    named = [table.names[at] for at in in_context]
    of_actions = [at for at in features if at not in in_context]
    lines = _Lines(table, by_role)
    rounds = RoundCollector(source.name, table.error_at)
    for start, stop in pairwise([*starts.tolist(), rows]):
        context = {table.names[at]: table.cells[at][start] for at in in_context}
        actions = [
            (lines.action(row, row - start), {table.names[at]: table.cells[at][row] for at in of_actions})
            for row in range(start, stop)
        ]
        rounds.add(start, lines.round(start, stop, context, actions))
    notes = [f"columns of the context: {', '.join(named) or 'none'}"] if roles.context is None else []
    if "action" not in by_role:
        notes.append(NO_IDS)
    return rounds.stream(named="action" in by_role, notes=notes, context_columns=tuple(named))


class _Lines:
    """The roles of the rows of a table."""

    def __init__(self, table: CellTable, by_role: dict[str, list[Any]]) -> None:
        self._table, self._roles = table, by_role

    def action(self, row: int, position: int) -> Any:
        """Return the id of a row."""
        if "action" not in self._roles:
            return position
        value = self._roles["action"][row]
        if value is None:
            raise self._table.error_at(row, "this action has no id")
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def round(self, start: int, stop: int, context: dict[str, Any], actions: list[tuple[Any, dict[str, Any]]]) -> Round:
        """Return the round of some rows."""
        if "right" in self._roles:
            return Round(context, actions, RIGHT, self._only("right", self._marked("right", start, stop), start))
        if "reward" not in self._roles:
            raise self._table.error_at(start, "there is neither a column reward nor a column right: name it")
        rewards = [self._number("reward", row) for row in range(start, stop)]
        if "propensity" not in self._roles:
            missing = next((at for at, reward in enumerate(rewards) if reward is None), None)
            if missing is not None:
                raise self._table.error_at(
                    start + missing,
                    "this action has no reward, and there is no column of propensities: a log needs one, and otherwise "
                    "every action needs a reward",
                )
            return Round(context, actions, REWARDS, rewards=[reward or 0.0 for reward in rewards])
        if "played" in self._roles:
            flags = self._marked("played", start, stop)
        else:
            flags = [reward is not None for reward in rewards]
        played = self._only("played", flags, start)
        propensities = [self._number("propensity", row) for row in range(start, stop)]
        reward, propensity = rewards[played], propensities[played]
        for name, value in {"reward": reward, "propensity": propensity}.items():
            if value is None:
                raise self._table.error_at(start + played, f"the action played has no {name}")
        assert reward is not None and propensity is not None
        known = [value for value in propensities if value is not None]
        distribution = known if len(known) == len(propensities) else None
        return Round(context, actions, PLAYED, played, propensity, [reward], distribution)

    def _number(self, role: str, row: int) -> float | None:
        value = self._roles[role][row]
        if value is None or isinstance(value, float):
            return value
        raise self._table.error_at(row, f"column {role}: {short_id(value)} is not a number")

    def _marked(self, role: str, start: int, stop: int) -> list[bool]:
        """Whether each row has 1 or true in a column; no value is 0."""
        flags = []
        for row in range(start, stop):
            value = self._roles[role][row]
            if value not in (None, 0.0, 1.0, "true", "false"):
                raise self._table.error_at(row, f"column {role}: {short_id(value)} is neither 1 nor 0")
            flags.append(value in (1.0, "true"))
        return flags

    def _only(self, role: str, flags: list[bool], start: int) -> int:
        found = [at for at, flag in enumerate(flags) if flag]
        if len(found) == 1:
            return found[0]
        if found:
            raise self._table.error_at(
                start + found[1], f"a second action of its round is {role}: rounds need different numbers"
            )
        how = "" if role in self._roles else ": the action played is the one with a reward"
        raise self._table.error_at(start, f"no action of this round is {role}{how}")


# --- columns ------------------------------------------------------------------------------------------------


def _places(source: str, names: list[str], roles: Roles) -> dict[str, int]:
    """Find the columns that have a role."""
    lower, places = [name.strip().lower() for name in names], {}
    for role, usual in USUAL.items():
        wanted = getattr(roles, role)
        if wanted is not None:
            places[role] = find_column(source, names, wanted, role)
        else:
            name = next((name for name in usual if name in lower), None)
            if name is not None:
                places[role] = lower.index(name)
    if "round" not in places:
        find_column(source, names, "round", "round")  # raises the error that lists the columns
    if len(set(places.values())) < len(places):
        raise StreamError(source, f"{', '.join(places)} must be different columns: name them")
    return places


def _starts(table: CellTable, rounds: list[Any]) -> tuple[Integers, int]:
    """Return the first row of each round, and the number of rows."""
    starts, seen, last = [], set(), object()
    for row, value in enumerate(rounds):
        if value is None:
            raise table.error_at(row, "this action has no number of its round")
        if value != last:
            if value in seen:
                raise table.error_at(row, f"round {short_id(value)} appears again: sort the rows by round")
            seen.add(value)
            starts.append(row)
            last = value
    return np.array(starts, dtype=np.int64), len(rounds)


def _context(
    source: str, table: CellTable, features: list[int], starts: Integers, wanted: Sequence[Column] | None
) -> list[int]:
    """Find the columns of the context."""
    inside = np.ones(len(table.cells[0]), dtype=np.bool_)
    inside[starts] = False
    if wanted is None:
        if features and not inside.any():
            raise StreamError(
                source, "every round has a single row, so that columns of the context cannot be told: give context=..."
            )
        return [at for at in features if not (_changes(table.cells[at]) & inside).any()]
    found = [find_column(source, table.names, column, "context") for column in wanted]
    for at in found:
        if at not in features:
            raise StreamError(source, f"column {table.names[at]} has another role than context")
        changed = np.flatnonzero(_changes(table.cells[at]) & inside)
        if changed.size:
            raise table.error_at(
                int(changed[0]),
                f"column {table.names[at]} of the context differs from the row before, of the same round",
            )
    return found


def _changes(cells: list[Any]) -> Flags:
    """Whether each cell differs from the one before."""
    return np.array([True, *(one != other for one, other in pairwise(cells))], dtype=np.bool_)


# --- tables -------------------------------------------------------------------------------------------------


def read_cells(source: Source, format: str) -> CellTable:
    """Read all cells of a table; `format` is csv, tsv or parquet."""
    return _parquet(source) if format == "parquet" else _text(source, SEPARATORS[format])


def _text(source: Source, separator: str) -> CellTable:
    options = csv_text.CsvOptions(header=True, usual=separator, numeric=False, labelled=False)
    for chunk in csv_text.read(source, None, options, lambda chunk: chunk):
        return _cells(chunk.table(), chunk.text.error_at, text=True)
    raise StreamError(source.name, "contains no rounds")


def _parquet(source: Source) -> CellTable:
    for table, error_at in parquet.tables(source, None):
        return _cells(table, error_at, text=False)
    raise StreamError(source.name, "contains no rounds")


def _cells(table: Any, error_at: ErrorAt, *, text: bool) -> CellTable:
    columns = of_arrow(table, text=text).block(0, table.num_rows)
    return CellTable(list(columns), [_values(column) for column in columns.values()], error_at)


def _values(column: TableColumn) -> list[Any]:
    """Return the cells of a column: numbers if all its texts are numbers; None is missing."""
    found, codes = column.distinct()
    cells = [cell.text if isinstance(cell, Time) else cell for cell in found]
    if isinstance(column, Texts):
        numbers = [None if cell is None else as_number(str(cell)) for cell in cells]
        if all((number is None) == (cell is None) for number, cell in zip(numbers, cells)):
            cells = [finite(number) for number in numbers]
    elif isinstance(column, Numbers):
        cells = [float(cell) if isinstance(cell, int | float) else None for cell in cells]
    values: NDArray[Any] = np.array(cells, dtype=object)
    return list(values[codes])
