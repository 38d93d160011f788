"""Model files that were made to do harm. `benchmarks/fuzz/forgeries.py` tries a hundred thousand."""

import os
import subprocess
import sys

from tests.conftest import REPOSITORY


def test_forged_files_are_refused_or_harmless():
    """Interpreted, so that every index is checked; a few forgeries of every algorithm, feedback and layout."""
    script = "from benchmarks.fuzz.forgeries import run; print(dict(run(0, seed=7, each=12)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'src'}"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counts = eval(done.stdout)
    assert counts["refused"] > 200 and counts["played"] > 50
