"""What pyproject.toml declares is what the sources import: no more, no less."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FEATURES = [name for name in EXTRAS if name not in ("test", "docs", "dev")]  # those that add something to the library


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", one)[0].lower() for one in requirements}


def imported() -> dict[str, set[Path]]:
    """Each distribution the sources import, by any import statement, and the files that do."""
    owners = packages_distributions()
    found: dict[str, set[Path]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for top in {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"gaptron"}:
                found.setdefault(owners[top][0].lower(), set()).add(path)
    return found


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    features = set().union(*(names(EXTRAS[name]) for name in FEATURES))
    assert set(imported()) == names(PROJECT["dependencies"]) | features


@pytest.mark.parametrize("extra", FEATURES)
def test_what_comes_with_an_extra_is_missed_by_its_name(extra):
    """Wherever it is imported, the error of those who have not installed it is written beside."""
    for name in names(EXTRAS[extra]) - names(PROJECT["dependencies"]):
        for path in imported()[name]:
            assert f"pip install 'gaptron[{extra}]'" in path.read_text(encoding="utf-8"), path


def test_every_extra_is_documented():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [name for name in EXTRAS if f"| `{name}` |" not in page] == []


def test_the_lowest_versions_are_of_everything_declared():
    run = subprocess.run([sys.executable, ROOT / "scripts" / "minimum"], capture_output=True, text=True, check=True)
    lowest = dict(line.split("==") for line in run.stdout.splitlines())
    declared = names([*PROJECT["dependencies"], *chain(*EXTRAS.values())]) - {"gaptron"}
    assert set(lowest) == declared
    assert lowest["numpy"] == "2.0"
