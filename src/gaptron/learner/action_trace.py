"""The trace of a run in which every round brought its own actions."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.data.labels import Classes, Labels
from gaptron.errors import InputError
from gaptron.learner.trace import Trace
from gaptron.types import Count, Flags, Integers, Matrix, Vector


@dataclass(frozen=True, eq=False, repr=False)
class ActionTrace(Trace):
    """The rounds of a run, in the order played. `first + second` is the trace of both.

    The codes, `codes`, `top` and `truth`, are places among the actions that could be played in a round; `labels` are
    their rows in what the caller gave, or their ids. `rewards` has one row per action that could be played, or none.
    """

    ids: NDArray[Any] | None = field(kw_only=True)  # the id of each action that could be played; None: there are none
    starts: Integers = field(kw_only=True)  # T + 1 numbers: where the actions of each round begin in `rows`
    rows: Integers = field(kw_only=True)  # the row, in what the caller gave, of each action that could be played

    @classmethod
    def of_rounds(
        cls,
        starts: Integers,
        rows: Integers,
        ids: NDArray[Any] | None,
        truth: Integers,
        note_names: tuple[str, ...],
        rewards: Matrix,
    ) -> "ActionTrace":
        """Allocate a trace for these rounds, to be filled.

        Args:
            starts: where the actions of each round that can be played begin, and the end.
            rows: the row of each in what the caller gave, counted within its round.
            ids: the id of each; None: they have none.
            truth: the right actions; UNKNOWN where every action has its own reward.
            note_names: the names of the algorithm's notes.
            rewards: rewards, as in the field.

        Returns:
            The trace, with arrays that are not initialised.
        """
        T = len(starts) - 1
        codes, top = np.empty(T, dtype=np.int64), np.empty(T, dtype=np.int64)
        filled = Classes(()), codes, top, truth, np.empty(T), note_names, np.empty((T, len(note_names))), rewards
        return cls(*filled, starts=starts, rows=rows, ids=ids)

    @property
    def labels(self) -> NDArray[Any]:
        """The row, or the id, of the action played in each round."""
        return self.rows_of(self.codes) if self.ids is None else self.ids[self.starts[:-1] + self.codes]

    @property
    def right_actions(self) -> NDArray[Any]:
        """The row, or the id, of the right action of each round, where there is one."""
        return self.rows_of(self.truth) if self.ids is None else self.ids[self.starts[:-1] + self.truth]

    def rows_of(self, codes: Integers) -> Integers:
        """Return the rows of actions in what the caller gave.

        Args:
            codes: the place of an action of each round, among those that could be played.

        Returns:
            Their rows.
        """
        return np.asarray(self.rows[self.starts[:-1] + codes])

    def _misses(self, codes: Integers) -> Flags:
        if len(self.rewards):
            return np.asarray(self.rewards[self.starts[:-1] + codes, 0] == 0.0)
        return np.asarray(codes != self.truth)

    @property
    def reward(self) -> Vector:
        """The reward of the action played in each round: the one given, otherwise 1 if it was right and 0 if not."""
        if len(self.rewards):
            return np.asarray(self.rewards[self.starts[:-1] + self.codes, 0])
        return np.where(self.wrong, 0.0, 1.0)

    def count_against(self, labels: Labels, *, several_right: bool = False) -> Count:
        """Not for actions with features.

        Args:
            labels: not used.
            several_right: not used.

        Returns:
            Nothing.

        Raises:
            InputError: always.
        """
        raise InputError("count_against is for labels, not for actions with features")

    def in_order(self, places: Integers) -> "ActionTrace":
        """Not for actions with features.

        Args:
            places: not used.

        Returns:
            Nothing.

        Raises:
            InputError: always.
        """
        raise InputError("in_order is for labels, not for actions with features")

    def first(self, rounds: int) -> "ActionTrace":
        """Return the trace of the first rounds.

        Args:
            rounds: how many.

        Returns:
            Their trace.
        """
        stop, part = int(self.starts[rounds]), slice(rounds)
        kept = self.codes[part], self.top[part], self.truth[part], self.truth_probability[part], self.note_names
        starts, rows = self.starts[: rounds + 1], self.rows[:stop]
        ids, rewards = None if self.ids is None else self.ids[:stop], self.rewards[:stop]
        return ActionTrace(self.classes, *kept, self.notes[part], rewards, starts=starts, rows=rows, ids=ids)

    def __add__(self, other: Trace) -> "ActionTrace":
        if not isinstance(other, ActionTrace) or self.note_names != other.note_names:
            raise InputError("these traces are of learners with different labels or algorithms")
        if bool(len(self.rewards)) != bool(len(other.rewards)):
            raise InputError("these traces have rewards of different kinds")
        if (self.ids is None) != (other.ids is None):
            raise InputError("one of these traces has ids of actions, and the other has not")
        join = np.concatenate
        return ActionTrace(
            self.classes,
            join([self.codes, other.codes]),
            join([self.top, other.top]),
            join([self.truth, other.truth]),
            join([self.truth_probability, other.truth_probability]),
            self.note_names,
            join([self.notes, other.notes]),
            join([self.rewards, other.rewards]),
            starts=join([self.starts, self.starts[-1] + other.starts[1:]]),
            rows=join([self.rows, other.rows]),
            ids=None if self.ids is None or other.ids is None else join([self.ids, other.ids]),
        )
