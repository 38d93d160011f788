"""Mistakes, and the error rate, against rounds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gaptron.experiments.grouping import Arena, Variant, counts
from gaptron.experiments.summary import Field
from gaptron.report.colours import GREY, QUIET
from gaptron.report.compare.figure import Palette, frame, key, label, leading, legend, log_axis, look, short
from gaptron.report.compare.wording import slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 1_000  # curves begin at this fraction of the rounds: before it there is little but chance
LATE = 30  # and rates here: before it they are so high that the rest would be flat


def curves(field: Field, colours: Palette, rate: bool = False) -> "Figure":
    """Mistakes against rounds on log-log axes, a panel a stream; slopes at the lines' ends, seeds as bands.

    `rate`: mistakes a round so far, on a plain axis, which tells lines apart that lie on each other as sums.
    """
    chosen = leading(field, colours)
    others = [variant for variant in field.at_their_best if variant not in chosen]
    figure, panels = frame(len(field.arenas), len(chosen) + bool(others))
    for panel, arena in zip(panels, field.arenas):
        for variant in others:
            rounds, means, _, _ = _band(field, variant, arena, rate)
            if len(rounds):
                panel.plot(rounds, means, color=GREY.light, linewidth=0.9)
        ends, drawn = [], bool(panel.lines)
        for variant in reversed(chosen):  # the best on top
            rounds, means, low, high = _band(field, variant, arena, rate)
            if not len(rounds):  # not played, or without a mistake
                continue
            drawn = True
            style = look(field, variant, colours)
            panel.fill_between(rounds, low, high, color=style["color"], alpha=0.18, linewidth=0)
            panel.plot(rounds, means, linewidth=1.8, markersize=4.5, markevery=[len(rounds) - 1], **style)
            growth = field.slope(variant, arena)
            if growth is not None and not rate:
                ends.append((float(means[-1]), slope(growth._replace(error=None)), style["color"]))
        panel.set_title(short(field.places[arena]), loc="left")
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
    handles = [key(field.names[e], linewidth=1.8, markersize=4.5, **look(field, e, colours)) for e in chosen]
    if others:
        handles.append(key(_others(field, others), linewidth=0.9, color=GREY.light))
    legend(figure, handles)
    word = "expected mistakes" if field.feedback == "full" else "mistakes"
    label(figure, "rounds", f"{word} a round so far, %" if rate else word)
    return figure


def _band(field: Field, variant: Variant, arena: Arena, rate: bool) -> tuple[Any, Any, Any, Any]:
    """Rounds, mean mistakes, and the fewest and most of any seed; zero is nowhere on a log axis."""
    runs = [curve for curve in map(counts, field.runs.get((variant, arena), {}).values()) if curve]
    if not runs:
        return [], [], [], []
    rounds = np.asarray(runs[0][0], dtype=float)
    table = np.array([np.interp(rounds, *curve) for curve in runs])
    seen = (table.mean(axis=0) > 0) & (rounds >= rounds[-1] / (LATE if rate else SHOWN))
    table = 100.0 * table / rounds if rate else table
    return rounds[seen], table.mean(axis=0)[seen], table.min(axis=0)[seen], table.max(axis=0)[seen]


def _label_ends(panel: "Axes", ends: Sequence[tuple[float, str, str]]) -> None:
    """Words at the right edge, at the height of their line, moved apart where they would touch."""
    low, high = np.log(panel.get_ylim())
    ordered = sorted(ends)
    if ordered:
        panel.text(1.02, 1.06, "slope", transform=panel.transAxes, color=QUIET.light, fontsize=8, va="center")
    for (_, text, colour), height in zip(ordered, apart([(np.log(y) - low) / (high - low) for y, _, _ in ordered])):
        panel.text(1.02, height, text, transform=panel.transAxes, color=colour, fontsize=8, va="center")


def apart(heights: Sequence[float], gap: float = 0.085) -> list[float]:
    """Heights in rising order, moved as little as keeps them a gap apart and off the ceiling."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else height)
    ceiling = 0.97
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], ceiling)
        ceiling = moved[i] - gap
    return moved


def _others(field: Field, others: Sequence[Variant]) -> str:
    return field.names[others[0]] if len(others) == 1 else f"{len(others)} others"
