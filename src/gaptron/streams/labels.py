"""Labels: what a source calls its classes, and the codes 0..K-1 they become.

Labels are matched by their spelling, so 3, 3.0, "3" and "3.0" name one class. "03" stays a text: leading
zeros are often part of a name.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Integers

Label = int | str

_WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_EXACT = 2.0**53  # past this, floats skip whole numbers


def spelling(label: Label) -> str:
    """The one way to write a label."""
    text = str(label).strip()
    if _WHOLE.fullmatch(text):
        return str(int(text))
    if _NUMBER.fullmatch(text) and abs(float(text)) < _EXACT and float(text).is_integer():
        return str(int(float(text)))
    return text


def tidy(labels: Iterable[Label]) -> tuple[Label, ...]:
    """The labels as whole numbers if all of them are, else as texts; in the given order."""
    texts = [spelling(label) for label in labels]
    return tuple(int(text) for text in texts) if all(map(_WHOLE.fullmatch, texts)) else tuple(texts)


def given(classes: Iterable[Label]) -> tuple[Label, ...]:
    """The classes a user lists, checked."""
    named = tidy(classes)
    if len(set(named)) < max(2, len(named)):
        raise InputError(f"classes must list at least two different labels, not {list(named)}")
    return named


def discover(labels: Iterable[Label]) -> tuple[Label, ...]:
    """The classes found in the data, sorted: whole numbers by value, texts by the alphabet."""
    texts = {spelling(label) for label in labels}
    for text in sorted(texts):
        if _NUMBER.fullmatch(text) and not _WHOLE.fullmatch(text):
            raise InputError(
                f"label {text} is a number but not a whole one: is it a feature? Else list all classes=..."
            )
    if len(texts) < 2:
        raise InputError(f"every round has label {min(texts)}, and a stream needs two classes: list all classes=...")
    if all(map(_WHOLE.fullmatch, texts)):
        return tuple(sorted(map(int, texts)))
    return tuple(sorted(texts))


def codes(classes: Sequence[Label]) -> dict[str, int]:
    """Spelling → code."""
    return {spelling(label): code for code, label in enumerate(classes)}


def distinct(labels: NDArray[np.generic]) -> tuple[list[Label], Integers]:
    """The different labels of a column, and for each round which of them it has."""
    if labels.dtype.kind == "O":
        labels = np.array(["" if label is None else spelling(label) for label in labels.tolist()])
    if labels.dtype.kind in "bS":
        labels = labels.astype(np.int64 if labels.dtype.kind == "b" else np.str_)
    names, inverse = np.unique(labels, return_inverse=True)
    return names.tolist(), inverse.astype(np.int64)


def first_broken(labels: NDArray[np.float64]) -> int | None:
    """The first position whose label is not a whole number, None if all are."""
    bad = np.flatnonzero(~((np.abs(labels) < _EXACT) & (labels == np.round(labels))))
    return int(bad[0]) if bad.size else None
