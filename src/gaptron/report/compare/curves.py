"""Curves of mistakes and of the error rate against rounds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gaptron.experiments.grouping import StreamInfo, Variant, counts
from gaptron.experiments.summary import Summary
from gaptron.report.compare.figure import (
    Colours,
    axis_labels,
    highlighted,
    legend,
    legend_line,
    line_style,
    log_axis,
    new_panels,
    shorten,
)
from gaptron.report.compare.formatting import slope
from gaptron.report.theme import GREY, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES_FROM = 1_000  # curves start at this fraction of the rounds: earlier counts are mostly noise
RATES_FROM = 30  # and rates at this one: earlier rates are so high that the rest would look flat


def curves(summary: Summary, colours: Colours, rate: bool = False) -> "Figure":
    """Draw mistakes against rounds on log-log axes, one panel per stream; slopes at the line ends, seeds as bands.

    With `rate`, draw the mistakes per round so far on a linear axis, which separates lines that overlap as sums.
    """
    chosen = highlighted(summary, colours)
    others = [variant for variant in summary.best_variants if variant not in chosen]
    figure, panels = new_panels(len(summary.streams), len(chosen) + bool(others))
    for panel, stream in zip(panels, summary.streams):
        for variant in others:
            rounds, means, _, _ = _band(summary, variant, stream, rate)
            if len(rounds):
                panel.plot(rounds, means, color=GREY.light, linewidth=0.9)
        ends, drawn = [], bool(panel.lines)
        for variant in reversed(chosen):  # the best on top
            rounds, means, low, high = _band(summary, variant, stream, rate)
            if not len(rounds):  # not played, or no mistakes
                continue
            drawn = True
            style = line_style(summary, variant, colours)
            panel.fill_between(rounds, low, high, color=style["color"], alpha=0.18, linewidth=0)
            panel.plot(rounds, means, linewidth=1.8, markersize=4.5, markevery=[len(rounds) - 1], **style)
            growth = summary.slope(variant, stream)
            if growth is not None and not rate:
                ends.append((float(means[-1]), slope(growth._replace(error=None)), style["color"]))
        panel.set_title(shorten(summary.stream_names[stream]), loc="left")
        if not drawn:
            panel.text(0.5, 0.5, "no mistakes", transform=panel.transAxes, color=QUIET.light, ha="center")
            panel.set(xticks=[], yticks=[])
            continue
        panel.set(xscale="log", yscale="linear" if rate else "log")
        panel.grid(True)
        log_axis(panel.xaxis)
        if not rate:
            log_axis(panel.yaxis)
            _label_ends(panel, ends)
    handles = [
        legend_line(summary.names[e], linewidth=1.8, markersize=4.5, **line_style(summary, e, colours)) for e in chosen
    ]
    if others:
        handles.append(legend_line(_others(summary, others), linewidth=0.9, color=GREY.light))
    legend(figure, handles)
    word = "expected mistakes" if summary.feedback == "full" else "mistakes"
    axis_labels(figure, "rounds", f"{word} per round so far, %" if rate else word)
    return figure


def _band(summary: Summary, variant: Variant, stream: StreamInfo, rate: bool) -> tuple[Any, Any, Any, Any]:
    """Return rounds, mean mistakes, and the minimum and maximum over seeds; zeros are dropped for the log axis."""
    runs = [curve for curve in map(counts, summary.runs.get((variant, stream), {}).values()) if curve]
    if not runs:
        return [], [], [], []
    rounds = np.asarray(runs[0][0], dtype=float)
    table = np.array([np.interp(rounds, *curve) for curve in runs])
    shown = (table.mean(axis=0) > 0) & (rounds >= rounds[-1] / (RATES_FROM if rate else CURVES_FROM))
    table = 100.0 * table / rounds if rate else table
    return rounds[shown], table.mean(axis=0)[shown], table.min(axis=0)[shown], table.max(axis=0)[shown]


def _label_ends(panel: "Axes", ends: Sequence[tuple[float, str, str]]) -> None:
    """Write slopes at the right edge, at the height of their line, moved apart where they would overlap."""
    low, high = np.log(panel.get_ylim())
    ordered = sorted(ends)
    if ordered:
        panel.text(1.02, 1.06, "slope", transform=panel.transAxes, color=QUIET.light, fontsize=8, va="center")
    for (_, text, colour), height in zip(ordered, spread([(np.log(y) - low) / (high - low) for y, _, _ in ordered])):
        panel.text(1.02, height, text, transform=panel.transAxes, color=colour, fontsize=8, va="center")


def spread(heights: Sequence[float], gap: float = 0.085) -> list[float]:
    """Move ascending heights as little as keeps them a gap apart and below the top."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else height)
    ceiling = 0.97
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], ceiling)
        ceiling = moved[i] - gap
    return moved


def _others(summary: Summary, others: Sequence[Variant]) -> str:
    return summary.names[others[0]] if len(others) == 1 else f"{len(others)} others"
