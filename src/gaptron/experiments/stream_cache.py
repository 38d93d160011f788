"""A cache of prepared streams: files that every process maps into its memory and none copies."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gaptron.streams import Stream
from gaptron.streams.rows import Rows, csr
from gaptron.types import Size

Arrays = Mapping[str, NDArray[Any]]
"""y, X or the parts of its CSR form: values, indices, ends; and, where the stream has them, among and worth."""


class CachedStream(NamedTuple):
    """What is known of a stream without looking at its rounds, and the folder where they are."""

    name: str
    data: str  # hash of its content
    prepared: tuple[str, ...]
    n_rounds: int
    n_classes: int
    n_features: int
    nonzeros: float  # of a row, on average
    norm: float
    place: str
    shuffled: bool = False  # the rounds are in the order of a seed already

    @property
    def size(self) -> Size:
        """What the cost of a round depends on."""
        return Size(self.n_classes, self.n_features, self.nonzeros, self.n_rounds)

    def arrays(self) -> Arrays:
        """The rounds, as maps of the files."""
        # Copy on write, though nothing is written: to the compiler, read-only arrays are another type.
        return {path.stem: np.load(path, mmap_mode="c") for path in sorted(Path(self.place).glob("*.npy"))}


def describe(stream: Stream, folder: Path) -> tuple[CachedStream, Arrays]:
    """What the cache in this folder would say of a stream, and the arrays it would hold."""
    arrays = _parts(stream)
    digest = hashlib.sha256(f"{stream.n_classes} {stream.n_features}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    data = digest.hexdigest()
    nonzeros = float(len(arrays["values"]) / stream.n_rounds if "values" in arrays else stream.n_features)
    return CachedStream(
        stream.name,
        data,
        stream.prepared,
        stream.n_rounds,
        stream.n_classes,
        stream.n_features,
        nonzeros,
        stream.norm,
        str(folder.resolve() / data),
    ), arrays


def cache_shuffled(stream: Stream, folder: Path, original: CachedStream) -> CachedStream:
    """Write a stream that was shuffled before it was encoded; it goes by the name and content of the original."""
    return cache_stream(stream, folder)._replace(data=original.data, prepared=original.prepared, shuffled=True)


def cache_stream(stream: Stream, folder: Path) -> CachedStream:
    """Write a stream to the cache, unless it is there already. OSError: the disk is full, or not ours to write to."""
    cached, arrays = describe(stream, folder)
    place = Path(cached.place)
    if not place.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        # Under another name until all is written: a folder with the right name is complete.
        work = tempfile.mkdtemp(dir=folder)
        try:
            for name, array in arrays.items():
                np.save(os.path.join(work, f"{name}.npy"), array)
        except OSError:
            shutil.rmtree(work, ignore_errors=True)
            raise
        try:
            os.replace(work, place)
        except OSError:  # another process was quicker
            shutil.rmtree(work)
    return cached


def rows(arrays: Arrays, n_features: int) -> Rows:
    """X, over the same memory as its parts."""
    if "X" in arrays:
        return arrays["X"]
    return csr(arrays["values"], arrays["indices"], arrays["ends"], n_features)


def _parts(stream: Stream) -> Arrays:
    X = stream.X
    rows = {"values": X.data, "indices": X.indices, "ends": X.indptr} if sparse.issparse(X) else {"X": X}
    beside = {"among": stream.among, "worth": stream.worth}
    return {**rows, "y": stream.y, **{name: array for name, array in beside.items() if array is not None}}
