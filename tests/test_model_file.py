"""The file format alone: what goes in comes out, and nothing but what went in."""

import hashlib
import json
import math
import os
import random
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from gaptron import model_file
from gaptron.errors import ModelFileError

TREE = {
    "none": None,
    "flags": [True, False, np.True_],
    "numbers": [0, -1, 2**127, 1.5, -0.0, 5e-324, math.inf, -math.inf],
    "texts": ["", "naïve ☃", "\0", '"$tuple"'],
    "tuples": ((), (1, (2.0, ("3", None)))),
    "scalars": [np.float32(0.1), np.int8(-3), np.uint64(2**64 - 1), np.float16(0.5)],
    "arrays": {
        "empty": np.zeros((0, 3)),
        "0-d": np.array(2.5),
        "flags": np.array([True, False, True]),
        "cube": np.arange(24, dtype=np.int32).reshape(2, 3, 4),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big-endian": np.arange(3, dtype=">f8"),
        "every other": np.arange(9)[::2],
        "odd": np.array([np.nan, -0.0, np.inf]),
    },
}


def same(one, two):
    """Equal to the last bit, and of the same type."""
    if isinstance(one, dict):
        return type(two) is dict and list(one) == list(two) and all(same(one[k], two[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(two) and len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, np.ndarray):
        little = one.astype(one.dtype.newbyteorder("<"))
        return two.dtype == little.dtype and one.shape == two.shape and little.tobytes() == two.tobytes()
    return type(one) is type(two) and repr(one) == repr(two)


def forged(path, header, payload=b"", version=model_file.FORMAT, length=None):
    """A file with a right checksum and any header one likes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = struct.pack("<8sIQ", model_file.MAGIC, version, len(text) if length is None else length) + text
    data += bytes(-len(data) % 64) + payload
    path.write_bytes(data + hashlib.sha256(data).digest())
    return path


def test_what_goes_in_comes_out(tmp_path):
    path = tmp_path / "tree"
    model_file.write(path, TREE)
    back = model_file.read(path)
    assert same(TREE, back)
    back["arrays"]["cube"][0, 0, 0] = 7  # ours to write
    assert same(TREE, model_file.read(str(path)))


@pytest.mark.parametrize(
    "value",
    [
        object(),
        b"bytes",
        {1, 2},
        {1: "a"},
        {"$array": 0},
        1j,
        np.array([1j]),
        np.array(["a", None], dtype=object),
        np.datetime64("2020-01-01"),
        np.array(["words"]),
        "half a character \ud800",
        10**5000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_stored_is_refused_and_the_old_file_stays(tmp_path, value):
    path = tmp_path / "tree"
    model_file.write(path, ["old"])
    with pytest.raises(ModelFileError, match="tree: "):
        model_file.write(path, ["new", value])
    assert model_file.read(path) == ["old"] and os.listdir(tmp_path) == ["tree"]


def test_a_folder_that_is_not_there_or_a_name_that_is_a_folder(tmp_path):
    with pytest.raises(ModelFileError, match=r"cannot be written \(No such file"):
        model_file.write(tmp_path / "nowhere" / "tree", 1)
    with pytest.raises(ModelFileError, match=r"cannot be written \(Is a directory"):
        model_file.write(tmp_path, 1)
    assert os.listdir(tmp_path) == [] and os.listdir(tmp_path.parent).count(tmp_path.name) == 1
    with pytest.raises(ModelFileError, match=r"cannot be read \(No such file"):
        model_file.read(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"cannot be read \(Is a directory"):
        model_file.read(tmp_path)


def test_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "tree"
    model_file.write(path, ["old"])

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match="No space left"):
        model_file.write(path, ["new"])
    assert model_file.read(path) == ["old"] and os.listdir(tmp_path) == ["tree"]


def test_the_draft_is_on_disk_before_it_has_the_name_and_the_name_before_we_say_so(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, real=real: (calls.append(name), real(*a)))
    model_file.write(tmp_path / "tree", ["new"])
    assert calls == ["fsync", "replace", "fsync"] and model_file.read(tmp_path / "tree") == ["new"]


WRITER = """
import itertools, sys
import numpy as np
from gaptron import model_file
for n in itertools.count(1):
    model_file.write(sys.argv[1], {"n": n, "array": np.full(200_000, n)})
    print(n, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="about kill -9")
def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path):
    path, rng = tmp_path / "tree", random.Random(1)
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None and child.stdout.readline() == "1\n"
        time.sleep(rng.random() / 10)
        child.kill()
        said = [1, *(int(line) for line in child.stdout if line.endswith("\n"))]
        child.wait()
        child.stdout.close()
        found = model_file.read(path)
        assert found["n"] in (said[-1], said[-1] + 1) and (found["array"] == found["n"]).all()
    assert all(name == "tree" or name.startswith(".gaptron-") for name in os.listdir(tmp_path))


def test_a_link_stays_a_link_and_a_long_name_is_no_trouble(tmp_path):
    path, link = tmp_path / ("x" * 255), tmp_path / "link"
    link.symlink_to(path)
    model_file.write(link, [1])
    assert link.is_symlink() and model_file.read(path) == [1]


def test_a_new_file_has_the_rights_any_new_file_has(tmp_path):
    (tmp_path / "plain").touch()
    model_file.write(tmp_path / "tree", 1)
    assert (tmp_path / "tree").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    "data", [b"", b"GAPTRON\0", b"PK\3\4" + bytes(200), b"\x80\x04K\x01.", b"GAPTRON\0" + bytes(90)]
)
def test_foreign_files(tmp_path, data):
    path = tmp_path / "tree"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"not a model file|damaged"):
        model_file.read(path)


def test_a_newer_format_is_named(tmp_path):
    path = forged(tmp_path / "tree", {"anything": 1}, version=2)
    with pytest.raises(ModelFileError, match="its format is 2, this gaptron reads 1"):
        model_file.read(path)


HOSTILE = {
    "not JSON": b"{",
    "not UTF-8": b"\xff\xff",
    "nothing": b"",
    "a list": [],
    "no arrays": {"content": 1},
    "no content": {"arrays": []},
    "NaN": b'{"content": NaN, "arrays": []}',
    "deep nesting": b'{"arrays": [], "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a number of many digits": b'{"arrays": [], "content": ' + b"1" * 10_000 + b"}",
    "objects": {"content": {"$array": 0}, "arrays": [["|O", [1]]]},
    "pickled": {"content": {"$array": 0}, "arrays": [["O8", [8]]]},
    "complex": {"content": {"$array": 0}, "arrays": [["<c16", [4]]]},
    "records": {"content": {"$array": 0}, "arrays": [[[["a", "<f8"]], [8]]]},
    "huge": {"content": {"$array": 0}, "arrays": [["<f8", [2**40]]]},
    "huge in two axes": {"content": {"$array": 0}, "arrays": [["<f8", [2**32, 2**32]]]},
    "empty and huge": {"content": {"$array": 0}, "arrays": [["<f8", [0, 2**70]], ["<f8", [8]]]},
    "negative": {"content": {"$array": 0}, "arrays": [["<f8", [-1, -8]]]},
    "a fraction": {"content": {"$array": 0}, "arrays": [["<f8", [8.0]]]},
    "a flag": {"content": {"$array": 0}, "arrays": [["<f8", [True, 8]]]},
    "many axes": {"content": {"$array": 0}, "arrays": [["<f8", [1] * 100 + [8]]]},
    "too small": {"content": {"$array": 0}, "arrays": [["<f8", [1]], ["<f8", [1]]]},
    "nothing of the payload": {"content": 1, "arrays": []},
    "an array that is not there": {"content": {"$array": 1}, "arrays": [["<f8", [8]]]},
    "an array from the end": {"content": {"$array": -1}, "arrays": [["<f8", [8]]]},
    "an array by flag": {"content": {"$array": False}, "arrays": [["<f8", [8]]]},
    "a scalar of many": {"content": {"$array": [0]}, "arrays": [["<f8", [8]]]},
    "an unknown word": {"content": {"$call": "os.system"}, "arrays": [["<f8", [8]]]},
    "two words": {"content": {"$tuple": [], "$array": 0}, "arrays": [["<f8", [8]]]},
    "a tuple of letters": {"content": {"$tuple": "abc"}, "arrays": [["<f8", [8]]]},
    "a float of words": {"content": {"$float": "1e5"}, "arrays": [["<f8", [8]]]},
}


@pytest.mark.parametrize("header", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_headers(tmp_path, header):
    with pytest.raises(ModelFileError, match="header"):
        model_file.read(forged(tmp_path / "tree", header, bytes(64)))


@pytest.mark.parametrize("length", [0, 1, 10**6, 2**63, 2**64 - 1])
def test_a_header_length_that_lies(tmp_path, length):
    with pytest.raises(ModelFileError, match="header"):
        model_file.read(forged(tmp_path / "tree", {"content": 1, "arrays": []}, length=length))
