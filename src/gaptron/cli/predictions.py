"""Write predictions to a file, some rows at a time."""

import contextlib
import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gaptron.errors import SettingError

Write = Callable[[dict[str, Sequence[Any]]], None]
"""Appends rows, given by column."""

EXTENSIONS = (".csv", ".jsonl", ".ndjson", ".parquet")


@contextlib.contextmanager
def writer(path: str) -> Iterator[Write]:
    """Open a file for columns: CSV, JSON lines or Parquet by its extension. - is standard output."""
    suffix = Path(path).suffix.lower()
    if path != "-" and suffix not in EXTENSIONS:
        raise SettingError(
            f"{path}: cannot write {suffix or 'a file without an extension'}: name it .csv, .jsonl or .parquet"
        )
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
    except OSError as error:
        raise SettingError(f"{path}: cannot be written ({error.strerror or error})") from None


def _csv(out: Any) -> Write:
    lines = csv.writer(out, lineterminator="\n")
    has_header = False

    def write(columns: dict[str, Sequence[Any]]) -> None:
        nonlocal has_header
        if not has_header:
            lines.writerow(columns)
            has_header = True
        lines.writerows(zip(*columns.values()))

    return write


def _json_lines(out: Any) -> Write:
    def write(columns: dict[str, Sequence[Any]]) -> None:
        for row in zip(*columns.values()):
            out.write(json.dumps(dict(zip(columns, row)), ensure_ascii=False, default=str) + "\n")

    return write


def _parquet(path: str) -> Iterator[Write]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        file: Any = None

        def write(columns: dict[str, Sequence[Any]]) -> None:
            nonlocal file
            table = pa.table({name: list(values) for name, values in columns.items()})
            if file is None:
                file = stack.enter_context(parquet.ParquetWriter(path, table.schema))
            file.write_table(table.cast(file.schema))

        yield write
