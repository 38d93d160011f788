"""Streams read as they are played."""

import io
import sys
import tracemalloc

import numpy as np
import pytest

from gaptron.errors import InputError, StreamError
from gaptron.streams import Chunks, open_stream, prepare
from tests.streams import writers
from tests.streams.test_formats import WRITTEN, X, y
from tests.streams.writers import dense, put

CHUNKED = {name: data for name, (data, _) in WRITTEN.items() if not name.endswith(".npz")}
CHUNKED["a.vw"] = writers.vw(X, y)
CHUNKED["a.csv.gz"] = CHUNKED["a.csv"]
CHUNKED["a.svm.xz"] = CHUNKED["a.svm"]


def together(chunks):
    pairs = list(chunks)
    return np.vstack([dense(X) for X, _ in pairs]), np.concatenate([y for _, y in pairs])


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
@pytest.mark.parametrize("name", CHUNKED)
def test_chunks_equal_the_whole(tmp_path, name, size):
    path = put(tmp_path, name, CHUNKED[name])
    width = {"n_features": 64} if name == "a.vw" else {}
    whole, chunks = open_stream(path, **width), open_stream(path, chunk=size, **width)
    assert isinstance(chunks, Chunks)
    assert (chunks.classes, chunks.n_features, chunks.n_classes) == (whole.classes, whole.n_features, 3)
    assert chunks.n_rounds == 40
    assert all(len(y) <= size for _, y in chunks)
    for _ in range(2):  # a file can be read again
        rows, labels = together(chunks)
        np.testing.assert_array_equal(rows, dense(whole.X))
        np.testing.assert_array_equal(labels, whole.y)


def test_what_is_told_is_not_learned(tmp_path):
    path = put(tmp_path, "a.svm", CHUNKED["a.svm"])
    told = open_stream(path, classes=range(3), n_features=7, chunk=10)
    assert told.notes == () and told.n_rounds is None
    np.testing.assert_array_equal(together(told)[0], X)
    learned = open_stream(path, classes=[2, 1, 0], chunk=10)
    assert learned.notes == ("classes and width learned by one pass over the file",)
    assert learned.classes == (2, 1, 0)
    np.testing.assert_array_equal(together(learned)[1], 2 - y)


def test_standard_input_is_read_once_and_must_be_told(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CHUNKED["a.svm"])))
    with pytest.raises(StreamError, match=r"standard input: .*classes=.*n_features="):
        open_stream("-", chunk=10)
    chunks = open_stream("-", chunk=10, classes=range(3), n_features=7)
    np.testing.assert_array_equal(together(chunks)[0], X)
    with pytest.raises(StreamError, match="only once"):
        next(iter(chunks))


def test_a_late_index_0_names_its_line(tmp_path):
    path = put(tmp_path, "a.svm", "0 1:1\n1 2:1\n# so far from 1\n0 0:1\n")
    assert open_stream(path).n_features == 3
    with pytest.raises(StreamError, match="line 4: feature index 0") as caught:
        open_stream(path, chunk=2)
    assert caught.value.line == 4


@pytest.mark.parametrize(
    "name,text,line",
    [
        ("a.svm", "0 1:1\n1 1:1\n0 1:1\n1 x:1\n", 4),
        ("a.svm", "0 1:1\n1 1:1\n0 1:1\n7 1:1\n", 4),
        ("a.svm", "0 1:1\n1 1:1\n0 9:1\n", 3),
        ("a.csv", "u,v,label\n1,2,0\n1,2,1\n1,inf,1\n", 4),
        ("a.vw", "0 | a\n1 | a\n0 | b:c\n", 3),
    ],
)
def test_errors_past_the_first_chunk_name_their_line(tmp_path, name, text, line):
    chunks = open_stream(put(tmp_path, name, text), classes=[0, 1], n_features=2, chunk=2)
    with pytest.raises(StreamError) as caught:
        list(chunks)
    assert caught.value.line == line


def test_a_parquet_error_names_its_row(tmp_path):
    bad = X.copy()
    bad[25, 2] = np.nan
    path = put(tmp_path, "a.parquet", writers.parquet_dense(bad, y))
    with pytest.raises(StreamError, match="row 26: a feature is NaN"):
        list(open_stream(path, classes=range(3), n_features=7, chunk=10))


def test_an_empty_file_holds_no_rounds(tmp_path):
    path = put(tmp_path, "a.svm", "# nothing\n")
    with pytest.raises(StreamError, match="holds no rounds"):
        open_stream(path, chunk=10)
    with pytest.raises(StreamError, match="holds no rounds"):
        list(open_stream(path, chunk=10, classes=[0, 1], n_features=2))


def test_what_cannot_be_cut_says_so(tmp_path, monkeypatch):
    with pytest.raises(StreamError, match="npz cannot be read in chunks"):
        open_stream(put(tmp_path, "a.npz", WRITTEN["dense.npz"][0]), chunk=10)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WRITTEN["dense.parquet"][0])))
    with pytest.raises(StreamError, match="parquet cannot be read in chunks"):
        open_stream("-", format="parquet", chunk=10, classes=range(3), n_features=7)


@pytest.mark.parametrize("setting", [{"chunk": 0}, {"n_features": 0}, {"chunk": 5, "n_features": -1}])
def test_sizes_are_positive(tmp_path, setting):
    path = put(tmp_path, "a.svm", CHUNKED["a.svm"])
    with pytest.raises(InputError, match="at least 1"):
        open_stream(path, **setting)


def test_a_file_larger_than_the_memory_it_takes(tmp_path):
    path = tmp_path / "large.svm"
    line = " ".join(f"{i}:0.{i:04d}" for i in range(1, 60))
    with path.open("w") as file:
        for t in range(30):
            file.write(f"{t % 3} {line}\n" * 100)
    size = path.stat().st_size
    open_stream(put(tmp_path, "small.svm", CHUNKED["a.svm"]))  # whatever reading imports, before the scales are set
    tracemalloc.start()
    chunks = prepare(open_stream(path, chunk=40), unit_norm=True)
    n_rounds = sum(len(y) for _, y in chunks)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_rounds == chunks.n_rounds == 3000
    assert peak < size / 4, f"{peak} bytes for a file of {size}"
