"""The paper's two tables, computed by the code, and its Figure 1."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gaptron.algorithms import NAMES, gaptron, load
from gaptron.report.theme import BLUE, GREEN, VERMILLION
from gaptron.types import Feedback, Loss, Problem, Vector


def overview() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the paper's Table 1, one per algorithm of the library."""
    yield ("algorithm", "feedback", "losses", "regret, full", "regret, bandit", "time per round", "memory", "paper")
    for name in NAMES:
        card = load(name).CARD
        feedback = ", ".join(word.word for word in card.feedback)
        losses = ", ".join(loss.word for loss in card.losses)
        yield (
            name,
            feedback,
            losses,
            card.regret_full or "-",
            card.regret_bandit or "-",
            card.time,
            card.memory,
            card.paper,
        )


def settings(n_classes: int, norm: float, radius: float, horizon: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the paper's table of settings, with the values for one problem."""
    yield ("loss", "feedback", "η", "γ", "β", "ball", "regret at ‖U‖ = D", "from")
    for feedback in Feedback:
        for loss in Loss:
            problem = Problem(n_classes, 1, feedback, loss, norm, radius, horizon)
            s = gaptron.recommend(problem)
            yield (
                loss.word,
                feedback.word,
                f"{s.eta:.6g}",
                f"{s.gamma:.4g}",
                f"{s.beta:.4g}" if loss is Loss.HINGE else "-",
                f"{s.ball:.4g}" if s.ball < math.inf else "-",
                f"{gaptron.regret(problem):.6g}",
                gaptron.theorem(problem, s).replace(" of van der Hoeven 2020", ""),
            )


def surrogate_gap(z: Vector, eta: float = 1 / 8) -> tuple[Vector, Vector, Vector]:
    """Return Figure 1's three curves at margin z, with classes ±1: without a gap map, with it, and the loss.

    Binary weights are one vector, so ‖g‖² is 4 and not the 8 of two rows.
    """
    slack = np.maximum(1.0 - z, 0.0)
    loss = np.where(z <= 0.0, 1.0 - 2.0 * z, slack**2)
    square = np.where(z <= 0.0, 4.0, 4.0 * slack**2)
    wrong = np.where(z <= 0.0, 1.0, 0.0)
    a = (1.0 - np.minimum(1.0, np.abs(z))) ** 2
    return wrong + eta / 2 * square, (1.0 - a) * wrong + a / 2 + eta / 2 * square, loss


def figure_1(path: Path) -> None:
    """Draw Figure 1 (surrogate gap of the smooth hinge, K = 2, η = 1/8) to a file of any format matplotlib supports."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(figsize=(7.2, 4.0), layout="constrained")
    for low, high in ((-1.0, 0.0), (1e-9, 1.25)):  # no line across the jump at 0
        z = np.linspace(low, high, 400)
        plain, mapped, loss = surrogate_gap(z)
        first = low < 0.0
        lines = (
            (loss, GREEN, "-", "smooth hinge loss"),
            (plain, VERMILLION, "--", "a = 0: 1[z ≤ 0] + (η/2)‖g‖²"),
            (mapped, BLUE, ":", "a = (1 - |z|)²: Gaptron"),
        )
        for values, colour, dashes, label in lines:
            axes.plot(z, values, color=colour.light, linestyle=dashes, label=label if first else None, linewidth=2.2)
    axes.axvspan(-0.125, 0.0, color="0.85", zorder=0, label="gap above 0 when a = 0")
    axes.set(xlabel="margin z", ylabel="value", xlim=(-1.0, 1.25), ylim=(0.0, 3.0))
    axes.set_title(
        "Surrogate gap of the smooth hinge (K = 2, η = 1/8, ‖x‖ = 1)\n"
        "the gap is positive where a dashed line is above the solid one",
        fontsize=10,
    )
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160)
    pyplot.close(figure)
