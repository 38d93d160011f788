"""A process that only decides, with models as the leader published them about a second ago. It keeps no state.

Its decisions are on disk before they are answered, each with the version it was made with and its exact probability,
under numbers below 0: only the leader says which place in the log they get. The log's index of events sees to it that
an event is decided once, whoever is asked.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from msgspec import structs

from gaptron.event_id import new_event_id
from gaptron.serve import adapter, decisions, entries, snapshots
from gaptron.serve.decisions import Known, check_event, check_same, without_event
from gaptron.serve.desk import MOST_WAITING_ROWS, Desk
from gaptron.serve.entries import Entry, Made, Row
from gaptron.serve.fold import Model
from gaptron.serve.keys import Gate
from gaptron.serve.problems import RefusedError, elsewhere, invalid, not_now, unknown
from gaptron.serve.service import STANDBY, Deciding, Options, Service
from gaptron.serve.store import AwayError, SharedStore, shared
from gaptron.serve.words import DecisionAnswer, DecisionRequest, DecisionResult, DecisionShown, SparseX


class Draft(NamedTuple):
    """A decision on its way to the disk."""

    row: Row
    new: "asyncio.Future[bool]"  # or was its event decided already?


class Decider:
    """The models as they were published, and the way of decisions to the disk."""

    def __init__(self, store: SharedStore, now: Callable[[], int]) -> None:
        self._store, self._now = store, now
        self.models: dict[str, Model] = {}
        self._warm: set[tuple[str, bool]] = set()
        self._gathered: list[Draft] = []
        self._writer: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Take up what was published since."""
        for name, seq in await asyncio.to_thread(self._store.published):
            known = self.models.get(name)
            if known is None or known.seq != seq:
                self.models[name] = await asyncio.to_thread(self._fetch, name)

    def _fetch(self, name: str) -> Model:
        model = snapshots.unpacked(self._store.publication(name).body)
        if (name, False) not in self._warm:
            adapter.try_out(model.spec)
            self._warm.add((name, False))
        return model

    def model(self, name: str) -> Model:
        """The model of this name."""
        model = self.models.get(name)
        if model is None:
            raise unknown(f"no model {name!r} was published; one that was just made comes within seconds")
        return model

    # --- decisions --------------------------------------------------------------------------------------------------

    async def decide(self, name: str, request: DecisionRequest) -> tuple[DecisionAnswer, bool]:
        """A decision, on disk; and whether it was there before."""
        await self._warm_up(self.model(name), request)
        model = self.model(name)  # as it is now
        event, asked = request.event_id or new_event_id(), without_event(request)
        check_event(event)
        try:
            entry = self._made(model, event, asked)
        except RefusedError:
            known = await self._find(model, event)  # it may have been decided when the rules were others
            if known is None:
                raise
        else:
            if await self._write(entry):
                return decisions.answer(Known(entry), model.adapter.labels), False
            known = await self._find(model, event)
            assert known is not None
        check_same(known, asked)
        return decisions.answer(known, model.adapter.labels), True

    async def decide_many(self, name: str, requests: list[DecisionRequest]) -> list[DecisionResult]:
        """Decisions in their order, in few commits; a problem in the place of each that is refused."""

        async def one(request: DecisionRequest) -> DecisionResult:
            try:
                return DecisionResult(decision=(await self.decide(name, request))[0])
            except RefusedError as refusal:
                return DecisionResult(problem=refusal.problem(request.event_id))

        self.model(name)
        return list(await asyncio.gather(*map(one, requests)))

    async def show(self, name: str, event: str) -> DecisionShown:
        """A decision and its answer, on disk."""
        model = self.model(name)
        check_event(event)
        known = await self._find(model, event)
        if known is None:
            raise unknown(f"model {name!r} has made no decision for event {event!r}")
        return decisions.shown(known, model.adapter.labels)

    def _made(self, model: Model, event: str, request: DecisionRequest) -> Entry:
        if len(self._gathered) > MOST_WAITING_ROWS:
            raise not_now("too many requests wait for the database")
        if model.adapter.width is None and not model.adapter.named:
            raise invalid("the model does not know its width yet: deciders need one made with features")
        at = self._now()
        decided = structs.replace(model.look(request, event, at), made=Made(model.seq, at))
        return Entry(0, model.name, event, at, decided)

    async def _warm_up(self, model: Model, request: DecisionRequest) -> None:
        """Compile for sparse rows before the first of them."""
        sparse = isinstance(request.x, SparseX)
        if (model.name, sparse) not in self._warm and isinstance(model.spec.features, int):
            await asyncio.to_thread(adapter.try_out, model.spec, sparse=True)
            self._warm.add((model.name, sparse))

    async def _find(self, model: Model, event: str) -> Known | None:
        found = (await asyncio.to_thread(self._store.find, model.name, [event])).get(event)
        if found is None:
            return None
        return Known(entries.read(found.decision), None if found.outcome is None else entries.read(found.outcome))

    # --- the disk ---------------------------------------------------------------------------------------------------

    async def _write(self, entry: Entry) -> bool:
        """Write a decision together with all that gather meanwhile. False: its event was decided already."""
        draft = Draft(entry.row(), asyncio.get_running_loop().create_future())
        self._gathered.append(draft)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_gathered())
        return await draft.new

    async def _write_gathered(self) -> None:
        while self._gathered:
            drafts, self._gathered = self._gathered, []
            try:
                new = await asyncio.to_thread(self._store.draft, [draft.row for draft in drafts])
            except BaseException as problem:
                for draft in drafts:
                    if not draft.new.done():
                        draft.new.set_exception(problem if isinstance(problem, Exception) else AwayError("ended"))
                if not isinstance(problem, AwayError):
                    raise
                continue
            for draft in drafts:
                event = (draft.row.model, draft.row.event or "")
                if not draft.new.done():
                    draft.new.set_result(event in new)
                new.discard(event)  # of two under one id the first is in the log

    async def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)


class DeciderService(Service):
    """The life of a decider: it never leads."""

    def __init__(self, store: SharedStore, options: Options) -> None:
        super().__init__(store, options)
        self._decider = Decider(store, options.now)

    @property
    def desk(self) -> Desk:
        """Of the leader."""
        raise elsewhere("this process only decides: ask the leader")

    @property
    def decisions(self) -> Deciding:
        """Ourselves."""
        if self.state != "ready":
            raise not_now(f"the service is not ready: {self.state}")
        return self._decider

    async def open(self) -> None:
        """Wait until something was published, and compile."""
        store = shared(self.store)
        while not await asyncio.to_thread(store.takes_drafts):
            self.state = "waiting for a leader that works with deciders"
            await asyncio.sleep(STANDBY)
        self.gate = Gate(store, self.options.rate)
        self.state = "compiling"
        await self._decider.refresh()
        self.state = "ready"

    async def tick(self) -> None:
        """Take up what is new. A database that is away for a while is no reason to end: nothing is kept here."""
        try:
            await self._decider.refresh()
            await self._reload_keys()
        except AwayError:
            pass

    async def close(self) -> None:
        """Write what is left."""
        await self._decider.close()
        await super().close()
