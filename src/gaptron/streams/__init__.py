"""Streams: read files and standard input, or generate data, as rounds that a learner can play."""

from gaptron.streams.action_worlds import ActionStream, action_world
from gaptron.streams.files import FORMATS, open_stream
from gaptron.streams.named import NAMED
from gaptron.streams.prepare import prepare
from gaptron.streams.stream import Chunks, Stream
from gaptron.streams.synthetic import alternating, synnonsep, synsep, synswitch, twolabels, xor

__all__ = [
    "FORMATS",
    "NAMED",
    "ActionStream",
    "Chunks",
    "Stream",
    "action_world",
    "alternating",
    "open_stream",
    "prepare",
    "synnonsep",
    "synsep",
    "synswitch",
    "twolabels",
    "xor",
]
