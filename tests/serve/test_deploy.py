"""The files in deploy/, checked with the programs that read them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = pytest.mark.skipif(not DEPLOY.exists(), reason="a source distribution without deploy/")


def done(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=given, timeout=120)


def compose(**environment: str) -> Any:
    """The file as compose parses it; no daemon is needed."""
    for words in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(words[0]) and done(*words, "version").returncode == 0:
            return done(*words, "-f", str(DEPLOY / "compose.yaml"), "config", **environment)
    pytest.skip("neither docker compose nor docker-compose is installed")


def test_compose_reads_its_file() -> None:
    yaml = pytest.importorskip("yaml")
    ready = compose(PASSWORD="p@ss/w:rd")
    assert ready.returncode == 0, ready.stderr
    services = yaml.safe_load(ready.stdout)["services"]
    assert set(services) == {"database", "first", "second"}
    for name in ("first", "second"):
        assert services[name]["environment"]["PGPASSWORD"] == "p@ss/w:rd"
        assert "p@ss" not in " ".join(services[name]["command"])
        assert services[name]["depends_on"]["database"]["condition"] == "service_healthy"


def test_compose_asks_for_the_password() -> None:
    refused = compose(PASSWORD="")
    assert refused.returncode != 0 and "set PASSWORD" in refused.stderr


@pytest.fixture
def unit(tmp_path: Path) -> str:
    """The unit with a program that exists."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    text = (DEPLOY / "gaptron.service").read_text()
    place = tmp_path / "gaptron.service"
    place.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.M))
    return str(place)


def test_systemd_finds_nothing_in_the_unit(unit: str) -> None:
    verified = done("systemd-analyze", "verify", unit)
    assert verified.returncode == 0 and "gaptron.service" not in verified.stderr, verified.stderr


def test_systemd_rates_the_unit_as_closed(unit: str) -> None:
    rated = done("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    if "unrecognized option" in rated.stderr:
        pytest.skip("systemd is older than 250")
    assert rated.returncode == 0, rated.stdout


def test_the_commands_of_the_files_are_ours() -> None:
    """Every line that starts `gaptron serve` uses existing options."""
    from gaptron.cli.serve import serve  # noqa: PLC0415

    known = {f"--{name.replace('_', '-')}" for name in serve.__annotations__} - {"--return"}
    for file in ("Dockerfile", "compose.yaml", "gaptron.service"):
        text = (DEPLOY / file).read_text()
        for line in re.findall(r"^(?:CMD|ExecStart=|    command:).*", text, re.M):
            used = set(re.findall(r"--[a-z-]+", line))
            assert "serve" in line and used <= known, (file, used - known)
