"""The service's life: lead, fold, compile, serve, tick, and leave a snapshot behind."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gaptron.errors import GaptronError
from gaptron.serve import adapter
from gaptron.serve.committer import Committer
from gaptron.serve.desk import TICK, Desk, clock
from gaptron.serve.keys import Gate
from gaptron.serve.metrics import Metrics
from gaptron.serve.problems import elsewhere, not_now
from gaptron.serve.replay import folded
from gaptron.serve.store import SharedStore, Store, shared
from gaptron.serve.words import DecisionAnswer, DecisionRequest, DecisionResult, DecisionShown

STANDBY = 1.0  # seconds between attempts to lead


def end_process(problem: BaseException) -> None:
    """Say why and end at once: nothing in memory may be answered from any more."""
    kind = "" if isinstance(problem, GaptronError) else f"{type(problem).__name__}: "
    print(f"gaptron: the service ends: {kind}{problem}", file=sys.stderr, flush=True)
    os._exit(1)


@dataclass
class Options:
    """How a service is run."""

    trust_log: bool = False  # do not compare the decisions of the log with those the fold makes
    rate: float | None = None  # requests a second that a key may make
    keep_days: float | None = None  # what decisions were made for is forgotten when they are so old
    with_deciders: bool = False  # decisions are made by others; this one gives them their places
    now: Callable[[], int] = clock
    failed: Callable[[BaseException], None] = end_process


class Deciding(Protocol):
    """Who makes decisions."""

    async def decide(self, name: str, request: DecisionRequest) -> tuple[DecisionAnswer, bool]:
        """A decision, on disk; and whether it was there before."""
        ...

    async def decide_many(self, name: str, requests: list[DecisionRequest]) -> list[DecisionResult]:
        """Decisions in their order."""
        ...

    async def show(self, name: str, event: str) -> DecisionShown:
        """A decision and its answer."""
        ...


class Service:
    """One store, its desk once it leads, its gate and its numbers."""

    def __init__(self, store: Store, options: Options) -> None:
        self.store, self.options = store, options
        self.state = "starting"
        self.gate: Gate | None = None
        self._desk: Desk | None = None
        self._committer: Committer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.metrics = Metrics(lambda: self._desk, lambda: self.state == "ready")

    @property
    def desk(self) -> Desk:
        """Where requests go; refused while there is none."""
        if self._desk is None:
            raise not_now(f"the service is not ready: {self.state}")
        return self._desk

    @property
    def decisions(self) -> Deciding:
        """Who knows of them."""
        return self.desk

    def check_decides(self) -> None:
        """Refuse to decide where others do."""
        if self.options.with_deciders:
            raise elsewhere("decisions are made by deciders: ask one of them")

    def start(self) -> None:
        """Begin; `state` says how far it is."""
        self._tasks.append(asyncio.create_task(self._run()))

    async def open(self) -> None:
        """Lead the store, fold its log, compile."""
        while not await asyncio.to_thread(self.store.lead):
            self.state = "standby: another process leads"
            await asyncio.sleep(STANDBY)
        self.gate = Gate(self.store, self.options.rate)
        self.state = "folding the log"
        models = await asyncio.to_thread(folded, self.store, check=not self.options.trust_log)
        self.state = "compiling"
        for model in models.values():
            await asyncio.to_thread(adapter.try_out, model.spec)
        deciders = shared(self.store) if self.options.with_deciders else None
        self._committer = Committer(self.store, self.options.failed)
        desk = Desk(
            self.store,
            self._committer,
            models,
            now=self.options.now,
            deciders=deciders,
            keep_days=self.options.keep_days,
        )
        if isinstance(self.store, SharedStore):
            await asyncio.to_thread(self.store.admit, self.options.with_deciders)
            await desk.take_in()  # what was written while nobody led; no more come if they may not
        self._desk = desk
        self.state = "ready"

    async def _run(self) -> None:
        try:
            await self.open()
            gc.collect()
            gc.freeze()  # what was loaded stays: to walk through it again and again would stop requests for 60 ms
            while True:
                await asyncio.sleep(TICK)
                await self.tick()
        except asyncio.CancelledError:
            raise
        except BaseException as problem:
            self.options.failed(problem)

    async def tick(self) -> None:
        """What is to be done every second."""
        await self.desk.tick()
        await self.desk.committer.call(self.store.beat)
        await self._reload_keys()

    async def _reload_keys(self) -> None:
        """One may have been revoked."""
        assert self.gate is not None
        await asyncio.to_thread(self.gate.reload)

    def leave(self) -> None:
        """The end is near: /readyz says so, and streams end. Requests under way are answered."""
        if self.state == "ready":
            self.state = "ending"

    async def close(self) -> None:
        """Write what is left and a snapshot, and let go of the store."""
        for task in self._tasks:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._desk is not None and self._committer is not None:
            self._desk.keep_changed()
            await self._committer.close()
        self._desk, self.state = None, "closed"
        await asyncio.to_thread(self.store.close)
