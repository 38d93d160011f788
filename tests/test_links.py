"""The check of the site's links finds what leads nowhere and what is loaded from elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "links.py"


def check(site: Path, body: str) -> subprocess.CompletedProcess[str]:
    (site / "guide").mkdir(exist_ok=True)
    (site / "guide" / "index.html").write_text('<h1 id="start">Guide</h1><a href="../#top">home</a>', encoding="utf-8")
    (site / "index.html").write_text(f'<h1 id="top">Home</h1>{body}', encoding="utf-8")
    return subprocess.run([sys.executable, SCRIPT, site], capture_output=True, text=True)


@pytest.mark.parametrize(
    "body",
    ['<a href="guide/">', '<a href="guide/#start">', '<a href="#top">', '<a href="https://elsewhere.example">',
     '<link rel="canonical" href="https://elsewhere.example">', '<img src="data:image/png;base64,AA==">'],
)  # fmt: skip
def test_good_links_pass(body: str, tmp_path: Path) -> None:
    assert check(tmp_path, body).returncode == 0


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="missing/">', "index.html: missing/ leads to no file"),
        ('<a href="guide/#end">', "index.html: guide/#end leads to no element"),
        ('<img src="picture.png">', "index.html: picture.png leads to no file"),
        ('<script src="https://elsewhere.example/a.js">', "index.html: loads https://elsewhere.example/a.js"),
    ],
)
def test_others_are_named(body: str, problem: str, tmp_path: Path) -> None:
    done = check(tmp_path, body)
    assert done.returncode == 1 and done.stdout.splitlines() == [problem]
