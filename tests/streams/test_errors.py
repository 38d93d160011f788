"""What cannot be read is refused in one sentence that names the place."""

import gzip
import io
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from gaptron.data.examples import checked
from gaptron.errors import InputError, StreamError
from gaptron.streams import FORMATS, Stream, open_stream
from tests.streams import writers
from tests.streams.writers import put

LINES: list[tuple] = [
    ("a.svm", "0 1:1\n1 2:x\n", {}, 2, "'2:x' is not index:value"),
    ("a.svm", "0 1:1\n\n1 2\n", {}, 3, "'2' is not index:value"),
    ("a.svm", "0 1:1\n1 -2:1\n", {}, 2, "'-2:1' is not index:value"),
    ("a.svm", "# head\n0 1:1\nspam 2:1\n", {}, 3, "label 'spam' is not a number"),
    ("a.svm", "0 1:1\n1:1 2:1\n", {}, 2, "label '1:1' is not a number"),
    ("a.svm", "0 1:1\n1 3:1 2:1\n", {}, 2, "feature index 2 comes after 3"),
    ("a.svm", "0 1:1\n1 3:1 3:1\n", {}, 2, "feature index 3 comes after 3"),
    ("a.svm", "0 1:1\n1 99999999999:1\n", {}, 2, "larger than the largest"),
    ("a.svm", "0 1:1\n1 qid:1 2:1 qid:2\n", {}, 2, "'qid:2' is not index:value"),
    ("a.svm", "0 1:1\n0.5 1:1\n", {}, 2, "label 0.5 is not a whole number"),
    ("a.svm", "0 1:1\nnan 1:1\n", {}, 2, "label nan is not a whole number"),
    ("a.svm", "0 1:1\n1 1:1 # fine\n\n0 1:nan\n", {}, 4, "NaN or infinite"),
    ("a.svm", "0 1:1\n1 1:-inf\n", {}, 2, "NaN or infinite"),
    ("a.svm", "0 1:1\n1 5:1\n", {"n_features": 4}, 2, "feature index 5 is larger than the last one, 4"),
    ("a.svm", "0 0:1\n1 4:1\n", {"n_features": 4}, 2, "feature index 4 is larger than the last one, 3"),
    ("a.svm", "0 1:1\n-1 1:1\n", {"classes": [0, 1]}, 2, "label -1 is not one of the classes 0, 1"),
    ("a.svm", "0 1:1\n9 1:1\n", {"classes": range(9)}, 2, "not one of the classes 0, 1, 2, 3, 4, ..., 8"),
    ("a.csv", "1,2,0\n1,x,1\n", {}, 2, "column 1: 'x' is not a number"),
    ("a.csv", "u,v,label\n1,2,0\n1,,1\n", {}, 3, "column v: '' is not a number"),
    ("a.csv", "label,u,v\n0,1,2\n\n1,1,z\n", {}, 4, "column v: 'z' is not a number"),
    ("a.csv", "u,v,label\n1,2,0\n1,2\n", {}, 3, "2 cells where 3 are expected"),
    ("a.csv", "u,v,label\n1,2,0\n1,2,3,4\n", {}, 3, "4 cells where 3 are expected"),
    ("a.csv", "u,v,label\n1,2,0\n1,2,\n", {"unlabelled": "error"}, 3, "the label is missing"),
    ("a.csv", "u,v,label\n1,2,0\n1,nan,1\n", {}, 3, "NaN or infinite"),
    ("a.csv", "u,v,label\n1,2,a\n1,2,c\n", {"classes": ["a", "b"]}, 3, "label c is not one of the classes a, b"),
    ("a.csv", "u,label\n1,a\n1,b\n", {"n_features": 2}, 2, "1 features where n_features is 2"),
    ("a.csv", "u\n1\n0\n", {}, 1, "separated by ','"),
    ("a.csv", "u;v;label\n1;2;0\n", {"separator": ","}, 1, "separated by ','"),
    ("a.csv", "1,5;2,5;0\n2,5;1,5;1\n", {}, 1, "may be separated by ',' or by ';'"),
    ("a.csv", "u;v;label\n1;2;0\n1;2,5;0\n", {}, 3, "column v: '2,5' is not a number; if it has a decimal comma"),
    ("a.csv", b"u,v,label\n1,2,0\n1,2,\xff\n", {}, 3, "not UTF-8"),
    ("a.csv", "u,v,label\r1,2,0\r1,2,1\r", {}, 1, "a carriage return inside a line: end lines with a line feed"),
    ("a.csv", "u,v,label\n1,2,0\n1,2\r,1\n", {}, 3, "a carriage return inside a line"),
    ("a.svm", "0 1:1\n1 2:1\r1 1:1\n", {}, 2, "a carriage return inside a line"),
    ("a.vw", "1 | a\n2 | a\r1 | b\n", {}, 2, "a carriage return inside a line"),
    ("a.csv", "u,v,label\n1,2,0\n1,1_0,1\n", {}, 3, "column v: '1_0' is not a number"),
    ("a.csv", "u,v,label\n1,2,0\n1,\uff11,1\n", {}, 3, "column v: '\uff11' is not a number"),
    ("a.csv", "u,v,label\n1,2,0\n1,0x10,1\n", {}, 3, "column v: '0x10' is not a number"),
    ("a.csv", "u,v,label\n1,2,0\n1,1e999,1\n", {}, 3, "NaN or infinite"),
    ("a.csv", f"u,v,label\n1,2,0\n1,{'x' * 999},1\n", {}, 3, f"column v: '{'x' * 37}...' is not a number"),
    ("a.csv", 'u,v,label\n1,2,"a\n3,4,b\n', {}, 2, "the line cannot be split into cells"),
    ("a.csv", 'u,v,label\n1,2,"a\nb"\nx,4,b\n', {}, 4, "column u: 'x' is not a number"),
    ("a.csv", f"u,v,label\n1,2,{'a' * 200_000}\n1,2,b\n", {}, 2, "the line cannot be split into cells"),
    ("a.svm", "0 1:1\n1 1_0:1\n", {}, 2, "'1_0:1' is not index:value"),
    ("a.svm", "0 1:1\n1 10:1_0\n", {}, 2, "'10:1_0' is not index:value"),
    ("a.svm", "0 1:1\n1_0 10:1\n", {}, 2, "label '1_0' is not a number"),
    ("a.svm", "0 1:1\n1 \uff11:1\n", {}, 2, "is not index:value"),
    ("a.svm", f"0 1:1\n1 {'9' * 5000}:1\n", {}, 2, "is larger than the largest"),
    (
        "a.svm",
        "0 1:1\n1 2147483648:1\n",
        {},
        2,
        "feature index 2147483648 is larger than the largest allowed, 2147483647",
    ),
    ("a.vw", "1 | a\n2 | a:1_0\n", {}, 2, "'1_0' is not a number"),
    ("a.vw", "1 | a\n2 1_0 | a:1\n", {}, 2, "'1_0' is not a number"),
    ("a.vw", "1 | a\n2 | a:nan\n", {}, 2, "NaN or infinite"),
    ("a.vw", "1 | a\n| a\n", {}, 2, "no label"),
    ("a.vw", "1 | a\n2| a\n", {}, 2, "no label"),
    ("a.vw", "1 | a\n\n2 0.5 | a\n", {}, 3, "importance 0.5: weights other than 1 are not supported"),
    ("a.vw", "1 | a\n2 1 0 | a\n", {}, 2, "more than a label and an importance"),
    ("a.vw", "1 | a\n2 a\n", {}, 2, "no | before the features"),
    ("a.vw", "1 | a\n2 | a:b\n", {}, 2, "'b' is not a number"),
    ("a.vw", "1 | a\n2 |n:w a\n", {}, 2, "'w' is not a number"),
    ("a.vw", "1 | a\n2 | :3\n", {}, 2, "':3' is a value without a feature"),
    ("a.vw", "1 | a\n2 | a:inf\n", {}, 2, "NaN or infinite"),
    ("a.vw", b"1 | a\n\xff | a\n", {}, 2, "not UTF-8"),
]


@pytest.mark.parametrize("name,text,options,line,problem", LINES)
def test_a_bad_line_is_named(tmp_path, name, text, options, line, problem):
    path = put(tmp_path, name, text)
    with pytest.raises(StreamError) as caught:
        open_stream(path, **options)
    assert caught.value.line == line and caught.value.source == str(path)
    assert problem in str(caught.value) and f", line {line}: " in str(caught.value)
    assert "\n" not in str(caught.value)


FILES = [
    ("a.svm", "", {}, "contains no rounds"),
    ("a.csv", "\n\n", {}, "contains no rounds"),
    ("a.csv", "u,v,label\n", {}, "contains no rounds"),
    ("a.vw", "", {}, "contains no rounds"),
    ("a.parquet", writers.parquet_dense(np.zeros((0, 2)), np.zeros(0)), {}, "contains no rounds"),
    ("a.npz", writers.npz(X=np.zeros((0, 2)), y=np.zeros(0)), {}, "contains no rounds"),
    ("a.svm", "1 1:1\n1 2:1\n", {}, "every round has label 1"),
    ("a.svm", "1\n2\n", {}, "no round has a feature"),
    ("a.svm", "1 1:1\n", {"classes": [1]}, "at least two different labels"),
    ("a.svm", "1 1:1\n", {"classes": [1, 2, 2]}, "classes holds a label twice"),
    ("a.svm", "1 1:1\n", {"classes": [1, None]}, "classes holds None, which means that a label is missing"),
    ("a.svm", "1 1:1\n", {"label": "y"}, "svmlight files have no columns"),
    ("a.txt", "1 1:1\n", {}, "unknown format: set format= to one of csv, npz, parquet, svmlight, tsv, vw"),
    ("a.svm", "1 1:1\n", {"format": "arff"}, "unknown format"),
    (
        "a.csv",
        "1,0.5\n1,0.25\n",
        {},
        "line 1: label 0.5 is not a whole number: is it a feature? If it is a label, list all classes",
    ),
    ("a.csv", "u,v,label\n1,2,0\n", {"label": "z"}, "label='z' is not one of the columns u, v, label"),
    ("a.csv", "u,v,label\n1,2,0\n", {"label": 3}, "label=3 is not one of the columns"),
    ("a.parquet", b"PAR1 no", {}, "cannot be read as Parquet"),
    ("a.parquet.gz", b"", {}, "parquet files are compressed already: unpack the .gz first"),
    ("a.npz", b"PK no", {}, "cannot be read as .npz"),
    ("a.npz", writers.npz(Z=np.zeros(2), y=np.arange(2)), {}, "needs arrays X and y, or data"),
    ("a.npz", writers.npz(X=np.zeros((3, 2)), y=np.arange(2)), {}, "a row for each label"),
    ("a.npz", writers.npz(X=np.array([["a"], ["b"]]), y=np.arange(2)), {}, "a matrix of numbers"),
]


@pytest.mark.parametrize("name,data,options,problem", FILES)
def test_a_bad_file_is_named(tmp_path, name, data, options, problem):
    path = put(tmp_path, name, data)
    with pytest.raises(InputError) as caught:
        open_stream(path, **options)
    assert problem in str(caught.value)


def _parquet(**columns):
    return writers._parquet(columns)


PARQUET = [
    (_parquet(y=[0, None], f=[1.0, 2.0]), "row 2: the label is missing"),
    (_parquet(y=[0.0, 1.5], f=[1.0, 2.0]), "row 2: label 1.5 is not a whole number"),
    (_parquet(y=[0, 1], f=[1.0, None]), "row 2: column f has no value"),
    (_parquet(y=[0, 1], f=[1.0, float("inf")]), "row 2: a feature is NaN or infinite"),
    (_parquet(y=[0, 1], f=["a", "b"]), "column f contains string, not numbers"),
    (_parquet(y=[0, 1]), "no column except the label"),
    (_parquet(idx=[[1], [2]], val=[[1.0], [1.0]]), "no column is named like a label"),
    (_parquet(y=[0, 1], idx=[[1], None]), "row 2: a list is missing"),
    (_parquet(y=[0, 1], idx=[[1], [2, None]]), "row 2: a list contains null"),
    (_parquet(y=[0, 1], idx=[[1], [2, -3]]), "row 2: feature index -3 is negative"),
    (_parquet(y=[0, 1], idx=[[1], [2, 3]], val=[[1.0], [1.0]]), "row 2: idx and val differ in length"),
    (_parquet(y=["a", ""], f=[1.0, 2.0]), "row 2: the label is missing"),
]


@pytest.mark.parametrize("data,problem", PARQUET)
def test_a_bad_parquet_row_is_named(tmp_path, data, problem):
    with pytest.raises(StreamError) as caught:
        open_stream(put(tmp_path, "a.parquet", data), unlabelled="error")
    assert problem in str(caught.value)


def test_a_column_named_idx_may_be_a_plain_feature(tmp_path):
    stream = open_stream(put(tmp_path, "a.parquet", _parquet(idx=[7, 8], y=[0, 1])))
    np.testing.assert_array_equal(stream.X, [[7], [8]])


def test_labels_may_be_categories(tmp_path):
    y = pa.array(["b", "a", "b"]).dictionary_encode()
    stream = open_stream(put(tmp_path, "a.parquet", _parquet(f=[1.0, 2.0, 3.0], y=y)))
    assert stream.classes == ("a", "b") and stream.y.tolist() == [1, 0, 1]


def test_a_sparse_matrix_that_is_not_csr(tmp_path):
    X = sparse.csc_array(np.eye(2))
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "y": np.arange(2)}
    with pytest.raises(StreamError, match="not CSR"):
        open_stream(put(tmp_path, "a.npz", writers.npz(format=b"csc", **parts)))
    with pytest.raises(StreamError, match="do not fit together"):
        open_stream(put(tmp_path, "b.npz", writers.npz(**{**parts, "indices": np.array([0, 5])})))


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(StreamError, match="no such file, and the built-in streams are alternating, breast_cancer,"):
        open_stream(tmp_path / "none.svm")
    for folder in ("folder.svm", "folder.parquet", "folder.npz"):
        (tmp_path / folder).mkdir()
        with pytest.raises(StreamError, match="cannot be read"):
            open_stream(tmp_path / folder)


@pytest.mark.parametrize("packed", [".gz", ".bz2", ".xz"])
def test_damaged_compression(tmp_path, packed):
    path = put(tmp_path, f"a.svm{packed}", "0 1:1\n1 2:1\n" * 1000)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(StreamError, match="compressed data is damaged"):
        open_stream(path)
    path.write_bytes(b"0 1:1\n")
    with pytest.raises(StreamError, match=r"damaged|cannot be read"):
        open_stream(path)


def test_damage_on_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"0 1:1\n" * 100)[:-9])))
    with pytest.raises(StreamError, match="standard input: the compressed data is damaged"):
        open_stream("-")


def test_arrays_are_checked():
    good = np.eye(3)
    bad = good.copy()
    bad[2, 1] = np.nan
    for X, y, problem in [
        (bad, [0, 1, 2], r"X\[2\]: a feature is NaN"),
        (sparse.csr_matrix(bad), [0, 1, 2], r"X\[2\]: a feature is NaN"),
        (good, [0, 1], "a row for each label"),
        (good[0], [0, 1, 2], "two dimensions"),
        (good, [0, 1, 0.5], r"X\[2\]: label 0.5"),
        (good, [0, 1, np.nan], r"X\[2\]: the label is missing"),
        (good, np.array([0, 1, np.nan]), r"X\[2\]: the label is missing"),
        (good, [[0], [1], [2]], "plain labels"),
        (good, np.eye(3), "a row for each label"),
        (good, ["a", "b", None], r"X\[2\]: the label is missing"),
        (good, [1, 1, 1], "two classes"),
        ([["a"], ["b"]], [0, 1], "a matrix of numbers"),
        (np.array([["a"], [1]], dtype=object), [0, 1], "a matrix of numbers"),
        (np.eye(2) * 1j, [0, 1], "a matrix of numbers"),
        (sparse.eye_array(2) * 1j, [0, 1], "a matrix of numbers"),
        (np.zeros((2, 0)), [0, 1], "at least one column"),
    ]:
        with pytest.raises(InputError, match=problem):
            Stream.from_arrays(X, y)


def test_numbers_of_names_follow_the_rule_too():
    with pytest.raises(InputError, match="rounds cannot be '1_0'"):
        open_stream("synsep:rounds=1_0")


def test_a_large_feature_index_takes_no_memory(tmp_path):
    path = put(tmp_path, "a.svm", "0 1:1\n1 2147483646:1\n")
    open_stream(put(tmp_path, "b.svm", "0 1:1\n1 2:1\n"))  # whatever reading imports, before memory is measured
    for chunk in (None, 1):
        tracemalloc.start()
        stream = open_stream(path, chunk=chunk)
        assert stream.n_features == 2147483646
        assert sum(X.shape[0] for X, _ in stream) == 2 if chunk else checked(stream).longest == 1.0
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10**6


@pytest.mark.parametrize("name", ["a.csv", "a.vw"])
def test_one_long_label_does_not_make_all_labels_long(tmp_path, name):
    form = "1,{}\n" if name == "a.csv" else "{} | a\n"
    text = form.format("a" * 100_000) + form.format("b") * 10_000
    tracemalloc.start()
    assert open_stream(put(tmp_path, name, text)).n_rounds == 10_001
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(text)


def test_every_format_has_an_extension():
    for form in FORMATS.values():
        assert form.extensions and all(extension.startswith(".") for extension in form.extensions)
