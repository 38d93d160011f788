"""Files become streams: the extension says the format, and each format has a reader beside this file."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeVar

from scipy import sparse

from gaptron.errors import InputError, StreamError
from gaptron.streams import csv_text, npz, openml, parquet, svmlight, vw
from gaptron.streams.block import Block, check_labels, measure
from gaptron.streams.directory import DIRECTORY, find
from gaptron.streams.labels import Codes, Label, given
from gaptron.streams.named import NAMED, make
from gaptron.streams.source import Source
from gaptron.streams.stream import Chunks, Stream, relabelled, settle, settled
from gaptron.streams.table import Column, Columns

T = TypeVar("T")


class Read(Protocol):
    """A reader of one source."""

    def __call__(
        self, rows: int | None, base: int | None, then: Callable[[Block], T], outline: bool = False
    ) -> Iterator[T]:
        """`then` of each block of so many rounds, from the start (None: of one), features counted from `base`.

        `base` None: as found. `then` may be called in threads, and ahead of whoever takes what it makes. `outline`: of
        blocks with the right labels and widths but without most values, where the format has it.
        """
        ...


class Format(NamedTuple):
    """What a format can do."""

    extensions: tuple[str, ...]
    table: bool = False  # has columns, of which label= names one
    binary: bool = False  # packs itself, and is read by jumping about in it
    whole: bool = False  # cannot be read in chunks
    width: int | None = None  # n_features, where the format alone settles it
    outline: bool = False  # shows labels and widths without a look at every value


PACKED = 6  # times as long as its compressed form text is, or so

FORMATS = {
    "csv": Format((".csv",), table=True),
    "npz": Format((".npz",), binary=True, whole=True),
    "parquet": Format((".parquet",), table=True, binary=True),
    "svmlight": Format((".svm", ".svmlight", ".libsvm"), outline=True),
    "tsv": Format((".tsv",), table=True),
    "vw": Format((".vw", ".vwtxt"), width=vw.WIDTH, outline=True),
}


def open_stream(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: Column | None = None,
    reward: Column | None = None,
    available: Column | None = None,
    classes: Iterable[Label] | None = None,
    n_features: int | None = None,
    chunk: int | None = None,
    index_base: str | int = "auto",
    header: bool | None = None,
    measure: bool = True,
    watch: Callable[[int], None] | None = None,
) -> Stream | Chunks:
    """A stream from a file, from standard input or by name.

    Args:
        source: a path (.svm .csv .tsv .parquet .npz .vw; .gz .bz2 .xz are unpacked), "-" for standard input, or the
            name of a stream made here: "synsep", "synsep:rounds=1000,seed=3" (a file of that name is "./synsep");
            or "openml:NAME", "openml:NAME@VERSION"; or a name in the data directory GAPTRON_DATA.
        format: where the extension does not say it; on standard input the default is svmlight.
        label: the label column of a table, by name or number from 0; by default one called y, label, class or target;
            in a file without a header the last, which `notes` says.
        reward: the column of a table that says what the right label is worth, from 0 to 1, for bandit feedback.
        available: the column of a table that says which labels are available, separated by | (or, in Parquet, lists).
        classes: the labels in code order; by default the sorted labels found.
        n_features: the width; by default that of the widest row, and 2¹⁸ for vw.
        chunk: read about so many rounds at a time, in bounded memory. Of `classes` and `n_features`, what is not given
            is then learned by one pass over the file before, which standard input does not allow.
        index_base: what svmlight features count from: 0, 1, or "auto": 0 if an index 0 occurs in what is read first
            (the whole file; in chunks that need no pass before, the first chunk), else 1. Give it whenever several
            files belong together; `index_base` of the stream says what was used.
        header: is the first line of a CSV or TSV file a header? By default the lines below it show that.
        measure: look at every value in that pass. False: it may look at labels and widths alone, which is quicker; then
            `norm` is None, and what is wrong with a value is said when it is read.
        watch: called while a text file is read, with the number of its bytes that have been read.

    Raises:
        StreamError: names the file and, where there are lines, the line.
    """
    path = os.fspath(source)
    base = svmlight.known_base(index_base)
    columns = Columns(label, reward, available)
    untouched = (format, *columns, classes, n_features, chunk, base, header) == (None,) * 9
    for kind, names in (("made here", path.partition(":")[0] in NAMED), ("fetched", path.startswith(openml.PREFIX))):
        if names and not untouched:
            raise InputError(f"{path} is {kind}: format, label, classes, n_features and the like are for files")
    if path.partition(":")[0] in NAMED:
        return make(path)
    if path.startswith(openml.PREFIX):
        return openml.fetch(path)
    entry = find(path)
    if entry is not None:
        known_width = n_features or entry.n_features
        return entry.fitted(
            open_stream(
                entry.path,
                n_features=known_width,
                classes=classes,
                chunk=chunk,
                index_base=index_base,
                measure=measure,
            )
        )
    if min(x for x in (chunk, n_features, 1) if x is not None) < 1:
        raise InputError("chunk and n_features must be at least 1")
    origin = Source(path, watch)
    name = _format(origin, format)
    try:
        known = None if classes is None else given(classes)
    except InputError as error:
        raise StreamError(origin.name, str(error)) from None
    width = n_features or FORMATS[name].width
    read = _reader(origin, name, columns, width, base, header)
    if chunk is None:
        for stream in read(None, base, lambda block: Stream(**settled(block, known, width, origin.name))):
            return stream
        raise _empty(origin)
    if FORMATS[name].whole or (FORMATS[name].binary and origin.piped):
        raise StreamError(origin.name, f"{name} cannot be read in chunks from here: leave out chunk")
    counts = name == "svmlight" and base is None  # from what do features count?
    return _chunks(origin, read, chunk, known, width, base, counts, FORMATS[name].outline and not measure)


def is_file(source: str) -> bool:
    """Is this a file, or standard input, and not the name of a stream made here, fetched or of the data directory?"""
    return source.partition(":")[0] not in NAMED and not source.startswith(openml.PREFIX) and find(source) is None


def in_pieces(path: str, format: str | None, known: bool, wide: bool) -> bool:
    """Can a file or standard input be read in chunks? `known`, `wide`: is all but its width known, and its width?"""
    source = Source(path)
    form = FORMATS[_format(source, format)]
    if not source.piped:
        return not form.whole
    return known and (wide or form.width is not None) and not form.binary


def weight(path: str, format: str | None) -> int:
    """About how many bytes of text a file holds: more than its size, where it is packed."""
    source = Source(path)
    packed = bool(source.suffixes[1]) or FORMATS[_format(source, format)].binary
    return os.path.getsize(path) * (PACKED if packed else 1)


def _format(source: Source, asked: str | None) -> str:
    if not source.piped and not os.path.exists(source.path):
        bare = os.sep not in source.path and "." not in source.path
        hint = f"; a data set of the data directory needs {DIRECTORY} set to its folder" if bare else ""
        raise StreamError(source.name, f"there is no such file, and the streams made here are {', '.join(NAMED)}{hint}")
    extension, packed = source.suffixes
    by_extension = next((name for name, form in FORMATS.items() if extension in form.extensions), None)
    name = asked or ("svmlight" if source.piped else by_extension)
    if name not in FORMATS:
        raise StreamError(source.name, f"unknown format: say format= one of {', '.join(FORMATS)}")
    if packed and FORMATS[name].binary:
        raise StreamError(source.name, f"{name} packs itself: unpack the {packed} first")
    return name


def _has(name: str, option: str) -> bool:
    """Does a format have what this option of reading speaks of?"""
    if option == "header":
        return name in ("csv", "tsv")
    if option == "index_base":
        return name == "svmlight"
    return FORMATS[name].table or option not in Columns._fields


def meant_for(path: str, options: dict[str, Any]) -> dict[str, Any]:
    """Those of several options of reading that the format of this file has."""
    name = _format(Source(path), options.get("format"))
    return {option: value for option, value in options.items() if _has(name, option)}


def _reader(
    source: Source, name: str, columns: Columns, width: int | None, base: int | None, header: bool | None
) -> Read:
    for role, column in columns._asdict().items():
        if column is not None and not _has(name, role):
            raise StreamError(source.name, f"{role}= names a column, and {name} has none: leave it out")
    if header is not None and not _has(name, "header"):
        raise StreamError(source.name, f"header= is for CSV and TSV files, and this is {name}: leave it out")
    if base is not None and not _has(name, "index_base"):
        raise StreamError(source.name, f"index_base= is for svmlight files, and this is {name}: leave it out")
    readers: dict[str, Read] = {
        "csv": lambda rows, _, then, outline=False: csv_text.read(source, rows, columns, header, then),
        "npz": lambda rows, _, then, outline=False: map(then, npz.read(source)),
        "parquet": lambda rows, _, then, outline=False: map(then, parquet.read(source, rows, columns)),
        "svmlight": partial(svmlight.read, source),
        "tsv": lambda rows, _, then, outline=False: csv_text.read(source, rows, columns, header, then, "\t"),
        "vw": lambda rows, _, then, outline=False: vw.read(source, rows, width or vw.WIDTH, then, outline),
    }
    return readers[name]


def _chunks(
    source: Source,
    read: Read,
    chunk: int,
    classes: tuple[Label, ...] | None,
    width: int | None,
    base: int | None,
    guess: bool,
    outline: bool,
) -> Chunks:
    """The rounds of a source, read when they are asked for.

    `guess`: `base` must be found out. `outline`: the pass before need not look at every value.
    """
    scan = Scan()
    notes: tuple[str, ...] = ()
    if classes is None or width is None:
        if source.piped:
            raise StreamError(source.name, "reading it in chunks needs classes=... and n_features=...")
        # Counted from 0 the rows are as they stand, so that the whole file says what they count from.
        look = partial(_look, listed=classes is not None, measured=not outline)
        scan = _scan(source, read(chunk, 0 if guess else base, look, outline))
        if guess:
            base = 0 if scan.index_0 else 1
        widest = max(scan.widest - (base or 0), 0) if guess else scan.widest
        classes, width = settle(scan.labels, scan.text, widest, classes, width, source.name)
        notes = (*scan.notes, "classes and width learned by one pass over the file")
    elif guess and not source.piped:
        base = next(read(chunk, None, lambda block: block.index_base), None)
    labels, columns = classes, width

    def parts() -> Iterator[Stream]:
        codes, empty = lru_cache(partial(Codes, labels)), True

        def made(block: Block) -> Stream:
            part = Stream(**settled(block, labels, columns, source.name, codes(block.text)))
            with suppress(InputError):  # which comes when it is played, unless it is prepared before
                _ = part.checked  # now, while others play
            return part

        for part in read(chunk, base, made):
            empty = False
            yield part
        if empty:
            raise _empty(source)

    return Chunks(
        classes,
        width,
        source.name,
        parts,
        scan.n_rounds,
        relabelled(classes),
        notes,
        scan.columns,
        base,
        scan.norm,
        source.piped,
    )


class Scan(NamedTuple):
    """What one pass over a file finds out, in bounded memory."""

    labels: frozenset[Label] = frozenset()
    text: bool = False
    widest: int = 0
    n_rounds: int | None = None
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    index_0: bool = False  # does any row have a value in the first column?
    norm: float | None = None  # of the longest row


def _look(block: Block, listed: bool, measured: bool) -> Scan:
    """What one block shows."""
    norm = float(measure(block).norms.max(initial=0.0)) if measured else None
    check_labels(block, listed)
    index_0 = sparse.issparse(block.X) and bool((block.X.indices == 0).any())
    T, width = block.X.shape
    return Scan(frozenset(block.labels), block.text, width, T, block.columns, block.notes, index_0, norm)


def _scan(source: Source, looks: Iterator[Scan]) -> Scan:
    scan = Scan()
    for look in looks:
        scan = look._replace(
            labels=scan.labels | look.labels,
            widest=max(scan.widest, look.widest),
            n_rounds=(scan.n_rounds or 0) + (look.n_rounds or 0),
            index_0=scan.index_0 or look.index_0,
            norm=None if look.norm is None else max(scan.norm or 0.0, look.norm),
        )
    if not scan.n_rounds:
        raise _empty(source)
    return scan


def _empty(source: Source) -> StreamError:
    return StreamError(source.name, "holds no rounds")
