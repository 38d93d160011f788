"""`gaptron compare`: many algorithms over many streams and seeds, and who errs least."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gaptron.cli import options
from gaptron.cli.table import show
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron.experiments.compare import Watcher
    from gaptron.experiments.engines import Engine
    from gaptron.experiments.plan import Plan
    from gaptron.experiments.task import Result

WHAT, DATA, HOW, OUT = "What is compared", "Reading and preparing DATA", "How it runs", "Output"
ENGINES = ("processes", "dask")


def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Streams, as for `gaptron play`; or one plan, FILE.toml. By default the built-in plan."),
    ] = None,
    algorithms: Annotated[
        str | None, typer.Option("--algorithms", "-a", help="Algorithms, separated by commas.", rich_help_panel=WHAT)
    ] = None,
    feedback: Annotated[
        str | None, typer.Option(help="full, bandit, or both: full,bandit.", rich_help_panel=WHAT)
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="How many seeds (5), or which: 0,3,7.", rich_help_panel=WHAT)
    ] = None,
    grid: Annotated[
        bool,
        typer.Option(
            "--grid/--no-grid",
            help="Also try several settings of each baseline and show the best.",
            rich_help_panel=WHAT,
        ),
    ] = True,
    bounds: Annotated[
        str | None, typer.Option(help="Compute bounds for the first seed, all or none.", rich_help_panel=WHAT)
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(
            help="Largest norm D of a rule to compare with, where an algorithm needs it (10).", rich_help_panel=WHAT
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Use only so many rounds of each stream, the first ones.", rich_help_panel=WHAT),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="File format; by default from the extension.", rich_help_panel=DATA)
    ] = "",
    label: Annotated[str, options.label(DATA)] = "",
    classes: Annotated[str, options.classes(DATA)] = "",
    features: Annotated[int | None, options.features(DATA)] = None,
    index_base: Annotated[
        str,
        typer.Option(
            metavar="0|1|auto",
            help="What svmlight features count from; by default as the file shows.",
            rich_help_panel=DATA,
        ),
    ] = "",
    header: Annotated[bool | None, options.header(DATA)] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Leave rows as they are; by default tables are encoded by name, other rows scaled to ‖x‖ = 1.",
            rich_help_panel=DATA,
        ),
    ] = False,
    constant: Annotated[bool, options.constant(DATA)] = False,
    log1p: Annotated[bool, options.log1p(DATA)] = False,
    standardize: Annotated[bool, options.standardize(DATA)] = False,
    in_order: Annotated[
        bool,
        typer.Option(
            "--in-order", help="Keep the order of the data; by default each seed shuffles it.", rich_help_panel=DATA
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Number of processes; by default one for each core.", rich_help_panel=HOW
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Where the runs are made: processes or dask.", rich_help_panel=HOW)
    ] = "processes",
    address: Annotated[
        str, typer.Option(help="Address of the Dask scheduler, tcp://HOST:PORT.", rich_help_panel=HOW)
    ] = "",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "-n", help="Show what would run and about how long it takes.", rich_help_panel=HOW),
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for results and report.", rich_help_panel=OUT)
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
        "label": options.read_column(label),
        "classes": options.read_classes(classes),
        "n_features": features,
        "index_base": index_base or None,
        "header": header,
    }
    preparing = {"unit_norm": not raw, "constant": constant, "log1p": log1p, "standardize": standardize}
    plan, text = _plan(data or [], {k: v for k, v in reading.items() if v is not None}, preparing, in_order, raw)
    plan = _turned(plan, algorithms, feedback, seeds, grid, bounds, radius, limit)
    if dry_run:
        _cost(plan, output, jobs)
        return
    results = _run(plan, output, _engine(engine, address, jobs))
    _close(results, output, text, report)


def _plan(
    data: list[str], reading: dict[str, Any], preparing: dict[str, Any], in_order: bool, raw: bool
) -> tuple["Plan", str]:
    """The plan and, if it came from a file, its text."""
    from gaptron.experiments.plan import PlannedStream  # noqa: PLC0415
    from gaptron.experiments.plan_file import default_plan, read_plan  # noqa: PLC0415
    from gaptron.streams.files import is_file, meant_for  # noqa: PLC0415
    from gaptron.streams.rows_by_name import has_names  # noqa: PLC0415

    files = [word for word in data if word.endswith(".toml")]
    if data and not files:
        of_each = {word: meant_for(word, reading) if reading and is_file(word) else {} for word in data}
        for option in reading:
            if not any(option in known for known in of_each.values()):
                raise SettingError(f"{option}=... says nothing about any of these DATA: leave it out")
        numbers = (
            raw or "n_features" in reading or any(preparing[word] for word in ("constant", "log1p", "standardize"))
        )
        by_name = {word: not numbers and has_names(word, reading.get("format")) for word in data}
        streams = tuple(
            PlannedStream(
                word,
                reading=of_each[word],
                preparing={} if names else preparing,
                shuffle=not in_order,
                by_name=names,
            )
            for word, names in by_name.items()
        )
        return replace(default_plan(), streams=streams), ""
    if len(data) > 1:
        raise SettingError(f"{files[0]} is a plan, and a plan is run by itself: add the streams to it")
    if reading or in_order or preparing != {"unit_norm": True, "constant": False, "log1p": False, "standardize": False}:
        raise SettingError("a plan says itself how its streams are read and prepared: these options are for DATA")
    if not files:
        return default_plan(), ""
    return read_plan(Path(files[0])), Path(files[0]).read_text(encoding="utf-8")


def _turned(
    plan: "Plan",
    algorithms: str | None,
    feedback: str | None,
    seeds: str | None,
    grid: bool,
    bounds: str | None,
    radius: float | None,
    limit: int | None,
) -> "Plan":
    """The plan, changed by the options."""
    from gaptron.experiments.plan import PlannedAlgorithm  # noqa: PLC0415

    changes: dict[str, Any] = {}
    if feedback is not None:
        changes["feedback"] = _list("--feedback", feedback)
        if algorithms is None:  # those of the plan that can
            able = tuple(a for a in plan.algorithms if any(a.can(word) for word in changes["feedback"]))
            changes["algorithms"] = able or plan.algorithms
    if algorithms is not None:
        planned = {a.algorithm: a for a in plan.algorithms}
        names = _list("--algorithms", algorithms)
        changes["algorithms"] = tuple(planned.get(name, PlannedAlgorithm(name)) for name in names)
    if seeds is not None:
        changes["seeds"] = _seeds(seeds)
    if not grid:
        chosen = changes.get("algorithms", plan.algorithms)
        changes |= {"grids": False, "algorithms": tuple(replace(a, grid={}) for a in chosen)}
    if bounds is not None:
        changes["bounds"] = bounds
    if radius is not None:
        changes["radius"] = radius
    if limit is not None:
        changes["streams"] = tuple(replace(s, preparing={**s.preparing, "limit": limit}) for s in plan.streams)
    return replace(plan, **changes)


def _list(option: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not names:
        raise SettingError(f"{option} is empty: name at least one, or leave the option out")
    return names


def _seeds(text: str) -> tuple[int, ...]:
    words = _list("--seeds", text)
    if not all(word.isdigit() for word in words) or words == ("0",):
        raise SettingError(f"--seeds {text}: give a number of seeds, or the seeds separated by commas")
    return tuple(int(word) for word in words) if "," in text else tuple(range(int(words[0])))


def _engine(name: str, address: str, jobs: int | None) -> "Engine":
    from joblib import cpu_count  # noqa: PLC0415

    from gaptron.experiments.engines import dask, processes, serial  # noqa: PLC0415

    if name not in ENGINES:
        raise SettingError(f"unknown engine {name!r}; there are: {', '.join(ENGINES)}")
    if name == "dask":
        if not address:
            raise SettingError("--engine dask needs --address tcp://HOST:PORT, the address of the scheduler")
        return partial(dask, address=address)
    n = jobs or cpu_count()
    return serial if n == 1 else partial(processes, n=n)


def _run(plan: "Plan", output: Path, engine: "Engine") -> list["Result"]:
    from gaptron.experiments.compare import compare as run  # noqa: PLC0415

    try:
        with _watched() as watcher:
            return run(plan, output, engine, watcher)
    except KeyboardInterrupt:
        typer.echo(f"gaptron: interrupted; what is finished is in {output}, and the same command goes on", err=True)
        raise typer.Exit(130) from None
    except OSError as problem:
        _stop(problem, output)


def _stop(problem: OSError, output: Path) -> NoReturn:
    """A full disk, or a folder that may not be written to: one line, and what is finished stays."""
    reason = problem.strerror or str(problem)
    typer.echo(
        f"gaptron: {output} cannot be written: {reason}; what is finished is kept, and the same command goes on",
        err=True,
    )
    raise typer.Exit(1) from None


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

        def finished(result: "Result") -> None:
            nonlocal failures
            failures += not result.ok
            trouble = f"[red]{failures} failed[/] " if failures else ""
            bar.update(tasks, advance=1, description=f"{trouble}{result.stream} · {result.algorithm}")

        yield Watcher(
            preparing=lambda stream: bar.update(tasks, description=f"reading {stream.title}"),
            begun=begun,
            finished=finished,
            note=lambda text: typer.echo(f"gaptron: {text}", err=True),
        )


def _close(results: list["Result"], output: Path, plan: str, report: bool) -> None:
    """The table, the report, and what failed."""
    from rich.console import Console  # noqa: PLC0415

    from gaptron.experiments.store import FILE  # noqa: PLC0415

    good = [result for result in results if result.ok]
    if good:
        from gaptron.report.compare import table, write  # noqa: PLC0415

        console = Console()
        (console if console.is_terminal else Console(width=160)).print(table(results), highlight=False)
        if report:
            try:
                page = write(results, output, plan=plan, command=shlex.join(["gaptron", *sys.argv[1:]]))
            except OSError as problem:
                _stop(problem, output)
            typer.echo(f"report:  {page}")
        typer.echo(f"one run: {good[0].command}")
    typer.echo(f"results: {output / FILE}")
    failures = [result for result in results if not result.ok]
    for message, times in Counter(_reason(result) for result in failures).most_common():
        typer.echo(f"gaptron: {message} ({times} task{'s' if times > 1 else ''})", err=True)
    if failures:
        typer.echo(
            f"gaptron: {len(failures)} of {len(results)} tasks failed; the same command tries them again", err=True
        )
        raise typer.Exit(1)


def _reason(result: "Result") -> str:
    error = result.error or {}
    what = f"{error.get('type')}: {error.get('message')}"
    # Without data the stream itself could not be read, whatever the algorithm.
    return what if result.data is None else f"{result.stream}, {result.algorithm}: {what}"


def _cost(plan: "Plan", output: Path, jobs: int | None) -> None:
    """What would run, and for how long."""
    from joblib import cpu_count  # noqa: PLC0415

    from gaptron.experiments.compare import estimate, sizes  # noqa: PLC0415
    from gaptron.experiments.store import FILE, read  # noqa: PLC0415

    file = output / FILE
    known = {result.key for result in read(file)[0] if result.ok} if file.exists() else set()
    rows: list[tuple[str, ...]] = [("stream", "rounds", "features", "classes", "tasks", "known", "core seconds")]
    tasks = left = 0
    total = 0.0
    for stream, cached in sizes(plan):
        todo = list(plan.tasks(stream))
        new = [task for task in todo if task.key(cached.data) not in known]
        cost = sum(estimate(task, cached) for task in new)
        size = (cached.n_rounds, cached.n_features, cached.n_classes, len(todo), len(todo) - len(new))
        rows.append((stream.title, *(f"{n:,}" for n in size), f"{cost:,.1f}"))
        tasks, left, total = tasks + len(todo), left + len(new), total + cost
    show(rows, "What would run")
    n = jobs or cpu_count()
    typer.echo(
        f"\n{tasks:,} tasks, {left:,} of them without a result yet; about {max(1, round(total / n)):,} s on {n} cores, "
        "and some seconds more for each algorithm that has never been compiled here"
    )
