"""Small files that ask for endless time or memory are refused with one error; what is asked for still works."""

import gzip
import io
import lzma
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gaptron.errors import GaptronError, InputError, SettingError, StreamError
from gaptron.experiments import store
from gaptron.experiments.plan_file import read_plan
from gaptron.learner import Learner
from gaptron.offpolicy import open_log
from gaptron.streams import open_stream
from gaptron.streams.source import MAX_EXPANSION, Text
from gaptron.streams.tables import open_table

ROUND = b"1 1:0.5\n2 2:0.5\n"
GOOD = {"svm": ROUND, "vw": b"1 | a\n2 | b\n", "csv": b"u,y\n1,a\n2,b\n", "tsv": b"u\ty\n1\ta\n2\tb\n"}
BOMB = b"\n" * 2_000_000
CHUNKED: dict[str, Any] = {"chunk": 100}


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gaptron.streams.source.ALWAYS_UNPACKED", 1 << 20)
    monkeypatch.delenv(MAX_EXPANSION, raising=False)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["a.svm.gz", "a.vw.gz", "a.csv.gz", "a.tsv.xz", "a.svm.xz"])
@pytest.mark.parametrize("options", [{}, CHUNKED], ids=["whole", "chunks"])
def test_text_that_unpacks_to_far_more_than_its_size_is_refused(
    tmp_path: Path, name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    good = {"svm": ROUND, "vw": b"1 | a\n2 | b\n", "csv": b"u,y\n1,a\n2,b\n", "tsv": b"u\ty\n1\ta\n2\tb\n"}[
        name.split(".")[1]
    ]
    path.write_bytes((gzip if name.endswith("gz") else lzma).compress(good + BOMB))
    with pytest.raises(StreamError, match=f"unpacks to more than 200 times its .* {MAX_EXPANSION}"):
        open_stream(path, **options)
    monkeypatch.setenv(MAX_EXPANSION, "inf")
    stream = open_stream(path, **options)
    assert stream.n_rounds == 2


def test_logs_are_limited_too(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(BOMB))
    with pytest.raises(StreamError, match="unpacks to more than"):
        open_log(path)
    path = tmp_path / "a.dsjson.gz"
    path.write_bytes(gzip.compress(b" " * 2_000_000))
    with pytest.raises(StreamError, match="unpacks to more than"):
        open_log(path)


def test_standard_input_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(ROUND + BOMB))))
    with pytest.raises(StreamError, match="standard input: unpacks to more than"):
        open_stream("-")


@pytest.mark.parametrize("opening", [open_stream, open_log])
def test_archives_of_arrays_are_limited_too(tmp_path: Path, opening: Callable[[Path], Any]) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.zeros((1000, 1000)), y=np.zeros(1000, dtype=np.int64))
    with pytest.raises(StreamError, match="unpacks to more than"):
        opening(path)


@pytest.mark.parametrize("options", [{}, CHUNKED], ids=["whole", "chunks"])
def test_parquet_files_with_far_more_cells_than_bytes_are_refused(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet  # noqa: PLC0415

    path = tmp_path / "a.parquet"
    zeros = np.zeros(300_000)
    parquet.write_table(pa.table({"u": zeros, "v": zeros, "y": zeros.astype(np.int64)}), path)
    for opening in (open_stream, open_table):
        with pytest.raises(StreamError, match="unpacks to more than"):
            opening(path, **options)
    monkeypatch.setenv(MAX_EXPANSION, "1e9")
    assert open_stream(path, classes=[0, 1]).n_rounds == 300_000


def test_ordinary_compressed_text_passes(tmp_path: Path) -> None:
    path = tmp_path / "a.svm.gz"
    digits = np.random.default_rng(0).integers(0, 10**6, 300_000)
    path.write_bytes(gzip.compress(b"".join(b"%d 1:0.%d\n" % (value % 2, value) for value in digits.tolist())))
    assert open_stream(path).n_rounds == 300_000


@pytest.mark.parametrize("value", ["0", "-1", "nan", "many", ""])
def test_the_limit_is_a_number(tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_EXPANSION, value)
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(ROUND + BOMB))
    with pytest.raises(SettingError, match=MAX_EXPANSION):
        open_stream(path)


def test_blank_lines_take_no_room_for_rounds() -> None:
    assert Text("a", 1, BOMB, None).max_lines == 0
    assert Text("a", 1, b"\r\n \n" * 100 + ROUND, None).max_lines <= len(ROUND)
    assert Text("a", 1, b"1\n" * 100, None).max_lines == 100


def test_memory_that_does_not_suffice_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(ROUND)

    def no_memory(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("gaptron.streams.svmlight._parsed", no_memory)
    with pytest.raises(StreamError, match="not enough memory"):
        open_stream(path)


# --- special files --------------------------------------------------------------------------------------------

OPENING: dict[str, Callable[[Path], Any]] = {
    "a.svm": open_stream,
    "a.svm.gz": open_stream,
    "a.csv": open_stream,
    "b.csv": open_table,
    "a.vw": open_stream,
    "a.npz": open_stream,
    "a.parquet": open_stream,
    "b.parquet": open_table,
    "a.jsonl": open_log,
    "a.dsjson": open_log,
    "b.npz": open_log,
    "a.gaptron": Learner.load,
    "plan.toml": read_plan,
    "results.jsonl": store.read,
    "more.jsonl": store.Store,
}


@pytest.mark.parametrize("name", OPENING)
def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, name: str) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    path = tmp_path / name
    os.mkfifo(path)
    caught: list[BaseException] = []

    def read() -> None:
        try:
            OPENING[name](path)
        except GaptronError as error:
            caught.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(60.0)
    assert not reader.is_alive(), "it waits for somebody who writes"
    assert caught and ("named pipe" in str(caught[0]) or "not a regular file" in str(caught[0]))


@pytest.mark.parametrize("name", OPENING)
def test_a_loop_of_links_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    try:
        path.symlink_to(path)
    except OSError:
        pytest.skip("no symbolic links here")
    with pytest.raises(GaptronError, match=r"(?i)symbolic links"):
        OPENING[name](path)


def test_sockets_and_devices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as endless:
        endless.bind("a.svm")
        with pytest.raises(StreamError, match="a socket"):
            open_stream("a.svm")
    if os.path.exists("/dev/zero"):
        with pytest.raises(InputError, match="a device"):
            open_stream("/dev/zero", format="svmlight")


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no descriptors as files here")
@pytest.mark.parametrize("path", ["-", "/dev/stdin", "/dev/fd/0"])
def test_open_descriptors_are_read(path: str) -> None:
    script = (
        "import sys; from gaptron.streams import open_stream\n"
        "print(open_stream(sys.argv[1], format='svmlight').n_rounds)"
    )
    done = subprocess.run([sys.executable, "-c", script, path], input=ROUND, capture_output=True, timeout=120)
    assert done.stdout.split() == [b"2"], done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no descriptors as files here")
def test_a_pipe_is_not_read_twice() -> None:
    script = "from gaptron.streams import open_stream; list(open_stream('/dev/fd/0', format='svmlight', chunk=1))"
    done = subprocess.run([sys.executable, "-c", script], input=ROUND, capture_output=True, timeout=120)
    assert b"can be read only once" in done.stderr
