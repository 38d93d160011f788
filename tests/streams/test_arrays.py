"""Streams from arrays, and what happens to labels."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from gaptron.data import examples
from gaptron.data.examples import checked
from gaptron.data.labels import Classes
from gaptron.errors import InputError
from gaptron.streams import Stream, prepare, raw_chunk
from gaptron.types import Sparse


def test_arrays_are_shared_where_they_are_tidy():
    X, y = np.eye(3), np.array([0, 1, 2])
    stream = Stream.from_arrays(X, y, name="three")
    assert np.shares_memory(stream.X, X) and stream.name == "three"
    S = sparse.csr_matrix(X)
    assert np.shares_memory(Stream.from_arrays(S, y).X.data, S.data)


def test_untidy_sparse_rows_are_mended_in_a_copy():
    data, indices, ends = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3, 3])
    X = sparse.csr_matrix((data, indices, ends), shape=(2, 4))
    stream = Stream.from_arrays(X, [0, 1])
    assert stream.X.has_canonical_format
    np.testing.assert_array_equal(stream.X.toarray(), [[2, 0, 4, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(X.data, [1, 2, 3])
    np.testing.assert_array_equal(X.indices, [2, 0, 2])


@pytest.mark.parametrize(
    "y,classes,codes",
    [
        ([5, 3, 5], (3, 5), [1, 0, 1]),
        (np.array([2.0, -1.0, 2.0]), (-1.0, 2.0), [1, 0, 1]),
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        ([b"b", b"a", b"b"], (b"a", b"b"), [1, 0, 1]),
        (["10", "9", "10"], ("10", "9"), [0, 1, 0]),
        ([True, False, True], (False, True), [1, 0, 1]),
        (np.array([True, False, True]), (False, True), [1, 0, 1]),
        (np.array(["x", 1, "x"], dtype=object), (1, "x"), [1, 0, 1]),
        ([2**63 + 1, -1, 2**63 + 1], (-1, 2**63 + 1), [1, 0, 1]),
    ],
)
def test_labels_stay_as_they_are(y, classes, codes):
    stream = Stream.from_arrays(np.eye(3), y)
    assert stream.classes == classes
    assert [type(label) for label in stream.classes] == [type(label) for label in classes]
    np.testing.assert_array_equal(stream.y, codes)
    assert Classes(stream.classes).codes(y).tolist() == codes


def test_a_text_is_no_number_and_a_number_no_text():
    for y, classes in ((["1", "2"], [1, 2]), ([1, 2], ["1", "2"])):
        with pytest.raises(InputError, match="is not one of the classes"):
            Stream.from_arrays(np.eye(2), y, classes=classes)


KINDS = ["int8", "int16", "uint8", "int64", "bool", "float32", "float64"]


@pytest.mark.parametrize(
    "kind,form",
    [(kind, form) for kind in KINDS for form in (np.asarray, sparse.csr_matrix, sparse.csc_array)]
    + [("float16", np.asarray), (">f4", np.asarray), (object, np.asarray)],  # SciPy has none of these
)
def test_a_stream_and_a_learner_see_the_same_rows(kind, form):
    X = np.array([[0, 1], [1, 0]]).astype(kind)
    rows = form(X)
    mine, learners = Stream.from_arrays(rows, [0, 1]).checked.rows, checked(rows).rows
    for a, b in zip(mine, learners) if isinstance(mine, Sparse) else [(mine, learners)]:
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    values = mine.values if isinstance(mine, Sparse) else mine
    assert values.dtype == (np.float32 if kind == "float32" else np.float64)


def test_a_stream_is_shown_in_a_line():
    assert repr(Stream.from_arrays(np.eye(3), ["a", "b", "a"])) == "Stream('arrays', rounds=3, features=3, classes=2)"


def test_a_stream_is_validated_once(monkeypatch):
    looked = []
    plain = examples.norms
    monkeypatch.setattr(examples, "norms", lambda X: looked.append(X) or plain(X))
    monkeypatch.setattr(raw_chunk, "norms", lambda X: looked.append(X) or plain(X))
    monkeypatch.setattr(examples, "as_table", lambda X: pytest.fail("looked at again"))
    stream = Stream.from_arrays(np.eye(3) * 2, [0, 1, 2])
    first = checked(stream)
    assert checked(stream) is first and checked(first) is first
    assert (first.width, first.longest, stream.norm) == (3, 2.0, 2.0)
    assert np.shares_memory(first.rows, stream.X) and not first.rows.flags.writeable
    assert checked(prepare(stream, shuffle=0, limit=2)).longest == 2.0
    assert len(looked) == 1


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_norms_survive_any_size(kind, size):
    X = np.array([[3.0, 4.0], [0.0, 0.0]]) * size
    assert Stream.from_arrays(kind(X), [0, 1]).norm == pytest.approx(5 * size, abs=0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_too_long_to_play_can_still_be_prepared(kind):
    X = np.full((2, 3), 1e308)
    stream = Stream.from_arrays(kind(X), [0, 1], name="long")
    with pytest.raises(InputError, match=r"row 0 of long has norm 1.7\de\+308; .* between 1e-60 and 1e\+60"):
        checked(stream)
    assert checked(prepare(stream, unit_norm=True)).longest == pytest.approx(1.0)


def test_norms_do_not_take_memory_by_the_width():
    X = sparse.csr_array((np.ones(2), np.array([0, 2**31 - 3]), np.array([0, 1, 2])), shape=(2, 2**31 - 2))
    tracemalloc.start()
    stream = prepare(Stream.from_arrays(X, [0, 1]), unit_norm=True, constant=True, log1p=True, shuffle=1)
    assert checked(stream).width == 2**31 - 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6
