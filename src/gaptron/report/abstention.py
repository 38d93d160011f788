"""What it is worth to keep silent: digits read by four models that abstain where they disagree, against the cost."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaptron.abstention import ABSTAIN, Abstainer, experts_from
from gaptron.report.colours import BLUE, GREEN, VERMILLION
from gaptron.streams import Stream, open_stream
from gaptron.types import Integers, Matrix, Vector

SEEN = 200  # rounds the models are fitted on; the rest is played
SEEDS = 5


class Council(NamedTuple):
    """Models that have something to say about digits."""

    advice: list[Matrix]  # for each digit, rounds × models: is it this one?
    truth: Integers
    errors: Vector  # of each model alone, on the rounds played


class Rates(NamedTuple):
    """Shares of the rounds."""

    silent: float
    wrong: float  # answered, wrongly

    @property
    def wrong_if_answered(self) -> float:
        """The share of the answers that are wrong."""
        return self.wrong / (1.0 - self.silent)

    def loss(self, cost: float) -> float:
        """Mistakes and costs a round."""
        return self.wrong + cost * self.silent


def council() -> Council:
    """Four models of different kinds, fitted on the first rounds of the digits."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    stream = open_stream("digits")
    assert isinstance(stream, Stream)
    X, y = stream.X, stream.y
    models: list[Any] = [
        GaussianNB(var_smoothing=0.01),
        DecisionTreeClassifier(max_depth=8, random_state=0),
        KNeighborsClassifier(3),
        LogisticRegression(C=0.1, max_iter=500),
    ]
    for model in models:
        model.fit(X[:SEEN], y[:SEEN])
    advice = [experts_from(models, X[SEEN:], label=digit) for digit in range(10)]
    return Council(advice, y[SEEN:], np.array([1.0 - model.score(X[SEEN:], y[SEEN:]) for model in models]))


def rates(models: Council, algorithm: str, cost: float) -> Rates:
    """Ten questions a round, one for each digit; an answer is given if exactly one is affirmed and none left open."""
    silent = wrong = 0.0
    for seed in range(SEEDS):
        answers = np.stack(
            [
                # One seed for all ten, so that they keep silent together rather than in turn.
                Abstainer(advice.shape[1], algorithm, cost=cost, seed=seed)
                .play(advice, np.where(models.truth == digit, 1, -1))
                .predictions
                for digit, advice in enumerate(models.advice)
            ],
            axis=1,
        )
        answered = ((answers == 1).sum(axis=1) == 1) & (answers != ABSTAIN).all(axis=1)
        silent += 1.0 - answered.mean()
        wrong += (answered & (answers.argmax(axis=1) != models.truth)).mean()
    return Rates(silent / SEEDS, wrong / SEEDS)


def figure(path: Path) -> None:
    """Draw error, abstention and loss against the cost."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    models = council()
    best = models.errors.min()
    lines = (
        ("adahedge", np.append(np.linspace(0.0, 0.5, 26), np.linspace(0.5001, 0.6, 6)), BLUE.light, "-"),
        ("exponential-weights", np.append(np.linspace(0.0, 0.48, 25), 0.49), GREEN.light, "--"),
    )
    drawing, (rate, price) = pyplot.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
    for name, costs, colour, style in lines:
        by_cost = [rates(models, name, float(cost)) for cost in costs]
        draw: dict[str, Any] = {"color": colour, "linestyle": style, "linewidth": 2.2}
        rate.plot(costs, [100 * one.silent for one in by_cost], label=f"left unanswered: {name}", **draw)
        draw["linewidth"] = 1.2
        rate.plot(costs, [100 * one.wrong_if_answered for one in by_cost], label=f"wrong answers: {name}", **draw)
        draw["linewidth"] = 2.2
        price.plot(costs, [100 * one.loss(float(cost)) for one, cost in zip(by_cost, costs)], label=name, **draw)
    for panel in (rate, price):
        panel.axhline(
            100 * best, color=VERMILLION.light, linestyle=":", linewidth=2.2, label="best model, always answering"
        )
        panel.axvline(0.5, color="0.8", linewidth=1.0, zorder=0)
        panel.set(xlabel="cost of abstaining", xlim=(0.0, 0.6))
        panel.set_ylim(bottom=0.0)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=8, loc="upper left" if panel is rate else "lower right")
    rate.set(title="What is answered", ylabel="% of rounds, or of answers", ylim=(0.0, 60.0))
    price.set(title="What it costs", ylabel="mistakes and costs, % of rounds")
    drawing.suptitle("Digits: four models, one abstainer per digit", fontsize=11)
    drawing.savefig(path, dpi=160)
    pyplot.close(drawing)
