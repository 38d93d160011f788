"""Rows by name become rows of numbers: by the past alone, alike as a table and one by one, within bounds."""

import datetime
import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gaptron.errors import InputError, SettingError
from gaptron.features import Encoder, Features
from gaptron.features.in_file import as_tree, from_tree
from gaptron.features.tables import of_arrow
from gaptron.types import SparseRow

NAMES = ("age", "device", "when", "clicks", "mixed")
DAY = datetime.datetime(2026, 1, 31, 12, 30)


def dense(row: SparseRow, width: int) -> list[float]:
    x = np.zeros(width)
    x[row.indices] = row.values
    return x.tolist()


def one_by_one(encoder: Encoder, rows: list[dict], learn: bool = True) -> list[tuple[list[int], list[float]]]:
    encoded = [encoder.encode_row(encoder.read_row(x), learn=learn).row for x in rows]
    return [(row.indices.tolist(), row.values.tolist()) for row in encoded]


def as_table(encoder: Encoder, X, step: int, learn: bool = True) -> list[tuple[list[int], list[float]]]:
    given = encoder.read(X)
    found = []
    size = len(given) if isinstance(given, list) else given.rows
    for start in range(0, size, step):
        ends, indices, values = encoder.encode(given, start, min(start + step, size), learn=learn).rows
        pairs = itertools.pairwise(ends)
        found += [(indices[a:b].tolist(), values[a:b].tolist()) for a, b in pairs]
    return found


def same_trees(one, other) -> bool:
    if isinstance(one, dict):
        return set(one) == set(other) and all(same_trees(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_trees, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other


numbers = st.none() | st.floats(width=64) | st.integers(-(10**30), 10**30)
words = st.none() | st.text(max_size=3) | st.sampled_from(["a", " a ", "NA", "True", "2026-01-31", "3.5", "1e400"])
times = st.none() | st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)).map(
    lambda time: time.replace(microsecond=time.microsecond)
)
anything = numbers | words | times | st.booleans() | st.dates() | st.times() | st.decimals(allow_nan=False)
row = st.fixed_dictionaries(
    {"age": numbers, "device": words, "when": times, "clicks": st.booleans() | st.none(), "mixed": anything}
)
declared = st.sampled_from(
    [
        Features(),
        Features(cross=[("device", "mixed"), ("when.hour", "age")]),
        Features({"age": "log", "mixed": "word", "clicks": "ignore"}, most_words=2, buckets=3),
        Features({"mixed": "time", "device": "number"}, most_words=1, buckets=1),
    ]
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(declared, st.lists(row, min_size=1, max_size=12), st.integers(1, 12))
def test_a_table_gives_the_same_rows_as_its_rows_one_by_one(features, rows, step):
    rows = [{name: x[name] for name in NAMES} for x in rows]
    alone, together, listed = Encoder(features), Encoder(features), Encoder(features)
    frame = pd.DataFrame({name: pd.Series([x[name] for x in rows], dtype=object) for name in NAMES})
    expected = one_by_one(alone, rows)
    assert as_table(listed, rows, step) == expected
    assert as_table(together, frame, step) == expected
    assert same_trees(as_tree(alone), as_tree(together))
    assert same_trees(as_tree(alone), as_tree(listed))
    # Looking is the same both ways, and changes nothing.
    assert as_table(together, frame, step, learn=False) == one_by_one(alone, rows, learn=False)
    assert same_trees(as_tree(alone), as_tree(together))
    again = from_tree(as_tree(alone), alone.width)
    assert same_trees(as_tree(again), as_tree(alone))
    assert one_by_one(again, rows) == one_by_one(alone, rows)


json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=3), json, max_size=5), max_size=8))
def test_any_json_is_encoded_or_refused_and_a_refusal_changes_nothing(rows):
    encoder = Encoder(Features(most_words=3, buckets=2))
    for x in rows:
        before = as_tree(encoder)
        try:
            cells = encoder.read_row(x)
        except InputError as problem:
            assert any(isinstance(value, (list, dict)) for value in x.values())
            assert "column" in str(problem)
            assert same_trees(as_tree(encoder), before)
            continue
        encoded = encoder.encode_row(cells, learn=True)
        assert np.isfinite(encoded.row.values).all()
        assert math.isclose(np.linalg.norm(encoded.row.values), 1.0)
        assert (np.diff(encoded.row.indices) > 0).all()
        assert encoded.row.indices[-1] < encoded.width == encoder.width
    assert same_trees(as_tree(from_tree(as_tree(encoder), encoder.width)), as_tree(encoder))


def test_numbers_are_measured_by_the_past_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(50.0, 5.0, size=(200, 3))
    whole, part = as_table(Encoder(Features()), X, 200), as_table(Encoder(Features()), X[:120], 7)
    assert whole[:120] == part
    encoder = Encoder(Features())
    Z = [dense(SparseRow(*map(np.array, row)), 4) for row in as_table(encoder, X, 64)]
    Z = np.array([np.array(row)[1:] / row[0] for row in Z])  # the constant is 1 before the length is made 1
    assert abs(Z[20:].mean(axis=0)).max() < 0.4
    assert np.allclose(Z[20:].std(axis=0), 1.0, atol=0.3)
    assert Z[0].tolist() == [0.0, 0.0, 0.0]  # nothing is known before the first


def test_an_outlier_is_cut_and_does_not_crush_what_follows():
    rows = [{"x": float(i % 2)} for i in range(50)]
    calm, shaken = Encoder(Features()), Encoder(Features())
    one_by_one(calm, rows)
    one_by_one(shaken, rows)
    far = shaken.encode_row(shaken.read_row({"x": 1e30}), learn=True).row
    assert far.values[1] / far.values[0] == pytest.approx(4.0)
    one, other = (dense(e.encode_row({"x": 1.0}, learn=False).row, 2) for e in (calm, shaken))
    assert other[1] / other[0] == pytest.approx(one[1] / one[0], rel=0.3)


def test_a_constant_stretch_counts_as_one_value():
    encoder = Encoder(Features())
    one_by_one(encoder, [{"x": 7.0}] * 1000)
    (row,) = one_by_one(encoder, [{"x": 8.0}])
    assert row == ([0, 1], [1.0 / math.sqrt(2.0)] * 2)
    later = dense(encoder.encode_row({"x": 8.0}, learn=False).row, 2)
    assert 0.9 < later[1] / later[0] <= 1.1


def test_rare_words_weigh_more_and_gaps_are_words_of_their_column():
    encoder = Encoder(Features())
    one_by_one(encoder, [{"w": "a"}] * 9)
    common, rare, gap = (dense(encoder.encode_row({"w": w}, learn=True).row, 16) for w in ("a", "b", None))
    assert common[1] / common[0] == pytest.approx(math.sqrt(11 / 10))
    assert rare[2] / rare[0] == 2.0  # √(12/1), cut
    assert gap[3] / gap[0] == 2.0
    [column] = encoder.columns
    assert (column.kind, column.words, column.missing) == ("word", 2, 1)


def test_a_gap_among_numbers_has_the_mean_in_its_place_and_an_indicator_of_1():
    encoder = Encoder(Features())
    one_by_one(encoder, [{"x": float(i)} for i in range(10)])
    for nothing in (None, math.nan, math.inf, "", "NA", " "):
        (row,) = one_by_one(encoder, [{"x": nothing}])
        assert row == ([0, 2], [1.0 / math.sqrt(2.0)] * 2)
    assert encoder.columns[0].missing == 6


def test_what_becomes_of_columns_that_change_are_new_or_stay_away_is_counted():
    encoder = Encoder(Features())
    one_by_one(encoder, [{"age": 1.0, "device": "phone"}, {"age": 3.0, "device": "tablet"}])
    one_by_one(encoder, [{"age": "unknown", "device": 7}, {"age": "5", "device": "7"}, {"age": 1.0, "new": True}])
    age, device, new = encoder.columns
    assert (age.kind, age.words, age.other_kind, age.missing) == ("number", 1, 1, 0)  # "5" is a number there
    assert (device.kind, device.words, device.other_kind) == ("word", 3, 1)  # 7 and "7" are one word
    assert (device.missing, device.absent) == (1, 1)
    assert (new.kind, new.first_row, new.words) == ("word", 4, 1)


def test_words_beyond_the_cap_share_buckets():
    encoder = Encoder(Features(most_words=3, buckets=2))
    rows = [{"id": f"user {i}"} for i in range(100)]
    encoded = one_by_one(encoder, rows)
    assert len({indices[-1] for indices, _ in encoded}) == 5
    assert encoder.columns[0].words == 3
    assert encoder.columns[0].shared == 97
    assert one_by_one(Encoder(Features(most_words=3, buckets=2)), rows) == encoded  # whatever Python hashes like


def test_memory_grows_with_categories_and_is_doubled():
    encoder = Encoder(Features())
    widths = [encoder.encode_row({"id": f"user {i}"}, learn=True).width for i in range(5000)]
    assert set(widths) == {16 << n for n in range(10)}
    before = encoder.width
    one_by_one(encoder, [{"id": "user 1"}] * 1000)
    assert encoder.width == before


def test_times_give_hour_weekday_and_month_as_words_and_themselves_as_numbers():
    encoder = Encoder(Features(cross=[("when.hour", "when.weekday")]))
    for time in (DAY, "2026-01-31 12:30", "2026-01-31T12:30:00", pd.Timestamp(DAY), np.datetime64(DAY)):
        encoder.encode_row(encoder.read_row({"when": time}), learn=True)
    [column] = encoder.columns
    assert (column.kind, column.words, column.other_kind) == ("time", 3, 0)
    assert encoder._crosses[0].places.keys() == {"12\x1fSaturday"}
    row = dense(encoder.encode_row({"when": None}, learn=False).row, encoder.width)
    assert np.count_nonzero(row) == 1  # no gap was ever met: no column for it
    values = dense(encoder.encode_row(encoder.read_row({"when": DAY}), learn=False).row, encoder.width)
    sine, cosine = values[2] / values[0], values[3] / values[0]
    assert sine == pytest.approx(math.sqrt(2) * math.sin(2 * math.pi * 12.5 / 24))
    assert cosine == pytest.approx(math.sqrt(2) * math.cos(2 * math.pi * 12.5 / 24))
    midnight = encoder.encode_row(encoder.read_row({"when": datetime.date(2026, 1, 31)}), learn=False)
    assert 2 not in midnight.row.indices  # a date has no hour


@pytest.mark.parametrize("kind", ["auto", "ignore", "word"])
@pytest.mark.parametrize("table", [False, True])
def test_a_column_takes_part_in_crosses_once_it_is_encoded(kind, table):
    """A column of only missing values has no kind yet, and one to ignore never takes part."""
    features = Features({"b": kind}, cross=[("a", "b")])
    encoder = Encoder(features)
    rows = [{"a": "x", "b": None}, {"a": "x", "b": "y"}]
    as_table(encoder, pa.Table.from_pylist(rows), 1) if table else one_by_one(encoder, rows)
    assert encoder._crosses[0].places.keys() == (set() if kind == "ignore" else {"x\x1fy"})
    assert [column.kind for column in encoder.columns if column.name == "b"] == [
        "ignore" if kind == "ignore" else "word"
    ]


@pytest.mark.parametrize("table", [False, True])
def test_a_first_value_that_is_not_learned_from_has_no_part_in_crosses(table):
    """Its column has no kind yet. A new word of a cross would shorten the other entries."""
    encoder = Encoder(Features({"b": "auto"}, cross=[("a", "b")]))
    one_by_one(encoder, [{"a": "x", "b": None}])

    def encoded(row):
        if table:
            return as_table(encoder, pa.Table.from_pylist([row]), 1, learn=False)
        return one_by_one(encoder, [row], learn=False)

    assert encoded({"a": "x", "b": "y"}) == encoded({"a": "x", "b": None})


def frames(rows: list[dict]) -> dict[str, object]:
    table = pa.Table.from_pylist(rows)
    return {
        "pandas": pd.DataFrame(rows),
        "polars": pl.DataFrame(rows),
        "arrow": table,
        "batch": table.to_batches()[0],
        "dictionary": table.set_column(1, "device", table.column("device").dictionary_encode()),
        "categorical": pd.DataFrame(rows).astype({"device": "category"}),
        "nanoseconds": pd.DataFrame(rows).astype({"when": "datetime64[ns]"}),
        "dicts": rows,
    }


def test_every_make_of_table_gives_the_same_rows():
    rng = np.random.default_rng(1)
    rows = [
        {
            "age": float(rng.normal()) if rng.random() < 0.9 else None,
            "device": str(rng.choice(["phone", "tablet", "desktop"])) if rng.random() < 0.9 else None,
            "when": DAY + datetime.timedelta(hours=int(rng.integers(10_000))),
            "count": int(rng.integers(100)),
            "yes": bool(rng.integers(2)),
        }
        for _ in range(200)
    ]
    expected = one_by_one(Encoder(Features()), rows)
    for name, frame in frames(rows).items():
        assert as_table(Encoder(Features()), frame, 64) == expected, name


def test_times_with_an_offset_are_read_by_their_own_clock():
    rows = [{"when": f"2026-01-{day:02}T23:15:00+02:00"} for day in range(1, 29)]
    aware = [{"when": datetime.datetime.fromisoformat(row["when"])} for row in rows]
    column = pa.array([row["when"] for row in aware], type=pa.timestamp("us", "+02:00"))
    expected = one_by_one(Encoder(Features()), rows)
    assert one_by_one(Encoder(Features()), aware) == expected
    assert as_table(Encoder(Features()), pa.table({"when": column}), 10) == expected


def test_a_text_file_writes_numbers_as_texts():
    texts = pa.table({"age": ["31", "NA", " 17.5", "old"], "id": ["x1", "2", "3", "4"]})
    encoder = Encoder(Features())
    as_table(encoder, of_arrow(texts, text=True), 2)
    age, name = encoder.columns
    assert (age.kind, age.missing, age.words, age.other_kind) == ("number", 1, 1, 1)
    assert (name.kind, name.words) == ("word", 4)
    typed = Encoder(Features())
    as_table(typed, texts, 2)
    assert [column.kind for column in typed.columns] == ["word", "word"]  # what says that it is a text, is one


def test_coming_back_forgets_what_was_learned_since():
    rows = [{"x": float(i), "w": f"word {i % 5}", "m": None if i < 7 else "2026-01-31", "y": i} for i in range(20)]
    encoder, expected = Encoder(Features(cross=[("w", "m")])), Encoder(Features(cross=[("w", "m")]))
    one_by_one(encoder, rows[:5])
    one_by_one(expected, rows[:5])
    mark = encoder.mark()
    one_by_one(encoder, [*rows[5:], {"new": "z", "w": 3}])
    encoder.back_to(mark)
    assert same_trees(as_tree(encoder), as_tree(expected))
    assert one_by_one(encoder, rows[5:]) == one_by_one(expected, rows[5:])
    assert same_trees(as_tree(encoder), as_tree(expected))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([{"a": [1]}], "row 0 of X: column a holds \\[1\\]"),
        ([{"a": 1}, 7], "row 1 of X: x is a int"),
        ({"a": [1, 2]}, "a single dict"),
        (7, "X is a int"),
        (np.zeros(3), "shape"),
        (np.zeros((2, 2), dtype=complex), "complex"),
        (pa.table([[1], [2]], names=["a", "a"]), "same name"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "same name"),
        ([{1: 2, "1": 3}], "same name"),
        (pa.table({"a": [[1, 2]]}), "column a holds"),
    ],
)
def test_what_cannot_be_encoded_is_refused_by_name(X, words):
    with pytest.raises(InputError, match=words):
        Encoder(Features()).read(X)


@pytest.mark.parametrize(
    ("columns", "more", "words"),
    [
        ({"a": "numeric"}, {}, "column a cannot be 'numeric'"),
        ([("a", "word")], {}, "must be a dictionary"),
        ({1: "word"}, {}, "names of columns are strings"),
        (None, {"cross": "ab"}, "pairs of columns"),
        (None, {"cross": [("a",)]}, "pairs of columns"),
        (None, {"cross": [("a", "a")]}, "pairs of columns"),
        (None, {"cross": [("a", "b"), ("a", "b")]}, "twice"),
        (None, {"most_words": 0}, "most_words"),
        (None, {"buckets": "many"}, "buckets"),
    ],
)
def test_what_cannot_be_declared_is_refused(columns, more, words):
    with pytest.raises(SettingError, match=words):
        Features(columns, **more)


def forge(tree: dict, path: tuple, value) -> dict:
    """The tree with another value at one place."""
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = value if len(path) == 1 else forge(tree[path[0]], path[1:], value)
    return copy


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("rows",), -1),
        (("counts",), np.zeros(0, dtype=np.int64)),
        (("counts",), np.zeros(10**6, dtype=np.int64)),
        (("counts",), np.full(7, 5, dtype=np.int64)),
        (("columns",), {}),
        (("columns", 0, "kind"), "time"),
        (("columns", 0, "kind"), "ignore"),
        (("columns", 0, "values"), ["stamp"]),
        (("columns", 0, "places"), np.array([10**9])),
        (("columns", 0, "places"), np.array([2])),
        (("columns", 0, "stats"), np.full((1, 7), np.nan)),
        (("columns", 0, "stats"), np.full((1, 7), -1.0)),
        (("columns", 1, "name"), "x"),
        (("columns", 1, "words"), []),
        (("columns", 1, "words", 0, "total"), 99),
        (("columns", 1, "words", 0, "places"), np.array([10**9, 3])),
        (("columns", 1, "words", 0, "ends"), np.array([0, 5, 2])),
        (("columns", 1, "words", 0, "gap"), 10**9),
        (("features", "most_words"), 1),
        (("crosses",), [1]),
    ],
)
def test_a_forged_file_is_refused(path, value):
    encoder = Encoder(Features())
    one_by_one(encoder, [{"x": 1.0, "w": "a"}, {"x": 2.0, "w": "b"}, {"x": None, "w": None}])
    tree = as_tree(encoder)
    from_tree(tree, encoder.width)
    with pytest.raises((ValueError, LookupError, TypeError)):
        from_tree(forge(tree, path, value), encoder.width)
