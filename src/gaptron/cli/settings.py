"""Parse and show the settings of an algorithm."""

from typing import TYPE_CHECKING, Any

from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Learner

FLAGS = {"true": True, "false": False}


def read(pairs: list[str]) -> dict[str, Any]:
    """Parse --set NAME=VALUE: numbers, true or false, or text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingError(f"--set {pair!r} must have the form NAME=VALUE")
        text = value.strip()
        try:
            settings[name.strip()] = float(text)
        except ValueError:
            settings[name.strip()] = FLAGS.get(text.lower(), text)
    return settings


def account(learner: "Learner") -> dict[str, Any]:
    """Return the settings in use, as users write them."""
    from gaptron.learner.describe import settings  # noqa: PLC0415

    return settings(learner)


def line(settings: dict[str, Any]) -> str:
    """Format the settings as one line, without those that a summary shows elsewhere."""
    shown = (
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in settings.items()
        if value is not None and name not in ("loss", "bandit")
    )
    return f"settings: {', '.join(shown)}"
