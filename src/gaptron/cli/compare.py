"""`gaptron compare`: many algorithms over many streams and seeds, and who errs least."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaptron.cli.table import show
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron.experiments.compare import Watcher
    from gaptron.experiments.engines import Engine
    from gaptron.experiments.plan import Plan
    from gaptron.experiments.record import Record

WHAT, DATA, HOW, OUT = "What is compared", "Reading and preparing DATA", "How it runs", "Output"
ENGINES = ("processes", "dask")


def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Streams, as for `gaptron play`; or one plan, FILE.toml. Nothing: the built-in plan."),
    ] = None,
    algorithms: Annotated[
        str, typer.Option("--algorithms", "-a", help="Separated by commas.", rich_help_panel=WHAT)
    ] = "",
    feedback: Annotated[str, typer.Option(help="full, bandit, or both: full,bandit.", rich_help_panel=WHAT)] = "",
    seeds: Annotated[str, typer.Option(help="How many (5), or which: 0,3,7.", rich_help_panel=WHAT)] = "",
    grid: Annotated[
        bool, typer.Option("--grid/--no-grid", help="Also tune the baselines in hindsight.", rich_help_panel=WHAT)
    ] = True,
    bounds: Annotated[str, typer.Option(help="With which seeds: first, all or none.", rich_help_panel=WHAT)] = "",
    radius: Annotated[
        float | None, typer.Option(help="D, for those that cannot do without.", rich_help_panel=WHAT)
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rounds.", rich_help_panel=WHAT)] = None,
    format_: Annotated[str, typer.Option("--format", help="Else by extension.", rich_help_panel=DATA)] = "",
    label: Annotated[str, typer.Option(help="The label's column, by name or number.", rich_help_panel=DATA)] = "",
    classes: Annotated[str, typer.Option(help="All labels, separated by commas.", rich_help_panel=DATA)] = "",
    features: Annotated[int | None, typer.Option(min=1, help="Number of features.", rich_help_panel=DATA)] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Do not scale rows to ‖x‖ = 1.", rich_help_panel=DATA)] = False,
    constant: Annotated[bool, typer.Option("--constant", help="Append a feature of 1.", rich_help_panel=DATA)] = False,
    log1p: Annotated[bool, typer.Option("--log1p", help="x → sign(x)·ln(1+|x|).", rich_help_panel=DATA)] = False,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Columns to mean 0, deviation 1.", rich_help_panel=DATA)
    ] = False,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Do not shuffle by the seed.", rich_help_panel=DATA)
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes; default: one a core.", rich_help_panel=HOW)
    ] = None,
    engine: Annotated[str, typer.Option(help="processes or dask.", rich_help_panel=HOW)] = "processes",
    address: Annotated[str, typer.Option(help="Of the Dask scheduler, tcp://...", rich_help_panel=HOW)] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Say what would run and what it costs.", rich_help_panel=HOW)
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of results and report.", rich_help_panel=OUT)
    ] = Path("gaptron-compare"),
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the HTML report.", rich_help_panel=OUT)
    ] = True,
) -> None:
    """Compare algorithms: every one over the same rows, in the same order, with the same draws.

    gaptron compare

    gaptron compare train.svm.gz letter -a frugal-gaptron,banditron --feedback bandit --seeds 10

    gaptron compare experiments/paper.toml --dry-run

    Interrupted, or asked for more seeds: the same folder goes on where it stopped.
    """
    reading = {
        "format": format_ or None,
        "label": int(label) if label.isdigit() else label or None,
        "classes": [word.strip() for word in classes.split(",")] if classes else None,
        "n_features": features,
    }
    preparing = {"unit_norm": not raw, "constant": constant, "log1p": log1p, "standardize": standardize}
    plan, text = _plan(data or [], {k: v for k, v in reading.items() if v is not None}, preparing, in_order)
    plan = _turned(plan, algorithms, feedback, seeds, grid, bounds, radius, limit)
    if dry_run:
        _cost(plan, output, jobs)
        return
    records = _run(plan, output, _engine(engine, address, jobs))
    _close(records, output, text, report)


def _plan(data: list[str], reading: dict[str, Any], preparing: dict[str, Any], in_order: bool) -> tuple["Plan", str]:
    """The plan and, if it came from a file, its text."""
    from gaptron.experiments.plan import Source  # noqa: PLC0415
    from gaptron.experiments.plan_file import default_plan, read_plan  # noqa: PLC0415

    files = [word for word in data if word.endswith(".toml")]
    if data and not files:
        streams = tuple(Source(word, "", reading, preparing, not in_order) for word in dict.fromkeys(data))
        return replace(default_plan(), streams=streams), ""
    if len(data) > 1:
        raise SettingError(f"{files[0]} is a plan, and a plan is run by itself: put the streams into it")
    if reading or in_order or preparing != {"unit_norm": True, "constant": False, "log1p": False, "standardize": False}:
        raise SettingError("a plan says itself how its streams are read and prepared: these options are for DATA")
    if not files:
        return default_plan(), ""
    return read_plan(Path(files[0])), Path(files[0]).read_text(encoding="utf-8")


def _turned(
    plan: "Plan",
    algorithms: str,
    feedback: str,
    seeds: str,
    grid: bool,
    bounds: str,
    radius: float | None,
    limit: int | None,
) -> "Plan":
    """The plan with what the options say instead."""
    from gaptron.experiments.plan import Entry  # noqa: PLC0415

    changes: dict[str, Any] = {}
    if feedback:
        changes["feedback"] = _words(feedback)
        if not algorithms:  # those of the plan that can
            kept = tuple(e for e in plan.algorithms if any(e.can(word) for word in changes["feedback"]))
            changes["algorithms"] = kept or plan.algorithms
    if algorithms:
        told = {entry.algorithm: entry for entry in plan.algorithms}
        changes["algorithms"] = tuple(told.get(name, Entry(name)) for name in _words(algorithms))
    if seeds:
        changes["seeds"] = _seeds(seeds)
    if not grid:
        kept = changes.get("algorithms", plan.algorithms)
        changes |= {"grids": False, "algorithms": tuple(replace(entry, grid={}) for entry in kept)}
    if bounds:
        changes["bounds"] = bounds
    if radius is not None:
        changes["radius"] = radius
    if limit is not None:
        changes["streams"] = tuple(replace(s, preparing={**s.preparing, "limit": limit}) for s in plan.streams)
    return replace(plan, **changes)


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _seeds(text: str) -> tuple[int, ...]:
    words = _words(text)
    if not all(word.isdigit() for word in words) or words == ("0",):
        raise SettingError(f"--seeds {text}: say how many, or which, separated by commas")
    return tuple(int(word) for word in words) if "," in text else tuple(range(int(words[0])))


def _engine(name: str, address: str, jobs: int | None) -> "Engine":
    from joblib import cpu_count  # noqa: PLC0415

    from gaptron.experiments.engines import dask, processes, serial  # noqa: PLC0415

    if name not in ENGINES:
        raise SettingError(f"unknown engine {name!r}; there are: {', '.join(ENGINES)}")
    if name == "dask":
        if not address:
            raise SettingError("--engine dask needs --address tcp://HOST:PORT, that of the scheduler")
        return partial(dask, address=address)
    n = jobs or cpu_count()
    return serial if n == 1 else partial(processes, n=n)


def _run(plan: "Plan", output: Path, engine: "Engine") -> list["Record"]:
    from gaptron.experiments.compare import compare as run  # noqa: PLC0415

    try:
        with _watched() as watcher:
            return run(plan, output, engine, watcher)
    except KeyboardInterrupt:
        typer.echo(f"gaptron: interrupted; what is finished is in {output}, and the same command goes on", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _watched() -> Iterator["Watcher"]:
    """A progress bar on standard error, where that is a terminal."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from gaptron.experiments.compare import Watcher  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    words = TextColumn("{task.description}")
    failures = 0
    with Progress(*columns, words, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks = bar.add_task("", total=None)

        def begun(total: int, known: int) -> None:
            bar.update(tasks, total=total, completed=known, description="starting")

        def finished(record: "Record") -> None:
            nonlocal failures
            failures += not record.ok
            trouble = f"[red]{failures} failed[/] " if failures else ""
            bar.update(tasks, advance=1, description=f"{trouble}{record.stream} · {record.algorithm}")

        yield Watcher(
            preparing=lambda source: bar.update(tasks, description=f"reading {source.title}"),
            begun=begun,
            finished=finished,
            note=lambda words: typer.echo(f"gaptron: {words}", err=True),
        )


def _close(records: list["Record"], output: Path, plan: str, report: bool) -> None:
    """The table, the report, and what failed."""
    from rich.console import Console  # noqa: PLC0415

    from gaptron.experiments.store import FILE  # noqa: PLC0415

    good = [record for record in records if record.ok]
    if good:
        from gaptron.report.compare import table, write  # noqa: PLC0415

        console = Console()
        (console if console.is_terminal else Console(width=160)).print(table(records), highlight=False)
        if report:
            page = write(records, output, plan=plan, command=shlex.join(["gaptron", *sys.argv[1:]]))
            typer.echo(f"report:  {page}")
    typer.echo(f"results: {output / FILE}")
    failures = [record for record in records if not record.ok]
    for message, times in Counter(_told(record) for record in failures).most_common():
        typer.echo(f"gaptron: {message} ({times} task{'s' if times > 1 else ''})", err=True)
    if failures:
        typer.echo(
            f"gaptron: {len(failures)} of {len(records)} tasks failed; the same command tries them again", err=True
        )
        raise typer.Exit(1)


def _told(record: "Record") -> str:
    error = record.error or {}
    what = f"{error.get('type')}: {error.get('message')}"
    # Without data the stream itself could not be read, whatever the algorithm.
    return what if record.data is None else f"{record.stream}, {record.algorithm}: {what}"


def _cost(plan: "Plan", output: Path, jobs: int | None) -> None:
    """What would run, and for how long."""
    from joblib import cpu_count  # noqa: PLC0415

    from gaptron.experiments.compare import sizes  # noqa: PLC0415
    from gaptron.experiments.cost import seconds  # noqa: PLC0415
    from gaptron.experiments.store import FILE, read  # noqa: PLC0415

    file = output / FILE
    known = {record.key for record in read(file)[0] if record.ok} if file.exists() else set()
    rows: list[tuple[str, ...]] = [("stream", "rounds", "features", "classes", "tasks", "known", "core seconds")]
    tasks = left = 0
    total = 0.0
    for source, shelved in sizes(plan):
        todo = list(plan.tasks(source))
        new = [task for task in todo if task.key(shelved.data) not in known]
        cost = sum(seconds(task, shelved) for task in new)
        size = (shelved.n_rounds, shelved.n_features, shelved.n_classes, len(todo), len(todo) - len(new))
        rows.append((source.title, *(f"{n:,}" for n in size), f"{cost:,.1f}"))
        tasks, left, total = tasks + len(todo), left + len(new), total + cost
    show(rows, "What would run")
    n = jobs or cpu_count()
    typer.echo(
        f"\n{tasks:,} tasks, {left:,} of them without a result yet; about {max(1, round(total / n)):,} s on {n} cores, "
        "and some seconds more for each algorithm that has never been compiled here"
    )
