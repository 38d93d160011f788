"""Who waits is told that something is being compiled; what comes from the cache on disk is not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Event, Listener, install_listener


class _Teller(Listener):  # type: ignore[misc]
    def __init__(self, begun: Callable[[], None]) -> None:
        self._begun = begun

    def on_start(self, event: Event) -> Any:
        self._begun()

    def on_end(self, event: Event) -> Any:
        pass


@contextmanager
def told(begun: Callable[[], None]) -> Iterator[None]:
    """Call `begun` whenever the compiler begins."""
    with install_listener("numba:compile", _Teller(begun)):
        yield
