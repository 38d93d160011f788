"""Which files a saved model learned from, so that `gaptron evaluate` can warn before it is evaluated on them again."""

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaptron import Learner

LISTED = 32  # files that a model remembers, the last ones
PART = 1 << 20  # bytes of the start and the end of a file that tell it from others
NAME = "learned_from"


def remember_file(learner: "Learner", path: str) -> None:
    """Keep in a learner that it learned from this file; a name or standard input is not a file."""
    if os.path.isfile(path):
        known = [digest for digest in _known(learner) if digest != _digest(path)]
        learner.reading[NAME] = " ".join([*known, _digest(path)][-LISTED:])


def has_learned_from(learner: "Learner", path: str) -> bool:
    """Whether the learner learned from a file with the same content."""
    return os.path.isfile(path) and _digest(path) in _known(learner)


def _known(learner: "Learner") -> list[str]:
    return str(learner.reading.get(NAME, "")).split()


def _digest(path: str) -> str:
    """Return a digest of the size of a file, its start and its end."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(PART)
        file.seek(max(0, size - PART))
        end = file.read(PART)
    return hashlib.blake2b(b"%d " % size + start + end, digest_size=8).hexdigest()
