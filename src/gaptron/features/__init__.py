"""Encode examples by name, with words, missing values, times and numbers of any scale, as rows of numbers."""

from gaptron.features.columns import Account
from gaptron.features.declaration import Features
from gaptron.features.encoder import Encoder as Encoder

__all__ = ["Account", "Features"]
