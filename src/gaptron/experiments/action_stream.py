"""Rounds of named actions as a comparison caches them: encoded once, each round by those before it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.data.actions import ActionExamples
from gaptron.data.examples import sealed
from gaptron.errors import InputError
from gaptron.features import ActionEncoder, Features
from gaptron.streams.actions.rounds import PLAYED, RIGHT, NamedRounds
from gaptron.types import Sparse

FIRST = "first"  # the array that only streams of actions have


@dataclass(frozen=True, eq=False)
class EncodedActions:
    """The encoded rounds of a stream, with what every action would earn or which one is right."""

    rounds: NamedRounds
    examples: ActionExamples

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self.rounds.name

    @property
    def prepared(self) -> tuple[str, ...]:
        """How the stream was prepared."""
        return ("encoded in order",)

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""
        return len(self.examples)

    @property
    def n_classes(self) -> int:
        """The largest number of actions of a round."""
        return int(self.examples.counts.max())

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return self.examples.width

    @property
    def norm(self) -> float:
        """The largest norm of an action."""
        return self.examples.longest

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the rounds as arrays by name."""
        examples, rounds = self.examples, self.rounds
        found: dict[str, NDArray[Any]] = {FIRST: examples.first, "norms": examples.norms}
        parts: dict[str, Any] = {"row": examples.rows, "context": examples.contexts}
        for name, part in parts.items():
            found |= {f"{name}_{field}": array for field, array in zip(part._fields, part)}
        if rounds.kind == RIGHT:
            found["y"] = rounds.codes
        else:
            found["rewards"] = rounds.reward
        return found if rounds.expected is None else found | {"expected": rounds.expected}


def encode_actions(rounds: NamedRounds) -> EncodedActions:
    """Encode rounds as a learner with features does.

    Args:
        rounds: the rounds, with the right action or the reward of every action.

    Returns:
        The encoded rounds.

    Raises:
        InputError: the rounds are a log, whose rewards of other actions are unknown.
    """
    if rounds.kind == PLAYED:
        raise InputError(f"{rounds.name}: a log cannot be compared: gaptron evaluate --actions estimates from it")
    encoder = ActionEncoder(Features(ids=None if rounds.named else False))
    return EncodedActions(rounds, encoder.encode_rounds(rounds.records, learn=True))


def examples_of(arrays: Mapping[str, NDArray[Any]], n_features: int) -> ActionExamples:
    """Return the rounds over the memory of their arrays."""
    parts = {name: sealed(np.asarray(array)) for name, array in arrays.items()}
    row, context = (Sparse(*(parts[f"{name}_{field}"] for field in Sparse._fields)) for name in ("row", "context"))
    return ActionExamples(row, n_features, parts[FIRST], parts["norms"], context)


def total_reward(arrays: Mapping[str, NDArray[Any]], codes: NDArray[Any]) -> float | None:
    """Return the total reward of the actions played, the expected one where it is known; None without rewards."""
    rewards = arrays.get("expected", arrays.get("rewards"))
    return None if rewards is None else float(rewards[arrays[FIRST][:-1] + codes].sum())


def best_reward(arrays: Mapping[str, NDArray[Any]]) -> float | None:
    """Return the total reward of the best action of each round."""
    rewards = arrays.get("expected", arrays.get("rewards"))
    return None if rewards is None else float(np.maximum.reduceat(rewards, arrays[FIRST][:-1]).sum())
