"""Exploration at a given margin: the paper's gap maps and Frugal Gaptron's demands."""

from pathlib import Path

import numpy as np

from gaptron.algorithms import frugal, gaptron
from gaptron.report.theme import BLUE, GREEN, VERMILLION
from gaptron.types import Feedback, Loss, Problem, Round, Vector, named, new_round

FLOOR = -60.0  # a score so low that its label has no influence


def explored(name: str, loss: Loss, feedback: Feedback, margins: Vector, n_classes: int) -> Vector:
    """Return 1 - p(y*) when y* leads one label by each margin and all others by far; ‖x‖ = X, the first step."""
    algorithm = {"gaptron": gaptron, "frugal-gaptron": frugal}[name]
    problem = Problem(n_classes, n_classes, feedback, loss, norm=1.0)
    settings = algorithm.recommend(problem)
    state = algorithm.init(settings, problem, False)
    rd = new_round(n_classes, len(algorithm.NOTES))
    work = algorithm.scratch(settings, problem, False)
    unit = np.zeros(n_classes)
    unit[0] = 1.0
    step = settings.first if name == "frugal-gaptron" else 1.0
    explored = np.empty(len(margins))
    for i, m in enumerate(margins):
        state.W[:, 0] = FLOOR / step
        state.W[0, 0], state.W[1, 0] = m / step, 0.0
        score_once(settings, state, unit, rd, work)
        explored[i] = 1.0 - rd.p[0]
    return explored


def score_once(settings: object, state: object, x: Vector, rd: Round, work: object) -> None:
    """Score one example and fill the round."""
    from gaptron.kernels.play import score  # noqa: PLC0415

    nothing, any_label = np.zeros((1, 0)), np.zeros((1, 0), dtype=np.bool_)
    count = named(decided=0, learned=0, trail=0)
    score(settings, state, x[None, :], 0.5, nothing, any_label, rd, work, count, False, nothing, nothing)


def figure(path: Path, n_classes: int = 10) -> None:
    """Draw exploration against the margin, one panel per loss."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    lines = (
        ("gaptron", Feedback.FULL, "the paper's Gaptron", VERMILLION.light, "--"),
        ("frugal-gaptron", Feedback.FULL, "Frugal, full information", BLUE.light, "-"),
        ("frugal-gaptron", Feedback.BANDIT, "Frugal, bandit (first step)", GREEN.light, ":"),
    )
    drawing, panels = pyplot.subplots(1, 3, figsize=(10.0, 3.4), sharey=True, layout="constrained")
    for panel, loss in zip(panels, Loss, strict=True):
        margins = np.linspace(0.0, 6.0 if loss is Loss.LOGISTIC else 1.25, 300)
        for name, feedback, label, colour, style in lines:
            probability = explored(name, loss, feedback, margins, n_classes)
            panel.plot(margins, probability, color=colour, linestyle=style, linewidth=2.2, label=label)
        panel.set(title=loss.word.replace("-", " "), xlabel="margin m*", xlim=(0, margins[-1]), ylim=(0, 1))
        panel.locator_params(axis="x", nbins=4)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("probability of not playing y*")
    panels[1].legend(frameon=False, fontsize=9)
    drawing.suptitle(f"Exploration when one other label is close (K = {n_classes})", fontsize=11)
    drawing.savefig(path, dpi=160)
    pyplot.close(drawing)
