"""Is the first line of a table a header or a round? The whole family, through `open_stream`."""

import csv
import io

import numpy as np
import pytest

from gaptron.errors import StreamError
from gaptron.streams import open_stream
from tests.streams.writers import put

rng = np.random.default_rng(3)
FLOATS, WHOLES = rng.normal(size=(30, 3)), rng.integers(0, 9, size=(30, 3))
NUMBERS, WORDS = np.arange(30) % 2, np.array(["no", "yes"])[np.arange(30) % 2]


def to_csv(X, y, names, index=False, quoting=csv.QUOTE_MINIMAL):
    """As pandas writes a table: DataFrame(X).assign(...).to_csv()."""
    file = io.StringIO()
    write = csv.writer(file, quoting=quoting, lineterminator="\n").writerow
    write(["", *names] if index else names)
    for at, (x, label) in enumerate(zip(X.tolist(), y.tolist())):
        write([at, *x, label] if index else [*x, label])
    return file.getvalue()


def written(X, y, name):
    return to_csv(X, y, [*map(str, range(X.shape[1])), name])


def rounds_of(tmp_path, text, **options):
    path = put(tmp_path, "a.csv", text)
    whole = open_stream(path, **options)
    for size in (1, 7):  # what a line is does not depend on how many are read at a time
        chunks = open_stream(path, chunk=size, **options)
        assert chunks.classes == whole.classes and chunks.columns == whole.columns
        np.testing.assert_array_equal(np.vstack([X for X, _ in chunks]), whole.X)
    return whole


@pytest.mark.parametrize("X", [FLOATS, WHOLES])
@pytest.mark.parametrize("y,classes", [(NUMBERS, (0, 1)), (WORDS, ("no", "yes"))])
@pytest.mark.parametrize("name", ["y", "label", "Target"])
def test_a_header_of_column_numbers_and_a_usual_label(tmp_path, X, y, classes, name):
    stream = rounds_of(tmp_path, written(X, y, name))
    assert stream.classes == classes and stream.columns == ("0", "1", "2") and stream.n_rounds == 30
    np.testing.assert_allclose(stream.X, X)


def test_a_header_of_column_numbers_over_numeric_labels_of_any_name(tmp_path):
    assert rounds_of(tmp_path, written(WHOLES, NUMBERS, "kind"), label=3).n_rounds == 30
    years = "2019,2020,2021,outcome\n" + "\n".join(f"{a},{b},{c},{k}" for (a, b, c), k in zip(WHOLES, NUMBERS))
    assert rounds_of(tmp_path, years, label=-1).columns == ("2019", "2020", "2021")


def test_a_header_of_column_numbers_over_decimals(tmp_path):
    assert rounds_of(tmp_path, written(FLOATS, WORDS, "kind"), label=3).n_rounds == 30
    assert rounds_of(tmp_path, written(FLOATS, NUMBERS * 1.0, "3"), label=3).n_rounds == 30
    assert rounds_of(tmp_path, written(FLOATS, WORDS, "3"), label=3).classes == ("no", "yes")


@pytest.mark.parametrize(
    "text",
    [
        written(WHOLES, WORDS, "kind"),
        written(WHOLES, NUMBERS, "3"),
        written(WHOLES, np.where(NUMBERS, "y", "n"), "y"),
    ],
)
def test_what_cannot_be_detected_is_asked(tmp_path, text):
    with pytest.raises(StreamError, match=r"line 1: .* may be a header or a round: choose header=True"):
        rounds_of(tmp_path, text)
    assert rounds_of(tmp_path, text, header=True, label=3).n_rounds == 30
    assert rounds_of(tmp_path, text, header=False).n_rounds == 31


@pytest.mark.parametrize(
    "text",
    [
        "5,2,a\n6,3,b\n",
        "0,1,a\n1,0,b\n1,1,a\n",
        "0,1,1\n1,0,0\n",
        "5,2,y\n6,3,n\n7,1,y\n",
        "1,2,a\n3,4,b\n",
        "0.5,1,2\n3,4,5\n",
        "nan,1,2\n3,4,5\n",
        "1,2,3,4\n5,6,7,8\n",
    ],
)
def test_rounds_without_a_header_are_not_lost(tmp_path, text):
    if text.startswith("nan"):
        with pytest.raises(StreamError, match="line 1: a feature is NaN"):
            open_stream(put(tmp_path, "a.csv", text))
        return
    stream = rounds_of(tmp_path, text)
    assert stream.n_rounds == text.count("\n") and stream.columns == ()


def test_a_quoted_header_of_numbers(tmp_path):
    text = '"7","8","out"\n' + "".join(f"{a},{b},{k}\n" for (a, b, _), k in zip(WHOLES, WORDS))
    stream = rounds_of(tmp_path, text, label=2)
    assert stream.columns == ("7", "8") and stream.n_rounds == 30
    everywhere = to_csv(FLOATS, WORDS, ["0", "1", "2", "y"], quoting=csv.QUOTE_ALL)
    assert rounds_of(tmp_path, everywhere).n_rounds == 30


def test_an_unnamed_column_of_row_numbers_is_ignored_with_a_note(tmp_path):
    for columns in ("012", "abc"):
        text = to_csv(FLOATS, WORDS, [*columns, "y"], index=True)
        stream = rounds_of(tmp_path, text)
        assert stream.n_features == 3 and stream.n_rounds == 30
        assert stream.notes == ("the unnamed first column contains row numbers and is ignored",)
        np.testing.assert_allclose(stream.X, FLOATS)
    text = ",a,y\n" + "".join(f"{x},1,{k}\n" for x, k in zip(FLOATS[:, 0], WORDS))
    assert rounds_of(tmp_path, text).n_features == 2  # nameless, but no count


def test_a_header_without_a_usual_label_is_refused_and_a_file_without_a_header_uses_its_last_column(tmp_path):
    rows = "1,2,0\n3,5,1\n2,2,0\n"
    with pytest.raises(
        StreamError, match=r"no column is named like a label: choose one with label=\.\.\. from a, b, kind$"
    ):
        open_stream(put(tmp_path, "a.csv", "a,b,kind\n" + rows))
    with pytest.raises(StreamError, match=r"label='kin' is not one of the columns a, b, kind; did you mean kind\?"):
        open_stream(put(tmp_path, "a.csv", "a,b,kind\n" + rows), label="kin")
    stream = rounds_of(tmp_path, rows, header=False)
    assert stream.classes == (0, 1) and stream.notes == ("no header: the last column is used as the label",)
    assert rounds_of(tmp_path, rows, header=False, label=2).notes == ()


def test_two_columns_of_one_name(tmp_path):
    text = "a,a,y\n1,2,0\n3,4,1\n"
    assert rounds_of(tmp_path, text).columns == ("a", "a")
    with pytest.raises(StreamError, match="columns 0 and 1 are both named a: choose the label by its number"):
        open_stream(put(tmp_path, "a.csv", text), label="a")
    with pytest.raises(StreamError, match="columns 0 and 2 are both named y"):
        open_stream(put(tmp_path, "b.csv", "y,a,y\n1,2,0\n3,4,1\n"))
    assert open_stream(put(tmp_path, "b.csv", "y,a,y\n1,2,0\n3,4,1\n"), label=2).classes == (0, 1)


def test_header_is_for_tables_of_text(tmp_path):
    with pytest.raises(StreamError, match="header= is for CSV and TSV files"):
        open_stream(put(tmp_path, "a.svm", "1 1:1\n0 1:1\n"), header=True)
