"""A table with one row per decision (CSV, TSV, Parquet): features, the label played, its propensity and its reward.

    country,hour,action,propensity,reward
    FR,14,mail,0.8,1
    DE,15,chat,0.1,0

All columns without a role are features by name.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import StreamError
from gaptron.offpolicy.log import Log
from gaptron.streams.actions.long_table import CellTable, read_cells
from gaptron.streams.columns import Column, check_unique, find_column
from gaptron.streams.source import Source
from gaptron.types import Vector

USUAL = {"action": ("action", "label"), "propensity": ("propensity", "probability"), "reward": ("reward",)}


class TableRoles(NamedTuple):
    """The columns that are not features, by name or number; None: the column with a usual name."""

    action: Column | None = None  # the label played
    propensity: Column | None = None
    reward: Column | None = None


def read(
    source: Source, format: str, roles: TableRoles, *, classes: Sequence[Any] | None = None, column: str | None = None
) -> Log:
    """Read a table; `format` is csv, tsv or parquet, `column` has the probability with which your policy agrees."""
    table = read_cells(source, format)
    check_unique(source.name, table.names)
    places = {role: _place(source.name, table.names, role, wanted) for role, wanted in roles._asdict().items()}
    if column is not None:
        places["probabilities"] = find_column(source.name, table.names, column, "probabilities")
    if len(set(places.values())) < len(places):
        raise StreamError(source.name, f"{', '.join(places)} must be different columns")
    labels = _labels(table, places["action"])
    rows = range(len(labels))
    numbers = {role: _numbers(table, at) for role, at in places.items() if role != "action"}
    features = [at for at in range(len(table.names)) if at not in places.values()]
    if not features:
        raise StreamError(source.name, "there is no column of features")
    log = Log.from_arrays(
        [{table.names[at]: table.cells[at][row] for at in features} for row in rows],
        labels,
        numbers["reward"],
        numbers["propensity"],
        classes=sorted(set(labels)) if classes is None else classes,
        name=source.name,
        error_at=table.error_at,
    )
    return log if column is None else log.with_policy(numbers["probabilities"])


def _place(source: str, names: list[str], role: str, wanted: Column | None) -> int:
    """Return the column with a role."""
    if wanted is not None:
        return find_column(source, names, wanted, role)
    lower = [name.strip().lower() for name in names]
    for name in USUAL[role]:
        if name in lower:
            return lower.index(name)
    meaning = {
        "action": "the label that was played",
        "propensity": "the probability with which it was drawn",
        "reward": "its reward, from 0 to 1",
    }[role]
    raise StreamError(source, f"give {role}=..., the column with {meaning}; columns: {', '.join(names)}")


def _labels(table: CellTable, at: int) -> list[Any]:
    """Return the labels of a column: whole numbers if all of them are, otherwise text."""
    cells = table.cells[at]
    for row, cell in enumerate(cells):
        if cell is None:
            raise table.error_at(row, f"column {table.names[at]}: there is no label")
    if all(isinstance(cell, float) and cell.is_integer() for cell in cells):
        return [int(cell) for cell in cells]
    return [cell if isinstance(cell, str) else f"{cell:g}" for cell in cells]


def _numbers(table: CellTable, at: int) -> Vector:
    for row, cell in enumerate(table.cells[at]):
        if not isinstance(cell, (float, bool)):
            found = "is missing" if cell is None else f"has {cell!r}, which is not a number"
            raise table.error_at(row, f"column {table.names[at]} {found}")
    return np.array(table.cells[at], dtype=np.float64)
