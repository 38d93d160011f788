"""Encode examples by name, with words, missing values, times and numbers of any scale, as rows of numbers."""

from gaptron.features.action_encoder import ActionEncoder as ActionEncoder
from gaptron.features.columns import Account
from gaptron.features.declaration import Features
from gaptron.features.encoder import Encoder as Encoder
from gaptron.features.rounds import ActionRecord, ActionRecords

__all__ = ["Account", "ActionRecord", "ActionRecords", "Features"]
