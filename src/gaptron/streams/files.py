"""Files become streams: the format is told by the extension, the reading done beside this file."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from gaptron.errors import InputError, StreamError
from gaptron.streams import csv_text, npz, openml, parquet, svmlight, vw
from gaptron.streams.block import Block, check, labels_of, rows_of
from gaptron.streams.directory import DIRECTORY, find
from gaptron.streams.labels import Label, codes, given
from gaptron.streams.named import NAMED, make
from gaptron.streams.source import Source
from gaptron.streams.stream import Chunk, Chunks, Stream, relabelled, settle, settled
from gaptron.streams.table import Column

Read = Callable[[int | None], Iterator[Block]]
"""Blocks of so many rounds, from the start; None: one block."""


class Format(NamedTuple):
    """What a format can do."""

    extensions: tuple[str, ...]
    table: bool = False  # has columns, of which label= names one
    binary: bool = False  # packs itself, and is read by jumping about in it
    whole: bool = False  # cannot be read in chunks
    width: int | None = None  # n_features, where the format alone settles it


FORMATS = {
    "csv": Format((".csv",), table=True),
    "npz": Format((".npz",), binary=True, whole=True),
    "parquet": Format((".parquet",), table=True, binary=True),
    "svmlight": Format((".svm", ".svmlight", ".libsvm")),
    "tsv": Format((".tsv",), table=True),
    "vw": Format((".vw", ".vwtxt"), width=vw.WIDTH),
}


def open_stream(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: Column | None = None,
    classes: Iterable[Label] | None = None,
    n_features: int | None = None,
    chunk: int | None = None,
) -> Stream | Chunks:
    """A stream from a file, from standard input or by name.

    Args:
        source: a path (.svm .csv .tsv .parquet .npz .vw; .gz .bz2 .xz are unpacked), "-" for standard input, or the
            name of a stream made here: "synsep", "synsep:rounds=1000,seed=3" (a file of that name is "./synsep");
            or "openml:NAME", "openml:NAME@VERSION"; or a name in the data directory GAPTRON_DATA.
        format: where the extension does not tell; on standard input the default is svmlight.
        label: the label column of a table, by name or number from 0; by default y, label, class, target, or the last.
        classes: the labels in code order; by default the sorted labels found.
        n_features: the width; by default that of the widest row, and 2¹⁸ for vw.
        chunk: read about so many rounds at a time, in bounded memory. What is not told of `classes` and
            `n_features` is then learned by one pass over the file before, which standard input does not allow.

    Raises:
        StreamError: names the file and, where there are lines, the line.
    """
    path = os.fspath(source)
    if path.partition(":")[0] in NAMED:
        if (format, label, classes, n_features, chunk) != (None,) * 5:
            raise InputError(f"{path} is made here: format, label, classes, n_features and chunk are for files")
        return make(path)
    if path.startswith(openml.PREFIX):
        if (format, label, classes, n_features, chunk) != (None,) * 5:
            raise InputError(f"{path} is fetched: format, label, classes, n_features and chunk are for files")
        return openml.fetch(path)
    entry = find(path)
    if entry is not None:
        found = open_stream(entry.path, n_features=n_features or entry.n_features, classes=classes, chunk=chunk)
        return entry.fitted(found)
    if min(x for x in (chunk, n_features, 1) if x is not None) < 1:
        raise InputError("chunk and n_features must be at least 1")
    origin = Source(path)
    name = _format(origin, format)
    known = None if classes is None else given(classes)
    width = n_features or FORMATS[name].width
    read = _reader(origin, name, label, width)
    if chunk is None:
        for block in read(None):
            return Stream(**settled(block, known, width, origin.name))
        raise _empty(origin)
    if FORMATS[name].whole or (FORMATS[name].binary and origin.piped):
        raise StreamError(origin.name, f"{name} cannot be read in chunks from here: leave out chunk")
    return _chunks(origin, partial(read, chunk), known, width)


def _format(source: Source, asked: str | None) -> str:
    if not source.piped and not os.path.exists(source.path):
        bare = os.sep not in source.path and "." not in source.path
        hint = f"; a data set of the data directory needs {DIRECTORY} set to its folder" if bare else ""
        raise StreamError(source.name, f"there is no such file, and the streams made here are {', '.join(NAMED)}{hint}")
    extension, packed = source.suffixes
    told = next((name for name, form in FORMATS.items() if extension in form.extensions), None)
    name = asked or ("svmlight" if source.piped else told)
    if name not in FORMATS:
        raise StreamError(source.name, f"unknown format: say format= one of {', '.join(FORMATS)}")
    if packed and FORMATS[name].binary:
        raise StreamError(source.name, f"{name} packs itself: unpack the {packed} first")
    return name


def _reader(source: Source, name: str, label: Column | None, width: int | None) -> Read:
    if label is not None and not FORMATS[name].table:
        raise StreamError(source.name, f"label= names a column, and {name} has none: leave it out")
    readers: dict[str, Read] = {
        "csv": lambda rows: csv_text.read(source, rows, label),
        "npz": lambda rows: npz.read(source),
        "parquet": lambda rows: parquet.read(source, rows, label),
        "svmlight": lambda rows: svmlight.read(source, rows),
        "tsv": lambda rows: csv_text.read(source, rows, label, "\t"),
        "vw": lambda rows: vw.read(source, rows, width or vw.WIDTH),
    }
    return readers[name]


def _chunks(
    source: Source, read: Callable[[], Iterator[Block]], classes: tuple[Label, ...] | None, width: int | None
) -> Chunks:
    n_rounds: int | None = None
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    if classes is None or width is None:
        if source.piped:
            raise StreamError(source.name, "reading it in chunks needs classes=... and n_features=...")
        labels, widest, n_rounds, names = _scan(source, read())
        classes, width = settle(labels, widest, classes, width, source.name)
        notes = ("classes and width learned by one pass over the file",)
    table, columns = codes(classes), width

    def rounds() -> Iterator[Chunk]:
        empty = True
        for block in read():
            check(block)
            yield rows_of(block, columns), labels_of(block, table)
            empty = False
        if empty:
            raise _empty(source)

    return Chunks(classes, width, source.name, rounds, n_rounds, relabelled(classes), notes, names)


def _scan(source: Source, blocks: Iterator[Block]) -> tuple[set[Label], int, int, tuple[str, ...]]:
    """The labels, the widest row, the number of rounds and the columns, and nothing else in memory."""
    labels: set[Label] = set()
    widest = n_rounds = 0
    columns: tuple[str, ...] = ()
    for block in blocks:
        check(block)
        labels.update(block.names)
        widest = max(widest, block.X.shape[1])
        n_rounds += block.X.shape[0]
        columns = block.columns
    if not n_rounds:
        raise _empty(source)
    return labels, widest, n_rounds, columns


def _empty(source: Source) -> StreamError:
    return StreamError(source.name, "holds no rounds")
