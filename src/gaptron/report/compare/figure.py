"""Figures of a comparison: their theme, which variants are drawn, and how a figure is saved and embedded."""

import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaptron.experiments.grouping import Variant
from gaptron.experiments.summary import Summary
from gaptron.report.theme import FAINT, GREY, INK, MARKERS, NAMED, QUIET, Colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 10.0  # inches, the width of the page's column
ZOOM = 1.4  # CSS pixels per point of the figure
THEME = {
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
    "svg.fonttype": "none",  # text stays text: small files, searchable, readable by screen readers
    "svg.hashsalt": "gaptron",  # the same figure gives the same bytes
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a stream may be called $x$
}
MAX_LINES = 8  # lines in colour; more would be hard to distinguish
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))  # for the losses and settings of one algorithm
Colours = Mapping[str, Colour]


# --- variants ---------------------------------------------------------------------------------


def highlighted(summary: Summary, colours: Colours) -> list[Variant]:
    """Return the variants to draw in colour: each algorithm's best, then its other losses, by rank."""
    seen: set[str] = set()
    first: list[Variant] = []
    second: list[Variant] = []
    for variant in summary.best_variants:
        if colours[variant.algorithm] is GREY:
            continue
        (second if variant.algorithm in seen else first).append(variant)
        seen.add(variant.algorithm)
    return (first + second)[:MAX_LINES]


def line_style(summary: Summary, variant: Variant, colours: Colours) -> dict[str, Any]:
    """Return the colour, dashes and marker of a variant."""
    family = [other for other in summary.best_variants if other.algorithm == variant.algorithm]
    place = family.index(variant) if variant in family else 0
    colour = colours[variant.algorithm]
    return {"color": colour.light, "linestyle": DASHES[place % len(DASHES)], "marker": MARKERS[colour]}


def shorten(text: str, most: int = 34) -> str:
    """Shorten a name to at most this many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def colour_of(colours: Colours, variant: Variant) -> str:
    """Return the colour of a labelled variant: a darker one in place of grey, which is for unlabelled lines."""
    colour = colours[variant.algorithm]
    return QUIET.light if colour is GREY else colour.light


# --- layout ---------------------------------------------------------------------------------------------


@contextmanager
def use_theme() -> Iterator[None]:
    """Apply the theme to the figures drawn in this context."""
    import matplotlib  # noqa: PLC0415

    with matplotlib.rc_context(THEME):
        yield


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure that needs no window.

    It has no layout engine: margins are given in inches, and saving takes half the time.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width, height))


def new_panels(n: int, keys: int, height: float = 2.1) -> tuple["Figure", list["Axes"]]:
    """Return a figure of n panels, three per row, with space above them for a legend of so many keys."""
    columns = min(n, 3)
    rows = -(-n // columns)
    if n == 1:
        height *= 1.6
    width = WIDTH if columns > 1 else 0.75 * WIDTH
    top, bottom, between = 0.5 + 0.2 * -(-keys // _legend_columns(width)), 0.6, 0.75
    tall = top + rows * height + (rows - 1) * between + bottom
    figure = new_figure(width, tall)
    margins = {"left": 0.75 / width, "right": 1 - 0.5 / width, "top": 1 - top / tall, "bottom": bottom / tall}
    grid = figure.subplots(
        rows, columns, squeeze=False, gridspec_kw={**margins, "wspace": 0.36, "hspace": between / height}
    )
    panels = list(grid.flat)
    for empty in panels[n:]:
        empty.set_axis_off()
    return figure, panels[:n]


def axis_labels(figure: "Figure", below: str, beside: str) -> None:
    """Label the axes of all panels once."""
    style = {"fontsize": 9.5, "color": QUIET.light}
    if below:
        figure.supxlabel(below, y=0.1 / figure.get_figheight(), va="bottom", **style)
    figure.supylabel(beside, x=0.1 / figure.get_figwidth(), ha="left", **style)


def legend_line(label: str, **style: Any) -> Any:
    """Return a line for the legend."""
    from matplotlib.lines import Line2D  # noqa: PLC0415

    return Line2D([], [], label=shorten(label), **style)


def legend(figure: "Figure", handles: list[Any]) -> None:
    """Draw the legend of a figure above all panels, where it covers nothing."""
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=_legend_columns(figure.get_figwidth()),
        fontsize=9,
        handlelength=2.6,
    )


def _legend_columns(width: float) -> int:
    """Return how many keys fit in a row of the legend, if every name has the longest length `shorten` allows."""
    return int(width // 3.2)


def log_axis(axis: Any, percent: bool = False) -> None:
    """Set ticks at powers of ten, or at 1, 2, 5 if the range is small."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.2 else (1.0,), numticks=6))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: format_tick(100 * value) + "%" if percent else format_tick(value))
    )


def format_tick(value: float) -> str:
    """Format a number on a log axis: 0.05, 20, 1000, 10⁴."""
    if 0.0099 < value < 9_999:
        return f"{value:.10g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10**exponent)
    raised = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return raised if factor == 1 else f"{factor}·{raised}"


# --- files and embedding --------------------------------------------------------------------------------------


def save(figure: "Figure", folder: Path, name: str) -> str:
    """Write NAME.svg and NAME.pdf; return the figure as an SVG element for the page."""
    folder.mkdir(parents=True, exist_ok=True)
    no_metadata: dict[str, Any] = {"Date": None, "Creator": None}
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=no_metadata, transparent=True)
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    (folder / f"{name}.svg").write_text(text.getvalue(), encoding="utf-8")
    return inline(text.getvalue(), name)


def inline(svg: str, name: str) -> str:
    """Convert an SVG file to an element: colours as CSS variables, unique ids, no external addresses."""
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
