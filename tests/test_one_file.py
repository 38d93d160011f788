"""Adding an algorithm takes one file and one name; laws, command line, comparisons, adapters and docs read the file."""

import ast
import os
import shutil
import subprocess
import sys

import pytest

from gaptron.algorithms import NAMES
from tests.conftest import REPOSITORY

# Where an algorithm may be named: the default, and figures about certain algorithms.
DEFAULTS = {"learner/learner.py", "cli/options.py"}
FIGURES = {"report/advice.py", "report/theme.py", "report/exploration.py"}
# Names that mean something else too: the package, an oracle of squarecb, a stream.
OTHER_MEANINGS = {"gaptron", "softmax", "separable"}

USE = """
import numpy as np
from gaptron import Learner, OnlineClassifier
from gaptron.river import Classifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 4)) / 4, rng.integers(0, 3, 60)
learner = Learner("mine", n_classes=3, feedback="bandit", horizon=100, seed=0)
learner.play(X, y)
learner.grow(n_features=6)
learner.grow(classes=range(4))
model = OnlineClassifier("mine", feedback="bandit", horizon=100).fit(X, y)
print(model.predict(X[:2]).shape)
river = Classifier("mine", feedback="bandit", horizon=100, seed=0)
for row, label in zip(X, y):
    river.learn_one(dict(zip("abcd", row)), label)
print(river.predict_one({"a": 1.0}) in (0, 1, 2))
learner.save("model")
print(Learner.load("model").rounds)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package, its tests and its docs with one more algorithm: the text of banditron under another name."""
    folder = tmp_path_factory.mktemp("one_file")
    for part in ("src", "tests", "docs"):
        shutil.copytree(REPOSITORY / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for part in ("pyproject.toml", "mkdocs.yml", "CHANGELOG.md", "README.md", "CONTRIBUTING.md"):
        shutil.copy(REPOSITORY / part, folder / part)
    files = folder / "src" / "gaptron" / "algorithms"
    text = (files / "banditron.py").read_text().replace("class Banditron", "class Mine").replace("Banditron(", "Mine(")
    text = (
        text.replace("BanditronState", "MineState").replace(": Banditron", ": Mine").replace("-> Banditron", "-> Mine")
    )
    (files / "mine.py").write_text(
        text.replace("algorithm(Banditron,", "algorithm(Mine,").replace('"banditron"', '"mine"')
    )
    names = files / "__init__.py"
    names.write_text(
        names.read_text().replace('"banditron": "banditron",', '"banditron": "banditron",\n    "mine": "mine",')
    )
    return folder


def run(folder, *command):
    paths = os.pathsep.join([str(folder / "src"), str(folder)])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_the_laws_and_growth_cover_it(copy):
    laws = run(
        copy,
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "tests/algorithms/test_laws.py",
        "-k",
        "mine-hinge-bandit-dense64",
    )
    assert "passed" in laws and "failed" not in laws
    grown = run(
        copy, sys.executable, "-m", "pytest", "-n", "0", "tests/algorithms/test_growth.py", "-k", "mine and dense64"
    )
    assert "passed" in grown and "failed" not in grown


@pytest.mark.slow
def test_the_command_line_plays_and_lists_it(copy):
    assert "mine" in run(copy, sys.executable, "-m", "gaptron", "algorithms")
    play = (sys.executable, "-m", "gaptron", "play", "digits", "--limit", "50", "--verbose")
    shown = run(copy, *play, "-a", "mine", "--save", "played.gaptron")
    assert "mine" in shown and "gamma=" in shown
    again = run(copy, *play, "--load", "played.gaptron")
    assert "mine" in again and "100" in again


@pytest.mark.slow
def test_a_comparison_tunes_it(copy):
    given = ["-a", "banditron,mine", "--feedback", "bandit", "--seeds", "1", "--limit", "60"]
    shown = run(
        copy, sys.executable, "-m", "gaptron", "compare", "digits", *given, "-o", "out", "-j", "1", "--no-report"
    )
    assert "mine tuned" in shown


def test_adapters_growing_and_files_take_it(copy):
    assert run(copy, sys.executable, "-W", "ignore", "-c", USE).split() == ["(2,)", "True", "60"]


@pytest.mark.slow
def test_it_has_its_page(copy):
    script = "import sys; sys.path.insert(0, 'docs'); import hooks; print(hooks.pages()['reference/algorithms/{}.md'])"
    page = run(copy, sys.executable, "-c", script.format("mine"))
    assert page.startswith("# mine\n") and "play y' ~ p" in page and "`gamma`" in page
    assert "(mine.md)" in run(copy, sys.executable, "-c", script.format("index"))


def test_no_algorithm_is_named_outside_its_own_file():
    package = REPOSITORY / "src" / "gaptron"
    strangers = []
    for path in package.rglob("*.py"):
        place = path.relative_to(package).as_posix()
        if place.startswith("algorithms/") or place in DEFAULTS | FIGURES:
            continue
        tree = ast.parse(path.read_text())
        strangers += [
            f"{place}:{node.lineno} {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value in NAMES.keys() - OTHER_MEANINGS
        ]
    assert strangers == []
