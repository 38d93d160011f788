"""A cache of prepared streams on disk: every worker process maps the files into memory, and none copies them."""

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

from gaptron.experiments.action_stream import EncodedActions
from gaptron.streams import Stream
from gaptron.streams.rows import Rows, csr
from gaptron.types import Size

AnyStream = Stream | EncodedActions
Arrays = Mapping[str, NDArray[Any]]
"""y; X, or the arrays of its CSR form (values, indices, ends); `available` and `rewards` where the stream has them. Of
rounds with actions those of `EncodedActions`."""


class CachedStream(NamedTuple):
    """The metadata of a stream, and the folder that holds its rounds."""

    name: str
    data: str  # hash of its content
    prepared: tuple[str, ...]
    n_rounds: int
    n_classes: int
    n_features: int
    nonzeros: float  # of an example, on average
    norm: float
    folder: str
    shuffled: bool = False  # the rounds are already in the order of a seed

    @property
    def size(self) -> Size:
        """The quantities that the cost of a round depends on."""
        return Size(self.n_classes, self.n_features, self.nonzeros, self.n_rounds)

    def arrays(self) -> Arrays:
        """Map the files of the rounds into memory."""
        # Copy on write, although nothing is written: to the compiler, read-only arrays are a different type.
        return {path.stem: np.load(path, mmap_mode="c") for path in sorted(Path(self.folder).glob("*.npy"))}


def describe(stream: AnyStream, cache: Path) -> tuple[CachedStream, Arrays]:
    """Return the metadata and arrays that a cache in this folder would hold for a stream."""
    arrays = _arrays(stream)
    digest = hashlib.sha256(f"{stream.n_classes} {stream.n_features}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    data = digest.hexdigest()
    if "norms" in arrays:
        nonzeros = len(arrays["row_values"]) / len(arrays["norms"])
    else:
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
        str(cache.resolve() / data),
    ), arrays


def cache_shuffled(stream: AnyStream, cache: Path, original: CachedStream) -> CachedStream:
    """Cache a stream that was shuffled before it was encoded, under the name and content hash of the original."""
    return cache_stream(stream, cache)._replace(data=original.data, prepared=original.prepared, shuffled=True)


def cache_stream(stream: AnyStream, cache: Path) -> CachedStream:
    """Write a stream to the cache, unless it is there already.

    Raises:
        OSError: the disk is full, or the folder cannot be written to.
    """
    cached, arrays = describe(stream, cache)
    folder = Path(cached.folder)
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        # The folder gets its name when all files are written: one with the final name is complete.
        draft = tempfile.mkdtemp(dir=cache)
        try:
            for name, array in arrays.items():
                np.save(os.path.join(draft, f"{name}.npy"), array)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        try:
            os.replace(draft, folder)
        except OSError:  # another process was faster
            shutil.rmtree(draft)
    return cached


def as_matrix(arrays: Arrays, n_features: int) -> Rows:
    """Return X over the memory of its arrays."""
    if "X" in arrays:
        return arrays["X"]
    return csr(arrays["values"], arrays["indices"], arrays["ends"], n_features)


def _arrays(stream: AnyStream) -> Arrays:
    if isinstance(stream, EncodedActions):
        return stream.arrays()
    X = stream.X
    features = {"values": X.data, "indices": X.indices, "ends": X.indptr} if sparse.issparse(X) else {"X": X}
    optional = {"available": stream.available, "rewards": stream.rewards}
    return {**features, "y": stream.y, **{name: array for name, array in optional.items() if array is not None}}
