"""Error against the tuning parameter, for every baseline with a grid."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gaptron.experiments.summary import Candidate, Entry, Field, Grid, error
from gaptron.report.compare.looks import Palette, frame, key, label, leading, legend, look, short
from gaptron.report.compare.palette import GREY, INK, QUIET
from gaptron.report.compare.style import log_axis
from gaptron.types import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNTUNED = 5  # horizontal lines beside a grid
RING: dict[str, Any] = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.6}


def grids_over_streams(field: Field, colours: Palette) -> "Figure":
    """A panel a baseline: error against its parameter, mean over streams; each stream thin."""
    tuned, lines = drawable(field), untuned(field, colours)
    figure, panels = frame(len(tuned), len(lines) + 2)
    for panel, entry in zip(panels, tuned):
        there = [arena for arena in field.arenas if (entry, arena) in field.grids]
        grids = [field.grids[entry, arena] for arena in there]
        paths = [{value: _errors(tried).mean() for value, tried in _path(grid).items()} for grid in grids]
        for path in paths:
            panel.plot(list(path), list(path.values()), color=GREY.light, linewidth=0.8)
        shared = [value for value in paths[0] if all(value in path for path in paths)]
        means = [float(np.mean([path[value] for path in paths])) for value in shared]
        _line(panel, _ink(entry, colours), shared, means, _published(grids))
        for other in lines:
            _level(panel, field, other, colours, float(np.mean([field.error(other, a).mean for a in there])))
        panel.set_title(short(_plain(field, entry)), loc="left")
        panel.set_xlabel(_axis(entry))
    _legend(figure, field, lines, colours, [key("one stream", color=GREY.light, linewidth=0.8)])
    label(figure, "", "error, %")
    return figure


def grid_by_stream(field: Field, entry: Entry, colours: Palette) -> "Figure":
    """A panel a stream: one baseline's error against its parameter; the band is from the best seed to the worst."""
    there, lines = [arena for arena in field.arenas if (entry, arena) in field.grids], untuned(field, colours)
    figure, panels = frame(len(there), len(lines) + 1, height=1.8)
    ink = _ink(entry, colours)
    for panel, arena in zip(panels, there):
        grid = field.grids[entry, arena]
        path = {value: _errors(tried) for value, tried in _path(grid).items()}
        low, high = [e.min() for e in path.values()], [e.max() for e in path.values()]
        panel.fill_between(list(path), low, high, color=ink, alpha=0.18, linewidth=0)
        _line(panel, ink, list(path), [float(e.mean()) for e in path.values()], _published([grid]))
        for other in lines:
            _level(panel, field, other, colours, field.error(other, arena).mean)
        panel.set_title(short(field.places[arena]), loc="left")
    _legend(figure, field, lines, colours, [])
    label(figure, _axis(entry), f"error of {_plain(field, entry)}, %")
    return figure


def untuned(field: Field, colours: Palette) -> list[Entry]:
    """The learners that have no grid and played everywhere: the levels a baseline's grid is held against."""
    whole = {s.entry for s in field.ranking if s.streams == len(field.arenas)}
    return [entry for entry in leading(field, colours) if not entry.tuned and entry in whole][:UNTUNED]


def drawable(field: Field) -> list[Entry]:
    """The tuned entries whose first parameter is a number everywhere."""
    return [
        entry
        for entry in field.entries
        if entry.tuned and all(_path(grid) for (other, _), grid in field.grids.items() if other == entry)
    ]


def _path(grid: Grid) -> dict[float, Candidate]:
    """The values of the first parameter, rising; with several parameters, the best of the others at each."""
    found: dict[float, Candidate] = {}
    for candidate in grid.candidates:
        value = candidate.value[0] if candidate.value else None
        if candidate.published or not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        if value not in found or _errors(candidate).mean() < _errors(found[value]).mean():
            found[float(value)] = candidate
    return dict(sorted(found.items()))


def _errors(candidate: Candidate) -> Vector:
    """In per cent, a number a seed."""
    return 100 * np.array([error(record) for record in candidate.runs.values()])


def _published(grids: Iterable[Grid]) -> tuple[float | None, float] | None:
    """The published setting: its place (the geometric mean over streams; None if it is no one number) and error."""
    there = [candidate for grid in grids for candidate in grid.candidates if candidate.published]
    if not there:
        return None
    values = [c.value[0] for c in there if c.value and isinstance(c.value[0], (int, float)) and c.value[0] > 0]
    place = float(np.exp(np.mean(np.log(values)))) if len(values) == len(there) else None
    return place, float(np.mean([_errors(candidate).mean() for candidate in there]))


def _line(
    panel: "Axes",
    ink: str,
    values: Sequence[float],
    errors: Sequence[float],
    published: tuple[float | None, float] | None,
) -> None:
    panel.plot(values, errors, color=ink, linewidth=2.0, marker="o", markersize=3.5)
    if published is not None and published[0] is not None:
        panel.plot([published[0]], [published[1]], color=ink, linestyle="none", **RING)
    elif published is not None:
        panel.axhline(published[1], color=ink, linestyle=":", linewidth=1.4)
    if values and min(values) > 0 and max(values) > 5 * min(values):
        panel.set_xscale("log")
        log_axis(panel.xaxis)
    panel.grid(True, axis="y")
    panel.margins(y=0.12)


def _level(panel: "Axes", field: Field, entry: Entry, colours: Palette, mean: float) -> None:
    style = look(field, entry, colours)
    panel.axhline(100 * mean, color=style["color"], linestyle=style["linestyle"], linewidth=1.4)


def _legend(figure: "Figure", field: Field, lines: list[Entry], colours: Palette, more: list[Any]) -> None:
    handles = []
    for entry in lines:
        style = look(field, entry, colours)
        handles.append(key(f"{field.names[entry]}, untuned", **{**style, "marker": None}, linewidth=1.4))
    legend(figure, [*handles, key("published setting", color=QUIET.light, linestyle=":", **RING), *more])


def _ink(entry: Entry, colours: Palette) -> str:
    colour = colours[entry.algorithm]
    return INK.light if colour is GREY else colour.light


def _plain(field: Field, entry: Entry) -> str:
    return field.names[entry].removesuffix(" tuned")


def _axis(entry: Entry) -> str:
    first, *others = entry.tuned.split(",")
    return f"{first} (with the best {', '.join(others)})" if others else first
