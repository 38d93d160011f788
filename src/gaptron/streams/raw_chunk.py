"""Raw chunks: rounds as a reader found them, before the classes and the number of features are known."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gaptron.data.examples import MeasuredExamples, first_not_finite, norms
from gaptron.data.labels import is_missing
from gaptron.data.text_numbers import shown
from gaptron.errors import InputError, StreamError
from gaptron.streams.labels import Codes, Label, is_fraction
from gaptron.streams.rows import Rows, csr, row_of
from gaptron.types import Integers, Matrix, Vector

ErrorAt = Callable[[int, str], InputError]
"""Creates the error for a problem in one row; the error names the row's location in the source."""

MISSING_LABEL = "the label is missing: give the row a label, or choose unlabelled='skip'"


class RawChunk(NamedTuple):
    """Consecutive rounds of a source."""

    X: Rows
    distinct_labels: list[Label]
    label_ids: Integers  # the index in `distinct_labels` of each round's label
    error_at: ErrorAt
    text: bool = False  # are the labels text whose type is unknown?
    index_base: int | None = None  # the index of the first feature, where the source writes feature indices
    columns: tuple[str, ...] = ()  # the names of the features, where the source is a table with names
    notes: tuple[str, ...] = ()  # remarks of the reader for the user
    reward: Vector | None = None  # the reward of the true label, where the source has it
    available: "AvailableLabels | None" = None  # the available labels, where the source has them

    @property
    def all_labels(self) -> list[Label]:
        """All labels that occur, as true labels or as available ones."""
        others = () if self.available is None else self.available.groups
        return [*self.distinct_labels, *(label for group in others for label in group)]

    def row_with(self, label_id: int) -> int:
        """Return the first round with this label."""
        return int(np.argmax(self.label_ids == label_id))

    def rows_with_label(self) -> Integers | None:
        """Return the rows that have a label; None if all have one."""
        unlabelled = [at for at, label in enumerate(self.distinct_labels) if is_missing_label(label)]
        return np.flatnonzero(~np.isin(self.label_ids, unlabelled)) if unlabelled else None

    def take(self, rows: Integers) -> "RawChunk":
        """Return some of the rows."""
        labels, label_ids = _used(self.distinct_labels, self.label_ids[rows])
        available = self.available
        return self._replace(
            X=self.X[rows],
            distinct_labels=labels,
            label_ids=label_ids,
            error_at=lambda row, problem: self.error_at(int(rows[row]), problem),
            reward=None if self.reward is None else self.reward[rows],
            available=None
            if available is None
            else AvailableLabels(*_used(available.groups, available.group_ids[rows])),
        )


class AvailableLabels(NamedTuple):
    """The labels that are available in each round, as written in the source."""

    groups: list[tuple[Label, ...]]  # the distinct sets of labels
    group_ids: Integers  # the index in `groups` of each round's set


def _used(values: list[Any], ids: Integers) -> tuple[list[Any], Integers]:
    """Return the values that occur among the ids, and the ids by which they then go."""
    used, new_ids = np.unique(ids, return_inverse=True)
    return [values[at] for at in used.tolist()], new_ids.astype(np.int64)


def is_missing_label(label: Label) -> bool:
    """Is this None, NaN or blank text?"""
    return is_missing(label) or (isinstance(label, str) and not label.strip())


def row_error(source: str, first: int = 0) -> ErrorAt:
    """Return an `ErrorAt` that names the row, for sources without lines."""
    return lambda row, problem: StreamError(source, f"row {first + row + 1}: {problem}")


def label_codes(chunk: RawChunk, codes: Codes) -> Integers:
    """Return the code of each round's label."""
    table = np.array(codes.of(chunk.distinct_labels), dtype=np.int64)
    y: Integers = table[chunk.label_ids]
    unknown = np.flatnonzero(y < 0)
    if unknown.size:
        row = int(unknown[0])
        label = _quoted(chunk.distinct_labels[chunk.label_ids[row]], chunk.text)
        problem = f"label {label} is not one of the classes {_listed(codes.classes, chunk.text)}; grow=True adds it"
        raise chunk.error_at(row, problem)
    return y


def available_matrix(chunk: RawChunk, codes: Codes) -> NDArray[np.bool_] | None:
    """Return the labels available in each round, T × K; None if the source does not have them."""
    if chunk.available is None:
        return None
    groups, group_ids = chunk.available
    table = np.zeros((len(groups), len(codes.classes)), dtype=np.bool_)
    for at, labels in enumerate(groups):
        found = codes.of(labels)
        problem = None if found else "no label is available: name at least one"
        if -1 in found:
            label = _quoted(labels[found.index(-1)], chunk.text)
            problem = f"available label {label} is not one of the classes {_listed(codes.classes, chunk.text)}"
        if problem is not None:
            raise chunk.error_at(int(np.argmax(group_ids == at)), problem)
        table[at, found] = True
    return table[group_ids]


def reward_column(chunk: RawChunk) -> Matrix | None:
    """Return the reward of the true label in each round, T × 1; None if the source does not have it."""
    if chunk.reward is None:
        return None
    bad = ~((chunk.reward >= 0.0) & (chunk.reward <= 1.0))
    if bad.any():
        row = int(bad.argmax())
        raise chunk.error_at(row, f"reward {chunk.reward[row]:g} is not in [0, 1]: scale the rewards first")
    return chunk.reward[:, None]


def with_width(chunk: RawChunk, n_features: int) -> Rows:
    """Return X with `n_features` columns; raise an error if it has more."""
    X = chunk.X
    width = X.shape[1]
    if not sparse.issparse(X):
        if width != n_features:
            raise chunk.error_at(0, f"{width} features where n_features is {n_features}")
    elif width != n_features:
        too_large = np.flatnonzero(X.indices >= n_features)
        if too_large.size:
            base = chunk.index_base or 0
            index, last = int(X.indices[too_large[0]]) + base, n_features - 1 + base
            raise chunk.error_at(
                row_of(X, int(too_large[0])),
                f"feature index {index} is larger than the last one, {last} (n_features={n_features})",
            )
        X = csr(X.data, X.indices, X.indptr, n_features)
    return X


def measure(chunk: RawChunk) -> MeasuredExamples:
    """Return X with the norm of each row; raise an error if a value is not finite."""
    sizes = norms(chunk.X)
    row = first_not_finite(sizes)
    if row is not None:
        raise chunk.error_at(row, "a feature is NaN or infinite: clean the data first")
    return MeasuredExamples(chunk.X, sizes)


def check_labels(chunk: RawChunk, classes_known: bool) -> None:
    """Raise an error for missing labels and, unless the user lists the classes, for fractional numbers."""
    for label_id, label in enumerate(chunk.distinct_labels):
        if is_missing_label(label):
            raise chunk.error_at(chunk.row_with(label_id), MISSING_LABEL)
        if not classes_known and is_fraction(label, chunk.text):
            problem = f"label {label} is not a whole number: is it a feature? If it is a label, list all classes=..."
            raise chunk.error_at(chunk.row_with(label_id), problem)


def _listed(classes: Sequence[Label], text: bool) -> str:
    few = classes if len(classes) <= 6 else [*classes[:5], classes[-1]]
    names = [_quoted(label, text) for label in few]
    return ", ".join(names if len(classes) <= 6 else [*names[:5], "...", names[-1]])


def _quoted(label: Label, text: bool) -> str:
    """Format a label for an error: with quotes where 3 and "3" are different labels."""
    return shown(str(label))[1:-1] if text else shown(label) if isinstance(label, str) else str(label)
