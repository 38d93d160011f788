"""The library: one paper, one file. `NAMES` says which name users type for which file."""

import importlib
from types import ModuleType

from gaptron.errors import SettingError

NAMES = {
    "banditron": "banditron",
    "frugal-gaptron": "frugal",
    "gappletron": "gappletron",
    "gaptron": "gaptron",
    "perceptron": "perceptron",
}


def load(name: str) -> ModuleType:
    """The file behind a name."""
    if name not in NAMES:
        raise SettingError(f"unknown algorithm {name!r}; there are: {', '.join(NAMES)}")
    return importlib.import_module(f"gaptron.algorithms.{NAMES[name]}")
