"""Vowpal Wabbit's text format, multiclass: `label [importance] ['tag] |namespace[:weight] feature[:value] ...`.

Each feature is hashed together with its namespace into one of n_features columns; features that meet there are
added. A word that touches the first bar is a tag, as in Vowpal Wabbit itself.
"""

import zlib
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeVar

import numpy as np

from gaptron.errors import StreamError
from gaptron.streams.ahead import worked
from gaptron.streams.block import Block
from gaptron.streams.labels import distinct
from gaptron.streams.rows import csr, tidy_rows
from gaptron.streams.source import Source, Text, texts
from gaptron.text_numbers import as_number, shown

T = TypeVar("T")

SPACE = 32  # and all that is white in ASCII is below it
WIDTH = 2**18
"""Columns, unless the user says otherwise."""

WIDEST = 2**31  # columns that the compiled reader can number


class _MalformedError(ValueError):
    """What is wrong with a line."""


def read(
    source: Source, rows: int | None, n_features: int, then: Callable[[Block], T], outline: bool = False
) -> Iterator[T]:
    """`then` of the rounds of the source, `rows` lines to a block; None: all in one. `outline`: of labels alone."""

    def work(text: Text) -> T | None:
        text.check_line_ends()
        if outline:
            from gaptron.kernels.text import vw_outline  # noqa: PLC0415

            text = text.outline(vw_outline)
        block = (_quick(text, n_features) if n_features <= WIDEST else None) or _careful(text, n_features)
        return then(block) if len(block.marks) else None

    yield from worked(work, texts(source, rows), in_threads=rows is not None and source.at_rest)


def _quick(text: Text, n_features: int) -> Block | None:
    """The rounds of a text by the compiled reader; None if it finds a line that it cannot read."""
    from gaptron.kernels import text as compiled  # noqa: PLC0415

    data, most_rows = text.ended, text.lines
    most_entries = int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) <= SPACE))  # one stands before each
    marks, ends = np.empty(most_rows, dtype=np.int64), np.zeros(most_rows + 1, dtype=np.int64)
    spans = np.empty((most_rows, 2), dtype=np.int64)
    indices, values = np.empty(most_entries, dtype=np.int32), np.empty(most_entries)
    key = np.int32 if n_features <= compiled.NARROW else np.int64
    (keys, ranked), spare = np.empty((2, compiled.LONG_ROW), dtype=key), np.empty(compiled.LONG_ROW)
    for room in (len(data) // 64 + 16, len(data)):  # few numbers are left to us, or else nearly all
        left = np.empty((room, 3), dtype=np.int64)
        rows, known, many, untidy, fault = compiled.vw(
            np.frombuffer(data, dtype=np.uint8),
            np.uint64(n_features),
            marks,
            np.full(1 << (2 * most_rows).bit_length(), -1, dtype=np.int32),
            spans,
            ends,
            indices,
            values,
            keys,
            ranked,
            spare,
            left,
        )
        if many <= room:
            break
    if fault >= 0:
        return None
    names = {data[start:stop].decode(): mark for mark, (start, stop) in enumerate(spans[:known].tolist())}
    for slot, start, stop in left[:many].tolist():
        try:
            if slot < 0:
                marks[-1 - slot] = names.setdefault(_label(data[start:stop]), len(names))
            else:
                values[slot] = float(values[slot]) * _number(data[start:stop])  # may be infinite, without a warning
        except _MalformedError:
            return None
    entries = ends[rows]
    X = csr(values[:entries], indices[:entries], ends[: rows + 1], n_features)
    return Block(tidy_rows(X) if untidy else X, list(names), marks[:rows], text.blame, text=True)


def _careful(text: Text, n_features: int) -> Block:
    """The rounds of a text, or the error that names its first bad line: slow, and right about every line."""
    labels: list[str] = []
    indices, values, ends = array("q"), array("d"), array("q", [0])
    for number, line in text.rounds():
        try:
            head, bar, _ = line.partition(b"|")
            if not bar:
                raise _MalformedError("no | before the features")
            labels.append(_label(head))
            for key, value in _features(line):
                indices.append(column(key, n_features))
                values.append(value)
        except _MalformedError as problem:
            raise StreamError(text.source, str(problem), number) from None
        ends.append(len(indices))
    rows_read = csr(np.array(values), np.array(indices, dtype=np.int64), np.array(ends), n_features)
    return Block(tidy_rows(rows_read), *distinct(labels), text.blame, text=True)


@lru_cache(maxsize=2**18)
def column(key: bytes, n_features: int) -> int:
    """Where a feature goes; the same on every machine and in every run."""
    return zlib.crc32(key) % n_features


def _label(head: bytes) -> str:
    """The label of a line, of which this is what stands before the first bar."""
    try:
        words = head.decode().split()
    except UnicodeDecodeError:
        raise _MalformedError("the label is not UTF-8 text") from None
    if words and (words[-1].startswith("'") or not head[-1:].isspace()):
        words.pop()
    if not words:
        raise _MalformedError("no label: put one, and a space, before the first |")
    if len(words) > 2:
        raise _MalformedError(f"{shown(' '.join(words))} is more than a label and an importance")
    if len(words) == 2 and _number(words[1].encode()) != 1.0:
        raise _MalformedError(f"importance {shown(words[1])[1:-1]}: weights other than 1 are not supported")
    return words[0]


def _features(line: bytes) -> Iterator[tuple[bytes, float]]:
    for part in line.split(b"|")[1:]:
        words = part.split()
        named = bool(words) and not part[:1].isspace()
        namespace, _, weight = words.pop(0).partition(b":") if named else (b"", b"", b"")
        factor = _number(weight) if weight else 1.0
        for word in words:
            name, colon, value = word.partition(b":")
            if not name:
                raise _MalformedError(f"{shown(word)} is a value without a feature")
            yield namespace + b"^" + name, factor * (_number(value) if colon else 1.0)


def _number(word: bytes) -> float:
    value = as_number(word.decode("latin-1"))
    if value is None:
        raise _MalformedError(f"{shown(word)} is not a number")
    return value
