"""Which column of a table is the label."""

from collections.abc import Sequence

from gaptron.errors import StreamError

Column = str | int
"""A column by its name, or by its number from 0 (from the end if negative)."""

_USUAL = ("y", "label", "class", "target")


def label_column(source: str, names: Sequence[str], label: Column | None) -> int:
    """The number of the label column; by default one with a usual name, else the last."""
    if label is None:
        lower = [name.strip().lower() for name in names]
        return next((lower.index(name) for name in _USUAL if name in lower), len(names) - 1)
    if label in names:
        return names.index(str(label))
    try:
        return range(len(names))[int(label)]
    except (ValueError, IndexError):
        raise StreamError(source, f"label={label!r} is none of the columns {', '.join(names)}") from None
