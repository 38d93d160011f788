"""Records: a line of JSON and back."""

import json

import pytest

from gaptron.errors import InputError
from gaptron.experiments.record import Record

NAMED = {"stream": "s", "algorithm": "gaptron", "feedback": "full", "loss": "hinge", "seed": 3, "version": "0"}
DONE = Record(key="k", status="ok", **NAMED, settings={"eta": 0.5}, prepared=("unit norm",), rounds=4, mistakes=1)
FAILED = Record(key="k", status="failed", **NAMED, error={"type": "E", "message": "über", "traceback": ""})


@pytest.mark.parametrize("record", [DONE, FAILED], ids=["ok", "failed"])
def test_a_record_survives_its_line(record):
    line = record.to_json()
    assert "\n" not in line and Record.from_json(line) == record


def test_a_failure_has_no_field_of_a_result():
    said = json.loads(FAILED.to_json())
    assert not {"mistakes", "expected_mistakes", "top_mistakes", "curve", "bound", "seconds"} & set(said)
    assert not FAILED.ok and DONE.ok and DONE.error_rate == 0.25


def test_names_of_a_later_version_are_passed_over():
    said = {**json.loads(DONE.to_json()), "invented": 1}
    assert Record.from_json(json.dumps(said)) == DONE


@pytest.mark.parametrize("line", ["", "{", "[1]", '{"key": "k"}', "nonsense"])
def test_what_is_no_record_is_refused(line):
    with pytest.raises(InputError, match="this is no record"):
        Record.from_json(line)


def test_not_a_number_never_reaches_the_file():
    with pytest.raises(ValueError, match="JSON"):
        Record(key="k", status="ok", **NAMED, seconds=float("nan")).to_json()
