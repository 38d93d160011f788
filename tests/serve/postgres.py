"""PostgreSQL for tests: the server that GAPTRON_TEST_POSTGRES names, or a new one from installed binaries."""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ports = itertools.count(20_000 + 37 * os.getpid() % 12_000)


def free_port() -> int:
    """A port to listen on, below the range from which the system takes ports for outgoing connections.

    Each process starts at another number, so that workers of pytest-xdist do not choose the same port at the same time.
    """
    for number in _ports:
        port = 20_000 + (number - 20_000) % 12_000
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError


def _binaries() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    for folder in [*folders, *([Path(found).parent] if found else [])]:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


class Cluster:
    """A separate server, which a test may kill."""

    def __init__(self) -> None:
        binaries = _binaries()
        if binaries is None:
            pytest.skip("no PostgreSQL: set GAPTRON_TEST_POSTGRES to a URL, or install its server")
        self._bin = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="gaptron-pg-"))
        self._user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        if self._user:
            try:
                shutil.chown(self.folder, self._user)
            except LookupError:
                pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        self.port = free_port()
        self._call("initdb", "-D", self.folder / "data", "-A", "trust", "-U", "postgres", "-N")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=50"
        start = ("pg_ctl", "-D", self.folder / "data", "-o", options, "-l", self.folder / "log", "-w", "start")
        for _ in range(60):  # after a kill, it waits for the children of the killed server to end
            if self._call(*start, check=False):
                return
            time.sleep(0.5)
        raise AssertionError((self.folder / "log").read_text())

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL; its children end when they notice."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split("\n")[0])
        os.kill(pid, signal.SIGKILL)
        while _alive(pid):
            time.sleep(0.01)

    def stop(self) -> None:
        self._call("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, name: str, *arguments: Any, check: bool = True) -> bool:
        # No pipe: the server would keep it open.
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        user = {"user": self._user} if self._user else {}
        command = [str(self._bin / name), *map(str, arguments)]
        return subprocess.run(command, check=check, cwd=self.folder, **quiet, **user).returncode == 0


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a database."""
    pytest.importorskip("psycopg")
    named = os.environ.get("GAPTRON_TEST_POSTGRES")
    if named:
        yield named
        return
    cluster = Cluster()
    yield cluster.url
    cluster.stop()


def with_schema(url: str, name: str) -> str:
    """Create a schema, and return the URL that selects it."""
    import psycopg  # noqa: PLC0415

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'drop schema if exists "{name}" cascade')  # type: ignore[call-overload]
        connection.execute(f'create schema "{name}"')  # type: ignore[call-overload]
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
