"""The models of a store: folded from their snapshots at a start, or from nothing to prove that the log is the truth."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from gaptron.serve import entries, snapshots
from gaptron.serve.entries import Entry
from gaptron.serve.fold import DifferenceError, Model
from gaptron.serve.store import Store


def folded(
    store: Store,
    *,
    check: bool = True,
    from_nothing: bool = False,
    seen: Callable[[Entry, Model], None] = lambda entry, model: None,
) -> dict[str, Model]:
    """The models as the log makes them. `check`: every decision is made again and compared, to the bit.

    Models begin with their newest snapshot, unless `from_nothing`; where features were forgotten, that is the model as
    it was then, for what is older cannot be made again. `seen` is told each entry and its model behind it.
    """
    kept: dict[str, bytes | None]
    if from_nothing:
        kept = {start.model: start.body for start in store.starts()}
    else:
        kept = {name: store.snapshot(name, seq) for name, seq in dict(store.snapshots()).items()}
    return {name: _folded(store, name, kept.get(name), check, seen) for name, _ in store.models()}


def _folded(
    store: Store, name: str, snapshot: bytes | None, check: bool, seen: Callable[[Entry, Model], None]
) -> Model:
    """One model, from a snapshot or from nothing."""
    model = None if snapshot is None else snapshots.unpacked(snapshot)
    for row, decision in store.read(0 if model is None else model.seq, name):
        entry = entries.read(row)
        if model is None:
            model = Model(entry.body)
            model.seq = entry.seq
        else:
            model.apply(entry, None if decision is None else entries.read(decision), check=check)
        seen(entry, model)
    assert model is not None
    return model


def _used_by_deciders(store: Store) -> Counter[tuple[str, int]]:
    """The entries whose models deciders decided with, and how often each."""
    uses: Counter[tuple[str, int]] = Counter()
    for row, _ in store.read():
        if row.kind == "decision" and '"made":' in row.body:
            made = entries.read(row).body.made
            if made is not None:  # the word may stand in a feature
                uses[row.model, made.seq] += 1
    return uses


class Replayed(NamedTuple):
    """What a replay compared."""

    entries: int
    decisions: int
    snapshots: int
    models: dict[str, Model]
    starts: dict[str, int]  # models of which something was forgotten, and the entry behind which the replay began


def replay(store: Store, progress: Callable[[int], None] = lambda entries: None) -> Replayed:
    """Fold from nothing; compare every decision, and all of every model with each snapshot. Or DifferenceError."""
    while True:
        starts = _starts(store)
        try:
            return _replay(store, starts, progress)
        except DifferenceError:
            if _starts(store) == starts:
                raise  # or the service forgot something meanwhile, and there is a new start


def _starts(store: Store) -> dict[str, int]:
    return {start.model: start.seq for start in store.starts()}


def _replay(store: Store, starts: dict[str, int], progress: Callable[[int], None]) -> Replayed:
    listed = [(name, seq) for name, seq in store.snapshots() if seq > starts.get(name, 0)]
    kept = {one: body for one in listed if (body := store.snapshot(*one)) is not None}  # None: there are newer ones
    uses = _used_by_deciders(store)
    as_it_was: dict[tuple[str, int], Model] = {}
    total, decisions, compared = 0, 0, 0

    def seen(entry: Entry, model: Model) -> None:
        nonlocal total, decisions, compared
        place = (entry.model, entry.seq)
        total += 1
        decisions += isinstance(entry.body, entries.Decided)
        if place in kept:
            body = kept.pop(place)
            snapshots.unpacked(body)  # or it is damaged, and says so
            if snapshots.checksum(body) != snapshots.checksum(snapshots.packed(model)):
                raise DifferenceError(f"the snapshot of {entry.model} at entry {entry.seq} is not what the log makes")
            compared += 1
        if total % 1000 == 0:
            progress(1000)
        if place in uses:
            as_it_was[place] = snapshots.unpacked(snapshots.packed(model, to_decide=True))
        if isinstance(entry.body, entries.Decided) and entry.body.made is not None:
            then = (entry.model, entry.body.made.seq)
            if then[1] <= starts.get(entry.model, 0):
                return  # made with a model of before
            if then not in as_it_was:
                raise DifferenceError(f"entry {entry.seq} was made with {entry.model} at an entry that is not there")
            as_it_was[then].compare_made(entry)
            uses[then] -= 1
            if not uses[then]:
                del as_it_was[then]

    models = folded(store, from_nothing=True, seen=seen)
    if kept:
        name, seq = next(iter(kept))
        raise DifferenceError(f"there is a snapshot of {name} at entry {seq}, which the log does not have")
    return Replayed(total, decisions, compared, models, starts)
