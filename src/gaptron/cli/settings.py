"""An algorithm's settings as commands read and show them."""

from typing import TYPE_CHECKING, Any

from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Learner

FLAGS = {"true": True, "false": False}


def read(pairs: list[str]) -> dict[str, Any]:
    """The settings of --set, NAME=VALUE each: numbers, true or false, or words."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingError(f"--set {pair!r} must read NAME=VALUE")
        word = value.strip()
        try:
            settings[name.strip()] = float(word)
        except ValueError:
            settings[name.strip()] = FLAGS.get(word.lower(), word)
    return settings


def account(learner: "Learner") -> dict[str, Any]:
    """The settings in use, in the words they are given in."""
    from gaptron.experiments.account import settings  # noqa: PLC0415

    return settings(learner)


def line(settings: dict[str, Any]) -> str:
    """The settings as one line, without those that a summary shows elsewhere."""
    shown = (
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in settings.items()
        if value is not None and name not in ("loss", "bandit")
    )
    return f"settings: {', '.join(shown)}"
