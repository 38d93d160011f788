"""A picture of the service's page: a service of its own is taught, and Chromium looks at it (playwright)."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from playwright.sync_api import sync_playwright

from gaptron.client import Client

URL, PORT = "http://127.0.0.1:8769", "8769"
LABELS = ["mail", "chat", "phone"]
ROUNDS, ANSWERED, NOISE = 1400, 0.95, 0.1


def draw(path: Path) -> None:
    """Serve, decide and answer, and keep what the page shows at 1200 pixels."""
    chromium = os.environ.get("GAPTRON_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit(f"{path.name} needs Chromium: install it, or name it in GAPTRON_CHROMIUM")
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, "-m", "gaptron", "serve", "--store", store, "--port", PORT]
        service = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(service)
            _teach()
            _look(chromium, path)
        finally:
            service.terminate()
            service.wait()


def _wait(service: subprocess.Popen[bytes]) -> None:
    while service.poll() is None:
        try:
            if httpx.get(f"{URL}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit("the service ended")


def _teach() -> None:
    """One label is right in each round, most often the one that two features point to."""
    spec = {"name": "triage", "labels": LABELS, "control": 0.05}
    httpx.post(f"{URL}/v1/models", json=spec, timeout=300).raise_for_status()
    chance = np.random.default_rng(0)
    directions = chance.normal(size=(3, 4))
    with Client(URL, "triage") as client:
        for _ in range(ROUNDS):
            x = chance.normal(size=4) / 2.0
            right = LABELS[int((directions @ x).argmax())] if chance.random() > NOISE else str(chance.choice(LABELS))
            decision = client.decide(x.tolist())
            if chance.random() < ANSWERED:
                client.answer(decision, correct=decision.label == right)
            client.flush()


def _look(chromium: str, path: Path) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1200, "height": 860}, color_scheme="light")
        page.goto(URL)
        page.get_by_text("of the last 1,000 answered").first.wait_for()
        page.screenshot(path=path)
        browser.close()
