"""Replay the event log: from the newest snapshots at a start, or completely to verify the log."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from gaptron.serve import events, snapshots
from gaptron.serve.events import Decided, Event
from gaptron.serve.model_state import Model, ReplayMismatchError
from gaptron.serve.store import Store


def load_models(
    store: Store,
    *,
    check: bool = True,
    from_start: bool = False,
    on_event: Callable[[Event, Model], None] = lambda event, model: None,
) -> dict[str, Model]:
    """Return the models that result from replaying the log.

    Args:
        store: holds the log.
        check: recompute every decision and compare it with the log, to the bit.
        from_start: ignore snapshots. Where features were redacted, replay starts with the state saved at that point,
            because earlier decisions cannot be recomputed.
        on_event: called after each event with the event and its model.

    Raises:
        ReplayMismatchError: a recomputed decision differs.
    """
    saved: dict[str, bytes | None]
    if from_start:
        saved = {start.model: start.body for start in store.replay_starts()}
    else:
        saved = {name: store.snapshot(name, seq) for name, seq in dict(store.snapshots()).items()}
    return {name: _load_model(store, name, saved.get(name), check, on_event) for name, _ in store.models()}


def _load_model(
    store: Store, name: str, snapshot: bytes | None, check: bool, on_event: Callable[[Event, Model], None]
) -> Model:
    model = None if snapshot is None else snapshots.unpack(snapshot)
    for row, decision in store.read(0 if model is None else model.seq, name):
        event = events.decode(row)
        if model is None:
            model = Model(event.body)
            model.seq = event.seq
        else:
            model.apply(event, None if decision is None else events.decode(decision), check=check)
        on_event(event, model)
    assert model is not None
    return model


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
        decisions += isinstance(event.body, Decided)
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
            if used[1] <= starts.get(event.model, 0):
                return  # decided with a state before the start of the replay
            if used not in replica_models:
                raise ReplayMismatchError(
                    f"event {event.seq} was decided with {event.model} after event {used[1]}, which is not in the log"
                )
            replica_models[used].compare_replica_decision(event)
            uses[used] -= 1
            if not uses[used]:
                del replica_models[used]

    models = load_models(store, from_start=True, on_event=on_event)
    if saved:
        name, seq = next(iter(saved))
        raise ReplayMismatchError(f"there is a snapshot of {name} at event {seq}, which is not in the log")
    return Replayed(total, decisions, compared, models, starts)
