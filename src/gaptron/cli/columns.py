"""Columns of tables: the options that declare them, and remarks about them in the output."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Features, Learner
    from gaptron.features import Account

MAX_LISTED = 8  # names in a remark
COUNTS = ("words", "missing", "absent", "other_kind", "shared")
NEARLY_ALL, FEW = 0.9, 20  # share of different words, and number of values, from which a column gets a warning


class Before(NamedTuple):
    """What a model had counted before it played this file."""

    columns: "Mapping[str, Account]" = MappingProxyType({})
    rounds: int = 0


def before_file(model: "Learner | None") -> Before:
    """Return what a model has counted; nothing without a model."""
    if model is None or not model.rounds:
        return Before()
    return Before({column.name: column for column in model.features or []}, model.rounds)


def columns_of_file(learner: "Learner", before: Before) -> "list[Account]":
    """Return how the columns were encoded in this file: missing values, new words and the like."""
    accounts = []
    for column in learner.features or []:
        known = before.columns.get(column.name)
        if known is not None:
            counts = {name: getattr(column, name) - getattr(known, name) for name in COUNTS}
            column = column._replace(**counts)
        accounts.append(column)
    return accounts


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
    known = [column.name for column in learner.features or []]
    absent = [
        column.name for column in learner.features or [] if column.kind != "ignore" and column.name not in columns
    ]
    new = [name for name in columns if name not in known]
    remarks = (
        [f"columns of the model that are not in the file (treated as missing): {_listed(absent)}"] if absent else []
    )
    return remarks if not (new and known) else [*remarks, f"columns that are new to the model: {_listed(new)}"]


def describe_columns(columns: "Sequence[Account]", rounds: int, before: Before) -> list[str]:
    """Describe in a few lines how the columns of a file were encoded.

    Args:
        columns: from `columns_of_file`.
        rounds: the number of rows.
        before: what the model had counted before.
    """
    accounts = [column for column in columns if column.kind != "ignore"]
    kinds = {"number": "numbers", "log": "logarithms", "word": "words", "time": "times", "auto": "missing values only"}
    counts = [(sum(column.kind == kind for column in accounts), plural) for kind, plural in kinds.items()]
    lines = ["columns: " + ", ".join(f"{n} of {plural}" for n, plural in counts if n)]
    words = [column for column in accounts if column.kind == "word"]
    for remark, field, chosen in (
        ("with missing values", "missing", accounts),
        ("with words that are new to the model", "words", words if before.rounds else []),
        ("with values of another kind than the first", "other_kind", accounts),
        ("with more words than indices, so that some share one", "shared", accounts),
    ):
        names = [f"{column.name} ({getattr(column, field):,})" for column in chosen if getattr(column, field)]
        lines += [f"  {remark}: {_listed(names)}"] if names else []
    late = [
        column.name for column in accounts if column.first_row > before.rounds and column.name not in before.columns
    ]
    lines += [f"  first seen after the first row: {_listed(late)}"] if late else []
    if not before.rounds:
        lines += [
            f"warning: nearly all values of {column.name} are different: an id or free text, of which nothing can be "
            f"learned word for word; leave it out with --column {column.name}=ignore"
            for column in words
            if _are_nearly_all_different(column, rounds)
        ]
    return lines


def _are_nearly_all_different(column: "Account", rounds: int) -> bool:
    values = rounds - column.missing
    return values >= FEW and column.words + column.shared >= NEARLY_ALL * values


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more
