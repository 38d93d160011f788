"""A caller's X and y become rows and codes, or one clear error."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from gaptron.data.examples import (
    LARGEST_NORM,
    SMALLEST_NORM,
    checked,
    checked_example,
    norms,
)
from gaptron.data.feedback import as_advice
from gaptron.data.labels import Classes
from gaptron.errors import InputError
from gaptron.types import Sparse, SparseRow

X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.0]])


def test_right_rows_are_not_copied():
    for kind in (np.float64, np.float32):
        mine = X.astype(kind)
        examples = checked(mine)
        rows = examples.rows
        assert np.shares_memory(rows, mine) and not rows.flags.writeable and mine.flags.writeable
        assert examples.width == 3 and len(examples) == 4
    S = sp.csr_matrix(X)
    rows = checked(S).rows
    assert isinstance(rows, Sparse) and checked(S).width == 3
    assert np.shares_memory(rows.values, S.data) and np.shares_memory(rows.indices, S.indices)


def test_sparse_rows_hold_the_same_numbers_whatever_their_writing():
    for make in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.dok_matrix):
        examples = checked(make(X))
        assert examples.rows.indices.dtype == examples.rows.indptr.dtype == np.int32
        np.testing.assert_array_equal(examples.in_layout(False), X)
        assert len(examples) == 4


def test_unsorted_indices_are_sorted_in_a_copy():
    S = sp.csr_matrix((np.array([3.0, 1.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    before = S.indices.copy()
    examples = checked(S)
    np.testing.assert_array_equal(examples.rows.indices, [0, 2])
    np.testing.assert_array_equal(S.indices, before)
    np.testing.assert_array_equal(examples.in_layout(False), [[1, 0, 3]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_slice_of_examples_is_the_examples_between(form):
    examples = checked(form(X))
    for start, stop in [(0, 4), (1, 3), (2, 2), (3, 4), (-2, None), (1, 100)]:
        part = examples[start:stop]
        wanted = X[start:stop]
        assert len(part) == len(wanted) and part.width == 3
        assert part.longest == np.linalg.norm(wanted, axis=1).max(initial=0.0)
        np.testing.assert_array_equal(part.in_layout(False), wanted)
        packed = part.in_layout(True)
        assert isinstance(packed, Sparse) and len(packed.indptr) == len(wanted) + 1
        np.testing.assert_array_equal(np.asarray(sp.csr_array(part.as_matrix()).todense()), wanted)
    for step in (2, -1):
        part = examples[::step]
        np.testing.assert_array_equal(part.in_layout(False), X[::step])
        np.testing.assert_allclose(part.norms, np.linalg.norm(X[::step], axis=1), rtol=1e-15)


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_matrix])
def test_examples_by_index_are_examples_checked_one_by_one(form):
    examples = checked(form(X))
    for at in (0, 1, 2, 3, -1):
        one, alone = examples[at], checked_example(X[at])
        assert (one.width, one.norm) == (alone.width, pytest.approx(alone.norm, rel=1e-7))
        np.testing.assert_array_equal(one.in_layout(False), X[at])
        assert one.in_layout(False).dtype == np.float64
        assert checked_example(one) is one
        np.testing.assert_array_equal(checked(one).in_layout(False), X[at][None])
    for at in (4, -5):
        with pytest.raises(IndexError):
            examples[at]


def test_one_example_in_either_layout():
    for x in (X[1], X[1:2], sp.csr_matrix(X[1:2]), [1, 0, 3]):
        example = checked_example(x)
        assert example.width == 3
        np.testing.assert_array_equal(example.in_layout(False), X[1])
        packed = example.in_layout(True)
        assert isinstance(packed, SparseRow)
        np.testing.assert_array_equal(packed.indices, [0, 2])
        np.testing.assert_array_equal(packed.values, [1, 3])


def test_one_example_is_a_copy():
    x = X[1].copy()
    assert not np.shares_memory(checked_example(x).row, x)
    assert not np.shares_memory(checked(x[None])[0].row, x)
    S = sp.csr_matrix(X[1:2])
    for packed in (checked_example(S).row, checked(S)[0].row):
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


# --- rows: kinds of numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad,problem",
    [
        (np.array([["1", "2"]]), "X holds <U1, not numbers"),
        (np.array([[1, "2"]], dtype=object), "X holds text, not numbers"),
        (np.array([[1, "1_0"]], dtype=object), "X holds text, not numbers"),
        (np.array([[1, None]], dtype=object), "row 0 of X holds NaN or infinity"),
        (np.array([[1, {}]], dtype=object), "X holds a value that is not a number"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), r"X holds datetime64\[D\], not numbers"),
        (np.array([[10**400]], dtype=object), "X holds a value that is not a number"),
        (np.ma.masked_array([[1.0, 2.0]], [[True, False]]), "masked"),
        (np.array([[1.0, np.nan]]), "row 0 of X holds NaN or infinity"),
        (np.array([[1.0], [-np.inf]]), "row 1 of X holds NaN or infinity"),
        (sp.csr_array(np.array([[1.0], [np.nan]])), "row 1 of X holds NaN or infinity"),
        (np.array([[np.longdouble("1e400")]]), "row 0 of X holds NaN or infinity"),
        (np.zeros(3), "two dimensions"),
    ],
)
def test_what_is_not_a_finite_number_is_refused(bad, problem):
    with pytest.raises(InputError, match=problem):
        checked(bad)


@pytest.mark.parametrize("bad", [["1", "2"], [1, "2"], ["1_0"], [1 + 1j], [None], "12", [[1], [2]], {"a": 1}])
def test_one_row_follows_the_same_rules(bad):
    with pytest.raises(InputError):
        checked_example(bad)


def test_a_stale_flag_of_scipy_is_not_believed():
    for indices in ([2, 0], [1, 1]):
        S = sp.csr_matrix((np.array([3.0, 1.0]), np.array(indices), np.array([0, 2])), shape=(1, 3))
        expected = S.toarray()
        S.has_sorted_indices = S.has_canonical_format = True
        before = S.indices.copy(), S.data.copy()
        examples = checked(S)
        assert (np.diff(examples.rows.indices) > 0).all()
        np.testing.assert_array_equal(examples.in_layout(False), expected)
        np.testing.assert_array_equal(S.indices, before[0])
        np.testing.assert_array_equal(S.data, before[1])


def test_rows_in_order_are_taken_as_such_whatever_lies_between_them():
    S = sp.csr_array((np.ones(4), np.array([1, 2, 0, 2]), np.array([0, 0, 2, 2, 4, 4])), shape=(5, 3))
    assert np.shares_memory(checked(S).rows.values, S.data)


@pytest.mark.parametrize("make", [sp.csc_matrix, sp.csr_matrix])
def test_a_damaged_matrix_is_refused_before_anything_follows_its_indices(make):
    S = make(np.eye(3))
    S.indices = np.array([0, 10**6, 2], dtype=np.int32)
    with pytest.raises(InputError, match="damaged"):
        checked(S)


# --- rows: norms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e-100, 1.0, 1e100, 1e200, 1e308])
def test_norms_are_right_at_any_size(form, size):
    X = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]]) / 4 * size
    expected = [math.hypot(*x) for x in X.tolist()]
    np.testing.assert_allclose(norms(form(X)), expected, rtol=1e-14)


def test_norms_of_single_floats_do_not_overflow():
    X = np.full((1, 2), 1e30, dtype=np.float32)
    for form in (np.asarray, sp.csr_array):
        assert norms(form(X))[0] == pytest.approx(math.sqrt(2) * 1e30, rel=1e-6)


EDGES = [
    (0.0, True),
    (SMALLEST_NORM * 1.001, True),
    (SMALLEST_NORM * 0.999, False),
    (1e-145, False),
    (1e-200, False),
    (5e-324, False),
    (LARGEST_NORM * 0.999, True),
    (LARGEST_NORM * 1.001, False),
    (1e154, False),
    (1e200, False),
    (1e308, False),
]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("norm,right", EDGES)
def test_rows_have_a_norm_within_the_stated_range(form, norm, right):
    X = form(np.array([[1.0, 0.0], [0.0, -norm]]))
    x = form(np.array([[0.0, -norm]]))
    if right:
        assert checked(X).longest == max(1.0, norm)
        assert checked_example(x).norm == pytest.approx(norm, rel=1e-15)
        return
    with pytest.raises(InputError, match=r"row 1 of X has norm .* zero or .* between 1e-60 and 1e\+60: scale the rows"):
        checked(X)
    with pytest.raises(InputError, match=r"x has norm .* between 1e-60 and 1e\+60: scale the rows"):
        checked_example(x)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_row_is_finite(bad):
    for x in ([1.0, bad], sp.csr_array(np.array([[1.0, bad]]))):
        with pytest.raises(InputError, match="x holds NaN or infinity"):
            checked_example(x)


def test_no_rows_have_no_norm():
    for X, width in ((np.zeros((0, 3)), 3), (sp.csr_array((0, 3)), 3), (np.zeros((2, 0)), 0)):
        examples = checked(X)
        assert (examples.width, examples.longest, examples.outlier) == (width, 0.0, None)


# --- labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        [False, True],
        [True, False],
        [0, 1],
        [2**63 + 1, -1],
        [2**63 + 1, 0],
        [2**70, 1],
        [1, 2.5],
        [True, 2],
        [0.5, 1.5],
        ["a", "b"],
        ["a\0", "a"],
        ["a", 1],
        [b"a", b"b"],
        [(1, 2), (3, 4)],
    ],
)
def test_labels_come_back_exactly(labels):
    classes = Classes(labels)
    back = classes.decode(classes.codes(labels)).tolist()
    assert back == labels and [type(label) for label in back] == [type(label) for label in labels]


def test_labels_of_one_kind_are_a_typed_array():
    for labels, kind in (([False, True], "b"), ([5, 7], "i"), ([0.5, 1.5], "f"), (["a", "b"], "U")):
        assert Classes(labels).decode(np.array([0, 1])).dtype.kind == kind


@pytest.mark.parametrize("missing", [None, math.nan, np.nan, np.float32("nan")])
def test_what_means_missing_is_no_class(missing):
    with pytest.raises(
        InputError, match=r"classes holds (None|nan), which means that a label is missing: use a string"
    ):
        Classes(["a", missing])


def test_advice_lies_round_by_round_whatever_the_caller_has():
    """Columns, as data frames have them, would be compiled for again."""
    given = np.asfortranarray([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    taken = as_advice(given, 3, Classes([0, 1]))
    assert taken.flags.c_contiguous and not given.flags.c_contiguous
    np.testing.assert_array_equal(taken, given)
