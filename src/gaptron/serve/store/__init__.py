"""Where the log lies: what a store must be able to do, and which one a name stands for."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from gaptron.errors import SettingError
from gaptron.serve.entries import Row


class AwayError(SettingError):
    """The store cannot be reached."""


class Snapshot(NamedTuple):
    """A model as it was after entry `seq`."""

    model: str
    seq: int
    body: bytes


class Key(NamedTuple):
    """A key, without its secret."""

    id: str
    hash: bytes
    roles: str  # words with spaces between
    model: str | None  # the one it is for; None: all
    revoked: bool


class Found(NamedTuple):
    """A decision of the log, and its answer if there is one."""

    decision: Row
    outcome: Row | None


class Store(Protocol):
    """The log, the snapshots and the keys. Only the one that leads may append."""

    quick: bool
    """Does `find` answer so soon that waiting for it in the event loop does no harm?"""

    def lead(self) -> bool:
        """Become the one that writes, if nobody is. False: another leads, ask again later."""
        ...

    def beat(self) -> None:
        """Still here. Raises if another leads now."""
        ...

    def append(self, rows: list[Row], snapshots: Iterable[Snapshot] = ()) -> None:
        """Add rows and snapshots, all or none; they are safe when this returns. Raises if another leads now.

        Of each model the two newest snapshots are kept.
        """
        ...

    def last(self) -> tuple[int, int]:
        """seq and time of the last row; zeros if there is none."""
        ...

    def models(self) -> list[tuple[str, int]]:
        """name and seq of each model's first row."""
        ...

    def read(
        self, after: int = 0, model: str | None = None, upto: int | None = None
    ) -> Iterator[tuple[Row, Row | None]]:
        """The rows after `after` in their order; beside an outcome stands the row of its decision."""
        ...

    def find(self, model: str, events: list[str]) -> dict[str, Found]:
        """The decisions of these events, as far as there are any."""
        ...

    def snapshots(self) -> list[tuple[str, int]]:
        """model and seq of each snapshot, in the order of seq."""
        ...

    def snapshot(self, model: str, seq: int) -> bytes:
        """One of them."""
        ...

    def add_key(self, key: Key) -> None:
        """Keep a key."""
        ...

    def keys(self) -> list[Key]:
        """All keys, revoked ones too."""
        ...

    def revoke_key(self, id: str) -> bool:
        """False: there is no such key."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


def open_store(place: str) -> Store:
    """The store at a place: a folder (SQLite), or postgresql://..."""
    if place.startswith(("postgresql://", "postgres://")):
        try:
            from gaptron.serve.store.postgres import PostgresStore  # noqa: PLC0415
        except ImportError:
            raise SettingError("PostgreSQL needs psycopg: pip install 'gaptron[postgres]'") from None
        return PostgresStore(place)
    if "://" in place:
        raise SettingError(f"--store {place}: a store is a folder or postgresql://...")
    from gaptron.serve.store.sqlite import SqliteStore  # noqa: PLC0415

    return SqliteStore(place)
