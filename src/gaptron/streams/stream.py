"""A stream: rounds in order, in memory (`Stream`) or read as they are played (`Chunks`)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError, StreamError
from gaptron.streams.block import Block, among_of, check_labels, labels_of, measure, rows_of, worth_of
from gaptron.streams.labels import Codes, Label, discover, distinct, given
from gaptron.streams.rows import Rows, tidy_rows
from gaptron.types import Integers, Matrix, Vector
from gaptron.validation import CheckedRows, MeasuredRows, within_range

Chunk = tuple[Rows, Integers]


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """Rounds in memory, validated once: `gaptron.validation.checked` takes a stream and looks at no value again.

    X is a C-contiguous array of floats or a canonical `csr_array`; y holds the codes 0..K-1, and classes[code]
    is the label the source used.
    """

    rows: MeasuredRows
    y: Integers
    classes: tuple[Label, ...]
    name: str
    prepared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # the features' names as read, where the source has any
    index_base: int | None = None  # what the source counted features from, 0 or 1, where it writes their numbers
    among: NDArray[np.bool_] | None = None  # which labels are available, T × K; None: all
    worth: Matrix | None = None  # what the right label earns, T × 1, or what each would, T × K; None: right is 1

    @classmethod
    def from_arrays(cls, X: Any, y: Any, classes: Iterable[Label] | None = None, name: str = "arrays") -> Self:
        """A stream of arrays: X dense or any scipy sparse matrix, y labels of any kind, which stay as they are."""
        return cls(**settled(block_of(X, y, name), None if classes is None else given(classes), None, name))

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, rounds={self.n_rounds}, features={self.n_features}, classes={self.n_classes})"

    def part(self, rounds: slice | Integers) -> "Stream":
        """Some of the rounds."""
        return replace(
            self,
            rows=MeasuredRows(self.rows.X[rounds], self.rows.norms[rounds]),
            y=self.y[rounds],
            among=None if self.among is None else self.among[rounds],
            worth=None if self.worth is None else self.worth[rounds],
        )

    @property
    def X(self) -> Rows:  # noqa: N802
        """The rows, T × d."""
        return self.rows.X

    @property
    def norms(self) -> Vector:
        """‖x‖ of every row."""
        return self.rows.norms

    @cached_property
    def checked(self) -> CheckedRows:
        """The rows as a learner plays them; refused if a norm is out of range."""
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
    """Rounds read as they are played, in bounded memory: an iterable of (X, y), each some rounds in a row.

    `parts()` gives the same rounds as small streams. A file can be iterated again and again, standard input once.
    """

    classes: tuple[Label, ...]
    n_features: int
    name: str
    parts: Callable[[], Iterator[Stream]] = field(repr=False)
    n_rounds: int | None = None  # None: not known before the end
    prepared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # the features' names as read, where the file was looked through before
    index_base: int | None = None  # as in a stream; None also where only the first rows will show it
    norm: float | None = None  # the largest ‖x‖, where the file was looked through before
    once: bool = False  # can be read once, as standard input

    def measured_norm(self) -> float | None:
        """The largest ‖x‖, if need be by a pass over the file; None of what can be read only once."""
        if self.norm is not None or self.once:
            return self.norm
        return max((part.norm for part in self.parts()), default=0.0)

    def __iter__(self) -> Iterator[Chunk]:
        for part in self.parts():
            yield part.X, part.y

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)


def relabelled(classes: tuple[Label, ...]) -> tuple[str, ...]:
    """How the labels were prepared, in words."""
    return () if classes == tuple(range(len(classes))) else ("labels relabelled 0..K-1",)


def settle(
    labels: Iterable[Label], text: bool, widest: int, classes: tuple[Label, ...] | None, width: int | None, name: str
) -> tuple[tuple[Label, ...], int]:
    """Classes and width: as given, else as found."""
    if not widest and width is None:
        raise StreamError(name, "no round has a feature: say n_features=... if that is right")
    if classes is None:
        try:
            classes = discover(labels, text)
        except InputError as error:
            raise StreamError(name, str(error)) from None
    return classes, width or widest


def settled(
    block: Block, classes: tuple[Label, ...] | None, width: int | None, name: str, codes: Codes | None = None
) -> dict[str, Any]:
    """The fields of a `Stream` that is one block. `codes`: those of the classes, where they are at hand."""
    rows = measure(block)
    check_labels(block, listed=classes is not None)
    classes, width = settle(block.labels, block.text, block.X.shape[1], classes, width, name)
    codes = codes or Codes(classes, block.text)
    return {
        "rows": rows._replace(X=rows_of(block, width)),
        "y": labels_of(block, codes),
        "among": among_of(block, codes),
        "worth": worth_of(block),
        "classes": classes,
        "name": name,
        "prepared": relabelled(classes),
        "notes": block.notes,
        "columns": block.columns,
        "index_base": block.index_base,
    }


def block_of(X: Any, y: Any, name: str) -> Block:
    """Arrays as one block."""
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

    def blame(row: int, problem: str) -> InputError:
        return StreamError(name, f"X[{row}]: {problem}")

    try:
        return Block(rows, *distinct(labels), blame)
    except TypeError:
        raise StreamError(name, "y must hold plain labels, such as words or numbers") from None
