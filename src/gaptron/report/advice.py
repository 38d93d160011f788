"""A run of Advised Gaptron in three panels: cost and proof of exploiting rounds, expert weights, and mistakes."""

from pathlib import Path

import numpy as np

from gaptron.algorithms.advised import EXPERTS
from gaptron.learner import Learner
from gaptron.report.theme import BLUE, GREEN, ORANGE, VERMILLION
from gaptron.streams import Stream, open_stream, prepare
from gaptron.types import Vector

GREY = "#999999"
WINDOW = 100


def smooth(values: Vector) -> Vector:
    """Return means over the last WINDOW rounds, fewer at the start."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - WINDOW, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def digits_shuffled() -> Stream:
    """Return the bundled digits in a fixed random order: standardized columns, a constant, examples of unit norm."""
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

    drawing, (exploiting, weights, rate) = pyplot.subplots(1, 3, figsize=(11.0, 3.5), layout="constrained")
    missed = np.cumsum(trace.codes != trace.truth)
    proved = missed - np.append(trace.note("cost")[1:], np.nan)  # the note is the cost before the round
    exploiting.plot(rounds, proved, color=BLUE.light, linewidth=2.2, label="proved by correct rounds, Ψ")
    exploiting.plot(rounds, missed, color=VERMILLION.light, linestyle="--", linewidth=2.2, label="mistakes, M")
    exploiting.set(
        title="exploiting rounds: cost and proof", ylabel="sum so far", xlim=(1, trace.rounds), ylim=(0, None)
    )
    exploiting.legend(frameon=False, fontsize=9, loc="upper left")

    colours = GREY, GREEN.light, BLUE.light, ORANGE.light, VERMILLION.light
    for name, colour, style in zip(EXPERTS, colours, ("-", "--", "-", "-.", ":"), strict=True):
        weights.plot(rounds, smooth(trace.note(name)), color=colour, linestyle=style, linewidth=2.0, label=name)
    weights.set(title="expert weights", ylabel="weight", ylim=(0, 1.45), yticks=[0, 0.5, 1], xlim=(1, trace.rounds))
    weights.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper center")

    for name, colour, style in (("frugal-gaptron", VERMILLION.light, "--"), ("advised-gaptron", BLUE.light, "-")):
        wrong = np.cumsum(runs[name].codes != runs[name].truth) / rounds
        rate.plot(rounds, wrong, color=colour, linestyle=style, linewidth=2.2, label=name)
    rate.set(title="mistakes, mean so far", ylabel="share of rounds", ylim=(0, 1), xlim=(1, trace.rounds))
    rate.legend(frameon=False, fontsize=9)
    for panel in (exploiting, weights, rate):
        panel.set_xlabel("round")
        panel.spines[["top", "right"]].set_visible(False)
    mistakes = ", ".join(f"{name} {run.mistakes / run.rounds:.1%}" for name, run in runs.items())
    drawing.suptitle(f"digits, bandit feedback, {trace.rounds:,} rounds; mistakes: {mistakes}", fontsize=11)
    drawing.savefig(path, dpi=160)
    pyplot.close(drawing)
