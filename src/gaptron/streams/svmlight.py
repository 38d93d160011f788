"""The svmlight (libsvm) format: `label index:value index:value ... # comment`, one round a line.

Labels are whole numbers, indices go up along a line, `qid:` is passed over. Features count from 0 or from 1, which the
file does not say: the user does, or else they count from 0 if an index 0 is among the rounds read first.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from gaptron.errors import InputError
from gaptron.streams.ahead import worked
from gaptron.streams.block import Block
from gaptron.streams.labels import distinct
from gaptron.streams.rows import CSR, csr, row_of
from gaptron.streams.source import Source, Text, how_many, texts
from gaptron.text_numbers import as_number, shown
from gaptron.types import Integers, Vector

T = TypeVar("T")

LARGEST_INDEX = 2**31 - 1
COLON = 58  # one to every value
_EXACT = 2.0**53  # past this, floats skip whole numbers


def known_base(index_base: str | int) -> int | None:
    """What the user says features count from: 0 or 1; None for "auto"."""
    bases = {"0": 0, "1": 1, "auto": None}
    if str(index_base) not in bases:
        raise InputError(f"index_base={index_base!r} must be 0, 1 or 'auto'")
    return bases[str(index_base)]


def read(
    source: Source, rows: int | None, base: int | None, then: Callable[[Block], T], outline: bool = False
) -> Iterator[T]:
    """`then` of the rounds of the source, `rows` lines to a block; None: all in one.

    `base` None: seen from the first block. `outline`: of labels, the smallest and the largest index alone.
    """
    pieces = texts(source, rows, comment=b"#")
    if base is None:
        for block in filter(None, map(_block, pieces)):
            base = block.index_base
            yield then(block)
            break

    def work(text: Text) -> T | None:
        block = _block(_outline(text) if outline else text, base)
        return None if block is None else then(block)

    yield from worked(work, pieces, in_threads=rows is not None and source.at_rest)


def _outline(text: Text) -> Text:
    from gaptron.kernels.text import svmlight_outline  # noqa: PLC0415

    text.check_line_ends()
    return text if b"#" in text.data else text.outline(svmlight_outline)


def _block(text: Text, base: int | None = None) -> Block | None:
    """The rounds of a text; None if there are none."""
    text.check_line_ends()
    X, labels, lowest = _parsed(text)
    if not labels.size:
        return None
    if base is None:
        base = 0 if lowest == 0 else 1
    if base == 1 and lowest == 0:
        raise text.blame(
            row_of(X, int(np.argmin(X.indices))),
            "feature index 0, but features count from 1 so far: say index_base=0 if they count from 0",
        )
    if base:
        X.indices -= base
    rows_read = csr(X.data, X.indices, X.indptr, max(X.shape[1] - base, 0))
    return Block(rows_read, *_whole_labels(labels, text), text.blame, text=True, index_base=base)


def _whole_labels(labels: Vector, text: Text) -> tuple[list[str], Integers]:
    broken = np.flatnonzero(~((np.abs(labels) < _EXACT) & (labels == np.round(labels))))
    if broken.size:
        raise text.blame(int(broken[0]), f"label {labels[broken[0]]:g} is not a whole number")
    names, marks = distinct(labels.astype(np.int64))
    return [str(name) for name in names], marks


def _parsed(text: Text) -> tuple[CSR, Vector, int]:
    """The rounds of a text with the indices as they stand, their labels, and the smallest index."""
    from gaptron.kernels import text as compiled  # noqa: PLC0415

    data = text.ended
    most_rows, most_entries = text.lines, how_many(data, COLON)
    labels, values = np.empty(most_rows), np.empty(most_entries)
    ends, indices = np.zeros(most_rows + 1, dtype=np.int64), np.empty(most_entries, dtype=np.int32)

    for room in (len(data) // 64 + 16, len(data)):  # few numbers are left to us, or else nearly all
        left = np.empty((room, 3), dtype=np.int64)
        rows, many, lowest, highest, fault = compiled.svmlight(
            np.frombuffer(data, dtype=np.uint8), labels, ends, indices, values, left, LARGEST_INDEX
        )
        if many <= room:
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
        raise text.blame(*next(_faults(text), (fault, "the line cannot be read")))
    entries = ends[rows]
    return csr(values[:entries], indices[:entries], ends[: rows + 1], highest + 1), labels[:rows], lowest


def _faults(text: Text) -> Iterator[tuple[int, str]]:
    """The malformed rounds and what is wrong, in words: slow, and only for a text at fault."""
    for row, (_, line) in enumerate(text.rounds()):
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
                yield row, f"feature index {shown(index)[1:-1]} is past the largest, {LARGEST_INDEX}"
            elif number <= last:
                yield row, f"feature index {number} comes after {last}, and indices must go up"
            else:
                last = number


def _is_number(cell: bytes) -> bool:
    return as_number(cell.decode("latin-1")) is not None
