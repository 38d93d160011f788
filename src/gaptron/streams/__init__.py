"""THE PORCH: bytes become clean rounds."""

from gaptron.streams.files import FORMATS, open_stream
from gaptron.streams.named import NAMED
from gaptron.streams.prepare import prepare
from gaptron.streams.stream import Chunks, Stream
from gaptron.streams.synthetic import synnonsep, synsep

__all__ = ["FORMATS", "NAMED", "Chunks", "Stream", "open_stream", "prepare", "synnonsep", "synsep"]
