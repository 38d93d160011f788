"""Columns of tables: the options that declare them, and remarks about them in the output."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Features, Learner

MAX_LISTED = 8  # names in a remark


def declared_features(columns: list[str] | None, cross: list[str] | None) -> "Features":
    """Parse --column NAME=KIND and --cross A,B."""
    from gaptron.features import Features  # noqa: PLC0415

    kinds = {}
    for pair in columns or []:
        name, equals, kind = pair.rpartition("=")
        if not equals or not name:
            raise SettingError(f"--column {pair!r} must have the form NAME=KIND")
        kinds[name] = kind
    return Features(kinds, cross=[tuple(map(str.strip, names.split(","))) for names in cross or []])


def differences(learner: "Learner", columns: Sequence[str]) -> list[str]:
    """Describe which columns of the model the file does not have, and which of its columns are new."""
    known = [column.name for column in learner.features or [] if column.kind != "ignore"]
    absent = [name for name in known if name not in columns]
    new = [name for name in columns if name not in known]
    remarks = (
        [f"columns of the model that are not in the file (treated as missing): {_listed(absent)}"] if absent else []
    )
    return remarks if not (new and known) else [*remarks, f"columns that are new to the model: {_listed(new)}"]


def describe_columns(learner: "Learner") -> list[str]:
    """Describe in a few lines how the columns were encoded."""
    accounts = [column for column in learner.features or [] if column.kind != "ignore"]
    kinds = {"number": "numbers", "log": "logarithms", "word": "words", "time": "times", "auto": "missing values only"}
    counts = [(sum(column.kind == kind for column in accounts), plural) for kind, plural in kinds.items()]
    lines = ["columns: " + ", ".join(f"{n} of {plural}" for n, plural in counts if n)]
    for remark, field in (
        ("with missing values", "missing"),
        ("with values of another kind than the first", "other_kind"),
        ("with more words than indices, so that some share one", "shared"),
    ):
        names = [f"{column.name} ({getattr(column, field):,})" for column in accounts if getattr(column, field)]
        lines += [f"  {remark}: {_listed(names)}"] if names else []
    late = [column.name for column in accounts if column.first_row]
    return lines + ([f"  first seen after the first row: {_listed(late)}"] if late else [])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more
