"""Every format gives back the rounds that were written."""

import io
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from gaptron.streams import Stream, open_stream
from tests.streams import writers
from tests.streams.writers import PACK, dense, put

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 7)) * (rng.random((40, 7)) < 0.5)
X[3] = 0.0
X[0, [0, 6]] = 1.5, -2.0  # an index 0 for the 0-based files, and the full width
y = np.arange(40) % 3
NAMES = np.array(["ant", "bee", "cat"])

WRITTEN = {
    "a.svm": (writers.svmlight(X, y), True),
    "zero.libsvm": (writers.svmlight(X, y, base=0), True),
    "a.csv": (writers.table(X, y), False),
    "bare.csv": (writers.table(X, y, header=False), False),
    "a.tsv": (writers.table(X, y, delimiter="\t"), False),
    "dense.parquet": (writers.parquet_dense(X, y), False),
    "sparse.parquet": (writers.parquet_sparse(X, y), True),
    "dense.npz": (writers.npz(X=X, y=y), False),
    "sparse.npz": (writers.npz_sparse(X, y), True),
}
TEXTS = ["a.svm", "a.csv", "a.tsv"]


def check_tidy(stream: Stream) -> None:
    assert stream.y.dtype == np.int64
    if sparse.issparse(stream.X):
        assert isinstance(stream.X, sparse.csr_array)
        assert stream.X.dtype == np.float64 and stream.X.indices.dtype == np.int32
        assert stream.X.has_canonical_format
    else:
        assert stream.X.flags.c_contiguous and stream.X.flags.writeable
        assert stream.X.dtype in (np.float64, np.float32)


def read(path) -> Stream:
    stream = open_stream(path)
    assert isinstance(stream, Stream)
    check_tidy(stream)
    return stream


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_written_is_read(tmp_path, name):
    data, is_sparse = WRITTEN[name]
    stream = read(put(tmp_path, name, data))
    assert sparse.issparse(stream.X) == is_sparse
    np.testing.assert_array_equal(dense(stream.X), X)
    np.testing.assert_array_equal(stream.y, y)
    assert stream.classes == (0, 1, 2) and stream.prepared == () and stream.name.endswith(name)
    assert (stream.n_rounds, stream.n_features, stream.n_classes) == (40, 7, 3)
    assert stream.norm == pytest.approx(np.linalg.norm(X, axis=1).max())


@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("name", TEXTS)
def test_compressed_files_are_unpacked(tmp_path, name, packed):
    stream = read(put(tmp_path, name + packed, WRITTEN[name][0]))
    np.testing.assert_array_equal(dense(stream.X), X)


@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("name", TEXTS)
def test_standard_input_is_unpacked_and_left_open(monkeypatch, name, packed):
    pipe = io.TextIOWrapper(io.BytesIO(PACK[packed](WRITTEN[name][0])))
    monkeypatch.setattr(sys, "stdin", pipe)
    stream = open_stream("-", format={"a.svm": None, "a.csv": "csv", "a.tsv": "tsv"}[name])
    np.testing.assert_array_equal(dense(stream.X), X)
    assert stream.name == "standard input"
    assert not pipe.buffer.closed


@pytest.mark.parametrize("name", ["sparse.parquet", "dense.npz"])
def test_binary_formats_come_through_standard_input(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WRITTEN[name][0])))
    stream = open_stream("-", format=name.partition(".")[2])
    np.testing.assert_array_equal(dense(stream.X), X)


@pytest.mark.parametrize("write", [writers.table, writers.parquet_dense, writers.parquet_sparse, writers.vw])
def test_labels_may_be_names(tmp_path, write):
    name = {writers.table: "a.csv", writers.vw: "a.vw"}.get(write, "a.parquet")
    stream = read(put(tmp_path, name, write(X, NAMES[y])))
    assert stream.classes == ("ant", "bee", "cat")
    assert stream.prepared == ("labels relabelled 0..K-1",)
    np.testing.assert_array_equal(stream.y, y)


def test_classes_set_the_order_of_the_codes(tmp_path):
    path = put(tmp_path, "a.csv", writers.table(X, NAMES[y]))
    stream = open_stream(path, classes=["dog", "cat", "bee", "ant"])
    np.testing.assert_array_equal(stream.y, 3 - y)
    assert stream.n_classes == 4


def test_negative_and_sparse_svmlight_labels_are_class_names(tmp_path):
    stream = read(put(tmp_path, "a.svm", "+1 1:1\n-1 2:1\n10 qid:4 1:2 # why not\n\n# only words\n9.0\n"))
    assert stream.classes == (-1, 1, 9, 10)
    np.testing.assert_array_equal(stream.y, [1, 0, 3, 2])
    np.testing.assert_array_equal(dense(stream.X), [[1, 0], [0, 1], [2, 0], [0, 0]])


def test_lines_may_end_as_on_windows_and_begin_with_a_mark(tmp_path):
    data = b"\xef\xbb\xbff0,f1,label\r\n1,2,a\r\n\r\n3,4,b\r\n"
    stream = read(put(tmp_path, "a.csv", data))
    assert stream.classes == ("a", "b")
    np.testing.assert_array_equal(stream.X, [[1, 2], [3, 4]])


def test_the_label_column_is_found_or_named(tmp_path):
    path = put(tmp_path, "a.csv", "Class,u,v\n0,5,2\n1,6,3\n")
    np.testing.assert_array_equal(open_stream(path).X, [[5, 2], [6, 3]])
    for label in ("u", 1, "1", -2):
        stream = open_stream(path, label=label)
        assert stream.classes == (5, 6)
        np.testing.assert_array_equal(stream.X, [[0, 2], [1, 3]])
    bare = put(tmp_path, "bare.csv", "x,1,2\ny,3,4\n")
    np.testing.assert_array_equal(open_stream(bare, label=0).X, [[1, 2], [3, 4]])


def test_a_header_may_be_recognised_only_by_the_named_label(tmp_path):
    path = put(tmp_path, "a.csv", "0,1,kind\n5,2,a\n6,3,b\n")
    np.testing.assert_array_equal(open_stream(path, label="kind").X, [[5, 2], [6, 3]])


def test_cells_that_arrow_does_not_read(tmp_path):
    stream = read(put(tmp_path, "a.csv", 'u,v,label\n+1.5, 2 ,"a, b"\n   \n3,1e1,c\n'))
    np.testing.assert_array_equal(stream.X, [[1.5, 2], [3, 10]])
    assert stream.classes == ("a, b", "c")


def test_whole_floats_and_leading_zeros_in_a_label_column(tmp_path):
    assert open_stream(put(tmp_path, "a.csv", "1,1.000e+00\n1,2.0\n1,2\n")).classes == (1, 2)
    assert open_stream(put(tmp_path, "b.csv", "1,07\n1,7\n")).classes == ("07", "7")


def test_parquet_without_values_means_ones(tmp_path):
    stream = read(put(tmp_path, "a.parquet", writers.parquet_sparse(X != 0, y, values=False)))
    np.testing.assert_array_equal(dense(stream.X), X != 0)


@pytest.mark.parametrize("kind,kept", [("uint8", "float64"), ("float32", "float32"), ("int64", "float64")])
def test_single_floats_stay_and_other_numbers_become_double(tmp_path, kind, kept):
    whole = (np.abs(X) * 9).astype(kind)
    for name, data in [("a.parquet", writers.parquet_dense(whole, y)), ("a.npz", writers.npz(X=whole, y=y))]:
        stream = read(put(tmp_path, name, data))
        assert stream.X.dtype == kept
        np.testing.assert_array_equal(stream.X, whole)


def test_n_features_widens_sparse_rows(tmp_path):
    path = put(tmp_path, "a.svm", WRITTEN["a.svm"][0])
    assert open_stream(path, n_features=50).X.shape == (40, 50)


def test_format_overrules_the_extension(tmp_path):
    path = put(tmp_path, "rounds.txt", WRITTEN["a.svm"][0])
    np.testing.assert_array_equal(dense(open_stream(path, format="svmlight").X), X)


def test_vw_text(tmp_path):
    path = put(tmp_path, "a.vw", "cat 1.0 'tag |n:2 a b:0.5 a |m a\ndog touching| a:-1\n")
    stream = open_stream(path)
    assert stream.classes == ("cat", "dog") and stream.n_features == 2**18

    def at(key: bytes) -> int:
        return zlib.crc32(key) % 2**18

    expected = np.zeros((2, 2**18))
    expected[0, at(b"n^a")] = 4.0
    expected[0, at(b"n^b")] = 1.0
    expected[0, at(b"m^a")] = 1.0
    expected[1, at(b"^a")] = -1.0
    np.testing.assert_array_equal(dense(stream.X), expected)
    assert open_stream(path, n_features=4).X.sum() == expected.sum()


values = st.floats(allow_nan=False, allow_infinity=False, width=64)
lines = st.tuples(st.integers(-(2**40), 2**40), st.dictionaries(st.integers(1, 10**6), values, max_size=5))


@given(st.lists(lines, min_size=2, max_size=8, unique_by=lambda line: line[0]))
def test_svmlight_keeps_every_float_exactly(tmp_path_factory, rounds):
    rounds[0][1][1] = 1.0  # some feature somewhere
    text = "".join(
        " ".join([str(label), *(f"{i}:{v!r}" for i, v in sorted(pairs.items()))]) + "\n" for label, pairs in rounds
    )
    stream = open_stream(put(tmp_path_factory.mktemp("s"), "a.svm", text))
    assert [stream.classes[code] for code in stream.y] == [label for label, _ in rounds]
    for t, (_, pairs) in enumerate(rounds):
        row = stream.X[[t]]
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == {i - 1: v for i, v in pairs.items()}
