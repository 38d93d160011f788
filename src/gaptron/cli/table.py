"""Rows of words as a table on the terminal."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table


def show(rows: Iterable[tuple[str, ...]], title: str | None = None) -> None:
    """Print rows under their first one as header. Piped output is as wide as it needs to be."""
    header, *body = rows
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, word in enumerate(header):
        table.add_column(word, overflow="fold", no_wrap=i == 0)
    for row in body:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=240)
    console.print(table, highlight=False)
