"""The ring of rows against a plain list."""

from collections import deque

import numpy as np
import pytest

from gaptron.errors import SettingError
from gaptron.kernels.history import (
    LARGEST,
    append,
    check_array_size,
    drop_oldest,
    is_full,
    new_history,
    slot,
    stored_row,
)
from gaptron.types import SparseRow


def sparse(x):
    at = np.flatnonzero(x).astype(np.int32)
    return SparseRow(at, x[at])


def dense(row, d):
    if not isinstance(row, tuple):
        return np.array(row)
    x = np.zeros(d)
    x[row.indices] = row.values
    return x


@pytest.mark.sample(4)
@pytest.mark.parametrize("rows, nonzeros", [(1, 1), (5, 2), (7, 3), (40, 1), (40, 9)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_newest_rows_come_back_as_they_were(kind, rows, nonzeros):
    d, rng = 6, np.random.default_rng(rows)
    h = new_history(rows, d, kind == "sparse", nonzeros)
    buffer = h.values.shape[0]
    mine: deque = deque()
    for t in range(300):
        x = rng.normal(size=d) * (rng.random(d) < rng.choice([0.0, 0.2, 0.6, 1.0]))
        row = sparse(x) if kind == "sparse" else x
        while is_full(h, row):
            assert mine  # an empty history always has space
            drop_oldest(h)
            mine.popleft()
        at = append(h, row)
        mine.append(x)
        assert at == slot(h, len(mine) - 1)
        assert h.span[0].count == len(mine) <= rows
        assert kind == "sparse" or len(mine) == min(t + 1, rows)
        for i, old in enumerate(mine):
            np.testing.assert_array_equal(dense(stored_row(h, row, slot(h, i)), d), old)
    held = sum(max(1, np.count_nonzero(x)) if kind == "sparse" else d for x in mine)
    assert held <= buffer


def test_a_row_of_average_size_never_pushes_another_out_early():
    h = new_history(50, 10, True, 2)
    row = SparseRow(np.array([1, 7], dtype=np.int32), np.array([1.0, 2.0]))
    for _ in range(50):
        assert not is_full(h, row)
        append(h, row)
    assert is_full(h, row)


def test_what_would_not_fit_is_refused_by_size():
    with pytest.raises(
        SettingError, match=r"a history of 10000 examples would take 1000000000 numbers, 8\.0 GB: give a sm"
    ):
        new_history(10_000, 100_000, False, 64)
    check_array_size(LARGEST, "this much", "less")
