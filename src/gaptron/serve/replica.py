"""A replica only decides, with models that the leader published about a second ago. It may be restarted at any time.

Its decisions are on disk before the response is sent, each with the version of the model and the exact propensity. They
are drafts with negative numbers: only the leader assigns the numbers in the log. A unique index on the event ids
ensures that an event is decided once, whichever process is asked.
"""

import asyncio
from typing import NamedTuple

from msgspec import structs

from gaptron.event_id import new_event_id
from gaptron.serve import adapter, events, snapshots
from gaptron.serve.clock import Clock
from gaptron.serve.coordinator import MAX_UNCOMMITTED_ROWS, Coordinator
from gaptron.serve.decisions import Known, without_event_id
from gaptron.serve.events import Event, ReplicaStamp, Row
from gaptron.serve.keys import KeyRing
from gaptron.serve.model_state import Model
from gaptron.serve.problems import RefusedError, invalid, misdirected, not_found, unavailable
from gaptron.serve.schemas import Decision, DecisionRecord, DecisionRequest, DecisionResult
from gaptron.serve.service import STANDBY_INTERVAL, DecisionMaker, Options, Service
from gaptron.serve.store import SharedStore, StoreUnavailableError, as_shared


class Draft(NamedTuple):
    """A decision that is being written."""

    row: Row
    is_new: "asyncio.Future[bool]"  # False: the event has a decision already


class Replica:
    """The published models, and the decisions that are being written."""

    def __init__(self, store: SharedStore, clock: Clock) -> None:
        self._store, self._now = store, clock.now
        self.models: dict[str, Model] = {}
        self._compiled: set[tuple[str, bool, bool]] = set()  # model, are features named, are numbers sparse
        self._unwritten: list[Draft] = []
        self._writer: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Load the models that were published since the last call."""
        published = await asyncio.to_thread(self._store.published)
        for name in self.models.keys() - dict(published).keys():  # deleted
            del self.models[name]
        for name, seq in published:
            known = self.models.get(name)
            if known is None or known.seq != seq:
                self.models[name] = await asyncio.to_thread(self._fetch, name)

    def _fetch(self, name: str) -> Model:
        model = snapshots.unpack(self._store.published_model(name).body)
        kind = (name, model.adapter.named, False)
        if kind not in self._compiled:
            adapter.try_out(model.settled_spec)
            self._compiled.add(kind)
        return model

    def model(self, name: str) -> Model:
        """Return the published model with this name."""
        model = self.models.get(name)
        if model is None:
            raise not_found(f"no model {name!r} is published; a new model is published within seconds")
        return model

    # --- decisions --------------------------------------------------------------------------------------------------

    async def decide(self, name: str, request: DecisionRequest) -> tuple[Decision, bool]:
        """Return a durable decision, and whether it existed before."""
        await self._compile(self.model(name), request)
        model = self.model(name)  # again: it may have been replaced meanwhile
        event_id, request = request.event_id or new_event_id(), without_event_id(request)
        try:
            event = self._decide(model, event_id, request)
        except RefusedError:
            known = await self._find(model, event_id)  # the event may have been decided under another configuration
            if known is None:
                raise
        else:
            if await self._write(event):
                return Known(event).decision(model.adapter.labels), False
            known = await self._find(model, event_id)
            assert known is not None
        known.check_same(request, model.first_seq)
        return known.decision(await self._labels(name, known)), True

    async def decide_batch(self, name: str, requests: list[DecisionRequest]) -> list[DecisionResult]:
        """Decide in order and in few commits; a refused request gets a problem in its place."""

        async def one(request: DecisionRequest) -> DecisionResult:
            try:
                return DecisionResult(decision=(await self.decide(name, request))[0])
            except RefusedError as refusal:
                return DecisionResult(problem=refusal.problem(request.event_id))

        self.model(name)
        return list(await asyncio.gather(*map(one, requests)))

    async def find(self, name: str, event_id: str) -> DecisionRecord:
        """Return a durable decision and its outcome."""
        model = self.model(name)
        known = await self._find(model, event_id)
        if known is None or not model.owns(known.decided):
            raise not_found(f"model {name!r} has no decision for event {event_id!r}")
        return known.record(await self._labels(name, known))

    async def _labels(self, name: str, known: Known) -> tuple[str, ...]:
        """The labels of the model; a decision that was made with more of them was made with a newer model."""
        decided = known.decided.body
        if decided.request.actions is None and len(decided.distribution or ()) > len(self.model(name).adapter.labels):
            await self.refresh()
        return self.model(name).adapter.labels

    def _decide(self, model: Model, event_id: str, request: DecisionRequest) -> Event:
        if len(self._unwritten) > MAX_UNCOMMITTED_ROWS:
            raise unavailable("too many requests are waiting for the database")
        if not model.adapter.is_settled:
            raise invalid('create models for replicas with "features": their number, or "auto" for named features')
        at = self._now()
        decided = structs.replace(model.decide(request, event_id, at), replica=ReplicaStamp(model.seq, at))
        return Event(0, model.name, event_id, at, decided)

    async def _compile(self, model: Model, request: DecisionRequest) -> None:
        """Compile for sparse examples before the first of them."""
        kind = (model.name, model.adapter.named, model.adapter.is_sparse(request))
        if kind not in self._compiled and model.adapter.width is not None:
            await asyncio.to_thread(adapter.try_out, model.settled_spec, sparse=True)
            self._compiled.add(kind)

    async def _find(self, model: Model, event_id: str) -> Known | None:
        found = (await asyncio.to_thread(self._store.find, model.name, [event_id])).get(event_id)
        if found is None:
            return None
        return Known(events.decode(found.decision), None if found.outcome is None else events.decode(found.outcome))

    # --- writing ----------------------------------------------------------------------------------------------------

    async def _write(self, event: Event) -> bool:
        """Write a decision together with all that arrive meanwhile. False: its event has a decision already."""
        draft = Draft(event.row(), asyncio.get_running_loop().create_future())
        self._unwritten.append(draft)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_drafts())
        return await draft.is_new

    async def _write_drafts(self) -> None:
        while self._unwritten:
            drafts, self._unwritten = self._unwritten, []
            try:
                new = await asyncio.to_thread(self._store.write_drafts, [draft.row for draft in drafts])
            except BaseException as problem:
                error = problem if isinstance(problem, Exception) else StoreUnavailableError("the replica is closing")
                for draft in drafts:
                    if not draft.is_new.done():
                        draft.is_new.set_exception(error)
                if not isinstance(problem, StoreUnavailableError):
                    raise
                continue
            for draft in drafts:
                event = (draft.row.model, draft.row.event_id or "")
                if not draft.is_new.done():
                    draft.is_new.set_result(event in new)
                new.discard(event)  # of two drafts with the same id, the first is in the log

    async def close(self) -> None:
        """Wait until all decisions are written."""
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)


class ReplicaService(Service):
    """The lifecycle of a replica: it never becomes the leader."""

    def __init__(self, store: SharedStore, options: Options) -> None:
        super().__init__(store, options)
        self._replica = Replica(store, Clock(0, options.now, options.elapsed))

    @property
    def coordinator(self) -> Coordinator:
        """Always refused: only the leader has a coordinator."""
        raise misdirected("this process is a replica, which only decides: send the request to the leader")

    @property
    def decisions(self) -> DecisionMaker:
        """The replica itself."""
        if self.state != "ready":
            raise unavailable(f"the service is not ready: {self.state}")
        return self._replica

    async def open(self) -> None:
        """Wait for a leader that accepts replicas, then load and compile the published models."""
        store = as_shared(self.store)
        while not await asyncio.to_thread(store.accepts_drafts):
            self.state = "waiting for a leader that accepts replicas"
            await asyncio.sleep(STANDBY_INTERVAL)
        self.keys = KeyRing(store, self.options.rate)
        self.state = "compiling"
        await self._replica.refresh()
        self.state = "ready"

    async def tick(self) -> None:
        """Load new models and keys. If the database is unavailable for a while, go on: a replica has no state."""
        try:
            await self._replica.refresh()
            await self._reload_keys()
        except StoreUnavailableError:
            pass

    async def close(self) -> None:
        """Write the remaining decisions and close the store."""
        await self._replica.close()
        await super().close()
