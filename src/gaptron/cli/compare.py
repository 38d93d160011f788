"""`gaptron compare`: run many algorithms over many streams and seeds, and rank them."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gaptron.cli import action_options, options
from gaptron.cli.lines import print_line
from gaptron.cli.table import show
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron.experiments.backends import Backend
    from gaptron.experiments.compare import Callbacks
    from gaptron.experiments.plan import Plan
    from gaptron.experiments.task import Result, Task

WHAT, DATA, HOW, OUT = map(options.panel, ("What to compare", "Reading and preparing DATA", "Running", "Output"))
APPLICABLE = (  # with --actions
    *("data", "algorithms", "feedback", "seeds", "grid", "bounds", "limit", "format_", "jobs", "backend", "address"),
    *("dry_run", "output", "report"),
)
MINUTES = 120.0  # seconds from which a duration is given in minutes
BACKENDS = ("processes", "dask")


def compare(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        typer.Argument(help="Streams, as for `gaptron play`; or one plan, FILE.toml. Default: the built-in plan."),
    ] = None,
    algorithms: Annotated[
        str | None,
        WHAT(
            "--algorithms",
            "-a",
            help="Algorithms or external models (river:forest.AMFClassifier), separated by commas.",
        ),
    ] = None,
    feedback: Annotated[str | None, WHAT(help="full, bandit, or both: full,bandit.")] = None,
    seeds: Annotated[str | None, WHAT(help="How many seeds (5), or which: 0,3,7.")] = None,
    grid: Annotated[
        bool, WHAT("--grid/--no-grid", help="Also try several settings of each baseline and show the best one.")
    ] = True,
    bounds: Annotated[str | None, WHAT(help="Compute bounds for the first seed, all or none.")] = None,
    radius: Annotated[
        float | None, WHAT(help="Largest norm D of a comparator, for algorithms that need it (10).")
    ] = None,
    limit: Annotated[int | None, WHAT(min=1, help="Use only the first LIMIT rounds of each stream.")] = None,
    format_: Annotated[str, DATA("--format", help="File format; default: from the extension.")] = "",
    label: Annotated[str, options.label(DATA)] = "",
    classes: Annotated[str, options.classes(DATA)] = "",
    features: Annotated[int | None, options.features(DATA)] = None,
    index_base: Annotated[
        str, DATA(metavar="0|1|auto", help="First feature index of svmlight files; default: detected.")
    ] = "",
    header: Annotated[bool | None, options.header(DATA)] = None,
    separator: Annotated[str, options.separator(DATA)] = "",
    decimal: Annotated[str, options.decimal(DATA)] = "",
    dates: Annotated[str, options.dates(DATA)] = "",
    encoding: Annotated[str, options.encoding(DATA)] = "",
    raw: Annotated[
        bool,
        DATA(
            "--raw", help="Use the numbers as they are; default: encode the columns of tables, scale others to ‖x‖ = 1."
        ),
    ] = False,
    actions: Annotated[bool, DATA("--actions", help=action_options.HELP["actions"])] = False,
    constant: Annotated[bool, options.constant(DATA)] = False,
    log1p: Annotated[bool, options.log1p(DATA)] = False,
    standardize: Annotated[bool, options.standardize(DATA)] = False,
    in_order: Annotated[
        bool | None,
        DATA(
            "--in-order/--shuffle",
            help="Keep the order of the data, or let each seed shuffle it; by default tables with times are kept.",
        ),
    ] = None,
    jobs: Annotated[int | None, HOW("--jobs", "-j", min=1, help="Number of processes; default: one per core.")] = None,
    backend: Annotated[str, HOW(help="Where to run: processes or dask.")] = "processes",
    address: Annotated[str, HOW(help="Address of the Dask scheduler, tcp://HOST:PORT.")] = "",
    dry_run: Annotated[bool, HOW("--dry-run", "-n", help="Show which tasks would run, and estimate the time.")] = False,
    output: Annotated[Path, OUT("--output", "-o", help="Folder for results and report.")] = Path("gaptron-compare"),
    report: Annotated[bool, OUT("--report/--no-report", help="Write the HTML report.")] = True,
) -> None:
    """Compare algorithms on the same examples, in the same order, with the same random draws.

    gaptron compare

    gaptron compare train.svm.gz letter -a frugal-gaptron,banditron --feedback bandit --seeds 10

    gaptron compare experiments/paper.toml --dry-run

    After an interruption, or with more seeds, the same command continues where it stopped.
    """
    from joblib import cpu_count  # noqa: PLC0415

    action_options.check_applicable(context, actions, APPLICABLE)
    reading = {
        "format": format_ or None,
        "label": options.read_column(label),
        "classes": options.read_classes(classes),
        "n_features": features,
        "index_base": index_base or None,
        "header": header,
        **options.read_text_options(separator, decimal, dates, encoding),
    }
    preparing = {"unit_norm": not raw, "constant": constant, "log1p": log1p, "standardize": standardize}
    if actions:
        plan, text = _action_plan(data or [], format_), ""
    else:
        plan, text = _plan(data or [], {k: v for k, v in reading.items() if v is not None}, preparing, in_order, raw)
    plan = _apply_options(plan, algorithms, feedback, seeds, grid, bounds, radius, limit)
    if dry_run:
        _dry_run(plan, output, jobs)
        return
    results = _run(plan, output, _backend(backend, address, jobs), jobs or cpu_count())
    _report(results, output, text, report)


def _action_plan(data: list[str], format_: str) -> "Plan":
    """Return the plan for streams whose rounds bring their own actions, with the algorithms that play them."""
    from gaptron.experiments.plan import PlannedStream  # noqa: PLC0415
    from gaptron.experiments.plan_file import default_plan  # noqa: PLC0415
    from gaptron.streams.actions.worlds import is_world  # noqa: PLC0415

    if not data or any(word.endswith(".toml") for word in data):
        raise SettingError("--actions needs DATA with actions; in a plan, a stream has actions = true")
    reading = {"format": format_} if format_ else {}
    streams = tuple(
        PlannedStream(
            word, reading=reading, shuffle=False, feedback=("bandit",) if is_world(word) else (), actions=True
        )
        for word in data
    )
    plan = default_plan()
    return replace(plan, streams=streams, algorithms=tuple(a for a in plan.algorithms if a.supports_actions))


def _plan(
    data: list[str], reading: dict[str, Any], preparing: dict[str, Any], in_order: bool | None, raw: bool
) -> tuple["Plan", str]:
    """Return the plan and, if it came from a file, its text."""
    from gaptron.experiments.plan import PlannedStream  # noqa: PLC0415
    from gaptron.experiments.plan_file import default_plan, read_plan  # noqa: PLC0415
    from gaptron.streams.files import applicable_options, is_file  # noqa: PLC0415
    from gaptron.streams.tables import is_table_file  # noqa: PLC0415

    files = [word for word in data if word.endswith(".toml")]
    if data and not files:
        options_of = {word: applicable_options(word, reading) if reading and is_file(word) else {} for word in data}
        for option in reading:
            if not any(option in known for known in options_of.values()):
                raise SettingError(f"{option}=... applies to none of these DATA: remove it")
        numbers = (
            raw or "n_features" in reading or any(preparing[word] for word in ("constant", "log1p", "standardize"))
        )
        by_name = {word: not numbers and is_table_file(word, reading.get("format")) for word in data}
        streams = tuple(
            PlannedStream(
                word,
                reading=options_of[word],
                preparing={} if names else preparing,
                shuffle=not (_has_times(word, options_of[word]) if in_order is None and names else in_order),
                by_name=names,
            )
            for word, names in by_name.items()
        )
        return replace(default_plan(), streams=streams), ""
    if len(data) > 1:
        raise SettingError(f"{files[0]} is a plan and cannot be combined with other DATA: add the streams to the plan")
    if (
        reading
        or in_order is not None
        or preparing != {"unit_norm": True, "constant": False, "log1p": False, "standardize": False}
    ):
        raise SettingError("options for reading and preparing apply to DATA, not to a plan: put them into the plan")
    if not files:
        return default_plan(), ""
    return read_plan(Path(files[0])), Path(files[0]).read_text(encoding="utf-8")


def _has_times(path: str, reading: dict[str, Any]) -> bool:
    """Whether a table has a column of times, so that the order of its rows means something; say so."""
    from gaptron.streams.files import TEXT_OPTIONS  # noqa: PLC0415
    from gaptron.streams.tables import time_columns  # noqa: PLC0415

    found = time_columns(path, **{k: v for k, v in reading.items() if k in ("format", "label", *TEXT_OPTIONS)})
    if found:
        print_line(
            f"gaptron: {path} has times ({found[0]}): its rounds are played in their order; --shuffle shuffles them",
            err=True,
        )
    return bool(found)


def _apply_options(
    plan: "Plan",
    algorithms: str | None,
    feedback: str | None,
    seeds: str | None,
    grid: bool,
    bounds: str | None,
    radius: float | None,
    limit: int | None,
) -> "Plan":
    """Return the plan changed by the command-line options."""
    from gaptron.experiments.plan import PlannedAlgorithm  # noqa: PLC0415

    changes: dict[str, Any] = {}
    if feedback is not None:
        changes["feedback"] = _list("--feedback", feedback)
        if algorithms is None:  # those of the plan that support it
            able = tuple(a for a in plan.algorithms if any(a.supports(word) for word in changes["feedback"]))
            changes["algorithms"] = able or plan.algorithms
    if algorithms is not None:
        planned = {a.algorithm: a for a in plan.algorithms}
        names = _list("--algorithms", algorithms)
        changes["algorithms"] = tuple(planned[name] if name in planned else PlannedAlgorithm(name) for name in names)
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
        raise SettingError(f"{option} is empty: give at least one name, or remove the option")
    return names


def _seeds(text: str) -> tuple[int, ...]:
    words = _list("--seeds", text)
    if not all(word.isdigit() for word in words) or words == ("0",):
        raise SettingError(f"--seeds {text}: give a number of seeds, or the seeds separated by commas")
    return tuple(int(word) for word in words) if "," in text else tuple(range(int(words[0])))


def _backend(name: str, address: str, jobs: int | None) -> "Backend":
    from joblib import cpu_count  # noqa: PLC0415

    from gaptron.experiments.backends import dask, processes, serial  # noqa: PLC0415

    if name not in BACKENDS:
        raise SettingError(f"unknown backend {name!r}; choose from: {', '.join(BACKENDS)}")
    if name == "dask":
        if not address:
            raise SettingError("--backend dask needs --address tcp://HOST:PORT, the address of the scheduler")
        return partial(dask, address=address)
    n = jobs or cpu_count()
    return serial if n == 1 else partial(processes, n=n)


def _run(plan: "Plan", output: Path, backend: "Backend", n_cores: int) -> list["Result"]:
    from gaptron.experiments.compare import compare as run  # noqa: PLC0415

    try:
        with _progress(n_cores) as callbacks:
            return run(plan, output, backend, callbacks)
    except KeyboardInterrupt:
        typer.echo(f"gaptron: interrupted; finished results are in {output}, and the same command continues", err=True)
        raise typer.Exit(130) from None
    except OSError as problem:
        _stop(problem, output)


def _stop(problem: OSError, output: Path) -> NoReturn:
    """Exit with one line about a full disk or a folder that cannot be written to; finished results are kept."""
    reason = problem.strerror or str(problem)
    typer.echo(
        f"gaptron: {output} cannot be written: {reason}; finished results are kept, and the same command continues",
        err=True,
    )
    raise typer.Exit(1) from None


@contextmanager
def _progress(n_cores: int) -> Iterator["Callbacks"]:
    """Say how long it will take, and show a progress bar on standard error, if that is a terminal."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from gaptron.experiments.compare import Callbacks, duration  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    description = TextColumn("{task.description}")
    failures = 0
    with Progress(*columns, description, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks = bar.add_task("", total=None)

        def on_start(total: int, known: int, todo: "Sequence[tuple[Task, float]]") -> None:
            if todo:
                text = f"gaptron: {len(todo):,} tasks, {_duration(duration(todo, n_cores), n_cores)}"
                bar.console.print(text, highlight=False)
            bar.update(tasks, total=total, completed=known, description="starting")

        def on_result(result: "Result") -> None:
            nonlocal failures
            failures += not result.ok
            failed = f"[red]{failures} failed[/] " if failures else ""
            bar.update(tasks, advance=1, description=f"{failed}{result.stream} · {result.algorithm}")

        yield Callbacks(
            on_stream=lambda stream: bar.update(tasks, description=f"reading {stream.title}"),
            on_start=on_start,
            on_result=on_result,
            on_note=lambda text: typer.echo(f"gaptron: {text}", err=True),
        )


def _report(results: list["Result"], output: Path, plan: str, report: bool) -> None:
    """Print the table, write the report, and list the failures."""
    from rich.console import Console  # noqa: PLC0415

    from gaptron.experiments.store import FILE  # noqa: PLC0415

    succeeded = [result for result in results if result.ok]
    if succeeded:
        from gaptron.report.compare import table, write  # noqa: PLC0415

        console = Console()
        (console if console.is_terminal else Console(width=160)).print(table(results), highlight=False)
        if report:
            try:
                page = write(results, output, plan=plan, command=shlex.join(["gaptron", *sys.argv[1:]]))
            except OSError as problem:
                _stop(problem, output)
            typer.echo(f"report:  {page}")
        command = next((result.command for result in succeeded if result.command), "")
        if command:
            typer.echo(f"one run: {command}")
    typer.echo(f"results: {output / FILE}")
    failures = [result for result in results if not result.ok]
    for message, times in Counter(_reason(result) for result in failures).most_common():
        typer.echo(f"gaptron: {message} ({times} task{'s' if times > 1 else ''})", err=True)
    if failures:
        typer.echo(
            f"gaptron: {len(failures)} of {len(results)} tasks failed; the same command runs them again", err=True
        )
        raise typer.Exit(1)


def _reason(result: "Result") -> str:
    error = result.error or {}
    text = f"{error.get('type')}: {error.get('message')}"
    # Without data the stream could not be read, so the algorithm does not matter.
    return text if result.data is None else f"{result.stream}, {result.algorithm}: {text}"


def _dry_run(plan: "Plan", output: Path, jobs: int | None) -> None:
    """Print which tasks would run, and an estimate of the time."""
    from joblib import cpu_count  # noqa: PLC0415

    from gaptron.experiments.compare import duration, estimate, sizes  # noqa: PLC0415
    from gaptron.experiments.store import FILE, read  # noqa: PLC0415

    file = output / FILE
    known = {result.key for result in read(file)[0] if result.ok} if file.exists() else set()
    rows: list[tuple[str, ...]] = [("stream", "rounds", "features", "classes", "tasks", "done", "core seconds")]
    tasks = 0
    left: list[tuple[Task, float]] = []
    for stream, cached in sizes(plan):
        todo = list(plan.tasks(stream))
        new = [task for task in todo if task.key(cached.data) not in known]
        costs = [(task, estimate(task, cached)) for task in new]
        size = (cached.n_rounds, cached.n_features, cached.n_classes, len(todo), len(todo) - len(new))
        rows.append((stream.title, *(f"{n:,}" for n in size), f"{sum(cost for _, cost in costs):,.1f}"))
        tasks, left = tasks + len(todo), left + costs
    show(rows, "Tasks to run")
    n = jobs or cpu_count()
    typer.echo(
        f"\n{tasks:,} tasks, {len(left):,} of them without a result; {_duration(duration(left, n), n)}, "
        "plus a few seconds for each algorithm that has not been compiled yet"
    )


def _duration(seconds: float, n_cores: int) -> str:
    minutes = f"{round(seconds):,} s" if seconds < MINUTES else f"{round(seconds / 60):,} minutes"
    return f"about {minutes} on {n_cores} core{'s' if n_cores > 1 else ''}"
