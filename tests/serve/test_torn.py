"""A simulated loss of power: the end of the write-ahead log is cut, torn or overwritten.

What SQLite has synchronised stays; here everything after a random byte is lost or damaged. The store must open and
contain a prefix of the log that ends with a complete commit and replays.
"""

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from gaptron.serve.replay import replay
from gaptron.serve.store import open_store
from tests.serve.process import make_triage, running
from tests.serve.served import Served

CUTS = 40


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A store whose log grew to some size, copied while it was open; and where each commit ends."""
    folder = tmp_path_factory.mktemp("grown")
    served = Served(str(folder / "store"))
    served.make()
    ends = []
    for block in range(12):
        rows = [{"event_id": f"e{block}-{t}", "x": [0.1 * t, 0.2]} for t in range(9)]
        served.call("POST", "/v1/models/triage/decisions/batch", {"decisions": rows})
        outcomes = [{"event_id": f"e{block}-{t}", "correct": t % 3 == 0} for t in range(6)]
        served.call("POST", "/v1/models/triage/outcomes", {"outcomes": outcomes})
        ends.append(served.service.coordinator._seq)
    shutil.copytree(served.place, folder / "copy")
    served.close()
    assert (folder / "copy" / "gaptron.db-wal").stat().st_size > 100_000, "or nothing would be torn"
    return folder / "copy", ends


def damaged(way: str, data: bytes, at: int, rng: Any) -> bytes:
    if way == "cut":
        return data[:at]
    if way == "zeros":
        return data[:at] + bytes(len(data) - at)
    if way == "noise":
        return data[:at] + rng.bytes(len(data) - at)
    page = bytearray(data)  # one page in the middle is not what was written, though later ones are
    page[at : at + 4096] = rng.bytes(min(4096, len(data) - at))
    return bytes(page)


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", ["cut", "zeros", "noise", "page"])
def test_a_torn_log_leaves_a_prefix_that_replays(grown: tuple[Path, list[int]], tmp_path: Path, way: str) -> None:
    source, ends = grown
    wal = (source / "gaptron.db-wal").read_bytes()
    rng, lengths = np.random.default_rng(0), set()
    for number in range(CUTS):
        place = tmp_path / str(number)
        shutil.copytree(source, place)
        (place / "gaptron.db-shm").unlink(missing_ok=True)
        at = int(rng.integers(0, len(wal)))
        (place / "gaptron.db-wal").write_bytes(damaged(way, wal, at, rng))
        store = open_store(str(place))
        assert store.acquire_lease()
        rows = [row.seq for row, _ in store.read()]
        assert rows == list(range(1, len(rows) + 1))
        done = replay(store)
        lengths.add(len(rows))
        assert done.events == len(rows) <= ends[-1]
        store.close()
        shutil.rmtree(place)
    assert len(lengths) > 5, "the cuts were all in one place"
    commits = {0, 1, *ends, *(end - 6 for end in ends)}
    assert lengths <= commits, "part of a commit came back"


def test_every_commit_waits_for_the_disk(tmp_path: Path) -> None:
    store: Any = open_store(str(tmp_path / "store"))
    store.acquire_lease()
    assert store._writing().execute("pragma synchronous").fetchone() == (2,), "FULL"
    assert store._writing().execute("pragma journal_mode").fetchone() == ("wal",)
    store.close()


@pytest.mark.slow
def test_a_row_is_synchronised_before_its_response_is_sent(tmp_path: Path) -> None:
    """By strace: the write-ahead log is written and synchronised before the response is sent."""
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    trace, place = tmp_path / "trace", str(tmp_path / "store")
    with running(place, tmp_path) as server:
        server.wait_ready()
        make_triage(server.url)
        calls = "trace=pwrite64,pwritev,fdatasync,fsync,write,writev,sendto,sendmsg"
        command = ["strace", "-f", "-y", "-s", "40", "-e", calls, "-o", str(trace), "-p", str(server.process.pid)]
        watcher = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not trace.exists() or not trace.read_text():
            if watcher.poll() is not None:
                pytest.skip("strace may not attach here")
            assert time.monotonic() < end
            httpx.get(f"{server.url}/healthz")
        for number in range(5):
            body = {"event_id": f"e{number}", "x": [0.1, 0.2]}
            assert httpx.post(f"{server.url}/v1/models/triage/decisions", json=body).status_code == 201
        watcher.terminate()
        watcher.wait()
    written, answers = False, 0
    for line in trace.read_text().splitlines():
        if "pwrite" in line and "-wal>" in line:
            written = True
        elif ("fdatasync(" in line or "fsync(" in line) and "-wal>" in line and "= 0" in line:
            written = False
        elif ("fdatasync resumed" in line or "fsync resumed" in line) and "= 0" in line:
            written = False
        elif "HTTP/1.1 201" in line:
            assert not written, "a response was sent before its row was synchronised"
            answers += 1
    assert answers == 5 and "-wal>" in trace.read_text()
