"""A run of Advised Gaptron in three panels: who decided, who was heard, and how much was explored."""

from pathlib import Path

import numpy as np

from gaptron.algorithms.advised import EXPERTS
from gaptron.learner import Learner
from gaptron.report.colours import BLUE, GREEN, ORANGE, VERMILLION
from gaptron.streams import Stream, open_stream, prepare
from gaptron.types import Vector

GREY = "#999999"
WINDOW = 100


def smooth(values: Vector) -> Vector:
    """Means over the last WINDOW rounds, fewer at the start."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - WINDOW, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def digits_shuffled() -> Stream:
    """The bundled digits in a fixed random order: standardised columns, a constant, rows of unit norm."""
    stream = open_stream("digits")
    assert isinstance(stream, Stream)
    return prepare(stream, standardize=True, constant=True, unit_norm=True, shuffle=0)


def figure(path: Path) -> None:
    """Draw the three panels for bandit feedback on digits."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    stream = digits_shuffled()
    runs = {}
    for name in ("advised-gaptron", "frugal-gaptron"):
        learner = Learner(name, n_classes=stream.n_classes, feedback="bandit", seed=0)
        runs[name] = learner.play(stream.X, stream.y)
    trace = runs["advised-gaptron"]
    rounds = np.arange(1, trace.rounds + 1)

    drawing, (who, heard, rate) = pyplot.subplots(1, 3, figsize=(11.0, 3.5), layout="constrained")
    explored = smooth(trace.note("explored"))
    who.stackplot(rounds, 1.0 - explored, explored, colors=[BLUE.light, VERMILLION.light], alpha=0.85)
    who.text(0.5, 0.45, "the advice's label", transform=who.transAxes, ha="center", color="white", fontsize=10)
    who.set(title="who decided", ylabel="share of the distribution", ylim=(0, 1), xlim=(1, trace.rounds))
    who.annotate(
        "other labels,\nas the proof demands",
        (0.05, 0.93),
        (0.3, 0.72),
        xycoords=who.transAxes,
        textcoords=who.transAxes,
        color="white",
        fontsize=9,
        arrowprops={"arrowstyle": "->", "color": "white"},
    )

    colours, styles = (GREY, GREEN.light, BLUE.light, ORANGE.light), ("-", "--", "-", "-.")
    for name, colour, style in zip(EXPERTS, colours, styles):
        heard.plot(rounds, smooth(trace.note(name)), color=colour, linestyle=style, linewidth=2.0, label=name)
    heard.set(title="who was heard", ylabel="weight", ylim=(0, 1.45), yticks=[0, 0.5, 1], xlim=(1, trace.rounds))
    heard.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper center")

    for name, colour, style in (("frugal-gaptron", VERMILLION.light, "--"), ("advised-gaptron", BLUE.light, "-")):
        chance = np.cumsum(runs[name].note("explored")) / rounds
        rate.loglog(rounds[9:], chance[9:], color=colour, linestyle=style, linewidth=2.2, label=name)
    rate.set(title="exploration, mean so far", ylabel="probability of another label", ylim=(None, 1))
    rate.legend(frameon=False, fontsize=9)
    for panel in (who, heard, rate):
        panel.set_xlabel("round")
        panel.spines[["top", "right"]].set_visible(False)
    mistakes = ", ".join(f"{name} {run.mistakes / run.rounds:.1%}" for name, run in runs.items())
    drawing.suptitle(f"digits, bandit feedback, {trace.rounds:,} rounds; mistakes: {mistakes}", fontsize=11)
    drawing.savefig(path, dpi=160)
    pyplot.close(drawing)
