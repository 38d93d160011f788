"""The value of abstaining: digits classified by four models that abstain where they disagree, against the cost."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaptron.abstention import ABSTAIN, Abstainer, experts_from
from gaptron.report.theme import BLUE, GREEN, VERMILLION
from gaptron.streams import Stream, open_stream
from gaptron.types import Integers, Matrix, Vector

FITTED = 200  # rounds the models are fitted on; the rest is played
SEEDS = 5


class Experts(NamedTuple):
    """The predictions of fitted models on the digits."""

    advice: list[Matrix]  # for each digit, rounds × models: the prediction whether it is this digit
    truth: Integers
    errors: Vector  # of each model, on the rounds played


class Rates(NamedTuple):
    """Shares of the rounds."""

    abstained: float
    wrong: float  # predicted wrongly

    @property
    def wrong_if_predicted(self) -> float:
        """The share of the predictions that are wrong."""
        return self.wrong / (1.0 - self.abstained)

    def loss(self, cost: float) -> float:
        """Return the mistakes and costs per round."""
        return self.wrong + cost * self.abstained


def fit_experts() -> Experts:
    """Fit four models of different kinds on the first rounds of the digits."""
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
        model.fit(X[:FITTED], y[:FITTED])
    advice = [experts_from(models, X[FITTED:], label=digit) for digit in range(10)]
    return Experts(advice, y[FITTED:], np.array([1.0 - model.score(X[FITTED:], y[FITTED:]) for model in models]))


def rates(models: Experts, algorithm: str, cost: float) -> Rates:
    """Play one abstainer per digit; a digit is predicted if exactly one says yes and none abstains."""
    abstained = wrong = 0.0
    for seed in range(SEEDS):
        predictions = np.stack(
            [
                # One seed for all ten, so that they abstain in the same rounds.
                Abstainer(advice.shape[1], algorithm, cost=cost, seed=seed)
                .play(advice, np.where(models.truth == digit, 1, -1))
                .predictions
                for digit, advice in enumerate(models.advice)
            ],
            axis=1,
        )
        predicted = ((predictions == 1).sum(axis=1) == 1) & (predictions != ABSTAIN).all(axis=1)
        abstained += 1.0 - predicted.mean()
        wrong += (predicted & (predictions.argmax(axis=1) != models.truth)).mean()
    return Rates(abstained / SEEDS, wrong / SEEDS)


def figure(path: Path) -> None:
    """Draw error, abstentions and loss against the cost."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    models = fit_experts()
    best = models.errors.min()
    lines = (
        ("adahedge", np.append(np.linspace(0.0, 0.5, 26), np.linspace(0.5001, 0.6, 6)), BLUE.light, "-"),
        ("exponential-weights", np.append(np.linspace(0.0, 0.48, 25), 0.49), GREEN.light, "--"),
    )
    drawing, (rate, price) = pyplot.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
    for name, costs, colour, style in lines:
        by_cost = [rates(models, name, float(cost)) for cost in costs]
        draw: dict[str, Any] = {"color": colour, "linestyle": style, "linewidth": 2.2}
        rate.plot(costs, [100 * one.abstained for one in by_cost], label=f"abstentions: {name}", **draw)
        draw["linewidth"] = 1.2
        rate.plot(costs, [100 * one.wrong_if_predicted for one in by_cost], label=f"wrong predictions: {name}", **draw)
        draw["linewidth"] = 2.2
        price.plot(costs, [100 * one.loss(float(cost)) for one, cost in zip(by_cost, costs)], label=name, **draw)
    for panel in (rate, price):
        panel.axhline(
            100 * best, color=VERMILLION.light, linestyle=":", linewidth=2.2, label="best model, without abstaining"
        )
        panel.axvline(0.5, color="0.8", linewidth=1.0, zorder=0)
        panel.set(xlabel="cost of abstaining", xlim=(0.0, 0.6))
        panel.set_ylim(bottom=0.0)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=8, loc="upper left" if panel is rate else "lower right")
    rate.set(title="Abstentions and errors", ylabel="% of rounds, or of predictions", ylim=(0.0, 60.0))
    price.set(title="Total loss", ylabel="mistakes and costs, % of rounds")
    drawing.suptitle("Digits: four models, one abstainer per digit", fontsize=11)
    drawing.savefig(path, dpi=160)
    pyplot.close(drawing)
