"""Files of rounds that bring their own named actions, each with its own features."""

from gaptron.streams.actions.files import ACTION_FORMATS, open_actions, save_actions
from gaptron.streams.actions.rounds import NamedRounds

__all__ = ["ACTION_FORMATS", "NamedRounds", "open_actions", "save_actions"]
