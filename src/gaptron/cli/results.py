"""`gaptron results`: list, merge and export the results of comparisons."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gaptron.cli.table import show
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron.experiments.task import Result


def results(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Result files, or folders of comparisons; default: gaptron-compare.")
    ] = None,
    merge: Annotated[Path | None, typer.Option(help="Merge all results into this .jsonl file, each run once.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write a table to this .csv or .parquet file.")] = None,
) -> None:
    """List the results of comparisons; merge them, or export them to CSV or Parquet.

    gaptron results

    gaptron results monday/ tuesday/ --merge all.jsonl --export all.parquet
    """
    from gaptron.experiments.export import export as write_table  # noqa: PLC0415
    from gaptron.experiments.store import FILE, latest, read, write  # noqa: PLC0415

    everything: list[Result] = []
    for path in files or [Path("gaptron-compare")]:
        read_here, notes = read(path / FILE if path.is_dir() else path)
        everything += read_here
        for note in notes:
            typer.echo(f"gaptron: {note}", err=True)
    kept = latest(everything)
    if export is not None:
        write_table(kept, export)
    if merge is not None:
        try:
            write(merge, kept)
        except OSError as problem:
            raise SettingError(f"{merge}: cannot be written ({problem.strerror or problem})") from None
    show(_rows(kept), f"{len(kept):,} tasks, {sum(not r.ok for r in kept):,} of them failed")


def _rows(results: list["Result"]) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, ...], list[Result]] = defaultdict(list)
    for result in results:
        groups[result.stream, result.feedback, result.algorithm, result.loss, result.role].append(result)
    rows: list[tuple[str, ...]] = [
        ("stream", "feedback", "algorithm", "loss", "role", "runs", "seeds", "failed", "error, min to max")
    ]
    for names, group in sorted(groups.items()):
        rates = [result.error_rate for result in group if result.ok]
        span = f"{min(rates):.2%} to {max(rates):.2%}" if rates else "–"
        seeds = {result.seed for result in group}
        rows.append((*names, str(len(rates)), str(len(seeds)), str(len(group) - len(rates)), span))
    return rows
