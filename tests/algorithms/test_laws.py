"""Every algorithm × loss × feedback × kind of rows × law."""

import doctest
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gaptron.algorithms import NAMES, load
from tests.algorithms.laws import LAWS, Case, cases
from tests.conftest import KINDS, ON_SPARSE, REPOSITORY, needs_compiler

# Every kind of rows compiles four functions again. What reads rows is the same for all algorithms, and tests/kernels
# tries it alone, so single precision is tried with two of them.
PRECISIONS = {"gaptron": ("dense32", "csr32"), "frugal-gaptron": ("dense32",)}
OF_THE_FILE = {"the_docstring_names_a_paper_its_feedback_and_its_cost", "the_card_is_filled"}  # whatever the rows


def trials() -> Iterator[Any]:
    """Every law of every case with every kind of rows that could tell something new."""
    for case in cases():
        for kind in ("dense64", "csr", *PRECISIONS.get(case.algorithm, ())):
            for name, law in LAWS.items():
                if kind != "dense64" and name in OF_THE_FILE:
                    continue
                quick = kind == "dense64" or (kind == "csr" and case.algorithm in ON_SPARSE)
                slow = () if quick else (pytest.mark.slow,)
                yield pytest.param(case, kind, law, id=f"{case}-{kind}-{name}", marks=slow)


@pytest.mark.parametrize(("case", "kind", "law"), list(trials()))
def test_law(case: Case, kind: str, law: Any) -> None:
    law(case, KINDS[kind])


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", {case.algorithm: case for case in reversed(cases())}.values(), ids=str)
def test_the_docstring_has_an_example_that_runs_and_a_citation_to_copy(case: Case) -> None:
    text = case.file.__doc__
    example = doctest.DocTestParser().get_doctest(text, {}, case.algorithm, case.file.__file__, 0)
    assert len(example.examples) >= 3 and f'"{case.algorithm}"' in text and example.examples[-1].want
    printed = io.StringIO()
    failed, _ = doctest.DocTestRunner().run(example, out=printed.write)
    assert not failed, printed.getvalue()
    entries = re.findall(r"^    @\w+\{\w+,\n(.*?)^    \}", text, re.M | re.S)
    assert entries
    for entry in entries:
        fields = dict(re.findall(r"^      (\w+) += \{(.*?)\},?$", entry, re.M | re.S))
        assert {"title", "author", "year"} <= set(fields) and re.fullmatch(r"\d{4}", fields["year"])
        assert fields["author"].startswith("{") or fields["author"].split(",")[0] in text.partition("Example:")[0]


def test_the_laws_and_algorithms_named_here_are_some() -> None:
    assert OF_THE_FILE <= set(LAWS) and set(NAMES) >= ON_SPARSE | set(PRECISIONS)


def test_settings_and_state_names_are_unique_across_algorithms() -> None:
    names: list[str] = []
    for name in NAMES:
        file = load(name)
        own = [n for n, c in vars(file).items() if isinstance(c, type) and c.__module__ == file.__name__]
        names += own
    assert len(names) == len(set(names)) >= 2 * len(NAMES)


@pytest.mark.slow
@needs_compiler
def test_compiled_equals_interpreted() -> None:
    script = "from tests.algorithms.transcript import transcript; import json; print(json.dumps(transcript()))"
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    from tests.algorithms.transcript import transcript  # noqa: PLC0415

    interpreted, compiled = json.loads(run.stdout), transcript()
    assert interpreted.pop("compiled") is False and compiled.pop("compiled") is True
    assert interpreted.keys() == compiled.keys() and len(compiled) == 2 * len(cases())
    tied = {str(case) for case in cases() if "ties" in case.traits}
    single = {str(case) for case in cases() if "layout" in case.traits}  # the kernel expert's tables are float32
    for name, here in compiled.items():
        there = interpreted[name]
        close = 1e-5 if name.rpartition("-")[0] in single and name.endswith("dense64") else 1e-10
        if name.rpartition("-")[0] not in tied:
            assert here["labels"] == there["labels"], name
            assert here["top"] == there["top"], name
            np.testing.assert_allclose(here["propensities"], there["propensities"], rtol=0, atol=close, err_msg=name)
        np.testing.assert_allclose(here["weights"], there["weights"], rtol=close, atol=close, err_msg=name)
