"""Rows of a table without a label: they are skipped and counted, or refused."""

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from gaptron.errors import SettingError, StreamError
from gaptron.streams.raw_chunk import RawChunk
from gaptron.types import Integers

T = TypeVar("T")
SKIP, ERROR = "skip", "error"


class Unlabelled:
    """Skips the rows without a label, and counts them. The counts are those of the last time the file was read.

    Args:
        policy: "skip", or "error" to leave them to the check that refuses them.
    """

    def __init__(self, policy: str = SKIP) -> None:
        if policy not in (SKIP, ERROR):
            raise SettingError(f"unlabelled={policy!r} must be {SKIP!r} or {ERROR!r}")
        self.skipped = self.rows = 0
        self._skips = policy == SKIP
        self._lock = Lock()  # chunks may be read in threads

    def restart(self) -> None:
        """Count from the start of the file."""
        self.skipped = self.rows = 0

    def labelled_rows(self, raw: RawChunk) -> Integers | None:
        """Return the rows to keep; None: all."""
        chosen = raw.rows_with_label() if self._skips else None
        with self._lock:
            self.rows += len(raw.label_ids)
            self.skipped += 0 if chosen is None else len(raw.label_ids) - len(chosen)
        return chosen

    def then(self, work: Callable[[RawChunk], T], raw: RawChunk) -> T | None:
        """Apply `work` to the rows with a label; None if there are none."""
        chosen = self.labelled_rows(raw)
        if chosen is not None:
            raw = raw.take(chosen)
        return work(raw) if len(raw.label_ids) else None

    @property
    def notes(self) -> tuple[str, ...]:
        """How many rows were skipped."""
        return (f"{self.skipped:,} of {self.rows:,} rows have no label and were skipped",) if self.skipped else ()

    def no_rounds(self, source: str) -> StreamError:
        """Return the error for a source without rounds."""
        problem = f"none of its {self.rows:,} rows has a label" if self.skipped else "contains no rounds"
        return StreamError(source, problem)
