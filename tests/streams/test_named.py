"""Streams by name: those that ship, OpenML's, and those of the data directory."""

import json
from importlib.resources import files
from urllib.error import URLError

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets

from gaptron.errors import InputError, StreamError
from gaptron.streams import open_stream
from tests.conftest import shared_data
from tests.streams.writers import dense, put

SIZES = {
    "breast_cancer": (569, 30, 2),
    "iris": (150, 4, 3),
    "letter": (20000, 16, 26),
    "satimage": (6435, 36, 6),
    "segment": (2310, 18, 7),
    "vowel": (990, 10, 11),
    "wine": (178, 13, 3),
}


@pytest.mark.parametrize("name", SIZES)
def test_built_in_data_sets(name):
    stream = open_stream(name)
    assert (stream.n_rounds, stream.n_features, stream.n_classes) == SIZES[name]
    assert stream.X.dtype == np.float64 and stream.X.flags.c_contiguous and stream.y.dtype == np.int64
    assert set(stream.y) == set(range(stream.n_classes))


@pytest.mark.parametrize("name", ["letter", "satimage", "segment", "vowel"])
def test_shipped_files_are_small_name_their_licence_and_are_the_originals(name):
    folder = files("gaptron.streams") / "data"
    assert len((folder / f"{name}.npz").read_bytes()) < 300_000
    assert f"| {name}.npz |" in (folder / "LICENCE.md").read_text()
    card = json.loads((shared_data() / "META.json").read_text())[name]
    original = open_stream(shared_data() / card["file"], n_features=card["d"])
    np.testing.assert_array_equal(open_stream(name).X, dense(original.X))
    np.testing.assert_array_equal(open_stream(name).y, original.y)


def test_openml_without_a_network_is_one_sentence(monkeypatch):
    def fetch(*_, **__):
        raise URLError("no route")

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    with pytest.raises(
        StreamError, match=r"^openml:letter: cannot be downloaded from OpenML .*no route.*open the file"
    ):
        open_stream("openml:letter")


def test_openml_passes_name_and_version_on(monkeypatch):
    asked = []

    def fetch(name, *, version, **_):
        asked.append((name, version))
        return np.eye(3), np.array(["a", "b", "a"])

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    stream = open_stream("openml:letter@2")
    assert stream.classes == ("a", "b") and stream.name == "openml:letter@2"
    open_stream("openml:letter")
    assert asked == [("letter", 2), ("letter", "active")]
    for words in ("openml:", "openml:letter@new"):
        with pytest.raises(InputError, match="openml:NAME@VERSION"):
            open_stream(words)
    with pytest.raises(InputError, match="are for files"):
        open_stream("openml:letter", chunk=3)


def test_a_name_of_the_data_directory(tmp_path, monkeypatch):
    put(tmp_path, "a.svm", b"0 1:1\n1 2:1\n")
    cards = {"first": {"file": "a.svm", "d": 5, "kind": "dense"}, "second": {"file": "a.svm", "d": 3, "kind": "sparse"}}
    (tmp_path / "META.json").write_text(json.dumps(cards))
    monkeypatch.setenv("GAPTRON_DATA", str(tmp_path))
    first, second = open_stream("first"), open_stream("second")
    assert (first.name, first.X.shape, sparse.issparse(first.X)) == ("first", (2, 5), False)
    assert (second.name, second.X.shape, sparse.issparse(second.X)) == ("second", (2, 3), True)
    with pytest.raises(StreamError, match="no such file"):
        open_stream("third")


def test_without_a_data_directory_the_error_says_how_to_name_it(tmp_path, monkeypatch):
    monkeypatch.delenv("GAPTRON_DATA", raising=False)
    with pytest.raises(StreamError, match=r"covtype: there is no such file.*set GAPTRON_DATA to its path"):
        open_stream("covtype")
    monkeypatch.setenv("GAPTRON_DATA", str(tmp_path))
    with pytest.raises(StreamError, match=r"META.json.*GAPTRON_DATA"):
        open_stream("covtype")
    (tmp_path / "META.json").write_text('{"covtype": 3}')
    with pytest.raises(StreamError, match=r"META.json.*GAPTRON_DATA"):
        open_stream("covtype")
