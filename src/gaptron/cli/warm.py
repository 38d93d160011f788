"""`gaptron warm`: compile an algorithm before anybody waits for it."""

import time
from typing import Annotated, Any

import typer

from gaptron.cli import options
from gaptron.errors import SettingError


def warm(
    algorithm: Annotated[str, options.algorithm()] = "advised-gaptron",
    feedback: Annotated[str, typer.Option(help="full or bandit; by default each that the algorithm has.")] = "",
    loss: Annotated[str, options.loss()] = "",
) -> None:
    """Compile an algorithm beforehand, for a service or an image: every kind of rows, one round and many.

    gaptron warm

    gaptron warm -a gaptron --feedback bandit
    """
    from gaptron.algorithms import load  # noqa: PLC0415
    from gaptron.learner import Learner  # noqa: PLC0415

    card = load(algorithm).CARD
    words = [feedback] if feedback else [each.word for each in card.feedback if each.word != "graph"]
    if not words:
        raise SettingError(f"{algorithm} takes feedback graphs alone: warm it in Python, learner.warm()")
    common: dict[str, Any] = {"n_classes": 2, "loss": loss or None, "radius": 1.0, "horizon": 100}
    for word in words:
        for rows, more in (("by name", {"features": "auto"}), ("dense", {"norm": 1.0}), ("sparse", {"norm": 1.0})):
            if rows == "by name" and not card.growth.possible:
                continue
            clock = time.perf_counter()
            Learner(algorithm, feedback=word, **common, **more).warm(sparse=rows == "sparse")
            typer.echo(f"{algorithm}, {word} feedback, {rows} rows: {time.perf_counter() - clock:.1f} s")
