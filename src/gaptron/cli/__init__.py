"""The switchboard: one command per file. What a command needs is imported when it runs."""

import sys

import typer

from gaptron.cli.abstain import abstain
from gaptron.cli.algorithms import algorithms
from gaptron.cli.compare import compare
from gaptron.cli.evaluate import evaluate
from gaptron.cli.paper import paper
from gaptron.cli.play import play
from gaptron.cli.results import results
from gaptron.errors import GaptronError
from gaptron.version import __version__

app = typer.Typer(
    help="Online multiclass classification with guarantees you can see.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(play)
app.command()(evaluate)
app.command()(abstain)
app.command()(compare)
app.command()(results)
app.command()(algorithms)
app.command()(paper)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gaptron {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Say which."),
) -> None:
    """Online multiclass classification with guarantees you can see."""


def main() -> None:
    """What `gaptron` on the command line runs."""
    try:
        app()
    except GaptronError as problem:
        typer.echo(f"gaptron: {problem}", err=True)
        sys.exit(2)
