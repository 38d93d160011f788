"""Streams from arrays, and what happens to labels."""

import numpy as np
import pytest
from scipy import sparse

from gaptron.streams import Stream


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
        ([2.0, -1.0, 2.0], (-1, 2), [1, 0, 1]),
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        ([b"b", b"a", b"b"], ("a", "b"), [1, 0, 1]),
        (["10", "9", "10"], (9, 10), [1, 0, 1]),
        ([True, False, True], (0, 1), [1, 0, 1]),
        (np.array(["x", 1, "x"], dtype=object), ("1", "x"), [1, 0, 1]),
    ],
)
def test_labels_become_codes(y, classes, codes):
    stream = Stream.from_arrays(np.eye(3), y)
    assert stream.classes == classes
    assert all(type(label) in (int, str) for label in stream.classes)
    np.testing.assert_array_equal(stream.y, codes)


def test_given_classes_match_by_spelling():
    stream = Stream.from_arrays(np.eye(2), ["1", "2"], classes=[2.0, 1, 0])
    assert stream.classes == (2, 1, 0)
    np.testing.assert_array_equal(stream.y, [1, 0])


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_norms_survive_any_size(kind, size):
    X = np.array([[3.0, 4.0], [0.0, 0.0]]) * size
    assert Stream.from_arrays(kind(X), [0, 1]).norm == pytest.approx(5 * size, abs=0)


def test_large_finite_values_are_no_infinities():
    X = np.full((2, 3), 1e308)
    assert Stream.from_arrays(X, [0, 1]).n_rounds == 2
    assert Stream.from_arrays(sparse.csr_array(X), [0, 1]).n_rounds == 2
