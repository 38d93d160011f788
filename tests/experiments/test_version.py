"""The version in a key changes with every source that a run uses."""

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import gaptron
from gaptron.experiments.task import Task, processor, sources

PACKAGE = Path(gaptron.__file__).parent
IMPORTED = """
import sys
import gaptron.experiments.run_task
from gaptron.algorithms import NAMES, load
for name in NAMES:
    load(name)
print(*(m.__file__ for n, m in sys.modules.items() if n.startswith("gaptron") and m.__file__), sep="\\n")
"""


def python(code: str, root: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    return done.stdout.strip()


def test_whatever_a_run_imports_counts():
    imported = {Path(line) for line in python(IMPORTED, PACKAGE.parent).splitlines()}
    assert imported <= set(sources()) and PACKAGE / "learner" / "seeds.py" in imported


def test_another_constant_of_the_draws_is_another_version_and_another_colour_is_not(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "gaptron", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; sys.path.insert(0, '.'); from gaptron.experiments.task import version; print(version())"
    before = python(code, tmp_path)
    theme, seeds = tmp_path / "gaptron" / "report" / "theme.py", tmp_path / "gaptron" / "learner" / "seeds.py"
    theme.write_text(theme.read_text() + "# another\n")
    assert python(code, tmp_path) == before
    text = seeds.read_text()
    seeds.write_text(text.replace("0x6761_7074", "0x6761_7075"))
    assert seeds.read_text() != text and python(code, tmp_path) != before


def test_a_run_of_an_external_model_depends_on_how_it_is_played_and_not_on_the_algorithms(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "gaptron", ignore=shutil.ignore_patterns("__pycache__"))
    code = """
import sys
sys.path.insert(0, ".")
from gaptron.experiments.task import Task
task = Task("s", "river:forest.AMFClassifier", "full", "", 0, {})
for name in (task.algorithm, "sklearn:linear_model.SGDClassifier", "arow"):
    print(task._replace(algorithm=name).key("d"))
"""
    river, sklearn, arow = python(code, tmp_path).splitlines()
    algorithm, play = (tmp_path / "gaptron" / name for name in ("algorithms/arow.py", "experiments/external.py"))
    algorithm.write_text(algorithm.read_text() + "# another\n")
    again = python(code, tmp_path).splitlines()
    assert again[:2] == [river, sklearn] and again[2] != arow and river != sklearn
    play.write_text(play.read_text() + "# another\n")
    assert not {*python(code, tmp_path).splitlines()} & {river, sklearn, arow}


def test_the_version_of_an_external_model_names_its_library():
    task = Task("s", "sklearn:linear_model.SGDClassifier", "full", "", 0, {})
    assert task.version.endswith(f", scikit-learn {metadata.version('scikit-learn')}")
    assert "scikit-learn" not in task._replace(algorithm="arow").version


def test_the_processor_has_a_name():
    assert processor().strip()
