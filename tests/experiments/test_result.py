"""Results: a line of JSON and back."""

import contextlib
import json
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaptron.errors import InputError
from gaptron.experiments.export import export
from gaptron.experiments.store import latest, read, write
from gaptron.experiments.task import Result

NAMED = {"stream": "s", "algorithm": "gaptron", "feedback": "full", "loss": "hinge", "seed": 3, "version": "0"}
DONE = Result(key="k", status="ok", **NAMED, settings={"eta": 0.5}, prepared=("unit norm",), rounds=4, mistakes=1)
FAILED = Result(key="k", status="failed", **NAMED, error={"type": "E", "message": "über", "traceback": ""})


@pytest.mark.parametrize("result", [DONE, FAILED], ids=["ok", "failed"])
def test_a_result_survives_a_round_trip(result):
    line = result.to_json()
    assert "\n" not in line and Result.from_json(line) == result


def test_a_failure_has_no_field_of_a_result():
    content = json.loads(FAILED.to_json())
    assert not {"mistakes", "expected_mistakes", "top_mistakes", "curve", "bound", "seconds"} & set(content)
    assert not FAILED.ok and DONE.ok and DONE.error_rate == 0.25


def test_unknown_fields_are_ignored():
    content = {**json.loads(DONE.to_json()), "invented": 1}
    assert Result.from_json(json.dumps(content)) == DONE


DAMAGED = [
    "",
    "{",
    "[1]",
    '{"key": "k"}',
    "nonsense",
    "[" * 200_000,
    DONE.to_json().replace('"mistakes": 1', '"mistakes": ' + '{"a":' * 100_000 + "1" + "}" * 100_000),
    DONE.to_json().replace('"mistakes": 1', '"mistakes": "one"'),
    DONE.to_json().replace('"mistakes": 1', '"mistakes": NaN'),
    DONE.to_json().replace('"rounds": 4', '"rounds": 0'),
    DONE.to_json().replace('"rounds": 4, ', ""),
    DONE.to_json().replace('"seed": 3', '"seed": ' + "9" * 10_000),
    DONE.to_json().replace('"seed": 3', '"seed": 99999999999999999999'),
    DONE.to_json().replace('"eta": 0.5', '"eta": 1e400'),
    DONE.to_json().replace('"stream": "s"', '"stream": "\\ud800"'),
]


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_invalid_lines_are_refused(line):
    with pytest.raises(InputError, match="not a result"):
        Result.from_json(line)


def test_not_a_number_never_reaches_the_file():
    with pytest.raises(ValueError, match="JSON"):
        Result(key="k", status="ok", **NAMED, seconds=float("nan")).to_json()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([f.name for f in fields(Result)]), VALUES, max_size=4), st.data())
@settings(max_examples=300, deadline=None)
def test_any_line_is_a_result_that_can_be_used_or_is_refused(tmp_path_factory, changes, data):
    line = json.dumps({**json.loads(DONE.to_json()), **changes}, ensure_ascii=data.draw(st.booleans()))
    try:
        result = Result.from_json(line)
    except InputError:
        return
    folder = tmp_path_factory.getbasetemp()
    write(folder / "fuzzed.jsonl", latest([DONE, result]))
    assert read(folder / "fuzzed.jsonl") == (latest([DONE, result]), [])
    with contextlib.suppress(InputError):
        export([DONE, result], folder / "fuzzed.csv")
    assert not result.ok or 0 <= result.error_rate <= 1
