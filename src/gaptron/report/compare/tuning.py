"""Figures of the error against the tuning parameter, for every baseline with a grid."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gaptron.experiments.grouping import Candidate, Grid, Variant, error
from gaptron.experiments.summary import Summary
from gaptron.report.compare.figure import (
    Colours,
    axis_labels,
    colour_of,
    highlighted,
    legend,
    legend_line,
    line_style,
    log_axis,
    new_panels,
    shorten,
)
from gaptron.report.theme import GREY, QUIET
from gaptron.types import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNTUNED = 5  # horizontal lines next to a grid
RING: dict[str, Any] = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.6}


def grids_over_streams(summary: Summary, colours: Colours) -> "Figure":
    """Draw one panel per baseline: error against its parameter, mean over streams; single streams as thin lines."""
    tuned, lines = drawable(summary), untuned(summary, colours)
    figure, panels = new_panels(len(tuned), len(lines) + 2)
    for panel, variant in zip(panels, tuned):
        streams = [stream for stream in summary.streams if (variant, stream) in summary.grids]
        grids = [summary.grids[variant, stream] for stream in streams]
        paths = [{value: _errors(tried).mean() for value, tried in _by_value(grid).items()} for grid in grids]
        for path in paths:
            panel.plot(list(path), list(path.values()), color=GREY.light, linewidth=0.8)
        shared = [value for value in paths[0] if all(value in path for path in paths)]
        means = [float(np.mean([path[value] for path in paths])) for value in shared]
        _line(panel, colour_of(colours, variant), shared, means, _published(grids))
        for other in lines:
            _level(panel, summary, other, colours, float(np.mean([summary.error(other, a).mean for a in streams])))
        panel.set_title(shorten(_plain(summary, variant)), loc="left")
        panel.set_xlabel(_axis(variant))
    _legend(figure, summary, lines, colours, [legend_line("one stream", color=GREY.light, linewidth=0.8)])
    axis_labels(figure, "", "error, %")
    return figure


def grid_by_stream(summary: Summary, variant: Variant, colours: Colours) -> "Figure":
    """Draw one panel per stream: one baseline's error against its parameter; the band spans the seeds."""
    streams, lines = (
        [stream for stream in summary.streams if (variant, stream) in summary.grids],
        untuned(summary, colours),
    )
    figure, panels = new_panels(len(streams), len(lines) + 1, height=1.8)
    ink = colour_of(colours, variant)
    for panel, stream in zip(panels, streams):
        grid = summary.grids[variant, stream]
        path = {value: _errors(tried) for value, tried in _by_value(grid).items()}
        low, high = [e.min() for e in path.values()], [e.max() for e in path.values()]
        panel.fill_between(list(path), low, high, color=ink, alpha=0.18, linewidth=0)
        _line(panel, ink, list(path), [float(e.mean()) for e in path.values()], _published([grid]))
        for other in lines:
            _level(panel, summary, other, colours, summary.error(other, stream).mean)
        panel.set_title(shorten(summary.stream_names[stream]), loc="left")
    _legend(figure, summary, lines, colours, [])
    axis_labels(figure, _axis(variant), f"error of {_plain(summary, variant)}, %")
    return figure


def untuned(summary: Summary, colours: Colours) -> list[Variant]:
    """Return the variants without a grid that played every stream: horizontal lines to compare a grid with."""
    complete = {s.variant for s in summary.ranking if s.streams == len(summary.streams)}
    return [variant for variant in highlighted(summary, colours) if not variant.tuned and variant in complete][:UNTUNED]


def drawable(summary: Summary) -> list[Variant]:
    """Return the tuned variants whose first parameter is always a number."""
    return [
        variant
        for variant in summary.variants
        if variant.tuned and all(_by_value(grid) for (other, _), grid in summary.grids.items() if other == variant)
    ]


def _by_value(grid: Grid) -> dict[float, Candidate]:
    """Return candidates by the value of the first parameter, ascending; of several, the best at each value."""
    best: dict[float, Candidate] = {}
    for candidate in grid.candidates:
        value = candidate.value[0] if candidate.value else None
        if candidate.published or not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        if value not in best or _errors(candidate).mean() < _errors(best[value]).mean():
            best[float(value)] = candidate
    return dict(sorted(best.items()))


def _errors(candidate: Candidate) -> Vector:
    """Return the error of each seed in per cent."""
    return 100 * np.array([error(result) for result in candidate.runs.values()])


def _published(grids: Iterable[Grid]) -> tuple[float | None, float] | None:
    """Return the published setting's value (geometric mean over streams; None if not a number) and error."""
    published = [candidate for grid in grids for candidate in grid.candidates if candidate.published]
    if not published:
        return None
    values = [c.value[0] for c in published if c.value and isinstance(c.value[0], (int, float)) and c.value[0] > 0]
    place = float(np.exp(np.mean(np.log(values)))) if len(values) == len(published) else None
    return place, float(np.mean([_errors(candidate).mean() for candidate in published]))


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


def _level(panel: "Axes", summary: Summary, variant: Variant, colours: Colours, mean: float) -> None:
    style = line_style(summary, variant, colours)
    panel.axhline(100 * mean, color=style["color"], linestyle=style["linestyle"], linewidth=1.4)


def _legend(figure: "Figure", summary: Summary, lines: list[Variant], colours: Colours, more: list[Any]) -> None:
    handles = []
    for variant in lines:
        style = line_style(summary, variant, colours)
        handles.append(legend_line(f"{summary.names[variant]}, untuned", **{**style, "marker": None}, linewidth=1.4))
    legend(figure, [*handles, legend_line("published setting", color=QUIET.light, linestyle=":", **RING), *more])


def _plain(summary: Summary, variant: Variant) -> str:
    return summary.names[variant].removesuffix(" tuned")


def _axis(variant: Variant) -> str:
    first, *others = variant.tuned.split(",")
    return f"{first} (with the best {', '.join(others)})" if others else first
