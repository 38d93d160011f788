"""The coordinator turns requests into events. Only it owns the models; all its work runs in the event loop's thread.

An event is applied to its model at once and written by the committer; the response is sent when it is on disk. A retry
of a request, even while the first attempt is in progress, gets the response of the first.
"""

import asyncio
import secrets
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import structs

from gaptron.errors import GaptronError, InputError, ModelFileError, SettingError
from gaptron.event_id import new_event_id
from gaptron.serve import adapter, events, problems, snapshots
from gaptron.serve.adapter import NotFiniteError
from gaptron.serve.clock import Clock, elapsed, system_time
from gaptron.serve.committer import Committer
from gaptron.serve.decisions import Known, without_event_id
from gaptron.serve.events import (
    Activated,
    Body,
    ChallengerStopped,
    Changed,
    Created,
    Decided,
    Deleted,
    Event,
    Imported,
    OutcomeRecorded,
    Redacted,
    Row,
    TimedOut,
)
from gaptron.serve.model_state import Model
from gaptron.serve.problems import RefusedError, invalid, not_found, unavailable
from gaptron.serve.schemas import (
    Decision,
    DecisionRecord,
    DecisionRequest,
    DecisionResult,
    ModelChange,
    NewModel,
    Outcome,
    OutcomeResult,
    OutcomeStatus,
    Problem,
)
from gaptron.serve.store import Found, Redaction, SharedStore, Snapshot, Store, as_shared

MAX_MODELS = 100
MAX_UNCOMMITTED_ROWS = 10_000  # more requests are refused until some rows are on disk
MAX_PENDING = 200_000  # pending decisions of one model; one with actions counts once for each
CACHED_DECISIONS = 20_000  # kept in memory, so that their outcomes need no lookup; counted in the same way
TICK, MAX_TIMED_OUT = 1.0, 500  # seconds between checks for timeouts; decisions learned from without a pause
SNAPSHOT_SECONDS, SNAPSHOT_RATIO = 10.0, 200.0  # minimum time between snapshots, also as a multiple of their duration
MAX_SEQUENCED = 500  # drafts of replicas that get their numbers without a pause
REDACTION_INTERVAL, MAX_REDACTED = 86_400_000_000, 1000  # µs; decisions in one commit
PUBLISH_RATIO = 20.0  # minimum time between publications, as a multiple of their duration


def new_draw_key() -> str:
    """A secret for the draws of a new model."""
    return secrets.token_hex(32)


class Counters:
    """Counts since the start of the process, of requests that are not in the log."""

    def __init__(self) -> None:
        self.duplicates = self.conflicts = self.refused = self.retries = 0


class LastSnapshot(NamedTuple):
    """The event of a model's last snapshot, and when the next one may be taken."""

    seq: int
    next_at: float


class Coordinator:
    """The models and the event log."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        models: dict[str, Model],
        quarantined: dict[str, Exception],
        *,
        now: Callable[[], int] = system_time,
        elapsed: Callable[[], int] = elapsed,
        replica_store: SharedStore | None = None,
        keep_days: float | None = None,
    ) -> None:
        self._retention = None if keep_days is None else round(86_400e6 * keep_days)
        self._redact_at = 0  # µs
        self._redacted_deleted: dict[str, int] = {}  # name → event up to which deleted models are redacted
        self.store, self.committer, self.models = store, committer, models
        self.quarantined: dict[str, str] = {}  # models that cannot be used, and why
        for name, problem in quarantined.items():
            self._quarantine(name, problem)
        self._replica_store = replica_store  # None: there are no replicas
        self._sequencing = asyncio.Lock()
        self.importing = asyncio.Lock()
        self._published: dict[str, tuple[Any, ...]] = {}  # the state of each model when it was published
        self._publish_at = 0.0
        self._seq, at = store.last()
        committer.committed = self._seq
        self._time = Clock(at, now, elapsed).now
        self._cache: OrderedDict[tuple[str, str], Known] = OrderedDict()
        self._cache_size = 0
        self._compiled: set[tuple[str, bool, bool]] = set()  # model, are features named, are numbers sparse
        self._last_snapshots = {name: LastSnapshot(0, time.monotonic() + SNAPSHOT_SECONDS) for name in models}
        self.counters: dict[str, Counters] = {name: Counters() for name in models}

    # --- models ---------------------------------------------------------------------------------------------------

    def model(self, name: str) -> Model:
        """Return the model with this name."""
        model = self.models.get(name)
        if model is None:
            if name in self.quarantined:
                raise problems.quarantined(name, self.quarantined[name])
            raise not_found(f"there is no model {name!r}: create it with POST /v1/models")
        return model

    async def create(self, spec: NewModel) -> Model:
        """Create a model. It is compiled first, so that its first decision is fast."""
        self._check_new(spec.name)
        try:
            await asyncio.to_thread(adapter.try_out, spec)
            created = Created(spec, new_draw_key())
            model = Model(created)
        except (InputError, SettingError) as problem:
            raise invalid(str(problem)) from None
        self._check_new(spec.name)  # again: another request may have created it while we compiled
        self.models[spec.name] = model
        self._last_snapshots[spec.name] = LastSnapshot(0, time.monotonic() + SNAPSHOT_SECONDS)
        self.counters[spec.name] = Counters()
        self._compiled.add((spec.name, model.adapter.named, False))
        model.seq = self._append(model, None, created).seq
        await self.committer.wait_for(model.seq)
        return model

    async def ensure(self, spec: NewModel) -> tuple[Model, bool]:
        """Return the model with this specification, and whether it was created now."""
        try:
            return await self.create(spec), True
        except RefusedError as refusal:
            if refusal.kind != "already-exists":
                raise
        model = self.model(spec.name)
        if model.spec != spec:
            names = [name for name in spec.__struct_fields__ if getattr(spec, name) != getattr(model.spec, name)]
            detail = f"a model named {spec.name!r} was created with other values of: {', '.join(names)}"
            raise RefusedError(409, "already-exists", f"{detail}; change it with PATCH, or delete it")
        await self.committer.wait_for(model.seq)
        return model, False

    def _check_new(self, name: str) -> None:
        if name in self.models or name in self.quarantined:
            raise RefusedError(409, "already-exists", f"a model named {name!r} exists already")
        if len(self.models) + len(self.quarantined) >= MAX_MODELS:
            raise invalid(f"a service has at most {MAX_MODELS} models: delete one first")

    async def change(self, name: str, change: ModelChange) -> Model:
        """Change the configuration of a model, or add labels."""
        model = self.model(name)
        model.check_change(change)
        event = self._append(model, None, Changed(change))
        await self.committer.wait_for(event.seq)
        return model

    async def delete(self, name: str) -> None:
        """Delete a model. Its events remain in the log, without effect; its name may be used again."""
        if name not in self.quarantined:
            self.model(name)  # refuses if there is none
        event = Event(self._seq + 1, name, None, self._time(), Deleted())
        self._log(event)
        self.models.pop(name, None)
        self.quarantined.pop(name, None)
        self.counters.pop(name, None)
        self._last_snapshots.pop(name, None)
        self._published.pop(name, None)
        self._compiled = {kind for kind in self._compiled if kind[0] != name}
        for model, event_id in [key for key in self._cache if key[0] == name]:
            self._remove_from_cache(model, event_id)
        await self.committer.wait_for(event.seq)

    async def record(self, model: Model, body: Body) -> None:
        """Record an event about a model as a whole durably."""
        event = self._append(model, None, body)
        await self.committer.wait_for(event.seq)

    async def record_imported(self, model: Model, imported: list[tuple[str, Imported]]) -> None:
        """Record decisions of another log durably, in one commit."""
        self._check_backlog()
        for event_id, body in imported:
            self._append(model, event_id, body)
        await self.committer.wait_for(model.seq)

    async def try_out(self, spec: NewModel) -> None:
        """Compile for a learner of this kind, and refuse what cannot work."""
        try:
            await asyncio.to_thread(adapter.try_out, spec)
            if isinstance(spec.features, int):
                await asyncio.to_thread(adapter.try_out, spec, sparse=True)
        except (InputError, SettingError) as problem:
            raise invalid(str(problem)) from None

    # --- decisions ------------------------------------------------------------------------------------------------

    async def decide(self, name: str, request: DecisionRequest) -> tuple[Decision, bool]:
        """Return a durable decision, and whether it existed before."""
        model = self.model(name)
        await self._prepare(model, [request])
        known, existed = self._decide(model, request)
        await self.committer.wait_for(known.decided.seq)
        return known.decision(model.adapter.labels), existed

    async def decide_batch(self, name: str, requests: list[DecisionRequest]) -> list[DecisionResult]:
        """Decide in order and in one commit; a refused request gets a problem in its place."""
        model = self.model(name)
        await self._prepare(model, requests)
        results: list[Known | Problem] = []
        for request in requests:
            try:
                results.append(self._decide(model, request)[0])
            except RefusedError as refusal:
                results.append(refusal.problem(request.event_id))
        await self.committer.wait_for(
            max((known.decided.seq for known in results if isinstance(known, Known)), default=0)
        )
        return [
            DecisionResult(decision=known.decision(model.adapter.labels))
            if isinstance(known, Known)
            else DecisionResult(problem=known)
            for known in results
        ]

    async def _prepare(self, model: Model, requests: list[DecisionRequest]) -> None:
        """Do everything that awaits, so that deciding afterwards is atomic."""
        for request in requests:
            await self.compile(model, request)
        await self._load(model, [request.event_id for request in requests if request.event_id])

    def _decide(self, model: Model, request: DecisionRequest) -> tuple[Known, bool]:
        name, event_id, request = model.name, request.event_id or new_event_id(), without_event_id(request)
        self._check_current(model)
        known = self._cache.get((name, event_id))
        if known is not None:
            try:
                known.check_same(request, model.first_seq)
            except RefusedError:
                self.counters[name].refused += 1
                raise
            self.counters[name].retries += 1
            return known, True
        self._check_backlog()
        if model.pending_size >= MAX_PENDING:
            raise unavailable(
                f"the model has {len(model.pending)} pending decisions, as many as there may be; try again after some "
                "timed out"
            )
        at = self._time()
        try:
            decided = model.decide(request, event_id, at)
        except RefusedError:
            self.counters[name].refused += 1
            raise
        except NotFiniteError as problem:
            raise self._quarantine(name, problem) from None
        known = Known(self._append(model, event_id, decided, at=at))
        self._add_to_cache(known)
        return known, False

    def _check_backlog(self) -> None:
        if self.committer.uncommitted > MAX_UNCOMMITTED_ROWS:
            raise unavailable("too many requests are waiting for the disk")

    async def compile(self, model: Model, request: DecisionRequest) -> None:
        """Compile for this kind of example in another thread, before its first decision."""
        features, sparse = model.adapter.features_after(request), model.adapter.is_sparse(request)
        kind = (model.name, features == "auto", sparse)
        if kind in self._compiled:
            return
        if not sparse or isinstance(features, int):
            specs = [model.live_spec, *[model.spec_of(one.spec) for one in model.challengers.values()]]
            for spec in specs:
                with suppress(InputError, SettingError):  # deciding refuses what does not work
                    await asyncio.to_thread(adapter.try_out, structs.replace(spec, features=features), sparse=sparse)
        self._compiled.add(kind)

    async def find(self, name: str, event_id: str) -> DecisionRecord:
        """Return a durable decision and its outcome."""
        model = self.model(name)
        await self._load(model, [event_id])
        known = self._known(model, event_id)
        await self.committer.wait_for(known.seq)
        return known.record(model.adapter.labels)

    # --- outcomes -------------------------------------------------------------------------------------------------

    async def record_outcome(self, name: str, event_id: str, outcome: Outcome) -> OutcomeStatus:
        """Record an outcome durably."""
        model = self.model(name)
        await self._load(model, [event_id])
        status, seq = self._record_outcome(model, event_id, outcome)
        await self.committer.wait_for(seq)
        return status

    async def record_outcomes(self, name: str, outcomes: list[tuple[str, Outcome]]) -> list[OutcomeResult]:
        """Record outcomes in order and in one commit; a refused outcome gets a problem in its place."""
        model = self.model(name)
        await self._load(model, [event_id for event_id, _ in outcomes])
        results: list[OutcomeResult] = []
        last = 0
        for event_id, outcome in outcomes:
            try:
                status, seq = self._record_outcome(model, event_id, outcome)
            except RefusedError as refusal:
                results.append(OutcomeResult(problem=refusal.problem(event_id)))
            else:
                results.append(OutcomeResult(outcome=status))
                last = max(last, seq)
        await self.committer.wait_for(last)
        return results

    def _record_outcome(self, model: Model, event_id: str, outcome: Outcome) -> tuple[OutcomeStatus, int]:
        self._check_current(model)
        counters, known = self.counters[model.name], self._known(model, event_id)
        decided: Decided = known.decided.body
        if known.outcome is not None:
            first = known.outcome.body.outcome
            if first != outcome:
                counters.conflicts += 1
                raise RefusedError(409, "conflict", f"event {event_id!r} has a different outcome already", first)
            counters.duplicates += 1
            return OutcomeStatus(event_id=event_id, status="duplicate"), known.seq
        model.check_outcome(outcome, decided)
        self._check_backlog()
        at = self._time()
        late = model.is_late(known.decided, at)
        event = self._append(model, event_id, OutcomeRecorded(outcome), decided=known.decided, at=at)
        self._add_to_cache(structs.replace(known, outcome=event))
        return OutcomeStatus(event_id=event_id, status="late" if late else "recorded"), event.seq

    async def activate(self, name: str, event_id: str) -> None:
        """Record durably that what a deferred decision chose was shown; of any other decision, nothing is recorded."""
        model = self.model(name)
        await self._load(model, [event_id])
        seq = self._known(model, event_id).seq
        if model.can_activate(event_id):
            self._check_backlog()
            seq = self._append(model, event_id, Activated()).seq
        else:
            seq = max(seq, model.seq)  # it may have been activated just now
        await self.committer.wait_for(seq)

    # --- the log --------------------------------------------------------------------------------------------------

    def _append(
        self, model: Model, event_id: str | None, body: Body, *, decided: Event | None = None, at: int | None = None
    ) -> Event:
        """Apply an event to its model and schedule it for the next commit."""
        event = self._next_event(model, event_id, body, at=at)
        self._apply(model, event, decided)
        self._log(event)
        return event

    def _next_event(self, model: Model, event_id: str | None, body: Body, *, at: int | None = None) -> Event:
        return Event(self._seq + 1, model.name, event_id, self._time() if at is None else at, body)

    def _log(self, event: Event) -> None:
        """Schedule an event that was applied for the next commit."""
        self._seq = event.seq
        self.committer.add(event.row())

    def _apply(self, model: Model, event: Event, decided: Event | None = None) -> None:
        """Apply an event. If that fails, the model is in an unknown state: it is quarantined, and others are not."""
        self._check_current(model)
        try:
            model.apply(event, decided, check=False)
        except Exception as problem:
            raise self._quarantine(model.name, problem) from problem

    def _check_current(self, model: Model) -> None:
        """Refuse if the model was quarantined or deleted meanwhile."""
        if self.model(model.name) is not model:
            raise not_found(f"model {model.name!r} was deleted")

    def _quarantine(self, name: str, problem: Exception) -> RefusedError:
        """Refuse everything about a model from now on; a restart restores it from the log. Returns the refusal."""
        self.models.pop(name, None)
        kind = "" if isinstance(problem, GaptronError) else f"{type(problem).__name__}: "
        self.quarantined[name] = f"{kind}{problem}"
        refusal = problems.quarantined(name, self.quarantined[name])
        print(f"gaptron: {refusal}", file=sys.stderr, flush=True)
        return refusal

    def _known(self, model: Model, event_id: str) -> Known:
        known = self._cache.get((model.name, event_id))
        if known is None or not model.owns(known.decided):
            raise not_found(f"model {model.name!r} has no decision for event {event_id!r}")
        return known

    async def _load(self, model: Model, event_ids: list[str]) -> None:
        """Load the decisions of these events from the log into the cache."""
        missing = [event_id for event_id in event_ids if (model.name, event_id) not in self._cache]
        if not missing:
            return
        found = await self._find(model, missing)
        if any(rows.decision.seq < 0 for rows in found.values()):
            await self.sequence_drafts()
            found = await self._find(model, missing)  # they have their numbers, and may have left the cache already
        for event_id, rows in found.items():
            if (model.name, event_id) not in self._cache:  # the cache is newer than what was found
                outcome = None if rows.outcome is None else events.decode(rows.outcome)
                self._add_to_cache(Known(events.decode(rows.decision), outcome))

    async def _find(self, model: Model, event_ids: list[str]) -> dict[str, Found]:
        if self.store.fast_find:
            return self.store.find(model.name, event_ids)
        return await asyncio.to_thread(self.store.find, model.name, event_ids)

    def _add_to_cache(self, known: Known) -> None:
        event = known.decided
        assert event.event_id is not None
        self._remove_from_cache(event.model, event.event_id)
        self._cache[event.model, event.event_id] = known
        self._cache_size += known.size
        while self._cache_size > CACHED_DECISIONS:
            oldest = next(iter(self._cache))
            if self._cache[oldest].seq > self.committer.committed:
                break  # not on disk yet, so that it could not be loaded again
            self._remove_from_cache(*oldest)

    def _remove_from_cache(self, name: str, event_id: str) -> None:
        known = self._cache.pop((name, event_id), None)
        if known is not None:
            self._cache_size -= known.size

    # --- periodic work ----------------------------------------------------------------------------------------------

    async def tick(self) -> None:
        """Sequence drafts, apply timeouts, take snapshots, publish models and redact old decisions, as they are due."""
        if self._replica_store is not None:
            await self.sequence_drafts()
        now = self._time()
        for model in list(self.models.values()):
            with suppress(RefusedError):  # the model is quarantined
                await self._apply_timeouts(model, now)
        for model in list(self.models.values()):
            last = self._last_snapshots[model.name]
            if model.seq != last.seq and time.monotonic() >= last.next_at:
                self.take_snapshot(model)
        if self._replica_store is not None and time.monotonic() >= self._publish_at:
            await self._publish(self._replica_store)
        if self._retention is not None and now >= self._redact_at:
            self._redact_at = now + REDACTION_INTERVAL
            for model in list(self.models.values()):
                with suppress(RefusedError):  # the model is quarantined
                    while await self._redact(model, now - self._retention):
                        pass
            for name, until in await asyncio.to_thread(self._deleted):
                while await self._redact_deleted(name, until, now - self._retention):
                    pass

    async def _apply_timeouts(self, model: Model, now: int) -> None:
        while (due := model.next_due(now, MAX_TIMED_OUT)) is not None:
            event = self._append(model, None, TimedOut(due))
            await self.committer.wait_for(event.seq)

    async def _redact(self, model: Model, before: int) -> bool:
        """Redact some of the decisions before this time. False: there are no more.

        The event, a snapshot and the redacted rows are in one commit: a later start uses that snapshot, and needs
        nothing that was redacted.
        """
        after = max(model.redacted_through, model.first_seq)
        rows = await asyncio.to_thread(self._old_decisions, model.name, after, before)
        needed = [row.seq for row in rows if not model.can_redact(events.decode(row))]
        rows = [row for row in rows if row.seq < min(needed)] if needed else rows
        if not rows:
            return False
        self._stop_broken_challengers(model)
        event = self._next_event(model, None, Redacted(rows[-1].seq))
        self._apply(model, event)
        try:
            start = Snapshot(model.name, model.seq, snapshots.pack(model))
        except ModelFileError as problem:
            raise self._quarantine(model.name, problem) from None
        self._log(event)
        self.committer.add_redaction(Redaction(start, [events.redacted(row) for row in rows]))
        for row in rows:
            self._remove_from_cache(model.name, row.event_id or "")
        await self.committer.wait_for(event.seq)
        return not needed

    async def _redact_deleted(self, name: str, until: int | None, before: int) -> bool:
        """Redact some of the decisions before this time that deleted models of this name made. False: no more."""
        rows = await asyncio.to_thread(self._old_decisions, name, self._redacted_deleted.get(name, 0), before, until)
        if not rows:
            return False
        self._redacted_deleted[name] = rows[-1].seq
        bodies = [events.redacted(row) for row in rows if not events.decode(row).body.is_redacted]
        if bodies:
            self.committer.add_redaction(Redaction(None, bodies))
            await self.committer.call(lambda: None)  # until it is on disk
        return True

    def _old_decisions(self, name: str, after: int, before: int, until: int | None = None) -> list[Row]:
        """The oldest decisions after event `after`, made before the time `before`."""
        found: list[Row] = []
        for row, _ in self.store.read(after, name, until):
            if row.at >= before or len(found) == MAX_REDACTED:
                break
            if row.kind in ("decided", "imported"):
                found.append(row)
        return found

    def _deleted(self) -> list[tuple[str, int | None]]:
        """The names of deleted models, each with the last event before the present model of this name."""
        lifetimes = self.store.lifetimes()
        present = {one.model: one.first - 1 for one in lifetimes if one.last is None}
        return sorted({(one.model, present.get(one.model)) for one in lifetimes if one.last is not None})

    async def sequence_drafts(self) -> None:
        """Give the decisions that replicas wrote their numbers in the log.

        The lock ensures that drafts are read only after those read before were committed with their numbers.
        """
        store = as_shared(self.store)
        async with self._sequencing:
            while rows := await asyncio.to_thread(store.drafts, MAX_SEQUENCED):
                for row in rows:
                    self._sequence(row)
                await self.committer.wait_for(self._seq)

    def _sequence(self, row: Row) -> None:
        event = events.decode(row._replace(seq=self._seq + 1, at=self._time()))
        if row.model in self.models and self.models[row.model].owns(event):
            with suppress(RefusedError):  # the model is quarantined; the decision was acknowledged
                self._apply(self.models[row.model], event)
        self._seq = event.seq
        self.committer.add(row._replace(seq=event.seq, at=event.at, draft=row.seq))
        self._add_to_cache(Known(event))

    async def _publish(self, store: SharedStore) -> None:
        """Publish the models that have changed to the replicas."""
        started, changed = time.monotonic(), []
        for name, model in list(self.models.items()):
            learner = model.promoted, model.version, model.adapter.features, model.adapter.labels, model.adapter.epsilon
            state = (*learner, tuple(model.retired), model.feedback_timeout, model.on_timeout, model.mode)
            if self._published.get(name) != state:
                try:
                    changed.append(Snapshot(name, model.seq, snapshots.pack(model, for_replica=True)))
                except ModelFileError as problem:
                    self._quarantine(name, problem)
                else:
                    self._published[name] = state
        duration = time.monotonic() - started
        self._publish_at = started + PUBLISH_RATIO * duration
        if changed:
            await self.committer.call(lambda: store.publish([one for one in changed if self._is_current(one)]))

    def _is_current(self, snapshot: Snapshot) -> bool:
        model = self.models.get(snapshot.model)
        return model is not None and snapshot.seq >= model.first_seq  # otherwise it was deleted meanwhile

    def take_snapshot(self, model: Model) -> bool:
        """Take a snapshot, committed together with all events it contains. False: the model is quarantined instead."""
        started = time.monotonic()
        if model.name in self.quarantined:
            return False
        try:
            self._stop_broken_challengers(model)
            body = snapshots.pack(model)
        except ModelFileError as problem:
            self._quarantine(model.name, problem)
            return False
        self.committer.add_snapshot(Snapshot(model.name, model.seq, body))
        duration = time.monotonic() - started
        next_at = started + max(SNAPSHOT_SECONDS, SNAPSHOT_RATIO * duration)
        self._last_snapshots[model.name] = LastSnapshot(model.seq, next_at)
        return True

    def _stop_broken_challengers(self, model: Model) -> None:
        """Stop challengers that cannot be saved, so that the model can. The event makes a replay stop them as well."""
        for name, reason in snapshots.broken_challengers(model).items():
            self._append(model, None, ChallengerStopped(name, reason))

    def take_snapshots(self) -> None:
        """Take a snapshot of each model that has changed since its last one."""
        for model in list(self.models.values()):
            if model.seq != self._last_snapshots[model.name].seq:
                self.take_snapshot(model)
