"""Rounds of named actions in memory: contexts, actions with their features, and what the file says about them.

The feedback of a stream is of one kind, the same in every round:

    played     a log: the action that was played, its propensity and its reward
    right      full information: the one action that is right
    rewards    the reward of every action, to simulate bandit feedback
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from gaptron.data.values import CLOSE, MIN_PROPENSITY, ROUNDED
from gaptron.errors import InputError, StreamError
from gaptron.features import ActionRecords
from gaptron.streams.raw_chunk import ErrorAt
from gaptron.types import MOST_ACTIONS, Integers, Vector

PLAYED, RIGHT, REWARDS = "played", "right", "rewards"
_SAYS = {
    PLAYED: "the action played with its propensity and reward",
    RIGHT: "the right action",
    REWARDS: "the reward of every action",
}
_MOST_SHOWN = 40  # characters of an id that an error shows


class Round(NamedTuple):
    """One round as read from a file."""

    context: dict[str, Any]
    actions: Sequence[tuple[Any, dict[str, Any]]]  # id and features
    kind: str  # of the feedback
    code: int = -1  # the position of the action that was played or is right
    propensity: float = 1.0
    rewards: Sequence[float] = ()  # of the action played, or of every action
    distribution: Sequence[float] | None = None  # with which the action was drawn


@final
@dataclass(frozen=True, eq=False)
class NamedRounds:
    """Rounds of named actions in chronological order. They were checked when they were read.

    Args:
        name: of the file, for messages.
        contexts: the features that the actions of a round share, by name.
        actions: for each round, id → features by name, in the order of the file.
        kind: what the file says about a round: "played", "right" or "rewards".
        codes: the position of the action that was played or is right; empty for "rewards".
        reward: of the action played, one per round; for "rewards" of every action, one round after the other.
        propensity: the probability with which the action played was drawn; empty unless "played".
        distribution: the probability of every action, one round after the other; None if it was not logged.
        named: whether the ids are from the file; False: they are positions, which mean nothing in another round.
        notes: what a reader decided or left out.
        context_columns: of a table: the columns of the context.
        expected: for "rewards", where it is known: the expected reward of every action.
    """

    name: str
    contexts: tuple[dict[str, Any], ...]
    actions: tuple[dict[Any, dict[str, Any]], ...]
    kind: str
    codes: Integers
    reward: Vector
    propensity: Vector
    distribution: Vector | None
    named: bool = True
    notes: tuple[str, ...] = ()
    context_columns: tuple[str, ...] | None = None
    expected: Vector | None = None

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""
        return len(self.contexts)

    @cached_property
    def counts(self) -> Integers:
        """How many actions each round has."""
        return np.array([len(each) for each in self.actions], dtype=np.int64)

    @cached_property
    def first(self) -> Integers:
        """Where the actions of each round begin among those of all rounds; one more number is where they end."""
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    @cached_property
    def records(self) -> ActionRecords:
        """The rounds as a learner with features takes them."""
        pairs = zip(self.contexts, self.actions)
        return ActionRecords.of({"context": context, "actions": actions} for context, actions in pairs)

    def action(self, t: int) -> Any:
        """Return the id of the action that was played, or is right, in a round.

        Args:
            t: the index of the round.

        Returns:
            Its id.
        """
        return list(self.actions[t])[self.codes[t]]

    def distribution_at(self, t: int) -> Vector | None:
        """Return the probability of every action of a round.

        Args:
            t: the index of the round.

        Returns:
            The probabilities in the order of the actions; None if they were not logged.
        """
        if self.distribution is None:
            return None
        first = self.first
        return self.distribution[first[t] : first[t + 1]]

    def __len__(self) -> int:
        return self.n_rounds

    def __getitem__(self, part: slice) -> "NamedRounds":
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise InputError("take consecutive rounds of a stream with a slice, for example stream[:1000]")
        start, stop, _ = part.indices(self.n_rounds)
        stop = max(start, stop)
        first = self.first
        rows = slice(first[start], first[stop])
        return NamedRounds(
            self.name,
            self.contexts[start:stop],
            self.actions[start:stop],
            self.kind,
            self.codes[start:stop],
            self.reward[rows if self.kind == REWARDS else slice(start, stop)],
            self.propensity[start:stop],
            None if self.distribution is None else self.distribution[rows],
            self.named,
            self.notes,
            self.context_columns,
            None if self.expected is None else self.expected[rows],
        )

    def __repr__(self) -> str:
        return f"NamedRounds({self.name!r}, rounds={self.n_rounds}, actions={self.counts.sum()}, kind={self.kind!r})"


class RoundCollector:
    """Collects rounds as they are read, and checks each.

    Args:
        source: the name of the file.
        error_at: makes the error for a place in the file and a problem; by default the place is the number of a line.
    """

    def __init__(self, source: str, error_at: ErrorAt | None = None) -> None:
        self.source = source
        self._error_at = error_at
        self._contexts: list[dict[str, Any]] = []
        self._actions: list[dict[Any, dict[str, Any]]] = []
        self._kind = ""
        self._codes: list[int] = []
        self._rewards: list[float] = []
        self._propensities: list[float] = []
        self._distributions: list[float] | None = None

    def add(self, place: int, given: Round) -> None:
        """Add a round; raise StreamError, and change nothing, if it is impossible or of another kind than the first."""
        K, has_distribution = len(given.actions), given.distribution is not None
        if not self._contexts:
            self._kind, self._distributions = given.kind, [] if has_distribution else None
        if given.kind != self._kind:
            raise self._error(
                place,
                f"this round has {_SAYS[given.kind]}, but the first has {_SAYS[self._kind]}: split the file by kind",
            )
        if has_distribution != (self._distributions is not None):
            raise self._error(
                place, "some rounds have a distribution and some do not: give it in all rounds or in none"
            )
        if not 1 <= K <= MOST_ACTIONS:
            raise self._error(place, f"there are {K} actions, and a round has 1 to {MOST_ACTIONS}: choose candidates")
        actions, ids = dict(given.actions), [str(action) for action, _ in given.actions]
        if len(set(ids)) < K:
            twice = next(action for at, action in enumerate(ids) if action in ids[:at])
            raise self._error(place, f"two actions have the id {short_id(twice)}: give each its own")
        self._check_numbers(place, given)
        self._contexts.append(given.context)
        self._actions.append(actions)
        self._rewards += given.rewards
        if given.kind != REWARDS:
            self._codes.append(given.code)
        if given.kind == PLAYED:
            self._propensities.append(min(given.propensity, 1.0))
        if self._distributions is not None:
            self._distributions += given.distribution or ()

    def stream(
        self, *, named: bool, notes: Iterable[str] = (), context_columns: tuple[str, ...] | None = None
    ) -> NamedRounds:
        """Return the rounds; raise StreamError if there are none."""
        if not self._contexts:
            raise StreamError(self.source, "contains no rounds")
        return NamedRounds(
            self.source,
            tuple(self._contexts),
            tuple(self._actions),
            self._kind,
            np.array(self._codes, dtype=np.int64),
            np.array(self._rewards),
            np.array(self._propensities),
            None if self._distributions is None else np.array(self._distributions),
            named,
            tuple(notes),
            context_columns,
        )

    def _check_numbers(self, place: int, given: Round) -> None:
        wrong = next((reward for reward in given.rewards if not 0.0 <= reward <= 1.0), None)
        if wrong is not None:
            raise self._error(place, f"reward {wrong:g} is not in [0, 1]: scale the rewards")
        p = given.propensity
        if given.kind == PLAYED and not MIN_PROPENSITY <= p <= 1.0 + ROUNDED:
            raise self._error(
                place,
                f"propensity {p:g} is not between {MIN_PROPENSITY:g} and 1: it is the probability with which the "
                "action played was drawn",
            )
        if given.distribution is None:
            return
        distribution = np.array(given.distribution, dtype=np.float64)
        if not (distribution >= 0.0).all():
            raise self._error(place, "the distribution contains NaN or a negative number")
        with np.errstate(over="ignore"):
            total = float(distribution.sum())
        if not abs(total - 1.0) <= CLOSE:
            raise self._error(place, f"the distribution sums to {total:.6g}, not to 1")
        if not abs(distribution[given.code] - p) <= CLOSE * p:
            raise self._error(
                place,
                f"propensity {p:g} of the action played differs from the distribution, which has "
                f"{distribution[given.code]:g}",
            )

    def _error(self, place: int, problem: str) -> InputError:
        return StreamError(self.source, problem, place) if self._error_at is None else self._error_at(place, problem)


def short_id(action: Any) -> str:
    """Format the id of an action for an error message, cut if it is long."""
    text = repr(action)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def position_of(action: Any, actions: Sequence[tuple[Any, Mapping[str, Any]]]) -> int | None:
    """Return the position of an id among the actions of a round; None if it is not one of them. 7 and "7" are one."""
    return next((at for at, (each, _) in enumerate(actions) if str(each) == str(action)), None)
