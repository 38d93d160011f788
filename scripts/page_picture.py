"""Screenshot of the service's page: start a service, send it decisions and feedback, and open it in Chromium."""

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
ROUNDS, WITH_FEEDBACK, NOISE = 1400, 0.95, 0.1


def draw(path: Path) -> None:
    """Run a service and save a screenshot of its page, 1200 pixels wide."""
    chromium = os.environ.get("GAPTRON_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit(f"{path.name} needs Chromium: install it, or set GAPTRON_CHROMIUM to its path")
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, "-m", "gaptron", "serve", "--store", store, "--port", PORT]
        service = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(service)
            _send_rounds()
            _screenshot(chromium, path)
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
    raise SystemExit("the service exited")


def _send_rounds() -> None:
    """Decide and give feedback; the true label is that of a linear rule, with noise."""
    spec = {"name": "triage", "labels": LABELS, "epsilon": 0.05}
    httpx.post(f"{URL}/v1/models", json=spec, timeout=300).raise_for_status()
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(3, 4))
    with Client(URL, "triage") as client:
        for _ in range(ROUNDS):
            x = rng.normal(size=4) / 2.0
            truth = LABELS[int((directions @ x).argmax())] if rng.random() > NOISE else str(rng.choice(LABELS))
            decision = client.decide(x.tolist())
            if rng.random() < WITH_FEEDBACK:
                client.send_outcome(decision, correct=decision.label == truth)
            client.flush()


def _screenshot(chromium: str, path: Path) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1200, "height": 860}, color_scheme="light")
        page.goto(f"{URL}/#/triage/overview")
        page.get_by_text("in the last 1,000 outcomes").first.wait_for()
        page.screenshot(path=path)
        browser.close()
