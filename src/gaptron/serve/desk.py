"""The desk: where requests become entries. It alone owns the models; everything happens in the event loop's thread.

An entry is applied to its model at once and written by the committer; the answer goes out when it is on disk. A retry
of a request, also while the first is under way, gets the first one's answer.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import structs

from gaptron.errors import InputError, SettingError
from gaptron.event_id import new_event_id
from gaptron.serve import adapter, decisions, entries, snapshots
from gaptron.serve.committer import Committer
from gaptron.serve.decisions import Known, check_event, check_same, without_event
from gaptron.serve.entries import Answered, Body, Changed, Created, Decided, Entry, Forgot, Row, Ticked
from gaptron.serve.fold import Model
from gaptron.serve.problems import RefusedError, invalid, not_now, unknown
from gaptron.serve.store import Forgetting, SharedStore, Snapshot, Store, shared
from gaptron.serve.words import (
    ChangedModel,
    DecisionAnswer,
    DecisionRequest,
    DecisionResult,
    DecisionShown,
    NewModel,
    Outcome,
    OutcomeAnswer,
    OutcomeResult,
    Problem,
    SparseX,
)

MOST_MODELS = 100
MOST_WAITING_ROWS = 10_000  # not on disk yet; past it requests are refused
MOST_OPEN = 200_000  # decisions of a model whose wait is not over
REMEMBERED = 20_000  # decisions kept in memory, so that their answers need not be looked up
TICK, MOST_IN_TICK = 1.0, 500  # seconds between looks at what is due; how many are learned without a pause
SNAPSHOT_SECONDS, SNAPSHOT_PART = 10.0, 200.0  # between two of a model, and at least so many times what one takes
MOST_TAKEN = 500  # decisions of deciders that get their places without a pause
FORGET_EVERY, MOST_FORGOTTEN = 86_400_000_000, 1000  # µs between looks for what is too old; decisions in one commit
PUBLISH_PART = 20.0  # models are not packed for deciders in more than one part of so many


def clock() -> int:
    """µs since 1970."""
    return time.time_ns() // 1000


class Counts:
    """What happened here that is not in the log."""

    def __init__(self) -> None:
        self.duplicates = self.conflicts = self.refused = self.retries = 0


class Kept(NamedTuple):
    """A model's last snapshot: after which entry, and when the next may be taken."""

    seq: int
    again: float


class Desk:
    """The models, and the way into the log."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        models: dict[str, Model],
        *,
        now: Callable[[], int],
        deciders: SharedStore | None = None,
        keep_days: float | None = None,
    ) -> None:
        self._keep = None if keep_days is None else round(86_400e6 * keep_days)
        self._forget_at = 0  # µs
        self.store, self.committer, self.models = store, committer, models
        self._deciders = deciders  # None: we decide ourselves
        self._taking = asyncio.Lock()
        self._published: dict[str, tuple[Any, ...]] = {}  # what each model was when it was published
        self._publish_at = 0.0
        self._seq, self._at = store.last()
        committer.committed = self._seq
        self._now = now
        self._recent: OrderedDict[tuple[str, str], Known] = OrderedDict()
        self._warm: set[tuple[str, bool]] = set()
        self._kept = {name: Kept(0, time.monotonic() + SNAPSHOT_SECONDS) for name in models}
        self.counts: dict[str, Counts] = {name: Counts() for name in models}

    # --- models ---------------------------------------------------------------------------------------------------

    def model(self, name: str) -> Model:
        """The model of this name."""
        model = self.models.get(name)
        if model is None:
            raise unknown(f"there is no model {name!r}: make it with POST /v1/models")
        return model

    async def create(self, spec: NewModel) -> Model:
        """Make a model. It is compiled first, so that its first decision is quick."""
        self._check_room(spec.name)
        if len(set(spec.labels)) != len(spec.labels):
            raise invalid("labels holds a label twice")
        try:
            await asyncio.to_thread(adapter.try_out, spec)
            created = Created(spec, secrets.token_hex(32))
            model = Model(created)
        except (InputError, SettingError) as problem:
            raise invalid(str(problem)) from None
        self._check_room(spec.name)  # again: another may have come while we compiled
        self.models[spec.name] = model
        self._kept[spec.name], self.counts[spec.name] = Kept(0, time.monotonic() + SNAPSHOT_SECONDS), Counts()
        self._warm.add((spec.name, False))
        model.seq = self._enter(model, None, created).seq
        await self.committer.until(model.seq)
        return model

    def _check_room(self, name: str) -> None:
        if name in self.models:
            raise RefusedError(409, "exists", f"there is a model {name!r} already")
        if len(self.models) >= MOST_MODELS:
            raise invalid(f"there are {MOST_MODELS} models, and more are not served")

    async def change(self, name: str, change: ChangedModel) -> Model:
        """Change a model's rules or add labels."""
        model = self.model(name)
        model.check_change(change)
        entry = self._enter(model, None, Changed(change))
        await self.committer.until(entry.seq)
        return model

    # --- decisions ------------------------------------------------------------------------------------------------

    async def decide(self, name: str, request: DecisionRequest) -> tuple[DecisionAnswer, bool]:
        """A decision, on disk; and whether it was there before."""
        model = self.model(name)
        await self._prepare(model, [request])
        known, again = self._decide(model, request)
        await self.committer.until(known.decided.seq)
        return self._answer_of(known), again

    async def decide_many(self, name: str, requests: list[DecisionRequest]) -> list[DecisionResult]:
        """Decisions in their order, in one commit; a problem in the place of each that is refused."""
        model = self.model(name)
        await self._prepare(model, requests)
        results: list[Known | Problem] = []
        for request in requests:
            try:
                results.append(self._decide(model, request)[0])
            except RefusedError as refusal:
                results.append(refusal.problem(request.event_id))
        await self.committer.until(max((known.decided.seq for known in results if isinstance(known, Known)), default=0))
        return [
            DecisionResult(decision=self._answer_of(known))
            if isinstance(known, Known)
            else DecisionResult(problem=known)
            for known in results
        ]

    async def _prepare(self, model: Model, requests: list[DecisionRequest]) -> None:
        """All that may take a while; behind it, everything happens at once."""
        for request in requests:
            await self._warm_up(model, request)
        await self._recall(model, [request.event_id for request in requests if request.event_id])

    def _decide(self, model: Model, request: DecisionRequest) -> tuple[Known, bool]:
        name, event, request = model.name, request.event_id, without_event(request)
        if event is None:
            event = new_event_id()
        check_event(event)
        known = self._recent.get((name, event))
        if known is not None:
            try:
                check_same(known, request)
            except RefusedError:
                self.counts[name].refused += 1
                raise
            self.counts[name].retries += 1
            return known, True
        self._check_pressure()
        if len(model.waiting) >= MOST_OPEN:
            raise not_now(f"{MOST_OPEN} decisions of this model wait for their answers")
        at = self._time()
        try:
            decided = model.look(request, event, at)
        except RefusedError:
            self.counts[name].refused += 1
            raise
        known = Known(self._enter(model, event, decided, at=at))
        self._remember(known)
        return known, False

    def _check_pressure(self) -> None:
        if self.committer.waiting > MOST_WAITING_ROWS:
            raise not_now("too many requests wait for the disk")

    async def _warm_up(self, model: Model, request: DecisionRequest) -> None:
        """Compile for this kind of rows in another thread, before the first of them."""
        sparse = isinstance(request.x, SparseX)
        if (model.name, sparse) in self._warm:
            return
        if not sparse or isinstance(model.spec.features, int):
            await asyncio.to_thread(adapter.try_out, model.spec, sparse=sparse)
        self._warm.add((model.name, sparse))

    async def show(self, name: str, event: str) -> DecisionShown:
        """A decision and its answer, on disk."""
        model = self.model(name)
        known = await self._known(model, event)
        await self.committer.until(known.seq)
        return decisions.shown(known, model.adapter.labels)

    def _answer_of(self, known: Known) -> DecisionAnswer:
        return decisions.answer(known, self.models[known.decided.model].adapter.labels)

    # --- outcomes -------------------------------------------------------------------------------------------------

    async def answer(self, name: str, event: str, outcome: Outcome) -> OutcomeAnswer:
        """An outcome, on disk."""
        model = self.model(name)
        await self._recall(model, [event])
        answer, seq = self._answer(model, event, outcome)
        await self.committer.until(seq)
        return answer

    async def answer_many(self, name: str, outcomes: list[tuple[str, Outcome]]) -> list[OutcomeResult]:
        """Outcomes in their order, in one commit; a problem in the place of each that is refused."""
        model = self.model(name)
        await self._recall(model, [event for event, _ in outcomes])
        results: list[OutcomeResult] = []
        last = 0
        for event, outcome in outcomes:
            try:
                answer, seq = self._answer(model, event, outcome)
            except RefusedError as refusal:
                results.append(OutcomeResult(problem=refusal.problem(event)))
            else:
                results.append(OutcomeResult(outcome=answer))
                last = max(last, seq)
        await self.committer.until(last)
        return results

    def _answer(self, model: Model, event: str, outcome: Outcome) -> tuple[OutcomeAnswer, int]:
        counts, known = self.counts[model.name], self._found(model, event)
        decided: Decided = known.decided.body
        if known.answered is not None:
            if known.answered.body.outcome != outcome:
                counts.conflicts += 1
                stands = known.answered.body.outcome
                raise RefusedError(409, "conflict", f"event {event!r} has another answer, which stands", stands)
            counts.duplicates += 1
            return OutcomeAnswer(event_id=event, status="duplicate"), known.seq
        model.check_outcome(outcome, decided)
        self._check_pressure()
        at = self._time()
        late = model.is_late(known.decided, at)
        answered = self._enter(model, event, Answered(outcome), decided=known.decided, at=at)
        self._remember(structs.replace(known, answered=answered))
        return OutcomeAnswer(event_id=event, status="late" if late else "recorded"), answered.seq

    # --- the log --------------------------------------------------------------------------------------------------

    def _time(self) -> int:
        """Now; never before the last entry, whatever the clock does."""
        return max(self._at, self._now())

    def _enter(
        self, model: Model, event: str | None, body: Body, *, decided: Entry | None = None, at: int | None = None
    ) -> Entry:
        """Apply an entry to its model and let it be written."""
        at = self._time() if at is None else at
        entry = Entry(self._seq + 1, model.name, event, at, body)
        model.apply(entry, decided, check=False)
        self._seq, self._at = entry.seq, at
        self.committer.add(entry.row())
        return entry

    async def _known(self, model: Model, event: str) -> Known:
        await self._recall(model, [event])
        return self._found(model, event)

    def _found(self, model: Model, event: str) -> Known:
        check_event(event)
        known = self._recent.get((model.name, event))
        if known is None:
            raise unknown(f"model {model.name!r} has made no decision for event {event!r}")
        return known

    async def _recall(self, model: Model, events: list[str]) -> None:
        """Bring to memory what the log knows of these events."""
        missing = [event for event in events if (model.name, event) not in self._recent]
        if not missing:
            return
        if self.store.quick:
            found = self.store.find(model.name, missing)
        else:
            found = await asyncio.to_thread(self.store.find, model.name, missing)
        if any(rows.decision.seq < 0 for rows in found.values()):
            await self.take_in()
        for event, rows in found.items():
            if (model.name, event) not in self._recent:  # what memory has is newer
                answered = None if rows.outcome is None else entries.read(rows.outcome)
                self._remember(Known(entries.read(rows.decision), answered))

    def _remember(self, known: Known) -> None:
        entry = known.decided
        assert entry.event is not None
        self._recent[entry.model, entry.event] = known
        self._recent.move_to_end((entry.model, entry.event))
        while len(self._recent) > REMEMBERED:
            oldest = next(iter(self._recent))
            if self._recent[oldest].seq > self.committer.committed:
                break  # not on disk: nobody could find it again
            del self._recent[oldest]

    # --- as time goes by --------------------------------------------------------------------------------------------

    async def tick(self) -> None:
        """Take in what deciders decided, learn from what is due, publish, and take snapshots that are due."""
        if self._deciders is not None:
            await self.take_in()
        upto = self._time()
        for model in list(self.models.values()):
            while (due := model.next_due(upto, MOST_IN_TICK)) is not None:
                entry = self._enter(model, None, Ticked(due))
                await self.committer.until(entry.seq)
        for model in list(self.models.values()):
            kept = self._kept[model.name]
            if model.seq != kept.seq and time.monotonic() >= kept.again:
                self.keep(model)
        if self._deciders is not None and time.monotonic() >= self._publish_at:
            await self._publish(self._deciders)

        if self._keep is not None and upto >= self._forget_at:
            self._forget_at = upto + FORGET_EVERY
            for model in list(self.models.values()):
                while await self._forget(model, upto - self._keep):
                    pass

    async def _forget(self, model: Model, before: int) -> bool:
        """Forget what some of the decisions before this time were made for. False: there are no more.

        Entry, snapshot and what is left of the decisions go into one commit: whoever starts behind it begins with that
        snapshot, and needs nothing that was forgotten.
        """
        rows = await asyncio.to_thread(self._old_decisions, model, before)
        held = [row.seq for row in rows if not model.may_forget(entries.read(row))]
        rows = [row for row in rows if row.seq < min(held)] if held else rows
        if not rows:
            return False
        entry = self._enter(model, None, Forgot(rows[-1].seq))
        start = Snapshot(model.name, model.seq, snapshots.packed(model))
        self.committer.forget(Forgetting(start, [entries.forgetting(row) for row in rows]))
        for row in rows:
            self._recent.pop((model.name, row.event or ""), None)
        await self.committer.until(entry.seq)
        return not held

    def _old_decisions(self, model: Model, before: int) -> list[Row]:
        """The first of those that are not forgotten."""
        found: list[Row] = []
        for row, _ in self.store.read(model.forgotten, model.name):
            if row.at >= before or len(found) == MOST_FORGOTTEN:
                break
            if row.kind == "decision":
                found.append(row)
        return found

    async def take_in(self) -> None:
        """Give the decisions that deciders wrote their places in the log.

        One at a time: what is read under the lock is behind every commit of those before.
        """
        store = shared(self.store)
        async with self._taking:
            while rows := await asyncio.to_thread(store.drafts, MOST_TAKEN):
                for row in rows:
                    self._take(row)
                await self.committer.until(self._seq)

    def _take(self, row: Row) -> None:
        entry = entries.read(row._replace(seq=self._seq + 1, at=self._time()))
        self.models[row.model].apply(entry, check=False)
        self._seq, self._at = entry.seq, entry.at
        self.committer.add(row._replace(seq=entry.seq, at=entry.at, draft=row.seq))
        self._remember(Known(entry))

    async def _publish(self, store: SharedStore) -> None:
        """Let deciders have the models that have changed; not so often that it takes up the time."""
        started, changed = time.monotonic(), []
        for name, model in self.models.items():
            now = (model.version, model.adapter.labels, model.wait, model.default, model.mode, model.adapter.width)
            if self._published.get(name) != now:
                self._published[name] = now
                changed.append(Snapshot(name, model.seq, snapshots.packed(model, to_decide=True)))
        took = time.monotonic() - started
        self._publish_at = started + PUBLISH_PART * took
        if changed:
            await self.committer.call(lambda: store.publish(changed))

    def keep(self, model: Model) -> None:
        """Take a snapshot, to be written with all entries it knows of."""
        started = time.monotonic()
        self.committer.add_snapshot(Snapshot(model.name, model.seq, snapshots.packed(model)))
        took = time.monotonic() - started
        self._kept[model.name] = Kept(model.seq, started + max(SNAPSHOT_SECONDS, SNAPSHOT_PART * took))

    def keep_changed(self) -> None:
        """Take a snapshot of each model that has changed since its last one."""
        for model in self.models.values():
            if model.seq != self._kept[model.name].seq:
                self.keep(model)
