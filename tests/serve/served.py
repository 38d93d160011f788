"""A service in this process, with a clock of our own, asked over its HTTP interface."""

import asyncio
from typing import Any

import httpx

from gaptron.serve.decider import DeciderService
from gaptron.serve.service import Options, Service
from gaptron.serve.store import open_store, shared
from gaptron.serve.web import application

START = 1_800_000_000_000_000  # µs
SMALL = {"algorithm": "gaptron", "settings": {"norm": 2.0, "radius": 1.0, "horizon": 1000}}
TRIAGE = {"name": "triage", "labels": ["mail", "chat", "phone"], **SMALL}


class FailedError(Exception):
    """The service would have ended its process."""


class Served:
    def __init__(self, place: str, *, decider: bool = False, **options: Any) -> None:
        self.place, self.options, self.decider = str(place), options, decider
        self.time = START
        self.loop = asyncio.new_event_loop()
        self.open()

    def open(self) -> None:
        self.failure: BaseException | None = None
        options = Options(now=lambda: self.time, failed=self._failed, **self.options)
        store = open_store(self.place)
        self.service = DeciderService(shared(store), options) if self.decider else Service(store, options)
        self.run(self.service.open())
        transport = httpx.ASGITransport(application(self.service))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def _failed(self, problem: BaseException) -> None:
        self.failure = problem

    def run(self, task: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(task, 120.0))  # or a failed service is waited for forever

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        if body is not None:
            more["json"] = body
        response = self.run(self.client.request(method, path, **more))
        assert response.status_code < 500 or response.status_code == 503, response.text
        return response

    def make(self, **spec: Any) -> httpx.Response:
        return self.call("POST", "/v1/models", {**TRIAGE, **spec})

    def decide(
        self, event: str | None = None, x: Any = (0.3, 1.0), model: str = "triage", **more: Any
    ) -> httpx.Response:
        body = {"x": list(x) if isinstance(x, tuple) else x, **more}
        return self.call("POST", f"/v1/models/{model}/decisions", body | ({"event_id": event} if event else {}))

    def answer(self, event: str, model: str = "triage", **outcome: Any) -> httpx.Response:
        return self.call("PUT", f"/v1/models/{model}/decisions/{event}/outcome", outcome)

    def model(self, name: str = "triage") -> Any:
        return self.service.desk.models[name]

    def pass_time(self, seconds: float) -> None:
        self.time += round(1e6 * seconds)
        self.tick()

    def tick(self) -> None:
        """As a second after the last one: whatever is published now and then is published."""
        if not self.decider:
            self.service.desk._publish_at = 0.0
        self.run(self.service.tick() if self.decider else self.service.desk.tick())

    def stop(self) -> None:
        """As a person ends it: with a snapshot."""
        self.run(self.client.aclose())
        self.run(self.service.close())

    def crash(self) -> None:
        """As a kill ends it, except that what was handed to the disk is there."""
        self.run(self.client.aclose())
        self.run(self.service.desk.committer.close())
        self.service.store.close()

    def close(self) -> None:
        if self.service.state == "ready":
            self.stop()
        self.loop.close()
