"""`gaptron warm`: compile an algorithm in advance."""

import time
from typing import Annotated, Any

import typer

from gaptron.cli import options
from gaptron.errors import SettingError


def warm(
    algorithm: Annotated[str, options.algorithm()] = options.DEFAULT_ALGORITHM,
    feedback: Annotated[str, typer.Option(help="full or bandit; default: all that the algorithm supports.")] = "",
    loss: Annotated[str, options.loss()] = "",
) -> None:
    """Compile an algorithm in advance, for a service or a container image.

    Compiles for dense, sparse and named features, for single rounds and for whole streams.

    gaptron warm

    gaptron warm -a gaptron --feedback bandit
    """
    from gaptron.algorithms import load  # noqa: PLC0415
    from gaptron.learner import Learner  # noqa: PLC0415

    card = load(algorithm).CARD
    kinds = [feedback] if feedback else [each.word for each in card.feedback if each.word != "graph"]
    if not kinds:
        raise SettingError(f"{algorithm} needs a feedback graph: compile it in Python with learner.warm_up()")
    common: dict[str, Any] = {"n_classes": 2, "loss": loss or None, "radius": 1.0, "horizon": 100}
    for kind in kinds:
        for examples, more in (("named", {"features": "auto"}), ("dense", {"norm": 1.0}), ("sparse", {"norm": 1.0})):
            if examples == "named" and not card.growth.possible:
                continue
            started = time.perf_counter()
            Learner(algorithm, feedback=kind, **common, **more).warm_up(sparse=examples == "sparse")
            typer.echo(f"{algorithm}, {kind} feedback, {examples} features: {time.perf_counter() - started:.1f} s")
