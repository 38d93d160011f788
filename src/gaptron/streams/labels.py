"""Labels: what a source calls its classes, and the codes 0..K-1 they become.

Arrays, .npz and Parquet have types, and their labels stay as they are: 3 and "3" are two classes. Text has no types: if
every label of a text file is a whole number (3, 3.0, +3), its labels are numbers, else they are texts as written.
"03" is a text, for leading zeros are often part of a name.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gaptron.errors import InputError
from gaptron.text_numbers import as_number, as_whole
from gaptron.types import Integers
from gaptron.validation import Classes, is_missing

Label = Any


def tidy(labels: Iterable[Any]) -> tuple[Any, ...]:
    """The labels of a text as whole numbers if all of them are, else as texts; in the given order."""
    texts = [str(label).strip() for label in labels]
    wholes = [as_whole(text) for text in texts]
    return tuple(texts) if None in wholes else tuple(wholes)


def given(classes: Iterable[Label]) -> tuple[Label, ...]:
    """The classes a user lists, checked."""
    labels = Classes(classes).labels
    if len(labels) < 2:
        raise InputError(f"classes must list at least two different labels, not {list(labels)}")
    return labels


def is_fraction(label: Label, text: bool) -> bool:
    """Is it a number but not a whole one, and so more likely a feature?"""
    number = as_number(label) if text else label
    return isinstance(number, float) and math.isfinite(number) and not number.is_integer()


def discover(labels: Iterable[Label], text: bool) -> tuple[Label, ...]:
    """The classes found in the data, sorted: numbers by value, texts by the alphabet."""
    classes = set(tidy(labels) if text else labels)
    if len(classes) < 2:
        only = next(iter(classes))
        raise InputError(f"every round has label {only}, and a stream needs two classes: list all classes=...")
    try:
        return tuple(sorted(classes))
    except TypeError:  # labels of several kinds: kind by kind
        return tuple(sorted(classes, key=lambda label: (type(label).__name__, str(label))))


class Codes:
    """The codes of labels, looked up in tables that are made once for all rounds of a source."""

    def __init__(self, classes: Sequence[Label], text: bool) -> None:
        self.classes = classes
        numbers = all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in classes)
        self._as_number = text and numbers
        spelled = text and not numbers
        self._table = {str(label) if spelled else label: code for code, label in enumerate(classes)}
        if len(self._table) < len(classes):
            raise InputError("two of the classes are written alike, and a text file cannot tell them apart")

    def of(self, names: Sequence[Label]) -> list[int]:
        """The code of each name, -1 for a name that is no class.

        A label of a text is compared with classes that are all numbers as a number, with others as it is written.
        """
        return [self._table.get(_number(name) if self._as_number else name, -1) for name in names]


def _number(text: str) -> float | int | None:
    whole = as_whole(text)
    return as_number(text) if whole is None else whole


def distinct(labels: Iterable[Label]) -> tuple[list[Label], Integers]:
    """The different labels, and for each round which of them it has; None stands for what is missing."""
    if isinstance(labels, np.ndarray) and labels.dtype == np.int64 and labels.size:
        lowest, highest = int(labels.min()), int(labels.max())
        if highest - lowest < labels.size:  # near each other: a table tells them apart, which takes no sorting
            there = np.zeros(highest - lowest + 1, dtype=np.bool_)
            there[labels - lowest] = True
            return (np.flatnonzero(there) + lowest).tolist(), (np.cumsum(there) - 1)[labels - lowest]
    if isinstance(labels, np.ndarray) and labels.dtype.kind != "O":
        names, inverse = np.unique(labels, return_inverse=True)
        return names.tolist(), inverse.astype(np.int64)
    table: dict[Label, int] = {}
    plain = (label.item() if isinstance(label, np.generic) else label for label in labels)
    marks = [table.setdefault(None if is_missing(label) else label, len(table)) for label in plain]
    return list(table), np.array(marks, dtype=np.int64)
