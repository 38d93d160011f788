"""The web page in Chromium, controlled by playwright; skipped if Chromium is not installed."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.news import NEWS, likes, visits
from tests.serve.process import Callers, Process, make_triage, running

CHROMIUM = os.environ.get("GAPTRON_CHROMIUM") or shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
VIEWS = ["overview", "live", "try", "challengers", "segments", "settings", "log"]
LONG = "W" * 80
HOSTILE = ["<img src=x onerror=alert(1)>", "\u202eעברית", LONG, "'\";--&amp;"]
PAGE = Path(__file__).parents[2] / "src" / "gaptron" / "serve" / "page"


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


def look(browser: Any, url: str, place: str = "", width: int = 1200, **more: Any) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900}, **more)
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.problems.append(request.url) if not request.url.startswith(url) else None)
    page.goto(f"{url}/{place}")
    return page


def at_work(server: Process) -> None:
    """Create a model with decisions and outcomes, unless another test of this process has done so."""
    if all(one["name"] != "triage" for one in httpx.get(f"{server.url}/v1/models").json()["models"]):
        make_triage(server.url)
        work = threading.Thread(target=Callers().work, args=(server.url, 1.5))  # playwright has this thread's loop
        work.start()
        work.join()


def make_hostile(server: Process) -> None:
    """Create a model whose labels and features have names that could break a page."""
    spec = {"name": "hostile", "labels": HOSTILE, "features": "auto", "algorithm": "frugal-gaptron", "epsilon": 0.1}
    if httpx.post(f"{server.url}/v1/models", json=spec, timeout=120.0).status_code == 409:
        return
    features = {"<b>bold</b>": "</script><script>alert(1)</script>", "\u202eשם": "ערך", LONG: "x" * 300}
    for number in range(12):
        path = f"{server.url}/v1/models/hostile/decisions"
        httpx.post(path, json={"event_id": f"e{number}-{'i' * 100}", "features": features})
        httpx.put(f"{path}/e{number}-{'i' * 100}/outcome", json={"correct": number % 3 == 0})


# --- the files ------------------------------------------------------------------------------------------------------


def test_the_page_is_small_and_only_its_files_are_served(server: Process) -> None:
    assert sum(len(file.read_bytes()) for file in PAGE.glob("*.js")) < 70_000
    for file in PAGE.iterdir():
        response = httpx.get(f"{server.url}/page/{file.name}")
        assert response.status_code == (404 if file.suffix == ".html" else 200)
        assert "default-src 'self'" in response.headers["content-security-policy"]
    for name in ("..%2Fpage.html", "%2e%2e%2fweb.py", "no.js", "__init__.py", "..%5cweb.py"):
        assert httpx.get(f"{server.url}/page/{name}").status_code == 404


# --- starting -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_model_is_created_in_the_form_and_every_snippet_works_as_shown(browser: Any, tmp_path: Path) -> None:
    with running(str(tmp_path / "store"), tmp_path) as empty:
        empty.wait_ready()
        page = look(browser, empty.url)
        page.get_by_text("There is no model yet").wait_for()
        form = page.locator("#new-model")
        form.locator("[name=name]").fill("triage")
        form.locator("[name=labels]").fill("mail\nchat's\n<phone>")
        form.get_by_label("which one was right").check()
        form.locator("[name=timeout]").fill("10")
        form.get_by_role("button").click()
        page.get_by_text("The model triage is ready").wait_for(timeout=120_000)
        info = httpx.get(f"{empty.url}/v1/models/triage").json()
        assert info["labels"] == ["mail", "chat's", "<phone>"] and info["feedback"] == "full"
        assert info["feedback_timeout"] == 600.0 and info["on_timeout"] == "ignore"
        curl, python, script = page.locator("pre code").all_inner_texts()[:3]
        subprocess.run(["bash", "-ec", curl.replace("curl ", "curl --fail-with-body ")], check=True, timeout=60)
        subprocess.run([sys.executable, "-c", python], check=True, timeout=60)
        page.evaluate(f"(async () => {{ {script.replace('console.log', 'void ')} }})()")
        info = httpx.get(f"{empty.url}/v1/models/triage").json()
        assert (info["decisions"], info["learned"]) == (3, 3)
        page.get_by_role("link", name="Open it").click()
        page.get_by_text("3 decisions").first.wait_for()
        assert page.problems == []
        page.close()


@pytest.mark.slow
def test_a_refused_model_says_why_and_keeps_what_was_entered(server: Process, browser: Any) -> None:
    page = look(browser, server.url)
    page.locator("summary").click() if page.locator("#new-model").is_hidden() else None
    page.locator("#new-model").locator("[name=name]").fill("lonely")
    page.locator("#new-model").locator("[name=labels]").fill("one")
    page.get_by_role("button", name="Create the model").click()
    page.get_by_text("The model was not created").wait_for()
    assert page.locator("#new-model").locator("[name=name]").input_value() == "lonely"
    page.close()


# --- the views of a model -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_model_is_shown_as_it_is(server: Process, browser: Any, width: int, scheme: str) -> None:
    at_work(server)
    report = httpx.get(f"{server.url}/v1/models/triage/report").json()
    page = look(browser, server.url, "#/triage", width, color_scheme=scheme)
    page.get_by_text(report["summary"]).wait_for()
    assert sorted(page.locator("#labels .name bdi").all_inner_texts()) == ["chat", "mail", "phone"]
    assert page.locator("#curve svg").get_attribute("aria-label").startswith("Error rate")
    estimated = sum("hidden" not in one for one in report["single_label"])
    assert page.locator("#labels .meter").count() == 6 + estimated
    assert page.locator("#summary").get_attribute("aria-live") == "polite"
    assert f"{report['counts']['decisions']:,}" in page.locator(".tile .large").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page itself never scrolls sideways"
    assert page.problems == []
    page.close()


@pytest.mark.slow
def test_a_model_with_actions_shows_rewards(server: Process, browser: Any) -> None:
    httpx.post(f"{server.url}/v1/models", json=NEWS, timeout=120.0)
    url = f"{server.url}/v1/models/news/decisions"
    for visit in visits(40):
        action = httpx.post(url, json=visit, timeout=60.0).json()["action"]
        httpx.put(f"{url}/{visit['event_id']}/outcome", json={"correct": likes(visit, action)})
    page = look(browser, server.url, "#/news/overview")
    page.locator("#summary", has_text="mean reward").wait_for()
    assert page.locator("#curve svg").get_attribute("aria-label").startswith("Mean reward")
    assert page.get_by_role("heading", name="Most played actions").is_visible()
    assert page.get_by_text("Always playing it").count() == 0
    report = httpx.get(f"{server.url}/v1/models/news/report").json()
    assert page.locator("#labels .name bdi").count() == min(20, len(report["actions"]))
    page.goto(f"{server.url}/#/news/try")
    page.locator(".meter").first.wait_for()
    assert page.locator(".meter").count() == 5
    assert page.problems == []
    page.close()


@pytest.mark.slow
def test_it_moves_while_decisions_are_made_and_works_by_keyboard(server: Process, browser: Any) -> None:
    at_work(server)
    page = look(browser, server.url, "#/triage/overview")
    page.locator("#labels .name").first.wait_for()
    url = f"{server.url}/v1/models/triage/decisions/batch"
    more = [{"event_id": f"more-{number}", "x": [0.1, 0.2]} for number in range(300)]
    httpx.post(url, json={"decisions": more}, timeout=30.0)
    decisions = httpx.get(f"{server.url}/v1/models/triage").json()["decisions"]
    page.locator("#summary", has_text=f"{decisions:,} decisions").wait_for(timeout=10_000)
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim().slice(0, 8)"))
        if page.evaluate("'help' in document.activeElement.dataset"):
            assert page.locator("#help").inner_text() == page.evaluate("document.activeElement.dataset.help")
    assert {"model", "API", "Metrics", "Overview", "Live"} <= reached
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()
    page.goto(f"{server.url}/api")
    page.get_by_role("heading", name="DecisionRequest", exact=True).wait_for()
    assert page.problems == []
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 400])
def test_hostile_names_are_text_and_long_words_stay_inside(server: Process, browser: Any, width: int) -> None:
    make_hostile(server)
    page = look(browser, server.url, "", width)
    page.on("dialog", lambda dialog: page.problems.append(dialog.message))
    for view in VIEWS:
        page.goto(f"{server.url}/#/hostile/{view}")
        page.locator("#view h2").first.wait_for()
        page.wait_for_timeout(400)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        assert page.locator("#view img, #view script, #view b").count() == 0, view
    assert page.problems == []
    page.close()


@pytest.mark.slow
def test_live_pauses_filters_and_opens_a_decision(server: Process, browser: Any) -> None:
    at_work(server)
    page = look(browser, server.url, "#/triage/live")
    page.locator("tbody tr").first.wait_for()
    assert page.locator("tbody tr").count() == 50
    page.get_by_role("button", name="Pause").click()
    httpx.post(f"{server.url}/v1/models/triage/decisions", json={"event_id": "while-paused", "x": [0.5, 0.5]})
    page.wait_for_timeout(1500)
    assert page.get_by_role("button", name="while-paused").count() == 0
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="while-paused").click()
    opened = page.locator("#opened")
    opened.get_by_text("decided:").wait_for()
    record = httpx.get(f"{server.url}/v1/models/triage/decisions/while-paused").json()
    assert opened.locator(".bars .name bdi").count() == 3
    assert f"{record['propensity']:.3f}" in opened.inner_text() and "no outcome yet" in opened.inner_text()
    httpx.put(f"{server.url}/v1/models/triage/decisions/while-paused/outcome", json={"correct": True})
    opened.get_by_text("outcome: right").wait_for()
    opened.get_by_role("button", name="Close").click()
    page.get_by_label("Outcome").select_option("false")
    page.get_by_label("Search in the features and ids").fill("while-paused")
    page.get_by_text("Nothing matches the search").wait_for()
    assert page.problems == []
    page.close()


@pytest.mark.slow
def test_try_it_shows_a_distribution_and_logs_nothing(server: Process, browser: Any) -> None:
    make_hostile(server)
    before = httpx.get(f"{server.url}/v1/models/hostile").json()["decisions"]
    page = look(browser, server.url, "#/hostile/try")
    page.locator(".meter").first.wait_for()
    page.get_by_role("button", name="Add a feature").click()
    page.keyboard.type("age")
    page.get_by_label("Value of the feature").fill("31")
    with page.expect_request(lambda request: '"age":31' in (request.post_data or "")):
        page.get_by_label("Value of the feature").press("End")
        page.get_by_label("Value of the feature").fill("31")
    assert httpx.get(f"{server.url}/v1/models/hostile").json()["decisions"] == before
    page.close()


@pytest.mark.slow
def test_settings_are_changed_and_a_refusal_is_shown(server: Process, browser: Any) -> None:
    make_hostile(server)
    page = look(browser, server.url, "#/hostile/settings")
    page.get_by_label("Timeout in seconds").fill("60")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved: feedback_timeout").wait_for()
    assert httpx.get(f"{server.url}/v1/models/hostile").json()["feedback_timeout"] == 60.0
    page.get_by_label("New labels").fill(LONG)
    page.get_by_role("button", name="Save").click()
    page.get_by_text("exists already").wait_for()
    page.get_by_text("This service has no keys").wait_for()
    page.on("dialog", lambda dialog: dialog.accept("<b>Post</b>") if dialog.type == "prompt" else dialog.accept())
    page.get_by_role("button", name=f"Name {HOSTILE[0]}").click()
    page.get_by_text("<b>Post</b>").wait_for()
    page.get_by_role("button", name=f"Retire {HOSTILE[3]}").click()
    page.get_by_text("is retired").wait_for()
    info = httpx.get(f"{server.url}/v1/models/hostile").json()
    assert info["display_names"] == {HOSTILE[0]: "<b>Post</b>"} and info["retired"] == [HOSTILE[3]]
    page.goto(f"{server.url}/#/hostile/overview")
    page.locator("#labels").get_by_text("<b>Post</b>").wait_for()
    page.close()


CHALLENGER = {
    "name": "quick",
    "algorithm": "epsilon-greedy",
    "settings": {"epsilon": 0.1},
    "seed": 0,
    "since": "2027-01-15T08:00:00Z",
    "decisions": 1200,
    "error_rate": 0.2,
    "low": 0.15,
    "high": 0.25,
    "live": {"error_rate": 0.3, "low": 0.28, "high": 0.32},
    "difference": {"error_rate": -0.1, "low": -0.14, "high": -0.05},
    "comparison": "better",
    "decisions_needed": None,
    "stopped": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 400])
def test_challengers_are_compared_added_promoted_and_removed(server: Process, browser: Any, width: int) -> None:
    at_work(server)
    sent: list[Any] = []
    unknown = CHALLENGER | {"name": LONG[:64], "comparison": "unknown", "stopped": "it failed"}

    def respond(route: Any) -> None:
        request = route.request
        if request.method == "GET":
            return route.fulfill(json={"challengers": [CHALLENGER, unknown]})
        sent.append((request.method, request.url.rpartition("/")[2], request.post_data_json))
        return route.fulfill(status=204) if request.method == "DELETE" else route.fulfill(json={})

    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("dialog", lambda dialog: dialog.accept())
    page.route("**/challengers", respond)
    page.route("**/challengers/*", respond)
    page.route("**/promote", respond)
    page.goto(f"{server.url}/#/triage/challengers")
    page.get_by_text("better than the model").wait_for()
    page.get_by_text("Stopped: it failed").wait_for()
    page.get_by_role("button", name="Promote quick").click()
    page.get_by_text("quick decides now").wait_for()
    page.get_by_role("button", name="Remove quick").click()
    page.get_by_text("quick was removed").wait_for()
    page.locator("[name=name]").fill("new-one")
    page.locator("[name=algorithm]").fill("gaptron")
    page.locator("[name=settings]").fill('{"norm": 2}')
    page.get_by_role("button", name="Add").click()
    page.get_by_text("new-one was added").wait_for()
    assert sent == [
        ("POST", "promote", {"challenger": "quick"}),
        ("DELETE", "quick", None),
        ("PUT", "new-one", {"algorithm": "gaptron", "settings": {"norm": 2}}),
    ]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.slow
def test_a_service_with_keys_asks_for_one_and_keeps_it_in_the_tab(browser: Any, tmp_path: Path) -> None:
    with running(str(tmp_path / "store"), tmp_path) as server:
        server.wait_ready()
        make_triage(server.url)
        admin = httpx.post(f"{server.url}/v1/keys", json={"roles": ["admin", "read"]}).json()
        headers = {"Authorization": f"Bearer {admin['key']}"}
        reads = httpx.post(f"{server.url}/v1/keys", json={"roles": ["read"]}, headers=headers).json()
        page = look(browser, server.url, "#/triage/settings")
        page.get_by_text("This service needs a key").wait_for()
        assert "does not" not in page.locator("#problem").inner_text()
        page.get_by_label("Key", exact=True).fill("gap_000000000000_wrong")
        page.keyboard.press("Enter")
        page.get_by_text("This service needs a key").wait_for()
        page.get_by_label("Key", exact=True).fill(reads["key"])
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Settings").wait_for()
        assert page.evaluate("Object.values(localStorage).length") == 0
        assert page.evaluate("sessionStorage.getItem('key')") == reads["key"]
        page.get_by_text("The keys cannot be listed").wait_for()  # with the role read only
        page.evaluate(f"sessionStorage.setItem('key', {json.dumps(admin['key'])})")
        page.reload()
        page.get_by_text(reads["id"]).wait_for()
        assert admin["key"] not in page.content()
        with page.expect_download() as download:
            page.goto(f"{server.url}/#/triage/log")
            page.get_by_role("button", name="Decisions with outcomes, JSON lines").click()
        assert download.value.suggested_filename == "triage.jsonl"
        page.close()
