"""The gallery: every example runs, prints what its page shows, and draws its picture."""

import re
import runpy
from pathlib import Path

import matplotlib
import pytest
from matplotlib import image, pyplot

from tests.conftest import needs_compiler
from tests.test_documented import DOCS, HOOKS

EXAMPLES = HOOKS.gallery()
NUMBER = r"\d+\.?\d*"


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_it_prints_what_its_page_shows_and_draws(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    with matplotlib.rc_context():
        runpy.run_path(str(DOCS / "gallery" / f"{example.name}.py"), run_name="__main__")
        pyplot.close("all")
    printed = capsys.readouterr().out
    assert _words(printed) == _words(example.output), "run scripts/outputs gallery"
    # Another processor may sum in another order, and a draw that falls the other way changes all that follow.
    for now, kept in zip(_numbers(printed), _numbers(example.output), strict=True):
        slack = 0.2 if "." in kept else 3.0
        assert float(now) == pytest.approx(float(kept), rel=0.1, abs=slack), "run scripts/outputs gallery"
    picture = image.imread(tmp_path / f"{example.name}.png")
    shown = image.imread(DOCS / "img" / "gallery" / f"{example.name}.png")
    assert picture.shape == shown.shape and picture.std() > 0.05, "an empty picture, or another one than is kept"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_it_is_short_and_states_its_result(example):
    lines = [line for line in example.code.splitlines() if line.strip() and not line.startswith("# %%")]
    assert len(lines) <= 40
    assert HOOKS.notebook(example.code).count("```python") >= 3, "divide it into cells by lines that begin with # %%"
    assert "**Result:**" in example.words
    assert not re.search(r"\._[a-z]|import _", example.code), "a private name"


def test_nothing_is_left_over():
    names = {example.name for example in EXAMPLES}
    assert {path.stem for path in Path(DOCS / "gallery").glob("*.txt")} == names
    assert {path.stem for path in Path(DOCS / "img" / "gallery").glob("*.png")} == names


def _words(text):
    return re.sub(rf"-?{NUMBER}", "#", re.sub(r" +", " ", text))


def _numbers(text):
    return re.findall(rf"-?{NUMBER}", text)
