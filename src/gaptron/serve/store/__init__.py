"""The interface of a store, which holds the event log, and the function that opens one."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from gaptron.errors import SettingError
from gaptron.serve.events import Row


class StoreUnavailableError(SettingError):
    """The store cannot be reached."""


class Snapshot(NamedTuple):
    """A model as it was after event `seq`."""

    model: str
    seq: int
    body: bytes


class Redaction(NamedTuple):
    """Decisions lose their features; a complete replay starts with `start` from now on."""

    start: Snapshot | None  # None: of a deleted model, which is not replayed
    bodies: list[tuple[int, str]]  # seq of each decision, and its body without features


class Key(NamedTuple):
    """A key without its secret."""

    id: str
    hash: bytes
    roles: str  # separated by spaces
    model: str | None  # None: valid for all models
    revoked: bool


class Found(NamedTuple):
    """The rows about one decision."""

    decision: Row
    outcome: Row | None


class Lifetime(NamedTuple):
    """A model from its first event to its last, if it was deleted. Another model may have the name afterwards."""

    model: str
    first: int
    last: int | None = None


def lifetimes_of(rows: Iterable[tuple[str, str, int]]) -> list[Lifetime]:
    """Return the lifetimes of all models, from model, kind and seq of the events that begin and end them."""
    found: list[Lifetime] = []
    living: dict[str, int] = {}  # name → place in `found`
    for model, kind, seq in rows:
        if kind == "created":
            living[model] = len(found)
            found.append(Lifetime(model, seq))
        else:
            place = living.pop(model)
            found[place] = found[place]._replace(last=seq)
    return found


def living(store: "Store") -> dict[str, int]:
    """The names of the models that were not deleted, with the seq of their first rows."""
    return {one.model: one.first for one in store.lifetimes() if one.last is None}


class Store(Protocol):
    """The event log, the snapshots and the keys. Only the process that holds the lease may append."""

    fast_find: bool
    """Is `find` fast enough to call it in the event loop?"""

    def acquire_lease(self) -> bool:
        """Become the leader, the only process that appends. False if another process is; try again later."""
        ...

    def append(self, rows: list[Row], snapshots: Iterable[Snapshot] = (), redactions: Iterable[Redaction] = ()) -> None:
        """Write rows, snapshots and redactions in one durable transaction. Raises if another process holds the lease.

        The two newest snapshots of each model are kept, and none of a deleted one. A row with a `draft` exists already
        and gets its `seq`.
        """
        ...

    def last(self) -> tuple[int, int]:
        """seq and time of the last row; zeros if the log is empty."""
        ...

    def lifetimes(self) -> list[Lifetime]:
        """When each model was created, and deleted if it was."""
        ...

    def read(
        self, after: int = 0, model: str | None = None, until: int | None = None
    ) -> Iterator[tuple[Row, Row | None]]:
        """Iterate over the rows after `after` in order; each outcome comes with the row of its decision."""
        ...

    def find(self, model: str, event_ids: list[str]) -> dict[str, Found]:
        """Look up the decisions of these events; events without a decision are left out, as are imported ones."""
        ...

    def known_events(self, model: str, event_ids: list[str]) -> dict[str, int]:
        """Those of these events that have a decision, which may have been imported, with their last `seq`."""
        ...

    def latest(self, model: str, after: int, until: int, limit: int) -> list[Found]:
        """The newest decisions of a model after event `after` and up to event `until`, newest first."""
        ...

    def snapshots(self) -> list[tuple[str, int]]:
        """Model and seq of each snapshot, ordered by seq."""
        ...

    def snapshot(self, model: str, seq: int) -> bytes | None:
        """The body of a snapshot; None if it no longer exists."""
        ...

    def replay_starts(self, model: str | None = None) -> list[Snapshot]:
        """The models, or one of them, as they were when decisions were last redacted."""
        ...

    def add_key(self, key: Key) -> None:
        """Save a key."""
        ...

    def keys(self) -> list[Key]:
        """All keys, including revoked ones."""
        ...

    def revoke_key(self, id: str) -> bool:
        """Revoke a key. False if it does not exist."""
        ...

    def close(self) -> None:
        """Close all connections and release the lease."""
        ...


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that several processes use: one leads, others stand by, and replicas write decisions."""

    @property
    def heartbeat_interval(self) -> float:
        """Seconds between two heartbeats of the leader."""
        ...

    def heartbeat(self) -> None:
        """Renew the lease, from any thread. Raises if another process holds it."""
        ...

    def allow_replicas(self, allowed: bool) -> None:
        """Called by the leader. When this returns and replicas are not allowed, none of them can commit any more."""
        ...

    def publish(self, models: Iterable[Snapshot]) -> None:
        """Called by the leader: replace the models that replicas decide with."""
        ...

    def published(self) -> list[tuple[str, int]]:
        """Model and seq of each published model."""
        ...

    def published_model(self, model: str) -> Snapshot:
        """One published model."""
        ...

    def write_drafts(self, rows: list[Row]) -> set[tuple[str, str]]:
        """Called by replicas: write decisions that have no number in the log yet.

        Returns:
            (model, event id) of the decisions that were written. The other events have a decision already, which `find`
            returns.

        Raises:
            StoreUnavailableError: replicas are not allowed to write now.
        """
        ...

    def accepts_drafts(self) -> bool:
        """Does the leader allow replicas to write?"""
        ...

    def drafts(self, limit: int) -> list[Row]:
        """The oldest drafts. Their `seq` is negative; `append` takes it as the `draft` of a row."""
        ...


def as_shared(store: Store) -> SharedStore:
    """Return the store if replicas can use it, or raise SettingError."""
    if not isinstance(store, SharedStore):
        raise SettingError("replicas need a shared store: --store postgresql://...")
    return store


def open_store(location: str) -> Store:
    """Open the store in a folder (SQLite) or at a URL postgresql://..."""
    if location.startswith(("postgresql://", "postgres://")):
        try:
            from gaptron.serve.store.postgres import PostgresStore  # noqa: PLC0415
        except ImportError:
            problem = "PostgreSQL needs psycopg: pip install '.[postgres]' in gaptron's source folder"
            raise SettingError(problem) from None
        return PostgresStore(location)
    if "://" in location:
        raise SettingError(f"--store {location}: a store is a folder or postgresql://...")
    from gaptron.serve.store.sqlite import SqliteStore  # noqa: PLC0415

    return SqliteStore(location)
