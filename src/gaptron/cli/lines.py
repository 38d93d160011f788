"""Print lines that fit an ordinary terminal."""

import textwrap

import typer

WIDTH = 80


def print_line(text: str, indent: int = 4, *, err: bool = False) -> None:
    """Print a line, wrapped between words to 80 columns; further lines are indented."""
    rest = " " * indent
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
    typer.echo("\n".join(lines), err=err)
