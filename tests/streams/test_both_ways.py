"""Arrow's parser and the reading cell by cell give the same rounds and the same errors."""

import random

import pytest

from gaptron.errors import GaptronError
from gaptron.streams import csv_text, open_stream
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
    monkeypatch.setattr(csv_text, "FEW", few)
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
