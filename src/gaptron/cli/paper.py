"""`gaptron paper`: print the paper's two tables, computed by the code, and draw its Figure 1."""

from pathlib import Path
from typing import Annotated

import typer

from gaptron.cli.table import show
from gaptron.errors import SettingError


def paper(
    figure: Annotated[Path | None, typer.Option(help="Draw Figure 1 to this file (.png, .pdf, .svg).")] = None,
    classes: Annotated[int, typer.Option(min=2, help="Number of classes K in the table of settings.")] = 10,
    norm: Annotated[float, typer.Option(help="Largest norm X of an example in the table of settings.")] = 1.0,
    radius: Annotated[float, typer.Option(help="Largest norm D of a comparator in the table of settings.")] = 10.0,
    horizon: Annotated[int, typer.Option(min=1, help="Number of rounds T in the table of settings.")] = 1_000_000,
) -> None:
    """Print the paper's tables, computed by the code, and draw its Figure 1."""
    from gaptron.report.paper import figure_1, overview, settings  # noqa: PLC0415

    if not (norm > 0 and radius > 0):
        raise SettingError("--norm and --radius must be positive")
    show(overview(), "Table 1: algorithms and their regret (‖x‖ ≤ 1)")
    typer.echo()
    show(
        settings(classes, norm, radius, horizon),
        f"Settings of Gaptron for K = {classes}, X = {norm:g}, D = {radius:g}, T = {horizon:,} (corrected: see errata)",
    )
    if figure is not None:
        try:
            figure_1(figure)
        except (OSError, ValueError) as problem:
            raise SettingError(f"cannot write the figure: {problem}") from None
        typer.echo(f"\nFigure 1 is in {figure}")
