"""The event log in one SQLite file.

The database runs in WAL mode with synchronous=FULL: a commit that returned is on disk. One connection writes and
checkpoints, all others only read, because SQLite before 3.51.3 can damage a WAL file if two connections write or
checkpoint at once. A lock on a separate file excludes a second server. A folder on a read-only file system can be read.
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from itertools import starmap
from pathlib import Path
from typing import IO

from gaptron.errors import SettingError
from gaptron.serve.events import Row
from gaptron.serve.store import Found, Key, Lifetime, Redaction, Snapshot, lifetimes_of
from gaptron.serve.store.migrations import migrations

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FILE, LOCK = "gaptron.db", "gaptron.lock"
MAX_ROWS = 1000  # written or read by one statement
OLD_SNAPSHOTS = (
    "delete from snapshots where model = ? and seq < "
    "(select seq from snapshots where model = ? order by seq desc limit 1 offset 1)"
)
COLUMNS = "seq, model, kind, event_id, at, body"
FORGET = [  # what is not needed of a deleted model
    f"delete from {table} where model = ? and seq < ?" for table in ("snapshots", "replay_starts")
]


class SqliteStore:
    """A store in a folder, which is created if it does not exist."""

    fast_find = True

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self._file = self.folder / FILE
        self._lock: IO[str] | None = None  # None: the folder can only be read
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = open(self.folder / LOCK, "a")
        except OSError as error:
            if not self._file.exists():
                detail = f"cannot be created or opened ({error.strerror or error})"
                raise SettingError(f"--store {folder}: {detail}") from None
        self._writer: sqlite3.Connection | None = None
        self._readers = threading.local()
        self._all_readers: list[sqlite3.Connection] = []

    def acquire_lease(self) -> bool:
        """Lock the folder, open the file for writing, and migrate its tables."""
        if self._writer is not None:
            return True
        if self._lock is None:
            raise SettingError(f"{self.folder} can only be read: a service must be able to write to its store")
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SettingError(f"{self.folder}: another process is using this store") from None
        try:
            writer = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
            os.chmod(self._file, 0o600)
        except (OSError, sqlite3.DatabaseError) as error:
            raise SettingError(f"{self._file} cannot be opened ({error})") from None
        try:
            writer.execute("pragma journal_mode = wal")
            writer.execute("pragma synchronous = full")
            writer.execute("pragma secure_delete = on")  # overwrite redacted features in the file
            (version,) = writer.execute("pragma user_version").fetchone()
            for number, sql in migrations("sqlite"):
                if number > version:
                    writer.executescript(f"begin immediate; {sql}; pragma user_version = {number}; commit")
        except sqlite3.DatabaseError as error:
            writer.close()
            raise SettingError(f"{self._file}: {error}") from None
        if version > len(migrations("sqlite")):
            writer.close()
            raise SettingError(f"{self._file} was written by a newer version of gaptron: use that version")
        self._writer = writer
        return True

    def append(self, rows: list[Row], snapshots: Iterable[Snapshot] = (), redactions: Iterable[Redaction] = ()) -> None:
        """Write one transaction with few statements, because each one releases and reacquires the GIL."""
        writer = self._writing()
        writer.execute("begin immediate")
        try:
            for start in range(0, len(rows), MAX_ROWS):
                chunk = rows[start : start + MAX_ROWS]
                placeholders = ",".join(["(?,?,?,?,?,?)"] * len(chunk))
                values = [value for row in chunk for value in row[:6]]
                writer.execute(f"insert into log ({COLUMNS}) values {placeholders}", values)
            for snapshot in snapshots:
                writer.execute("insert or replace into snapshots values (?, ?, ?)", snapshot)
                writer.execute(OLD_SNAPSHOTS, (snapshot.model, snapshot.model))
            for redaction in redactions:
                if redaction.start is not None:
                    writer.execute("insert or replace into replay_starts values (?, ?, ?)", redaction.start)
                changed = [(body, seq) for seq, body in redaction.bodies]
                writer.executemany("update log set body = ? where seq = ?", changed)
            for row in rows:
                if row.kind == "deleted":
                    for sql in FORGET:
                        writer.execute(sql, (row.model, row.seq))
            writer.execute("commit")
        except BaseException:
            if writer.in_transaction:
                writer.execute("rollback")
            raise

    def last(self) -> tuple[int, int]:
        """Read the end of the log."""
        found = self._reading().execute("select seq, at from log order by seq desc limit 1").fetchone()
        return found or (0, 0)

    def lifetimes(self) -> list[Lifetime]:
        """Use the index of first and last rows."""
        sql = "select model, kind, seq from log where kind in ('created', 'deleted') order by seq"
        return lifetimes_of(self._reading().execute(sql).fetchall())

    def read(
        self, after: int = 0, model: str | None = None, until: int | None = None
    ) -> Iterator[tuple[Row, Row | None]]:
        """Read some rows at a time, up to the present end.

        A single statement would be a transaction as long as its reader takes, and the WAL file could not be reused
        meanwhile: whoever does not read an export would let it grow.
        """
        reader, until = self._connect(), self.last()[0] if until is None else until
        try:
            of_model = "" if model is None else "and a.model = :model "  # only if needed, so that the index is used
            sql = (
                f"select {_columns('a')}, {_columns('d')} from log a left join log d on a.kind = 'outcome' "
                "and d.model = a.model and d.event_id = a.event_id and d.kind = 'decided' "
                f"where a.seq > :after {of_model} and a.seq <= :until order by a.seq limit {MAX_ROWS}"
            )
            while rows := reader.execute(sql, {"after": after, "model": model, "until": until}).fetchall():
                for row in rows:
                    yield Row(*row[:6]), None if row[6] is None else Row(*row[6:])
                after = rows[-1][0]
        finally:
            reader.close()

    def find(self, model: str, event_ids: list[str]) -> dict[str, Found]:
        """Use the index of events."""
        found: dict[str, dict[str, Row]] = {}
        for start in range(0, len(event_ids), MAX_ROWS):
            chunk = event_ids[start : start + MAX_ROWS]
            placeholders = ",".join("?" * len(chunk))
            sql = f"select {COLUMNS} from log where model = ? and event_id in ({placeholders})"
            for row in starmap(Row, self._reading().execute(sql, (model, *chunk))):
                assert row.event_id is not None
                found.setdefault(row.event_id, {})[row.kind] = row
        return {
            event_id: Found(rows["decided"], rows.get("outcome"))
            for event_id, rows in found.items()
            if "decided" in rows
        }

    def known_events(self, model: str, event_ids: list[str]) -> dict[str, int]:
        """Use the index of events."""
        found: dict[str, int] = {}
        for start in range(0, len(event_ids), MAX_ROWS):
            chunk = event_ids[start : start + MAX_ROWS]
            placeholders = ",".join("?" * len(chunk))
            sql = (
                f"select event_id, max(seq) from log where model = ? and event_id in ({placeholders}) group by event_id"
            )
            found.update(self._reading().execute(sql, (model, *chunk)).fetchall())
        return found

    def latest(self, model: str, after: int, until: int, limit: int) -> list[Found]:
        """Use the index of the model's events, backwards."""
        sql = (
            f"select {_columns('a')}, {_columns('o')} from log a left join log o on o.model = a.model "
            "and o.event_id = a.event_id and o.kind = 'outcome' "
            "where a.model = ? and a.kind = 'decided' and a.seq > ? and a.seq <= ? order by a.seq desc limit ?"
        )
        rows = self._reading().execute(sql, (model, after, until, limit))
        return [Found(Row(*row[:6]), None if row[6] is None else Row(*row[6:])) for row in rows]

    def snapshots(self) -> list[tuple[str, int]]:
        """List the snapshots."""
        return self._reading().execute("select model, seq from snapshots order by seq").fetchall()

    def snapshot(self, model: str, seq: int) -> bytes | None:
        """Read one snapshot."""
        sql = "select body from snapshots where model = ? and seq = ?"
        found = self._reading().execute(sql, (model, seq)).fetchone()
        return None if found is None else bytes(found[0])

    def replay_starts(self, model: str | None = None) -> list[Snapshot]:
        """List the starts."""
        sql = "select model, seq, body from replay_starts where :model is null or model = :model order by seq"
        return list(starmap(Snapshot, self._reading().execute(sql, {"model": model})))

    def add_key(self, key: Key) -> None:
        """Insert the key."""
        self._writing().execute("insert into keys values (?, ?, ?, ?, ?)", key)

    def keys(self) -> list[Key]:
        """List the keys in the order they were created."""
        rows = self._reading().execute("select id, hash, roles, model, revoked from keys order by rowid").fetchall()
        return [Key(id, hash, roles, model, bool(revoked)) for id, hash, roles, model, revoked in rows]

    def revoke_key(self, id: str) -> bool:
        """Mark the key as revoked."""
        return self._writing().execute("update keys set revoked = 1 where id = ?", (id,)).rowcount == 1

    def close(self) -> None:
        """Checkpoint and release the lock."""
        for connection in (*self._all_readers, self._writer):  # the writer last, so that it can checkpoint
            if connection is not None:
                connection.close()
        self._writer, self._all_readers, self._readers = None, [], threading.local()
        if self._lock is not None:
            self._lock.close()

    def _writing(self) -> sqlite3.Connection:
        if self._writer is None:
            raise SettingError(f"{self.folder} is not open for writing")
        return self._writer

    def _reading(self) -> sqlite3.Connection:
        """The read-only connection of this thread."""
        reader: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if reader is None:
            reader = self._readers.connection = self._connect()
            self._all_readers.append(reader)
        return reader

    def _connect(self) -> sqlite3.Connection:
        if not self._file.exists():
            raise SettingError(f"{self.folder} contains no store")
        url = f"{self._file.absolute().as_uri()}?mode=ro"
        if self._lock is None and not Path(f"{self._file}-wal").exists():
            url += "&immutable=1"  # SQLite would create files to share with a writer
        reader = sqlite3.connect(url, uri=True, isolation_level=None, check_same_thread=False)
        try:
            reader.execute("pragma query_only = on")
            reader.execute("select 1 from log limit 1")
        except sqlite3.OperationalError as error:
            reader.close()
            if self._lock is not None:
                raise
            raise SettingError(f"{self._file} cannot be read ({error}): copy the whole folder") from None
        return reader


def _columns(table: str) -> str:
    return ", ".join(f"{table}.{column}" for column in COLUMNS.split(", "))
