"""Compress lines as they are written."""

import bz2
import lzma
import zlib
from collections.abc import Iterator
from typing import Any

_COMPRESSORS: dict[str, Any] = {
    ".gz": lambda: zlib.compressobj(wbits=31),  # 31: with the header and checksum of a .gz file
    ".bz2": bz2.BZ2Compressor,
    ".xz": lzma.LZMACompressor,
}


def compressed(lines: Iterator[bytes], extension: str) -> Iterator[bytes]:
    """Yield the compressed bytes of some lines.

    Args:
        lines: the lines.
        extension: of the compression, or "" for none.
    """
    if not extension:
        yield from lines
        return
    compressor = _COMPRESSORS[extension]()
    for line in lines:
        yield compressor.compress(line)
    yield compressor.flush()
