"""Find the certified algorithm with the smallest bound on a stream, for runs whose own bound is vacuous."""

from collections.abc import Iterator
from typing import Any

from gaptron.algorithms import NAMES, load
from gaptron.algorithms.protocol import HasCertificate
from gaptron.errors import GaptronError
from gaptron.features.declaration import Features
from gaptron.learner import Learner, describe
from gaptron.types import Feedback, Problem

USEFUL = 0.95  # a bound above this share of the rounds is not reported


def best_certificate(
    problem: Problem, X: Any, y: Any, features: Features | None = None, available: Any = None
) -> dict[str, Any] | None:
    """Play every certified algorithm with each of its losses (seed 0), and return the one with the smallest bound.

    Args:
        problem: the problem of the run; its feedback decides which algorithms take part.
        X: the examples.
        y: the codes of their true labels.
        features: the declaration of the features, if X holds examples by name.
        available: which labels are available in each round, if not all are.

    Returns:
        The `algorithm`, its `loss` and the `value` of its bound; None if every bound is vacuous.
    """
    if problem.feedback is Feedback.GRAPH:
        return None
    best: dict[str, Any] | None = None
    smallest = USEFUL * len(y)
    known = {"n_features": problem.n_features, "norm": problem.norm} if features is None else {"features": features}
    for algorithm, loss in _certified(problem):
        try:
            learner = Learner(
                algorithm,
                n_classes=problem.n_classes,
                feedback=problem.feedback.word,
                loss=loss,
                horizon=len(y),
                seed=0,
                observe=False,
                **known,
            )
            trace = learner.play(X, y, available=available)
        except GaptronError:  # it cannot play these rounds
            continue
        bound, _ = describe.bound(learner, X, y, trace)
        if bound is not None and bound["value"] < smallest:
            smallest = bound["value"]
            best = {"algorithm": algorithm, "loss": loss, "value": smallest}
    return best


def _certified(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield the algorithms that have a certificate under this feedback, with each of their losses."""
    for name in NAMES:
        algorithm = load(name)
        if isinstance(algorithm, HasCertificate) and problem.feedback in algorithm.CARD.feedback:
            yield from ((name, loss.word) for loss in algorithm.CARD.losses)
