"""`open_stream` and `prepare` have the types that the docs rely on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
RESULTS = """
from gaptron.streams import Chunks, Stream, open_stream, prepare

size: int | None = None
stream: Stream = prepare(open_stream("a.csv", decimal=",", dates="day-first"), unit_norm=True)
chunks: Chunks = prepare(open_stream("a.csv", chunk=9, unlabelled="error"), limit=5)
either: Stream | Chunks = prepare(open_stream("a.csv", chunk=size))
"""


def programs() -> dict[str, str]:
    """The Python blocks of every page that opens or prepares a stream, as one program."""
    found = {}
    for page in PAGES:
        blocks = re.findall(r"^```python(?: .*)?\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        program = "\n".join(blocks)
        if re.search(r"\b(open_stream|prepare)\(", program):
            found[page.stem.replace("-", "_")] = program
    return found


@pytest.mark.slow
def test_the_docs_pass_a_strict_type_check(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs the extra dev")
    pages = programs()
    assert len(pages) >= 5
    for name, program in {**pages, "results": RESULTS}.items():
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path)]
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
