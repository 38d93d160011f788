"""What a plan needs to know about a contender: an algorithm of gaptron, or an external model."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from gaptron.algorithms import load
from gaptron.experiments import external
from gaptron.types import Feedback


class Contender(NamedTuple):
    """An algorithm or a model, in the words of a plan."""

    feedback: tuple[str, ...]  # the kinds it supports
    losses: tuple[str, ...]  # the first one is the default
    grid: Mapping[str, tuple[Any, ...]]  # the values that a comparison tries by itself
    settings: tuple[str, ...]  # the names of its settings


def contender(name: str) -> Contender:
    """Describe the contender of this name.

    Raises:
        SettingError: there is none, or its library is not installed.
    """
    if external.library_of(name):
        return Contender((Feedback.FULL.word,), ("",), {}, tuple(external.parameters(name)))
    algorithm = load(name)
    card, settings = algorithm.CARD, list(inspect.signature(algorithm.recommend).parameters)[1:]
    feedback, losses = (tuple(kind.word for kind in kinds) for kinds in (card.feedback, card.losses))
    return Contender(feedback, losses, card.grid, ("radius", *settings))
