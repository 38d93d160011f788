"""Clients that connect and send nothing, never end their headers, or never read: others are served meanwhile."""

import resource
import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gaptron.serve import connections
from gaptron.serve.store import open_store
from tests.serve.process import Process, make_triage, running
from tests.serve.served import Served

pytestmark = pytest.mark.slow
DESCRIPTORS = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    with running(str(tmp_path / "store"), tmp_path) as process:
        process.wait_ready()
        make_triage(process.url)
        yield process
        assert process.status() == 200
        process.stop()


def connect(server: Process) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), 10)
    made.settimeout(60)
    return made


def is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except ConnectionError:
        return True


def decide(server: Process, event: str) -> int:
    body = {"event_id": event, "x": [0.3, 1.0]}
    return httpx.post(f"{server.url}/v1/models/triage/decisions", json=body, timeout=30).status_code


def test_more_idle_connections_than_descriptors_shut_nobody_out(server: Process) -> None:
    """Those that have waited longest are closed. SQLite still has descriptors, for decisions and exports."""
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    idle = [connect(server) for _ in range(2 * DESCRIPTORS)]
    for turn in range(10):
        assert decide(server, f"e{turn}") == 201
    assert httpx.get(f"{server.url}/v1/models/triage/log", timeout=30).status_code == 200
    assert is_closed(idle[0])
    for one in idle:
        one.close()
    assert "Too many open files" not in server.messages.read_text()


@pytest.mark.parametrize(
    "start", [b"GET /healthz HTTP/1.1\r\n", b"GET /", b"\r\n"], ids=["headers", "address", "empty lines"]
)
def test_headers_that_do_not_end_are_cut_off(server: Process, start: bytes) -> None:
    """No matter how much is sent, little of it is kept."""
    endless = connect(server)
    endless.sendall(start)
    piece = {b"\r\n": b"\r\n" * 500, b"GET /": b"a" * 1000}.get(start, b"X-Name: value\r\n" * 70)
    sent = 0
    with pytest.raises(ConnectionError):
        while sent < 1000 * connections.MAX_HEADER_BYTES:
            endless.sendall(piece)
            sent += len(piece)
    endless.close()


def test_a_client_that_sends_its_headers_slowly_is_cut_off(server: Process) -> None:
    slow, quick = connect(server), connect(server)
    slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
    quick.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"200 OK" in quick.recv(4096)
    assert is_closed(slow)
    for one in (slow, quick):
        one.close()


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Served]:
    """A service in this process with a log of some thousand rows."""
    served = Served(str(tmp_path / "store"))
    served.make()
    for start in range(0, 3000, 1000):
        many = [{"event_id": f"e{start + t}", "x": [0.3, 1.0]} for t in range(1000)]
        assert served.call("POST", "/v1/models/triage/decisions/batch", {"decisions": many}).status_code == 200
    yield served
    served.close()


def test_an_export_that_nobody_reads_does_not_keep_the_wal_file(full: Served) -> None:
    """An open read transaction would: the file could not be reused, and would grow with every commit."""
    store = open_store(full.place)
    rows = store.read()
    next(rows)
    writer: sqlite3.Connection = full.service.store._writing()  # type: ignore[attr-defined]
    busy, _, _ = writer.execute("pragma wal_checkpoint(restart)").fetchone()
    assert busy == 0
    assert len(list(rows)) == 3000, "and it is read to the end"
    store.close()


def test_a_client_that_does_not_read_is_cut_off(server: Process) -> None:
    for start in range(0, 10_000, 1000):
        many = [{"event_id": f"e{start + t}", "x": [0.3] * 100} for t in range(1000)]
        answer = httpx.post(f"{server.url}/v1/models/triage/decisions/batch", json={"decisions": many}, timeout=60)
        assert answer.status_code == 200
        outcomes = {"outcomes": [{"event_id": one["event_id"], "correct": True} for one in many]}
        assert httpx.post(f"{server.url}/v1/models/triage/outcomes", json=outcomes, timeout=60).status_code == 200
    made = connect(server)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.sendall(b"GET /v1/models/triage/log HTTP/1.1\r\nHost: localhost\r\n\r\n")
    time.sleep(connections.READ_TIMEOUT + 5)
    received = 0
    with pytest.raises(ConnectionError):
        while data := made.recv(1 << 20):
            received += len(data)
        raise ConnectionResetError("closed before the end") if received < 5_000_000 else AssertionError(received)
    made.close()
