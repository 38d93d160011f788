"""A first pass that looks at labels and widths alone finds what the one over every value finds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaptron.errors import StreamError
from gaptron.streams import open_stream
from tests.streams.writers import put

gaps = st.sampled_from([" ", "  ", "\t", " \x0b"])
svm_labels = st.sampled_from(["0", "1", "2", "+1", "-3", "2.0", "1e0"])
vw_labels = st.sampled_from(["0", "1", "b", "dog", "ä", "0 1.0", "1 1 'tag", "b 'tag"])


@st.composite
def svm_lines(draw):
    words = [draw(svm_labels), *draw(st.sampled_from([[], ["qid:7"]]))]
    words += [f"{index}:{index / 8}" for index in sorted(draw(st.sets(st.integers(0, 99), max_size=6)))]
    gap = draw(gaps)
    comment = draw(st.sampled_from(["", "", "", " # 200:1", "#1"]))
    return draw(st.sampled_from(["", " "])) + gap.join(words) + draw(st.sampled_from(["", gap])) + comment


@st.composite
def vw_lines(draw):
    features = draw(st.lists(st.sampled_from(["a", "b:2", "|n c", "|m:2 d:1e-3", "|"]), max_size=5))
    return f"{draw(vw_labels)} |{draw(st.sampled_from(['', 'n']))} " + draw(gaps).join(features)


def both(path, **given):
    return [open_stream(path, chunk=3, measure=measure, **given) for measure in (True, False)]


@pytest.mark.slow
@pytest.mark.parametrize("name,lines", [("a.svm", svm_lines()), ("a.vw", vw_lines())])
@given(data=st.data())
@settings(deadline=None, max_examples=100)
def test_both_passes_find_the_same(tmp_path_factory, name, lines, data):
    blanks = st.sampled_from(["", "  ", "\t"]) if name == "a.vw" else st.sampled_from(["", "  ", "# 0:1"])
    ends = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = ["0 1:1", "1 2:1"] if name == "a.svm" else ["0 | a", "1 | a"]
    text += data.draw(st.lists(st.one_of(lines, lines, blanks), max_size=9))
    path = put(tmp_path_factory.mktemp("outline"), name, ends.join(text) + data.draw(st.sampled_from(["", ends])))
    one, other = both(path)
    for field in ("classes", "n_features", "n_rounds", "index_base", "notes", "prepared"):
        assert getattr(one, field) == getattr(other, field), field
    assert other.norm is None and other.measured_norm() == one.norm
    assert [part.X.toarray().tolist() for part in one.streams()] == [
        part.X.toarray().tolist() for part in other.streams()
    ]


@pytest.mark.parametrize(
    "name,good,bad",
    [
        ("a.svm", "0 1:1 2:1 3:1 4:1\n1 1:1\n", "0 1:1 2:1 3:x 4:1\n"),
        ("a.svm", "0 1:1 2:1 3:1 4:1\n1 1:1\n", "0 1:1 2:1 3:inf 4:1\n"),
        ("a.svm", "0 1:1 2:1 3:1 4:1\n1 1:1\n", "0 1:1 3:1 2:1 4:1\n"),
        ("a.vw", "0 | a\n1 | b\n", "0 | a:x\n"),
    ],
)
def test_a_value_that_is_wrong_is_named_when_it_is_read(tmp_path, name, good, bad):
    path = put(tmp_path, name, 5 * good + bad + good)
    parts = open_stream(path, chunk=2, measure=False).streams()
    assert sum(next(parts).n_rounds for _ in range(5)) == 10
    with pytest.raises(StreamError) as caught:
        next(parts)
    assert caught.value.line == 11


@pytest.mark.parametrize(
    "name,bad", [("a.svm", "x 1:1\n"), ("a.svm", "0 1:1 9\n"), ("a.vw", "| a\n"), ("a.vw", "0 a\n")]
)
def test_what_the_pass_looks_at_is_refused_by_it(tmp_path, name, bad):
    path = put(tmp_path, name, ("0 1:1\n1 2:1\n" if name == "a.svm" else "0 | a\n1 | b\n") + bad)
    with pytest.raises(StreamError) as caught:
        open_stream(path, chunk=2, measure=False)
    assert caught.value.line == 3


def test_tables_are_read_as_they_always_are(tmp_path):
    one, other = both(put(tmp_path, "a.csv", "a,b,y\n" + "3,4,0\n1,2,1\n" * 5))
    assert one.norm == other.norm == 5.0
