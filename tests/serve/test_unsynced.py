"""A loss of power while SQLite writes: unsynchronised data is lost, torn or written, in any combination.

strace records every write and every synchronisation of a growing store. After a simulated loss of power, each file
contains everything written before its last synchronisation, and some sectors of what was written later. The store must
open, pass the integrity check, and contain every commit that had returned.
"""

import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gaptron.serve.store import open_store

pytestmark = pytest.mark.slow
SECTOR, LOSSES = 512, 80
GROWS = """
import os, sys
from gaptron.serve.events import Row
from gaptron.serve.store import Snapshot, open_store

store = open_store(sys.argv[1])
store.acquire_lease()
store._writing().execute("pragma wal_autocheckpoint = 60")
seq = 0
for commit in range(150):
    rows = [Row(seq + n, "m", "decided", f"e{seq + n}", seq + n, "x" * 700) for n in range(1, 1 + commit % 7 + 1)]
    store.append(rows, [Snapshot("m", rows[-1].seq, b"s" * 3000)] if commit % 10 == 9 else [])
    seq = rows[-1].seq
    os.write(1, b"on disk %d\\n" % seq)
os._exit(0)  # without the checkpoint of a proper end
"""
CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)", re.S)


class Event(NamedTuple):
    """A write to a file, its synchronisation, its new length, or a commit that returned (`at`: its last row)."""

    kind: str
    file: str
    at: int = 0
    data: bytes = b""


def plain(text: str) -> bytes:
    """A string of strace's, all in hexadecimal."""
    return bytes.fromhex(text.strip('"').replace("\\x", ""))


def events(trace: str) -> list[Event]:
    files: dict[str, str] = {}
    found: list[Event] = []
    for line in trace.splitlines():
        called = CALL.match(line)
        if called is None:
            continue
        name, given, result = called.groups()
        parts = given.split(", ")
        if name == "openat" and int(result) >= 0:
            files[result] = Path(plain(parts[1]).decode()).name
        elif name == "close":
            files.pop(parts[0], None)
        elif name == "write" and parts[0] == "1":
            found.append(Event("on disk", "", int(plain(parts[1]).split()[-1])))
        elif files.get(parts[0], "") in ("gaptron.db", "gaptron.db-wal"):
            file = files[parts[0]]
            if name == "pwrite64":
                data = plain(parts[1])
                assert len(data) == int(parts[2]) == int(result), "strace cut a write"
                found.append(Event("write", file, int(parts[3]), data))
            elif name in ("fsync", "fdatasync"):
                found.append(Event("sync", file))
            elif name == "ftruncate":
                found.append(Event("length", file, int(parts[1])))
    return found


def written(image: bytearray, event: Event, rng: Any = None) -> None:
    """Do what an event did; with `rng`, only to some of its sectors."""
    if event.kind == "length":
        del image[event.at :]
        image.extend(bytes(event.at - len(image)))
        return
    end = event.at + len(event.data)
    image.extend(bytes(max(0, end - len(image))))
    if rng is None:
        image[event.at : end] = event.data
        return
    how = rng.random()  # whole, not at all, or sector by sector
    for start in range(0, len(event.data), SECTOR):
        if how < 0.4 or (how > 0.7 and rng.random() < 0.5):
            piece = event.data[start : start + SECTOR]
            image[event.at + start : event.at + start + len(piece)] = piece


def after_power_loss(happened: list[Event], rng: Any) -> dict[str, bytearray]:
    """The files as they may be."""
    safe: dict[str, bytearray] = {"gaptron.db": bytearray(), "gaptron.db-wal": bytearray()}
    unsafe: dict[str, list[Event]] = {name: [] for name in safe}
    for event in happened:
        if event.kind == "sync":
            for one in unsafe[event.file]:
                written(safe[event.file], one)
            unsafe[event.file] = []
        elif event.kind in ("write", "length"):
            unsafe[event.file].append(event)
    for name, image in safe.items():
        for event in unsafe[name]:
            written(image, event, rng)
    return safe


def test_every_commit_that_returned_survives_a_loss_of_power(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    trace = tmp_path / "trace"
    calls = "trace=openat,close,pwrite64,write,fsync,fdatasync,ftruncate"
    command = ["strace", "-xx", "-s", "100000", "-e", calls, "-o", str(trace), sys.executable, "-c", GROWS]
    done = subprocess.run([*command, str(tmp_path / "store")], capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip("strace may not attach here")
    assert done.returncode == 0, done.stderr
    log = events(trace.read_text())
    first = next(number for number, event in enumerate(log) if event.kind == "on disk")
    kinds = [(event.kind, event.file) for event in log]
    assert kinds.count(("sync", "gaptron.db")) > 5, "no checkpoint was seen"
    rng, survived = np.random.default_rng(0), set()
    for number in range(LOSSES):
        moment = int(rng.integers(first, len(log)))
        acknowledged = max(event.at for event in log[: moment + 1] if event.kind == "on disk")
        place = tmp_path / f"image-{number}"
        place.mkdir()
        for name, image in after_power_loss(log[: moment + 1], rng).items():
            (place / name).write_bytes(image)
        store = open_store(str(place))
        assert store.acquire_lease()
        rows = [row.seq for row, _ in store.read()]
        assert rows == list(range(1, len(rows) + 1))
        assert len(rows) >= acknowledged, "a commit that had returned is lost"
        store.close()
        with sqlite3.connect(place / "gaptron.db") as file:
            assert file.execute("pragma integrity_check").fetchone() == ("ok",)
        survived.add(len(rows))
        shutil.rmtree(place)
    assert len(survived) > 20, "the power was always lost at the same moment"
