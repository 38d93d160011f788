"""The command line: one module per command. Commands import what they need when they run."""

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
from gaptron.cli.import_ import import_
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
    """The commands. Errors of the library are translated into options: --radius 10 instead of radius=10."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and translate its errors."""
        warnings.formatwarning = lambda message, *_, **__: f"gaptron: warning: {message}\n"
        try:
            return super().invoke(ctx)
        except GaptronError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            options = {(p.name or "").rstrip("_"): p.opts[0] for p in (command.params if command else ())}
            error.args = (in_options(str(error), options, _settings()),)
            raise


def _settings() -> list[str]:
    """Return the names of the settings of all algorithms that are loaded."""
    from gaptron.algorithms import NAMES, load  # noqa: PLC0415

    loaded = [load(name) for name, module in NAMES.items() if f"gaptron.algorithms.{module}" in sys.modules]
    return [name for algorithm in loaded for name in list(inspect.signature(algorithm.recommend).parameters)[1:]]


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
app.command("import")(import_)
app.command()(keys)
app.command()(warm)


def _version(requested: bool) -> None:
    if requested:
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
    """Run the command `gaptron`."""
    try:
        app()
    except GaptronError as error:
        typer.echo(f"gaptron: {error}", err=True)
        sys.exit(2)
