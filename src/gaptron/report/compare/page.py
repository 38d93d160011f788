"""The page: records become one HTML file that needs nothing else, and figures for a paper."""

import platform
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from gaptron.errors import InputError
from gaptron.experiments.record import Record
from gaptron.experiments.summary import Entry, Field, fields, said
from gaptron.report.compare.palette import NAMED
from gaptron.report.compare.parts import Cell, Table
from gaptron.report.compare.sections import sections
from gaptron.report.compare.style import house_style
from gaptron.report.compare.words import feedback, headline, several

FOLDED = 20  # failures that are shown without being asked for


def write(
    records: Iterable[Record], folder: Path | str, *, title: str = "A comparison", plan: str = "", command: str = ""
) -> Path:
    """Write FOLDER/report.html and FOLDER/figures/*.svg, *.pdf; return the page's path.

    Args:
        records: of any number of streams, feedbacks, algorithms and seeds; failed ones are named as such.
        folder: made if it is not there; a report that lies there is replaced.
        title: over the page.
        plan: the text of the plan, to be shown with what is needed to repeat it.
        command: the command line, for the same.
    """
    records = list(records)
    if not records:
        raise InputError("there are no records: nothing to report")
    folder = Path(folder)
    found = fields(records)
    path = folder / "report.html"
    _forget(path)
    with house_style():
        shown = sections(found, folder / "figures")
    source = resources.files("gaptron.report.compare").joinpath("page.html").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
    page = template.render(
        title=title,
        colours=NAMED,
        headlines=[(feedback(f.feedback), headline(f)) for f in found if f.ranking],
        scope=_scope(found, records),
        failures=_failures(found),
        sections=shown,
        repeat=_repeat(found, records),
        machine=f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        versions=sorted({record.version for record in records}),
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


def _scope(found: list[Field], records: list[Record]) -> str:
    streams = {arena for field in found for arena in field.arenas}
    algorithms = {record.algorithm for record in records}
    seeds = {record.seed for record in records}
    good = sum(record.ok for record in records)
    return (
        f"{several(len(algorithms), 'algorithm')}, {several(len(streams), 'stream')}, {several(len(seeds), 'seed')}: "
        f"{several(good, 'run')}."
    )


def _failures(found: list[Field]) -> Table | None:
    rows = []
    for field in found:
        for r in field.failed:
            problem = r.error or {}
            setting = said(tuple(sorted(r.settings.items()))) or "published"
            why = f"{problem.get('type', 'error')}: {problem.get('message', 'no reason was kept')}"
            words = (r.stream, feedback(r.feedback), r.algorithm, r.loss, setting)
            rows.append([*map(Cell, words), Cell(str(r.seed), r.seed), Cell(why)])
    if not rows:
        return None
    head = ["stream", "feedback", "algorithm", "loss", "setting", "seed", "why"]
    return Table("Failed runs", head, rows, quiet=len(rows) > FOLDED)


def _repeat(found: list[Field], records: list[Record]) -> list[Table]:
    arenas = sorted({(field.places[arena], arena) for field in found for arena in field.arenas})
    prepared = {(r.stream, r.data or ""): ", ".join(r.prepared) for r in records if r.ok}
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
    for field in found:
        for entry in field.entries:
            runs = [run for (other, _), there in field.runs.items() if other == entry for run in there.values()]
            seeds = ", ".join(map(str, sorted({run.seed for run in runs})))
            rows.append(
                [
                    Cell(field.names[entry]),
                    Cell(feedback(field.feedback)),
                    Cell(entry.loss),
                    Cell(said(entry.settings) or "as published"),
                    Cell(_tried(field, entry)),
                    Cell(seeds),
                ]
            )
    head = ["algorithm", "feedback", "loss", "settings", "grid", "seeds"]
    return [*tables, Table("Settings and seeds", head, rows, quiet=True)]


def _tried(field: Field, entry: Entry) -> str:
    if not entry.tuned:
        return ""
    values = {
        c.value: None
        for (other, _), grid in field.grids.items()
        if other == entry
        for c in grid.candidates
        if not c.published
    }
    return f"{entry.tuned}: " + "; ".join(", ".join(map(_plain, value)) for value in values)


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
