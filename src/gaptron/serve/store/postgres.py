"""The log in PostgreSQL, with one process that leads and others that stand by.

The leader's one writing session holds an advisory lock, and every commit names the leader's epoch. A session that ended
has lost the lock and can commit nothing; a leader that is frozen is ended by a standby once its heartbeat is old, and
finds its session gone when it wakes. So there are never two that write. The session must be a direct one: a pool that
shares sessions between transactions would share the lock.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import starmap
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from gaptron.errors import GaptronError, SettingError
from gaptron.serve.entries import Row
from gaptron.serve.store import AwayError, Forgetting, Found, Key, Snapshot
from gaptron.serve.store.migrations import steps

OLD = "10 seconds"  # a leader that has not been heard of for so long may be ended
COLUMNS = "seq, model, kind, event, at, body"
ARRAYS = "%s::bigint[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[]"
OR_REPLACE = "on conflict (model) do update set seq = excluded.seq, body = excluded.body"
LOCK = "hashtext('gaptron'), hashtext(current_schema())"
OLD_SNAPSHOTS = (
    "delete from snapshots where model = %s and seq < "
    "(select seq from snapshots where model = %s order by seq desc limit 1 offset 1)"
)
Connection = psycopg.Connection[tuple[Any, ...]]


class LostLeadError(GaptronError):
    """Another process leads now."""


class PostgresStore:
    """The store in a database, in the schema that its URL leads to."""

    quick = False

    def __init__(self, url: str) -> None:
        self._url = url
        self._writer: Connection | None = None
        self._drafter: Connection | None = None
        self._epoch = 0
        self._readers = threading.local()
        self._all_readers: list[Connection] = []
        self._connect().close()

    def _connect(self, **more: Any) -> Connection:
        try:
            return psycopg.connect(self._url, connect_timeout=10, row_factory=tuple_row, **more)
        except psycopg.OperationalError as error:
            raise AwayError(f"PostgreSQL cannot be reached: {str(error).strip()}") from None

    # --- leading ----------------------------------------------------------------------------------------------------

    def lead(self) -> bool:
        """Take the lock and a new epoch. If the leader is not heard of any more, end its session."""
        if self._writer is not None:
            return True
        writer = self._connect()
        try:
            (locked,) = _one(writer, f"select pg_try_advisory_lock({LOCK})")
            if not locked:
                _end_old_leader(writer)
                writer.commit()
                writer.close()
                return False
            _migrate(writer)
            writer.execute("set synchronous_commit = on")
            sql = "update leader set epoch = epoch + 1, process = pg_backend_pid(), beat = now() returning epoch"
            (self._epoch,) = _one(writer, sql)
            writer.commit()
        except BaseException as error:
            writer.close()
            if isinstance(error, psycopg.Error):
                raise SettingError(f"PostgreSQL: {str(error).strip()}") from None
            raise
        self._writer = writer
        return True

    def beat(self) -> None:
        """Say that we are here."""
        self.append([])

    def append(
        self, rows: list[Row], snapshots: Iterable[Snapshot] = (), forgettings: Iterable[Forgetting] = ()
    ) -> None:
        """One transaction, which begins with our epoch."""
        new, taken = [row[:6] for row in rows if not row.draft], [row for row in rows if row.draft]
        with self._leading() as writer:
            if new:
                sql = f"insert into log ({COLUMNS}) select * from unnest({ARRAYS})"
                writer.execute(sql, [list(column) for column in zip(*new)])
            if taken:
                sql = (
                    "update log set seq = one.seq, at = one.at from unnest(%s::bigint[], %s::bigint[], %s::bigint[]) "
                    "one (draft, seq, at) where log.seq = one.draft"
                )
                places = [[row.draft for row in taken], [row.seq for row in taken], [row.at for row in taken]]
                if writer.execute(sql, places).rowcount != len(taken):
                    raise LostLeadError("decisions of deciders are not where they were")
            for snapshot in snapshots:
                writer.execute("delete from snapshots where model = %s and seq = %s", snapshot[:2])
                writer.execute("insert into snapshots values (%s, %s, %s)", snapshot)
                writer.execute(OLD_SNAPSHOTS, (snapshot.model, snapshot.model))
            for forgetting in forgettings:
                writer.execute(f"insert into starts values (%s, %s, %s) {OR_REPLACE}", forgetting.start)
                sql = "update log set body = one.body from unnest(%s::bigint[], %s::text[]) one (seq, body) "
                columns = [list(column) for column in zip(*forgetting.bodies)]
                writer.execute(sql + "where log.seq = one.seq", columns)

    @contextmanager
    def _leading(self) -> Iterator[Connection]:
        """A transaction in which nobody else leads."""
        writer = self._writing()
        with writer.transaction():
            ours = writer.execute("update leader set beat = now() where epoch = %s", (self._epoch,)).rowcount
            if ours != 1:
                raise LostLeadError("another process leads now")
            yield writer

    def _writing(self) -> Connection:
        if self._writer is None:
            raise SettingError("this store is not open for writing: another process leads")
        return self._writer

    # --- deciders ---------------------------------------------------------------------------------------------------

    def admit(self, deciders: bool) -> None:
        """Under a lock that waits for every decider's commit, and lets none begin that has not seen the word."""
        with self._leading() as writer:
            writer.execute("select from leader for update")
            writer.execute("update leader set deciders = %s", (deciders,))

    def publish(self, models: Iterable[Snapshot]) -> None:
        """A row a model."""
        with self._leading() as writer:
            for one in models:
                writer.execute(f"insert into published values (%s, %s, %s) {OR_REPLACE}", one)

    def published(self) -> list[tuple[str, int]]:
        """Without the bodies."""
        return self._rows("select model, seq from published")

    def publication(self, model: str) -> Snapshot:
        """Its row."""
        (name, seq, body) = self._rows("select model, seq, body from published where model = %s", (model,))[0]
        return Snapshot(name, seq, bytes(body))

    def draft(self, rows: list[Row]) -> set[tuple[str, str]]:
        """One transaction, which begins with a look at whether deciders may write, and holds that word."""
        sql = (
            f"insert into log ({COLUMNS}) select -nextval('drafts'), model, kind, event, at, body from "
            f"unnest({ARRAYS}) one ({COLUMNS}) on conflict (model, event, kind) do nothing returning model, event"
        )
        try:
            if self._drafter is None or self._drafter.closed:
                self._drafter = self._connect()
            with self._drafter.transaction():
                # Held until the commit. It conflicts with the lock of `admit`, not with the heartbeat of who leads.
                if self._drafter.execute("select from leader where deciders for key share").fetchone() is None:
                    raise AwayError("who leads takes no decisions of deciders: start it with --with-deciders")
                found = self._drafter.execute(sql, [list(column) for column in zip(*(row[:6] for row in rows))])
                return set(found.fetchall())
        except psycopg.OperationalError as error:
            if self._drafter is not None:
                self._drafter.close()
            raise AwayError(f"PostgreSQL cannot be reached: {str(error).strip()}") from None

    def takes_drafts(self) -> bool:
        """By the leader's row."""
        try:
            return bool(self._rows("select 1 from leader where deciders"))
        except AwayError:
            raise
        except SettingError:  # no tables yet
            return False

    def drafts(self, most: int) -> list[Row]:
        """From the beginning of the index of places; the oldest of them first."""
        sql = f"select {COLUMNS} from log where seq < 0 order by seq desc limit %s"
        return [Row(*row) for row in self._rows(sql, (most,))]

    # --- reading ----------------------------------------------------------------------------------------------------

    def last(self) -> tuple[int, int]:
        """From the end of the log."""
        found = self._rows("select seq, at from log order by seq desc limit 1")
        return found[0] if found else (0, 0)

    def models(self) -> list[tuple[str, int]]:
        """By the index of first rows."""
        return self._rows("select model, seq from log where kind = 'model' order by seq")

    def read(
        self, after: int = 0, model: str | None = None, upto: int | None = None
    ) -> Iterator[tuple[Row, Row | None]]:
        """Through a cursor of the server, a part at a time.

        Each decision is looked up by itself, and rows come in the order of an index: left to choose, the planner joins
        a young table, of which it has no statistics, in quadratic time, or sorts all of it on disk.
        """
        of_model = "" if model is None else "and a.model = %(model)s "  # said so that the index of models is used
        sql = (
            f"select {_of('a')}, {_of('d')} from log a left join lateral (select * from log one where "
            "a.kind = 'outcome' and one.model = a.model and one.event = a.event and one.kind = 'decision' limit 1) d "
            f"on true where a.seq > %(after)s {of_model}and (%(upto)s::bigint is null or a.seq <= %(upto)s) "
            "order by a.seq"
        )
        with self._connect() as reader, reader.cursor(name="log") as cursor:
            reader.execute("set local enable_sort = off")
            cursor.itersize = 2000
            for row in cursor.execute(sql, {"after": after, "model": model, "upto": upto}):
                yield Row(*row[:6]), None if row[6] is None else Row(*row[6:])

    def find(self, model: str, events: list[str]) -> dict[str, Found]:
        """By the index of events."""
        found: dict[str, dict[str, Row]] = {}
        sql = f"select {COLUMNS} from log where model = %s and event = any(%s)"
        for row in starmap(Row, self._rows(sql, (model, events))):
            assert row.event is not None
            found.setdefault(row.event, {})[row.kind] = row
        return {event: Found(rows["decision"], rows.get("outcome")) for event, rows in found.items()}

    def snapshots(self) -> list[tuple[str, int]]:
        """By seq."""
        return self._rows("select model, seq from snapshots order by seq")

    def snapshot(self, model: str, seq: int) -> bytes | None:
        """Its bytes."""
        found = self._rows("select body from snapshots where model = %s and seq = %s", (model, seq))
        return bytes(found[0][0]) if found else None

    def starts(self) -> list[Snapshot]:
        """All of them."""
        rows = self._rows("select model, seq, body from starts order by seq")
        return [Snapshot(name, seq, bytes(body)) for name, seq, body in rows]

    def _rows(self, sql: Any, values: tuple[Any, ...] = ()) -> list[Any]:
        """On this thread's own connection."""
        reader: Connection | None = getattr(self._readers, "connection", None)
        if reader is None or reader.closed:
            reader = self._readers.connection = self._connect(autocommit=True)
            self._all_readers.append(reader)
        try:
            return reader.execute(sql, values).fetchall()
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
            raise SettingError("the database holds no store of this version") from None
        except psycopg.OperationalError as error:
            reader.close()
            raise AwayError(f"PostgreSQL cannot be reached: {str(error).strip()}") from None

    # --- keys -------------------------------------------------------------------------------------------------------

    def add_key(self, key: Key) -> None:
        """One row."""
        self._change_keys("insert into keys values (%s, %s, %s, %s, %s)", key)

    def keys(self) -> list[Key]:
        """By id."""
        return [Key(*row) for row in self._rows("select id, hash, roles, model, revoked from keys order by id")]

    def revoke_key(self, id: str) -> bool:
        """Mark it."""
        return self._change_keys("update keys set revoked = true where id = %s", (id,)) == 1

    def _change_keys(self, sql: Any, values: tuple[Any, ...]) -> int:
        """On a connection of its own: keys may be changed while another process leads."""
        with self._connect() as connection:
            return connection.execute(sql, values).rowcount

    def close(self) -> None:
        """End every session, and with ours the lock."""
        for connection in (*self._all_readers, self._drafter, self._writer):
            if connection is not None:
                connection.close()
        self._writer, self._all_readers = None, []


def _one(connection: Connection, sql: Any) -> tuple[Any, ...]:
    found = connection.execute(sql).fetchone()
    assert found is not None
    return found


def _end_old_leader(connection: Connection) -> None:
    (there,) = _one(connection, "select to_regclass('leader') is not null")
    if there:
        connection.execute(f"select pg_terminate_backend(process) from leader where beat < now() - interval '{OLD}'")


def _migrate(writer: Connection) -> None:
    """Under the lock, so that nobody else does."""
    writer.execute("create table if not exists migrations (number integer primary key)")
    (done,) = _one(writer, "select coalesce(max(number), 0) from migrations")
    known = steps("postgres")
    if done > len(known):
        raise SettingError("the database was written by a newer gaptron: use that one")
    for number, sql in known:
        if number > done:
            writer.execute(sql)
            writer.execute("insert into migrations values (%s)", (number,))
    writer.commit()


def _of(table: str) -> str:
    return ", ".join(f"{table}.{column}" for column in COLUMNS.split(", "))
