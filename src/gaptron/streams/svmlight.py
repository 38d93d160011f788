"""The svmlight (libsvm) format: `label index:value index:value ... # comment`, one round a line.

Labels are whole numbers, indices go up along a line, `qid:` is passed over. Features count from 0 if an
index 0 is among the rounds read first (the whole file, or the first chunk), else from 1.
"""

import io
from collections.abc import Iterator

import numpy as np

from gaptron.streams.block import Block, marked
from gaptron.streams.rows import CSR, csr, row_of
from gaptron.streams.source import Source, Text, texts
from gaptron.types import Vector


def read(source: Source, rows: int | None) -> Iterator[Block]:
    """The rounds of the source, `rows` lines to a block; None: all in one."""
    base: int | None = None
    for text in texts(source, rows, comment=b"#"):
        X, labels = _parsed(text)
        if not labels.size:
            continue
        zero = np.flatnonzero(X.indices == 0)
        if base is None:
            base = 0 if zero.size else 1
        if base == 1 and zero.size:
            raise text.blame(
                row_of(X, int(zero[0])),
                "feature index 0, but the chunks before count from 1: read the file whole, or with a larger chunk",
            )
        rows_read = csr(X.data, X.indices - base, X.indptr, max(X.shape[1] - base, 0))
        yield Block(rows_read, *marked(labels, text.blame), text.blame, base)


def _parsed(text: Text) -> tuple[CSR, Vector]:
    """The rounds of a text with the indices as they stand, and their labels."""
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415

    try:
        X, labels = load_svmlight_file(io.BytesIO(text.data), dtype=np.float64, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise text.blame(*next(_faults(text), (0, f"the lines from here on cannot be read ({error})"))) from None
    return csr(X.data, X.indices, X.indptr, X.shape[1] if X.nnz else 0), labels


def _faults(text: Text) -> Iterator[tuple[int, str]]:
    """The malformed rounds and what is wrong. Slow, so it comes after the quick parser has failed."""
    for row, (_, line) in enumerate(text.rounds()):
        label, *pairs = line.split()
        if not _is_number(label):
            yield row, f"label {_shown(label)} is not a number"
        last = -1
        for pair in pairs:
            index, _, value = pair.partition(b":")
            if index == b"qid" and pair == pairs[0]:
                continue
            if not (index.isdigit() and _is_number(value)):
                yield row, f"{_shown(pair)} is not index:value"
            elif int(index) <= last:
                yield row, f"feature index {int(index)} comes after {last}, and indices must go up"
            elif int(index) >= 2**31:
                yield row, f"feature index {int(index)} is past the largest, 2147483647"
            else:
                last = int(index)


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _shown(token: bytes) -> str:
    return repr(token.decode(errors="replace"))
