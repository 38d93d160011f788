"""Tables whose experts name a label."""

import numpy as np
import pytest

from gaptron.cli import votes
from gaptron.errors import StreamError

ROWS = ["yes,yes,0.5,no", "no,-1,0.25,yes", "yes,yes,yes,yes", "no,no,1,no", "yes,no,{},yes"]


def write(tmp_path, cell):
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["truth,one,two,three", *ROWS]).format(cell) + "\n")
    return str(path)


@pytest.mark.parametrize("chunk", [None, 2])
def test_labels_become_signs_and_numbers_are_kept(chunk, tmp_path):
    path = write(tmp_path, "-0.5")
    assert votes.has_named_votes(path, None, "truth", ("no", "yes"))
    stream = votes.read(path, None, "truth", ("no", "yes"), chunk)
    chunks = [(stream.X, stream.y)] if chunk is None else list(stream)
    advice = np.vstack([X for X, _ in chunks])
    np.testing.assert_array_equal(advice, [[1, 0.5, -1], [-1, 0.25, 1], [1, 1, 1], [-1, 1, -1], [-1, -0.5, 1]])
    np.testing.assert_array_equal(np.concatenate([y for _, y in chunks]), [1, 0, 1, 0, 1])


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize(("cell", "found"), [("", "two is empty"), ("maybe", "two is 'maybe', neither a label")])
def test_an_error_names_the_row_of_the_file(chunk, cell, found, tmp_path):
    path = write(tmp_path, cell)
    with pytest.raises(StreamError, match=f"row 5: {found}"):
        stream = votes.read(path, None, "truth", ("no", "yes"), chunk)
        list(stream)
