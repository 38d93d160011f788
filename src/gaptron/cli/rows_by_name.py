"""What commands say and ask about rows by name: options for columns, which columns a model misses, predictions."""

import contextlib
import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Features, Learner

SHOWN = 8  # names in a remark


def declared(columns: list[str] | None, cross: list[str] | None) -> "Features":
    """The features of --column NAME=KIND and --cross A,B."""
    from gaptron.features import Features  # noqa: PLC0415

    kinds = {}
    for pair in columns or []:
        name, equals, kind = pair.rpartition("=")
        if not equals or not name:
            raise SettingError(f"--column {pair!r} must read NAME=KIND")
        kinds[name] = kind
    return Features(kinds, cross=[tuple(map(str.strip, names.split(","))) for names in cross or []])


def remarks(learner: "Learner", columns: Sequence[str]) -> list[str]:
    """Which columns a model knows and the file has not, and the other way."""
    known = [column.name for column in learner.features or [] if column.kind != "ignore"]
    away = [name for name in known if name not in columns]
    new = [name for name in columns if name not in known]
    words = [] if not away else [f"columns of the model that the file has not (taken as missing): {few(away)}"]
    return words if not (new and known) else [*words, f"columns that are new to the model: {few(new)}"]


def few(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def found(learner: "Learner") -> list[str]:
    """What was made of the columns, in a few lines."""
    accounts = [column for column in learner.features or [] if column.kind != "ignore"]
    kinds = {"number": "numbers", "log": "logarithms", "word": "words", "time": "times", "auto": "never a value"}
    counted = [(sum(c.kind == kind for c in accounts), word) for kind, word in kinds.items()]
    lines = ["columns: " + ", ".join(f"{n} of {word}" for n, word in counted if n)]
    for what, field in (
        ("with gaps", "missing"),
        ("with values of another kind than the first", "other_kind"),
        ("with more words than places, which share", "shared"),
    ):
        names = [f"{c.name} ({getattr(c, field):,})" for c in accounts if getattr(c, field)]
        lines += [f"  {what}: {few(names)}"] if names else []
    late = [c.name for c in accounts if c.first_row]
    return lines + ([f"  that came later: {few(late)}"] if late else [])


# --- predictions ----------------------------------------------------------------------------------------------

Write = Callable[[dict[str, Sequence[Any]]], None]


@contextlib.contextmanager
def writer(path: str) -> Iterator[Write]:
    """Where columns are written, some rows at a time: CSV, JSON lines or Parquet by the extension; - is the screen."""
    suffix = Path(path).suffix.lower()
    if path != "-" and not Path(path).absolute().parent.is_dir():
        raise SettingError(f"{path}: there is no such folder")
    try:
        if suffix == ".parquet":
            yield from _parquet(path)
            return
        with contextlib.ExitStack() as stack:
            out = sys.stdout if path == "-" else stack.enter_context(open(path, "w", newline="", encoding="utf-8"))
            yield _json_lines(out) if suffix in (".jsonl", ".ndjson") else _csv(out)
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise SettingError(f"{path}: cannot be written ({problem.strerror or problem})") from None


def _csv(out: Any) -> Write:
    lines = csv.writer(out, lineterminator="\n")
    begun: list[bool] = []

    def write(columns: dict[str, Sequence[Any]]) -> None:
        if not begun:
            lines.writerow(columns)
            begun.append(True)
        lines.writerows(zip(*columns.values()))

    return write


def _json_lines(out: Any) -> Write:
    def write(columns: dict[str, Sequence[Any]]) -> None:
        for row in zip(*columns.values()):
            out.write(json.dumps(dict(zip(columns, row)), ensure_ascii=False) + "\n")

    return write


def _parquet(path: str) -> Iterator[Write]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        files: list[Any] = []

        def write(columns: dict[str, Sequence[Any]]) -> None:
            table = pa.table({name: list(values) for name, values in columns.items()})
            if not files:
                files.append(stack.enter_context(parquet.ParquetWriter(path, table.schema)))
            files[0].write_table(table.cast(files[0].schema))

        yield write
