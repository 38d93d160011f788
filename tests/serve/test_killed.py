"""kill -9, a full disk, a frozen leader: what was acknowledged is in the log, and the log replays.

`benchmarks/serve_kills.py` kills more often; its figures are in docs/how-to/production.md.
"""

import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.serve.kills import fail_disks, kill_databases, kill_leaders, kill_servers
from tests.serve.postgres import Cluster, with_schema
from tests.serve.process import Callers, Process, make_triage, running

KILLS = 3


@pytest.mark.slow
@pytest.mark.parametrize("redact", [False, True])
def test_a_server_that_is_killed_loses_nothing(place: str, tmp_path: Path, redact: bool) -> None:
    killed = kill_servers(place, tmp_path, KILLS, seed=0, redact=redact)
    assert killed.kills == KILLS and bool(killed.redacted) == redact


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("psycopg")
    server = Cluster()
    yield server
    server.stop()


@pytest.mark.slow
def test_leaders_that_are_killed_in_a_row_lose_nothing(cluster: Cluster, tmp_path: Path) -> None:
    assert kill_leaders(with_schema(cluster.url, "leaders"), tmp_path, KILLS, seed=0).kills >= KILLS


@pytest.mark.slow
def test_a_database_that_is_killed_loses_nothing_and_ends_the_services(cluster: Cluster, tmp_path: Path) -> None:
    assert kill_databases(cluster, with_schema(cluster.url, "killed"), tmp_path, 2, seed=1).kills == 2


@pytest.mark.slow
def test_a_disk_that_fails_ends_the_process_and_nothing_acknowledged_is_missing(tmp_path: Path) -> None:
    assert fail_disks(str(tmp_path / "store"), tmp_path, KILLS, seed=0).kills == KILLS


@pytest.mark.slow
def test_a_full_disk_ends_the_process_and_nothing_acknowledged_is_missing(tmp_path: Path) -> None:
    """A limit on the size of files, set while the service runs, simulates the full disk."""
    place, callers = str(tmp_path / "store"), Callers()
    with running(place, tmp_path) as server:
        server.wait_ready()
        make_triage(server.url)
        while len(callers.answered) <= 100:
            callers.work(server.url, 0.5)
        full = max(file.stat().st_size for file in Path(place).iterdir()) + 100_000
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (full, full))
        callers.work(server.url, 120.0)  # ends as soon as the service refuses connections
        assert server.ended() == 1
        assert "the service stops" in server.messages.read_text()
    callers.check(place)
    with running(place, tmp_path) as server:
        server.wait_ready()
        callers.work(server.url, 1.0)
        server.stop()
    callers.check(place)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["killed", "frozen"])
def test_a_standby_takes_over_and_there_are_never_two_that_write(cluster: Cluster, tmp_path: Path, way: str) -> None:
    place, callers = with_schema(cluster.url, way), Callers()
    with running(place, tmp_path) as first, running(place, tmp_path) as second:
        leader, standby = _who_leads(first, second)
        make_triage(leader.url)
        callers.work(leader.url, 1.0)
        assert standby.status() == 503
        refused = httpx.get(f"{standby.url}/v1/models")
        assert refused.status_code == 503 and "standby" in refused.json()["detail"]
        leader.signal(signal.SIGKILL if way == "killed" else signal.SIGSTOP)
        standby.wait_ready()
        before = len(callers.answered)
        callers.work(standby.url, 1.0)
        assert len(callers.answered) > before
        if way == "frozen":
            leader.signal(signal.SIGCONT)
            Callers().work(leader.url, 1.0)  # it cannot acknowledge anything
            assert leader.ended() == 1 and "the service stops" in leader.messages.read_text()
        callers.work(standby.url, 1.0)
        standby.stop()
    callers.check(place)


def _who_leads(first: Process, second: Process) -> tuple[Process, Process]:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for leader, standby in ((first, second), (second, first)):
            if leader.status() == 200 and standby.status() == 503:
                return leader, standby
        time.sleep(0.1)
    raise AssertionError("nobody leads")
