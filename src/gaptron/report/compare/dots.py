"""Figures with a row an entry: how far behind, how much of the bound, how long."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gaptron.experiments.summary import Entry, Field
from gaptron.report.compare.looks import Palette, shade, short
from gaptron.report.compare.palette import INK, PAPER, QUIET
from gaptron.report.compare.style import WIDTH, blank, log_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTER = 0.08  # inches a letter of a name takes, with some to spare


def behind(field: Field, colours: Palette) -> "Figure":
    """How far behind the leader everybody is, over all streams, with intervals over seeds."""
    rows = [s for s in field.ranking if s.behind is not None]
    figure, panel = _rows(field, [s.entry for s in rows])
    for y, standing in enumerate(rows):
        colour = shade(colours, standing.entry)
        assert standing.behind is not None
        half = standing.behind.half or 0.0
        hollow = {"markerfacecolor": PAPER.light} if standing.entry.tuned else {}
        line: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 6, "linewidth": 2.2, **hollow}
        panel.errorbar(100 * standing.behind.mean, y, xerr=100 * half, **line)
    panel.axvline(0, color=QUIET.light, linewidth=1.0)
    panel.set_xlabel(
        "error behind the leader, in points of per cent (95% interval over seeds; hollow: tuned in hindsight)",
        loc="right",
    )
    return figure


def shares(field: Field, colours: Palette) -> "Figure":
    """The share of its bound each entry used, a dot a stream; hollow where the bound exceeds the rounds."""
    rows = bounded(field)
    figure, panel = _rows(field, rows)
    for y, entry in enumerate(rows):
        for mistakes, bound, rounds in _bounds(field, entry):
            colour = shade(colours, entry)
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


def bounded(field: Field) -> list[Entry]:
    """Those that have a bound to be held against, by rank. A setting chosen in hindsight has none of its own."""
    return [s.entry for s in field.ranking if not s.entry.tuned and _bounds(field, s.entry)]


def _bounds(field: Field, entry: Entry) -> list[tuple[float, float, int]]:
    found = [(field.bound(entry, a), a.rounds) for a in field.arenas if (entry, a) in field.runs]
    return [(*pair, rounds) for pair, rounds in found if pair is not None and pair[0] > 0 and pair[1] > 0]


def times(field: Field, colours: Palette) -> "Figure":
    """Microseconds a round, a dot a stream, a bar at the median."""
    alone = [s for s in field.ranking if not (s.entry.tuned and s.entry.bare in field.entries)]  # tuned takes no longer
    timed = {s.entry: s.microseconds for s in alone if s.microseconds is not None}
    rows = sorted(timed, key=lambda entry: timed[entry] or 0.0)
    figure, panel = _rows(field, rows)
    for y, entry in enumerate(rows):
        found = [field.microseconds(entry, a) for a in field.arenas if (entry, a) in field.runs]
        known = [time for time in found if time is not None]
        colour = shade(colours, entry)
        panel.plot(known, [y] * len(known), "o", color=colour, alpha=0.6, markersize=5)
        panel.plot([timed[entry]] * 2, [y - 0.32, y + 0.32], color=colour, linewidth=2.4)
    panel.set_xscale("log")
    log_axis(panel.xaxis)
    panel.set_xlabel("microseconds a round, a dot a stream, a bar at the median", loc="right")
    return figure


def _rows(field: Field, entries: Sequence[Entry]) -> tuple["Figure", "Axes"]:
    names = [short(field.names[entry], 44) for entry in entries]
    left, bottom, top = 0.25 + LETTER * max(map(len, names)), 0.55, 0.1
    height = 0.27 * max(2, len(entries))
    tall = bottom + height + top
    figure = blank(WIDTH, tall)
    panel = figure.add_axes((left / WIDTH, bottom / tall, 1 - (left + 0.1) / WIDTH, height / tall))
    panel.set_yticks(range(len(entries)), names)
    panel.set_ylim(len(entries) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0, labelcolor=INK.light)
    panel.spines["left"].set_visible(False)
    panel.grid(True, axis="both")
    return figure, panel
