"""NumPy's .npz: arrays X and y; or, for sparse rows, the parts scipy saves (data, indices, indptr, shape) and y."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from gaptron.errors import StreamError
from gaptron.streams.block import Block
from gaptron.streams.source import Source
from gaptron.streams.stream import block_of

_PARTS = ("data", "indices", "indptr", "shape")


def read(source: Source) -> Iterator[Block]:
    """All rounds of the source in one block."""
    with source.seekable() as place:
        try:
            # NumPy leaves a file open that it cannot read, so it is given one that is closed here.
            with place if isinstance(place, io.BytesIO) else open(place, "rb") as file, np.load(file) as arrays:
                kept = {name: arrays[name] for name in ("X", "y", "format", *_PARTS) if name in arrays}
        except Exception as error:  # a damaged file makes NumPy and zipfile raise nearly everything
            raise StreamError(source.name, f"cannot be read as .npz ({error or type(error).__name__})") from None
    X = _rows(source.name, kept)
    if X.ndim == 0 or X.shape[0] or kept["y"].size:
        yield block_of(X, kept["y"], source.name)


def _rows(source: str, kept: dict[str, Any]) -> Any:
    if "y" in kept and "X" in kept:
        return kept["X"]
    if "y" not in kept or any(part not in kept for part in _PARTS):
        raise StreamError(source, f"needs arrays X and y, or {', '.join(_PARTS)} and y; it has {', '.join(kept)}")
    if kept.get("format", np.array(b"csr")).tolist() not in (b"csr", "csr"):
        raise StreamError(source, "holds a sparse matrix that is not CSR: save X.tocsr()")
    try:
        shape = tuple(kept["shape"].tolist())
        X = sparse.csr_array((kept["data"], kept["indices"], kept["indptr"]), shape=shape)
        X.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise StreamError(source, f"its CSR parts do not fit together ({error})") from None
    return X
