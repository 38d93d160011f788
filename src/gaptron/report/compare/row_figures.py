"""Figures with one row per variant: distance to the leader, share of the bound used, time per round."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gaptron.experiments.grouping import Variant
from gaptron.experiments.summary import Summary
from gaptron.report.compare.figure import WIDTH, Colours, colour_of, log_axis, new_figure, shorten
from gaptron.report.theme import INK, PAPER, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTER = 0.08  # inches per letter of a name, with a margin


def behind(summary: Summary, colours: Colours) -> "Figure":
    """Draw how far each variant is behind the leader over all streams, with intervals over seeds."""
    rows = [s for s in summary.ranking if s.behind is not None]
    figure, panel = _rows(summary, [s.variant for s in rows])
    for y, standing in enumerate(rows):
        colour = colour_of(colours, standing.variant)
        assert standing.behind is not None
        half = standing.behind.half_width or 0.0
        hollow = {"markerfacecolor": PAPER.light} if standing.variant.tuned else {}
        line: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 6, "linewidth": 2.2, **hollow}
        panel.errorbar(100 * standing.behind.mean, y, xerr=100 * half, **line)
    panel.axvline(0, color=QUIET.light, linewidth=1.0)
    panel.set_xlabel(
        "error behind the leader, percentage points (95% interval over seeds; hollow: tuned in hindsight)",
        loc="right",
    )
    return figure


def shares(summary: Summary, colours: Colours) -> "Figure":
    """Draw the share of its bound each variant used, one dot per stream; hollow where the bound is vacuous."""
    rows = bounded(summary)
    figure, panel = _rows(summary, rows)
    for y, variant in enumerate(rows):
        for mistakes, bound, rounds in _bounds(summary, variant):
            colour = colour_of(colours, variant)
            fill = PAPER.light if bound >= rounds else colour
            panel.plot(mistakes / bound, y, "o", color=colour, markerfacecolor=fill, markersize=6, alpha=0.85)
    panel.set_xscale("log")
    log_axis(panel.xaxis, percent=True)
    panel.axvline(1, color=INK.light, linewidth=1.4)
    panel.set_xlabel(
        "expected mistakes / bound, one dot per stream (line: 100%; hollow: the bound exceeds the rounds)",
        loc="right",
    )
    return figure


def bounded(summary: Summary) -> list[Variant]:
    """Return the variants that have a bound, by rank. A setting chosen in hindsight has none."""
    return [s.variant for s in summary.ranking if not s.variant.tuned and _bounds(summary, s.variant)]


def _bounds(summary: Summary, variant: Variant) -> list[tuple[float, float, int]]:
    pairs = [(summary.bound(variant, a), a.rounds) for a in summary.streams if (variant, a) in summary.runs]
    return [(*pair, rounds) for pair, rounds in pairs if pair is not None and pair[0] > 0 and pair[1] > 0]


def times(summary: Summary, colours: Colours) -> "Figure":
    """Draw microseconds per round, one dot per stream, a bar at the median."""
    untuned = [
        s for s in summary.ranking if not (s.variant.tuned and s.variant.untuned in summary.variants)
    ]  # tuning does not change the time
    timed = {s.variant: s.microseconds for s in untuned if s.microseconds is not None}
    rows = sorted(timed, key=lambda variant: timed[variant] or 0.0)
    figure, panel = _rows(summary, rows)
    for y, variant in enumerate(rows):
        medians = [summary.microseconds(variant, a) for a in summary.streams if (variant, a) in summary.runs]
        known = [time for time in medians if time is not None]
        colour = colour_of(colours, variant)
        panel.plot(known, [y] * len(known), "o", color=colour, alpha=0.6, markersize=5)
        panel.plot([timed[variant]] * 2, [y - 0.32, y + 0.32], color=colour, linewidth=2.4)
    panel.set_xscale("log")
    log_axis(panel.xaxis)
    panel.set_xlabel("microseconds per round, one dot per stream, a bar at the median", loc="right")
    return figure


def _rows(summary: Summary, variants: Sequence[Variant]) -> tuple["Figure", "Axes"]:
    names = [shorten(summary.names[variant], 44) for variant in variants]
    left, bottom, top = 0.25 + LETTER * max(map(len, names)), 0.55, 0.1
    height = 0.27 * max(2, len(variants))
    tall = bottom + height + top
    figure = new_figure(WIDTH, tall)
    panel = figure.add_axes((left / WIDTH, bottom / tall, 1 - (left + 0.1) / WIDTH, height / tall))
    panel.set_yticks(range(len(variants)), names)
    panel.set_ylim(len(variants) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0, labelcolor=INK.light)
    panel.spines["left"].set_visible(False)
    panel.grid(True, axis="both")
    return figure, panel
