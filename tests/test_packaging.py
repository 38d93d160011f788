"""What pyproject.toml declares is what the sources import, no more and no less; and what a release asks for."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

import gaptron

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FEATURES = [
    name for name in EXTRAS if name not in ("test", "docs", "dev", "bench")
]  # those that add something to the library


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


@pytest.mark.slow
@pytest.mark.parametrize("extra", FEATURES)
def test_what_comes_with_an_extra_is_missed_by_its_name(extra):
    """Where it is imported, or in the package around, which is imported first, is the error of those who lack it."""
    for name in names(EXTRAS[extra]) - names(PROJECT["dependencies"]):
        for path in imported()[name]:
            beside = [path, path.parent / "__init__.py", path.parent.parent / "__init__.py"]
            texts = [one.read_text(encoding="utf-8") for one in beside if one.exists()]
            assert any(f"pip install '.[{extra}]'" in text for text in texts), path


def test_every_extra_is_documented():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [name for name in EXTRAS if f"| `{name}` |" not in page] == []


def test_the_lowest_versions_are_of_everything_declared():
    run = subprocess.run([sys.executable, ROOT / "scripts" / "minimum"], capture_output=True, text=True, check=True)
    lowest = dict(line.split("==") for line in run.stdout.splitlines())
    declared = names([*PROJECT["dependencies"], *chain(*EXTRAS.values())]) - {"gaptron"}
    assert set(lowest) == declared
    assert lowest["numpy"] == "2.0"


def test_the_version_is_written_in_one_place_and_the_citation_agrees():
    assert "version" not in PROJECT and PROJECT["dynamic"] == ["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.M) == [gaptron.__version__]


# --- scripts/release, in a small repository of its own ------------------------------------------------------


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """All that a release asks for, committed; its `scripts/check` fails."""
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # set when the tests run from a git hook
        monkeypatch.delenv(name, raising=False)
    files = {
        "scripts/release": (ROOT / "scripts" / "release").read_text(encoding="utf-8"),
        "scripts/check": "#!/bin/sh\nexit 1\n",
        "src/gaptron/version.py": '__version__ = "1.2.3"\n',
        "CITATION.cff": "title: gaptron\nversion: 1.2.3\n",
        "CHANGELOG.md": "# Changelog\n\n## 1.2.3 - 2027-01-31\n\n- News.\n\n## 1.2.2 - 2026-01-31\n\n- Old.\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "scripts" / "check").chmod(0o755)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.email", "test@example.org")
    git(tmp_path, "config", "user.name", "test")
    commit(tmp_path)
    return tmp_path


def git(folder, *words):
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")


def release(folder, *words):
    command = [sys.executable, folder / "scripts" / "release", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_release_that_lacks_nothing_is_not_refused(repository):
    run = release(repository, "--dry-run")
    assert run.returncode == 0, run.stderr
    assert "nothing is missing for 1.2.3" in run.stdout


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("CHANGELOG.md", "## 1.2.3 - 2027-01-31", "## Unreleased", "CHANGELOG.md has no section"),
        ("CHANGELOG.md", "- News.\n", "", "CHANGELOG.md has an empty section for 1.2.3"),
        ("CITATION.cff", "1.2.3", "1.2.2", "CITATION.cff has a different version"),
        ("src/gaptron/version.py", '"1.2.3"', "none", "version.py has no line"),
    ],
)
def test_a_release_that_lacks_something_is_refused_by_its_name(repository, file, old, new, message):
    path = repository / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    commit(repository)
    run = release(repository, "--dry-run")
    assert run.returncode == 1 and message in run.stderr


def test_a_release_needs_a_clean_tree_and_a_version_without_a_tag(repository):
    git(repository, "tag", "v1.2.3")
    (repository / "left.txt").touch()
    run = release(repository)
    assert run.returncode == 1
    assert "left.txt" in run.stderr and "the tag v1.2.3 exists" in run.stderr


def test_no_tag_is_made_when_the_checks_fail(repository):
    run = release(repository)
    assert run.returncode == 1 and "no tag was created" in run.stderr
    assert git(repository, "tag", "--list") == ""
