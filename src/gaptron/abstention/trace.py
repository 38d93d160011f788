"""What a run that may abstain leaves behind."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from gaptron.trace import checkpoints
from gaptron.types import Flags, Integers, Vector


class Silence(IntEnum):
    """What is predicted when nothing is: 0, between -1 and +1."""

    ABSTAIN = 0


ABSTAIN = Silence.ABSTAIN


class AbstainerCurve(NamedTuple):
    """Sums up to log-spaced rounds."""

    rounds: Integers
    loss: Vector
    expected_loss: Vector
    mistakes: Integers
    abstentions: Integers


@dataclass(frozen=True, eq=False)
class AbstainerTrace:
    """Rounds in the order played. `first + second` is the trace of both."""

    predictions: Integers  # -1, +1 or ABSTAIN (0), as drawn
    votes: Vector  # ŷ ∈ [-1, 1]: the weighted mean of the experts
    labels: Integers  # the truth, -1 or +1
    costs: Vector  # of abstaining; ½ where a coin stood in for it
    expected_losses: Vector  # in expectation over the draw, round by round

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return len(self.labels)

    @property
    def abstained(self) -> Flags:
        """Which rounds were left unanswered."""
        return np.equal(self.predictions, ABSTAIN)

    @property
    def wrong(self) -> Flags:
        """Which answers were mistakes."""
        return np.equal(self.predictions, -self.labels)

    @property
    def losses(self) -> Vector:
        """1 for a mistake, the cost for abstaining, else 0: as drawn, round by round."""
        return np.where(self.abstained, self.costs, self.wrong.astype(np.float64))

    @property
    def loss(self) -> float:
        """Σ losses, as drawn."""
        return float(np.sum(self.losses))

    @property
    def expected_loss(self) -> float:
        """Σ expected losses: exact, since the weights do not depend on the draws."""
        return float(np.sum(self.expected_losses))

    @property
    def mistakes(self) -> int:
        """How many answers were wrong."""
        return int(np.count_nonzero(self.wrong))

    @property
    def abstentions(self) -> int:
        """How many rounds were left unanswered."""
        return int(np.count_nonzero(self.abstained))

    @property
    def curve(self) -> AbstainerCurve:
        """Sums so far, at ten log-spaced rounds a decade and the last."""
        marks = checkpoints(self.rounds)
        at = marks - 1
        return AbstainerCurve(
            marks,
            np.cumsum(self.losses)[at],
            np.cumsum(self.expected_losses)[at],
            np.cumsum(self.wrong, dtype=np.int64)[at],
            np.cumsum(self.abstained, dtype=np.int64)[at],
        )

    def first(self, rounds: int) -> "AbstainerTrace":
        """The trace of the first rounds alone."""
        return AbstainerTrace(
            self.predictions[:rounds],
            self.votes[:rounds],
            self.labels[:rounds],
            self.costs[:rounds],
            self.expected_losses[:rounds],
        )

    def __add__(self, other: "AbstainerTrace") -> "AbstainerTrace":
        join = np.concatenate
        return AbstainerTrace(
            join([self.predictions, other.predictions]),
            join([self.votes, other.votes]),
            join([self.labels, other.labels]),
            join([self.costs, other.costs]),
            join([self.expected_losses, other.expected_losses]),
        )

    def __repr__(self) -> str:
        return (
            f"AbstainerTrace(rounds={self.rounds}, mistakes={self.mistakes}, abstentions={self.abstentions}, "
            f"expected_loss={self.expected_loss:.1f})"
        )
