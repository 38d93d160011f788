"""NumPy's .npz: arrays X and y; for sparse X, the arrays that SciPy saves (data, indices, indptr, shape) and y."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from gaptron.errors import GaptronError, StreamError
from gaptron.streams.raw_chunk import RawChunk
from gaptron.streams.source import Source
from gaptron.streams.stream import chunk_of_arrays

_CSR_ARRAYS = ("data", "indices", "indptr", "shape")


def read(source: Source) -> Iterator[RawChunk]:
    """Yield all rounds of the source in one chunk."""
    with source.seekable() as place:
        try:
            # NumPy does not close a file that it cannot read, so the file is opened and closed here.
            with place if isinstance(place, io.BytesIO) else open(place, "rb") as file, np.load(file) as saved:
                check_archive(source, saved.zip)
                arrays = {name: saved[name] for name in ("X", "y", "format", *_CSR_ARRAYS) if name in saved}
        except GaptronError:
            raise
        except Exception as error:  # NumPy and zipfile raise almost any exception on a damaged file
            raise StreamError(source.name, f"cannot be read as .npz ({error or type(error).__name__})") from None
    X = _examples(source.name, arrays)
    if X.ndim == 0 or X.shape[0] or arrays["y"].size:
        yield chunk_of_arrays(X, arrays["y"], source.name)


def check_archive(source: Source, archive: zipfile.ZipFile) -> None:
    """Refuse an archive that unpacks to far more than its size."""
    members = archive.infolist()
    source.check_expansion(sum(one.compress_size for one in members), sum(one.file_size for one in members))


def _examples(source: str, arrays: dict[str, Any]) -> Any:
    if "y" in arrays and "X" in arrays:
        return arrays["X"]
    if "y" not in arrays or any(name not in arrays for name in _CSR_ARRAYS):
        names = ", ".join(arrays)
        raise StreamError(source, f"needs arrays X and y, or {', '.join(_CSR_ARRAYS)} and y; it has {names}")
    if arrays.get("format", np.array(b"csr")).tolist() not in (b"csr", "csr"):
        raise StreamError(source, "contains a sparse matrix that is not CSR: save X.tocsr()")
    try:
        shape = tuple(arrays["shape"].tolist())
        X = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        X.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise StreamError(source, f"its CSR arrays do not fit together ({error})") from None
    return X
