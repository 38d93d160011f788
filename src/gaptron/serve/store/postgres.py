"""The event log in PostgreSQL, with one leader and standby processes.

The leader writes in one session, which holds an advisory lock, and every commit checks the leader's epoch. A session
that ended has lost the lock and cannot commit. If a leader is frozen, a standby terminates its session once the
heartbeat is too old; when the frozen process resumes, its session is gone. There are therefore never two writers. The
connection must be direct: a pool that shares sessions between transactions would share the lock.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import starmap
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from gaptron.errors import GaptronError, SettingError
from gaptron.serve.events import Row
from gaptron.serve.store import Found, Key, Lifetime, Redaction, Snapshot, StoreUnavailableError, lifetimes_of
from gaptron.serve.store.migrations import migrations

LEASE = 10.0  # seconds without a heartbeat, after which a standby may terminate the leader's session
MAX_ROWS = 2000  # read by one statement
COLUMNS = "seq, model, kind, event_id, at, body"
ARRAYS = "%s::bigint[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[]"
OR_REPLACE = "on conflict (model) do update set seq = excluded.seq, body = excluded.body"
LOCK = "hashtext('gaptron'), hashtext(current_schema())"
OLD_SNAPSHOTS = (
    "delete from snapshots where model = %s and seq < "
    "(select seq from snapshots where model = %s order by seq desc limit 1 offset 1)"
)
FORGET = [  # what is not needed of a deleted model
    f"delete from {table} where model = %s and seq < %s" for table in ("snapshots", "replay_starts", "published")
]
Connection = psycopg.Connection[tuple[Any, ...]]


class LeaseLostError(GaptronError):
    """Another process holds the lease."""


class PostgresStore:
    """A store in the schema that a database URL selects."""

    fast_find = False

    def __init__(self, url: str) -> None:
        self._url = url
        self._writer: Connection | None = None
        self._drafter: Connection | None = None
        self._writing_lock = threading.Lock()  # one transaction at a time: the heartbeat has its own thread
        self._epoch = 0
        self._readers = threading.local()
        self._all_readers: list[Connection] = []
        self._connect().close()

    def _connect(self, **more: Any) -> Connection:
        try:
            return psycopg.connect(self._url, connect_timeout=10, row_factory=tuple_row, **more)
        except psycopg.OperationalError as error:
            raise StoreUnavailableError(f"PostgreSQL cannot be reached: {str(error).strip()}") from None

    # --- the leader -------------------------------------------------------------------------------------------------

    def acquire_lease(self) -> bool:
        """Take the lock and a new epoch. If the leader's heartbeat is too old, terminate its session."""
        if self._writer is not None:
            return True
        writer = self._connect()
        try:
            (locked,) = _one(writer, f"select pg_try_advisory_lock({LOCK})")
            if not locked:
                _terminate_stale_leader(writer)
                writer.commit()
                writer.close()
                return False
            _migrate(writer)
            writer.execute("set synchronous_commit = on")
            sql = (
                "update lease set epoch = epoch + 1, backend_pid = pg_backend_pid(), heartbeat = now() returning epoch"
            )
            (self._epoch,) = _one(writer, sql)
            writer.commit()
        except BaseException as error:
            writer.close()
            if isinstance(error, psycopg.Error):
                raise SettingError(f"PostgreSQL: {str(error).strip()}") from None
            raise
        self._writer = writer
        return True

    @property
    def heartbeat_interval(self) -> float:
        """Often enough that a few that come late cost nothing."""
        return LEASE / 10.0

    def heartbeat(self) -> None:
        """Renew the lease with an empty transaction."""
        self.append([])

    def append(self, rows: list[Row], snapshots: Iterable[Snapshot] = (), redactions: Iterable[Redaction] = ()) -> None:
        """Write one transaction, which first checks the epoch."""
        new, drafts = [row[:6] for row in rows if not row.draft], [row for row in rows if row.draft]
        with self._transaction() as writer:
            if new:
                sql = f"insert into log ({COLUMNS}) select * from unnest({ARRAYS})"
                writer.execute(sql, [list(column) for column in zip(*new)])
            if drafts:
                sql = (
                    "update log set seq = one.seq, at = one.at from unnest(%s::bigint[], %s::bigint[], %s::bigint[]) "
                    "one (draft, seq, at) where log.seq = one.draft"
                )
                columns = [[row.draft for row in drafts], [row.seq for row in drafts], [row.at for row in drafts]]
                if writer.execute(sql, columns).rowcount != len(drafts):
                    raise LeaseLostError("drafts of replicas are missing from the log")
            for snapshot in snapshots:
                writer.execute("delete from snapshots where model = %s and seq = %s", snapshot[:2])
                writer.execute("insert into snapshots values (%s, %s, %s)", snapshot)
                writer.execute(OLD_SNAPSHOTS, (snapshot.model, snapshot.model))
            for redaction in redactions:
                if redaction.start is not None:
                    writer.execute(f"insert into replay_starts values (%s, %s, %s) {OR_REPLACE}", redaction.start)
                sql = "update log set body = one.body from unnest(%s::bigint[], %s::text[]) one (seq, body) "
                columns = [list(column) for column in zip(*redaction.bodies)]
                writer.execute(sql + "where log.seq = one.seq", columns)
            for row in rows:
                if row.kind == "deleted":
                    for sql in FORGET:
                        writer.execute(sql, (row.model, row.seq))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction that fails unless this process holds the lease."""
        writer = self._writing()
        with self._writing_lock, writer.transaction():
            sql = "update lease set heartbeat = now() where epoch = %s"
            if writer.execute(sql, (self._epoch,)).rowcount != 1:
                raise LeaseLostError("another process holds the lease")
            yield writer

    def _writing(self) -> Connection:
        if self._writer is None:
            raise SettingError("this store is not open for writing: another process holds the lease")
        return self._writer

    # --- replicas ---------------------------------------------------------------------------------------------------

    def allow_replicas(self, allowed: bool) -> None:
        """Change the flag under a lock that waits for every replica's commit and blocks new ones."""
        with self._transaction() as writer:
            writer.execute("select from lease for update")
            writer.execute("update lease set replicas_allowed = %s", (allowed,))

    def publish(self, models: Iterable[Snapshot]) -> None:
        """Insert or replace one row for each model."""
        with self._transaction() as writer:
            for one in models:
                writer.execute(f"insert into published values (%s, %s, %s) {OR_REPLACE}", one)

    def published(self) -> list[tuple[str, int]]:
        """List the published models without their bodies."""
        return self._rows("select model, seq from published")

    def published_model(self, model: str) -> Snapshot:
        """Read one published model."""
        (name, seq, body) = self._rows("select model, seq, body from published where model = %s", (model,))[0]
        return Snapshot(name, seq, bytes(body))

    def write_drafts(self, rows: list[Row]) -> set[tuple[str, str]]:
        """Write one transaction, which first checks that replicas may write, and locks that flag."""
        sql = (
            f"insert into log ({COLUMNS}) select -nextval('drafts'), model, kind, event_id, at, body from "
            f"unnest({ARRAYS}) one ({COLUMNS}) on conflict (model, event_id, kind) do nothing "
            "returning model, event_id"
        )
        try:
            if self._drafter is None or self._drafter.closed:
                self._drafter = self._connect()
            with self._drafter.transaction():
                # Held until the commit. It conflicts with the lock of `allow_replicas`, not with the heartbeat.
                if self._drafter.execute("select from lease where replicas_allowed for key share").fetchone() is None:
                    raise StoreUnavailableError("the leader accepts no replicas: start it with --with-replicas")
                found = self._drafter.execute(sql, [list(column) for column in zip(*(row[:6] for row in rows))])
                return set(found.fetchall())
        except psycopg.OperationalError as error:
            if self._drafter is not None:
                self._drafter.close()
            raise StoreUnavailableError(f"PostgreSQL cannot be reached: {str(error).strip()}") from None

    def accepts_drafts(self) -> bool:
        """Read the flag of the lease."""
        try:
            return bool(self._rows("select 1 from lease where replicas_allowed"))
        except StoreUnavailableError:
            raise
        except SettingError:  # the tables do not exist yet
            return False

    def drafts(self, limit: int) -> list[Row]:
        """Read the start of the index of seq; the oldest draft has the largest number."""
        sql = f"select {COLUMNS} from log where seq < 0 order by seq desc limit %s"
        return [Row(*row) for row in self._rows(sql, (limit,))]

    # --- reading ----------------------------------------------------------------------------------------------------

    def last(self) -> tuple[int, int]:
        """Read the end of the log."""
        found = self._rows("select seq, at from log order by seq desc limit 1")
        return found[0] if found else (0, 0)

    def lifetimes(self) -> list[Lifetime]:
        """Use the index of first and last rows."""
        sql = "select model, kind, seq from log where kind in ('created', 'deleted') order by seq"
        return lifetimes_of(self._rows(sql))

    def read(
        self, after: int = 0, model: str | None = None, until: int | None = None
    ) -> Iterator[tuple[Row, Row | None]]:
        """Read some rows at a time, up to the present end, so that no transaction is as long as its reader takes.

        The lateral join looks up each decision separately, and sorting is disabled so that rows come in the order of an
        index. Otherwise the planner joins a new table, for which it has no statistics, in quadratic time, or sorts the
        whole table on disk.
        """
        of_model = "" if model is None else "and a.model = %(model)s "  # only if needed, so that the index is used
        sql = (
            f"select {_columns('a')}, {_columns('d')} from log a left join lateral ("
            "select * from log one where a.kind = 'outcome' and one.model = a.model and one.event_id = a.event_id "
            "and one.kind = 'decided' limit 1) "
            f"d on true where a.seq > %(after)s {of_model}and a.seq <= %(until)s order by a.seq limit {MAX_ROWS}"
        )
        until = self.last()[0] if until is None else until
        try:
            with self._connect(autocommit=True) as reader:
                reader.execute("set enable_sort = off")
                while rows := reader.execute(sql, {"after": after, "model": model, "until": until}).fetchall():
                    for row in rows:
                        yield Row(*row[:6]), None if row[6] is None else Row(*row[6:])
                    after = rows[-1][0]
        except psycopg.OperationalError as error:
            raise StoreUnavailableError(f"PostgreSQL cannot be reached: {str(error).strip()}") from None

    def find(self, model: str, event_ids: list[str]) -> dict[str, Found]:
        """Use the index of events."""
        found: dict[str, dict[str, Row]] = {}
        sql = f"select {COLUMNS} from log where model = %s and event_id = any(%s)"
        for row in starmap(Row, self._rows(sql, (model, event_ids))):
            assert row.event_id is not None
            found.setdefault(row.event_id, {})[row.kind] = row
        return {
            event_id: Found(rows["decided"], rows.get("outcome"))
            for event_id, rows in found.items()
            if "decided" in rows
        }

    def known_events(self, model: str, event_ids: list[str]) -> dict[str, int]:
        """Use the index of events."""
        sql = "select event_id, max(seq) from log where model = %s and event_id = any(%s) group by event_id"
        return dict(self._rows(sql, (model, event_ids)))

    def latest(self, model: str, after: int, until: int, limit: int) -> list[Found]:
        """Use the index of the model's events, backwards; drafts have no number yet."""
        sql = (
            f"select {_columns('a')}, {_columns('o')} from (select * from log where model = %s and kind = 'decided' "
            "and seq > %s and seq <= %s order by seq desc limit %s) a left join lateral (select * from log one "
            "where one.model = a.model and one.event_id = a.event_id and one.kind = 'outcome' limit 1) o on true "
            "order by a.seq desc"
        )
        rows = self._rows(sql, (model, after, until, limit))
        return [Found(Row(*row[:6]), None if row[6] is None else Row(*row[6:])) for row in rows]

    def snapshots(self) -> list[tuple[str, int]]:
        """List the snapshots."""
        return self._rows("select model, seq from snapshots order by seq")

    def snapshot(self, model: str, seq: int) -> bytes | None:
        """Read one snapshot."""
        found = self._rows("select body from snapshots where model = %s and seq = %s", (model, seq))
        return bytes(found[0][0]) if found else None

    def replay_starts(self, model: str | None = None) -> list[Snapshot]:
        """List the starts."""
        sql = "select model, seq, body from replay_starts where %s::text is null or model = %s order by seq"
        rows = self._rows(sql, (model, model))
        return [Snapshot(name, seq, bytes(body)) for name, seq, body in rows]

    def _rows(self, sql: Any, values: tuple[Any, ...] = ()) -> list[Any]:
        """Query on the connection of this thread."""
        reader: Connection | None = getattr(self._readers, "connection", None)
        if reader is None or reader.closed:
            reader = self._readers.connection = self._connect(autocommit=True)
            self._all_readers.append(reader)
        try:
            return reader.execute(sql, values).fetchall()
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
            raise SettingError("the database contains no store of this version") from None
        except psycopg.OperationalError as error:
            reader.close()
            raise StoreUnavailableError(f"PostgreSQL cannot be reached: {str(error).strip()}") from None

    # --- keys -------------------------------------------------------------------------------------------------------

    def add_key(self, key: Key) -> None:
        """Insert the key."""
        self._change_keys("insert into keys values (%s, %s, %s, %s, %s)", key)

    def keys(self) -> list[Key]:
        """List the keys by id."""
        return [Key(*row) for row in self._rows("select id, hash, roles, model, revoked from keys order by id")]

    def revoke_key(self, id: str) -> bool:
        """Mark the key as revoked."""
        return self._change_keys("update keys set revoked = true where id = %s", (id,)) == 1

    def _change_keys(self, sql: Any, values: tuple[Any, ...]) -> int:
        """Use a separate connection: keys may be changed while another process is the leader."""
        with self._connect() as connection:
            return connection.execute(sql, values).rowcount

    def close(self) -> None:
        """Close every session; closing the writing one releases the lock."""
        for connection in (*self._all_readers, self._drafter, self._writer):
            if connection is not None:
                connection.close()
        self._writer, self._all_readers = None, []


def _one(connection: Connection, sql: Any) -> tuple[Any, ...]:
    found = connection.execute(sql).fetchone()
    assert found is not None
    return found


def _terminate_stale_leader(connection: Connection) -> None:
    (exists,) = _one(connection, "select to_regclass('lease') is not null")
    if exists:
        sql = "select pg_terminate_backend(backend_pid) from lease where heartbeat < now() - make_interval(secs => %s)"
        connection.execute(sql, (LEASE,))


def _migrate(writer: Connection) -> None:
    """Apply new migrations. The caller holds the lock."""
    writer.execute("create table if not exists migrations (number integer primary key)")
    (version,) = _one(writer, "select coalesce(max(number), 0) from migrations")
    known = migrations("postgres")
    if version > len(known):
        raise SettingError("the database was written by a newer version of gaptron: use that version")
    for number, sql in known:
        if number > version:
            writer.execute(sql)
            writer.execute("insert into migrations values (%s)", (number,))
    writer.commit()


def _columns(table: str) -> str:
    return ", ".join(f"{table}.{column}" for column in COLUMNS.split(", "))
