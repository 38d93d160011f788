"""Figures with a row a variant: how far behind, how much of the bound, how long."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gaptron.experiments.grouping import Variant
from gaptron.experiments.summary import Field
from gaptron.report.colours import INK, PAPER, QUIET
from gaptron.report.compare.figure import WIDTH, Palette, blank, log_axis, shade, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTER = 0.08  # inches a letter of a name takes, with some to spare


def behind(field: Field, colours: Palette) -> "Figure":
    """How far behind the leader each variant is, over all streams, with intervals over seeds."""
    rows = [s for s in field.ranking if s.behind is not None]
    figure, panel = _rows(field, [s.variant for s in rows])
    for y, standing in enumerate(rows):
        colour = shade(colours, standing.variant)
        assert standing.behind is not None
        half = standing.behind.half or 0.0
        hollow = {"markerfacecolor": PAPER.light} if standing.variant.tuned else {}
        line: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 6, "linewidth": 2.2, **hollow}
        panel.errorbar(100 * standing.behind.mean, y, xerr=100 * half, **line)
    panel.axvline(0, color=QUIET.light, linewidth=1.0)
    panel.set_xlabel(
        "error behind the leader, in points of per cent (95% interval over seeds; hollow: tuned in hindsight)",
        loc="right",
    )
    return figure


def shares(field: Field, colours: Palette) -> "Figure":
    """The share of its bound each variant used, a dot a stream; hollow where the bound exceeds the rounds."""
    rows = bounded(field)
    figure, panel = _rows(field, rows)
    for y, variant in enumerate(rows):
        for mistakes, bound, rounds in _bounds(field, variant):
            colour = shade(colours, variant)
            face = PAPER.light if bound >= rounds else colour
            panel.plot(mistakes / bound, y, "o", color=colour, markerfacecolor=face, markersize=6, alpha=0.85)
    panel.set_xscale("log")
    log_axis(panel.xaxis, percent=True)
    panel.axvline(1, color=INK.light, linewidth=1.4)
    panel.set_xlabel(
        "expected mistakes / bound, a dot a stream (line: all of it used; hollow: the bound exceeds the rounds)",
        loc="right",
    )
    return figure


def bounded(field: Field) -> list[Variant]:
    """Those that have a bound to be held against, by rank. A setting chosen in hindsight has none of its own."""
    return [s.variant for s in field.ranking if not s.variant.tuned and _bounds(field, s.variant)]


def _bounds(field: Field, variant: Variant) -> list[tuple[float, float, int]]:
    pairs = [(field.bound(variant, a), a.rounds) for a in field.arenas if (variant, a) in field.runs]
    return [(*pair, rounds) for pair, rounds in pairs if pair is not None and pair[0] > 0 and pair[1] > 0]


def times(field: Field, colours: Palette) -> "Figure":
    """Microseconds a round, a dot a stream, a bar at the median."""
    alone = [
        s for s in field.ranking if not (s.variant.tuned and s.variant.bare in field.variants)
    ]  # tuned takes no longer
    timed = {s.variant: s.microseconds for s in alone if s.microseconds is not None}
    rows = sorted(timed, key=lambda variant: timed[variant] or 0.0)
    figure, panel = _rows(field, rows)
    for y, variant in enumerate(rows):
        medians = [field.microseconds(variant, a) for a in field.arenas if (variant, a) in field.runs]
        known = [time for time in medians if time is not None]
        colour = shade(colours, variant)
        panel.plot(known, [y] * len(known), "o", color=colour, alpha=0.6, markersize=5)
        panel.plot([timed[variant]] * 2, [y - 0.32, y + 0.32], color=colour, linewidth=2.4)
    panel.set_xscale("log")
    log_axis(panel.xaxis)
    panel.set_xlabel("microseconds a round, a dot a stream, a bar at the median", loc="right")
    return figure


def _rows(field: Field, variants: Sequence[Variant]) -> tuple["Figure", "Axes"]:
    names = [short(field.names[variant], 44) for variant in variants]
    left, bottom, top = 0.25 + LETTER * max(map(len, names)), 0.55, 0.1
    height = 0.27 * max(2, len(variants))
    tall = bottom + height + top
    figure = blank(WIDTH, tall)
    panel = figure.add_axes((left / WIDTH, bottom / tall, 1 - (left + 0.1) / WIDTH, height / tall))
    panel.set_yticks(range(len(variants)), names)
    panel.set_ylim(len(variants) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0, labelcolor=INK.light)
    panel.spines["left"].set_visible(False)
    panel.grid(True, axis="both")
    return figure, panel
