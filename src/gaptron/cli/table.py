"""Rows of words as a table on the terminal, or as paragraphs where a table would be too wide."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

GAP = 2  # blanks between two columns


def show(rows: Iterable[tuple[str, ...]], title: str | None = None) -> None:
    """Print rows under their first one as header. Piped output is as wide as it needs to be."""
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
    for i, word in enumerate(header):
        table.add_column(word, overflow="fold", no_wrap=i == 0)
    for row in body:
        table.add_row(*row)
    console.print(table, highlight=False)
    return None


def _width(rows: list[tuple[str, ...]]) -> int:
    """Of the table if no cell is broken into lines."""
    return sum(max(map(len, column)) + GAP for column in zip(*rows)) - GAP


def _paragraphs(console: "Console", header: tuple[str, ...], body: list[tuple[str, ...]], title: str | None) -> None:
    """A row a paragraph: its name, then a line for each further cell that says something."""
    if title:
        console.print(title, style="bold", highlight=False, markup=False)
    edge = 2 + max(map(len, header[1:])) + GAP
    for name, *cells in body:
        console.print(name, style="bold", highlight=False, markup=False)
        for word, cell in zip(header[1:], cells):
            if cell.strip("-– "):
                start, rest = f"  {word:<{edge - 2}}", " " * edge
                text = textwrap.fill(
                    cell, console.width, initial_indent=start, subsequent_indent=rest, break_on_hyphens=False
                )
                console.print(text, highlight=False, markup=False, soft_wrap=True)
