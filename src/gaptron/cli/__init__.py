"""The command line: one command per file. What a command needs is imported when it runs."""

import inspect
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from gaptron.cli.abstain import abstain
from gaptron.cli.algorithms import algorithms
from gaptron.cli.compare import compare
from gaptron.cli.evaluate import evaluate
from gaptron.cli.keys import keys
from gaptron.cli.options import in_options
from gaptron.cli.paper import paper
from gaptron.cli.play import play
from gaptron.cli.predict import predict
from gaptron.cli.replay import replay
from gaptron.cli.results import results
from gaptron.cli.serve import serve
from gaptron.cli.warm import warm
from gaptron.errors import GaptronError
from gaptron.version import __version__


class Commands(TyperGroup):
    """The commands. Errors of the library come out in the words of the command line: --radius 10, not radius=10."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        warnings.formatwarning = lambda message, *_, **__: f"gaptron: warning: {message}\n"
        try:
            return super().invoke(ctx)
        except GaptronError as problem:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            options = {(p.name or "").rstrip("_"): p.opts[0] for p in (command.params if command else ())}
            problem.args = (in_options(str(problem), options, _settings()),)
            raise


def _settings() -> list[str]:
    """The settings of the algorithms that were in use when something went wrong."""
    from gaptron.algorithms import NAMES, load  # noqa: PLC0415

    used = [load(name) for name, file in NAMES.items() if f"gaptron.algorithms.{file}" in sys.modules]
    return [name for file in used for name in list(inspect.signature(file.recommend).parameters)[1:]]


app = typer.Typer(
    cls=Commands,
    help="Online multiclass classification with guarantees you can see.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(play)
app.command()(predict)
app.command()(evaluate)
app.command()(abstain)
app.command()(compare)
app.command()(results)
app.command()(algorithms)
app.command()(paper)
app.command()(serve)
app.command()(replay)
app.command()(keys)
app.command()(warm)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gaptron {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Online multiclass classification with guarantees you can see."""


def main() -> None:
    """The entry point of the command `gaptron`."""
    try:
        app()
    except GaptronError as problem:
        typer.echo(f"gaptron: {problem}", err=True)
        sys.exit(2)
