"""Arrow's parser and the reading cell by cell give the same rounds and the same errors."""

import random

import pytest

from gaptron.errors import GaptronError
from gaptron.streams import csv_text, open_stream
from gaptron.streams.tables import open_table
from tests.streams.test_errors import FILES, LINES
from tests.streams.test_formats import WRITTEN
from tests.streams.writers import dense, put

TEXTS = [(text, options) for name, text, options, *_ in [*LINES, *FILES] if name == "a.csv"]
TEXTS += [(data, {}) for name, (data, _) in WRITTEN.items() if name.endswith(".csv")]
TEXTS += [
    ('u,v,label\n+1.5, 2 ,"a, b"\n   \n3,1e1,c\n', {}),
    (b"\xef\xbb\xbff0,f1,label\r\n1,2,a\r\n\r\n3,4,b\r\n", {}),
    (b"f0,f1,label\n\xef\xbb\xbf1,2,a\n3,4,b\n", {}),  # a mark that is not at the beginning of the file
    (b"f0,f1,label\n\xef\xbb\xbf\n1,2,a\n3,4,b\n", {}),
]


def reading(path, options, few, monkeypatch):
    monkeypatch.setattr(csv_text, "MIN_BYTES", few)
    try:
        stream = open_stream(path, **options)
    except GaptronError as error:
        return str(error)
    return stream.classes, stream.columns, stream.y.tolist(), dense(stream.X).tolist()


@pytest.mark.parametrize("text,options", TEXTS)
def test_both_ways_of_reading_a_table_agree(tmp_path, monkeypatch, text, options):
    path = put(tmp_path, "a.csv", text)
    arrow, cells = (reading(path, options, few, monkeypatch) for few in (0, 10**9))
    assert arrow == cells


def test_both_ways_read_every_number_alike(tmp_path, monkeypatch):
    rng = random.Random(4)
    numbers = [f"{rng.uniform(-9, 9):.{rng.randint(0, 20)}f}e{rng.randint(-330, 300)}" for _ in range(3000)]
    path = put(tmp_path, "a.csv", "".join(f"{number},{at % 2}\n" for at, number in enumerate(numbers)))
    arrow, cells = (reading(path, {}, few, monkeypatch) for few in (0, 10**9))
    assert arrow == cells and [row[0] for row in arrow[3]] == list(map(float, numbers))


def table_reading(path, options):
    try:
        source = open_table(path, **options)
    except GaptronError as error:
        return str(error)
    table, y, available, rewards = source.whole
    cells = {name: column.distinct() for name, column in table.block(0, table.rows).items()}
    values = {name: [found[code] for code in codes] for name, (found, codes) in cells.items()}
    arrays = [None if array is None else array.tolist() for array in (available, rewards)]
    return source.classes, source.columns, source.roles, source.notes, y.tolist(), values, arrays


TABLES = [
    ("who,paid,y,open\nold,0.3,mail,mail|chat\nyoung,1,chat,chat\n", {"reward": "paid", "available": "open"}),
    ("who,paid,y\nold,0.3,mail\nyoung,much,chat\n", {"reward": "paid"}),
    (',a, b ,y\n0,x,"1, 2",u\n1,,3,v\n', {}),
    ("a,b,y\n1,x,u\n2,v\n", {}),
    ("1,x,u\n2,z,v\n", {}),
]


@pytest.mark.parametrize("text,options", TABLES)
def test_both_ways_of_reading_named_columns_agree(tmp_path, monkeypatch, text, options):
    path = put(tmp_path, "a.csv", text)
    arrow = table_reading(path, options)
    monkeypatch.setattr(csv_text, "_parse_with_arrow", lambda *_, **__: None)
    assert table_reading(path, options) == arrow


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_chunks_of_a_table_are_the_whole_in_order(tmp_path, chunk):
    path = put(tmp_path, "a.csv", "n,y\n" + "".join(f"{at},{'uv'[at % 2]}\n" for at in range(40)))
    codes, numbers = [], []
    for rounds in open_table(path, chunk=chunk):
        found, ids = rounds.X.block(0, rounds.X.rows)["n"].distinct()
        codes += rounds.y.tolist()
        numbers += [float(found[at]) for at in ids]
    assert codes == [at % 2 for at in range(40)] and numbers == list(range(40))


def test_column_names_are_stripped_for_numeric_streams_too(tmp_path):
    stream = open_stream(put(tmp_path, "a.csv", "a, b , kind\n1,2,u\n3,4,v\n"), label="kind")
    assert stream.columns == ("a", "b") and stream.classes == ("u", "v")
