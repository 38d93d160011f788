"""Task: one run of a comparison, and the key that tells it from every other."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gaptron.experiments.record import FAILED, PUBLISHED, Record
from gaptron.version import __version__

# Whatever can change a result: what is compiled, and what plays it, judges it and writes it down.
SOURCES = (
    "types.py",
    "kernels/*.py",
    "algorithms/*.py",
    "learner.py",
    "validation.py",
    "feedback.py",
    "trace.py",
    "comparator.py",
    "experiments/run.py",
)


class Task(NamedTuple):
    """One algorithm over one stream, once."""

    stream: str  # its name, for people; what is in it is told by its hash
    algorithm: str
    feedback: str
    loss: str
    seed: int
    settings: dict[str, Any]  # what the plan sets; {}: as published
    role: str = PUBLISHED
    tuned: str | None = None
    radius: float | None = None  # where the algorithm cannot do without
    shuffle: bool = True  # permute the rounds by the seed
    bound: bool = False  # look for the best comparator in hindsight

    @property
    def words(self) -> dict[str, Any]:
        """The fields a record shares with its task, which also name a task that failed."""
        shared = ("stream", "algorithm", "feedback", "loss", "seed", "settings", "role", "tuned")
        return {name: getattr(self, name) for name in shared}

    def key(self, data: str | None) -> str:
        """A hash of all that fixes the outcome. Names and roles do not: they are ours to give."""
        # A stream that could not be read has no content but its name.
        content = {**self._asdict(), "data": data or f"unread: {self.stream}", "version": version()}
        for name in ("stream", "role", "tuned"):
            del content[name]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def failed(self, data: str | None, kind: str, message: str, traceback: str = "") -> Record:
        """The record of a failure: what was tried, and why there is no result."""
        error = {"type": kind, "message": message, "traceback": traceback}
        return Record(key=self.key(data), status=FAILED, version=version(), data=data, error=error, **self.words)


@cache
def version() -> str:
    """gaptron's version and a hash of the sources that can change a result."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()[:12]}"
