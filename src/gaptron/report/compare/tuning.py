"""Error against the tuning parameter, for every baseline with a grid."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gaptron.experiments.grouping import Candidate, Grid, Variant, error
from gaptron.experiments.summary import Field
from gaptron.report.colours import GREY, QUIET
from gaptron.report.compare.figure import Palette, frame, key, label, leading, legend, log_axis, look, shade, short
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
    for panel, variant in zip(panels, tuned):
        there = [arena for arena in field.arenas if (variant, arena) in field.grids]
        grids = [field.grids[variant, arena] for arena in there]
        paths = [{value: _errors(tried).mean() for value, tried in _path(grid).items()} for grid in grids]
        for path in paths:
            panel.plot(list(path), list(path.values()), color=GREY.light, linewidth=0.8)
        shared = [value for value in paths[0] if all(value in path for path in paths)]
        means = [float(np.mean([path[value] for path in paths])) for value in shared]
        _line(panel, shade(colours, variant), shared, means, _published(grids))
        for other in lines:
            _level(panel, field, other, colours, float(np.mean([field.error(other, a).mean for a in there])))
        panel.set_title(short(_plain(field, variant)), loc="left")
        panel.set_xlabel(_axis(variant))
    _legend(figure, field, lines, colours, [key("one stream", color=GREY.light, linewidth=0.8)])
    label(figure, "", "error, %")
    return figure


def grid_by_stream(field: Field, variant: Variant, colours: Palette) -> "Figure":
    """A panel a stream: one baseline's error against its parameter; the band is from the best seed to the worst."""
    there, lines = [arena for arena in field.arenas if (variant, arena) in field.grids], untuned(field, colours)
    figure, panels = frame(len(there), len(lines) + 1, height=1.8)
    ink = shade(colours, variant)
    for panel, arena in zip(panels, there):
        grid = field.grids[variant, arena]
        path = {value: _errors(tried) for value, tried in _path(grid).items()}
        low, high = [e.min() for e in path.values()], [e.max() for e in path.values()]
        panel.fill_between(list(path), low, high, color=ink, alpha=0.18, linewidth=0)
        _line(panel, ink, list(path), [float(e.mean()) for e in path.values()], _published([grid]))
        for other in lines:
            _level(panel, field, other, colours, field.error(other, arena).mean)
        panel.set_title(short(field.places[arena]), loc="left")
    _legend(figure, field, lines, colours, [])
    label(figure, _axis(variant), f"error of {_plain(field, variant)}, %")
    return figure


def untuned(field: Field, colours: Palette) -> list[Variant]:
    """The learners that have no grid and played everywhere: the levels a baseline's grid is held against."""
    whole = {s.variant for s in field.ranking if s.streams == len(field.arenas)}
    return [variant for variant in leading(field, colours) if not variant.tuned and variant in whole][:UNTUNED]


def drawable(field: Field) -> list[Variant]:
    """The tuned variants whose first parameter is a number everywhere."""
    return [
        variant
        for variant in field.variants
        if variant.tuned and all(_path(grid) for (other, _), grid in field.grids.items() if other == variant)
    ]


def _path(grid: Grid) -> dict[float, Candidate]:
    """The values of the first parameter, rising; with several parameters, the best of the others at each."""
    best: dict[float, Candidate] = {}
    for candidate in grid.candidates:
        value = candidate.value[0] if candidate.value else None
        if candidate.published or not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        if value not in best or _errors(candidate).mean() < _errors(best[value]).mean():
            best[float(value)] = candidate
    return dict(sorted(best.items()))


def _errors(candidate: Candidate) -> Vector:
    """In per cent, a number a seed."""
    return 100 * np.array([error(result) for result in candidate.runs.values()])


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


def _level(panel: "Axes", field: Field, variant: Variant, colours: Palette, mean: float) -> None:
    style = look(field, variant, colours)
    panel.axhline(100 * mean, color=style["color"], linestyle=style["linestyle"], linewidth=1.4)


def _legend(figure: "Figure", field: Field, lines: list[Variant], colours: Palette, more: list[Any]) -> None:
    handles = []
    for variant in lines:
        style = look(field, variant, colours)
        handles.append(key(f"{field.names[variant]}, untuned", **{**style, "marker": None}, linewidth=1.4))
    legend(figure, [*handles, key("published setting", color=QUIET.light, linestyle=":", **RING), *more])


def _plain(field: Field, variant: Variant) -> str:
    return field.names[variant].removesuffix(" tuned")


def _axis(variant: Variant) -> str:
    first, *others = variant.tuned.split(",")
    return f"{first} (with the best {', '.join(others)})" if others else first
