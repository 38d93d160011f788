"""Print a table on the terminal, or paragraphs where the table would be too wide."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

GAP = 2  # spaces between two columns


def show(rows: Iterable[tuple[str, ...]], title: str | None = None) -> None:
    """Print rows; the first one is the header. Output that is not a terminal is as wide as needed."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    header, *body = rows
    console = Console()
    if not console.is_terminal:
        console = Console(width=240)
    elif _width([header, *body]) > console.width:
        return _paragraphs(console, header, body, title)
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, GAP, 0, 0)
    )
    for i, heading in enumerate(header):
        table.add_column(heading, overflow="fold", no_wrap=i == 0)
    for row in body:
        table.add_row(*row)
    console.print(table, highlight=False)
    return None


def _width(rows: list[tuple[str, ...]]) -> int:
    return sum(max(map(len, column)) + GAP for column in zip(*rows)) - GAP


def _paragraphs(console: "Console", header: tuple[str, ...], body: list[tuple[str, ...]], title: str | None) -> None:
    """Print each row as a paragraph: its first cell, then a line for each further cell that is not empty."""
    if title:
        console.print(title, style="bold", highlight=False, markup=False)
    edge = 2 + max(map(len, header[1:])) + GAP
    for name, *cells in body:
        console.print(name, style="bold", highlight=False, markup=False)
        for heading, cell in zip(header[1:], cells):
            if cell.strip("-– "):
                start, rest = f"  {heading:<{edge - 2}}", " " * edge
                text = textwrap.fill(
                    cell, console.width, initial_indent=start, subsequent_indent=rest, break_on_hyphens=False
                )
                console.print(text, highlight=False, markup=False, soft_wrap=True)
