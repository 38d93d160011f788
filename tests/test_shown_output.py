"""What README and docs show is what commands print, apart from times and speeds, and what the library reads."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from gaptron.experiments.plan_file import parse
from gaptron.offpolicy import open_log
from tests.test_documented import DOCS, OUTPUTS

TUTORIALS = [page for page in OUTPUTS.PAGES if page.parent == OUTPUTS.TUTORIALS]
SHOWN = [one for page in OUTPUTS.PAGES if page not in TUTORIALS for one in OUTPUTS.shown(page)]


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
@pytest.mark.sample(3)
@pytest.mark.xdist_group("shown output")
def test_the_output_shown_is_the_output_printed(found, folder: Path) -> None:
    if "replay" in found.command:
        pytest.importorskip("msgspec", reason="needs the extra serve")
    OUTPUTS.write_files(found.page, folder)
    printed = OUTPUTS.run_alone(found.command, folder)
    if not OUTPUTS.agrees(printed, found.output):
        assert OUTPUTS.masked(printed) == OUTPUTS.masked(found.output), f"run scripts/outputs '{found.command}'"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
@pytest.mark.xdist_group("shown output")
def test_the_commands_of_a_tutorial_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("msgspec", reason="needs the extra serve")
    results = OUTPUTS.run_tutorial(page, tmp_path)
    assert results
    for found, printed in results:
        if not OUTPUTS.agrees(printed, found.output):
            assert OUTPUTS.masked(printed) == OUTPUTS.masked(found.output), f"run scripts/outputs {page.stem}"


BANDIT = """Bandit feedback
algorithm            error %         behind  first on  µs/round
advised-gaptron        19.53                      7/7      13.6
newtron tuned          41.50  +21.98 ± 3.92       0/7      1.66

report:  x.html"""


@pytest.mark.parametrize(
    ("old", "new", "agrees"),
    [
        ("1.66", "2.81", True),  # time
        ("41.50  +21.98 ± 3.92", "41.23  +21.71 ± 4.00", True),  # within its interval
        ("41.50  +21.98 ± 3.92", "45.50  +25.98 ± 3.92", False),
        ("19.53", "19.52", False),
        ("newtron tuned", "newtron      ", False),
        ("0/7", "1/7", False),
        ("x.html", "y.html", False),
        ("Bandit feedback", "Full information", False),
    ],
)
def test_rows_under_bandit_feedback_agree_within_their_intervals(old, new, agrees) -> None:
    assert OUTPUTS.agrees(BANDIT.replace(old, new), BANDIT) == agrees


def test_rows_with_full_information_agree_to_the_digit() -> None:
    full = BANDIT.replace("Bandit feedback", "Full information")
    assert OUTPUTS.agrees(full, full)
    assert not OUTPUTS.agrees(full.replace("41.50", "41.51"), full)


def test_output_is_shown_only_in_blocks_that_are_checked() -> None:
    assert len(SHOWN) >= 5
    for page in OUTPUTS.PAGES:
        for kind, block in re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            if kind != "console":
                assert not re.search(r"^\$ ", block, re.M), f"{page.name}: mark the block of {block[:40]!r} as console"


# --- other blocks -----------------------------------------------------------------------------------------


def _blocks(page: str, kind: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("form", ["jsonl", "dsjson"])
def test_the_log_lines_shown_are_read(form, tmp_path: Path) -> None:
    shown = _blocks("how-to/offpolicy.md", "text")[("csv", "vw", "jsonl", "dsjson").index(form)]
    (tmp_path / f"shown.{form}").write_text(shown, encoding="utf-8")
    log = open_log(tmp_path / f"shown.{form}")
    assert log.classes == ("cat", "dog", "owl") and log.propensity.tolist() == [0.8] and log.reward.tolist() == [1.0]
    assert np.asarray(log.examples.as_matrix().todense() if form == "dsjson" else log.X).tolist() == [[0.6, 0.0, 0.8]]


def test_the_plan_shown_is_read() -> None:
    (shown,) = _blocks("how-to/compare.md", "toml")
    assert list(parse(shown, "compare.md").seeds) == [0, 1, 2, 3, 4]


def test_the_layers_shown_are_those_that_are_checked() -> None:
    (shown,) = _blocks("explanation/architecture.md", "text")
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    re_exported = {"__main__", "river"}  # one line each
    assert [re.findall(r"\w+", line) for line in shown.splitlines()] == [
        re.findall(r"\w+", layer) for layer in layers if layer not in re_exported
    ]


def test_the_response_shown_is_that_of_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = pytest.importorskip("tests.serve.served", reason="needs the extra serve")
    monkeypatch.setattr("gaptron.serve.coordinator.new_draw_key", lambda: "0f" * 32)
    shown, with_actions = _blocks("how-to/serve.md", "json")
    commands, for_actions = _blocks("how-to/serve.md", "bash")[1:3]
    model, decision, outcome = re.findall(r"-d '(.*?)'", commands)
    service = served.Served(tmp_path / "store")
    try:
        assert service.call("POST", "/v1/models", json.loads(model)).status_code == 201
        path = "/v1/models/triage/decisions"
        response = service.call("POST", path, json.loads(decision)).json()
        assert {name: response[name] for name in json.loads(shown)} == json.loads(shown)
        recorded = service.call("PUT", f"{path}/order-7/outcome", json.loads(outcome)).json()
        assert recorded["status"] == "recorded"
        model, decision, outcome = (json.loads(body) for body in re.findall(r"-d '(.*?)'", for_actions, re.DOTALL))
        assert service.call("POST", "/v1/models", model).status_code == 201
        response = service.call("POST", "/v1/models/news/decisions", decision).json()
        response["seq"] -= 3  # it follows the three events of the other model
        assert response == json.loads(with_actions)
        recorded = service.call("PUT", "/v1/models/news/decisions/visit-1/outcome", outcome).json()
        assert recorded["status"] == "recorded"
    finally:
        service.close()


def test_the_outcome_of_a_click_shown_is_that_of_the_service(tmp_path: Path) -> None:
    served = pytest.importorskip("tests.serve.served", reason="needs the extra serve")
    text = (DOCS / "how-to/serve.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r'^```bash title="clicks"\n(.*?)^```', text, re.M | re.S)
    (shown,) = re.findall(r'^```json title="clicks"\n(.*?)^```', text, re.M | re.S)
    model, decision, outcome = (json.loads(body) for body in re.findall(r"-d '(.*?)'", commands))
    service = served.Served(tmp_path / "store")
    try:
        assert service.call("POST", "/v1/models", model).status_code == 201
        path = "/v1/models/teaser/decisions"
        assert service.call("POST", path, decision).status_code == 201
        assert service.call("PUT", f"{path}/visit-1/outcome", outcome).json() == json.loads(shown)
        assert service.model("teaser").version == 0
        service.pass_time(model["feedback_timeout"] + 1)
        assert service.model("teaser").version == 1
    finally:
        service.close()


def test_the_history_and_segments_shown_are_those_of_the_service(tmp_path: Path) -> None:
    served = pytest.importorskip("tests.serve.served", reason="needs the extra serve")
    text = (DOCS / "how-to/serve.md").read_text(encoding="utf-8")
    service = served.Served(tmp_path / "store")
    try:
        service.make(features="auto", algorithm="frugal-gaptron", settings={})
        for event, device in (("a", "phone"), ("b", "laptop"), ("c", "phone")):
            service.decide(event, None, features={"device": device})
        service.send_outcome("a", correct=True)
        service.send_outcome("b", correct=False)
        shown = re.findall(r'^```json title="(.*?)"\n(.*?)^```', text, re.M | re.S)
        assert [path for path, _ in shown] == ["clicks", "history?step=hour", "segments"]
        for path, body in shown[1:]:
            text = service.call("GET", f"/v1/models/triage/{path}").text
            assert json.loads(text, parse_float=lambda number: round(float(number), 4)) == json.loads(body)
    finally:
        service.close()
