"""What happened in a run that decides which theorems still speak of it."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

from gaptron.algorithm import Algorithm, HasCertificate, HasLateProof
from gaptron.errors import NoBoundError
from gaptron.given_values import count, number
from gaptron.types import Feedback, Problem, Rounding


@dataclass
class Conditions:
    """Kept by a learner from its first round on, and in its model file."""

    late: int = 0  # most answers missing when a decision was made, or decisions made without an answer
    left_out: bool = False  # were labels left out of a round?
    fractions: bool = False  # was an answer neither right nor wrong, or could several labels be right, or none?
    longest: float = 0.0  # the longest row so far
    grew: int | None = None  # the round after which labels were added
    taught: bool = False  # by decisions that were not its own

    def check_own_draws(self, file: Algorithm, settings: Any, control: float) -> None:
        """Refuse a number where the run was not the one that the theorem is about."""
        if self.grew is not None:
            raise NoBoundError(f"labels were added after round {self.grew}, and the theorem is for labels known before")
        if self.taught:
            raise NoBoundError("it was taught by decisions that another made, and the theorem is for its own draws")
        if control:
            raise NoBoundError(f"control={control:g} of its decisions are not the theorem's own draws")
        allowed = getattr(settings, "delay", 0)
        if self.late > allowed and not (isinstance(file, HasLateProof) and file.late_proof(settings)):
            raise NoBoundError(f"answers came up to {self.late} decisions late, and the theorem allows {allowed}")

    def check_loss_known(self, file: Algorithm, problem: Problem) -> None:
        """Refuse a number that needs every round's right label, where there may be none or several."""
        if self.fractions:
            raise NoBoundError(
                "answers were worth a fraction, or nothing, or several labels could be right: no rule's loss is known"
            )
        if self.left_out and not isinstance(file, HasCertificate):
            raise NoBoundError("labels were left out of some rounds, and the theorem is for all labels in every round")
        if self.left_out and problem.feedback is Feedback.BANDIT:
            raise NoBoundError("labels were left out of some rounds, and nobody said whether the right one was")

    def as_tree(self) -> dict[str, Any]:
        """By name, for a model file."""
        return asdict(self)

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Self:
        """Those of a model file, checked; `tree` may hold other things too."""
        return cls(
            count("late", tree["late"]),
            bool(tree["left_out"]),
            bool(tree["fractions"]),
            number("longest", tree["longest"]),
            None if tree["grew"] is None else count("grew", tree["grew"]),
            bool(tree["taught"]),
        )


def counted(rounding: Rounding | None, settings: Any) -> Rounding:
    """What rounding to single precision did to the run; refused where it may have cost what nobody counted."""
    delay = getattr(settings, "delay", 0)
    if rounding is None:
        raise NoBoundError(
            "weights are in single precision, and what the rounding costs was not counted: "
            'play it with precision="double" for a bound'
        )
    if not math.isfinite(rounding.lean + rounding.drift):
        raise NoBoundError('weights grew beyond what single precision can hold: play it with precision="double"')
    if delay and rounding != Rounding():
        raise NoBoundError(
            f"weights are in single precision, and the proof for delay={delay} does not count the rounding: "
            'play it with precision="double", or without delay'
        )
    return rounding
