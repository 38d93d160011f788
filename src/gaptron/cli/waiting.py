"""What a terminal shows while a run takes its time: what is being done, and how far it is."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

READING, PLAYING, COMPILING = "reading", "playing", "compiling, once"


class Waiting:
    """Told of every step; a run that nobody watches has one that says nothing."""

    def __init__(self, bar: Any = None, size: int | None = None) -> None:
        self._bar = bar
        self._size = size  # of the file that is read as it is played, in bytes
        self._task = None if bar is None else bar.add_task(READING, total=None, count="")
        self._word = READING
        self._rounds = 0
        self._all: int | None = None

    def plays(self, rounds: int | None, in_memory: bool) -> None:
        """From now on rounds are played, so many where that is known."""
        self._word, self._all = PLAYING, rounds
        if in_memory:
            self._size = None

    def read(self, place: int) -> None:
        """So many bytes of the file have been read."""
        if self._bar is not None and self._size is not None:
            from rich.filesize import decimal  # noqa: PLC0415

            self._show(place, self._size, f"{decimal(place)} of {decimal(self._size)}")

    def played(self, rounds: int) -> None:
        """So many more rounds have been played."""
        self._rounds += rounds
        if self._size is None:
            of = "" if self._all is None else f" of {self._all:,}"
            self._show(self._rounds, self._all, f"{self._rounds:,}{of} rounds")

    def compiles(self) -> None:
        """Something is being compiled that was not on disk."""
        if self._bar is not None:
            self._bar.update(self._task, description=COMPILING)

    def _show(self, done: int, total: int | None, count: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, description=self._word, count=count)


@contextlib.contextmanager
def waiting(path: str, shown: bool) -> Iterator[Waiting]:
    """A bar on standard error while the block runs, if it is to be shown and that is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield Waiting()
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from gaptron.kernels.compiling import told  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"), TimeRemainingColumn())
    size = os.path.getsize(path) if os.path.isfile(path) else None
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shows = Waiting(bar, size)
        with told(shows.compiles):
            yield shows
