"""The theme of all figures: colours on light and dark backgrounds, and the colour of each algorithm."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Colour(NamedTuple):
    """A colour on a light and a dark background. Figures use the light one; the page replaces it by a CSS variable."""

    light: str
    dark: str


# Okabe & Ito's colours without yellow, which is hard to see on white; lighter on a dark background.
INK = Colour("#1B1B1F", "#ECECF1")
QUIET = Colour("#5C5F66", "#A9ADB6")  # secondary text
GREY = Colour("#B9BCC2", "#5E626B")  # lines without a label
FAINT = Colour("#E3E4E8", "#34363D")  # grid lines
PAPER = Colour("#FEFEFE", "#16171B")
BLUE = Colour("#0072B2", "#3DA5E6")
VERMILLION = Colour("#D55E00", "#F07A2C")
GREEN = Colour("#009E73", "#1FC797")
ORANGE = Colour("#E69F00", "#F5B83D")
PURPLE = Colour("#CC79A7", "#E29BC4")
SKY = Colour("#56B4E9", "#8CD0F7")

NAMED = {
    "ink": INK,
    "quiet": QUIET,
    "grey": GREY,
    "faint": FAINT,
    "paper": PAPER,
    "blue": BLUE,
    "vermillion": VERMILLION,
    "green": GREEN,
    "orange": ORANGE,
    "purple": PURPLE,
    "sky": SKY,
}
MARKERS = {BLUE: "o", VERMILLION: "s", GREEN: "^", ORANGE: "D", PURPLE: "v", SKY: "P", INK: "X", GREY: "."}

# Algorithms for full information and for bandit feedback never share a figure, so they may share a colour.
PREFERRED = {
    "frugal-gaptron": BLUE,
    "gaptron": VERMILLION,
    "advised-gaptron": INK,
    "perceptron": ORANGE,
    "banditron": ORANGE,
    "arow": GREEN,
    "soba": GREEN,
    "softmax": PURPLE,
    "confidit": PURPLE,
    "second-order-perceptron": SKY,
    "squarecb": SKY,
}
SPARE = (
    SKY,
    PURPLE,
    ORANGE,
    GREEN,
    VERMILLION,
    BLUE,
)  # for the others, while one is free; ink is reserved for the default algorithm


def assign_colours(algorithms: Mapping[str, Sequence[str]]) -> dict[str, Colour]:
    """Assign a colour to every algorithm, those of each feedback in the order of their rank; grey when none is free."""
    in_same_figure: dict[str, set[str]] = {}  # keeps the order of rank
    for ranked in algorithms.values():
        for name in ranked:
            in_same_figure.setdefault(name, set()).update(ranked)
    chosen: dict[str, Colour] = {}
    for name in [*PREFERRED, *(name for name in in_same_figure if name not in PREFERRED)]:
        taken = {chosen[other] for other in in_same_figure.get(name, ()) if other in chosen}
        candidates = (PREFERRED[name], *SPARE) if name in PREFERRED else SPARE
        if name in in_same_figure:
            chosen[name] = next((colour for colour in candidates if colour not in taken), GREY)
    return chosen
