"""What would prove something, where the bound of a run says nothing: other certificates on the same rounds."""

from collections.abc import Iterator
from typing import Any

from gaptron.algorithm import HasCertificate
from gaptron.algorithms import NAMES, load
from gaptron.errors import GaptronError
from gaptron.experiments import account
from gaptron.features.declaration import Features
from gaptron.learner import Learner
from gaptron.types import Feedback, Problem

SOMETHING = 0.95  # a bound above this share of the rounds is not worth a word


def what_would_prove(
    problem: Problem, X: Any, y: Any, features: Features | None = None, among: Any = None
) -> account.Account | None:
    """The algorithm and loss with a certificate whose bound on these rounds is smallest; None if all say nothing.

    They are played to know it, with seed 0. `y` holds codes; `features` are given where X is rows by name, `among`
    where not every label is available in every round.
    """
    if problem.feedback is Feedback.GRAPH:
        return None
    best: account.Account | None = None
    least = SOMETHING * len(y)
    for algorithm, loss in _certified(problem):
        width = {"n_features": problem.n_features, "norm": problem.norm} if features is None else {"features": features}
        try:
            learner = Learner(
                algorithm,
                n_classes=problem.n_classes,
                feedback=problem.feedback.word,
                loss=loss,
                horizon=len(y),
                seed=0,
                observe=False,
                **width,
            )
            trace = learner.play(X, y, among=among)
        except GaptronError:  # it cannot play these rounds
            continue
        bound, _ = account.bound(learner, X, y, trace)
        if bound is not None and bound["value"] < least:
            least = bound["value"]
            best = {"algorithm": algorithm, "loss": loss, "value": least}
    return best


def _certified(problem: Problem) -> Iterator[tuple[str, str]]:
    """Algorithms whose runs carry a certificate under this feedback, with each of their losses."""
    for name in NAMES:
        file = load(name)
        if isinstance(file, HasCertificate) and problem.feedback in file.CARD.feedback:
            yield from ((name, loss.word) for loss in file.CARD.losses)
