"""The library: one paper, one file. `NAMES` says which name users type for which file."""

import importlib
from typing import cast

from gaptron.algorithm import Algorithm
from gaptron.errors import SettingError

NAMES = {
    "advised-gaptron": "advised",
    "aggregating": "aggregating",
    "aioli": "aioli",
    "arow": "arow",
    "banditron": "banditron",
    "confidit": "confidit",
    "epsilon-greedy": "epsilon_greedy",
    "exp4": "exp4",
    "frugal-gaptron": "frugal",
    "gappletron": "gappletron",
    "gaptron": "gaptron",
    "hinge-lmc": "hinge_lmc",
    "laplace": "laplace",
    "newtron": "newtron",
    "obama": "obama",
    "ons": "ons",
    "perceptron": "perceptron",
    "randomized-decoding": "randomized_decoding",
    "second-order-perceptron": "second_order_perceptron",
    "separable": "separable",
    "soba": "soba",
    "softmax": "softmax",
    "squarecb": "squarecb",
}


def load(name: str) -> Algorithm:
    """The file behind a name."""
    if name not in NAMES:
        raise SettingError(f"unknown algorithm {name!r}; there are: {', '.join(NAMES)}")
    return cast(Algorithm, importlib.import_module(f"gaptron.algorithms.{NAMES[name]}"))


def able(trait: str) -> str:
    """The names of the algorithms whose card has this trait, for an error message."""
    return ", ".join(name for name in NAMES if getattr(load(name).CARD, trait))
