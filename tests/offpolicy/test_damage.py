"""Logs on disks that fill up, processes that are stopped, and files that were damaged."""

import gzip
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from gaptron import Learner
from gaptron.cli import app
from gaptron.errors import SettingError, StreamError
from gaptron.offpolicy import DamagedLogWarning, DecisionLog, open_log, save_log
from gaptron.offpolicy import line_file as line_file_module
from tests.offpolicy.worlds import same, some_log

NAMES = ["live.jsonl", "live.jsonl.gz"]
SOURCE = some_log(T=40)


def learner():
    return Learner("squarecb", classes=["a", "b", "c"], feedback="bandit", norm=10.0, seed=1)


def write_some(log, mine, rounds):
    for t in rounds:
        log.write(mine.decide(SOURCE.example(t)), correct=t % 3 == 0)


def text_of(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


# --- a disk that is full ------------------------------------------------------------------------------------

FULL_DISK = """
import resource, sys
import numpy as np
from gaptron import Learner
from gaptron.errors import StreamError
from gaptron.offpolicy import DecisionLog
from tests.offpolicy.test_damage import SOURCE, learner

learner().decide(SOURCE.example(0))  # compiled, and in the cache, while there is space
path, mine, refused = sys.argv[1], learner(), 0
log, written = DecisionLog(path), 0
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
limit(int(sys.argv[2]))
for t in range(40):
    try:
        log.write(mine.decide(SOURCE.example(t)), correct=t % 3 == 0)
    except StreamError as error:
        assert "cannot be written (File too large)" in str(error), error
        refused += 1
        if refused == 2:
            limit(resource.RLIM_INFINITY)
    else:
        written += 1
try:
    log.close()
except StreamError:
    pass
print(written, refused)
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "room"), [("live.jsonl", "4000"), ("live.jsonl.gz", "900")])
def test_a_full_disk_loses_no_line_that_was_acknowledged(tmp_path, name, room):
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FULL_DISK, str(tmp_path / name), room],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    written, refused = map(int, done.stdout.split())
    assert refused == 2 and written == 38
    assert open_log(tmp_path / name).n_rounds == written


def test_a_full_disk_in_the_middle_of_a_line(tmp_path, monkeypatch):
    """The half that got through is cut off at once, and the next line starts on a new line."""
    path, mine = tmp_path / "live.jsonl", learner()
    real = os.write

    def half(file, data):
        real(file, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with DecisionLog(path) as log:
        write_some(log, mine, range(26))
        before = path.read_bytes()
        monkeypatch.setattr(line_file_module.os, "write", half)
        with pytest.raises(StreamError, match=r"live\.jsonl: cannot be written \(No space left on device\)"):
            log.write(mine.decide(SOURCE.example(26)), correct=True)
        monkeypatch.setattr(line_file_module.os, "write", real)
        assert path.read_bytes() == before
        write_some(log, mine, range(27, 30))
    assert open_log(path).n_rounds == 29


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_in_the_middle_of_a_line(tmp_path, monkeypatch, name):
    path, mine, real = tmp_path / name, learner(), os.write

    def interrupted(file, data):
        real(file, data[:7])
        raise KeyboardInterrupt

    with warnings.catch_warnings(), DecisionLog(path) as log:
        warnings.simplefilter("ignore", DamagedLogWarning)  # the .gz is rewritten without the line that failed
        write_some(log, mine, range(5))
        monkeypatch.setattr(line_file_module.os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.write(mine.decide(SOURCE.example(5)), correct=True)
        monkeypatch.setattr(line_file_module.os, "write", real)
        write_some(log, mine, range(6, 9))
    assert open_log(path).n_rounds == 8


def test_a_log_that_cannot_be_written_leaves_the_old_one(tmp_path):
    pytest.importorskip("resource")
    save_log(some_log(T=3), tmp_path / "log.jsonl")
    code = (
        "import resource, sys; from gaptron.offpolicy import save_log; from tests.offpolicy.worlds import some_log\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); save_log(some_log(T=400), sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "log.jsonl"], capture_output=True, text=True)
    assert "StreamError" in done.stderr and "cannot be written (File too large)" in done.stderr
    same(open_log(tmp_path / "log.jsonl"), some_log(T=3))
    assert os.listdir(tmp_path) == ["log.jsonl"]


def test_special_files_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    for write in (
        lambda path: save_log(some_log(), path),
        lambda path: DecisionLog(path).write(learner().decide(SOURCE.example(0)), correct=True),
    ):
        with pytest.raises(StreamError, match="not a regular file"):
            write(tmp_path / "pipe.jsonl")


# --- a file that ends too early -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["log.jsonl", "log.dsjson"])
def test_an_incomplete_last_line_is_left_out_with_a_warning(tmp_path, name):
    log = some_log(T=27)
    save_log(log, tmp_path / "whole.jsonl")
    save_log(log, tmp_path / name)
    data = (tmp_path / name).read_bytes()
    start = data.rfind(b"\n", 0, -1) + 1
    for end in (start + 1, (start + len(data)) // 2, len(data) - 2):
        (tmp_path / name).write_bytes(data[:end])
        with pytest.warns(DamagedLogWarning, match=rf"{name}: line \d+ is incomplete .* was skipped"):
            same(open_log(tmp_path / name), log[:26])
    (tmp_path / name).write_bytes(data[:-1])  # only the end of the line is missing
    same(open_log(tmp_path / name), log)


def test_compressed_data_that_ends_too_early(tmp_path):
    log = some_log(T=400)
    save_log(log, tmp_path / "log.jsonl.gz")
    data = (tmp_path / "log.jsonl.gz").read_bytes()
    (tmp_path / "log.jsonl.gz").write_bytes(data[: len(data) // 2])
    with pytest.warns(DamagedLogWarning, match="the compressed data is truncated"):
        part = open_log(tmp_path / "log.jsonl.gz")
    assert part.n_rounds > 150
    same(part, log[: part.n_rounds])


@pytest.mark.parametrize("name", NAMES)
def test_an_incomplete_last_line_is_cut_off_before_more_is_written(tmp_path, name):
    path, mine = tmp_path / name, learner()
    with DecisionLog(path) as log:
        write_some(log, mine, range(20))
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    with (
        pytest.warns(DamagedLogWarning, match="last line was removed|was truncated"),
        DecisionLog(path) as log,
    ):
        write_some(log, mine, range(20, 30))
    kept = text_of(path).splitlines()
    assert len(kept) in (30, 31) and all(json.loads(line) for line in kept)
    assert open_log(path).n_rounds == len(kept) - 1


def test_a_file_that_is_no_log_is_not_cut(tmp_path):
    path = tmp_path / "live.jsonl"
    for text in ("hello", "hello\nthere", '{"format":"gaptron-log","version":1,"classes":["x'):
        path.write_text(text)
        with pytest.raises(StreamError, match="cannot be continued"):
            DecisionLog(path).write(learner().decide(SOURCE.example(0)), correct=True)
        assert path.read_text() == text
    path.write_text('{"format":"gaptron-log","vers')  # stopped while its first line was being written
    with DecisionLog(path) as log:
        write_some(log, learner(), range(3))
    assert open_log(path).n_rounds == 3


def test_one_writer_at_a_time(tmp_path):
    pytest.importorskip("fcntl")
    with DecisionLog(tmp_path / "live.jsonl") as log, DecisionLog(tmp_path / "live.jsonl") as other:
        write_some(log, learner(), range(2))
        with pytest.raises(StreamError, match="is open in another DecisionLog"):
            write_some(other, learner(), range(2))
    assert open_log(tmp_path / "live.jsonl").n_rounds == 2


def test_compression_that_holds_lines_back_is_refused(tmp_path):
    for name in ("live.jsonl.bz2", "live.jsonl.xz"):
        with pytest.raises(StreamError, match=r"use \.gz or no compression"):
            DecisionLog(tmp_path / name)


# --- a line that is damaged ---------------------------------------------------------------------------------

DAMAGE = {
    "glued": lambda line: line[:50] + line,
    "nul": lambda line: b"\0" * len(line),
    "not-utf-8": lambda line: line[:4] + b"\xff" + line[5:],
    "other-object": lambda line: b'{"time": "noon"}',
    "deep": lambda line: b"[" * 100_000,
    "deep-inside": lambda line: line.replace(b'"x":', b'"x":' + b'{"c":' * 3000),
    "long-number": lambda line: line.replace(b'"x":', b'"x":' + b"1" * 10_000),
}


@pytest.mark.parametrize("name", ["log.jsonl", "log.dsjson"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_line_is_named_and_skipped_on_request(tmp_path, name, damage):
    log = some_log(T=10)
    save_log(log, tmp_path / name)
    lines = (tmp_path / name).read_bytes().splitlines()
    at = 4 if name == "log.dsjson" else 5  # the line of the round number 5
    lines[at] = DAMAGE[damage](lines[at])
    (tmp_path / name).write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(StreamError) as caught:
        open_log(tmp_path / name)
    assert caught.value.line == at + 1
    with pytest.warns(DamagedLogWarning, match=rf"skipped line {at + 1} \("):
        kept = open_log(tmp_path / name, damaged="skip")
    np.testing.assert_array_equal(kept.codes, np.delete(log.codes, 4))
    np.testing.assert_array_equal(kept.propensity, np.delete(log.propensity, 4))


def test_impossible_numbers_and_first_lines_are_not_skipped(tmp_path):
    save_log(some_log(T=10, whole=False), tmp_path / "log.jsonl")
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    wrong = [*lines[:3], json.dumps({**json.loads(lines[3]), "propensity": 1.5}), *lines[4:]]
    (tmp_path / "log.jsonl").write_text("\n".join(wrong))
    with pytest.raises(StreamError, match=r"line 4: propensity 1\.5"):
        open_log(tmp_path / "log.jsonl", damaged="skip")
    (tmp_path / "log.jsonl").write_text("\n".join([lines[0][:20], *lines[1:]]))
    with pytest.raises(StreamError, match="line 1: not JSON"):
        open_log(tmp_path / "log.jsonl", damaged="skip")
    with pytest.raises(SettingError, match="refuse, skip"):
        open_log(tmp_path / "log.jsonl", damaged="magic")


def test_the_command_line_says_what_was_left_out(tmp_path):
    save_log(some_log(T=30), tmp_path / "log.jsonl")
    data = (tmp_path / "log.jsonl").read_bytes().splitlines()
    data[7] = data[7][:30]
    (tmp_path / "log.jsonl").write_bytes(b"\n".join(data)[:-20])
    words = ["evaluate", str(tmp_path / "log.jsonl"), "-a", "squarecb"]
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, StreamError) and "--skip-damaged" in str(refused.exception)
    result = CliRunner().invoke(app, [*words, "--skip-damaged"], catch_exceptions=False)
    assert result.exit_code == 0 and "28 rounds" in result.output
    assert "warning: " in result.output and "skipped line 8" in result.output
    assert "line 31 is incomplete" in result.output
    said = json.loads(CliRunner().invoke(app, [*words, "--skip-damaged", "--json"], catch_exceptions=False).stdout)
    assert any("skipped line 8" in warning for warning in said["warnings"])


# --- long lines and many keys -------------------------------------------------------------------------------


def test_a_line_with_very_many_keys_is_read(tmp_path):
    """A search through all keys for each of them would not come to an end here."""
    many = {str(key): 1.0 for key in range(200_000)}
    first = {"format": "gaptron-log", "version": 1, "classes": ["a", "b"], "n_features": 200_000}
    line = json.dumps({"x": many, "label": "a", "propensity": 0.5, "reward": 1})
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(first) + "\n" + line + "\n")
    assert open_log(path).X.nnz == 200_000
    path.write_text(json.dumps(first) + "\n" + line.replace('"199999":', '"199998":') + "\n")
    with pytest.raises(StreamError, match='line 2: "199998" appears twice'):
        open_log(path)
