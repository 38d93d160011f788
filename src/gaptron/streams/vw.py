"""Vowpal Wabbit's text format, multiclass: `label [importance] ['tag] |namespace[:weight] feature[:value] ...`.

Each feature is hashed together with its namespace into one of n_features columns; features that meet there are
added. A word that touches the first bar is a tag, as in Vowpal Wabbit itself.
"""

import zlib
from array import array
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from gaptron.errors import StreamError
from gaptron.streams.block import Block
from gaptron.streams.labels import distinct
from gaptron.streams.rows import csr, tidy_rows
from gaptron.streams.source import Source, texts
from gaptron.text_numbers import as_number, shown

WIDTH = 2**18
"""Columns, unless the user says otherwise."""


class _MalformedError(ValueError):
    """What is wrong with a line."""


def read(source: Source, rows: int | None, n_features: int) -> Iterator[Block]:
    """The rounds of the source, `rows` lines to a block; None: all in one."""
    for text in texts(source, rows):
        text.check_line_ends()
        labels: list[str] = []
        indices, values, ends = array("q"), array("d"), array("q", [0])
        for number, line in text.rounds():
            try:
                labels.append(_label(line))
                for key, value in _features(line):
                    indices.append(column(key, n_features))
                    values.append(value)
            except _MalformedError as problem:
                raise StreamError(text.source, str(problem), number) from None
            ends.append(len(indices))
        if labels:
            names, marks = distinct(labels)
            rows_read = csr(np.array(values), np.array(indices), np.array(ends), n_features)
            yield Block(tidy_rows(rows_read), names, marks, text.blame, text=True)


@lru_cache(maxsize=2**18)
def column(key: bytes, n_features: int) -> int:
    """Where a feature goes; the same on every machine and in every run."""
    return zlib.crc32(key) % n_features


def _label(line: bytes) -> str:
    head, bar, _ = line.partition(b"|")
    if not bar:
        raise _MalformedError("no | before the features")
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
