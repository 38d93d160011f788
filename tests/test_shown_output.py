"""Every command whose output is shown in README and docs prints exactly that, apart from times and speeds."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def _outputs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gaptron_docs_outputs", DOCS / "outputs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OUTPUTS = _outputs()
SHOWN = list(OUTPUTS.shown())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shown")
    OUTPUTS.inputs(path)
    return path


@pytest.mark.parametrize(
    "found",
    [pytest.param(found, marks=[pytest.mark.slow] if found.command in OUTPUTS.LONG else []) for found in SHOWN],
    ids=lambda found: f"{found.page.name}:{found.line + 1}",
)
@pytest.mark.xdist_group("shown output")
def test_the_output_shown_is_the_output_printed(found, folder: Path) -> None:
    if "replay" in found.command:
        pytest.importorskip("msgspec", reason="needs the extra serve")
        OUTPUTS.store(folder)
    printed = OUTPUTS.run(found.command, folder)
    assert OUTPUTS.masked(printed) == OUTPUTS.masked(found.output), f"run scripts/outputs '{found.command}'"


def test_output_is_shown_only_in_blocks_that_are_checked() -> None:
    assert len(SHOWN) >= 5
    for page in OUTPUTS.PAGES:
        for kind, block in re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            if kind != "console":
                assert not re.search(r"^\$ ", block, re.M), f"{page.name}: mark the block of {block[:40]!r} as console"
