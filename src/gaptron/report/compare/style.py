"""How every figure of the comparison looks, and how it becomes files and a piece of the page."""

import io
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaptron.report.compare.palette import FAINT, INK, NAMED, QUIET

if TYPE_CHECKING:
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
