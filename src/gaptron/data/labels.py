"""Labels: the caller's names of the classes, and their codes."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Integers


@dataclass(frozen=True, eq=False, slots=True)
class EncodedLabels:
    """Labels that have been encoded already: code k means classes[k]."""

    codes: Integers
    classes: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.codes)


Labels = Sequence[Any] | NDArray[Any] | EncodedLabels


def is_missing(label: Any) -> bool:
    """Whether this is None or NaN, which mean that there is no label."""
    return label is None or (isinstance(label, float) and math.isnan(label))


class Classes:
    """The labels of a caller, and their codes 0..K-1. Labels stay as they are: 3 and "3" are two labels.

    Args:
        labels: the labels, in the order of their codes.

    Raises:
        InputError: a label is missing (None or NaN), appears twice, or cannot be a key of a dict.
    """

    def __init__(self, labels: Iterable[Any]) -> None:
        try:
            self.labels = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        except TypeError:
            raise InputError(f"classes={labels!r} must be a list of labels") from None
        for label in self.labels:
            if is_missing(label):
                raise InputError(f"classes holds {label!r}, which means that a label is missing: use a string for it")
        try:
            self._codes = {label: code for code, label in enumerate(self.labels)}
        except TypeError:
            raise InputError("classes must be plain labels, such as strings or numbers") from None
        if len(self._codes) != len(self.labels):
            raise InputError("classes holds a label twice")
        self._plain = {type(label) for label in self.labels} == {int} and self.labels == tuple(range(len(self.labels)))
        self._array = _as_array(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, label: Any) -> int:
        """The code of one label."""
        if isinstance(label, np.generic):
            label = label.item()
        try:
            return self._codes[label]
        except (KeyError, TypeError):
            raise InputError(self._unknown(label)) from None

    def codes(self, y: Labels) -> Integers:
        """The codes of many labels."""
        if isinstance(y, EncodedLabels):
            if self.labels not in (y.classes, tuple(range(len(y.classes)))):
                raise InputError(
                    "the labels of this stream are not the learner's: give the learner classes=stream.classes"
                )
            return np.array(y.codes, dtype=np.int64)
        # A list may mix strings and numbers, which an array would turn into strings.
        labels = np.asarray(y) if not isinstance(y, (list, tuple)) or self._plain else _as_they_are(y)
        if labels.ndim != 1:
            raise InputError(f"y must have one dimension; it has {labels.ndim}")
        if self._plain and labels.dtype.kind in "iu":
            bad = (labels < 0) | (labels >= len(self))
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                raise InputError(f"row {at}: {self._unknown(labels[at].item())}")
            return labels.astype(np.int64)
        codes = np.empty(len(labels), dtype=np.int64)
        known = self._codes
        for at, label in enumerate(labels.tolist()):
            try:
                codes[at] = known[label]
            except (KeyError, TypeError):
                raise InputError(f"row {at}: {self._unknown(label)}") from None
        return codes

    def decode(self, codes: Integers) -> NDArray[Any]:
        """The labels of many codes."""
        return codes.copy() if self._plain else self._array[codes]

    def _unknown(self, label: Any) -> str:
        if is_missing(label):
            return "the label is missing"
        shown = ", ".join(map(repr, self.labels[:5])) + (", ..." if len(self) > 5 else "")
        return f"label {label!r} is not one of the {len(self)} classes ({shown})"


def _as_array(labels: tuple[Any, ...]) -> NDArray[Any]:
    """The labels as a typed array if that preserves every one of them exactly, otherwise as an array of objects."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        typed = np.array(labels)
        back = typed.tolist()
        if typed.dtype.kind != "O" and back == list(labels) and {type(label) for label in back} == kinds:
            return typed
    return _as_they_are(labels)


def _as_they_are(y: Sequence[Any]) -> NDArray[Any]:
    labels = np.empty(len(y), dtype=object)
    for at, label in enumerate(y):
        labels[at] = label.item() if isinstance(label, np.generic) else label
    return labels
