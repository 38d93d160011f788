"""A block: rounds as a reader found them, before classes and width are settled."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gaptron.errors import InputError, StreamError
from gaptron.streams.labels import Codes, Label, is_fraction
from gaptron.streams.rows import Rows, csr, row_of
from gaptron.text_numbers import shown
from gaptron.types import Integers, Matrix, Vector
from gaptron.validation import MeasuredRows, first_not_finite, is_missing, norms

Blame = Callable[[int, str], InputError]
"""Makes the error for a problem in one row, which names its place in the source."""


class Block(NamedTuple):
    """Some rounds in a row."""

    X: Rows
    names: list[Label]  # the different labels
    marks: Integers  # which of them each round has
    blame: Blame
    text: bool = False  # are the labels words of a text, whose kind is not known?
    index_base: int | None = None  # what the source counts features from, where it writes their numbers
    columns: tuple[str, ...] = ()  # the features' names, where the source is a table with names
    notes: tuple[str, ...] = ()  # what the reader did that a user should know
    reward: Vector | None = None  # what the right label is worth, where the source says it
    available: "Available | None" = None  # which labels are available, where the source says it

    @property
    def labels(self) -> list[Label]:
        """All labels that are named, right ones and available ones."""
        return self.names if self.available is None else [*self.names, *(n for g in self.available.groups for n in g)]

    def row_with(self, mark: int) -> int:
        """The first round that has this label."""
        return int(np.argmax(self.marks == mark))


class Available(NamedTuple):
    """Which labels are available in each round, as the source calls them."""

    groups: list[tuple[Label, ...]]  # the different answers
    marks: Integers  # which of them each round has


def blame_row(source: str, first: int = 0) -> Blame:
    """Name the row, for sources that have no lines."""
    return lambda row, problem: StreamError(source, f"row {first + row + 1}: {problem}")


def labels_of(block: Block, codes: Codes) -> Integers:
    """The rounds' labels as codes."""
    table = np.array(codes.of(block.names), dtype=np.int64)
    y: Integers = table[block.marks]
    unknown = np.flatnonzero(y < 0)
    if unknown.size:
        row = int(unknown[0])
        label = _as_shown(block.names[block.marks[row]], block.text)
        raise block.blame(row, f"label {label} is not among the classes {_list(codes.classes, block.text)}")
    return y


def among_of(block: Block, codes: Codes) -> NDArray[np.bool_] | None:
    """The labels available in each round, T × K; None if the source does not say it."""
    if block.available is None:
        return None
    groups, marks = block.available
    table = np.zeros((len(groups), len(codes.classes)), dtype=np.bool_)
    for at, names in enumerate(groups):
        found = codes.of(names)
        problem = None if found else "no label is available: name at least one"
        if -1 in found:
            stranger = _as_shown(names[found.index(-1)], block.text)
            problem = f"available label {stranger} is not among the classes {_list(codes.classes, block.text)}"
        if problem is not None:
            raise block.blame(int(np.argmax(marks == at)), problem)
        table[at, found] = True
    return table[marks]


def worth_of(block: Block) -> Matrix | None:
    """What the right label is worth in each round, T × 1; None if the source does not say it."""
    if block.reward is None:
        return None
    bad = ~((block.reward >= 0.0) & (block.reward <= 1.0))
    if bad.any():
        row = int(bad.argmax())
        raise block.blame(row, f"reward {block.reward[row]:g} is not in [0, 1]: scale the rewards first")
    return block.reward[:, None]


def rows_of(block: Block, n_features: int) -> Rows:
    """The rounds' rows, `n_features` wide."""
    X = block.X
    width = X.shape[1]
    if not sparse.issparse(X):
        if width != n_features:
            raise block.blame(0, f"{width} features where n_features is {n_features}")
    elif width != n_features:
        past = np.flatnonzero(X.indices >= n_features)
        if past.size:
            base = block.index_base or 0
            index, last = int(X.indices[past[0]]) + base, n_features - 1 + base
            raise block.blame(
                row_of(X, int(past[0])), f"feature index {index} is past the last one, {last} (n_features={n_features})"
            )
        X = csr(X.data, X.indices, X.indptr, n_features)
    return X


def measure(block: Block) -> MeasuredRows:
    """The rounds' rows and norms; refuses values that are not finite."""
    sizes = norms(block.X)
    row = first_not_finite(sizes)
    if row is not None:
        raise block.blame(row, "a feature is NaN or infinite: clean the data first")
    return MeasuredRows(block.X, sizes)


def check_labels(block: Block, listed: bool) -> None:
    """Refuse labels that are missing and, unless the user lists the classes, numbers that are not whole."""
    for mark, name in enumerate(block.names):
        if is_missing(name) or (isinstance(name, str) and not name.strip()):
            raise block.blame(block.row_with(mark), "the label is missing: drop the round or give it a label")
        if not listed and is_fraction(name, block.text):
            problem = f"label {name} is not a whole number: is it a feature? Else list all classes=..."
            raise block.blame(block.row_with(mark), problem)


def _list(classes: Sequence[Label], text: bool) -> str:
    few = classes if len(classes) <= 6 else [*classes[:5], classes[-1]]
    names = [_as_shown(label, text) for label in few]
    return ", ".join(names if len(classes) <= 6 else [*names[:5], "...", names[-1]])


def _as_shown(label: Label, text: bool) -> str:
    """A label in an error: with its quotes where 3 and "3" are two labels."""
    return shown(str(label))[1:-1] if text else shown(label) if isinstance(label, str) else str(label)
