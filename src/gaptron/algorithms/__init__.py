"""The algorithms, one module per paper. `NAMES` maps the name that users type to the module."""

import importlib
from typing import cast

from gaptron.algorithms.protocol import AnyAlgorithm
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


def load(name: str) -> AnyAlgorithm:
    """Import the module of an algorithm by its name."""
    if name not in NAMES:
        raise SettingError(f"unknown algorithm {name!r}; available: {', '.join(NAMES)}")
    return cast(AnyAlgorithm, importlib.import_module(f"gaptron.algorithms.{NAMES[name]}"))


def able(field: str) -> str:
    """The names of the algorithms whose card has this field set, for error messages."""
    return ", ".join(name for name in NAMES if getattr(load(name).CARD, field))
