"""Export a model's log in the formats that `gaptron.offpolicy` reads: JSON lines, and Vowpal Wabbit's dsjson.

Of actions with features they are the formats of `gaptron.streams.actions`; actions that were excluded are left out.

A decision is exported when the model learns from it: with its outcome, or as wrong when it times out. Void, overridden
and redacted decisions and those without an outcome are left out; `gaptron.offpolicy` describes the effect.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gaptron.offpolicy import dsjson, jsonl
from gaptron.serve import events
from gaptron.serve.adapter import is_correct
from gaptron.serve.decisions import available_ids
from gaptron.serve.events import Activated, Changed, Created, Decided, Event, OutcomeRecorded, Row, TimedOut
from gaptron.serve.model_state import WRONG
from gaptron.serve.schemas import Action, DecisionRequest, Outcome, SparseX
from gaptron.serve.store import Store, living
from gaptron.streams.actions import dsjson as action_dsjson
from gaptron.streams.actions import jsonl as action_jsonl
from gaptron.streams.json_lines import encode

FORMATS = ("jsonl", "dsjson")


class Shape(NamedTuple):
    """Properties of the whole log."""

    labels: list[str]  # including those added later
    width: int | None  # number of features; None: they are named
    distributions: bool  # does every decision have one? Those in shadow mode have none


def lines(store: Store, model: str, format_: str, until: int) -> Iterator[bytes]:
    """Iterate over the lines of the export, up to event `until`."""
    shape, line_of = _shape(store, model, until), _line
    if has_actions(store, model):
        line_of = _action_line
    elif format_ == "jsonl":
        yield encode(jsonl.header(tuple(shape.labels), shape.width))
    for decided, reward in decisions_with_rewards(store, model, until):
        yield encode(line_of(decided, reward, shape, format_))


def has_actions(store: Store, model: str) -> bool:
    """Does every decision of the model bring its own actions?"""
    created: Created = events.decode(next(iter(_read(store, model)))[0]).body
    return created.spec.actions


def _read(store: Store, model: str, until: int | None = None) -> Iterator[tuple[Row, Row | None]]:
    """The rows of a model that was not deleted; earlier ones are of deleted models with its name."""
    return store.read(living(store)[model] - 1, model, until)


def _shape(store: Store, model: str, until: int) -> Shape:
    labels: list[str] = []
    width: int | None = 0  # not known
    distributions = True
    for row, _ in _read(store, model, until):
        if row.kind not in ("created", "changed") and not (row.kind == "decided" and width == 0):
            continue
        body = events.decode(row).body
        if isinstance(body, Created):
            labels += body.spec.labels or ()
            width = None if body.spec.features == "auto" else body.spec.features or 0
            distributions = body.spec.mode == "live"
        elif isinstance(body, Changed):
            labels += body.change.add_labels or []
            distributions = distributions and body.change.mode != "shadow"
        elif isinstance(body, Decided):
            width = len(body.request.x) if isinstance(body.request.x, tuple) else 0
            width = None if body.request.features is not None else width
    return Shape(labels, 1 if width == 0 else width, distributions)


def decisions_with_rewards(store: Store, model: str, until: int) -> Iterator[tuple[Event, float]]:
    """Iterate over decisions and their rewards, in the order in which the model learned from them."""
    first = living(store)[model]
    pending: dict[str, tuple[Event, Outcome | None]] = {}  # those learned when they are due
    activated: set[str] = set()  # of those that were deferred
    for row, decision in store.read(first - 1, model, until):
        event = events.decode(row)
        if isinstance(event.body, Decided) and event.body.learn_when_due and event.is_since(first):
            assert event.event_id is not None
            pending[event.event_id] = (event, None)
        elif isinstance(event.body, OutcomeRecorded):
            assert decision is not None and event.event_id is not None
            decided = events.decode(decision)
            if event.event_id in pending:
                pending[event.event_id] = (decided, event.body.outcome)
            elif not decided.body.is_expired(event.at):
                yield from _with_reward(decided, event.body.outcome)
        elif isinstance(event.body, Activated):
            activated.add(event.event_id or "")
        elif isinstance(event.body, TimedOut):
            limit = event.body.until
            due = sorted((one for one in pending.values() if one[0].body.due <= limit), key=_order)
            for decided, outcome in due:
                assert decided.event_id is not None
                del pending[decided.event_id]
                if outcome is not None or not decided.body.request.deferred or decided.event_id in activated:
                    yield from _with_reward(decided, outcome or WRONG)
                activated.discard(decided.event_id)


def _order(one: tuple[Event, Outcome | None]) -> tuple[int, int]:
    return one[0].body.due, one[0].seq


def _with_reward(decided: Event, outcome: Outcome) -> Iterator[tuple[Event, float]]:
    overridden = outcome.played is not None and outcome.played != decided.body.label
    if decided.body.is_redacted or not decided.body.is_in_bounds or outcome.void or overridden:
        return
    yield decided, outcome.reward if outcome.reward is not None else float(is_correct(outcome, decided.body.label))


def _line(event: Event, reward: float, shape: Shape, format_: str) -> dict[str, Any]:
    decided: Decided = event.body
    labels, p = shape.labels, None
    if shape.distributions and decided.distribution is not None:
        p = [*decided.distribution, *[0.0] * (len(labels) - len(decided.distribution))]
    x, given = _features(decided.request), decided.request_as_offered.available
    available = None if given is None else [label for label in labels if label in given]
    if format_ == "jsonl":
        return {
            **jsonl.decision_line(x, decided.label, decided.propensity, reward, p, available),
            "event_id": event.event_id,
            "at": event.at,
        }
    played = labels.index(decided.label), decided.propensity, reward
    line = dsjson.event_line(str(event.event_id), x, labels, *played, p)
    return line if available is None else line | {"available": [labels.index(label) + 1 for label in available]}


def _action_line(event: Event, reward: float, shape: Shape, format_: str) -> dict[str, Any]:
    decided: Decided = event.body
    request, ids = decided.request, available_ids(decided.request)
    actions = {one.id: _action_features(one) for one in request.actions or () if one.id in ids}
    p = list(decided.distribution) if shape.distributions and decided.distribution is not None else None
    played = ids.index(decided.label), decided.propensity, reward
    line = action_dsjson.line_of if format_ == "dsjson" else action_jsonl.line_of
    return line(str(event.event_id), request.context or {}, actions, *played, p)


def _features(request: DecisionRequest) -> Any:
    return request.features if request.x is None else _numbers(request.x)


def _numbers(x: tuple[float, ...] | SparseX) -> Any:
    if isinstance(x, SparseX):
        return {str(index): value for index, value in zip(x.indices, x.values)}
    return list(x)


def _action_features(action: Action) -> dict[str, Any]:
    """The features by name; numbers are named by their column."""
    if action.x is None:
        return action.features or {}
    x = _numbers(action.x)
    return x if isinstance(x, dict) else {str(column): value for column, value in enumerate(x)}
