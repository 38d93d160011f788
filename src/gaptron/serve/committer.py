"""Group commit: a thread of its own writes what has gathered since its last commit, all at once.

A caller waits until its row is on disk, and shares the wait with everybody whose rows are in the same commit. Rows are
committed in the order they were added, so that what survives a crash is a beginning of the log. If a commit fails, the
models are ahead of the log: `failed` must end the process.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from gaptron.serve.entries import Row
from gaptron.serve.store import Forgetting, Snapshot, Store

T = TypeVar("T")


class Batch(NamedTuple):
    """What goes into one commit."""

    rows: list[Row]
    snapshots: list[Snapshot]
    forgettings: list[Forgetting]
    chores: list[Callable[[], None]]  # done after the commit, in the same thread
    done: "asyncio.Future[None]"


class Committer:
    """The thread, and the rows that wait for it."""

    def __init__(self, store: Store, failed: Callable[[BaseException], None]) -> None:
        self._store, self._failed = store, failed
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._gathered: list[Row] = []  # of the event loop alone
        self._next = self._new_batch()
        self._flying: Batch | None = None
        self._closing = False
        self.committed = 0  # seq of the last row on disk
        self.commits = 0
        self.rows = 0  # written since the start
        self.seconds = 0.0  # spent in commits
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows that are not on disk yet."""
        with self._guard:
            return len(self._gathered) + len(self._next.rows) + (0 if self._flying is None else len(self._flying.rows))

    def add(self, row: Row) -> None:
        """Let a row be written. What is added without a pause of the event loop goes into one commit."""
        self._gathered.append(row)

    def _hand_over(self, snapshots: Sequence[Snapshot] = (), forgettings: Sequence[Forgetting] = ()) -> None:
        """Give the thread what has gathered, and these, all at once."""
        if self._gathered or snapshots or forgettings:
            with self._guard:
                self._next.rows.extend(self._gathered)
                self._next.snapshots.extend(snapshots)
                self._next.forgettings.extend(forgettings)
            self._gathered = []
            self._wake.set()

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Let a snapshot be written, together with the rows that were added."""
        self._hand_over(snapshots=[snapshot])

    def forget(self, forgetting: Forgetting) -> None:
        """Let decisions be forgotten, together with the rows that were added."""
        self._hand_over(snapshots=[forgetting.start], forgettings=[forgetting])

    async def until(self, seq: int) -> None:
        """Wait until this row is on disk."""
        self._hand_over()
        while self.committed < seq:
            with self._guard:
                flying = self._flying
                done = flying.done if flying and flying.rows and seq <= flying.rows[-1].seq else self._next.done
            await asyncio.shield(done)

    async def call(self, chore: Callable[[], T]) -> T:
        """Do something else with the connection that writes, between two commits."""
        self._hand_over()
        result: list[T] = []
        with self._guard:
            self._next.chores.append(lambda: result.append(chore()))
            done = self._next.done
        self._wake.set()
        await asyncio.shield(done)
        return result[0]

    async def close(self) -> None:
        """Write what is left and end."""
        self._hand_over()
        self._closing = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)

    def _new_batch(self) -> Batch:
        return Batch([], [], [], [], self._loop.create_future())

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            with self._guard:
                batch = self._next
                if batch.rows or batch.snapshots or batch.chores:
                    self._next, self._flying = self._new_batch(), batch
                elif self._closing:
                    return
                else:
                    continue
            started = time.perf_counter()
            try:
                if batch.rows or batch.snapshots:
                    self._store.append(batch.rows, batch.snapshots, batch.forgettings)
                for chore in batch.chores:
                    chore()
            except BaseException as problem:  # whatever it is, the log is not what memory says
                self._failed(problem)
                return
            self.seconds += time.perf_counter() - started
            self.commits += 1
            self.rows += len(batch.rows)
            if self._closing:
                self._wake.set()
            self._tell(batch)

    def _tell(self, batch: Batch) -> None:
        def done() -> None:
            if batch.rows:
                self.committed = max(self.committed, batch.rows[-1].seq)
            if self._flying is batch:
                self._flying = None
            if not batch.done.done():
                batch.done.set_result(None)

        try:
            self._loop.call_soon_threadsafe(done)
        except RuntimeError:
            pass  # the loop has ended; nobody waits
