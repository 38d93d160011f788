"""`gaptron replay`: verify the event log of a service."""

from typing import Annotated

import typer

from gaptron.cli.serve import DEFAULT_STORE, STORE


def replay(store: Annotated[str, typer.Argument(help=STORE)] = DEFAULT_STORE) -> None:
    """Replay the event log of a service, and compare every decision and snapshot to the bit.

    Exits with 1 at the first difference. The service may be running.

    gaptron replay gaptron-serve
    """
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from gaptron.report.compare.formatting import plural  # noqa: PLC0415
    from gaptron.serve.model_state import ReplayMismatchError  # noqa: PLC0415
    from gaptron.serve.replay import replay as replay_store  # noqa: PLC0415
    from gaptron.serve.store import open_store  # noqa: PLC0415

    opened, console = open_store(store), Console(stderr=True)
    columns = (TextColumn("{task.description}"), TextColumn("{task.completed:,}"), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("events")
            done = replay_store(opened, lambda count: bar.advance(task, count))
    except ReplayMismatchError as mismatch:
        typer.echo(f"DIFFERENT: {mismatch}")
        raise typer.Exit(1) from None
    finally:
        opened.close()
    typer.echo(
        f"Equal: {plural(done.events, 'event')}, {plural(done.decisions, 'decision')} recomputed, "
        f"{plural(done.snapshots, 'snapshot')} compared, {plural(len(done.models), 'model')}."
    )
    for name, seq in done.starts.items():
        typer.echo(f"{name}: replayed from event {seq:,} on, because the features of older decisions were removed.")
