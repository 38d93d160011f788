"""The door: a caller's X and y become rows and codes."""

import numpy as np
import pytest
import scipy.sparse as sp

from gaptron.errors import InputError
from gaptron.types import Sparse, SparseRow
from gaptron.validation import Classes, as_row, as_rows, block, n_rows, row_like, to_dense

X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.0]])


def test_right_rows_are_not_copied():
    for kind in (np.float64, np.float32):
        mine = X.astype(kind)
        rows, width = as_rows(mine)
        assert np.shares_memory(rows, mine) and width == 3 and not rows.flags.writeable and mine.flags.writeable
    S = sp.csr_matrix(X)
    rows, width = as_rows(S)
    assert isinstance(rows, Sparse) and width == 3
    assert np.shares_memory(rows.values, S.data) and np.shares_memory(rows.indices, S.indices)


def test_sparse_rows_hold_the_same_numbers_whatever_their_writing():
    for make in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.dok_matrix):
        rows, width = as_rows(make(X))
        assert rows.indices.dtype == rows.indptr.dtype == np.int32
        np.testing.assert_array_equal(to_dense(rows, width), X)
        assert n_rows(rows) == 4


def test_unsorted_indices_are_sorted_in_a_copy():
    S = sp.csr_matrix((np.array([3.0, 1.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    before = S.indices.copy()
    rows, width = as_rows(S)
    np.testing.assert_array_equal(rows.indices, [0, 2])
    np.testing.assert_array_equal(S.indices, before)
    np.testing.assert_array_equal(to_dense(rows, width), [[1, 0, 3]])


def test_blocks_are_the_rows_between():
    dense, width = as_rows(X)
    sparse, _ = as_rows(sp.csr_matrix(X))
    for rows in (dense, sparse):
        for start, stop in [(0, 4), (1, 3), (2, 2), (3, 4)]:
            plain = block(rows, start, stop, False, width)
            packed = block(rows, start, stop, True, width)
            np.testing.assert_array_equal(plain, X[start:stop])
            assert n_rows(packed) == stop - start
            np.testing.assert_array_equal(to_dense(packed, width), X[start:stop])


def test_one_row_in_either_layout():
    for x in (X[1], X[1:2], sp.csr_matrix(X[1:2]), [1, 0, 3]):
        row, width = as_row(x)
        assert width == 3
        np.testing.assert_array_equal(row_like(row, False, 3), X[1])
        packed = row_like(row, True, 3)
        assert isinstance(packed, SparseRow)
        np.testing.assert_array_equal(packed.indices, [0, 2])
        np.testing.assert_array_equal(packed.values, [1, 3])


def test_one_row_is_a_copy():
    x = X[1].copy()
    row, _ = as_row(x)
    assert not np.shares_memory(row, x)
    S = sp.csr_matrix(X[1:2])
    packed, _ = as_row(S)
    assert not np.shares_memory(packed.values, S.data) and not np.shares_memory(packed.indices, S.indices)


def test_codes_and_back():
    classes = Classes(["b", "a", "c"])
    np.testing.assert_array_equal(classes.codes(["a", "c", "b", "a"]), [1, 2, 0, 1])
    np.testing.assert_array_equal(classes.decode(np.array([1, 2, 0])), ["a", "c", "b"])
    assert classes.code("c") == 2 and len(classes) == 3


def test_plain_codes_are_a_copy():
    y = np.array([0, 1, 1])
    classes = Classes(range(2))
    codes = classes.codes(y)
    assert codes.dtype == np.int64 and not np.shares_memory(codes, y)
    back = classes.decode(codes)
    assert not np.shares_memory(back, codes)


def test_unsigned_labels_are_checked_too():
    with pytest.raises(InputError, match="row 1: label 200"):
        Classes(range(3)).codes(np.array([0, 200], dtype=np.uint8))


@pytest.mark.parametrize("label", [None, np.nan, float("nan")])
def test_a_missing_label_is_called_missing(label):
    with pytest.raises(InputError, match="missing"):
        Classes(range(3)).code(label)


def test_long_class_lists_are_shown_in_part():
    with pytest.raises(InputError, match=r"one of the 20 classes \(0, 1, 2, 3, 4, \.\.\.\)"):
        Classes(range(20)).code(99)
