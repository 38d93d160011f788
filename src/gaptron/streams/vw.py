"""Vowpal Wabbit's text format, multiclass: `label [importance] ['tag] |namespace[:weight] feature[:value] ...`.

Each feature is hashed with its namespace into one of n_features columns; the values of features in the same column are
added. A token that touches the first bar is a tag, as in Vowpal Wabbit.
"""

import zlib
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeVar

import numpy as np

from gaptron.data.text_numbers import as_number, shown
from gaptron.errors import StreamError
from gaptron.streams.labels import distinct
from gaptron.streams.prefetch import map_chunks
from gaptron.streams.raw_chunk import RawChunk
from gaptron.streams.rows import csr, tidy_rows
from gaptron.streams.source import Source, Text, read_text

T = TypeVar("T")

SPACE = 32  # all other ASCII white space is below it
WIDTH = 2**18
"""The default number of columns."""

MAX_WIDTH = 2**31  # of the compiled parser


class MalformedLineError(ValueError):
    """A problem in a line."""


def read(
    source: Source, rows: int | None, n_features: int, then: Callable[[RawChunk], T], outline: bool = False
) -> Iterator[T]:
    """Read the source in chunks of `rows` lines (None: in one chunk) and yield `then(chunk)` for each.

    `outline`: only the labels are needed.
    """

    def work(text: Text) -> T | None:
        text.check_line_ends()
        if outline:
            from gaptron.kernels.text import vw_outline  # noqa: PLC0415

            text = text.outline(vw_outline)
        chunk = (_parse_compiled(text, n_features) if n_features <= MAX_WIDTH else None) or _parse(text, n_features)
        return then(chunk) if len(chunk.label_ids) else None

    yield from map_chunks(work, read_text(source, rows), in_threads=rows is not None and source.is_regular_file)


def _parse_compiled(text: Text, n_features: int) -> RawChunk | None:
    """Parse a text with the compiled parser; None if it finds a line that it cannot read."""
    from gaptron.kernels import text as compiled  # noqa: PLC0415

    data, max_rows = text.ended, text.max_lines
    max_values = int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) <= SPACE))  # one is before each
    label_ids, ends = np.empty(max_rows, dtype=np.int64), np.zeros(max_rows + 1, dtype=np.int64)
    spans = np.empty((max_rows, 2), dtype=np.int64)
    indices, values = np.empty(max_values, dtype=np.int32), np.empty(max_values)
    key = np.int32 if n_features <= compiled.NARROW else np.int64
    (keys, ranked), spare = np.empty((2, compiled.LONG_ROW), dtype=key), np.empty(compiled.LONG_ROW)
    for size in (len(data) // 64 + 16, len(data)):  # usually few numbers are left to Python, otherwise nearly all
        left = np.empty((size, 3), dtype=np.int64)
        rows, known, many, untidy, fault = compiled.vw(
            np.frombuffer(data, dtype=np.uint8),
            np.uint64(n_features),
            label_ids,
            np.full(1 << (2 * max_rows).bit_length(), -1, dtype=np.int32),
            spans,
            ends,
            indices,
            values,
            keys,
            ranked,
            spare,
            left,
        )
        if many <= size:
            break
    if fault >= 0:
        return None
    labels = {data[start:stop].decode(): at for at, (start, stop) in enumerate(spans[:known].tolist())}
    if any(map(_is_decision, labels)):
        return None
    for slot, start, stop in left[:many].tolist():
        try:
            if slot < 0:
                label_ids[-1 - slot] = labels.setdefault(_label(data[start:stop]), len(labels))
            else:
                values[slot] = float(values[slot]) * _number(data[start:stop])  # may be infinite, without a warning
        except MalformedLineError:
            return None
    n_values = ends[rows]
    X = csr(values[:n_values], indices[:n_values], ends[: rows + 1], n_features)
    return RawChunk(tidy_rows(X) if untidy else X, list(labels), label_ids[:rows], text.error_at, text=True)


def _parse(text: Text, n_features: int) -> RawChunk:
    """Parse a text in Python, or raise the error that names its first bad line. Slow, and correct for every line."""
    labels: list[str] = []
    indices, values, ends = array("q"), array("d"), array("q", [0])
    for number, line in text.records():
        try:
            head, bar, _ = line.partition(b"|")
            if not bar:
                raise MalformedLineError("no | before the features")
            labels.append(_label(head))
            for namespace, name, value in features(line):
                indices.append(column(namespace + b"^" + name, n_features))
                values.append(1.0 if value is None else value)
        except MalformedLineError as problem:
            raise StreamError(text.source, str(problem), number) from None
        ends.append(len(indices))
    rows_read = csr(np.array(values), np.array(indices, dtype=np.int64), np.array(ends), n_features)
    return RawChunk(tidy_rows(rows_read), *distinct(labels), text.error_at, text=True)


@lru_cache(maxsize=2**18)
def column(key: bytes, n_features: int) -> int:
    """Return the column of a feature; the same on every machine and in every run."""
    return zlib.crc32(key) % n_features


def _label(head: bytes) -> str:
    """Parse the label of a line from its text before the first bar."""
    try:
        tokens = head.decode().split()
    except UnicodeDecodeError:
        raise MalformedLineError("the label is not UTF-8 text") from None
    if tokens and (tokens[-1].startswith("'") or not head[-1:].isspace()):
        tokens.pop()
    if not tokens:
        raise MalformedLineError("no label: put one, and a space, before the first |")
    if len(tokens) > 2:
        raise MalformedLineError(f"{shown(' '.join(tokens))} is more than a label and an importance")
    if len(tokens) == 2 and _number(tokens[1].encode()) != 1.0:
        raise MalformedLineError(f"importance {shown(tokens[1])[1:-1]}: weights other than 1 are not supported")
    if _is_decision(tokens[0]):
        raise MalformedLineError(
            f"{shown(tokens[0])} is action:cost:probability, a logged decision and not a label: evaluate learners on "
            "this log with gaptron evaluate"
        )
    return tokens[0]


def _is_decision(label: str) -> bool:
    """Is this the action:cost:probability of a logged decision?"""
    return label.count(":") == 2 and None not in map(as_number, label.split(":"))


def features(line: bytes) -> Iterator[tuple[bytes, bytes, float | None]]:
    """Yield the namespace, name and value of each feature of a line; None: it has no value, which counts as 1."""
    for part in line.split(b"|")[1:]:
        tokens = part.split()
        named = bool(tokens) and not part[:1].isspace()
        namespace, _, weight = tokens.pop(0).partition(b":") if named else (b"", b"", b"")
        factor = _number(weight) if weight else 1.0
        for token in tokens:
            name, colon, value = token.partition(b":")
            if not name:
                raise MalformedLineError(f"{shown(token)} is a value without a feature")
            plain = not colon and factor == 1.0
            yield namespace, name, None if plain else factor * (_number(value) if colon else 1.0)


def _number(token: bytes) -> float:
    value = as_number(token.decode("latin-1"))
    if value is None:
        raise MalformedLineError(f"{shown(token)} is not a number")
    return value
