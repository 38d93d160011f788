"""The same rounds in every format the porch reads."""

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def svmlight(X: Any, labels: Any, base: int = 1) -> bytes:
    lines = []
    for x, label in zip(np.asarray(X), labels, strict=True):
        lines.append(" ".join([str(label), *(f"{i + base}:{float(x[i])!r}" for i in np.flatnonzero(x))]))
    return ("\n".join(lines) + "\n").encode()


def table(X: Any, labels: Any, header: bool = True, delimiter: str = ",") -> bytes:
    X = np.asarray(X)
    rows = [[*(repr(float(v)) for v in x), str(label)] for x, label in zip(X, labels, strict=True)]
    if header:
        rows.insert(0, [*(f"f{i}" for i in range(X.shape[1])), "label"])
    return ("\n".join(delimiter.join(row) for row in rows) + "\n").encode()


def parquet_dense(X: Any, labels: Any) -> bytes:
    columns = {"y": pa.array(list(labels)), **{f"f{i}": column for i, column in enumerate(np.asarray(X).T)}}
    return _parquet(columns)


def parquet_sparse(X: Any, labels: Any, values: bool = True) -> bytes:
    X = sparse.csr_array(X)
    spans = list(zip(X.indptr[:-1], X.indptr[1:], strict=True))
    columns = {"y": pa.array(list(labels)), "idx": [X.indices[a:b].tolist() for a, b in spans]}
    if values:
        columns["val"] = [X.data[a:b].tolist() for a, b in spans]
    return _parquet(columns)


def _parquet(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npz_sparse(X: Any, labels: Any) -> bytes:
    X = sparse.csr_array(X)
    return npz(data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, format=b"csr", y=np.array(labels))


def vw(X: Any, labels: Any) -> bytes:
    lines = []
    for x, label in zip(np.asarray(X), labels, strict=True):
        lines.append(" ".join([str(label), "|ns", *(f"f{i}:{float(x[i])!r}" for i in np.flatnonzero(x))]))
    return ("\n".join(lines) + "\n").encode()


def put(folder: Path, name: str, data: bytes | str) -> Path:
    """A file in the folder, packed as its name says."""
    path = folder / name
    raw = data.encode() if isinstance(data, str) else data
    path.write_bytes(PACK[path.suffix if path.suffix in PACK else ""](raw))
    return path


def dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)
