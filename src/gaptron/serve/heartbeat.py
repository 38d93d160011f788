"""The heartbeat: renews the lease in a separate thread, whatever the rest of the process is busy with.

Replaying a long log or compiling may take longer than the lease. Without a heartbeat meanwhile, a standby would take
the lease over, replay in turn, and lose it again.
"""

import threading
from collections.abc import Callable

from gaptron.serve.store import SharedStore


class Heartbeat:
    """The thread. It ends with the process, or with `stop`."""

    def __init__(self, store: SharedStore, on_failure: Callable[[BaseException], None]) -> None:
        self._store, self._on_failure = store, on_failure
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                self._store.heartbeat()
            except BaseException as problem:  # the lease is lost, or the database: nothing can be written any more
                if not self._stopping.is_set():
                    self._on_failure(problem)
                return
            if self._stopping.wait(self._store.heartbeat_interval):
                return
