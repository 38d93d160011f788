"""A stream: rounds in order, in memory (`Stream`) or read as they are played (`Chunks`)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np

from gaptron.errors import InputError, StreamError
from gaptron.streams.block import Block, check, labels_of, marked, rows_of
from gaptron.streams.labels import Label, codes, discover, given
from gaptron.streams.rows import Rows, norms, tidy_rows
from gaptron.types import Integers

Chunk = tuple[Rows, Integers]


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """Rounds in memory. Nobody checks them again.

    X is a C-contiguous array of floats or a canonical `csr_array`; y holds the codes 0..K-1, and classes[code]
    is the label the source used.
    """

    X: Rows
    y: Integers
    classes: tuple[Label, ...]
    name: str
    prepared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # the features' names as read, where the source has any

    @classmethod
    def from_arrays(cls, X: Any, y: Any, classes: Iterable[Label] | None = None, name: str = "arrays") -> Self:
        """A stream of arrays: X dense or any scipy sparse matrix, y whole numbers or texts."""
        return cls(**settled(block_of(X, y, name), classes, None, name))

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
        return float(norms(self.X).max())


@final
@dataclass(frozen=True, eq=False)
class Chunks:
    """Rounds read as they are played, in bounded memory: an iterable of (X, y), each some rounds in a row.

    A file can be iterated again and again, standard input once.
    """

    classes: tuple[Label, ...]
    n_features: int
    name: str
    read: Callable[[], Iterator[Chunk]] = field(repr=False)
    n_rounds: int | None = None  # None: not known before the end
    prepared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # the features' names as read, where the file was looked through before

    def __iter__(self) -> Iterator[Chunk]:
        return self.read()

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)


def relabelled(classes: tuple[Label, ...]) -> tuple[str, ...]:
    """How the labels were prepared, in words."""
    return () if classes == tuple(range(len(classes))) else ("labels relabelled 0..K-1",)


def settle(
    labels: Iterable[Label], widest: int, classes: Iterable[Label] | None, n_features: int | None, name: str
) -> tuple[tuple[Label, ...], int]:
    """Classes and width: as given, else as found."""
    if not widest and n_features is None:
        raise StreamError(name, "no round has a feature: say n_features=... if that is right")
    try:
        named = discover(labels) if classes is None else given(classes)
    except InputError as error:
        raise StreamError(name, str(error)) from None
    return named, n_features or widest


def settled(block: Block, classes: Iterable[Label] | None, n_features: int | None, name: str) -> dict[str, Any]:
    """The fields of a `Stream` that is one block."""
    check(block)
    named, width = settle(block.names, block.X.shape[1], classes, n_features, name)
    return {
        "X": rows_of(block, width),
        "y": labels_of(block, codes(named)),
        "classes": named,
        "name": name,
        "prepared": relabelled(named),
        "columns": block.columns,
    }


def block_of(X: Any, y: Any, name: str) -> Block:
    """Arrays as one block."""
    labels = np.asarray(y)
    try:
        rows = tidy_rows(X)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: X must be a matrix of numbers ({error})") from None
    if rows.ndim != 2 or labels.ndim != 1 or rows.shape[0] != len(labels) or 0 in rows.shape:
        raise InputError(
            f"{name}: X needs a row for each label and at least one column, but X is {rows.shape} and y {labels.shape}"
        )

    def blame(row: int, problem: str) -> InputError:
        return StreamError(name, f"X[{row}]: {problem}")

    return Block(rows, *marked(labels, blame), blame)
