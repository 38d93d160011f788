"""A model's log in the forms of `gaptron.logged`: JSON lines, and Vowpal Wabbit's dsjson.

A decision is written when it counts for the learner: with its answer, or as wrong when its wait is over without one.
Void and overridden ones are left out, those whose features were forgotten, and those without an answer:
`gaptron.logged` says what that may do.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gaptron.logged import dsjson, jsonl
from gaptron.logged.lines import encode
from gaptron.serve import entries
from gaptron.serve.adapter import right
from gaptron.serve.entries import Answered, Created, Decided, Entry
from gaptron.serve.store import Store
from gaptron.serve.words import DecisionRequest, Outcome, SparseX

FORMS = ("jsonl", "dsjson")


class Shape(NamedTuple):
    """What holds for all lines of a log."""

    labels: list[str]  # all that the model has come to know
    width: int | None  # of the rows; None: they are given by name
    distributions: bool  # has every decision one? An apprentice's have none


def lines(store: Store, model: str, form: str, upto: int) -> Iterator[bytes]:
    """The lines, up to entry `upto`."""
    shape = _shape(store, model, upto)
    if form == "jsonl":
        yield encode(jsonl.header(tuple(shape.labels), shape.width))
    for decided, reward in answered(store, model, upto):
        yield encode(_line(decided, reward, shape, form))


def _shape(store: Store, model: str, upto: int) -> Shape:
    labels: list[str] = []
    width: int | None = 0  # not known
    distributions = True
    for row, _ in store.read(0, model, upto):
        if row.kind == "model":
            created: Created = entries.read(row).body
            labels += created.spec.labels
            width = None if created.spec.features == "auto" else created.spec.features or 0
            distributions = created.spec.mode == "live"
        elif row.kind == "change":
            change = entries.read(row).body.change
            labels += change.add_labels or []
            distributions = distributions and change.mode != "apprentice"
        elif row.kind == "decision" and width == 0:
            request: DecisionRequest = entries.read(row).body.request
            width = len(request.x) if isinstance(request.x, tuple) else 0
    return Shape(labels, 1 if width == 0 else width, distributions)


def answered(store: Store, model: str, upto: int) -> Iterator[tuple[Entry, float]]:
    """Decisions and their rewards, in the order of the answers."""
    held: dict[str, tuple[Entry, Outcome | None]] = {}  # those learned when their wait is over
    for row, decision in store.read(0, model, upto):
        entry = entries.read(row)
        if isinstance(entry.body, Decided) and entry.body.waits:
            assert entry.event is not None
            held[entry.event] = (entry, None)
        elif isinstance(entry.body, Answered):
            assert decision is not None and entry.event is not None
            decided = entries.read(decision)
            if entry.event in held:
                held[entry.event] = (decided, entry.body.outcome)
            elif not decided.body.is_over(entry.at):
                yield from _rewarded(decided, entry.body.outcome)
        elif row.kind == "tick":
            upon = entry.body.upto
            ready = sorted((one for one in held.values() if one[0].body.due <= upon), key=_order)
            for waited, outcome in ready:
                assert waited.event is not None
                del held[waited.event]
                yield from _rewarded(waited, outcome or Outcome(correct=False))


def _order(one: tuple[Entry, Outcome | None]) -> tuple[int, int]:
    return one[0].body.due, one[0].seq


def _rewarded(decided: Entry, outcome: Outcome) -> Iterator[tuple[Entry, float]]:
    if (
        decided.body.is_forgotten
        or outcome.void
        or (outcome.played is not None and outcome.played != decided.body.label)
    ):
        return
    yield decided, outcome.reward if outcome.reward is not None else float(right(outcome, decided.body.label))


def _line(entry: Entry, reward: float, shape: Shape, form: str) -> dict[str, Any]:
    decided: Decided = entry.body
    labels, p = shape.labels, None
    if shape.distributions and decided.distribution is not None:
        p = [*decided.distribution, *[0.0] * (len(labels) - len(decided.distribution))]
    x, among = _features(decided.request), _available(decided.request, labels)
    if form == "jsonl":
        return {
            **jsonl.decision_line(x, decided.label, decided.probability, reward, p, among),
            "event_id": entry.event,
            "at": entry.at,
        }
    played = labels.index(decided.label), decided.probability, reward
    line = dsjson.event_line(str(entry.event), x, labels, *played, p)
    return line if among is None else line | {"among": [labels.index(label) + 1 for label in among]}


def _available(request: DecisionRequest, labels: list[str]) -> list[str] | None:
    """The labels that could be played, where not all of them."""
    if request.among is None and not request.exclude:
        return None
    wanted = set(labels if request.among is None else request.among) - set(request.exclude or ())
    return [label for label in labels if label in wanted]


def _features(request: DecisionRequest) -> Any:
    if isinstance(request.x, tuple):
        return list(request.x)
    if isinstance(request.x, SparseX):
        return {str(at): value for at, value in zip(request.x.indices, request.x.values)}
    return request.features
