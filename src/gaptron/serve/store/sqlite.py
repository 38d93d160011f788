"""The log in one SQLite file.

WAL with synchronous=FULL: a commit that returned is on the disk. One connection writes and checkpoints, all others only
read: SQLite before 3.51.3 can damage a WAL file if two write or checkpoint at once. A lock on a file beside it keeps a
second server away.
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from itertools import starmap
from pathlib import Path

from gaptron.errors import SettingError
from gaptron.serve.entries import Row
from gaptron.serve.store import Forgetting, Found, Key, Snapshot
from gaptron.serve.store.migrations import steps

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]

FILE, LOCK = "gaptron.db", "gaptron.lock"
MOST_ROWS = 1000  # in one statement
OLD_SNAPSHOTS = (
    "delete from snapshots where model = ? and seq < "
    "(select seq from snapshots where model = ? order by seq desc limit 1 offset 1)"
)
COLUMNS = "seq, model, kind, event, at, body"


class SqliteStore:
    """The store in a folder, which is made if it is not there."""

    quick = True

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = open(self.folder / LOCK, "a")
        except OSError as error:
            raise SettingError(f"--store {folder}: cannot be made or opened ({error.strerror or error})") from None
        self._file = self.folder / FILE
        self._writer: sqlite3.Connection | None = None
        self._readers = threading.local()
        self._all_readers: list[sqlite3.Connection] = []

    def lead(self) -> bool:
        """Take the lock, open the file for writing, and bring its tables up to date."""
        if self._writer is not None:
            return True
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SettingError(f"{self.folder}: another process uses this store") from None
        try:
            writer = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
            os.chmod(self._file, 0o600)
        except (OSError, sqlite3.DatabaseError) as error:
            raise SettingError(f"{self._file} cannot be opened ({error})") from None
        try:
            writer.execute("pragma journal_mode = wal")
            writer.execute("pragma synchronous = full")
            writer.execute("pragma secure_delete = on")  # what is forgotten is not left lying in the file
            (done,) = writer.execute("pragma user_version").fetchone()
            for number, sql in steps("sqlite"):
                if number > done:
                    writer.executescript(f"begin immediate; {sql}; pragma user_version = {number}; commit")
            (done,) = writer.execute("pragma user_version").fetchone()
        except sqlite3.DatabaseError as error:
            writer.close()
            raise SettingError(f"{self._file}: {error}") from None
        if done > len(steps("sqlite")):
            writer.close()
            raise SettingError(f"{self._file} was written by a newer gaptron: use that one")
        self._writer = writer
        return True

    def beat(self) -> None:
        """Nobody else can lead while we hold the lock."""

    def append(
        self, rows: list[Row], snapshots: Iterable[Snapshot] = (), forgettings: Iterable[Forgetting] = ()
    ) -> None:
        """One transaction; few statements, for each gives up the interpreter's lock and must get it back."""
        writer = self._writing()
        writer.execute("begin immediate")
        try:
            for start in range(0, len(rows), MOST_ROWS):
                part = rows[start : start + MOST_ROWS]
                places = ",".join(["(?,?,?,?,?,?)"] * len(part))
                flat = [value for row in part for value in row[:6]]
                writer.execute(f"insert into log ({COLUMNS}) values {places}", flat)
            for snapshot in snapshots:
                writer.execute("insert or replace into snapshots values (?, ?, ?)", snapshot)
                writer.execute(OLD_SNAPSHOTS, (snapshot.model, snapshot.model))
            for forgetting in forgettings:
                writer.execute("insert or replace into starts values (?, ?, ?)", forgetting.start)
                changed = [(body, seq) for seq, body in forgetting.bodies]
                writer.executemany("update log set body = ? where seq = ?", changed)
            writer.execute("commit")
        except BaseException:
            if writer.in_transaction:
                writer.execute("rollback")
            raise

    def last(self) -> tuple[int, int]:
        """From the end of the log."""
        found = self._reading().execute("select seq, at from log order by seq desc limit 1").fetchone()
        return found or (0, 0)

    def models(self) -> list[tuple[str, int]]:
        """By the index of first rows."""
        return self._reading().execute("select model, seq from log where kind = 'model' order by seq").fetchall()

    def read(
        self, after: int = 0, model: str | None = None, upto: int | None = None
    ) -> Iterator[tuple[Row, Row | None]]:
        """On a connection of its own, so that it sees one moment."""
        reader = self._connect()
        try:
            of_model = "" if model is None else "and a.model = :model "  # said so that the index of models is used
            rows = reader.execute(
                f"select {_of('a')}, {_of('d')} from log a left join log d on a.kind = 'outcome' "
                "and d.model = a.model and d.event = a.event and d.kind = 'decision' "
                f"where a.seq > :after {of_model} and (:upto is null or a.seq <= :upto) order by a.seq",
                {"after": after, "model": model, "upto": upto},
            )
            for row in rows:
                yield Row(*row[:6]), None if row[6] is None else Row(*row[6:])
        finally:
            reader.close()

    def find(self, model: str, events: list[str]) -> dict[str, Found]:
        """By the index of events."""
        found: dict[str, dict[str, Row]] = {}
        for start in range(0, len(events), MOST_ROWS):
            part = events[start : start + MOST_ROWS]
            places = ",".join("?" * len(part))
            sql = f"select {COLUMNS} from log where model = ? and event in ({places})"
            for row in starmap(Row, self._reading().execute(sql, (model, *part))):
                assert row.event is not None
                found.setdefault(row.event, {})[row.kind] = row
        return {event: Found(rows["decision"], rows.get("outcome")) for event, rows in found.items()}

    def snapshots(self) -> list[tuple[str, int]]:
        """By seq."""
        return self._reading().execute("select model, seq from snapshots order by seq").fetchall()

    def snapshot(self, model: str, seq: int) -> bytes | None:
        """Its bytes."""
        sql = "select body from snapshots where model = ? and seq = ?"
        found = self._reading().execute(sql, (model, seq)).fetchone()
        return None if found is None else bytes(found[0])

    def starts(self) -> list[Snapshot]:
        """All of them."""
        return list(starmap(Snapshot, self._reading().execute("select model, seq, body from starts order by seq")))

    def add_key(self, key: Key) -> None:
        """One row."""
        self._writing().execute("insert into keys values (?, ?, ?, ?, ?)", key)

    def keys(self) -> list[Key]:
        """In the order they were made."""
        rows = self._reading().execute("select id, hash, roles, model, revoked from keys order by rowid").fetchall()
        return [Key(id, hash, roles, model, bool(revoked)) for id, hash, roles, model, revoked in rows]

    def revoke_key(self, id: str) -> bool:
        """Mark it."""
        return self._writing().execute("update keys set revoked = 1 where id = ?", (id,)).rowcount == 1

    def close(self) -> None:
        """Checkpoint and let go of the lock."""
        for connection in (*self._all_readers, self._writer):  # the writer last, so that it can checkpoint
            if connection is not None:
                connection.close()
        self._writer, self._all_readers, self._readers = None, [], threading.local()
        self._lock.close()

    def _writing(self) -> sqlite3.Connection:
        if self._writer is None:
            raise SettingError(f"{self.folder} is not open for writing")
        return self._writer

    def _reading(self) -> sqlite3.Connection:
        """This thread's own connection."""
        reader: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if reader is None:
            reader = self._readers.connection = self._connect()
            self._all_readers.append(reader)
        return reader

    def _connect(self) -> sqlite3.Connection:
        if not self._file.exists():
            raise SettingError(f"{self.folder} holds no store")
        place = f"{self._file.absolute().as_uri()}?mode=ro"
        reader = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)
        reader.execute("pragma query_only = on")
        return reader


def _of(table: str) -> str:
    return ", ".join(f"{table}.{column}" for column in COLUMNS.split(", "))
