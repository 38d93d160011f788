"""`gaptron results`: what is in files of results; merge them, export them."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gaptron.cli.table import show
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron.experiments.record import Record


def results(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files of results, or their folders; default gaptron-compare.")
    ] = None,
    merge: Annotated[Path | None, typer.Option(help="Write one record a key to this .jsonl file.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write a table to this .csv or .parquet file.")] = None,
) -> None:
    """List what a comparison found; merge several; export to CSV or Parquet.

    gaptron results

    gaptron results monday/ tuesday/ --merge all.jsonl --export all.parquet
    """
    from gaptron.experiments.store import FILE, latest, read, write  # noqa: PLC0415
    from gaptron.experiments.tables import export as write_table  # noqa: PLC0415

    found: list[Record] = []
    for path in files or [Path("gaptron-compare")]:
        records, notes = read(path / FILE if path.is_dir() else path)
        found += records
        for note in notes:
            typer.echo(f"gaptron: {note}", err=True)
    kept = latest(found)
    if export is not None:
        write_table(kept, export)
    if merge is not None:
        try:
            write(merge, kept)
        except OSError as problem:
            raise SettingError(f"{merge}: cannot be written ({problem.strerror or problem})") from None
    show(_rows(kept), f"{len(kept):,} tasks, {sum(not r.ok for r in kept):,} of them failed")


def _rows(records: list["Record"]) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.stream, record.feedback, record.algorithm, record.loss, record.role].append(record)
    rows: list[tuple[str, ...]] = [
        ("stream", "feedback", "algorithm", "loss", "role", "runs", "seeds", "failed", "error, least to most")
    ]
    for names, group in sorted(groups.items()):
        rates = [record.error_rate for record in group if record.ok]
        span = f"{min(rates):.2%} to {max(rates):.2%}" if rates else "–"
        seeds = {record.seed for record in group}
        rows.append((*names, str(len(rates)), str(len(seeds)), str(len(group) - len(rates)), span))
    return rows
