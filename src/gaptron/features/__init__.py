"""Rows as people have them (names, words, gaps, scales) become rows of numbers, learned as they come."""

from gaptron.features.columns import Account
from gaptron.features.declaration import Features
from gaptron.features.encoder import Encoder as Encoder

__all__ = ["Account", "Features"]
