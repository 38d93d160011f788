"""A log of decisions between named actions, which differ from round to round.

It has the methods that the estimates call on a log of labels. Where that one has a matrix with a column per label, this
one has a vector with one number per action, one round after the other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from gaptron.errors import InputError
from gaptron.features import ActionRecords
from gaptron.learner import Learner
from gaptron.offpolicy.log import NEAR_CERTAIN
from gaptron.streams.actions.rounds import PLAYED, NamedRounds
from gaptron.types import Integers, Vector


@final
@dataclass(frozen=True, eq=False)
class ActionLog:
    """Logged rounds of named actions, in chronological order.

    Make one with `ActionLog(open_actions(path))`, and take a part of it with a slice: `log[:1000]`.

    Args:
        stream: the rounds, with the actions that were played.

    Raises:
        InputError: the rounds do not say which actions were played.
    """

    stream: NamedRounds

    def __post_init__(self) -> None:
        if self.stream.kind != PLAYED:
            raise InputError(f"{self.name}: this is not a log: it does not say which action was played, and how likely")

    @property
    def name(self) -> str:
        """Its file, for messages."""
        return self.stream.name

    @property
    def records(self) -> ActionRecords:
        """The rounds as a learner with features takes them."""
        return self.stream.records

    @cached_property
    def first(self) -> Integers:
        """Where the actions of each round begin among those of all rounds; one more number is where they end."""
        return self.stream.first

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""
        return self.stream.n_rounds

    @property
    def n_actions(self) -> int:
        """The number of actions in all rounds."""
        return int(self.first[-1])

    @property
    def codes(self) -> Integers:
        """The position of the action played among those of its round."""
        return self.stream.codes

    @property
    def reward(self) -> Vector:
        """The reward of the action played, per round."""
        return self.stream.reward

    @property
    def propensity(self) -> Vector:
        """The probability with which the action played was drawn, per round."""
        return self.stream.propensity

    @property
    def distribution(self) -> Vector | None:
        """The probability of every action; None if it was not logged."""
        return self.stream.distribution

    @property
    def mistakes(self) -> Vector:
        """1 - reward of each round."""
        return 1.0 - self.reward

    @property
    def smallest_propensity(self) -> float:
        """The smallest positive probability of any action or, without distributions, of any action played."""
        if self.distribution is None:
            return float(self.propensity.min())
        return float(self.distribution[self.distribution > 0.0].min())

    @property
    def near_certain(self) -> float:
        """The share of rounds with propensity 0.99 or more, which say almost nothing about other actions."""
        return float((self.propensity >= NEAR_CERTAIN).mean())

    @property
    def uniform(self) -> Vector:
        """The probability of every action if all of a round are equally likely."""
        counts = np.diff(self.first)
        return np.repeat(1.0 / counts, counts)

    def new_values(self) -> Vector:
        """Return a vector with room for one number per action."""
        return np.empty(self.n_actions)

    def place(self, t: int) -> slice:
        """Return where the actions of a round are in such a vector.

        Args:
            t: the index of the round.

        Returns:
            Their place.
        """
        return slice(self.first[t], self.first[t + 1])

    def of_played(self, values: Vector) -> Vector:
        """Return the numbers of the actions that were played.

        Args:
            values: one number per action.

        Returns:
            One number per round.
        """
        played: Vector = values[self.first[:-1] + self.stream.codes]
        return played

    def sums(self, values: Vector) -> Vector:
        """Sum over the actions of each round.

        Args:
            values: one number per action.

        Returns:
            One number per round.
        """
        return np.add.reduceat(values, self.first[:-1])

    def examples_for(self, learner: Learner) -> Any:
        """Return the rounds in the form that a learner takes.

        Args:
            learner: the learner.

        Returns:
            The rounds.

        Raises:
            InputError: the learner does not take actions by name.
        """
        if not learner.problem.actions or learner.features is None:
            raise InputError(
                f"{self.name}: this log has actions by name: make the learner with actions=True and features='auto'"
            )
        return self.records

    def check_not_empty(self) -> None:
        """Refuse a log without rounds, such as an empty slice."""
        if not self.n_rounds:
            raise InputError(f"{self.name}: this part of the log contains no decisions")

    def __getitem__(self, part: slice) -> "ActionLog":
        return ActionLog(self.stream[part])

    def __repr__(self) -> str:
        return f"ActionLog({self.name!r}, rounds={self.n_rounds}, actions={self.n_actions})"
