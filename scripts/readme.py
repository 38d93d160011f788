"""Run the README's commands as they are written, in this checkout: python scripts/readme.py

CI runs it in a new environment. A test runs the same commands without those that install or take minutes.
"""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "http://127.0.0.1:8717"


def commands() -> list[str]:
    """Every line of the blocks marked bash, without comments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S)
    return [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def write_clicks(folder: Path) -> None:
    """Write the table that one of the commands reads."""
    rows = ["device,hour,price,clicked"]
    for n in range(500):
        device, hour, price = ("phone", "tablet", "")[n % 3], n % 24, n * 7 % 50
        rows.append(f"{device},{hour},{price}.5,{'yes' if (device == 'phone') == (hour < 12) else 'no'}")
    (folder / "clicks.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def run(lines: list[str], folder: Path, address: str = ADDRESS) -> None:
    """Run the commands in a folder, one after the other; `gaptron serve` until it serves requests at the address."""
    write_clicks(folder)
    for line in lines:
        print("$", line, flush=True)
        words = line.rpartition("&& ")[2]
        if words.startswith("gaptron serve"):
            if "&&" in line:
                subprocess.run(line.rpartition(" && ")[0], shell=True, cwd=folder, check=True)
            _serve(words, folder, address)
        else:
            subprocess.run(line, shell=True, cwd=folder, check=True, stdin=subprocess.DEVNULL)


def _serve(command: str, folder: Path, address: str) -> None:
    service = subprocess.Popen(["/bin/sh", "-c", f"exec {command}"], cwd=folder)
    try:
        for _ in range(600):
            try:
                assert b"<html" in urllib.request.urlopen(address).read()
                return
            except OSError:
                assert service.poll() is None, "the service exited"
                time.sleep(0.1)
        raise TimeoutError(f"{address} did not respond within a minute")
    finally:
        os.kill(service.pid, signal.SIGTERM)
        service.wait(60)


if __name__ == "__main__":
    run(commands(), ROOT)
    print("README: passed", file=sys.stderr)
