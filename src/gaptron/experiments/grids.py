"""What is tried of a baseline besides its published setting, so that nobody can say it was not tuned.

Values are for rows of unit norm, and cover what was best on some twenty real streams. Algorithms whose settings
come from a theorem and are meant not to be turned (the Gaptron family, `perceptron`, `separable`) have no grid.
"""

from collections.abc import Mapping
from typing import Any

Grid = Mapping[str, tuple[Any, ...]]
"""Values by the name of a setting; several settings are crossed."""

_EXPLORATION = tuple(2.0**-i for i in (10, 8, 6, 5, 4, 3, 2, 1))

GRIDS: Mapping[str, Grid] = {
    "aggregating": {"nu": (0.3, 1.0, 3.0, 10.0)},
    "aioli": {"lam": (0.01, 0.1, 1.0, 10.0)},
    "arow": {"r0": tuple(2.0**i for i in (-5, -3, -1, 1, 3, 5))},  # Crammer et al. tune r as well
    "banditron": {"gamma": _EXPLORATION},  # Kakade et al., Figure 2
    "confidit": {"eta": tuple(10.0**i for i in range(-3, 5))},
    "exp4": {"eta": (0.001, 0.01, 0.1, 1.0)},
    "hinge-lmc": {"eta": (0.01, 0.1, 1.0)},
    "laplace": {"nu": (0.3, 1.0, 3.0, 10.0)},
    "newtron": {"gamma": (0.001, 0.01, 0.1), "ball": (1.0, 10.0, 100.0)},
    "obama": {"mu": (0.01, 0.03, 0.1, 0.3)},
    "ons": {"beta": (0.01, 0.03, 0.1, 0.3, 1.0)},
    "second-order-perceptron": {"a": (0.01, 0.1, 1.0, 10.0, 100.0)},
    "soba": {"gamma": tuple(2.0**-i for i in (6, 5, 4, 3, 2)), "a": (0.1, 1.0, 10.0)},
    "softmax": {"eta": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)},
    "squarecb": {"c": tuple(4.0**i for i in range(7))},
}
