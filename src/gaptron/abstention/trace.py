"""The record of a run with abstention."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from gaptron.learner.trace import checkpoints
from gaptron.types import Flags, Integers, Vector


class Abstention(IntEnum):
    """The prediction of a round that abstains: 0, between -1 and +1."""

    ABSTAIN = 0


ABSTAIN = Abstention.ABSTAIN


class AbstainerCurve(NamedTuple):
    """Cumulative sums at log-spaced rounds."""

    rounds: Integers  # the rounds, counted from 1
    loss: Vector
    expected_loss: Vector
    mistakes: Integers
    abstentions: Integers


@dataclass(frozen=True, eq=False)
class AbstainerTrace:
    """Rounds in the order played. `first + second` concatenates two traces."""

    predictions: Integers  # -1, +1 or ABSTAIN (0), as drawn
    votes: Vector  # ŷ ∈ [-1, 1]: the weighted mean of the experts
    labels: Integers  # the true labels, -1 or +1
    costs: Vector  # of abstaining; ½ where a coin replaced it
    expected_losses: Vector  # per round, in expectation over the draw

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.labels)

    @property
    def abstained(self) -> Flags:
        """Which rounds abstained."""
        return np.equal(self.predictions, ABSTAIN)

    @property
    def wrong(self) -> Flags:
        """Which predictions were wrong."""
        return np.equal(self.predictions, -self.labels)

    @property
    def losses(self) -> Vector:
        """The loss of each round as drawn: 1 for a mistake, the cost for abstaining, otherwise 0."""
        return np.where(self.abstained, self.costs, self.wrong.astype(np.float64))

    @property
    def loss(self) -> float:
        """The sum of the losses as drawn."""
        return float(np.sum(self.losses))

    @property
    def expected_loss(self) -> float:
        """The sum of the expected losses; exact, because the weights do not depend on the draws."""
        return float(np.sum(self.expected_losses))

    @property
    def mistakes(self) -> int:
        """The number of wrong predictions."""
        return int(np.count_nonzero(self.wrong))

    @property
    def abstentions(self) -> int:
        """The number of rounds that abstained."""
        return int(np.count_nonzero(self.abstained))

    @property
    def curve(self) -> AbstainerCurve:
        """Cumulative sums at ten log-spaced rounds per decade and at the last round."""
        rounds = checkpoints(self.rounds)
        at = rounds - 1
        return AbstainerCurve(
            rounds,
            np.cumsum(self.losses)[at],
            np.cumsum(self.expected_losses)[at],
            np.cumsum(self.wrong, dtype=np.int64)[at],
            np.cumsum(self.abstained, dtype=np.int64)[at],
        )

    def first(self, rounds: int) -> "AbstainerTrace":
        """Return the trace of the first rounds.

        Args:
            rounds: how many rounds to keep.

        Returns:
            A trace that shares memory with this one.
        """
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
