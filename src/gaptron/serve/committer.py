"""Group commit: a thread writes everything that was added since its last commit in one transaction.

A caller waits until its row is on disk; all rows added meanwhile share the next commit. Rows are committed in the order
they were added, so a crash leaves a prefix of the log. If a commit fails, the models are ahead of the log, and
`on_failure` must end the process.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from gaptron.serve.events import Row
from gaptron.serve.store import Redaction, Snapshot, Store

T = TypeVar("T")


class Batch(NamedTuple):
    """The content of one commit."""

    rows: list[Row]
    snapshots: list[Snapshot]
    redactions: list[Redaction]
    callbacks: list[Callable[[], None]]  # called after the commit, in the same thread
    done: "asyncio.Future[None]"


class Committer:
    """The thread, and the rows waiting for it."""

    def __init__(self, store: Store, on_failure: Callable[[BaseException], None]) -> None:
        self._store, self._on_failure = store, on_failure
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._wake_up = threading.Event()
        self._added: list[Row] = []  # used by the event loop only
        self._next = self._new_batch()
        self._in_flight: Batch | None = None
        self._closing = False
        self.committed = 0  # seq of the last row on disk
        self.commits = 0
        self.rows = 0  # written since the start
        self.seconds = 0.0  # spent in commits
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    @property
    def uncommitted(self) -> int:
        """The number of rows that are not on disk yet."""
        with self._lock:
            in_flight = 0 if self._in_flight is None else len(self._in_flight.rows)
            return len(self._added) + len(self._next.rows) + in_flight

    def add(self, row: Row) -> None:
        """Schedule a row. Rows added without an await in between are in the same commit."""
        self._added.append(row)

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Schedule a snapshot, in the same commit as the rows added before it."""
        self._hand_over(snapshots=[snapshot])

    def add_redaction(self, redaction: Redaction) -> None:
        """Schedule a redaction, in the same commit as the rows added before it."""
        self._hand_over(snapshots=[] if redaction.start is None else [redaction.start], redactions=[redaction])

    def _hand_over(self, snapshots: Sequence[Snapshot] = (), redactions: Sequence[Redaction] = ()) -> None:
        """Pass the added rows and these to the thread together."""
        if self._added or snapshots or redactions:
            with self._lock:
                self._next.rows.extend(self._added)
                self._next.snapshots.extend(snapshots)
                self._next.redactions.extend(redactions)
            self._added = []
            self._wake_up.set()

    async def wait_for(self, seq: int) -> None:
        """Wait until this row is on disk."""
        self._hand_over()
        while self.committed < seq:
            with self._lock:
                batch = self._in_flight
                done = batch.done if batch and batch.rows and seq <= batch.rows[-1].seq else self._next.done
            await asyncio.shield(done)

    async def call(self, callback: Callable[[], T]) -> T:
        """Call a function in the writing thread, between two commits."""
        self._hand_over()
        result: list[T] = []
        with self._lock:
            self._next.callbacks.append(lambda: result.append(callback()))
            done = self._next.done
        self._wake_up.set()
        await asyncio.shield(done)
        return result[0]

    async def close(self) -> None:
        """Commit the remaining rows and end the thread."""
        self._hand_over()
        self._closing = True
        self._wake_up.set()
        await asyncio.to_thread(self._thread.join)

    def _new_batch(self) -> Batch:
        return Batch([], [], [], [], self._loop.create_future())

    def _run(self) -> None:
        while True:
            self._wake_up.wait()
            self._wake_up.clear()
            with self._lock:
                batch = self._next
                if batch.rows or batch.snapshots or batch.redactions or batch.callbacks:
                    self._next, self._in_flight = self._new_batch(), batch
                elif self._closing:
                    return
                else:
                    continue
            started = time.perf_counter()
            try:
                if batch.rows or batch.snapshots or batch.redactions:
                    self._store.append(batch.rows, batch.snapshots, batch.redactions)
                for callback in batch.callbacks:
                    callback()
            except BaseException as problem:  # whatever the reason, memory and log differ
                self._on_failure(problem)
                return
            self.seconds += time.perf_counter() - started
            self.commits += 1
            self.rows += len(batch.rows)
            if self._closing:
                self._wake_up.set()
            self._notify(batch)

    def _notify(self, batch: Batch) -> None:
        def done() -> None:
            if batch.rows:
                self.committed = max(self.committed, batch.rows[-1].seq)
            if self._in_flight is batch:
                self._in_flight = None
            if not batch.done.done():
                batch.done.set_result(None)

        try:
            self._loop.call_soon_threadsafe(done)
        except RuntimeError:
            pass  # the event loop has ended; nobody waits
