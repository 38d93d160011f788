"""A short run of `benchmarks/fuzz/readers.py`: mutated files are read, or refused in one clear error."""

import importlib.util
from pathlib import Path

import pytest

from gaptron.data.text_numbers import as_number, as_whole
from gaptron.streams import FORMATS, csv_text

PLACE = Path(__file__).parents[2] / "benchmarks" / "fuzz" / "readers.py"


@pytest.fixture(scope="module")
def fuzzer():
    if not PLACE.exists():
        pytest.skip("the benchmarks are not in a source distribution")
    spec = importlib.util.spec_from_file_location("fuzz_readers", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_mutated_files_are_read_or_refused(fuzzer, name, monkeypatch):
    monkeypatch.setattr(csv_text, "MIN_BYTES", csv_text.MIN_BYTES)  # which the fuzzer changes
    assert set(fuzzer.READERS) == set(FORMATS)
    problems = []
    counts = fuzzer.fuzz(name, 0, 150, None, problems.append)
    assert problems == [] and counts["read"] and counts["refused"]


@pytest.mark.parametrize("text", ["1", "-2.5", "+.5e-3", "5.", " 7 ", "1E5", "0" * 99 + "1", "1e999"])
def test_plain_numbers_are_those_of_python(text):
    assert as_number(text) == float(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1_0",
        "0x10",
        "1e",
        "e5",
        ".",
        "+",
        "--1",
        "1 2",
        "\uff11",
        "\u0661",
        "1f",
        "1,5",
        "infinit",
        "9" * 9999 + "x",
    ],
)
def test_everything_else_is_no_number(text):
    assert as_number(text) is None and as_whole(text) is None


@pytest.mark.parametrize("text,whole", [("3", 3), ("+3", 3), ("3.0", 3), ("3e2", 300), ("03", None), ("3.5", None)])
def test_whole_numbers(text, whole):
    assert as_whole(text) == whole
