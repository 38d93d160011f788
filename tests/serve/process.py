"""The service in a separate process, and callers that record what it acknowledged."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from gaptron.serve import events
from gaptron.serve.replay import replay
from gaptron.serve.store import open_store
from tests.serve.postgres import free_port
from tests.serve.served import TRIAGE

PATIENCE = 120.0  # seconds that a start may take on a busy machine


SERVE = ("-m", "gaptron", "serve")


class Process:
    """`gaptron serve` on a store."""

    def __init__(self, place: str, folder: Path, *options: str, program: tuple[str, ...] = SERVE, **more: Any) -> None:
        self.place, self.port = place, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.messages = folder / f"messages-{self.port}"
        command = [sys.executable, *program, "--store", place, "--port", str(self.port), *options]
        with open(self.messages, "wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, **more)

    def wait_ready(self) -> None:
        end = time.monotonic() + PATIENCE
        while self.status() != 200:
            assert self.process.poll() is None, self.messages.read_text()
            assert time.monotonic() < end, "it did not become ready"
            time.sleep(0.05)

    def status(self) -> int | None:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2.0).status_code
        except httpx.HTTPError:
            return None

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) in (0, -signal.SIGTERM), self.messages.read_text()

    def ended(self) -> int:
        return self.process.wait(60)


@contextmanager
def running(place: str, folder: Path, *options: str, **more: Any) -> Iterator[Process]:
    process = Process(place, folder, *options, **more)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.signal(signal.SIGCONT)
            process.kill()


class Logged(NamedTuple):
    """What is in a log."""

    events: int
    redacted: int  # decisions without features


class Callers:
    """Decide and send outcomes, record what was acknowledged, and retry with the same id after a failure."""

    def __init__(self) -> None:
        self.decided: dict[str, Any] = {}
        self.answered: dict[str, bool] = {}
        self.tried: dict[str, list[float]] = {}
        self.hangs = 0  # requests without a response
        self._count = 0
        self.outcomes_to = ""  # another service, if outcomes do not go where decisions are made

    def work(self, url: str, seconds: float, callers: int = 8) -> None:
        asyncio.run(self._work(url, seconds, callers))

    async def _work(self, url: str, seconds: float, callers: int) -> None:
        end = time.monotonic() + seconds
        async with httpx.AsyncClient(base_url=url, timeout=30.0) as client:
            again = [event for event in self.tried if event not in self.answered]
            await asyncio.gather(*(self._call(client, end, again) for _ in range(callers)))

    async def _call(self, client: httpx.AsyncClient, end: float, again: list[str]) -> None:
        while time.monotonic() < end:
            if again:
                event = again.pop()
            else:
                self._count += 1
                event = f"event-{self._count}"
                self.tried[event] = [(self._count % 7) / 7.0, (self._count % 11) / 11.0]
            try:
                await self._round(client, event)
            except httpx.HTTPError as error:
                self.hangs += isinstance(error, httpx.ReadTimeout)
                return

    async def _round(self, client: httpx.AsyncClient, event: str) -> None:
        path = "/v1/models/triage/decisions"
        response = await client.post(path, json={"event_id": event, "x": self.tried[event]})
        if response.status_code == 503:
            return
        assert response.status_code in (200, 201), response.text
        body = response.json()
        assert self.decided.setdefault(event, body) == body, "a retry got another response"
        right = body["label"] == "chat"
        response = await client.put(f"{self.outcomes_to}{path}/{event}/outcome", json={"correct": right})
        if response.status_code == 503:
            return
        assert response.status_code == 200, response.text
        self.answered[event] = right

    def check(self, place: str) -> Logged:
        """Check that everything acknowledged is in the log and that the log replays."""
        store = open_store(place)
        try:
            rows = [row for row, _ in store.read()]
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
            logged = {(row.kind, row.event_id): events.decode(row).body for row in rows}
            for event, body in self.decided.items():
                decided = logged["decided", event]
                assert (decided.label, decided.propensity) == (body["label"], body["propensity"])
            for event, right in self.answered.items():
                assert logged["outcome", event].outcome.correct is right
            replayed = replay(store)
            assert replayed.events == len(rows) - replayed.starts.get("triage", 0)  # without what was redacted
            redacted = [one for (kind, _), one in logged.items() if kind == "decided" and one.is_redacted]
            return Logged(len(rows), len(redacted))
        finally:
            store.close()


def make_triage(url: str, **more: Any) -> None:
    response = httpx.post(f"{url}/v1/models", json={**TRIAGE, **more}, timeout=PATIENCE)
    assert response.status_code == 201, response.text


def add_challenger(url: str) -> None:
    """A learner beside the live one, whose state is part of the model's."""
    body = {"algorithm": "banditron", "settings": {"gamma": 0.1}}
    response = httpx.put(f"{url}/v1/models/triage/challengers/second", json=body, timeout=PATIENCE)
    assert response.status_code == 201, response.text
