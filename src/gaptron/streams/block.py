"""A block: rounds as a reader found them, before classes and width are settled."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gaptron.errors import InputError, StreamError
from gaptron.streams.labels import Label, distinct, first_broken, spelling
from gaptron.streams.rows import Rows, csr, first_not_finite, row_of
from gaptron.types import Integers

Blame = Callable[[int, str], InputError]
"""Makes the error for a problem in one row, which names its place in the source."""


class Block(NamedTuple):
    """Some rounds in a row."""

    X: Rows
    names: list[Label]  # the different labels
    marks: Integers  # which of them each round has
    blame: Blame
    base: int = 0  # what the source counts features from
    columns: tuple[str, ...] = ()  # the features' names, where the source is a table with names


def blame_row(source: str, first: int = 0) -> Blame:
    """Name the row, for sources that have no lines."""
    return lambda row, problem: StreamError(source, f"row {first + row + 1}: {problem}")


def marked(labels: NDArray[Any], blame: Blame) -> tuple[list[Label], Integers]:
    """The names and marks of a block with these labels."""
    if labels.dtype.kind == "f":
        broken = first_broken(labels)
        if broken is not None:
            raise blame(broken, f"label {labels[broken]:g} is not a whole number")
        labels = labels.astype(np.int64)
    return distinct(labels)


def labels_of(block: Block, codes: Mapping[str, int]) -> Integers:
    """The rounds' labels as codes."""
    table = np.array([codes.get(spelling(name), -1) for name in block.names], dtype=np.int64)
    y = table[block.marks]
    unknown = np.flatnonzero(y < 0)
    if unknown.size:
        row = int(unknown[0])
        name = block.names[block.marks[row]]
        raise block.blame(row, f"label {name} is not among the classes {_shown(codes)}")
    return y


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
            index = int(X.indices[past[0]]) + block.base
            last = n_features - 1 + block.base
            raise block.blame(
                row_of(X, int(past[0])), f"feature index {index} is past the last one, {last} (n_features={n_features})"
            )
        X = csr(X.data, X.indices, X.indptr, n_features)
    return X


def check(block: Block) -> None:
    """Refuse values that are not finite and labels that are missing."""
    row = first_not_finite(block.X)
    if row is not None:
        raise block.blame(row, "a feature is NaN or infinite: clean the data first")
    for mark, name in enumerate(block.names):
        if name == "":
            row = int(np.argmax(block.marks == mark))
            raise block.blame(row, "the label is missing: drop the round or give it a label")


def _shown(codes: Mapping[str, int]) -> str:
    names = list(codes)
    return ", ".join(names if len(names) <= 6 else [*names[:5], "...", names[-1]])
