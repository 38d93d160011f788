"""Figures of a comparison: how they look, who is drawn and how, and how a figure becomes files and part of the page."""

import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaptron.experiments.grouping import Variant
from gaptron.experiments.summary import Field
from gaptron.report.colours import FAINT, GREY, INK, MARKERS, NAMED, QUIET, Colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 10.0  # inches, as wide as the page's column
ZOOM = 1.4  # CSS pixels for a point of the figure
STYLE = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "axes.edgecolor": QUIET.light,
    "axes.labelcolor": QUIET.light,
    "axes.titlecolor": INK.light,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": FAINT.light,
    "grid.linewidth": 0.8,
    "xtick.color": QUIET.light,
    "ytick.color": QUIET.light,
    "text.color": INK.light,
    "legend.frameon": False,
    "svg.fonttype": "none",  # words stay words: small files, readable by search and screen reader
    "svg.hashsalt": "gaptron",  # the same figure, the same bytes
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a stream may be called $x$
}
MAIN = 8  # lines in colour; more could not be followed
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))  # losses and settings of one algorithm
Palette = Mapping[str, Colour]


# --- who is drawn, and how ---------------------------------------------------------------------------------


def leading(field: Field, colours: Palette) -> list[Variant]:
    """The lines to draw in colour: first each algorithm's best, then its other losses, by rank."""
    seen: set[str] = set()
    first: list[Variant] = []
    second: list[Variant] = []
    for variant in field.at_their_best:
        if colours[variant.algorithm] is GREY:
            continue
        (second if variant.algorithm in seen else first).append(variant)
        seen.add(variant.algorithm)
    return (first + second)[:MAIN]


def look(field: Field, variant: Variant, colours: Palette) -> dict[str, Any]:
    """Colour, dashes and marker of a variant."""
    family = [other for other in field.at_their_best if other.algorithm == variant.algorithm]
    place = family.index(variant) if variant in family else 0
    colour = colours[variant.algorithm]
    return {"color": colour.light, "linestyle": DASHES[place % len(DASHES)], "marker": MARKERS[colour]}


def short(text: str, most: int = 34) -> str:
    """A name that fits its place."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shade(colours: Palette, variant: Variant) -> str:
    """The colour of a variant that is named where it stands; grey is for those that are not."""
    colour = colours[variant.algorithm]
    return QUIET.light if colour is GREY else colour.light


# --- the frame ---------------------------------------------------------------------------------------------


@contextmanager
def house_style() -> Iterator[None]:
    """Draw inside this."""
    import matplotlib  # noqa: PLC0415

    with matplotlib.rc_context(STYLE):
        yield


def blank(width: float, height: float) -> "Figure":
    """An empty figure that needs no window.

    There is no layout engine: margins are given in inches, and saving is twice as fast.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width, height))


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


def log_axis(axis: Any, percent: bool = False) -> None:
    """Ticks at powers of ten, or at 1, 2, 5 where there are few; written as people write them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.2 else (1.0,), numticks=6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: power(100 * value) + "%" if percent else power(value)))


def power(value: float) -> str:
    """A number on a log axis: 0.05, 20, 1000, 10⁴."""
    if 0.0099 < value < 9_999:
        return f"{value:.10g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10**exponent)
    raised = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return raised if factor == 1 else f"{factor}·{raised}"


# --- files and the page --------------------------------------------------------------------------------------


def save(figure: "Figure", folder: Path, name: str) -> str:
    """Write NAME.svg and NAME.pdf; return the drawing as a piece of a page."""
    folder.mkdir(parents=True, exist_ok=True)
    nothing: dict[str, Any] = {"Date": None, "Creator": None}
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=nothing, transparent=True)
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    (folder / f"{name}.svg").write_text(text.getvalue(), encoding="utf-8")
    return inline(text.getvalue(), name)


def inline(svg: str, name: str) -> str:
    """An SVG file as an element: colours that follow the page, ids of its own, no address of anything."""
    frame = re.search(r'viewBox="(\S+ \S+ (\S+) \S+)"', svg)
    assert frame is not None
    _, _, drawn = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S).partition("<svg")
    drawn = drawn[drawn.index(">") + 1 :]
    svg = f'<svg viewBox="{frame[1]}" style="max-width: {ZOOM * float(frame[2]):.0f}px">{drawn}'
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    for word, colour in NAMED.items():
        svg = re.sub(colour.light, f"var(--{word})", svg, flags=re.I)
    return re.sub(r"\n\s*", "\n", svg)
