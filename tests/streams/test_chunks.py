"""Streams read as they are played."""

import io
import sys
import tracemalloc

import numpy as np
import pytest

from gaptron import Learner
from gaptron.errors import InputError, StreamError
from gaptron.streams import Chunks, open_stream, prepare, source
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


def test_classes_and_width_that_are_given_are_not_searched_for(tmp_path):
    path = put(tmp_path, "a.svm", CHUNKED["a.svm"])
    given = open_stream(path, classes=range(3), n_features=7, chunk=10)
    assert given.notes == () and given.n_rounds is None
    np.testing.assert_array_equal(together(given)[0], X)
    learned = open_stream(path, classes=[2, 1, 0], chunk=10)
    assert learned.notes == ("classes and width found in a first pass over the file",)
    assert learned.classes == (2, 1, 0)
    np.testing.assert_array_equal(together(learned)[1], 2 - y)


def test_standard_input_is_read_once_and_needs_classes_and_width(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CHUNKED["a.svm"])))
    with pytest.raises(StreamError, match=r"standard input: .*classes=.*n_features="):
        open_stream("-", chunk=10)
    chunks = open_stream("-", chunk=10, classes=range(3), n_features=7)
    np.testing.assert_array_equal(together(chunks)[0], X)
    with pytest.raises(StreamError, match="only once"):
        next(iter(chunks))


LATE = "0 1:1\n1 2:1\n# so far from 1\n0 0:1\n"


def test_a_pass_over_the_file_sees_a_late_index_0(tmp_path):
    path = put(tmp_path, "a.svm", LATE)
    whole, chunks = open_stream(path), open_stream(path, chunk=2)
    assert whole.n_features == chunks.n_features == 3 and whole.index_base == chunks.index_base == 0
    np.testing.assert_array_equal(together(chunks)[0], dense(whole.X))


def test_without_a_pass_a_late_index_0_names_its_line(tmp_path):
    path = put(tmp_path, "a.svm", LATE)
    known = {"classes": [0, 1], "n_features": 3, "chunk": 2}
    chunks = open_stream(path, **known)
    assert chunks.index_base == 1
    for _ in range(2):
        with pytest.raises(StreamError, match=r"line 4: feature index 0, .* index_base=0") as caught:
            list(chunks)
        assert caught.value.line == 4
    np.testing.assert_array_equal(together(open_stream(path, index_base=0, **known))[0], dense(open_stream(path).X))


@pytest.mark.parametrize("base", [0, 1, "0", "1"])
@pytest.mark.parametrize("chunk", [None, 1, 100])
def test_two_files_that_belong_together_count_alike(tmp_path, base, chunk):
    monday, tuesday = put(tmp_path, "m.svm", "0 1:1\n1 2:1\n"), put(tmp_path, "t.svm", "0 2:1\n1 3:1\n")
    columns = []
    for path in (monday, tuesday):
        stream = open_stream(path, index_base=base, n_features=4, chunk=chunk)
        assert stream.index_base == int(base)
        columns.append([X.indices.tolist() for X, _ in stream] if chunk else [stream.X.indices.tolist()])
    shift = 1 - int(base)
    assert np.concatenate(columns[0]).tolist() == [0 + shift, 1 + shift]
    assert np.concatenate(columns[1]).tolist() == [1 + shift, 2 + shift]


def test_standard_input_counts_as_its_first_chunk_does(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0 0:1\n1 1:1\n0 2:1\n")))
    chunks = open_stream("-", chunk=1, classes=[0, 1], n_features=3)
    assert chunks.index_base is None
    parts = list(chunks.streams())
    assert [part.index_base for part in parts] == [0, 0, 0]
    assert [part.X.indices.tolist() for part in parts] == [[0], [1], [2]]


def test_an_index_0_where_features_count_from_1(tmp_path):
    path = put(tmp_path, "a.svm", "0 1:1\n1 0:1\n")
    with pytest.raises(StreamError, match="line 2: feature index 0"):
        open_stream(path, index_base=1)
    with pytest.raises(InputError, match="index_base='2' must be 0, 1 or 'auto'"):
        open_stream(path, index_base="2")
    with pytest.raises(StreamError, match="index_base= is for svmlight files"):
        open_stream(put(tmp_path, "a.csv", "1,2,a\n3,4,b\n"), index_base=1)


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


def test_an_empty_file_is_refused(tmp_path):
    path = put(tmp_path, "a.svm", "# nothing\n")
    with pytest.raises(StreamError, match="contains no rounds"):
        open_stream(path, chunk=10)
    with pytest.raises(StreamError, match="contains no rounds"):
        list(open_stream(path, chunk=10, classes=[0, 1], n_features=2))


def test_formats_that_cannot_be_chunked_are_refused(tmp_path, monkeypatch):
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


def test_a_file_larger_than_the_memory_it_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 1 << 15)
    path = tmp_path / "large.svm"
    line = " ".join(f"{i}:0.{i:04d}" for i in range(1, 60))
    with path.open("w") as file:
        for t in range(60):
            file.write(f"{t % 3} {line}\n" * 100)
    size = path.stat().st_size
    open_stream(put(tmp_path, "small.svm", CHUNKED["a.svm"]))  # whatever reading imports, before the scales are set
    tracemalloc.start()
    chunks = prepare(open_stream(path, chunk=40), unit_norm=True)
    n_rounds = sum(len(y) for _, y in chunks)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_rounds == chunks.n_rounds == 6000
    assert peak < size / 4, f"{peak} bytes for a file of {size}"


def test_rows_too_long_to_play_may_still_be_scaled(tmp_path):
    path = tmp_path / "long.svm"
    path.write_text("1 1:1e100 2:1\n2 1:1 2:3e99\n" * 20)
    chunks = open_stream(path, chunk=7)
    learner = Learner(n_classes=2, seed=0)
    with pytest.raises(InputError, match="has norm 1e"):
        learner.play(*next(iter(chunks)))
    scaled = prepare(chunks, unit_norm=True)
    assert sum(learner.play(X, y).rounds for X, y in scaled) == 40
