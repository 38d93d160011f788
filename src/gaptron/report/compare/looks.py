"""What the figures of a comparison share: who is drawn, in which colour, and the frame around it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gaptron.experiments.summary import Entry, Field
from gaptron.report.compare.palette import GREY, MARKERS, QUIET, Colour
from gaptron.report.compare.style import WIDTH, blank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAIN = 8  # lines in colour; more could not be followed
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))  # losses and settings of one algorithm
Palette = Mapping[str, Colour]


def leading(field: Field, colours: Palette) -> list[Entry]:
    """The lines to draw in colour: first each algorithm's best, then its other losses, by rank."""
    seen: set[str] = set()
    first: list[Entry] = []
    second: list[Entry] = []
    for entry in field.at_their_best:
        if colours[entry.algorithm] is GREY:
            continue
        (second if entry.algorithm in seen else first).append(entry)
        seen.add(entry.algorithm)
    return (first + second)[:MAIN]


def look(field: Field, entry: Entry, colours: Palette) -> dict[str, Any]:
    """Colour, dashes and marker of an entry."""
    family = [other for other in field.at_their_best if other.algorithm == entry.algorithm]
    place = family.index(entry) if entry in family else 0
    colour = colours[entry.algorithm]
    return {"color": colour.light, "linestyle": DASHES[place % len(DASHES)], "marker": MARKERS[colour]}


def short(text: str, most: int = 34) -> str:
    """A name that fits its place."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shade(colours: Palette, entry: Entry) -> str:
    """The colour of an entry that is named where it stands; grey is for those that are not."""
    colour = colours[entry.algorithm]
    return QUIET.light if colour is GREY else colour.light


def frame(n: int, keys: int, height: float = 2.1) -> tuple["Figure", list["Axes"]]:
    """A figure of n panels, three abreast, with room for a legend of so many keys above them."""
    columns = min(n, 3)
    rows = -(-n // columns)
    if n == 1:
        height *= 1.6
    width = WIDTH if columns > 1 else 0.75 * WIDTH
    top, bottom, between = 0.5 + 0.2 * -(-keys // _abreast(width)), 0.6, 0.75
    tall = top + rows * height + (rows - 1) * between + bottom
    figure = blank(width, tall)
    margins = {"left": 0.75 / width, "right": 1 - 0.5 / width, "top": 1 - top / tall, "bottom": bottom / tall}
    grid = figure.subplots(
        rows, columns, squeeze=False, gridspec_kw={**margins, "wspace": 0.36, "hspace": between / height}
    )
    panels = list(grid.flat)
    for empty in panels[n:]:
        empty.set_axis_off()
    return figure, panels[:n]


def label(figure: "Figure", below: str, beside: str) -> None:
    """What all panels have on their axes, once."""
    style = {"fontsize": 9.5, "color": QUIET.light}
    if below:
        figure.supxlabel(below, y=0.1 / figure.get_figheight(), va="bottom", **style)
    figure.supylabel(beside, x=0.1 / figure.get_figwidth(), ha="left", **style)


def key(label: str, **style: Any) -> Any:
    """A line for the legend."""
    from matplotlib.lines import Line2D  # noqa: PLC0415

    return Line2D([], [], label=short(label), **style)


def legend(figure: "Figure", handles: list[Any]) -> None:
    """The one legend of a figure, above all panels, where nothing can be under it."""
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=_abreast(figure.get_figwidth()),
        fontsize=9,
        handlelength=2.6,
    )


def _abreast(width: float) -> int:
    """How many keys of a legend stand side by side, if every name is as long as `short` lets it be."""
    return int(width // 3.2)
