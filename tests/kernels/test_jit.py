"""The cache of compiled code: found by the next process, never used after an edit."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gaptron
from gaptron.kernels.compile.cache import DAY, MAX_AGE, cache_folder, fingerprint, mark_used
from gaptron.kernels.play import algorithm
from tests.conftest import needs_compiler

SCRIPT = """
import json
import sys
import numpy as np
import gaptron
from gaptron.kernels import play
from gaptron.kernels.compile.jit import when_compiling
rng = np.random.default_rng(0)
X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
learner = gaptron.Learner("banditron", n_classes=3, feedback="bandit", gamma=0.5, seed=0)
calls = []
with when_compiling(lambda: calls.append("compiling")):
    trace = learner.play(X, y)
stats = play.play.stats
print(json.dumps({
    "where": gaptron.__file__,
    "calls": calls,
    "labels": trace.codes.tolist(),
    "top": trace.top.tolist(),
    "hits": sum(stats.cache_hits.values()),
    "misses": sum(stats.cache_misses.values()),
    "compiler initialised": "numba.np.arraymath" in sys.modules,
}))
"""


def run(folder: Path) -> dict:
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT")}
    env = {**kept, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    out = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    report = json.loads(out.stdout)
    assert Path(report["where"]).is_relative_to(folder)
    return report


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is set by XDG_CACHE_HOME")
def test_a_second_process_hits_the_cache_and_an_edited_kernel_never_does(tmp_path):
    package = tmp_path / "gaptron"
    shutil.copytree(Path(gaptron.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    first, second = run(tmp_path), run(tmp_path)
    assert first["hits"] == 0 and first["misses"] > 0
    assert second["hits"] > 0 and second["misses"] == 0
    assert first["compiler initialised"] and not second["compiler initialised"]  # which takes time and 40 MB
    assert first["labels"] == second["labels"] != first["top"]
    assert first["calls"] == ["compiling"] and second["calls"] == []  # once, and only while compiling

    kernel = package / "kernels" / "simplex.py"
    text = kernel.read_text()
    head, body = text.split("def draw(p: Vector, top: int, u: float) -> int:")
    kernel.write_text(
        head + "def draw(p: Vector, top: int, u: float) -> int:\n    return top\n\n\ndef _old_draw(p, top, u):" + body
    )
    edited = run(tmp_path)
    assert edited["labels"] == edited["top"]
    assert edited["hits"] == 0


def test_the_fingerprint_sees_every_compiled_source(tmp_path):
    for name in ("types.py", "kernels/rows.py", "algorithms/a.py", "abstention/b.py", "learner.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one")
    before = fingerprint(tmp_path)
    assert cache_folder(tmp_path, "1.0").name.endswith(before)
    for name in ("types.py", "kernels/rows.py", "algorithms/a.py", "abstention/b.py"):
        (tmp_path / name).write_text("two")
        assert fingerprint(tmp_path) != before
        (tmp_path / name).write_text("one")
    assert fingerprint(tmp_path) == before
    (tmp_path / "learner.py").write_text("two")  # not compiled: the cache stays
    assert fingerprint(tmp_path) == before
    (tmp_path / "kernels/rows.py").rename(tmp_path / "kernels/lines.py")
    assert fingerprint(tmp_path) != before


def test_code_that_was_not_used_for_a_month_is_deleted(tmp_path):
    now = time.time()
    ages = {"numba-1-old": MAX_AGE + DAY, "numba-1-young": MAX_AGE - DAY, "numba-1-own": 2 * DAY, "kept": 2 * MAX_AGE}
    for name, age in ages.items():
        (tmp_path / name / "part").mkdir(parents=True)
        for file in ("f.nbi", "f.1.nbc", "notes.txt"):
            (tmp_path / name / "part" / file).write_text("")
        os.utime(tmp_path / name, (now - age, now - age))

    def left(name):
        return sorted(path.name for path in (tmp_path / name / "part").iterdir())

    mark_used(tmp_path / "numba-1-own")
    everything = ["f.1.nbc", "f.nbi", "notes.txt"]
    assert left("numba-1-old") == ["notes.txt"]  # the folders stay: a process that still runs from them may write
    assert left("numba-1-young") == left("numba-1-own") == left("kept") == everything
    assert now - (tmp_path / "numba-1-own").stat().st_mtime < DAY  # it counts as used from now on


def test_a_cache_that_cannot_be_written_raises_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    mark_used(tmp_path / "file" / "numba-1-own")


def test_two_algorithms_may_not_share_a_settings_name():
    class Gaptron:
        pass

    gaptron.Learner("gaptron", n_classes=2)
    with pytest.raises(RuntimeError, match="Gaptron"):
        algorithm(Gaptron, lambda: 0, lambda: None)
