"""Open files as streams: the extension determines the format, and each format has a reader in this package."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypedDict, TypeVar, Unpack, overload

from scipy import sparse

from gaptron.errors import InputError, StreamError
from gaptron.streams import csv_text, npz, openml, parquet, svmlight, vw
from gaptron.streams.cell_forms import check_forms
from gaptron.streams.columns import Column, Columns
from gaptron.streams.directory import DIRECTORY, find
from gaptron.streams.labels import Codes, Label, check_classes
from gaptron.streams.named import NAMED, make
from gaptron.streams.raw_chunk import RawChunk, check_labels, measure
from gaptron.streams.separator import SEPARATORS
from gaptron.streams.source import NO_MEMORY, Source, check_encoding
from gaptron.streams.stream import Chunks, Stream, relabelling, resolve, stream_fields
from gaptron.streams.unlabelled import SKIP, Unlabelled

T = TypeVar("T")


class Reader(Protocol):
    """Reads one source."""

    def __call__(
        self, rows: int | None, base: int | None, then: Callable[[RawChunk], T], outline: bool = False
    ) -> Iterator[T]:
        """Read the source from the start and yield `then(chunk)` for each chunk.

        `then` may be called in threads and ahead of the consumer.

        Args:
            rows: the number of rounds per chunk; None: all rounds in one chunk.
            base: the index of the first feature; None: detected.
            then: called with each chunk.
            outline: the chunks need correct labels and widths but not every value, where the format allows it.
        """
        ...


class Format(NamedTuple):
    """The properties of a file format."""

    extensions: tuple[str, ...]
    table: bool = False  # has columns, one of which is the label
    binary: bool = False  # is compressed, and is read by seeking in the file
    whole: bool = False  # cannot be read in chunks
    width: int | None = None  # the number of features, where the format fixes it
    outline: bool = False  # labels and widths can be read without parsing every value


TEXT_OPTIONS = ("header", "separator", "decimal", "dates", "encoding")  # of CSV and TSV files
SPREADSHEETS = (".xlsx", ".xls", ".ods")
COMPRESSION = 6  # text is about this many times as long as its compressed form
FORMATS = {
    "csv": Format((".csv",), table=True),
    "npz": Format((".npz",), binary=True, whole=True),
    "parquet": Format((".parquet",), table=True, binary=True),
    "svmlight": Format((".svm", ".svmlight", ".libsvm"), outline=True),
    "tsv": Format((".tsv",), table=True),
    "vw": Format((".vw", ".vwtxt"), width=vw.WIDTH, outline=True),
}


class Reading(TypedDict, total=False):
    """The options of `open_stream` besides `chunk`, which determines the type of the result."""

    format: str | None
    label: Column | None
    reward: Column | None
    available: Column | None
    classes: Iterable[Label] | None
    n_features: int | None
    index_base: str | int
    header: bool | None
    separator: str | None
    decimal: str
    dates: str | None
    encoding: str | None
    unlabelled: str
    grow: bool
    measure: bool
    progress: Callable[[int], None] | None


@overload
def open_stream(source: str | os.PathLike[str], *, chunk: None = None, **options: Unpack[Reading]) -> Stream: ...
@overload
def open_stream(source: str | os.PathLike[str], *, chunk: int, **options: Unpack[Reading]) -> Chunks: ...
@overload
def open_stream(
    source: str | os.PathLike[str], *, chunk: int | None, **options: Unpack[Reading]
) -> Stream | Chunks: ...


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
    separator: str | None = None,
    decimal: str = ".",
    dates: str | None = None,
    encoding: str | None = None,
    unlabelled: str = SKIP,
    grow: bool = False,
    measure: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Stream | Chunks:
    """Open a stream from a file, from standard input or by name.

    Args:
        source: a path (.svm .csv .tsv .parquet .npz .vw; .gz .bz2 .xz are unpacked); "-" for standard input; the name
            of a built-in stream, as in "synsep" or "synsep:rounds=1000,seed=3" (a file of that name is "./synsep");
            "openml:NAME" or "openml:NAME@VERSION"; or a name in the data directory GAPTRON_DATA.
        format: the format, if the extension does not show it. The default for standard input is svmlight.
        label: the label column of a table, by name or number from 0. The default is a column named y, label, class or
            target, or the last column of a file without a header, which `notes` then reports.
        reward: the column of a table with the reward of the true label, from 0 to 1, for bandit feedback.
        available: the column of a table with the available labels, separated by | (or, in Parquet, lists).
        classes: the labels in the order of their codes. The default is the sorted labels found.
        n_features: the number of features. The default is that of the widest example, and 2¹⁸ for vw.
        chunk: read about this many rounds at a time, in bounded memory. If `classes` or `n_features` is not given, a
            first pass over the file finds it, which is not possible for standard input.
        index_base: the index of the first feature in svmlight files: 0, 1, or "auto", which is 0 if the index 0 occurs
            in the data read first (the whole file, or the first chunk if there is no first pass) and 1 otherwise. Set
            it if several files belong together. `index_base` of the stream is the value used.
        header: is the first line of a CSV or TSV file a header? By default this is detected from the lines below it.
        separator: the character between the cells of a CSV or TSV file. By default it is detected from the first lines:
            that of the format, a semicolon, a tab or a vertical bar.
        decimal: the decimal separator of a CSV or TSV file, "." or ",".
        dates: whether dates such as 03/04/2026 are "day-first" or "month-first", where the file does not show it.
        encoding: the encoding of a CSV or TSV file, such as "cp1252". The default is UTF-8, or UTF-16 if the file
            begins with its byte order mark.
        unlabelled: what happens to rows of a table that have no label: "skip" skips them, and `notes` says how many;
            "error" refuses them.
        grow: add labels that are not in `classes` after them, as `Learner.grow` wants them, instead of refusing them.
        measure: check every value in the first pass. With False, the pass may look at labels and widths only, which is
            faster. `norm` is then None, and a bad value is reported when it is read.
        progress: called while a text file is read, with the number of bytes read so far.

    Returns:
        A `Stream` in memory, or `Chunks` if `chunk` is given.

    Raises:
        StreamError: names the file and, if it has lines, the line.
    """
    path = os.fspath(source)
    base = svmlight.parse_index_base(index_base)
    check_forms(separator, decimal, dates)
    check_encoding(encoding)
    skipping = Unlabelled(unlabelled)
    columns = Columns(label, reward, available)
    text = csv_text.CsvOptions(columns, header, separator, decimal, dates, encoding)
    untouched = text == csv_text.CsvOptions() and (format, classes, n_features, chunk, base) == (None,) * 5
    for kind, matches in (
        ("built in", path.partition(":")[0] in NAMED),
        ("downloaded", path.startswith(openml.PREFIX)),
    ):
        if matches and not untouched:
            raise InputError(
                f"{path} is {kind}: format, label, classes, n_features and similar arguments are for files"
            )
    if path.partition(":")[0] in NAMED:
        return make(path)
    if path.startswith(openml.PREFIX):
        return openml.fetch(path)
    entry = find(path)
    if entry is not None:
        return entry.convert(
            open_stream(
                entry.path,
                n_features=n_features or entry.n_features,
                classes=classes,
                chunk=chunk,
                index_base=index_base,
                measure=measure,
                grow=grow,
            )
        )
    if min(x for x in (chunk, n_features, 1) if x is not None) < 1:
        raise InputError("chunk and n_features must be at least 1")
    origin = Source(path, progress)
    name = _format(origin, format)
    try:
        known = None if classes is None else check_classes(classes)
    except InputError as error:
        raise StreamError(origin.name, str(error)) from None
    width = n_features or FORMATS[name].width
    read = _reader(origin, name, text, width, base, skipping)
    if chunk is None:
        try:
            for fields in read(None, base, lambda raw: stream_fields(raw, known, width, origin.name, grow=grow)):
                return Stream(**{**fields, "notes": (*fields["notes"], *skipping.notes)})
        except MemoryError:
            raise StreamError(origin.name, NO_MEMORY) from None
        raise skipping.no_rounds(origin.name)
    if FORMATS[name].whole or (FORMATS[name].binary and origin.is_stdin):
        raise StreamError(origin.name, f"{name} cannot be read in chunks from here: omit chunk")
    detect_base = name == "svmlight" and base is None
    outline = FORMATS[name].outline and not measure
    return _chunks(origin, read, chunk, known, width, base, detect_base, outline, skipping, grow)


def is_file(source: str) -> bool:
    """Is this a file or standard input, and not the name of a built-in, downloaded or data directory stream?"""
    return source.partition(":")[0] not in NAMED and not source.startswith(openml.PREFIX) and find(source) is None


def can_read_in_chunks(path: str, format: str | None, classes_known: bool, width_known: bool) -> bool:
    """Can a file or standard input be read in chunks, given what is known about it?"""
    source = Source(path)
    form = FORMATS[_format(source, format)]
    if not source.is_stdin:
        return not form.whole
    return classes_known and (width_known or form.width is not None) and not form.binary


def text_size(path: str, format: str | None) -> int:
    """Estimate how many bytes of text a file contains; more than its size if it is compressed."""
    source = Source(path)
    compressed = bool(source.suffixes[1]) or FORMATS[_format(source, format)].binary
    return os.path.getsize(path) * (COMPRESSION if compressed else 1)


def _format(source: Source, requested: str | None) -> str:
    bare = os.sep not in source.path and "." not in source.path
    hint = f"; to open a set of the data directory, set {DIRECTORY} to its path" if bare else ""
    source.check_exists(f"there is no such file, and the built-in streams are {', '.join(NAMED)}{hint}")
    extension, packed = source.suffixes
    by_extension = next((name for name, form in FORMATS.items() if extension in form.extensions), None)
    name = requested or ("svmlight" if source.is_stdin else by_extension)
    if name is None and extension in SPREADSHEETS:
        raise StreamError(source.name, "is a spreadsheet: save the sheet as CSV first")
    if name not in FORMATS:
        raise StreamError(source.name, f"unknown format: set format= to one of {', '.join(FORMATS)}")
    if packed and FORMATS[name].binary:
        raise StreamError(source.name, f"{name} files are compressed already: unpack the {packed} first")
    return name


def _has(name: str, option: str) -> bool:
    """Does this option apply to the format?"""
    if option in TEXT_OPTIONS:
        return name in SEPARATORS
    if option == "index_base":
        return name == "svmlight"
    return FORMATS[name].table or option not in (*Columns._fields, "unlabelled")


def applicable_options(path: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return those of the reading options that apply to the format of this file."""
    name = _format(Source(path), options.get("format"))
    return {option: value for option, value in options.items() if _has(name, option)}


def _reader(
    source: Source,
    name: str,
    options: csv_text.CsvOptions,
    width: int | None,
    base: int | None,
    unlabelled: Unlabelled,
) -> Reader:
    columns = options.columns
    for role, column in columns._asdict().items():
        if column is not None and not _has(name, role):
            raise StreamError(source.name, f"{role}= names a column, but {name} files have no columns: omit it")
    for option in TEXT_OPTIONS:
        if getattr(options, option) != csv_text.CsvOptions._field_defaults[option] and not _has(name, option):
            raise StreamError(source.name, f"{option}= is for CSV and TSV files, but this is {name}: omit it")
    if base is not None and not _has(name, "index_base"):
        raise StreamError(source.name, f"index_base= is for svmlight files, but this is {name}: omit it")

    def read_csv(
        rows: int | None, base: int | None, then: Callable[[RawChunk], T], outline: bool = False
    ) -> Iterator[T]:
        unlabelled.restart()
        text = options._replace(usual=SEPARATORS[name])
        return csv_text.read(source, rows, text, lambda chunk: unlabelled.then(then, chunk.numeric()))

    def read_parquet(
        rows: int | None, base: int | None, then: Callable[[RawChunk], T], outline: bool = False
    ) -> Iterator[T]:
        unlabelled.restart()
        results = (unlabelled.then(then, raw) for raw in parquet.read(source, rows, columns))
        return (result for result in results if result is not None)

    readers: dict[str, Reader] = {
        "csv": read_csv,
        "npz": lambda rows, _, then, outline=False: map(then, npz.read(source)),
        "parquet": read_parquet,
        "svmlight": partial(svmlight.read, source),
        "tsv": read_csv,
        "vw": lambda rows, _, then, outline=False: vw.read(source, rows, width or vw.WIDTH, then, outline),
    }
    return readers[name]


def _chunks(
    source: Source,
    read: Reader,
    chunk: int,
    classes: tuple[Label, ...] | None,
    width: int | None,
    base: int | None,
    detect_base: bool,
    outline: bool,
    unlabelled: Unlabelled,
    grow: bool,
) -> Chunks:
    """Return the rounds of a source, which are read when they are needed.

    `outline`: the first pass need not look at every value.
    """
    scan = Scan()
    notes: tuple[str, ...] = ()
    if classes is None or width is None or grow:
        if source.is_stdin:
            raise StreamError(
                source.name, "reading it in chunks needs classes=... and n_features=..., and cannot find new labels"
            )
        # With base 0 the indices are those in the file, so that the whole file shows the real base.
        scan_chunk = partial(_scan_chunk, classes_known=classes is not None and not grow, measured=not outline)
        scan = _scan(read(chunk, 0 if detect_base else base, scan_chunk, outline))
        if not scan.n_rounds:
            raise unlabelled.no_rounds(source.name)
        if detect_base:
            base = 0 if scan.has_index_0 else 1
        widest = max(scan.widest - (base or 0), 0) if detect_base else scan.widest
        classes, width = resolve(scan.labels, scan.text, widest, classes, width, source.name, grow)
        notes = (*scan.notes, *unlabelled.notes, "classes and width found in a first pass over the file")
    elif detect_base and not source.is_stdin:
        base = next(read(chunk, None, lambda raw: raw.index_base), None)
    labels, n_features = classes, width

    def streams() -> Iterator[Stream]:
        codes, empty = lru_cache(partial(Codes, labels)), True

        def convert(raw: RawChunk) -> Stream:
            stream = Stream(**stream_fields(raw, labels, n_features, source.name, codes(raw.text)))
            with suppress(InputError):  # raised when the chunk is played, unless it is prepared first
                _ = stream.checked  # computed now, while another chunk is played
            return stream

        for stream in read(chunk, base, convert):
            empty = False
            yield stream
        if empty:
            raise unlabelled.no_rounds(source.name)

    return Chunks(
        classes,
        width,
        source.name,
        streams,
        scan.n_rounds,
        relabelling(classes),
        notes,
        scan.columns,
        base,
        scan.norm,
        source.is_stdin,
        tuple if scan.n_rounds else lambda: unlabelled.notes,
    )


class Scan(NamedTuple):
    """What a first pass over a file finds, in bounded memory."""

    labels: frozenset[Label] = frozenset()
    text: bool = False
    widest: int = 0
    n_rounds: int | None = None
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    has_index_0: bool = False  # does an example have a value in the first column?
    norm: float | None = None  # the largest


def _scan_chunk(raw: RawChunk, classes_known: bool, measured: bool) -> Scan:
    norm = float(measure(raw).norms.max(initial=0.0)) if measured else None
    check_labels(raw, classes_known)
    has_index_0 = sparse.issparse(raw.X) and bool((raw.X.indices == 0).any())
    n_rounds, width = raw.X.shape
    return Scan(frozenset(raw.all_labels), raw.text, width, n_rounds, raw.columns, raw.notes, has_index_0, norm)


def _scan(scans: Iterator[Scan]) -> Scan:
    total = Scan()
    for scan in scans:
        total = scan._replace(
            labels=total.labels | scan.labels,
            widest=max(total.widest, scan.widest),
            n_rounds=(total.n_rounds or 0) + (scan.n_rounds or 0),
            has_index_0=total.has_index_0 or scan.has_index_0,
            norm=None if scan.norm is None else max(total.norm or 0.0, scan.norm),
        )
    return total
