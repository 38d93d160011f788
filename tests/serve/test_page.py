"""The web page in Chromium, controlled by playwright; skipped if Chromium is not installed."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.news import NEWS, likes, visits
from tests.serve.process import Callers, Process, make_triage, running

CHROMIUM = os.environ.get("GAPTRON_CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.slow
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium: install it, or name it in GAPTRON_CHROMIUM")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder: Path = tmp_path_factory.mktemp("page")
    with running(str(folder / "store"), folder) as process:
        process.wait_ready()
        yield process


def look(browser: Any, url: str, width: int, **more: Any) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900}, **more)
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.problems.append(request.url) if not request.url.startswith(url) else None)
    page.goto(url)
    return page


def test_an_empty_service_says_what_to_do(browser: Any, tmp_path: Path) -> None:
    with running(str(tmp_path / "store"), tmp_path) as empty:
        empty.wait_ready()
        page = look(browser, empty.url, 1200)
        page.get_by_text("There is no model yet").wait_for()
        assert page.problems == []
        page.close()


def at_work(server: Process) -> None:
    """Create a model with decisions and outcomes, unless another test of this process has done so."""
    if httpx.get(f"{server.url}/v1/models").json() == {"models": []}:
        make_triage(server.url)
        work = threading.Thread(target=Callers().work, args=(server.url, 3.0))  # playwright has this thread's loop
        work.start()
        work.join()


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_model_is_shown_as_it_is(server: Process, browser: Any, width: int, scheme: str) -> None:
    at_work(server)
    report = httpx.get(f"{server.url}/v1/models/triage/report").json()
    page = look(browser, server.url, width, color_scheme=scheme)
    page.get_by_text(report["summary"]).wait_for()
    rows = page.locator("#labels tbody tr")
    assert [rows.nth(i).locator("td").first.inner_text() for i in range(3)] == ["mail", "chat", "phone"]
    assert page.locator("#curve svg").get_attribute("aria-label").startswith("Error rate")
    hidden = sum("hidden" in one for one in report["single_label"])
    assert page.locator("#single-label svg circle").count() == 3 - hidden
    assert page.locator("#single-label-table", has_text="which says too little").count() == (hidden > 0)
    assert page.locator("#summary").get_attribute("aria-live") == "polite"
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, "the page itself never scrolls sideways"
    folder = os.environ.get("GAPTRON_PICTURES")
    if folder:
        page.screenshot(path=f"{folder}/serve-{width}-{scheme}.png", full_page=True)
    assert page.problems == []
    page.close()


def test_a_model_with_actions_shows_rewards(browser: Any, tmp_path: Path) -> None:
    with running(str(tmp_path / "store"), tmp_path) as server:
        server.wait_ready()
        httpx.post(f"{server.url}/v1/models", json=NEWS, timeout=120.0)
        url = f"{server.url}/v1/models/news/decisions"
        for visit in visits(40):
            action = httpx.post(url, json=visit).json()["action"]
            httpx.put(f"{url}/{visit['event_id']}/outcome", json={"correct": likes(visit, action)})
        page = look(browser, server.url, 1200)
        page.locator("#summary", has_text="mean reward").wait_for()
        assert page.locator("#curve svg").get_attribute("aria-label").startswith("Mean reward")
        assert page.get_by_role("heading", name="Most played actions").is_visible()
        assert not page.locator("#single-label-section").is_visible()
        report = httpx.get(f"{server.url}/v1/models/news/report").json()
        assert page.locator("#labels tbody tr").count() == len(report["actions"])
        assert page.problems == []
        page.close()


def test_it_moves_while_decisions_are_made_and_works_by_keyboard(server: Process, browser: Any) -> None:
    at_work(server)
    page = look(browser, server.url, 1200)
    page.locator("#labels tbody tr").first.wait_for()
    url = f"{server.url}/v1/models/triage/decisions"
    for number in range(300):
        httpx.post(url, json={"event_id": f"more-{number}", "x": [0.1, 0.2]})
    decisions = httpx.get(f"{server.url}/v1/models/triage").json()["decisions"]
    page.locator("#summary", has_text=f"{decisions:,} decisions").wait_for(timeout=10_000)
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim().slice(0, 8)"))
    assert {"model", "API", "Metrics"} <= reached
    page.goto(f"{server.url}/api")
    page.get_by_role("heading", name="DecisionRequest").wait_for()
    assert page.problems == []
    page.close()
