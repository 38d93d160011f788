"""Synthetic worlds of `action_worlds` by name, as in news or news:rounds=1000,seed=3."""

import numpy as np

from gaptron.data.text_numbers import as_whole
from gaptron.streams.action_worlds import WORLDS, world_rounds
from gaptron.streams.actions.rounds import REWARDS, NamedRounds
from gaptron.streams.named import read_options

_OPTIONS = {"rounds": ("n_rounds", as_whole), "seed": ("seed", as_whole)}


def is_world(source: str) -> bool:
    """Is this the name of a world, with or without options?"""
    return source.partition(":")[0] in WORLDS


def open_world(source: str) -> NamedRounds:
    """Generate the rounds of a world.

    Args:
        source: its name with options, `name:option=value,option=value`.

    Returns:
        The rounds, with the reward and the expected reward of every action.
    """
    name, options = read_options(source, lambda name: _OPTIONS)
    rounds = list(world_rounds(name, **options))
    nothing = np.zeros(0)
    return NamedRounds(
        source,
        tuple(dict(each.context) for each in rounds),
        tuple({action: dict(features) for action, features in each.actions} for each in rounds),
        REWARDS,
        nothing.astype(np.int64),
        np.concatenate([each.rewards for each in rounds]).astype(np.float64),
        nothing,
        None,
        expected=np.concatenate([each.expected for each in rounds]).astype(np.float64),
    )
