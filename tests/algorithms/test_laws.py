"""Every algorithm × loss × feedback × kind of rows × law."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from gaptron.algorithms import NAMES, load
from tests.algorithms.laws import LAWS, Case, cases
from tests.conftest import KINDS, REPOSITORY, needs_compiler

# Kinds of rows that an algorithm is put through all laws with. Single precision: the door is the same for all.
WHOLE = {"gaptron": tuple(KINDS), "frugal-gaptron": ("dense64", "dense32", "csr")}
PAIRS = [(case, kind) for case in cases() for kind in WHOLE.get(case.algorithm, ("dense64", "csr"))]


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
@pytest.mark.parametrize(("case", "kind"), PAIRS, ids=[f"{case}-{kind}" for case, kind in PAIRS])
def test_law(case: Case, kind: str, law: Any) -> None:
    law(case, KINDS[kind])


def test_settings_and_state_names_are_unique_across_algorithms() -> None:
    names: list[str] = []
    for name in NAMES:
        file = load(name)
        own = [n for n, c in vars(file).items() if isinstance(c, type) and c.__module__ == file.__name__]
        names += own
    assert len(names) == len(set(names)) >= 2 * len(NAMES)


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
    for name, here in compiled.items():
        there = interpreted[name]
        if name.rpartition("-")[0] not in tied:
            assert here["labels"] == there["labels"], name
            assert here["top"] == there["top"], name
            np.testing.assert_allclose(here["chances"], there["chances"], rtol=0, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(here["weights"], there["weights"], rtol=1e-10, atol=1e-10, err_msg=name)
