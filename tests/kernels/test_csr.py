"""One pass over sparse rows against what SciPy and NumPy say of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from gaptron.kernels.csr import inspect

ROWS = st.lists(st.lists(st.integers(-1, 6), max_size=7), max_size=5)


@given(rows=ROWS, kind=st.sampled_from([np.float32, np.float64]), index=st.sampled_from([np.int32, np.int64]))
def test_rows_are_valid_where_their_indices_increase_within_the_width(rows, kind, index):
    width = 6
    starts = np.cumsum([0, *map(len, rows)]).astype(index)
    indices = np.array([i for row in rows for i in row], dtype=index)
    values = np.linspace(-3.0, 2.0, len(indices)).astype(kind)
    squares = np.full(len(rows), np.nan)
    tidy = inspect(starts, indices, values, width, squares)
    within = all(0 <= i < width for row in rows for i in row)
    assert tidy == (within and all(sorted(set(row)) == row for row in rows))
    if within and len(indices):
        X = sparse.csr_array((values, indices, starts), shape=(len(rows), width))
        assert tidy == bool(X.has_canonical_format)
    expected = [np.square(values[a:b].astype(float)).sum() for a, b in itertools.pairwise(starts)]
    assert squares == pytest.approx(expected, rel=1e-14)


def test_squares_past_all_floats_are_infinite_without_a_warning():
    squares = np.zeros(2)
    values = np.array([1e200, 1.0, np.nan])
    inspect(np.array([0, 2, 3]), np.array([0, 1, 0]), values, 2, squares)
    assert np.isinf(squares[0]) and np.isnan(squares[1])
