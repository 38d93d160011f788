"""The facts about a run that decide which theorems cover it."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from gaptron.algorithms.protocol import AnyAlgorithm, HasCertificate, HasLateProof
from gaptron.data.values import count, number
from gaptron.errors import NoBoundError
from gaptron.types import Feedback, Problem


@dataclass
class Conditions:
    """Facts about a run, kept by the learner and in its model file."""

    late: int = 0  # the most decisions that waited for feedback when another decision was made
    left_out: bool = False  # did a round have unavailable labels?
    fractions: bool = False  # was a reward neither 0 nor 1, or could several labels be right, or none?
    longest: float = 0.0  # the largest norm of an example so far
    grew: int | None = None  # the round after which labels were added
    off_policy: bool = False  # did it learn from decisions of another policy?
    epsilon: float = 0.0  # the largest share of uniform draws, before it was changed

    def check_own_draws(self, algorithm: AnyAlgorithm, settings: Any, epsilon: float) -> None:
        """Raise `NoBoundError` if the decisions were not those of the theorem."""
        if self.grew is not None:
            raise NoBoundError(
                f"labels were added after round {self.grew}; the theorem needs all labels from the start"
            )
        if self.off_policy:
            raise NoBoundError("the learner learned from logged decisions; the theorem is for its own draws")
        epsilon = max(epsilon, self.epsilon)
        if epsilon:
            raise NoBoundError(
                f"epsilon={epsilon:g} of the decisions are uniform draws, which the theorem does not cover"
            )
        allowed = getattr(settings, "delay", 0)
        if self.late > allowed and not (isinstance(algorithm, HasLateProof) and algorithm.late_proof(settings)):
            raise NoBoundError(f"feedback was up to {self.late} decisions late, and the theorem allows {allowed}")

    def check_loss_known(self, algorithm: AnyAlgorithm, problem: Problem) -> None:
        """Raise `NoBoundError` if the loss of a rule needs true labels that are not known."""
        if self.fractions:
            raise NoBoundError(
                "some rewards were fractions, or several labels or none could be right: the loss of a rule is not known"
            )
        if self.left_out and not isinstance(algorithm, HasCertificate):
            raise NoBoundError(
                "labels were unavailable in some rounds, and the theorem needs all labels in every round"
            )
        if self.left_out and problem.feedback is Feedback.BANDIT:
            raise NoBoundError("labels were unavailable in some rounds, and the true label may have been one of them")

    def as_tree(self) -> dict[str, Any]:
        """The facts by name, for a model file."""
        return asdict(self)

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Self:
        """Read and check the facts of a model file; other names in `tree` are ignored."""
        return cls(
            count("late", tree["late"]),
            bool(tree["left_out"]),
            bool(tree["fractions"]),
            number("longest", tree["longest"]),
            None if tree["grew"] is None else count("grew", tree["grew"]),
            bool(tree["off_policy"]),
            number("epsilon", tree["epsilon"]),
        )


def check_precision(single: bool) -> None:
    """Raise `NoBoundError` for weights in single precision, whose rounding errors no proof covers."""
    if single:
        raise NoBoundError('no theorem covers the rounding of weights in single precision: use precision="double"')
