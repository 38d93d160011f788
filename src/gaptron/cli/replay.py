"""`gaptron replay`: fold a service's log from nothing, and compare."""

from typing import Annotated

import typer

from gaptron.cli.serve import HERE, STORE


def replay(store: Annotated[str, typer.Argument(help=STORE)] = HERE) -> None:
    """Make every decision of a service's log again, and compare labels, probabilities, weights and snapshots.

    Exit 1 at the first difference. The service may be running.

    gaptron replay gaptron-serve
    """
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from gaptron.serve.fold import DifferenceError  # noqa: PLC0415
    from gaptron.serve.replay import replay as fold_again  # noqa: PLC0415
    from gaptron.serve.store import open_store  # noqa: PLC0415

    opened, console = open_store(store), Console(stderr=True)
    columns = (TextColumn("{task.description}"), TextColumn("{task.completed:,}"), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("entries")
            done = fold_again(opened, lambda entries: bar.advance(task, entries))
    except DifferenceError as difference:
        typer.echo(f"DIFFERENT: {difference}")
        raise typer.Exit(1) from None
    finally:
        opened.close()
    typer.echo(
        f"Equal: {done.entries:,} entries, {done.decisions:,} decisions made again, "
        f"{done.snapshots} snapshots compared, {len(done.models)} models."
    )
    for name, seq in done.starts.items():
        typer.echo(f"{name} from its state at entry {seq:,} on: features of older decisions were forgotten.")
