"""A stream: rounds in order, in memory (`Stream`) or read while they are played (`Chunks`)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from gaptron.data.examples import Examples, MeasuredExamples, within_range
from gaptron.errors import InputError, StreamError
from gaptron.streams.labels import Codes, Label, check_classes, discover, distinct, with_new_labels
from gaptron.streams.raw_chunk import (
    RawChunk,
    available_matrix,
    check_labels,
    label_codes,
    measure,
    reward_column,
    with_width,
)
from gaptron.streams.rows import Rows, tidy_rows
from gaptron.types import Integers, Matrix, Vector

Chunk = tuple[Rows, Integers]


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """Rounds in memory, validated once: a learner that plays a stream does not check its values again.

    Attributes:
        rows: the examples and their norms.
        y: the codes 0..K-1 of the true labels; classes[code] is the label in the source.
        classes: the labels in the order of their codes.
        name: the name of the source.
        prepared: how the examples were prepared.
        notes: remarks of the reader.
        columns: the names of the features as read, where the source has names.
        index_base: the index of the first feature in the source, 0 or 1, where the source writes indices.
        available: which labels are available, T × K; None: all.
        rewards: the reward of the true label, T × 1, or of each label, T × K; None: the true label earns 1.
    """

    rows: MeasuredExamples
    y: Integers
    classes: tuple[Label, ...]
    name: str
    prepared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    index_base: int | None = None
    available: NDArray[np.bool_] | None = None
    rewards: Matrix | None = None

    @classmethod
    def from_arrays(cls, X: Any, y: Any, classes: Iterable[Label] | None = None, name: str = "arrays") -> Self:
        """Create a stream from arrays.

        Args:
            X: a dense array or any SciPy sparse matrix, one row per round.
            y: the labels, of any type, which they keep.
            classes: the labels in the order of their codes; by default the sorted labels found.
            name: the name of the stream.

        Returns:
            The stream.
        """
        known = None if classes is None else check_classes(classes)
        return cls(**stream_fields(chunk_of_arrays(X, y, name), known, None, name))

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, rounds={self.n_rounds}, features={self.n_features}, classes={self.n_classes})"

    def take(self, rounds: slice | Integers) -> "Stream":
        """Select some of the rounds.

        Args:
            rounds: a slice, or the numbers of the rounds.

        Returns:
            A stream of these rounds.
        """
        return replace(
            self,
            rows=MeasuredExamples(self.rows.X[rounds], self.rows.norms[rounds]),
            y=self.y[rounds],
            available=None if self.available is None else self.available[rounds],
            rewards=None if self.rewards is None else self.rewards[rounds],
        )

    @property
    def X(self) -> Rows:  # noqa: N802
        """The examples, T × d: a C-contiguous array of floats or a canonical `csr_array`."""
        return self.rows.X

    @property
    def norms(self) -> Vector:
        """‖x‖ of every example."""
        return self.rows.norms

    @cached_property
    def checked(self) -> Examples:
        """The examples as a learner plays them; raises an error if a norm is out of range."""
        return within_range(self.rows, self.name)

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """d."""
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)

    @property
    def norm(self) -> float:
        """The largest ‖x‖."""
        return float(self.norms.max())


@final
@dataclass(frozen=True, eq=False)
class Chunks:
    """Rounds read while they are played, in bounded memory: an iterable of (X, y) pairs of consecutive rounds.

    A file can be iterated repeatedly, standard input once.

    Attributes:
        classes: the labels in the order of their codes.
        n_features: the number of features.
        name: the name of the source.
        streams: called to read the rounds from the start, as an iterator of small streams.
        n_rounds: the number of rounds; None: unknown before the end.
        prepared: how the examples are prepared.
        notes: remarks of the reader.
        columns: the names of the features, where a first pass over the file has read them.
        index_base: as in a `Stream`; None also where the first rows will show it.
        norm: the largest ‖x‖, where a first pass over the file has measured it.
        once: can it be read only once, like standard input?
        late_notes: returns the remarks that only reading the rounds brings up.
    """

    classes: tuple[Label, ...]
    n_features: int
    name: str
    streams: Callable[[], Iterator[Stream]] = field(repr=False)
    n_rounds: int | None = None
    prepared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    index_base: int | None = None
    norm: float | None = None
    once: bool = False
    late_notes: Callable[[], tuple[str, ...]] = field(repr=False, default=tuple)

    def measured_norm(self) -> float | None:
        """Return the largest ‖x‖, if necessary after a pass over the file; None if it can be read only once."""
        if self.norm is not None or self.once:
            return self.norm
        return max((stream.norm for stream in self.streams()), default=0.0)

    def __iter__(self) -> Iterator[Chunk]:
        for stream in self.streams():
            yield stream.X, stream.y

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)


def relabelling(classes: tuple[Label, ...]) -> tuple[str, ...]:
    """Describe how the labels were prepared."""
    return () if classes == tuple(range(len(classes))) else ("labels relabelled 0..K-1",)


def resolve(
    labels: Iterable[Label],
    text: bool,
    widest: int,
    classes: tuple[Label, ...] | None,
    width: int | None,
    name: str,
    grow: bool = False,
) -> tuple[tuple[Label, ...], int]:
    """Return the classes and the number of features: as given, otherwise as found. `grow`: add new labels."""
    if not widest and width is None:
        raise StreamError(name, "no round has a feature: give n_features=... if this is intended")
    if classes is None:
        try:
            classes = discover(labels, text)
        except InputError as error:
            raise StreamError(name, str(error)) from None
    elif grow:
        classes = with_new_labels(classes, labels, text)
    return classes, width or widest


def stream_fields(
    chunk: RawChunk,
    classes: tuple[Label, ...] | None,
    width: int | None,
    name: str,
    codes: Codes | None = None,
    grow: bool = False,
) -> dict[str, Any]:
    """Return the fields of a `Stream` that consists of one chunk. `codes` are those of the classes, where known."""
    rows = measure(chunk)
    check_labels(chunk, classes_known=classes is not None and not grow)
    classes, width = resolve(chunk.all_labels, chunk.text, chunk.X.shape[1], classes, width, name, grow)
    codes = codes or Codes(classes, chunk.text)
    return {
        "rows": rows._replace(X=with_width(chunk, width)),
        "y": label_codes(chunk, codes),
        "available": available_matrix(chunk, codes),
        "rewards": reward_column(chunk),
        "classes": classes,
        "name": name,
        "prepared": relabelling(classes),
        "notes": chunk.notes,
        "columns": chunk.columns,
        "index_base": chunk.index_base,
    }


def chunk_of_arrays(X: Any, y: Any, name: str) -> RawChunk:
    """Return arrays as one chunk."""
    labels = y if isinstance(y, (list, tuple)) else np.asarray(y)
    try:
        rows = tidy_rows(X)
    except InputError as error:
        raise StreamError(name, f"X must be a matrix of numbers ({error})") from None
    shape = np.shape(labels) if isinstance(labels, np.ndarray) else (len(labels),)
    if len(shape) != 1 or rows.shape[0] != shape[0] or 0 in rows.shape:
        raise StreamError(
            name, f"X needs a row for each label and at least one column, but X is {rows.shape} and y {shape}"
        )

    def error_at(row: int, problem: str) -> InputError:
        return StreamError(name, f"X[{row}]: {problem}")

    try:
        return RawChunk(rows, *distinct(labels), error_at)
    except TypeError:
        raise StreamError(name, "y must contain plain labels, such as strings or numbers") from None
