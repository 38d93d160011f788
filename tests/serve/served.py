"""A service in this process with a simulated clock, called over its HTTP interface."""

import asyncio
from typing import Any

import httpx

from gaptron.serve.replica import ReplicaService
from gaptron.serve.service import Options, Service
from gaptron.serve.store import as_shared, open_store
from gaptron.serve.web import application

START = 1_800_000_000_000_000  # µs
SMALL = {"algorithm": "gaptron", "settings": {"norm": 2.0, "radius": 1.0, "horizon": 1000}}
TRIAGE = {"name": "triage", "labels": ["mail", "chat", "phone"], "epsilon": 0.0, **SMALL}


def secret_of(key: str) -> str:
    """The secret part of a key gap_ID_SECRET; the secret itself may contain underscores."""
    return key.split("_", 2)[2]


class Served:
    def __init__(self, place: str, *, replica: bool = False, **options: Any) -> None:
        self.place, self.options, self.replica = str(place), options, replica
        self.time = START
        self.clock_error = 0  # µs by which the system clock differs from the time that passes
        self.loop = asyncio.new_event_loop()
        self.open()

    def open(self) -> None:
        self.failure: BaseException | None = None
        now, elapsed = lambda: self.time + self.clock_error, lambda: self.time
        options = Options(now=now, elapsed=elapsed, on_failure=self._on_failure, **self.options)
        store = open_store(self.place)
        self.service = ReplicaService(as_shared(store), options) if self.replica else Service(store, options)
        self.run(self.service.open())
        transport = httpx.ASGITransport(application(self.service))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def _on_failure(self, problem: BaseException) -> None:
        self.failure = problem

    def run(self, task: Any) -> Any:
        return self.loop.run_until_complete(
            asyncio.wait_for(task, 120.0)
        )  # otherwise a failed service would block the test forever

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

    def send_outcome(self, event: str, model: str = "triage", **outcome: Any) -> httpx.Response:
        return self.call("PUT", f"/v1/models/{model}/decisions/{event}/outcome", outcome)

    def model(self, name: str = "triage") -> Any:
        return self.service.coordinator.models[name]

    def pass_time(self, seconds: float) -> None:
        self.time += round(1e6 * seconds)
        self.tick()

    def tick(self) -> None:
        """Do the periodic work, and publish without waiting for the next publication."""
        if not self.replica:
            self.service.coordinator._publish_at = 0.0
        self.run(self.service.tick() if self.replica else self.service.coordinator.tick())

    def stop(self) -> None:
        """End it regularly, with snapshots."""
        self.run(self.client.aclose())
        self.run(self.service.close())

    def crash(self) -> None:
        """End it as a kill would, except that everything scheduled is written."""
        self.run(self.client.aclose())
        self.run(self.service.coordinator.committer.close())
        if self.service._heartbeat is not None:
            self.service._heartbeat.stop()
        self.service.store.close()

    def close(self) -> None:
        if self.service.state == "ready":
            self.stop()
        self.loop.close()
