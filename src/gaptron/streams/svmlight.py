"""The svmlight (libsvm) format: `label index:value index:value ... # comment`, one round per line.

Labels are whole numbers, indices increase along a line, and `qid:` is ignored. The first feature has index 0 or 1,
which the file does not state: the user does, otherwise it is 0 if the index 0 occurs in the rounds read first.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from gaptron.data.text_numbers import as_number, shown
from gaptron.errors import InputError
from gaptron.streams.labels import distinct
from gaptron.streams.prefetch import map_chunks
from gaptron.streams.raw_chunk import RawChunk
from gaptron.streams.rows import CSR, csr, row_of
from gaptron.streams.source import Source, Text, count_byte, read_text
from gaptron.types import Integers, Vector

T = TypeVar("T")

LARGEST_INDEX = 2**31 - 1
COLON = 58  # one for every value
_EXACT = 2.0**53  # above this, floats skip whole numbers


def parse_index_base(index_base: str | int) -> int | None:
    """Return the index of the first feature: 0 or 1; None for "auto"."""
    bases = {"0": 0, "1": 1, "auto": None}
    if str(index_base) not in bases:
        raise InputError(f"index_base={index_base!r} must be 0, 1 or 'auto'")
    return bases[str(index_base)]


def read(
    source: Source, rows: int | None, base: int | None, then: Callable[[RawChunk], T], outline: bool = False
) -> Iterator[T]:
    """Read the source in chunks of `rows` lines (None: in one chunk) and yield `then(chunk)` for each.

    `base` None: detected from the first chunk. `outline`: only labels and the smallest and largest index are needed.
    """
    texts = read_text(source, rows, comment=b"#")
    if base is None:
        for chunk in filter(None, map(_chunk, texts)):
            base = chunk.index_base
            yield then(chunk)
            break

    def work(text: Text) -> T | None:
        chunk = _chunk(_outline(text) if outline else text, base)
        return None if chunk is None else then(chunk)

    yield from map_chunks(work, texts, in_threads=rows is not None and source.is_regular_file)


def _outline(text: Text) -> Text:
    from gaptron.kernels.text import svmlight_outline  # noqa: PLC0415

    text.check_line_ends()
    return text if b"#" in text.data else text.outline(svmlight_outline)


def _chunk(text: Text, base: int | None = None) -> RawChunk | None:
    """Parse the rounds of a text; None if there are none."""
    text.check_line_ends()
    X, labels, lowest = _parsed(text)
    if not labels.size:
        return None
    if base is None:
        base = 0 if lowest == 0 else 1
    if base == 1 and lowest == 0:
        raise text.error_at(
            row_of(X, int(np.argmin(X.indices))),
            "feature index 0, but the indices so far start at 1: set index_base=0 if they start at 0",
        )
    if base:
        X.indices -= base
    rows_read = csr(X.data, X.indices, X.indptr, max(X.shape[1] - base, 0))
    return RawChunk(rows_read, *_whole_labels(labels, text), text.error_at, text=True, index_base=base)


def _whole_labels(labels: Vector, text: Text) -> tuple[list[str], Integers]:
    broken = np.flatnonzero(~((np.abs(labels) < _EXACT) & (labels == np.round(labels))))
    if broken.size:
        raise text.error_at(int(broken[0]), f"label {labels[broken[0]]:g} is not a whole number")
    values, ids = distinct(labels.astype(np.int64))
    return [str(value) for value in values], ids


def _parsed(text: Text) -> tuple[CSR, Vector, int]:
    """Parse a text into examples with the indices as written, labels, and the smallest index."""
    from gaptron.kernels import text as compiled  # noqa: PLC0415

    data = text.ended
    max_rows, max_values = text.max_lines, count_byte(data, COLON)
    labels, values = np.empty(max_rows), np.empty(max_values)
    ends, indices = np.zeros(max_rows + 1, dtype=np.int64), np.empty(max_values, dtype=np.int32)

    for size in (len(data) // 64 + 16, len(data)):  # usually few numbers are left to Python, otherwise nearly all
        left = np.empty((size, 3), dtype=np.int64)
        rows, many, lowest, highest, fault = compiled.svmlight(
            np.frombuffer(data, dtype=np.uint8), labels, ends, indices, values, left, LARGEST_INDEX
        )
        if many <= size:
            break
    for slot, start, stop in left[:many].tolist():
        number = as_number(data[start:stop].decode("latin-1"))
        if number is None:
            fault = 0
        elif slot < 0:
            labels[-1 - slot] = number
        else:
            values[slot] = number
    if fault >= 0:
        raise text.error_at(*next(_faults(text), (fault, "the line cannot be read")))
    n_values = ends[rows]
    return csr(values[:n_values], indices[:n_values], ends[: rows + 1], highest + 1), labels[:rows], lowest


def _faults(text: Text) -> Iterator[tuple[int, str]]:
    """Yield the malformed rounds and what is wrong with them. Slow, and only called for a text with an error."""
    for row, (_, line) in enumerate(text.records()):
        label, *pairs = line.split()
        if not _is_number(label):
            yield row, f"label {shown(label)} is not a number"
        last = -1
        for at, pair in enumerate(pairs):
            index, _, value = pair.partition(b":")
            if pair.startswith(b"qid:") and at == 0:
                continue
            if not (index.isdigit() and _is_number(value)):
                yield row, f"{shown(pair)} is not index:value"
                continue
            number = int(index) if len(index) < 20 else LARGEST_INDEX + 1
            if number > LARGEST_INDEX:
                yield row, f"feature index {shown(index)[1:-1]} is larger than the largest allowed, {LARGEST_INDEX}"
            elif number <= last:
                yield row, f"feature index {number} comes after {last}, but indices must increase"
            else:
                last = number


def _is_number(cell: bytes) -> bool:
    return as_number(cell.decode("latin-1")) is not None
