"""Every page of measured results names when, with which version, where and how it was measured."""

import json
import re
from pathlib import Path

import pytest

from gaptron.experiments.task import version
from tests.results import result
from tests.test_documented import HOOKS, MADE

FILES = sorted(HOOKS.result_pages.DATA.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_page_says_how_it_was_measured(path: Path) -> None:
    report = json.loads(path.read_text(encoding="utf-8"))
    page = MADE[f"results/{path.stem}.md"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", report["date"])
    for name in ("date", "version", "processor", "command"):
        assert report[name] and report[name] in page, name
    assert f"]({path.stem}.md)" in MADE["results/index.md"]


def test_what_an_earlier_version_measured_is_marked() -> None:
    report = {"title": "T", "date": "2026-01-01", "processor": "P", "command": "gaptron compare", "question": "?"}
    pages = {name: HOOKS.result_pages.page(report | {"version": name}) for name in (version(), "0.1.0+feed")}
    assert "earlier version" not in pages[version()]
    assert "earlier version" in pages["0.1.0+feed"]
    listed = HOOKS.result_pages.index({"new": report | {"version": version()}, "old": report | {"version": "0.1.0"}})
    assert re.search(r"new\.md.*the present one", listed) and re.search(r"old\.md.*an earlier one, 0\.1\.0", listed)


def test_a_summary_becomes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = HOOKS.ROOT / "scripts" / "results"
    names: dict[str, object] = {"__name__": "script", "__file__": str(script)}
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), names)
    names["DATA"] = tmp_path
    runs = [
        result(name, stream, seed, rate)
        for name, rate in (("good", 0.1), ("poor", 0.3))
        for stream in "ab"
        for seed in (0, 1)
    ]
    monkeypatch.setitem(names, "read", lambda path: (runs, []))
    (tmp_path / "results.jsonl").touch()
    names["main"](tmp_path, "mine", "Mine", "Which is better?", "gaptron compare a b")  # type: ignore[operator]
    written = json.loads((tmp_path / "mine.json").read_text(encoding="utf-8"))
    (tmp_path / "mine.json").write_text(json.dumps(written | {"words": "By hand."}), encoding="utf-8")
    names["main"](tmp_path, "mine", "Mine", "Which is better?", "gaptron compare a b")  # type: ignore[operator]
    page = HOOKS.result_pages.page(json.loads((tmp_path / "mine.json").read_text(encoding="utf-8")))
    assert "| good | 10.00 |  | 2 of 2 |" in page and "| poor | 30.00 | +20.00" in page and "By hand." in page
