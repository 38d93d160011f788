"""The file format alone: what goes in comes out, and nothing but what went in."""

import json
import math
import os
import random
import stat
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors

from gaptron.errors import ModelFileError
from gaptron.learner import model_file

TREE = {
    "none": None,
    "flags": [True, False],
    "numbers": [0, -1, 2**127, 1.5, -0.0, 5e-324, math.inf, -math.inf],
    "texts": ["", "naïve ☃", "\0", '"$tuple"'],
    "tuples": ((), (1, (2.0, ("3", None)))),
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


def forged(path, tree, tensors=None, data=bytes(64), version=str(model_file.FORMAT), **more):
    """A safetensors file with a right checksum over any tree and any tensors one likes."""
    text = tree if isinstance(tree, str) else json.dumps(tree)
    tensors = {"a": tensor("F64", [8])} if tensors is None else tensors
    metadata = {"gaptron": version, "tree": text, "sha256": model_file._checksum(text, {"a": np.zeros(8)}), **more}
    return written(path, json.dumps({"__metadata__": metadata, **tensors}).encode(), data)


def tensor(dtype, shape, begin=0, end=64):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def written(path, header, data=b"", length=None):
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + data)
    return path


def test_what_goes_in_comes_out(tmp_path):
    path = tmp_path / "tree"
    model_file.write(path, TREE)
    back = model_file.read(path)
    assert same(TREE, back)
    back["arrays"]["cube"][0, 0, 0] = 7  # ours to write
    assert same(TREE, model_file.read(str(path)))


def test_numpys_scalars_come_back_as_pythons(tmp_path):
    path, scalars = tmp_path / "tree", [np.True_, np.float32(0.1), np.int8(-3), np.uint64(2**64 - 1), np.float16(0.5)]
    model_file.write(path, scalars)
    assert same([True, float(np.float32(0.1)), -3, 2**64 - 1, 0.5], model_file.read(path))


def test_other_tools_read_it(tmp_path):
    """safetensors alone: the arrays by their place in the tree, and the tree beside them."""
    path = tmp_path / "tree"
    model_file.write(path, TREE)
    with safetensors.safe_open(path, "np") as file:
        assert set(file.keys()) == {f"arrays.{name}" for name in TREE["arrays"]}
        np.testing.assert_array_equal(file.get_tensor("arrays.cube"), TREE["arrays"]["cube"])
        assert set(file.metadata()) == {"gaptron", "tree", "sha256"} and file.metadata()["gaptron"] == "1"
        assert json.loads(file.metadata()["tree"])["arrays"]["cube"] == {"$array": "arrays.cube"}


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
    with pytest.raises(ModelFileError, match=r"cannot be written \(.* is not a regular file"):
        model_file.write(tmp_path, 1)
    assert os.listdir(tmp_path) == [] and os.listdir(tmp_path.parent).count(tmp_path.name) == 1
    with pytest.raises(ModelFileError, match=r"cannot be read \(No such file"):
        model_file.read(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"cannot be read \(Is a directory"):
        model_file.read(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="about pipes")
def test_a_pipe_is_neither_read_nor_replaced_and_nobody_waits(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        model_file.read(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        model_file.write(tmp_path / "pipe", 1)
    assert os.listdir(tmp_path) == ["pipe"]


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
from gaptron.learner import model_file
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


@pytest.mark.skipif(os.name != "posix", reason="about the rights of files")
def test_an_old_files_rights_stay_and_read_only_is_read_only(tmp_path):
    path = tmp_path / "tree"
    model_file.write(path, ["old"])
    for rights in (0o600, 0o640):
        path.chmod(rights)
        model_file.write(path, ["new"])
        assert stat.S_IMODE(path.stat().st_mode) == rights
    path.chmod(0o400)
    with pytest.raises(ModelFileError, match="is read-only"):
        model_file.write(path, ["newer"])
    assert model_file.read(path) == ["new"] and os.listdir(tmp_path) == ["tree"]


def test_a_new_file_has_the_rights_any_new_file_has(tmp_path):
    (tmp_path / "plain").touch()
    model_file.write(tmp_path / "tree", 1)
    assert (tmp_path / "tree").stat().st_mode == (tmp_path / "plain").stat().st_mode


FOREIGN = {
    "nothing": b"",
    "a word": b"GAPTRON\0",
    "a file of an earlier format": b"GAPTRON\0" + bytes(90),
    "an archive": b"PK\3\4" + bytes(200),
    "a pickle": b"\x80\x04K\x01.",
    "zeros": bytes(200),
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=list(FOREIGN))
def test_foreign_files(tmp_path, data):
    path = tmp_path / "tree"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="not a gaptron model file"):
        model_file.read(path)


def test_tensors_of_another_program_are_no_model(tmp_path):
    for metadata in (None, {"format": "pt"}):
        safetensors.numpy.save_file({"weight": np.ones(3)}, tmp_path / "tree", metadata)
        with pytest.raises(ModelFileError, match="not a gaptron model file"):
            model_file.read(tmp_path / "tree")


def test_a_newer_format_is_named(tmp_path):
    path = forged(tmp_path / "tree", {"anything": 1}, version="3")
    with pytest.raises(ModelFileError, match="its format is '3', but this version reads format 1: update gaptron"):
        model_file.read(path)


HEADERS = {
    "not JSON": b"{",
    "not UTF-8": b"\xff\xff",
    "nothing": b"",
    "a list": b"[]",
    "no metadata": b"{}",
    "metadata as a word": b'{"__metadata__": "gaptron"}',
    "no tree": b'{"__metadata__": {"gaptron": "2", "sha256": ""}}',
    "no checksum": b'{"__metadata__": {"gaptron": "2", "tree": "1"}}',
    "deep nesting": b'{"__metadata__": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a number of many digits": b'{"__metadata__": ' + b"1" * 10_000 + b"}",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=list(HEADERS))
def test_hostile_headers(tmp_path, header):
    with pytest.raises(ModelFileError, match="not a gaptron model file"):
        model_file.read(written(tmp_path / "tree", header, bytes(64)))


@pytest.mark.parametrize("length", [0, 1, 10**6, 2**63, 2**64 - 1])
def test_a_header_length_that_lies(tmp_path, length):
    path = tmp_path / "tree"
    model_file.write(path, {"a": np.zeros(8)})
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    with pytest.raises(ModelFileError, match="not a gaptron model file"):
        model_file.read(path)


TENSORS = {
    "an unknown type": {"a": tensor("O", [8])},
    "no type": {"a": {"shape": [8], "data_offsets": [0, 64]}},
    "huge": {"a": tensor("F64", [2**40])},
    "huge in two axes": {"a": tensor("F64", [2**32, 2**32])},
    "empty and huge": {"a": tensor("F64", [8]), "b": tensor("F64", [0, 2**70], 64, 64)},
    "negative": {"a": tensor("F64", [-1, -8])},
    "a fraction": {"a": tensor("F64", [8.5])},
    "too small": {"a": tensor("F64", [1], 0, 8)},
    "outside the file": {"a": tensor("F64", [8], 64, 128)},
    "one over the other": {"a": tensor("F64", [8]), "b": tensor("F64", [8])},
    "nothing of the data": {},
    "of another shape": {"a": tensor("F64", [4, 2])},
    "of another type": {"a": tensor("I64", [8])},
    "of another name": {"b": tensor("F64", [8])},
}


@pytest.mark.parametrize("tensors", TENSORS.values(), ids=list(TENSORS))
def test_hostile_tensors(tmp_path, tensors):
    with pytest.raises(ModelFileError, match="damaged"):
        model_file.read(forged(tmp_path / "tree", {"$array": "a"}, tensors))


def test_a_forged_file_that_is_right_is_read(tmp_path):
    """This shows that the refusals above are about what they say they are."""
    np.testing.assert_array_equal(model_file.read(forged(tmp_path / "tree", {"$array": "a"})), np.zeros(8))


@pytest.mark.parametrize("checksum", ["", "0" * 64, 7])
def test_a_wrong_checksum(tmp_path, checksum):
    with pytest.raises(ModelFileError, match="damaged"):
        model_file.read(forged(tmp_path / "tree", {"$array": "a"}, sha256=checksum))


TREES = {
    "not JSON": "{",
    "nothing": "",
    "NaN": "NaN",
    "deep nesting": "[" * 100_000 + "]" * 100_000,
    "a number of many digits": "1" * 10_000,
    "an array that is not there": {"$array": "b"},
    "an array by number": {"$array": 0},
    "an array of many": {"$array": ["a"]},
    "an unknown word": {"$call": "os.system"},
    "two words": {"$tuple": [], "$array": "a"},
    "a tuple of letters": {"$tuple": "abc"},
    "a float of words": {"$float": "1e5"},
    "a float of many": {"$float": ["inf"]},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=list(TREES))
def test_hostile_trees(tmp_path, tree):
    with pytest.raises(ModelFileError, match="its header is invalid"):
        model_file.read(forged(tmp_path / "tree", tree))
