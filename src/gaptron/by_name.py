"""Rows by name on their way to a learner: read and checked first, encoded in the moment they are played."""

from collections.abc import Callable
from typing import Any

from gaptron.errors import NoBoundError
from gaptron.features.cells import Cell
from gaptron.features.encoder import Encoder, Given, Mark
from gaptron.features.in_file import as_tree
from gaptron.features.tables import Table
from gaptron.snapshot import same
from gaptron.types import RowsToCome, Sparse
from gaptron.validation import CheckedRow, CheckedRows


class ByName:
    """A learner's encoder.

    Args:
        encoder: what makes numbers of names and words.
        widen: called with the new width whenever rows have become wider.
    """

    def __init__(self, encoder: Encoder, widen: Callable[[int], None]) -> None:
        self.encoder = encoder
        self._widen = widen
        self._before: Mark | None = None  # the encoder before the last rows to play

    def row(self, x: Any) -> dict[str, Cell]:
        """One row, checked; nothing changes."""
        return self.encoder.read_row(x)

    def encoded(self, cells: dict[str, Cell]) -> CheckedRow:
        """One row to decide on: the encoder learns from it."""
        row = self.encoder.encode_row(cells, learn=True)
        self._widen(row.width)
        return row

    def rows(self, X: Any, *, learn: bool) -> CheckedRows:
        """Many rows, checked; they are encoded when they are asked for, in order, and then learned from or not."""
        given = self.encoder.read(X)
        size = given.rows if isinstance(given, Table) else len(given)
        come = RowsToCome(
            size, self.encoder.block_rows(given), lambda start, stop: self._block(given, start, stop, learn)
        )
        return CheckedRows(come, self.encoder.width, 1.0)

    def _block(self, given: Given, start: int, stop: int, learn: bool) -> Sparse:
        if learn:
            self._before = self.encoder.mark()
        rows, width, *_ = self.encoder.encode(given, start, stop, learn=learn)
        if learn:
            self._widen(width)
        assert isinstance(rows, Sparse)
        return rows

    def back(self, learned: int) -> None:
        """An interruption came: if the last rows were not played, they are not learned from either."""
        if self._before is not None and self.encoder.rows > learned:
            self.encoder.back_to(self._before)

    def replayed(self, X: Any, width: int) -> CheckedRows:
        """The rows that were played, made anew from X; refused if X is not all that was played, in its order."""
        fresh = Encoder(self.encoder.features)
        given = fresh.read(X)
        rows = fresh.encode(given, 0, given.rows if isinstance(given, Table) else len(given), learn=True)
        if not same(as_tree(fresh), as_tree(self.encoder)):
            raise NoBoundError("X is not the rows that were played, all of them from the first, in their order")
        return rows._replace(width=width)
