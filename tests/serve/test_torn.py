"""A loss of power, as far as it can be played: the end of the write-ahead log is cut, torn or not what was written.

What SQLite has synchronised stays; here everything behind some byte is lost or damaged, wherever that byte is. The
store must open, hold a beginning of the log, whole commits only, and fold to itself.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gaptron.serve.replay import replay
from gaptron.serve.store import open_store
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
