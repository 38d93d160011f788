"""Labels as a source writes them, and the codes 0..K-1 that they become.

Arrays, .npz and Parquet have types, and their labels keep them: 3 and "3" are two classes. Text has no types: if every
label of a text file is a whole number (3, 3.0, +3), its labels are numbers, otherwise they are text as written.
"03" is text, because leading zeros are often part of a name.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gaptron.data.labels import Classes, is_missing
from gaptron.data.text_numbers import as_number, as_whole
from gaptron.errors import InputError
from gaptron.types import Integers

Label = Any


def parse_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    """Return the labels of a text as whole numbers if all of them are, otherwise as text."""
    texts = [str(label).strip() for label in labels]
    wholes = [as_whole(text) for text in texts]
    return tuple(texts) if None in wholes else tuple(wholes)


def check_classes(classes: Iterable[Label]) -> tuple[Label, ...]:
    """Check the classes that a user lists."""
    labels = Classes(classes).labels
    if len(labels) < 2:
        raise InputError(f"classes must list at least two different labels, not {list(labels)}")
    return labels


def is_fraction(label: Label, text: bool) -> bool:
    """Is the label a number that is not whole, and so more likely a feature?"""
    number = as_number(label) if text else label
    return isinstance(number, float) and math.isfinite(number) and not number.is_integer()


def discover(labels: Iterable[Label], text: bool) -> tuple[Label, ...]:
    """Return the sorted classes found in the data: numbers by value, text alphabetically."""
    classes = set(parse_labels(labels) if text else labels)
    if len(classes) < 2:
        only = next(iter(classes))
        raise InputError(f"every round has label {only}, but a stream needs two classes: list all classes=...")
    return _sorted(classes)


def with_new_labels(classes: tuple[Label, ...], labels: Iterable[Label], text: bool) -> tuple[Label, ...]:
    """Return the classes and, after them, the sorted labels that are not among them."""
    codes, labels = Codes(classes, text), list(labels)
    new = {label for label, code in zip(labels, codes.of(labels)) if code < 0}
    return classes + _sorted(set(parse_labels(new)) if codes.as_number else new)


def _sorted(classes: set[Label]) -> tuple[Label, ...]:
    try:
        return tuple(sorted(classes))
    except TypeError:  # labels of several types: one type after the other
        return tuple(sorted(classes, key=lambda label: (type(label).__name__, str(label))))


class Codes:
    """Looks up the codes of labels. The lookup table is built once for all rounds of a source."""

    def __init__(self, classes: Sequence[Label], text: bool) -> None:
        self.classes = classes
        numbers = all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in classes)
        self.as_number = text and numbers
        as_text = text and not numbers
        self._table = {str(label) if as_text else label: code for code, label in enumerate(classes)}
        if len(self._table) < len(classes):
            raise InputError("two of the classes are written alike, so labels in a text file cannot be told apart")

    def of(self, labels: Sequence[Label]) -> list[int]:
        """Return the code of each label, -1 for a label that is not a class.

        If all classes are numbers, a label in text is compared as a number, otherwise as it is written.
        """
        return [self._table.get(_number(label) if self.as_number else label, -1) for label in labels]


def _number(text: str) -> float | int | None:
    whole = as_whole(text)
    return as_number(text) if whole is None else whole


def distinct(labels: Iterable[Label]) -> tuple[list[Label], Integers]:
    """Return the distinct labels and, for each round, the index of its label. Missing labels become None."""
    if isinstance(labels, np.ndarray) and labels.dtype == np.int64 and labels.size:
        lowest, highest = int(labels.min()), int(labels.max())
        if highest - lowest < labels.size:  # in a narrow range: a table of flags is faster than sorting
            found = np.zeros(highest - lowest + 1, dtype=np.bool_)
            found[labels - lowest] = True
            return (np.flatnonzero(found) + lowest).tolist(), (np.cumsum(found) - 1)[labels - lowest]
    if isinstance(labels, np.ndarray) and labels.dtype.kind != "O":
        values, inverse = np.unique(labels, return_inverse=True)
        return values.tolist(), inverse.astype(np.int64)
    table: dict[Label, int] = {}
    plain = (label.item() if isinstance(label, np.generic) else label for label in labels)
    ids = [table.setdefault(None if is_missing(label) else label, len(table)) for label in plain]
    return list(table), np.array(ids, dtype=np.int64)


def distinct_text(column: Any, parse: Callable[[str], Any]) -> tuple[list[Any], Integers]:
    """Return the distinct parsed values of a list or Arrow array of text and, for each row, the index of its value."""
    if isinstance(column, list):
        return distinct(map(parse, column))
    cells = column.combine_chunks().dictionary_encode()  # each distinct text is parsed once
    values, ids = distinct(map(parse, cells.dictionary.to_pylist()))
    return values, ids[cells.indices.to_numpy()]
