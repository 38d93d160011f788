"""The desk: where requests become entries. It alone owns the models; everything happens in the event loop's thread.

An entry is applied to its model at once and written by the committer; the answer goes out when it is on disk. A retry
of a request, also while the first is under way, gets the first one's answer.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from gaptron.errors import InputError, SettingError
from gaptron.event_id import new_event_id
from gaptron.serve import adapter, entries, snapshots
from gaptron.serve.committer import Committer
from gaptron.serve.entries import Answered, Body, Changed, Created, Decided, Entry, Ticked
from gaptron.serve.fold import Model
from gaptron.serve.problems import RefusedError, invalid, not_now, unknown
from gaptron.serve.store import Snapshot, Store
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
    is_event,
)

MOST_MODELS = 100
MOST_WAITING_ROWS = 10_000  # not on disk yet; past it requests are refused
MOST_OPEN = 200_000  # decisions of a model whose wait is not over
REMEMBERED = 20_000  # decisions kept in memory, so that their answers need not be looked up
TICK, MOST_IN_TICK = 1.0, 500  # seconds between looks at what is due; how many are learned without a pause
SNAPSHOT_ROWS, SNAPSHOT_SECONDS = 50_000, 300.0


class Known(NamedTuple):
    """A decision of the log and its answer if there is one."""

    decided: Entry
    answered: Entry | None = None

    @property
    def seq(self) -> int:
        """The last entry about it."""
        return self.decided.seq if self.answered is None else self.answered.seq


def clock() -> int:
    """µs since 1970."""
    return time.time_ns() // 1000


class Counts:
    """What happened here that is not in the log."""

    def __init__(self) -> None:
        self.duplicates = self.conflicts = self.refused = self.retries = 0


class Desk:
    """The models, and the way into the log."""

    def __init__(self, store: Store, committer: Committer, models: dict[str, Model], *, now: Callable[[], int]) -> None:
        self.store, self.committer, self.models = store, committer, models
        self._seq, self._at = store.last()
        committer.committed = self._seq
        self._now = now
        self._recent: OrderedDict[tuple[str, str], Known] = OrderedDict()
        self._warm: set[tuple[str, bool]] = set()
        self._kept = {name: (model.version, time.monotonic()) for name, model in models.items()}
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
        self._kept[spec.name], self.counts[spec.name] = (0, time.monotonic()), Counts()
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
        return self.decision_answer(known), again

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
            DecisionResult(decision=self.decision_answer(known))
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
        name, event, request = model.name, request.event_id, _without_event(request)
        if event is None:
            event = new_event_id()
        _check_event(event)
        known = self._recent.get((name, event))
        if known is not None:
            if known.decided.body.request != request:
                self.counts[name].refused += 1
                raise RefusedError(422, "other-request", f"event {event!r} was decided for another request")
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
        known = await self._known(self.model(name), event)
        await self.committer.until(known.seq)
        outcome = None if known.answered is None else known.answered.body.outcome
        return DecisionShown(**self._fields(known), at=as_time(known.decided.at), outcome=outcome)

    def decision_answer(self, known: Known) -> DecisionAnswer:
        """A decision in the words of the answer, always the same."""
        return DecisionAnswer(**self._fields(known))

    def _fields(self, known: Known) -> dict[str, Any]:
        entry, decided = known.decided, known.decided.body
        labels = self.models[entry.model].adapter.labels
        return {
            "event_id": entry.event,
            "label": decided.label,
            "probability": decided.probability,
            "model": entry.model,
            "seq": entry.seq,
            "version": decided.version,
            "distribution": None if decided.distribution is None else dict(zip(labels, decided.distribution)),
            "would": decided.would,
            "answer_by": None if decided.due is None else as_time(decided.due),
        }

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
        late = model.is_late(event, decided, at)
        answered = self._enter(model, event, Answered(outcome), decided=known.decided, at=at)
        self._remember(known._replace(answered=answered))
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
        _check_event(event)
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
        """Learn from what is due, and take snapshots that are due."""
        upto = self._time()
        for model in list(self.models.values()):
            while (due := model.next_due(upto, MOST_IN_TICK)) is not None:
                entry = self._enter(model, None, Ticked(due))
                await self.committer.until(entry.seq)
        for model in list(self.models.values()):
            version, when = self._kept[model.name]
            grown, old = model.version - version, time.monotonic() - when
            if grown >= SNAPSHOT_ROWS or (grown and old >= SNAPSHOT_SECONDS):
                self.keep(model)

    def keep(self, model: Model) -> None:
        """Take a snapshot, to be written with all entries it knows of."""
        self.committer.add_snapshot(Snapshot(model.name, model.seq, snapshots.packed(model)))
        self._kept[model.name] = model.version, time.monotonic()

    def keep_changed(self) -> None:
        """Take a snapshot of each model that has learned since its last one."""
        for model in self.models.values():
            if model.version != self._kept[model.name][0]:
                self.keep(model)


def as_time(at: int) -> str:
    """In the words of ISO 8601."""
    return datetime.fromtimestamp(at / 1e6, UTC).isoformat().replace("+00:00", "Z")


def _check_event(event: str) -> None:
    if not is_event(event):
        raise invalid("an event_id is 1 to 128 letters, digits and . _ : - and begins with a letter or digit")


def _without_event(request: DecisionRequest) -> DecisionRequest:
    return DecisionRequest(
        x=request.x,
        features=request.features,
        among=request.among,
        exclude=request.exclude,
        advice=request.advice,
        played=request.played,
    )
