"""Which column of a table is the label."""

from collections.abc import Sequence

from gaptron.errors import StreamError

Column = str | int
"""A column by its name, or by its number from 0 (from the end if negative)."""

USUAL_LABELS = ("y", "label", "class", "target")
_SHOWN = 20  # columns that an error lists


def label_column(source: str, names: Sequence[str], label: Column | None) -> int:
    """The number of the label column; by default one with a usual name, else the last."""
    if label is None:
        lower = [name.strip().lower() for name in names]
        usual = next((name for name in USUAL_LABELS if name in lower), None)
        return len(names) - 1 if usual is None else _only(source, lower, usual)
    if label in names:
        return _only(source, names, str(label))
    try:
        return range(len(names))[int(label)]
    except (ValueError, IndexError):
        listed = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        raise StreamError(source, f"label={label!r} is none of the columns {listed}") from None


def _only(source: str, names: Sequence[str], name: str) -> int:
    at = names.index(name)
    if name in names[at + 1 :]:
        again = names.index(name, at + 1)
        raise StreamError(
            source, f"columns {at} and {again} are both called {name}: say which is the label by its number, label={at}"
        )
    return at
