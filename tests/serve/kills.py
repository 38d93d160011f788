"""Kill servers and databases under load, again and again: whatever was acknowledged is in the log, and the log replays.

`test_killed.py` does it a few times, and `benchmarks/serve_kills.py` as often as you like.
"""

import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from gaptron.serve.store import open_store
from tests.serve.postgres import Cluster
from tests.serve.process import PATIENCE, Callers, Process, add_challenger, make_triage, running

REDACTS = (  # like `gaptron serve --keep-days`, but all the time and after a fifth of a second
    "-c",
    """
import argparse
from gaptron.serve import coordinator, service
from gaptron.serve.run import run
from gaptron.serve.store import open_store

parser = argparse.ArgumentParser()
parser.add_argument("--store")
parser.add_argument("--port", type=int)
given = parser.parse_args()
service.TICK, coordinator.REDACTION_INTERVAL, coordinator.MAX_REDACTED, coordinator.SNAPSHOT_SECONDS = 0.05, 0, 10, 0.5
run(open_store(given.store), "127.0.0.1", given.port, service.Options(keep_days=0.2 / 86_400))
""",
)


class Killed(NamedTuple):
    """What was killed, and what the callers had been told."""

    kills: int
    events: int  # in the log
    decisions: int  # acknowledged
    outcomes: int  # acknowledged
    redacted: int  # decisions without features
    slowest: float  # seconds from a kill until a server was ready


def kill_after(more: int, callers: Callers, kill: Callable[[], None], ready: Callable[[], bool]) -> threading.Thread:
    """Kill in the background once so many more outcomes are acknowledged and all is ready, however long it takes."""
    goal = len(callers.answered) + more

    def wait() -> None:
        end = time.monotonic() + 60
        while len(callers.answered) < goal and time.monotonic() < end:
            time.sleep(0.001)
        while not ready() and time.monotonic() < end:
            time.sleep(0.1)
        kill()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def work_until_killed(
    url: str, callers: Callers, rng: random.Random, kill: Callable[[], None], ready: Callable[[], bool] = lambda: True
) -> None:
    """Send requests, and kill something after a random number of them, once it is ready for that."""
    killer = kill_after(rng.randint(11, 300), callers, kill, ready)
    callers.work(url, 120.0)
    killer.join()


def ready_one(servers: list[Process]) -> Process:
    """Wait until one of these is ready. None may end meanwhile."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for server in servers:
            assert server.process.poll() is None, server.messages.read_text()
            if server.status() == 200:
                return server
        time.sleep(0.02)
    raise AssertionError(f"none of {len(servers)} servers became ready")


def summary(kills: int, callers: Callers, place: str, slowest: float) -> Killed:
    """Check the log."""
    assert len(callers.answered) > 10 * kills, "too little was acknowledged between two kills"
    assert not callers.hangs, f"{callers.hangs} requests got no response"
    log = callers.check(place)
    return Killed(kills, log.events, len(callers.decided), len(callers.answered), log.redacted, slowest)


def has_redacted(place: str) -> bool:
    """Whether a server has taken a decision out of this log."""
    store = open_store(place)
    try:
        return any(row.kind == "redacted" for row, _ in store.read())
    finally:
        store.close()


def kill_servers(place: str, folder: Path, kills: int, seed: int, *, redact: bool = False) -> Killed:
    """Kill the only server, and start it again.

    Args:
        place: the store.
        folder: for the messages of the servers.
        kills: how many.
        seed: of the moments.
        redact: whether the server also takes decisions, not older than a fifth of a second, out of its log.

    Returns:
        The counts; a check that fails raises.
    """
    callers, rng, slowest = Callers(), random.Random(seed), 0.0
    program = {"program": REDACTS} if redact else {}
    for turn in range(kills):
        started = time.monotonic()
        with running(place, folder, **program) as server:
            server.wait_ready()
            if turn == 0:
                make_triage(server.url, **({"feedback_timeout": 5.0, "on_timeout": "wrong"} if redact else {}))
                add_challenger(server.url)
            else:
                slowest = max(slowest, time.monotonic() - started)
            ready = partial(has_redacted, place) if redact else lambda: True  # outcomes time out after 5 seconds
            work_until_killed(server.url, callers, rng, server.kill, ready)
    return summary(kills, callers, place, slowest)


def kill_leaders(place: str, folder: Path, kills: int, seed: int) -> Killed:
    """Kill the leader of two servers, and start another one as a standby; in one of four cases kill both."""
    callers, rng, slowest, done = Callers(), random.Random(seed), 0.0, 0
    with ExitStack() as stack:
        servers = [stack.enter_context(running(place, folder)) for _ in range(2)]
        started = time.monotonic()
        while True:
            leader = ready_one(servers)
            if not done:
                make_triage(leader.url)
                add_challenger(leader.url)
            else:
                slowest = max(slowest, time.monotonic() - started)
            if done >= kills:
                break
            work_until_killed(leader.url, callers, rng, leader.kill)
            killed, started = [leader], time.monotonic()
            if rng.random() < 0.25:
                time.sleep(rng.uniform(0.0, 3.0))  # while the other takes over
                killed = list(servers)
            for server in killed:
                server.kill()
                servers.remove(server)
                servers.append(stack.enter_context(running(place, folder)))
            done += len(killed)
    return summary(done, callers, place, slowest)


FAILURES = [("fdatasync", "EIO"), ("pwrite64", "ENOSPC"), ("pwrite64", "EIO")]


def fail_disks(place: str, folder: Path, failures: int, seed: int) -> Killed:
    """Let the next, or every later, write or synchronisation of the SQLite store fail, by strace. The server ends."""
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    callers, rng, slowest = Callers(), random.Random(seed), 0.0
    straces: list[subprocess.Popen[bytes]] = []

    def start(command: tuple[str, ...]) -> None:
        straces.append(subprocess.Popen(command))

    for turn in range(failures):
        (call, error), when, started = FAILURES[turn % 3], rng.choice(["1", "1+"]), time.monotonic()
        with running(place, folder) as server:
            server.wait_ready()
            if turn == 0:
                make_triage(server.url)
            else:
                slowest = max(slowest, time.monotonic() - started)
            attach = ("strace", "-f", "-qq", "-o", "/dev/null", "-p", str(server.process.pid))
            inject = (*attach, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}")
            work_until_killed(server.url, callers, rng, partial(start, inject))
            if server.process.poll() is None and straces[-1].poll() is not None:
                pytest.skip("strace may not attach here")
            assert server.ended() == 1 and "the service stops" in server.messages.read_text()
            straces[-1].wait(60)
    return summary(failures, callers, place, slowest)


def kill_databases(cluster: Cluster, place: str, folder: Path, kills: int, seed: int) -> Killed:
    """Kill PostgreSQL below two servers. Both end; everything is started again."""
    callers, rng, slowest = Callers(), random.Random(seed), 0.0
    for turn in range(kills):
        started = time.monotonic()
        with running(place, folder) as first, running(place, folder) as second:
            leader = ready_one([first, second])
            if turn == 0:
                make_triage(leader.url)
            else:
                slowest = max(slowest, time.monotonic() - started)
            work_until_killed(leader.url, callers, rng, cluster.kill)
            for server in (first, second):
                assert server.ended() == 1 and "the service stops" in server.messages.read_text()
        cluster.start()
    return summary(kills, callers, place, slowest)
