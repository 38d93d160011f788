"""The lifecycle of the service: replay the log, compile, acquire the lease, serve, and save a snapshot at the end."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gaptron.errors import GaptronError, SettingError
from gaptron.serve import adapter
from gaptron.serve.clock import elapsed, system_time
from gaptron.serve.committer import Committer
from gaptron.serve.coordinator import TICK, Coordinator
from gaptron.serve.heartbeat import Heartbeat
from gaptron.serve.keys import KeyRing
from gaptron.serve.metrics import Metrics
from gaptron.serve.model_state import Model
from gaptron.serve.problems import misdirected, unavailable
from gaptron.serve.replay import Follower
from gaptron.serve.report import ReportCache
from gaptron.serve.schemas import Decision, DecisionRecord, DecisionRequest, DecisionResult
from gaptron.serve.store import SharedStore, Store, StoreUnavailableError, as_shared

STANDBY_INTERVAL = 1.0  # seconds between attempts to acquire the lease


def end_process(problem: BaseException) -> None:
    """Print the reason and exit at once, because the state in memory is no longer valid."""
    kind = "" if isinstance(problem, GaptronError) else f"{type(problem).__name__}: "
    print(f"gaptron: the service stops: {kind}{problem}", file=sys.stderr, flush=True)
    os._exit(1)


@dataclass
class Options:
    """How to run a service."""

    trust_log: bool = False  # do not recompute the decisions of the log and compare them
    rate: float | None = None  # requests per second allowed for each key
    keep_days: float | None = None  # redact the features of decisions that are older
    with_replicas: bool = False  # replicas decide; this process learns
    now: Callable[[], int] = system_time
    elapsed: Callable[[], int] = elapsed
    on_failure: Callable[[BaseException], None] = end_process


class DecisionMaker(Protocol):
    """What decides: the coordinator, or a replica."""

    models: dict[str, Model]

    def model(self, name: str) -> Model:
        """Return the model with this name."""
        ...

    async def decide(self, name: str, request: DecisionRequest) -> tuple[Decision, bool]:
        """Return a durable decision, and whether it existed before."""
        ...

    async def decide_batch(self, name: str, requests: list[DecisionRequest]) -> list[DecisionResult]:
        """Decide in order; a refused request gets a problem in its place."""
        ...

    async def find(self, name: str, event_id: str) -> DecisionRecord:
        """Return a durable decision and its outcome."""
        ...


class Service:
    """A store, and, once this process is the leader, its coordinator and keys."""

    def __init__(self, store: Store, options: Options) -> None:
        self.store, self.options = store, options
        self.state = "starting"
        self.keys: KeyRing | None = None
        self.reports = ReportCache()
        self._coordinator: Coordinator | None = None
        self._committer: Committer | None = None
        self._heartbeat: Heartbeat | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.metrics = Metrics(lambda: self._coordinator, lambda: self.state == "ready", options.elapsed)

    @property
    def coordinator(self) -> Coordinator:
        """The coordinator; refused until the service is ready."""
        if self._coordinator is None:
            raise unavailable(f"the service is not ready: {self.state}")
        return self._coordinator

    @property
    def decisions(self) -> DecisionMaker:
        """What finds decisions, and makes them unless replicas do."""
        return self.coordinator

    @property
    def quarantined(self) -> int:
        """The number of models that cannot be used."""
        return 0 if self._coordinator is None else len(self._coordinator.quarantined)

    def check_decides(self) -> None:
        """Refuse a decision if replicas decide."""
        if self.options.with_replicas:
            raise misdirected("replicas make the decisions: send the request to one of them")

    def start(self) -> None:
        """Start in the background; `state` shows the progress."""
        self._tasks.append(asyncio.create_task(self._run()))

    async def open(self) -> None:
        """Replay the log, compile the models, and acquire the lease."""
        follower = Follower(self.store, check=not self.options.trust_log)
        await self._stand_by(follower)
        self.keys = KeyRing(self.store, self.options.rate)
        self._committer = Committer(self.store, self.options.on_failure)
        coordinator = Coordinator(
            self.store,
            self._committer,
            follower.models,
            follower.quarantined,
            now=self.options.now,
            elapsed=self.options.elapsed,
            replica_store=as_shared(self.store) if self.options.with_replicas else None,
            keep_days=self.options.keep_days,
        )
        if isinstance(self.store, SharedStore):
            await asyncio.to_thread(self.store.allow_replicas, self.options.with_replicas)
            await coordinator.sequence_drafts()  # those written while there was no leader
        self._coordinator = coordinator
        self.state = "ready"

    async def _stand_by(self, follower: Follower) -> None:
        """Be ready to lead at any time, until this process is the leader.

        The log is replayed before the lease is acquired: the leader may still be alive, and serves meanwhile.
        """
        self.state = "replaying the log"
        await asyncio.to_thread(self._follow, follower)
        while not await asyncio.to_thread(self.store.acquire_lease):
            self.state = "standby: another process is the leader"
            await asyncio.sleep(STANDBY_INTERVAL)
            await asyncio.to_thread(self._follow, follower)
        if isinstance(self.store, SharedStore):
            self._heartbeat = Heartbeat(self.store, self.options.on_failure)
        self.state = "replaying the log"
        await asyncio.to_thread(self._follow, follower)  # what the leader before wrote last

    def _follow(self, follower: Follower) -> None:
        """Replay what is new in the log, and compile new models."""
        before = set(follower.models)
        try:
            follower.catch_up()
        except StoreUnavailableError:
            raise
        except SettingError:  # there are no tables, or older ones: whoever acquires the lease creates them
            return
        follower.check_version()
        for name in follower.models.keys() - before:
            adapter.try_out(follower.models[name].settled_spec)

    async def _run(self) -> None:
        try:
            await self.open()
            gc.collect()
            gc.freeze()  # what was loaded stays; traversing it in every collection paused requests for 60 ms
            while True:
                await asyncio.sleep(TICK)
                await self.tick()
        except asyncio.CancelledError:
            raise
        except BaseException as problem:
            self.options.on_failure(problem)

    async def tick(self) -> None:
        """Do the periodic work, once a second."""
        await self.coordinator.tick()
        await self._reload_keys()

    async def _reload_keys(self) -> None:
        """Notice keys that were added or revoked in the store."""
        assert self.keys is not None
        await asyncio.to_thread(self.keys.reload)

    def begin_shutdown(self) -> None:
        """Report in /readyz that the service is stopping, and end streams. Open requests still get a response."""
        if self.state == "ready":
            self.state = "stopping"

    async def close(self) -> None:
        """Commit what is left, save snapshots, and close the store."""
        for task in self._tasks:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._coordinator is not None and self._committer is not None:
            self._coordinator.take_snapshots()
            await self._committer.close()
        if self._heartbeat is not None:
            await asyncio.to_thread(self._heartbeat.stop)
        self._coordinator, self.state = None, "closed"
        await asyncio.to_thread(self.store.close)
