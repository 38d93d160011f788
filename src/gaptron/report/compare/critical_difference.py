"""The critical-difference diagram of average ranks, after Demšar 2006."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gaptron.experiments.ranks import Ranks
from gaptron.report.compare.figure import WIDTH, new_figure, shorten
from gaptron.report.theme import INK, QUIET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 0.7  # width of the names on either side, relative to the axis


def draw(names: Sequence[str], line_colours: Sequence[str], ranks: Ranks) -> "Figure":
    """Draw average ranks on a line, names on both sides, and bars that join ranks within the critical difference."""
    assert ranks.critical is not None
    order = list(np.argsort(ranks.average, kind="stable"))
    n, bars = len(order), ranks.groups
    left = (n + 1) // 2
    top = 0.55 + 0.22 * len(bars)  # depth of the bars below the axis
    depth = top + 0.30 * left + 0.1
    figure = new_figure(WIDTH, 0.9 + 0.8 * depth)
    panel = figure.add_axes((0, 0, 1, 1))
    panel.set_axis_off()
    low, high = 1.0, max(float(n), 2.0)
    span = high - low
    panel.set_xlim(low - SIDE * span, high + SIDE * span)
    panel.set_ylim(depth, -0.95)
    panel.plot([low, high], [0, 0], color=QUIET.light, linewidth=1.2)
    for tick in range(1, n + 1, 1 + n // 16):
        panel.plot([tick, tick], [0, -0.1], color=QUIET.light, linewidth=1.0)
        panel.text(tick, -0.18, str(tick), ha="center", va="bottom", color=QUIET.light, fontsize=9)
    panel.plot([low, low + ranks.critical], [-0.62, -0.62], color=INK.light, linewidth=1.6)
    for edge in (low, low + ranks.critical):
        panel.plot([edge, edge], [-0.67, -0.57], color=INK.light, linewidth=1.6)
    panel.text(
        low + ranks.critical + 0.02 * span, -0.62, f"critical difference {ranks.critical:.2f}", va="center", fontsize=9
    )
    for i, (first, last) in enumerate(bars):
        y = 0.25 + 0.22 * i
        ends = ranks.average[order[first]] - 0.008 * span, ranks.average[order[last]] + 0.008 * span
        panel.plot(ends, [y, y], color=INK.light, linewidth=4.0, solid_capstyle="round")
    for place, column in enumerate(order):
        on_left = place < left
        row = place if on_left else n - 1 - place
        y, x = top + 0.30 * row, float(ranks.average[column])
        edge = low - 0.06 * span if on_left else high + 0.06 * span
        panel.plot([x, x, edge], [0, y, y], color=line_colours[column], linewidth=1.2)
        text = f"{shorten(names[column], 26)}  {x:.2f}" if on_left else f"{x:.2f}  {shorten(names[column], 26)}"
        panel.text(edge + (-0.01 if on_left else 0.01) * span, y, text, ha="right" if on_left else "left", va="center")
    return figure
