"""Where the log lies: what a store must be able to do, and which one a name stands for."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from gaptron.errors import SettingError
from gaptron.serve.entries import Row


class AwayError(SettingError):
    """The store cannot be reached."""


class Snapshot(NamedTuple):
    """A model as it was after entry `seq`."""

    model: str
    seq: int
    body: bytes


class Forgetting(NamedTuple):
    """Decisions lose what they were made for; a replay begins with `start` from now on."""

    start: Snapshot
    bodies: list[tuple[int, str]]  # seq of each decision, and what is left of it


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

    def append(
        self, rows: list[Row], snapshots: Iterable[Snapshot] = (), forgettings: Iterable[Forgetting] = ()
    ) -> None:
        """Add rows and snapshots and forget, all or none; safe when this returns. Raises if another leads now.

        Of each model the two newest snapshots are kept. A row with a `draft` is there already, and gets its place.
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

    def snapshot(self, model: str, seq: int) -> bytes | None:
        """One of them; None: it is not there any more."""
        ...

    def starts(self) -> list[Snapshot]:
        """The models as they were when something was last forgotten."""
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


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that processes which do not lead may write decisions to."""

    def admit(self, deciders: bool) -> None:
        """For who leads: may deciders write from now on? When this returns, no more come if they may not."""
        ...

    def publish(self, models: Iterable[Snapshot]) -> None:
        """For who leads: models as deciders shall use them from now on."""
        ...

    def published(self) -> list[tuple[str, int]]:
        """model and seq of what is published."""
        ...

    def publication(self, model: str) -> Snapshot:
        """The one of this model."""
        ...

    def draft(self, rows: list[Row]) -> set[tuple[str, str]]:
        """For deciders: write decisions that have no place in the log yet, and say whose events were new.

        Those of the others stay as they are: `find` has them. Raises AwayError if deciders may not write now.
        """
        ...

    def takes_drafts(self) -> bool:
        """Has a leader said that deciders may write?"""
        ...

    def drafts(self, most: int) -> list[Row]:
        """Decisions without a place; `seq` is the number below 0 that `append` takes as a row's `draft`."""
        ...


def shared(store: Store) -> SharedStore:
    """The same store, if deciders may use it."""
    if not isinstance(store, SharedStore):
        raise SettingError("deciders need a store that machines share: --store postgresql://...")
    return store


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
