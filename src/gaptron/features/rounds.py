"""Rounds of named features: the border where a caller's context and actions become checked cells, or one error."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from gaptron.data.actions import wrong_count
from gaptron.errors import InputError
from gaptron.features.tables import Record, row_of
from gaptron.types import MOST_ACTIONS, Integers

Id = str | int
FIELDS = ("context", "actions", "excluded")


class ActionRecord(NamedTuple):
    """The checked context and actions of one round, by name."""

    context: Record
    ids: tuple[Id, ...]  # of the actions that may be played
    features: tuple[Record, ...]  # of the same
    given: tuple[Id, ...]  # of all actions that the caller gave


class ActionRecords(list[ActionRecord]):
    """The checked rounds of a stream, by name."""

    @classmethod
    def of(cls, rounds: Any) -> Self:
        """Check many rounds.

        Args:
            rounds: a list of dicts such as {"context": {...}, "actions": {id: {...}, ...}, "excluded": [id, ...]}. The
                context and `excluded` may be left out; actions may be a list of (id, features).

        Returns:
            The checked rounds.

        Raises:
            InputError: a round is of another form; the message has its number.
        """
        if isinstance(rounds, cls):
            return rounds
        if isinstance(rounds, ActionRecord):
            return cls([rounds])
        if isinstance(rounds, Mapping) or not isinstance(rounds, Iterable) or isinstance(rounds, str | np.ndarray):
            raise InputError(f"give rounds of named features as a list of dicts with {', '.join(FIELDS)}")
        return cls(_numbered(at, each) for at, each in enumerate(rounds))

    @overload
    def __getitem__(self, at: SupportsIndex) -> ActionRecord: ...
    @overload
    def __getitem__(self, at: slice) -> "ActionRecords": ...
    def __getitem__(self, at: SupportsIndex | slice) -> "ActionRecord | ActionRecords":
        return ActionRecords(super().__getitem__(at)) if isinstance(at, slice) else super().__getitem__(at)

    @property
    def counts(self) -> Integers:
        """How many actions each round has, with those that are excluded."""
        return np.array([len(each.given) for each in self], dtype=np.int64)

    @property
    def first(self) -> Integers:
        """T + 1 numbers: where the actions of each round begin."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def offered(self) -> NDArray[np.bool_]:
        """Which of the actions given may be played."""
        kept = [set(each.ids) for each in self]
        return np.array([name in ids for each, ids in zip(self, kept) for name in each.given], dtype=np.bool_)


def _numbered(at: int, given: Any) -> ActionRecord:
    if isinstance(given, ActionRecord):
        return given
    if not isinstance(given, Mapping) or not set(given) <= set(FIELDS) or "actions" not in given:
        raise InputError(f"round {at} must be a dict with actions, and perhaps context and excluded")
    try:
        return record_of(given.get("context"), given["actions"], given.get("excluded"))
    except InputError as problem:
        raise InputError(f"round {at}: {problem}") from None


def record_of(context: Any, actions: Any, excluded: Any) -> ActionRecord:
    """Check one round.

    Args:
        context: a dict, or None.
        actions: a dict id → features, or a list of (id, features).
        excluded: the ids of actions that may not be played, or None.

    Returns:
        The checked round, without the excluded actions.

    Raises:
        InputError: a feature cannot be encoded, an id is wrong or occurs twice, or no action is left.
    """
    pairs = _pairs(actions)
    if not 1 <= len(pairs) <= MOST_ACTIONS:
        raise InputError(wrong_count(len(pairs)))
    given = tuple([_id(name) for name, _ in pairs])
    if len(set(map(str, given))) < len(given):
        texts = list(map(str, given))
        twice = next(name for name in texts if texts.count(name) > 1)
        raise InputError(f"two actions have the id {twice!r}")
    out = set() if excluded is None else excluded_of(excluded, given)
    if len(out) == len(given):
        raise InputError("every action is excluded: at least one must be left")
    own = _record("context", None, {} if context is None else context)
    kept = [(name, cells) for name, (_, cells) in zip(given, pairs) if name not in out]
    features = tuple([_record("action", name, cells) for name, cells in kept])
    return ActionRecord(own, tuple([name for name, _ in kept]), features, given)


def _pairs(actions: Any) -> Sequence[tuple[Any, Any]]:
    if isinstance(actions, dict | Mapping):
        return list(actions.items())
    if isinstance(actions, list | tuple) and all(isinstance(each, list | tuple) and len(each) == 2 for each in actions):
        return actions
    raise InputError(
        f"actions is a {type(actions).__name__}: give a dict id → features, or a list of (id, features); a learner "
        "without features=... takes arrays"
    )


def _id(name: Any) -> Id:
    """Check an id: a text or a whole number."""
    if type(name) is str or type(name) is int:
        return name
    if isinstance(name, str):
        return str(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    raise InputError(f"the id of an action is {name!r}: give a text or a whole number")


def excluded_of(excluded: Any, given: Sequence[Id]) -> set[Id]:
    """Check the ids that a caller excludes, and return them."""
    if isinstance(excluded, str | Mapping) or not isinstance(excluded, Iterable):
        raise InputError(f"excluded={excluded!r} must list ids of actions")
    return {as_id(name, given, "excluded") for name in excluded}


def as_id(name: Any, given: Sequence[Id], what: str) -> Id:
    """Find an id among those given, as it was given there; 7 and "7" are the same."""
    if not isinstance(name, bool) and isinstance(name, str | int | np.integer):
        text = str(name)
        for known in given:
            if str(known) == text:
                return known
    raise InputError(f"{what} holds {name!r}, which is not the id of an action of this round")


def places_of_ids(y: Any, rounds: ActionRecords) -> Integers:
    """Check the right action of each round, and return their places among the actions that may be played."""
    if isinstance(y, str | Mapping) or not hasattr(y, "__len__"):
        raise InputError("y must list the id of the right action of each round")
    if len(y) != len(rounds):
        raise InputError(f"there are {len(rounds)} rounds of actions, but y has {len(y)} entries")
    places = []
    for at, (name, each) in enumerate(zip(y, rounds)):
        try:
            found = as_id(name, each.given, "y")
            if found not in each.ids:
                raise InputError(f"the right action {found!r} is excluded")
            places.append(each.ids.index(found))
        except InputError as problem:
            raise InputError(f"round {at}: {problem}") from None
    return np.array(places, dtype=np.int64)


def rewards_by_name(rewards: Any, rounds: ActionRecords) -> Any:
    """Replace dicts id → reward by lists in the order of the actions given."""
    if not isinstance(rewards, list | tuple) or not any(isinstance(each, Mapping) for each in rewards):
        return rewards
    if len(rewards) != len(rounds):
        raise InputError(f"there are {len(rounds)} rounds of actions, but rewards of {len(rewards)}")
    listed = []
    for at, (one, each) in enumerate(zip(rewards, rounds)):
        if isinstance(one, Mapping):
            by_text = {str(name): reward for name, reward in one.items()}
            if set(by_text) != set(map(str, each.given)):
                raise InputError(f"round {at}: the rewards are not those of its actions")
            one = [by_text[str(name)] for name in each.given]
        listed.append(one)
    return listed


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of Python objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _record(what: str, name: Id | None, cells: Any) -> Record:
    """Check the features of the context, or of the action of this name."""
    try:
        if isinstance(cells, dict | Mapping):
            return row_of(cells)
        problem = f" is a {type(cells).__name__}: give its features as a dict"
    except InputError as error:
        problem = f": {error}"
    raise InputError(what + ("" if name is None else f" {name!r}") + problem)
