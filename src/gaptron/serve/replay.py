"""Replay the event log: from the newest snapshots at a start, or completely to verify the log."""

import sys
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from gaptron.errors import ModelFileError
from gaptron.serve import events, snapshots
from gaptron.serve.events import Decided, Event, Row
from gaptron.serve.model_state import Model, ReplayMismatchError
from gaptron.serve.store import Snapshot, Store, StoreUnavailableError, living


class Follower:
    """The models of a store, replayed from their snapshots, and kept up to date while another process is the leader.

    A model that cannot be restored is in `quarantined` with the reason; all others are in `models`.
    """

    def __init__(self, store: Store, *, check: bool = True) -> None:
        """Load nothing yet.

        Args:
            store: holds the log.
            check: recompute every decision and compare it with the log, to the bit.
        """
        self._store, self._check = store, check
        self.models: dict[str, Model] = {}
        self.quarantined: dict[str, Exception] = {}
        self._first: dict[str, int] = {}  # seq of the first event of these models
        self.seq = 0  # of the last event that was replayed

    def catch_up(self) -> None:
        """Replay what was written since the last call."""
        last, _ = self._store.last()
        if last <= self.seq:
            return
        before, self.seq = self.seq, last
        found = {name: first for name, first in living(self._store).items() if first <= last}
        for name in [name for name, first in self._first.items() if found.get(name) != first]:  # deleted
            self.models.pop(name, None)
            self.quarantined.pop(name, None)
            del self._first[name]
        for name, first in found.items():
            if name not in self._first:
                self._first[name] = first
                self._restore(name, last)
        if before:
            for row, decision in self._store.read(before, until=last):
                model = self.models.get(row.model)
                if model is not None and row.seq > model.seq:
                    try:
                        _apply(model, row, decision, check=self._check)
                    except Exception:  # such as features that the leader has redacted meanwhile
                        self._restore(row.model, last)

    def check_version(self) -> None:
        """Raise if no model is replayed as it was logged: then this version of gaptron computes other numbers."""
        reasons = list(self.quarantined.values())
        if reasons and not self.models and all(isinstance(one, ReplayMismatchError) for one in reasons):
            raise ReplayMismatchError(f"{reasons[0]}. After an upgrade start once with --trust-log")

    def _restore(self, name: str, until: int) -> None:
        """Load a model, or put it into quarantine."""
        self.models.pop(name, None)
        try:
            self.models[name] = restore(self._store, name, until, check=self._check)
        except StoreUnavailableError:
            raise
        except Exception as problem:
            self.quarantined[name] = problem


def restore(store: Store, name: str, until: int | None = None, *, check: bool = True) -> Model:
    """Return a model as it was after event `until`, from its newest snapshot that is not damaged.

    Args:
        store: holds the log. The leader may be using it.
        name: the name of the model.
        until: the last event to replay; None: all.
        check: recompute every decision and compare it with the log, to the bit.

    Returns:
        The model. Its learner is finite.

    Raises:
        ReplayMismatchError: a recomputed decision differs.
        ModelFileError: every snapshot from which the log could be replayed is damaged, or the learner is not finite.
    """
    first = living(store)[name]
    while True:
        start = _replay_start(store, name)
        try:
            model = _replayed(store, name, first, _newest_sound(store, name, start), until, check)
        except Exception:
            if _replay_start(store, name) == start:
                raise  # otherwise the leader redacted decisions meanwhile, and there is a new start
        else:
            snapshots.pack(model, for_replica=True)  # raises if its learner is not finite
            return model


def _replay_start(store: Store, name: str) -> Snapshot | None:
    return next(iter(store.replay_starts(name)), None)


def _newest_sound(store: Store, name: str, start: Snapshot | None) -> Model | None:
    """The newest model that was saved and can be read; None: replay the whole log.

    Where decisions were redacted, nothing from before helps, because their features are missing.
    """
    least = 0 if start is None else start.seq
    for seq in sorted((seq for model, seq in store.snapshots() if model == name and seq >= least), reverse=True):
        body = store.snapshot(name, seq)
        if body is not None:  # otherwise it was replaced by a newer one
            try:
                return snapshots.unpack(body)
            except ModelFileError as problem:
                print(f"gaptron: the snapshot of {name} at event {seq} is skipped: {problem}", file=sys.stderr)
    return None if start is None else snapshots.unpack(start.body)


def load_models(
    store: Store, *, check: bool = True, on_event: Callable[[Event, Model], None] = lambda event, model: None
) -> dict[str, Model]:
    """Return the models that result from replaying the whole log, without snapshots.

    Where features were redacted, replay starts with the state saved at that point, because earlier decisions cannot be
    recomputed.

    Args:
        store: holds the log.
        check: recompute every decision and compare it with the log, to the bit.
        on_event: called after each event with the event and its model.

    Returns:
        The models by name.

    Raises:
        ReplayMismatchError: a recomputed decision differs.
    """
    starts = {start.model: snapshots.unpack(start.body) for start in store.replay_starts()}
    return {
        name: _replayed(store, name, first, starts.get(name), None, check, on_event)
        for name, first in living(store).items()
    }


def _replayed(
    store: Store,
    name: str,
    first: int,
    model: Model | None,
    until: int | None,
    check: bool,
    on_event: Callable[[Event, Model], None] = lambda event, model: None,
) -> Model:
    """Replay what comes after the last event of a model, or everything."""
    for row, decision in store.read(first - 1 if model is None else model.seq, name, until):
        if model is None:
            event = events.decode(row)
            model = Model(event.body)
            model.apply(event)
        else:
            event = _apply(model, row, decision, check=check)
        on_event(event, model)
    assert model is not None
    return model


def _apply(model: Model, row: Row, decision: Row | None, *, check: bool) -> Event:
    event = events.decode(row)
    model.apply(event, None if decision is None else events.decode(decision), check=check)
    return event


def _replica_states(store: Store) -> Counter[tuple[str, int]]:
    """The states (model, seq) that replicas decided with, and how often each was used."""
    uses: Counter[tuple[str, int]] = Counter()
    for row, _ in store.read():
        if row.kind == "decided" and '"replica":' in row.body:
            stamp = events.decode(row).body.replica
            if stamp is not None:  # the text may also be in a feature
                uses[row.model, stamp.seq] += 1
    return uses


class Replayed(NamedTuple):
    """What a replay compared."""

    events: int
    decisions: int
    snapshots: int
    models: dict[str, Model]
    starts: dict[str, int]  # models with redacted decisions, and the event after which their replay started


def replay(store: Store, progress: Callable[[int], None] = lambda events: None) -> Replayed:
    """Replay the whole log, and compare every decision and every snapshot.

    Args:
        store: holds the log. A service may be using it.
        progress: called now and then with the number of events replayed since the last call.

    Returns:
        What was compared.

    Raises:
        ReplayMismatchError: a decision or a snapshot differs.
    """
    while True:
        starts = _starts(store)
        try:
            return _replay(store, starts, progress)
        except ReplayMismatchError:
            if _starts(store) == starts:
                raise  # otherwise the service redacted decisions meanwhile, and replay has a new start


def _starts(store: Store) -> dict[str, int]:
    return {start.model: start.seq for start in store.replay_starts()}


def _replay(store: Store, starts: dict[str, int], progress: Callable[[int], None]) -> Replayed:
    listed = [(name, seq) for name, seq in store.snapshots() if seq > starts.get(name, 0)]
    saved = {one: body for one in listed if (body := store.snapshot(*one)) is not None}  # None: replaced by a newer one
    uses = _replica_states(store)
    replica_models: dict[tuple[str, int], Model] = {}
    total, decisions, compared = 0, 0, 0

    def on_event(event: Event, model: Model) -> None:
        nonlocal total, decisions, compared
        state = (event.model, event.seq)
        total += 1
        decisions += isinstance(event.body, Decided) and model.owns(event)
        if state in saved:
            body = saved.pop(state)
            snapshots.unpack(body)  # raises if it is damaged
            if snapshots.checksum(body) != snapshots.checksum(snapshots.pack(model)):
                raise ReplayMismatchError(
                    f"the snapshot of {event.model} at event {event.seq} differs from the replayed model"
                )
            compared += 1
        if total % 1000 == 0:
            progress(1000)
        if state in uses:
            replica_models[state] = snapshots.unpack(snapshots.pack(model, for_replica=True))
        if isinstance(event.body, Decided) and event.body.replica is not None:
            used = (event.model, event.body.replica.seq)
            if used[1] <= starts.get(event.model, 0) or not model.owns(event):
                return  # decided with a state before the start of the replay, or with a deleted model
            if used not in replica_models:
                raise ReplayMismatchError(
                    f"event {event.seq} was decided with {event.model} after event {used[1]}, which is not in the log"
                )
            replica_models[used].compare_replica_decision(event)
            uses[used] -= 1
            if not uses[used]:
                del replica_models[used]

    models = load_models(store, on_event=on_event)
    if saved:
        name, seq = next(iter(saved))
        raise ReplayMismatchError(f"there is a snapshot of {name} at event {seq}, which is not in the log")
    return Replayed(total, decisions, compared, models, starts)
