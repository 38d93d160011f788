"""Which columns of a table are not features: the label and, where they are named, the reward and the labels available.

A cell of the column of available labels holds those of its round, separated by |, as in mail|chat.
"""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from gaptron.errors import StreamError
from gaptron.streams.block import Available
from gaptron.streams.labels import distinct

Column = str | int
"""A column by its name, or by its number from 0 (from the end if negative)."""

USUAL_LABELS = ("y", "label", "class", "target")
BETWEEN = "|"  # available labels
LAST = "no header: the last column is taken for the label"
_SHOWN = 30  # columns that an error lists


class Columns(NamedTuple):
    """The columns that a user names; None: the label's is found, and the others are not there."""

    label: Column | None = None
    reward: Column | None = None
    available: Column | None = None

    @property
    def by_name(self) -> bool:
        """Is one of them given by a name, so that there must be a header?"""
        return any(isinstance(column, str) and not _is_whole(column) for column in self)


class Places(NamedTuple):
    """The numbers of these columns."""

    label: int
    reward: int | None = None
    available: int | None = None

    def features(self, columns: int) -> list[int]:
        """The numbers of the others."""
        return [at for at in range(columns) if at not in self]


def place(source: str, names: Sequence[str], columns: Columns, label: int | None = None) -> Places:
    """Where the columns are; `label`: the number of the label's, where it is known."""
    if label is None:
        label = label_column(source, names, columns.label)
    reward = None if columns.reward is None else column_at(source, names, columns.reward, "reward")
    available = None if columns.available is None else column_at(source, names, columns.available, "available")
    found = Places(label, reward, available)
    there = [at for at in found if at is not None]
    if len(set(there)) < len(there):
        raise StreamError(source, "label, reward and available must be three different columns: say which is the label")
    return found


def split(cell: Any) -> tuple[Any, ...]:
    """The available labels in a cell: a text, or a list of labels where the table can hold lists."""
    if isinstance(cell, str):
        return tuple(part.strip() for part in cell.split(BETWEEN) if part.strip())
    return tuple(cell) if isinstance(cell, (list, tuple)) else (cell,)


def available_in(column: Any) -> Available:
    """The available labels in an Arrow column of texts or lists."""
    import pyarrow as pa  # noqa: PLC0415

    if not pa.types.is_string(column.type):
        return Available(*distinct(map(split, column.to_pylist())))
    cells = column.combine_chunks().dictionary_encode()  # so that each text is split once
    groups, which = distinct(map(split, cells.dictionary.to_pylist()))
    return Available(groups, which[cells.indices.to_numpy()])


def label_column(source: str, names: Sequence[str], label: Column | None) -> int:
    """The number of the label column among names; by default one with a usual name."""
    if label is not None:
        return column_at(source, names, label, "label")
    at = usual_label(source, names)
    if at is None:
        raise StreamError(source, f"which column is the label? Say label=..., one of: {_listed(names)}")
    return at


def usual_label(source: str, names: Sequence[str]) -> int | None:
    """The number of the column that is called as labels are."""
    lower = [name.strip().lower() for name in names]
    usual = next((name for name in USUAL_LABELS if name in lower), None)
    return None if usual is None else _only(source, lower, usual)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def column_at(source: str, names: Sequence[str], column: Column, role: str) -> int:
    """The number of a column that a user names; `role` is what errors call it."""
    if column in names:
        return _only(source, names, str(column), role)
    try:
        return range(len(names))[int(column)]
    except (ValueError, IndexError):
        near = difflib.get_close_matches(str(column), names, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise StreamError(source, f"{role}={column!r} is none of the columns {_listed(names)}{hint}") from None


def _only(source: str, names: Sequence[str], name: str, role: str = "label") -> int:
    at = names.index(name)
    if name in names[at + 1 :]:
        again = names.index(name, at + 1)
        raise StreamError(
            source,
            f"columns {at} and {again} are both called {name}: say which is the {role} by its number, {role}={at}",
        )
    return at


def _is_whole(column: str) -> bool:
    return column.lstrip("+-").isdigit()
