"""Screenshots of the service's console: start a service, send it decisions and feedback, and open it in Chromium."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from gaptron.client import Client

URL, PORT = "http://127.0.0.1:8769", "8769"
LABELS = ["mail", "chat", "phone"]
COUNTRIES = ["NL", "DE", "FR", "US"]
ROUNDS, WITH_FEEDBACK, NOISE = 4000, 0.95, 0.1
VIEWS = {  # name of the picture → place on the page, what to wait for, height, colour scheme
    "console": ("triage/overview", "in the last 1,000 outcomes", 1000, "light"),
    "console-live": ("triage/live", "newest first", 520, "light"),
    "console-try": ("triage/try", "Probability", 470, "dark"),
    "console-segments": ("triage/segments", "with outcome", 470, "light"),
}


def draw(path: Path) -> None:
    """Run a service and save a screenshot of each view beside `path`, the one of the overview; 1200 pixels wide."""
    chromium = os.environ.get("GAPTRON_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit(f"{path.name} needs Chromium: install it, or set GAPTRON_CHROMIUM to its path")
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, "-m", "gaptron", "serve", "--store", store, "--port", PORT]
        service = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(service)
            with sync_playwright() as driver:
                options = ["--headless", "--no-sandbox", "--disable-gpu"]
                browser = driver.chromium.launch(executable_path=chromium, args=options)
                _screenshot(browser, "", "There is no model yet", 1010, "light", path.with_stem("console-start"))
                _send_rounds()
                for name, view in VIEWS.items():
                    _screenshot(browser, *view, path.with_stem(name))
                browser.close()
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
    """Decide and give feedback; the true label depends on the country and the age, with noise."""
    spec = {"name": "triage", "labels": LABELS, "epsilon": 0.05, "features": "auto"}
    httpx.post(f"{URL}/v1/models", json=spec, timeout=300).raise_for_status()
    rng = np.random.default_rng(0)
    with Client(URL, "triage", timeout=30.0) as client:
        for _ in range(ROUNDS):
            country, age = str(rng.choice(COUNTRIES)), int(rng.integers(18, 80))
            truth = "phone" if age > 55 else "mail" if country in ("NL", "DE") else "chat"
            if rng.random() < NOISE:
                truth = str(rng.choice(LABELS))
            decision = client.decide({"country": country, "age": age, "member": bool(rng.random() < 0.3)})
            if rng.random() < WITH_FEEDBACK:
                client.send_outcome(decision, correct=decision.label == truth)
            client.flush()


def _screenshot(browser: Browser, place: str, text: str, height: int, scheme: str, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": height}, color_scheme=scheme)
    page.goto(f"{URL}/#/{place}")
    page.get_by_text(text).first.wait_for()
    page.screenshot(path=path)
    page.close()
    with Image.open(path) as picture:
        # Few colours, so that the files are small.
        picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            path, optimize=True
        )
