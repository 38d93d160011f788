"""An algorithm's settings as commands read and show them."""

import math
from typing import TYPE_CHECKING, Any

from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Learner


def read(pairs: list[str]) -> dict[str, Any]:
    """What --set says, NAME=VALUE each."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingError(f"--set {pair!r} must read NAME=VALUE")
        try:
            settings[name.strip()] = float(value)
        except ValueError:
            settings[name.strip()] = value.strip()
    return settings


def account(learner: "Learner") -> dict[str, Any]:
    """The settings in use, in the words they are given in: RULES of the file are the words of `rule`, and so on."""
    from gaptron.algorithms import load  # noqa: PLC0415

    file, said = load(learner.algorithm), dict[str, Any]()
    for name, value in learner.settings._asdict().items():
        words = getattr(file, f"{name.upper()}S", None)
        if name == "loss":
            said[name] = learner.problem.loss.word
        elif isinstance(value, int) and isinstance(words, tuple):
            said[name] = words[value]
        else:
            said[name] = None if isinstance(value, float) and not math.isfinite(value) else value
    return said


def line(settings: dict[str, Any]) -> str:
    """The settings as one line, less what a summary says elsewhere."""
    shown = (
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in settings.items()
        if value is not None and name not in ("loss", "bandit")
    )
    return f"settings: {', '.join(shown)}"
