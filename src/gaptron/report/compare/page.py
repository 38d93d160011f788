"""The page: results become one HTML file that needs nothing else, and figures for a paper."""

import platform
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from gaptron.errors import InputError
from gaptron.experiments.grouping import Variant, settings_text
from gaptron.experiments.summary import Field, fields
from gaptron.experiments.task import Result
from gaptron.report.colours import NAMED
from gaptron.report.compare.elements import Cell, Table
from gaptron.report.compare.figure import house_style
from gaptron.report.compare.sections import sections
from gaptron.report.compare.wording import feedback, headline, several

FOLDED = 20  # failures that are shown without being asked for


def write(
    results: Iterable[Result], folder: Path | str, *, title: str = "A comparison", plan: str = "", command: str = ""
) -> Path:
    """Write FOLDER/report.html and FOLDER/figures/*.svg, *.pdf; return the page's path.

    Args:
        results: of any number of streams, feedbacks, algorithms and seeds; failed ones are named as such.
        folder: made if it is not there; a report that is there is replaced.
        title: over the page.
        plan: the text of the plan, to be shown with what is needed to repeat it.
        command: the command line, for the same.
    """
    results = list(results)
    if not results:
        raise InputError("there are no results: nothing to report")
    folder = Path(folder)
    summary = fields(results)
    path = folder / "report.html"
    _forget(path)
    with house_style():
        shown = sections(summary, folder / "figures")
    source = resources.files("gaptron.report.compare").joinpath("page.html").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
    page = template.render(
        title=title,
        colours=NAMED,
        headlines=[(feedback(f.feedback), headline(f)) for f in summary if f.ranking],
        scope=_scope(summary, results),
        failures=_failures(summary),
        sections=shown,
        repeat=_repeat(summary, results),
        machine=f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        versions=sorted({result.version for result in results}),
        processors=sorted({result.processor for result in results if result.processor}),
        plan=plan,
        command=command,
    )
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def _forget(page: Path) -> None:
    """Remove the figures an earlier report names: the new one may have fewer."""
    if page.exists():
        for name in re.findall(r'href="figures/([\w-]+\.(?:svg|pdf))"', page.read_text(encoding="utf-8")):
            (page.parent / "figures" / name).unlink(missing_ok=True)


def _scope(summary: list[Field], results: list[Result]) -> str:
    streams = {arena for field in summary for arena in field.arenas}
    algorithms = {result.algorithm for result in results}
    seeds = {result.seed for result in results}
    good = sum(result.ok for result in results)
    return (
        f"{several(len(algorithms), 'algorithm')}, {several(len(streams), 'stream')}, {several(len(seeds), 'seed')}: "
        f"{several(good, 'run')}."
    )


def _failures(summary: list[Field]) -> Table | None:
    rows = []
    for field in summary:
        for r in field.failed:
            problem = r.error or {}
            setting = settings_text(tuple(sorted(r.settings.items()))) or "published"
            why = f"{problem.get('type', 'error')}: {problem.get('message', 'no reason was kept')}"
            words = (r.stream, feedback(r.feedback), r.algorithm, r.loss, setting)
            rows.append([*map(Cell, words), Cell(str(r.seed), r.seed), Cell(why, None, "sentence")])
    if not rows:
        return None
    head = ["stream", "feedback", "algorithm", "loss", "setting", "seed", "why"]
    return Table("Failed runs", head, rows, quiet=len(rows) > FOLDED)


def _repeat(summary: list[Field], results: list[Result]) -> list[Table]:
    arenas = sorted({(field.places[arena], arena) for field in summary for arena in field.arenas})
    prepared = {(r.stream, r.data or ""): ", ".join(r.prepared) for r in results if r.ok}
    data = [
        [
            Cell(name),
            Cell(f"{a.rounds:,}", a.rounds),
            Cell(str(a.n_classes), a.n_classes),
            Cell(f"{a.n_features:,}", a.n_features),
            Cell(prepared.get((a.stream, a.data), "")),
            Cell(a.data, None, "hash"),
        ]
        for name, a in arenas
    ]
    tables = [Table("Streams", ["stream", "rounds", "classes", "features", "prepared", "hash of the data"], data)]
    rows = []
    for field in summary:
        for variant in field.variants:
            runs = [run for (other, _), there in field.runs.items() if other == variant for run in there.values()]
            seeds = ", ".join(map(str, sorted({run.seed for run in runs})))
            rows.append(
                [
                    Cell(field.names[variant]),
                    Cell(feedback(field.feedback)),
                    Cell(variant.loss),
                    Cell(settings_text(variant.settings) or "as published"),
                    Cell(_tried(field, variant)),
                    Cell(seeds),
                ]
            )
    head = ["algorithm", "feedback", "loss", "settings", "grid", "seeds"]
    return [*tables, Table("Settings and seeds", head, rows, quiet=True), *_commands(summary, results)]


def _commands(summary: list[Field], results: list[Result]) -> list[Table]:
    """Every run with the command that repeats it, a table for each stream and feedback."""
    head = ["algorithm", "loss", "settings", "seed", "mistakes", "expected", "command"]
    tables = []
    for field in summary:
        for arena in field.arenas:
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
                    Cell(r.command or "not kept", None, "command"),
                ]
                for r in results
                if r.ok and (r.feedback, r.stream, r.data or "") == (field.feedback, arena.stream, arena.data)
            ]
            caption = f"The command for every run: {field.places[arena]}, {feedback(field.feedback).lower()}"
            tables.append(Table(caption, head, rows, quiet=True))
    return tables


def _tried(field: Field, variant: Variant) -> str:
    if not variant.tuned:
        return ""
    values = {
        c.value: None
        for (other, _), grid in field.grids.items()
        if other == variant
        for c in grid.candidates
        if not c.published
    }
    return f"{variant.tuned}: " + "; ".join(", ".join(map(_plain, value)) for value in values)


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
