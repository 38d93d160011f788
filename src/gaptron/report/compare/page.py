"""Write the report: one self-contained HTML file, and its figures as SVG and PDF."""

import platform
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from gaptron.errors import InputError
from gaptron.experiments.grouping import Variant, settings_text
from gaptron.experiments.summary import Summary, summarize
from gaptron.experiments.task import Result
from gaptron.report.compare.elements import Cell, Table
from gaptron.report.compare.figure import use_theme
from gaptron.report.compare.formatting import feedback_title, headline, plural
from gaptron.report.compare.sections import sections
from gaptron.report.theme import NAMED

MAX_OPEN_FAILURES = 20  # a longer table of failures is collapsed


def write(
    results: Iterable[Result], folder: Path | str, *, title: str = "A comparison", plan: str = "", command: str = ""
) -> Path:
    """Write FOLDER/report.html and FOLDER/figures/*.svg, *.pdf.

    Args:
        results: of any number of streams, feedbacks, algorithms and seeds; failed ones are listed separately.
        folder: created if it does not exist; an existing report is replaced.
        title: of the page.
        plan: the text of the plan, shown in the section on reproducing the comparison.
        command: the command line, shown there too.

    Returns:
        The path of the page.
    """
    results = list(results)
    if not results:
        raise InputError("there are no results to report")
    folder = Path(folder)
    summaries = summarize(results)
    path = folder / "report.html"
    _remove_figures(path)
    with use_theme():
        content = sections(summaries, folder / "figures")
    source = resources.files("gaptron.report.compare").joinpath("page.html").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
    page = template.render(
        title=title,
        colours=NAMED,
        headlines=[(feedback_title(f.feedback), headline(f)) for f in summaries if f.ranking],
        scope=_scope(summaries, results),
        failures=_failures(summaries),
        sections=content,
        reproduce=_reproduce(summaries, results),
        machine=f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        versions=sorted({result.version for result in results}),
        processors=sorted({result.processor for result in results if result.processor}),
        plan=plan,
        command=command,
    )
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _remove_figures(page: Path) -> None:
    """Remove the figures of an earlier report: the new one may have fewer."""
    if page.exists():
        for name in re.findall(r'href="figures/([\w-]+\.(?:svg|pdf))"', page.read_text(encoding="utf-8")):
            (page.parent / "figures" / name).unlink(missing_ok=True)


def _scope(summaries: list[Summary], results: list[Result]) -> str:
    streams = {stream for summary in summaries for stream in summary.streams}
    algorithms = {result.algorithm for result in results}
    seeds = {result.seed for result in results}
    succeeded = sum(result.ok for result in results)
    return (
        f"{plural(len(algorithms), 'algorithm')}, {plural(len(streams), 'stream')}, {plural(len(seeds), 'seed')}: "
        f"{plural(succeeded, 'run')}."
    )


def _failures(summaries: list[Summary]) -> Table | None:
    rows = []
    for summary in summaries:
        for r in summary.failed:
            problem = r.error or {}
            setting = settings_text(tuple(sorted(r.settings.items()))) or "published"
            why = f"{problem.get('type', 'error')}: {problem.get('message', 'no message')}"
            texts = (r.stream, feedback_title(r.feedback), r.algorithm, r.loss, setting)
            rows.append([*map(Cell, texts), Cell(str(r.seed), r.seed), Cell(why, None, "sentence")])
    if not rows:
        return None
    head = ["stream", "feedback", "algorithm", "loss", "setting", "seed", "error"]
    return Table("Failed runs", head, rows, collapsed=len(rows) > MAX_OPEN_FAILURES)


def _reproduce(summaries: list[Summary], results: list[Result]) -> list[Table]:
    streams = sorted({(summary.stream_names[stream], stream) for summary in summaries for stream in summary.streams})
    prepared = {(r.stream, r.data or ""): ", ".join(r.prepared) for r in results if r.ok}
    data = [
        [
            Cell(name),
            Cell(f"{a.rounds:,}", a.rounds),
            Cell(str(a.n_classes), a.n_classes),
            Cell(f"{a.n_features:,}", a.n_features),
            Cell(prepared.get((a.name, a.data), "")),
            Cell(a.data, None, "hash"),
        ]
        for name, a in streams
    ]
    tables = [Table("Streams", ["stream", "rounds", "classes", "features", "prepared", "data hash"], data)]
    rows = []
    for summary in summaries:
        for variant in summary.variants:
            runs = [run for (other, _), by_seed in summary.runs.items() if other == variant for run in by_seed.values()]
            seeds = ", ".join(map(str, sorted({run.seed for run in runs})))
            rows.append(
                [
                    Cell(summary.names[variant]),
                    Cell(feedback_title(summary.feedback)),
                    Cell(variant.loss),
                    Cell(settings_text(variant.settings) or "as published"),
                    Cell(_grid_values(summary, variant)),
                    Cell(seeds),
                ]
            )
    head = ["algorithm", "feedback", "loss", "settings", "grid", "seeds"]
    return [*tables, Table("Settings and seeds", head, rows, collapsed=True), *_commands(summaries, results)]


def _commands(summaries: list[Summary], results: list[Result]) -> list[Table]:
    """Return every run with the command that repeats it, one table per stream and feedback."""
    head = ["algorithm", "loss", "settings", "seed", "mistakes", "expected", "command"]
    tables = []
    for summary in summaries:
        for stream in summary.streams:
            rows = [
                [
                    Cell(r.algorithm),
                    Cell(r.loss),
                    Cell(settings_text(tuple(sorted(r.settings.items()))) or "as published"),
                    Cell(str(r.seed), r.seed),
                    Cell(f"{r.mistakes:,}", r.mistakes),
                    Cell("–")
                    if r.expected_mistakes is None
                    else Cell(f"{r.expected_mistakes:,.1f}", r.expected_mistakes),
                    Cell(r.command or "no command: repeat the comparison with this seed", None, "command"),
                ]
                for r in results
                if r.ok and (r.feedback, r.stream, r.data or "") == (summary.feedback, stream.name, stream.data)
            ]
            caption = (
                f"Commands of all runs: {summary.stream_names[stream]}, {feedback_title(summary.feedback).lower()}"
            )
            tables.append(Table(caption, head, rows, collapsed=True))
    return tables


def _grid_values(summary: Summary, variant: Variant) -> str:
    if not variant.tuned:
        return ""
    values = {
        c.value: None
        for (other, _), grid in summary.grids.items()
        if other == variant
        for c in grid.candidates
        if not c.published
    }
    return f"{variant.tuned}: " + "; ".join(", ".join(map(_format, value)) for value in values)


def _format(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
