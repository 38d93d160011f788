"""A loss of power, as far as it can be played: the end of the write-ahead log is cut, torn or not what was written.

What SQLite has synchronised stays; here everything behind some byte is lost or damaged, wherever that byte is. The
store must open, hold a beginning of the log, whole commits only, and fold to itself.
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
        ends.append(served.service.desk._seq)
    shutil.copytree(served.place, folder / "copy")
    served.close()
    assert (folder / "copy" / "gaptron.db-wal").stat().st_size > 100_000, "or nothing would be torn"
    return folder / "copy", ends


def damaged(way: str, data: bytes, at: int, chance: Any) -> bytes:
    if way == "cut":
        return data[:at]
    if way == "zeros":
        return data[:at] + bytes(len(data) - at)
    if way == "noise":
        return data[:at] + chance.bytes(len(data) - at)
    page = bytearray(data)  # one page in the middle is not what was written, though later ones are
    page[at : at + 4096] = chance.bytes(min(4096, len(data) - at))
    return bytes(page)


@pytest.mark.parametrize("way", ["cut", "zeros", "noise", "page"])
def test_what_is_left_of_a_torn_log_is_a_beginning_that_folds(
    grown: tuple[Path, list[int]], tmp_path: Path, way: str
) -> None:
    source, ends = grown
    wal = (source / "gaptron.db-wal").read_bytes()
    chance, lengths = np.random.default_rng(0), set()
    for number in range(CUTS):
        place = tmp_path / str(number)
        shutil.copytree(source, place)
        (place / "gaptron.db-shm").unlink(missing_ok=True)
        at = int(chance.integers(0, len(wal)))
        (place / "gaptron.db-wal").write_bytes(damaged(way, wal, at, chance))
        store = open_store(str(place))
        assert store.lead()
        rows = [row.seq for row, _ in store.read()]
        assert rows == list(range(1, len(rows) + 1))
        done = replay(store)
        lengths.add(len(rows))
        assert done.entries == len(rows) <= ends[-1]
        store.close()
        shutil.rmtree(place)
    assert len(lengths) > 5, "the cuts were all in one place"
    commits = {0, 1, *ends, *(end - 6 for end in ends)}
    assert lengths <= commits, "part of a commit came back"


def test_every_commit_waits_for_the_disk(tmp_path: Path) -> None:
    store: Any = open_store(str(tmp_path / "store"))
    store.lead()
    assert store._writing().execute("pragma synchronous").fetchone() == (2,), "FULL"
    assert store._writing().execute("pragma journal_mode").fetchone() == ("wal",)
    store.close()


@pytest.mark.slow
def test_the_system_is_asked_to_synchronise_between_a_row_and_its_answer(tmp_path: Path) -> None:
    """By strace: the write-ahead log is written, synchronised, and only then does the answer go out."""
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
            assert not written, "an answer went out before its row was synchronised"
            answers += 1
    assert answers == 5 and "-wal>" in trace.read_text()
