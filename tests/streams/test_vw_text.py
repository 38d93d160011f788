"""The compiled reader of Vowpal Wabbit's text against the one that goes word by word, and against `float`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaptron.errors import StreamError
from gaptron.kernels.text import LONG_ROW, NARROW
from gaptron.streams import open_stream, source, vw
from gaptron.streams.source import Text
from tests.streams.test_svmlight_text import spelled
from tests.streams.writers import dense, put

names = st.text(st.sampled_from("abcxyz019-^_'\xe4\u4e2d"), min_size=1, max_size=4)
labels = st.one_of(st.integers(-3, 12).map(str), names.filter(lambda name: not name.startswith("'")))
gaps = st.sampled_from([" ", "  ", "\t", " \x0b", "\x0c "])
importance = st.sampled_from(["", " 1", " 1.0", " 1e0", " +1"])
tags = st.sampled_from([" ", " 'tag ", " tag", " ' "])
features = st.lists(
    st.tuples(names, st.one_of(st.just(""), spelled.map(":".__add__), st.sampled_from([":nan", ":-inf"]))), max_size=9
)
spaces = st.tuples(st.one_of(st.just(""), names), st.sampled_from(["", ":2", ":0.5", ":", ":1e-3"]), features)
ODD = ["2 | a:", "1 | :3", "1 2 | a", "1 |n:w a", "1 a", "| a", "1| a", "1 | a:b", "3 | a:1:2", "1 x | b", "1 1 1 | a"]
ODD += [
    "\x1c1 | a",
    "\x851 | a",
    "1\u00a0| a",
    "1 |n:0.30000000000000004 a",
    "1 |n:inf a",
    "\0 | \0",
    "1 1.5 't | a",
    "|",
]


@st.composite
def lines(draw) -> str:
    if draw(st.integers(0, 19)) == 0:
        return draw(st.sampled_from(ODD))
    gap = draw(gaps)
    parts = [
        f"|{name}{weight if name else ''}{gap}" + gap.join(word + value for word, value in words)
        for name, weight, words in draw(st.lists(spaces, min_size=1, max_size=3))
    ]
    return draw(st.sampled_from(["", " "])) + draw(labels) + draw(importance) + draw(tags) + "".join(parts)


def reading(read, data: bytes, width: int):
    text = Text("text", 1, data, None)
    try:
        chunk = read(text, width)
    except StreamError as error:
        return str(error)
    if chunk is None:
        return reading(vw._parse, data, width)
    X = chunk.X
    assert X.has_canonical_format
    return (
        [chunk.distinct_labels[at] for at in chunk.label_ids],
        X.indptr.tolist(),
        X.indices.tolist(),
        X.data.tobytes(),
    )


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.lists(lines(), max_size=8), st.sampled_from(["\n", "\n\n", "\r\n", "\n \t\n"]), st.sampled_from([2**18, 97]))
def test_the_rounds_are_those_parsed_in_python(lines, between, width):
    data = between.join(lines).encode()
    assert reading(vw._parse_compiled, data, width) == reading(vw._parse, data, width)


def test_most_lines_need_no_second_reading():
    data = "3 |n:2 a:0.25 b |m a\n\u00e4 'tag | x:12345678901234567 y:1e-300\n".encode() * 50
    chunk = vw._parse_compiled(Text("text", 1, data, None), 64)
    assert chunk is not None and chunk.distinct_labels == ["3", "\u00e4"]


@settings(max_examples=500, deadline=None)
@given(spelled)
def test_every_value_is_read_as_python_reads_it(text):
    chunk = vw._parse_compiled(Text("text", 1, f"1 | a:{text}\n".encode(), None), 8)
    assert chunk.X.data.tobytes() == np.float64(text).tobytes()


@pytest.mark.parametrize("count", [LONG_ROW - 1, LONG_ROW, LONG_ROW + 1, 3 * LONG_ROW])
def test_rows_of_any_length_are_put_in_order(count):
    words = " ".join(f"f{i}:{i + 0.5}" for i in range(count))
    data = f"1 | {words} f0:1 f1:2\n2 | a\n".encode()
    for width in (2**18, NARROW, NARROW + 1):
        assert reading(vw._parse_compiled, data, width) == reading(vw._parse, data, width)
    small = vw._parse_compiled(Text("text", 1, data, None), 5)
    np.testing.assert_allclose(dense(small.X), dense(vw._parse(Text("text", 1, data, None), 5).X), rtol=1e-12)


def test_labels_of_every_number_and_length(tmp_path):
    names = [f"{'x' * (at % 90)}{at}" for at in range(5000)]
    stream = open_stream(put(tmp_path, "a.vw", "".join(f"{name} | a\n" for name in names * 2)))
    assert [stream.classes[code] for code in stream.y] == names * 2


@pytest.mark.parametrize("name", ["a.vw", "a.svm", "a.vw.gz", "a.svm.xz"])
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_chunks_of_any_size_contain_the_same_rounds_and_lines(tmp_path, monkeypatch, name, size):
    line = "{} |n a:0.5 bb:{} c\n" if ".vw" in name else "{} 1:0.5 22:{} 333:1 # c\n"
    text = "\n".join(line.format(at % 3, at / 7) for at in range(60))
    path, width = put(tmp_path, name, "\ufeff" + text), {"n_features": 400}
    whole = open_stream(path, **width)
    monkeypatch.setattr(source, "CHUNK_BYTES", size)
    for rows in (1, 5, 1000):
        parts = list(open_stream(path, chunk=rows, **width).streams())
        assert max(part.n_rounds for part in parts) <= rows
        np.testing.assert_array_equal(np.vstack([dense(part.X) for part in parts]), dense(whole.X))
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)
    bad = put(tmp_path, "bad-" + name, text + "\n" + line.format("0", "x"))
    with pytest.raises(StreamError) as caught:
        list(open_stream(bad, chunk=1000, classes=[0, 1, 2], **width))
    assert caught.value.line == text.count("\n") + 2
