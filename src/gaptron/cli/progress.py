"""The progress bar of a run on a terminal."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

READING, PLAYING, COMPILING = "reading", "playing", "compiling, once"


class ProgressBar:
    """Shows the current step and how far it is; without a `bar` it shows nothing."""

    def __init__(self, bar: Any = None, size: int | None = None) -> None:
        self._bar = bar
        self._size = size  # in bytes, of the file that is read while it is played
        self._task = None if bar is None else bar.add_task(READING, total=None, count="")
        self._step = READING
        self._rounds = 0
        self._n_rounds: int | None = None

    def start_playing(self, n_rounds: int | None, in_memory: bool) -> None:
        """Show from now on how many rounds have been played, of `n_rounds` if this is known."""
        self._step, self._n_rounds = PLAYING, n_rounds
        if in_memory:
            self._size = None

    def read(self, position: int) -> None:
        """Show that this many bytes of the file have been read."""
        if self._bar is not None and self._size is not None:
            from rich.filesize import decimal  # noqa: PLC0415

            self._show(position, self._size, f"{decimal(position)} of {decimal(self._size)}")

    def played(self, rounds: int) -> None:
        """Show that this many more rounds have been played."""
        self._rounds += rounds
        if self._size is None:
            total = "" if self._n_rounds is None else f" of {self._n_rounds:,}"
            self._show(self._rounds, self._n_rounds, f"{self._rounds:,}{total} rounds")

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Show in this context when code is compiled that is not in the cache on disk."""
        if self._bar is None:
            yield
            return
        from gaptron.kernels.compile.jit import when_compiling  # noqa: PLC0415

        with when_compiling(lambda: self._bar.update(self._task, description=COMPILING)):
            yield

    def _show(self, done: int, total: int | None, count: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, description=self._step, count=count)


@contextlib.contextmanager
def progress_bar(path: str, enabled: bool) -> Iterator[ProgressBar]:
    """Show a bar on standard error in this context, if it is enabled and standard error is a terminal."""
    if not (enabled and sys.stderr.isatty()):
        yield ProgressBar()
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"), TimeRemainingColumn())
    size = os.path.getsize(path) if os.path.isfile(path) else None
    with Progress(*columns, console=Console(stderr=True), transient=True) as rich_bar:
        bar = ProgressBar(rich_bar, size)
        with bar.compiling():
            yield bar
