"""The README: its commands run, it is short, and its links lead somewhere, as do those of the pages beside it."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from tests.serve.postgres import free_port

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
spec = importlib.util.spec_from_file_location("gaptron_scripts_readme", ROOT / "scripts" / "readme.py")
assert spec is not None and spec.loader is not None
README = importlib.util.module_from_spec(spec)
spec.loader.exec_module(README)


@pytest.mark.slow
def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("msgspec", reason="needs the extra serve")
    (tmp_path / "gaptron").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gaptron "$@"\n', encoding="utf-8")
    (tmp_path / "gaptron").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    port = free_port()
    without = [re.sub(r"^pip install \S+ && ", "", line) for line in README.commands()]
    assert len(without) == 3 and without[0] == "gaptron compare"
    lines = ["gaptron compare --dry-run", without[1], f"{without[2]} --port {port}"]
    README.run(lines, tmp_path, f"http://127.0.0.1:{port}")


def test_ci_runs_its_commands() -> None:
    script = ROOT / ".ci" / "run"
    if not script.exists():
        pytest.skip("not a checkout")
    assert "python scripts/readme.py" in script.read_text(encoding="utf-8")


def test_links_and_pictures_are_in_the_repository() -> None:
    texts = [TEXT, *((ROOT / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "SECURITY.md"))]
    targets = [target for target in re.findall(r"\]\(([^)#]+)", "\n".join(texts)) if "://" not in target]
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_it_fits_on_two_screens() -> None:
    assert len(TEXT.splitlines()) <= 120
