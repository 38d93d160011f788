"""The colours of all figures, on white paper and on a dark screen, and which algorithm has which in a comparison."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Colour(NamedTuple):
    """A colour on both grounds. Figures are drawn in the light one; the page turns it into a CSS variable."""

    light: str
    dark: str


# Okabe & Ito's colours without the yellow, which is hard to see on white; lighter on a dark screen.
INK = Colour("#1B1B1F", "#ECECF1")
QUIET = Colour("#5C5F66", "#A9ADB6")  # words beside the data
GREY = Colour("#B9BCC2", "#5E626B")  # lines without a name
FAINT = Colour("#E3E4E8", "#34363D")  # lines of the grid
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
HOME = {
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
SPARE = (SKY, PURPLE, ORANGE, GREEN, VERMILLION, BLUE)  # for the others, while one is free; ink is the default's


def palette(algorithms: Mapping[str, Sequence[str]]) -> dict[str, Colour]:
    """A colour for every algorithm, those of each feedback in the order of their rank; grey where none is free."""
    rivals: dict[str, set[str]] = {}  # keeps the order of rank
    for there in algorithms.values():
        for name in there:
            rivals.setdefault(name, set()).update(there)
    chosen: dict[str, Colour] = {}
    for name in [*HOME, *(name for name in rivals if name not in HOME)]:
        taken = {chosen[rival] for rival in rivals.get(name, ()) if rival in chosen}
        wanted = (HOME[name], *SPARE) if name in HOME else SPARE
        if name in rivals:
            chosen[name] = next((colour for colour in wanted if colour not in taken), GREY)
    return chosen
