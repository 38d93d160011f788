"""Tables as people have them: the columns of a file go to a learner's encoder by name, words, gaps, times and all.

Text files write numbers and times as texts, and the encoder reads them; a Parquet file says of each column what it is.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import GaptronError, InputError, StreamError
from gaptron.features.declaration import Features
from gaptron.features.encoder import Encoder
from gaptron.features.tables import Table, of_arrow
from gaptron.streams import parquet as parquet_file
from gaptron.streams.block import Blame, Block, among_of, blame_row, check_labels, labels_of, worth_of
from gaptron.streams.csv_text import SAMPLE, after, cells_of, count_rows, no_number
from gaptron.streams.files import is_file
from gaptron.streams.header import is_header
from gaptron.streams.labels import Codes, Label, discover, distinct, given
from gaptron.streams.rounds import Rounds
from gaptron.streams.rows import csr
from gaptron.streams.source import Source, Text, texts
from gaptron.streams.stream import Stream
from gaptron.streams.table import LAST, Column, Columns, available_in, column_at, place
from gaptron.text_numbers import as_number
from gaptron.types import Integers, Sparse, Vector
from gaptron.validation import MeasuredRows

DELIMITERS = {"csv": ",", "tsv": "\t"}
NO_FEATURE = "a row needs a label and a feature"
NO_MARKS: Integers = np.zeros(0, dtype=np.int64)


class Piece(NamedTuple):
    """Some rows of a file: an Arrow table of the features, and what the other columns say as the file writes it."""

    table: Any
    beside: Block  # a block without features; no names, where the file is not asked for labels


@dataclass(frozen=True, eq=False)
class RowsByName:
    """A table as rounds, an iterable of `Rounds`."""

    name: str
    reading: "Reading" = field(repr=False)
    classes: tuple[Label, ...]
    columns: tuple[str, ...]
    parts: Callable[[], Iterator[Rounds]] = field(repr=False)
    whole: Rounds | None = field(repr=False, default=None)  # where it is in memory
    n_rounds: int | None = None
    notes: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Rounds]:
        return self.parts()

    @property
    def called(self) -> Columns:
        """The columns that are no features, by name; of what can be read only once, when some rows were read."""
        return self.reading.called

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)


# --- what is a table ------------------------------------------------------------------------------------------


def is_table(path: str | os.PathLike[str], format: str | None = None, available: Column | None = None) -> bool:
    """Has this file columns by name: CSV, TSV, or Parquet without lists, but for the labels in `available`?"""
    source = Source(os.fspath(path))
    kind = format or {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}.get(source.suffixes[0], "")
    if kind == "parquet" and not source.piped:
        return os.path.isfile(source.path) and not _has_lists(source.path, available)
    return kind in DELIMITERS or kind == "parquet"


def has_names(data: str, format: str | None = None, available: Column | None = None) -> bool:
    """Is this a table, and not the name of a stream?"""
    return is_file(data) and is_table(data, format, available)


def _has_lists(path: str, available: Column | None) -> bool:
    from pyarrow import parquet  # noqa: PLC0415
    from pyarrow import types as is_  # noqa: PLC0415

    try:
        schema = parquet.read_schema(path)
        may = None if available is None else column_at(path, schema.names, available, "available")
        return any(is_.is_nested(kind) for at, kind in enumerate(schema.types) if at != may)
    except Exception:  # whatever is wrong is said by whoever reads it
        return False


# --- opening --------------------------------------------------------------------------------------------------


def open_by_name(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: Column | None = None,
    reward: Column | None = None,
    available: Column | None = None,
    classes: Iterable[Label] | None = None,
    chunk: int | None = None,
    header: bool | None = None,
    limit: int | None = None,
    shuffle: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> RowsByName:
    """The rounds of a table.

    Args:
        path: a CSV, TSV (.gz .bz2 .xz are unpacked) or Parquet file, or "-" for standard input.
        format: csv, tsv or parquet, where the extension does not say it.
        label: the label's column, by name or number from 0; by default one called y, label, class or target; in a file
            without a header the last.
        reward: the column that says what the right label is worth, from 0 to 1, for bandit feedback; no feature.
        available: the column that says which labels are available, separated by | (or, in Parquet, lists); no feature.
        classes: the labels in code order; by default the sorted labels found.
        chunk: read so many rows at a time. Without `classes` the file is then read once before, for its labels.
        header: is the first line of a text a header? By default it is if none of its cells is a number.
        limit: only the first so many rows.
        shuffle: the seed of a permutation of the rows.
        watch: called while a text file is read, with the number of its bytes that have been read.
    """
    source = Source(os.fspath(path), watch)
    reading = Reading(source, format, Columns(label, reward, available), header)
    listed = None if classes is None else _given(source, classes)
    if chunk is not None:
        if shuffle is not None:
            raise InputError("shuffle looks ahead: the stream must be in memory, opened without chunk")
        return _in_chunks(source, reading, listed, chunk, limit)
    pieces = list(reading.pieces(None))
    if not pieces:
        raise StreamError(source.name, "holds no rounds")
    (piece,) = pieces
    check_labels(piece.beside, listed=listed is not None)
    labels = listed or _discovered(source, piece.beside.labels, piece.beside.text)
    count, prepared = piece.table.num_rows, []
    if limit is not None and limit < count:
        count = limit
        prepared.append(f"first {limit} rounds")
    chosen: slice | Integers = slice(count)
    if shuffle is not None:
        chosen = np.random.default_rng(shuffle).permutation(count)
        prepared.append(f"shuffled (seed {shuffle})")
    whole = _rounds(piece, labels, chosen)
    return RowsByName(
        source.name,
        reading,
        labels,
        tuple(piece.table.column_names),
        lambda: iter([whole]),
        whole,
        count,
        tuple(reading.notes),
        tuple(prepared),
    )


def _rounds(piece: Piece, classes: tuple[Label, ...], chosen: slice | Integers) -> Rounds:
    """The first rounds of a piece, or those of the given numbers."""
    table, block = piece
    codes = Codes(classes, block.text)
    rows = table.slice(0, chosen.stop) if isinstance(chosen, slice) else table.take(chosen)
    whole = Rounds(None, labels_of(block, codes), among_of(block, codes), worth_of(block))
    return whole.part(of_arrow(rows, text=block.text), chosen)


def encoded(source: RowsByName, features: Features | None = None) -> Stream:
    """A table that is in memory as rows of numbers: each encoded by the rows before it, as a learner would do it."""
    assert source.whole is not None
    table, y, among, worth = source.whole
    encoder = Encoder(features or Features())
    step = encoder.block_rows(table)
    parts = []
    for at in range(0, len(y), step):
        part = encoder.encode(table, at, min(at + step, len(y)), learn=True).rows
        assert isinstance(part, Sparse)
        parts.append(part)
    lengths = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
    indices, values = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    X = csr(values, indices, np.cumsum(lengths), encoder.width)
    rows = MeasuredRows(X, np.ones(len(y)))  # every row has length 1, but for rounding
    words = (*source.prepared, "encoded by name")
    return Stream(rows, y, source.classes, source.name, words, source.notes, source.columns, among=among, worth=worth)


def open_unlabelled(
    path: str | os.PathLike[str],
    *,
    without: Columns,
    classes: tuple[Label, ...],
    format: str | None = None,
    chunk: int = 1 << 16,
    header: bool | None = None,
) -> Iterator[tuple[Table, NDArray[np.bool_] | None]]:
    """The rows of a table, some at a time, and which labels are available, None: all.

    `without`: columns by name that are no features, each left out where it is there; `classes`: all labels.
    """
    source = Source(os.fspath(path))
    for piece in Reading(source, format, without, header, labelled=False).pieces(chunk):
        block = piece.beside
        yield of_arrow(piece.table, text=block.text), among_of(block, Codes(classes, block.text))


def _in_chunks(
    source: Source, reading: "Reading", listed: tuple[Label, ...] | None, chunk: int, limit: int | None
) -> RowsByName:
    notes: tuple[str, ...] = ()
    rounds = None
    labels = listed
    if labels is None:
        if source.piped:
            raise StreamError(source.name, "reading it in chunks needs classes=...")
        found: dict[Label, None] = {}
        rounds, text = 0, False
        for piece in reading.pieces(chunk):
            check_labels(piece.beside, listed=False)
            found |= dict.fromkeys(piece.beside.labels)
            rounds, text = rounds + piece.table.num_rows, piece.beside.text
        if not rounds:
            raise StreamError(source.name, "holds no rounds")
        labels = _discovered(source, list(found), text)
        notes = ("classes learned by one pass over the file",)
    known = labels

    def parts() -> Iterator[Rounds]:
        left = limit
        for piece in reading.pieces(chunk):
            check_labels(piece.beside, listed=True)
            rounds = _rounds(piece, known, slice(left))
            yield rounds
            if left is not None:
                left -= len(rounds.y)
                if left == 0:
                    return

    columns = reading.columns()
    count = rounds if limit is None or rounds is None else min(limit, rounds)
    words = () if limit is None else (f"first {limit} rounds",)
    return RowsByName(source.name, reading, labels, columns, parts, None, count, (*reading.notes, *notes), words)


def _given(source: Source, classes: Iterable[Label]) -> tuple[Label, ...]:
    try:
        return given(classes)
    except InputError as error:
        raise StreamError(source.name, str(error)) from None


def _discovered(source: Source, names: list[Label], text: bool) -> tuple[Label, ...]:
    try:
        return discover(names, text)
    except InputError as error:
        raise StreamError(source.name, str(error)) from None


# --- reading --------------------------------------------------------------------------------------------------


class Reading:
    """How one file is read."""

    def __init__(
        self,
        source: Source,
        format: str | None,
        asked: Columns,
        header: bool | None,
        labelled: bool = True,
    ) -> None:
        self.source = source
        self.format = format or {".tsv": "tsv", ".parquet": "parquet"}.get(source.suffixes[0], "csv")
        self.notes: list[str] = []
        self.called = Columns()  # as they are called, once some rows were read
        self._asked = asked
        self._header = header
        self._labelled = labelled
        if not source.piped and not os.path.exists(source.path):
            raise StreamError(source.name, "there is no such file")

    def columns(self) -> tuple[str, ...]:
        """The names of the features' columns; none of what can be read only once."""
        first = None if self.source.piped else next(self.pieces(SAMPLE), None)
        return () if first is None else tuple(first.table.column_names)

    def pieces(self, rows: int | None) -> Iterator[Piece]:
        """The file, so many rows at a time; None: all at once."""
        return self._parquet(rows) if self.format == "parquet" else self._text(rows, DELIMITERS[self.format])

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # --- text ---

    def _text(self, rows: int | None, delimiter: str) -> Iterator[Piece]:
        import pyarrow as pa  # noqa: PLC0415

        pieces = texts(self.source, rows)
        first: list[Text] = []  # as many as it takes to know what the first line is
        sample: list[tuple[int, bytes]] = []
        for text in pieces:
            text.check_line_ends()
            first.append(text)
            sample += islice(text.rounds(), SAMPLE + 1 - len(sample))
            if len(sample) > SAMPLE:
                break
        if not sample:
            return
        below = [cells_of(first[0], at, line, delimiter) for at, line in sample[1:]]
        cells = cells_of(first[0], *sample[0], delimiter)
        header = self._has_header(cells, below)
        names = [name.strip() or f"column {at}" for at, name in enumerate(cells)] if header else None
        names = names or [str(at) for at in range(len(cells))]
        spots = self._spots(names, header)
        left_out = list(spots.values())
        if header and not cells[0].strip() and 0 not in left_out and count_rows(below):
            left_out.append(0)
            self._note("the nameless first column, which counts the rows, is left out")
        features = _features(self.source.name, names, left_out)
        skip = sample[0][0] if header else 0
        for text in [*first, *pieces]:
            text.check_line_ends()
            if skip >= text.first:
                text = after(text, skip)
            if next(text.rounds(), None) is not None:
                columns = _string_columns(text, len(names), delimiter)
                table = pa.table([columns[at] for at in features], names=[names[at] for at in features])
                yield Piece(table, self._text_beside(text, columns, names, spots))

    def _text_beside(self, text: Text, columns: list[Any], names: list[str], spots: dict[str, int]) -> Block:
        block = Block(np.zeros((len(columns[0]), 0)), [], NO_MARKS, text.blame, text=True)
        if "available" in spots:
            block = block._replace(available=available_in(columns[spots["available"]]))
        if not self._labelled:
            return block
        labels = columns[spots["label"]].combine_chunks().dictionary_encode()
        found, which = distinct([name.strip() for name in labels.dictionary.to_pylist()])
        block = block._replace(names=found, marks=which[labels.indices.to_numpy()])
        if "reward" in spots:
            at = spots["reward"]
            block = block._replace(reward=_rewards(columns[at], names[at], text.blame))
        return block

    def _has_header(self, cells: list[str], below: list[list[str]]) -> bool:
        if self._header is not None:
            return self._header
        if self._labelled and self._asked.by_name:
            return True
        numbers = [as_number(cell) is not None for cell in cells]
        if not any(numbers):
            return True
        if all(numbers):
            told = is_header(cells, [False] * len(cells), below, len(cells) - 1)
            if told is None:
                raise StreamError(
                    self.source.name,
                    "the first line may be a header or a round: say which with header=True or header=False",
                    1,
                )
            return told
        return False

    def _spots(self, names: list[str], header: bool) -> dict[str, int]:
        """The numbers of the columns that are no features: all that are asked for or, without labels, those there."""
        if not self._labelled:
            return {role: names.index(name) for role, name in self._asked._asdict().items() if name in names}
        if len(names) < 2:
            raise StreamError(self.source.name, NO_FEATURE, 1)
        last = self._asked.label is None and not header
        if last:
            self._note(LAST)
        places = place(self.source.name, names, self._asked, len(names) - 1 if last else None)
        spots = {role: at for role, at in places._asdict().items() if at is not None}
        self.called = Columns(**{role: names[at] for role, at in spots.items()})
        return spots

    # --- Parquet ---

    def _parquet(self, rows: int | None) -> Iterator[Piece]:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415

        start = 0
        with self.source.seekable() as place:
            try:
                with parquet.ParquetFile(place) as file:
                    batches = [file.read()] if rows is None else file.iter_batches(rows)
                    for batch in batches:
                        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
                        if table.num_rows:
                            yield self._typed_piece(table, start)
                        start += table.num_rows
            except GaptronError:
                raise
            except Exception as error:  # a damaged file makes Arrow raise nearly everything
                line = next(iter(str(error).splitlines()), type(error).__name__)
                raise StreamError(self.source.name, f"cannot be read as Parquet ({line})") from None

    def _typed_piece(self, table: Any, start: int) -> Piece:
        names = table.column_names
        spots = self._spots(names, True)
        features = _features(self.source.name, names, list(spots.values()))
        blame = blame_row(self.source.name, start)
        block = Block(np.zeros((table.num_rows, 0)), [], NO_MARKS, blame)
        if "available" in spots:
            block = block._replace(available=parquet_file.available(table, spots["available"], blame))
        if self._labelled:
            column = table.column(spots["label"])
            if hasattr(column.type, "value_type"):
                column = column.cast(column.type.value_type)
            found, marks = distinct(column.to_pylist())
            block = block._replace(names=found, marks=marks)
            if "reward" in spots:
                block = block._replace(reward=parquet_file.rewards(self.source.name, table, spots["reward"], blame))
        return Piece(table.select(features), block)


def _features(source: str, names: list[str], left_out: list[int]) -> list[int]:
    """The numbers of the columns that are features."""
    features = [at for at in range(len(names)) if at not in left_out]
    if not features:
        raise StreamError(source, NO_FEATURE, 1)
    used = [names[at] for at in features]
    twice = next((name for at, name in enumerate(used) if name in used[:at]), None)
    if twice is not None:
        raise StreamError(source, f"two columns are called {twice}: give one of them another name")
    return features


def _rewards(column: Any, name: str, blame: Blame) -> Vector:
    """The numbers that a column of texts writes."""
    cells = column.combine_chunks().dictionary_encode()
    marks = cells.indices.to_numpy()
    numbers = np.zeros(len(cells.dictionary))
    for mark, text in enumerate(cells.dictionary.to_pylist()):
        number = as_number(text)
        if number is None:
            raise blame(int(np.argmax(marks == mark)), no_number(name, text))
        numbers[mark] = number
    rewards: Vector = numbers[marks]
    return rewards


def _string_columns(text: Text, count: int, delimiter: str) -> list[Any]:
    """Every cell as a text, column by column: by Arrow; what it refuses is read again cell by cell."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv as arrow  # noqa: PLC0415

    names = [str(at) for at in range(count)]
    try:
        table = arrow.read_csv(
            pa.BufferReader(text.data),  # not a Python file, which Arrow would read from threads of its own
            read_options=arrow.ReadOptions(column_names=names),
            parse_options=arrow.ParseOptions(delimiter=delimiter),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[], strings_can_be_null=False
            ),
        )
        if b'"' not in text.data or table.num_rows == sum(1 for _ in text.rounds()):
            return list(table.columns)
    except pa.ArrowInvalid:
        pass
    rows = []
    for number, line in text.rounds():
        cells = cells_of(text, number, line, delimiter)
        if len(cells) != count:
            raise StreamError(text.source, f"{len(cells)} cells where {count} are expected", number)
        rows.append(cells)
    return [pa.chunked_array([pa.array(list(column), type=pa.string())]) for column in zip(*rows)]
