"""A function that compiled functions call is a part of them; one that Python calls is an entry."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.compiler import Flags
from packaging.requirements import Requirement

from gaptron.kernels.compile.jit import inner, jit
from gaptron.kernels.compile.parts import KnownFlags
from tests.conftest import INTERPRETED, needs_compiler

pytestmark = needs_compiler


@jit
def doubled(x):
    return 2.0 * x


@inner
def summed(values):
    total = 0.0
    for value in values:
        total += doubled(value)
    return total


@jit
def entry(values):
    return summed(values) + doubled(1.0)


if not INTERPRETED:
    for each in (entry, summed.part, doubled.part):
        each._cache.disable()  # the tests below are about fresh compilation, on the second run too


def test_a_part_has_code_for_its_callers_and_none_for_the_machine():
    assert entry(np.ones(3)) == 8.0
    (compiled,), (part,) = entry.overloads.values(), summed.part.overloads.values()
    assert list(compiled.library.get_defined_functions())
    assert not list(part.library.get_defined_functions())
    assert not summed.overloads  # it was not called from Python


def test_python_may_call_a_function_that_is_a_part_elsewhere():
    entry(np.ones(3))
    assert doubled(4.0) == 8.0 and doubled(3) == 6.0
    assert summed(np.arange(3.0)) == 6.0


SCRIPT = """
import sys
import numpy as np
import gaptron
from gaptron.kernels import play, simplex
learner = gaptron.Learner("softmax", n_classes=3, norm=5.0, horizon=20, seed=0)
X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 3
if sys.argv[1] == "play":
    learner.play(X, y)
for x, label in zip(X, y):
    if sys.argv[1] == "one by one":
        learner.learn(learner.decide(x), label=label)
stats = simplex.softmax.part.stats
learner.predict(X)
parts = sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
print(*parts, repr(float(learner.weights.sum())), len(play.score.overloads))
"""


@pytest.mark.slow
def test_the_next_process_finds_parts_on_disk(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outputs = [
        subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True).stdout.split()
        for how in ("play", "one by one")
    ]
    assert outputs[0][0] == "0" and int(outputs[0][1]) > 0  # compiled by the first
    assert int(outputs[1][0]) > 0 and outputs[1][1] == "0"  # found by the second, which has other entries
    assert outputs[0][2] == outputs[1][2]
    assert outputs[1][3] == "1"  # one entry decides for one example and scores many


def test_cached_options_are_the_current_ones():
    plain, known = Flags(), KnownFlags()
    assert known == plain and plain == known and hash(known) == hash(plain)
    known.nrt = True
    assert known != plain and known.values()["nrt"] and hash(known) == hash(plain)
    plain.nrt = True
    assert known == plain and known.copy() == known and isinstance(known.copy(), KnownFlags)
    known.discard("nrt")
    assert known != plain and known == Flags()


FALLBACK = """
import json
import sys
import warnings
import numba.core.codegen
if sys.argv[1] == "hidden":
    del numba.core.codegen.JITCodeLibrary  # a private name that a new version of numba might remove
import numpy as np
import gaptron
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from gaptron.kernels.compile import jit
rng = np.random.default_rng(0)
X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
trace = gaptron.Learner("banditron", n_classes=3, feedback="bandit", gamma=0.5, seed=0).play(X, y)
print(json.dumps([jit.HAS_PARTS, [str(each.message) for each in caught], trace.codes.tolist()]))
"""


@pytest.mark.slow
def test_without_the_private_hooks_of_numba_plain_njit_gives_the_same_labels_and_one_warning(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def play(hooks):
        command = [sys.executable, "-c", FALLBACK, hooks]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    has_parts, warned, labels = play("there")
    assert has_parts and not warned
    has_parts, warned, plain_labels = play("hidden")
    assert not has_parts and plain_labels == labels
    assert len(warned) == 1 and "plain numba.njit" in warned[0] and "JITCodeLibrary" in warned[0]


def test_the_installed_numba_is_one_that_the_requirements_allow():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    requirement = next(Requirement(each) for each in project["dependencies"] if each.startswith("numba"))
    assert {each.operator for each in requirement.specifier} == {">=", "<"}
    assert requirement.specifier.contains(numba.__version__)
