"""The compiled reader of svmlight text against scikit-learn's parser and against `float`."""

import io
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from gaptron.errors import StreamError
from gaptron.kernels import text
from gaptron.streams import open_stream, svmlight
from gaptron.streams.source import Text
from tests.streams.writers import put

EDGES = "0 -0 +0.0 5. -.5 00012 1e22 1e23 1e-22 1e-23 123456789012345e22 9007199254740993 0e999 1e-400".split()
EDGES += "9007199254740991 9007199254740992 9223372036854775807 9223372036854775808 9999999999999999999".split()


def halfway(given) -> str:
    """A number halfway between two floats, or nearly so: the hardest to round."""
    below, digits = given
    return f"{(Decimal(below) + Decimal(math.nextafter(below, math.inf))) / 2:.{digits}e}"


floats = st.floats(allow_nan=False, allow_infinity=False)
spelled = st.one_of(
    floats.map(repr),
    st.tuples(floats, st.integers(0, 20)).map(lambda pair: f"{pair[0]:.{pair[1]}e}"),
    st.tuples(st.floats(-1e6, 1e6), st.integers(0, 20)).map(lambda pair: f"{pair[0]:.{pair[1]}f}"),
    st.integers(-(10**25), 10**25).map(str),
    st.tuples(st.floats(1e-9, 1e25), st.integers(15, 18)).map(halfway),
    st.sampled_from(EDGES),
)
spaces = st.sampled_from([" ", "\t", "  ", " \x0b", "\x0c "])
pairs = st.dictionaries(st.integers(0, 2**31 - 2), spelled, max_size=6)
endings = st.sampled_from(["", " ", "# words", " # 1:2 3", "\r", "#"])
line = st.tuples(st.integers(-9, 9), st.sampled_from(["", ".0", "e0"]), st.booleans(), pairs, spaces, endings)


def written(line) -> str:
    label, tail, query, pairs, space, ending = line
    words = [f"{label}{tail}", *(["qid:7"] if query else []), *(f"{i}:{v}" for i, v in sorted(pairs.items()))]
    return space.join(words) + ending


def parsed(data: bytes):
    return svmlight._parsed(Text("text", 1, data, b"#"))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(line, max_size=8), st.sampled_from(["\n", "\n\n", "\n # no round\n", "\r\n"]), st.booleans())
def test_the_rounds_are_those_of_scikit_learn(lines, between, ended):
    data = (between.join(map(written, lines)) + ("\n" if ended else "")).encode()
    X, labels, _ = parsed(data)
    if not lines:
        assert not labels.size
        return
    other, others = load_svmlight_file(io.BytesIO(data), dtype=np.float64, zero_based=True)
    np.testing.assert_array_equal(labels, others)
    np.testing.assert_array_equal(X.indptr, other.indptr)
    np.testing.assert_array_equal(X.indices, other.indices)
    assert X.data.tobytes() == other.data.tobytes()  # to the last bit, and the sign of zero


@settings(max_examples=1000, deadline=None)
@given(spelled)
def test_every_number_is_read_as_python_reads_it(word):
    X, *_ = parsed(f"1 1:{word}\n".encode())
    assert X.data.tobytes() == np.float64(word).tobytes()


def test_numbers_as_scikit_learn_writes_them_are_read_at_once():
    """Sixteen digits, and none of them left to Python."""
    rng = np.random.default_rng(0)
    for value in rng.normal(size=300) * 10.0 ** rng.integers(-4, 9, 300):
        word = np.frombuffer(f"{value:.16g} ".encode(), dtype=np.uint8)
        assert text.any_number(word, np.uint64(0), 35) == (float(f"{value:.16g}"), len(word) - 1, text.PARSED)


BAD = "1_0 1: :1 1:: 1:1: 1:1,2 1:0x1 1:1e 1:e5 1:. 1:+ 1:--1 +1:1 -0:1 1:1_0".split(" ")
BAD += "qid qi:1 qid1:1 1 x 1:n 1:infin \0 1:1\0".split(" ")


@pytest.mark.parametrize("word", BAD)
def test_what_is_no_pair_is_refused_in_words(tmp_path, word):
    path = put(tmp_path, "a.svm", f"0 1:1\n1 {word} 5:1\n")
    with pytest.raises(StreamError, match=r"line 2: .* is not index:value"):
        open_stream(path)


@pytest.mark.parametrize("word", "1_0 x 1: - 1x 1e 0x1 \0".split(" "))
def test_what_is_no_label_is_refused_in_words(tmp_path, word):
    path = put(tmp_path, "a.svm", f"0 1:1\n{word} 5:1\n")
    with pytest.raises(StreamError, match=r"line 2: label .* is not a number"):
        open_stream(path)


def test_numbers_that_python_must_read_may_be_most_of_a_text():
    """The compiled reader leaves such numbers to Python in a buffer for few of them, which is enlarged if needed."""
    X, labels, lowest = parsed(b"1 1:1e-320 2:1e-321\n-1 1:1e-322 3:1e400\n" * 200)
    assert X.shape == (400, 4) and lowest == 1
    np.testing.assert_array_equal(labels, [1, -1] * 200)
    np.testing.assert_array_equal(X.toarray()[:2], [[0, 1e-320, 1e-321, 0], [0, 1e-322, 0, math.inf]])
    np.testing.assert_array_equal(X.toarray(), np.tile(X.toarray()[:2], (200, 1)))
