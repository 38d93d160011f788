"""A function that compiled functions call is a part of them; one that Python calls is compiled whole."""

import subprocess
import sys

import numpy as np
from numba.core.compiler import Flags

from gaptron.kernels.jit import inner, jit
from gaptron.kernels.parts import KnownFlags
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
        each._cache.disable()  # what is asked is what compiling leaves, on the second run too


def test_a_part_has_code_for_its_callers_and_none_for_the_machine():
    assert entry(np.ones(3)) == 8.0
    (whole,), (part,) = entry.overloads.values(), summed.part.overloads.values()
    assert list(whole.library.get_defined_functions())
    assert not list(part.library.get_defined_functions())
    assert not summed.overloads  # nobody called it from Python


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
print(*parts, repr(float(learner.weights.sum())), len(play.look.overloads))
"""


def test_the_next_process_finds_parts_on_disk(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = [
        subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True).stdout.split()
        for how in ("play", "one by one")
    ]
    assert said[0][0] == "0" and int(said[0][1]) > 0  # compiled by the first
    assert int(said[1][0]) > 0 and said[1][1] == "0"  # found by the second, whose entries are others
    assert said[0][2] == said[1][2]
    assert said[1][3] == "1"  # what decides for one row looks at many


def test_options_written_out_once_are_those_of_now():
    plain, known = Flags(), KnownFlags()
    assert known == plain and plain == known and hash(known) == hash(plain)
    known.nrt = True
    assert known != plain and known.values()["nrt"] and hash(known) == hash(plain)
    plain.nrt = True
    assert known == plain and known.copy() == known and isinstance(known.copy(), KnownFlags)
    known.discard("nrt")
    assert known != plain and known == Flags()
