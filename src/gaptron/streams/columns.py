"""Columns of a table with a special role: the label and, where the user names them, the reward and available labels.

A cell of the column of available labels lists the labels of its round, separated by |, as in mail|chat.
"""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from gaptron.errors import StreamError

Column = str | int
"""A column by its name, or by its number from 0 (from the end if negative)."""

USUAL_LABELS = ("y", "label", "class", "target")
SEPARATOR = "|"  # between available labels
LABEL_ASSUMED = "no header: the last column is used as the label"
_MAX_LISTED = 30  # columns that an error lists


class Columns(NamedTuple):
    """The columns that a user names. None: the label's column is detected; the others do not exist."""

    label: Column | None = None
    reward: Column | None = None
    available: Column | None = None

    @property
    def by_name(self) -> bool:
        """Is one of them given by name? The file must then have a header."""
        return any(isinstance(column, str) and not _is_whole(column) for column in self)


class Places(NamedTuple):
    """The numbers of these columns in a file."""

    label: int | None = None
    reward: int | None = None
    available: int | None = None

    def features(self, n_columns: int) -> list[int]:
        """Return the numbers of the other columns."""
        return [at for at in range(n_columns) if at not in self]


def locate(source: str, names: Sequence[str], columns: Columns, label: int | None = None) -> Places:
    """Find the columns among `names`. `label` is the number of the label's column, where it is known."""
    if label is None:
        label = label_column(source, names, columns.label)
    reward = None if columns.reward is None else find_column(source, names, columns.reward, "reward")
    available = None if columns.available is None else find_column(source, names, columns.available, "available")
    places = Places(label, reward, available)
    used = [at for at in places if at is not None]
    if len(set(used)) < len(used):
        raise StreamError(
            source, "label, reward and available must be three different columns: name the label's column"
        )
    return places


def assign_roles(
    source: str, names: Sequence[str], columns: Columns, labelled: bool, label: int | None = None
) -> tuple[Places, list[int]]:
    """Return the places of the columns to read, and the numbers of the features.

    A file read without labels need not have the columns, and only its available labels are read.
    """
    if labelled:
        places = locate(source, names, columns, label)
        return places, places.features(len(names))
    existing = {role: names.index(str(name)) for role, name in columns._asdict().items() if name in names}
    places = Places(available=existing.get("available"))
    return places, [at for at in range(len(names)) if at not in existing.values()]


def check_unique(source: str, names: Sequence[str]) -> None:
    """Raise an error if two columns have the same name."""
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise StreamError(source, f"two columns are named {twice}: rename one of them")


def split_available(cell: Any) -> tuple[Any, ...]:
    """Return the available labels in a cell: text, or a list of labels where the format has lists."""
    if isinstance(cell, str):
        return tuple(label.strip() for label in cell.split(SEPARATOR) if label.strip())
    return tuple(cell) if isinstance(cell, (list, tuple)) else (cell,)


def label_column(source: str, names: Sequence[str], label: Column | None) -> int:
    """Return the number of the label's column; by default the one with a usual name."""
    if label is not None:
        return find_column(source, names, label, "label")
    at = usual_label_column(source, names)
    if at is None:
        raise StreamError(source, f"no column is named like a label: choose one with label=... from {_listed(names)}")
    return at


def usual_label_column(source: str, names: Sequence[str]) -> int | None:
    """Return the number of the column with a usual name for labels, None if there is none."""
    lower = [name.strip().lower() for name in names]
    usual = next((name for name in USUAL_LABELS if name in lower), None)
    return None if usual is None else _unique(source, lower, usual)


def find_column(source: str, names: Sequence[str], column: Column, role: str) -> int:
    """Return the number of a column that a user names; errors call it by its `role`."""
    if column in names:
        return _unique(source, names, str(column), role)
    try:
        return range(len(names))[int(column)]
    except (ValueError, IndexError):
        near = difflib.get_close_matches(str(column), names, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise StreamError(source, f"{role}={column!r} is not one of the columns {_listed(names)}{hint}") from None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_LISTED]) + (", ..." if len(names) > _MAX_LISTED else "")


def _unique(source: str, names: Sequence[str], name: str, role: str = "label") -> int:
    at = names.index(name)
    if name in names[at + 1 :]:
        again = names.index(name, at + 1)
        raise StreamError(
            source,
            f"columns {at} and {again} are both named {name}: choose the {role} by its number, {role}={at}",
        )
    return at


def _is_whole(column: str) -> bool:
    return column.lstrip("+-").isdigit()
