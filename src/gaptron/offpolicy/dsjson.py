"""Vowpal Wabbit's decision-service format (`--dsjson`): one event per line.

    {"_label_cost":-1,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1,"EventId":"1","a":[2,1,3],
     "c":{"x":{"0":0.5,"3":1.25},"_multi":[{"label":{"cat":1}},{"label":{"dog":1}},{"label":{"owl":1}}]},
     "p":[0.8,0.1,0.1],"VWState":{"m":"gaptron"}}

(on one line in a file). Actions are numbered from 1, the one played comes first in `a` and `p`, and the cost is
-reward. Integer labels are under "number" instead of "label", so that 1 and "1" stay distinct. If not all labels were
available, our own field "available" lists the actions that were, numbered from 1.

Events written by other programs can be read if the actions are the same on every line: their shared features are hashed
to columns by namespace and name, as in the reader of VW's text format.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gaptron.errors import StreamError
from gaptron.offpolicy.builder import LogBuilder, LoggedDecision
from gaptron.offpolicy.jsonl import json_features, labels_of
from gaptron.offpolicy.log import Log
from gaptron.streams import vw
from gaptron.streams.actions.dsjson import action_number, decision, distribution
from gaptron.streams.json_lines import (
    LogLines,
    MalformedError,
    OtherActionsError,
    encode,
    get,
    is_column,
    number,
    policy_probabilities,
)
from gaptron.streams.source import Source

SHARED = "x"  # namespace of the features on our own lines
LABEL, NUMBER = "label", "number"  # namespaces of string and integer labels
WIDE = 2**24  # columns that are accepted without n_features
_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


class Event(NamedTuple):
    """One line, before its features are mapped to columns."""

    shared: dict[str, Any]
    actions: list[Any]
    decision: LoggedDecision


# --- reading ------------------------------------------------------------------------------------------------


class _Events:
    """The events so far; the first fixes the actions and whether features are numbered or hashed."""

    def __init__(self, source: Source, n_features: int | None, column: str | None) -> None:
        self.builder = LogBuilder(source)
        self.actions: list[Any] | None = None
        self.width = n_features or 0
        self._n_features = n_features
        self._column = column  # field with the probabilities of the caller's policy
        self._numbered = True

    def take(self, at: int, line: dict[str, Any]) -> None:
        event = _event(line)
        if self.actions is None:
            numbered, width = _is_numbered(event.shared), self.width
            width = width or (0 if numbered else vw.WIDTH)
        else:
            numbered, width = self._numbered, self.width
            if event.actions != self.actions:
                raise OtherActionsError(
                    "its actions differ from those of the lines before, and the labels of a log are fixed"
                )
        pairs = _columns(event.shared) if numbered else _hashed(event.shared, width)
        columns, values = [column for column, _ in pairs], [value for _, value in pairs]
        widest = max(columns, default=-1) + 1
        if self._n_features is not None and widest > self._n_features:
            raise MalformedError(f"feature {widest - 1} is outside n_features={self._n_features}")
        if widest > max(WIDE, width):
            raise MalformedError(
                f"feature {widest - 1} needs very wide examples: give n_features=... if this is intended"
            )
        policy = policy_probabilities(line, self._column, _labels(event.actions))
        self.builder.add(at, event.decision._replace(columns=columns, values=values, policy=policy))
        self.actions, self._numbered, self.width = event.actions, numbered, max(width, widest)


def read(source: Source, n_features: int | None, *, skip_damaged: bool = False, column: str | None = None) -> Log:
    """Read a log in this format; `column` names the field with the probabilities of the caller's policy."""
    events = _Events(source, n_features, column)
    LogLines(source, skip_damaged=skip_damaged, header=False).each(events.take)
    if events.actions is not None and not events.width:
        raise StreamError(source.name, "no line has a feature: give n_features=... if this is intended")
    return events.builder.log(_labels(events.actions or []), events.width)


def _event(line: dict[str, Any]) -> Event:
    context = get(line, "c")
    if not isinstance(context, dict):
        raise MalformedError("c is not an object")
    actions = get(context, "_multi")
    if not isinstance(actions, list) or len(actions) < 2:
        raise MalformedError("c._multi must be an array of at least two actions")
    K = len(actions)
    order, played, propensity = decision(line, K)
    drawn_from = distribution(line, order, propensity)
    cost = number(get(line, "_label_cost"), "_label_cost")
    if not -1.0 <= cost <= 0.0:
        raise MalformedError(f"_label_cost {cost:g} is not in [-1, 0]: the cost of a reward in [0, 1] is -reward")
    shared = {name: value for name, value in context.items() if name != "_multi"}
    available = _available(line["available"], K) if "available" in line else None
    return Event(shared, actions, LoggedDecision([], [], played, propensity, -cost, drawn_from, available))


def _available(actions: Any, K: int) -> list[int]:
    if not isinstance(actions, list) or not actions:
        raise MalformedError("available is not an array of at least one action")
    return [action_number(action, "available", K) - 1 for action in actions]


def _is_numbered(shared: dict[str, Any]) -> bool:
    features = shared.get(SHARED)
    return list(shared) == [SHARED] and isinstance(features, dict) and all(map(is_column, features))


def _columns(shared: dict[str, Any]) -> list[tuple[int, float]]:
    if not _is_numbered(shared):
        raise MalformedError("its features have names, but those of the first line are numbered")
    return [(int(key), number(value, f"feature {key}")) for key, value in shared[SHARED].items()]


def _hashed(shared: dict[str, Any], width: int) -> list[tuple[int, float]]:
    pairs: list[tuple[int, float]] = []

    def add(space: str, name: str, value: float) -> None:
        pairs.append((vw.column(f"{space}^{name}".encode(errors="surrogatepass"), width), value))

    def flatten(fields: dict[str, Any], space: str) -> None:
        """Flatten features as VW reads JSON: strings and true are indicators, arrays are numbered."""
        for key, value in fields.items():
            if key.startswith("_") or value is None or value is False:
                continue
            if isinstance(value, dict):
                flatten(value, key)
            elif isinstance(value, str):
                add(space, f"{key}={value}", 1.0)
            elif isinstance(value, list):
                for at, element in enumerate(value):
                    flatten(element if isinstance(element, dict) else {str(at): element}, key)
            else:
                add(space, key, 1.0 if value is True else number(value, key))

    flatten(shared, "")
    return pairs


def _labels(actions: list[Any]) -> tuple[Any, ...]:
    """Return the labels on our own lines; actions of other programs are 0, 1, ..."""
    strings, integers = _names(actions, LABEL), _names(actions, NUMBER)
    if integers is not None and all(map(_INTEGER.fullmatch, integers)):
        return tuple(map(int, integers))
    return tuple(range(len(actions))) if strings is None else tuple(strings)


def _names(actions: list[Any], space: str) -> list[str] | None:
    """Return the name of each action in this namespace, if each has exactly one and all differ."""
    names: list[str] = []
    for action in actions:
        inside = action.get(space) if isinstance(action, dict) and list(action) == [space] else None
        if not isinstance(inside, dict) or len(inside) != 1:
            return None
        names += inside
    return names if len(set(names)) == len(names) else None


# --- writing ------------------------------------------------------------------------------------------------


def write(log: Log) -> Iterator[bytes]:
    """Yield the lines of a log."""
    for t in range(log.n_rounds):
        p = None if log.distribution is None else log.distribution[t]
        played = int(log.codes[t]), float(log.propensity[t]), float(log.reward[t])
        line = event_line(str(t + 1), json_features(log.example(t).row), log.classes, *played, p)
        available = labels_of(range(1, log.n_classes + 1), log.available_at(t))
        yield encode(line if available is None else line | {"available": available})


def event_line(
    event: str,
    features: list[float] | dict[str, Any],
    classes: Sequence[Any],
    code: int,
    propensity: float,
    reward: float,
    distribution: Any,
) -> dict[str, Any]:
    """Return a decision as the JSON object of its line."""
    space = LABEL if isinstance(classes[0], str) else NUMBER
    x = features if isinstance(features, dict) else {str(at): value for at, value in enumerate(features) if value}
    order = [code, *(k for k in range(len(classes)) if k != code)]
    line: dict[str, Any] = {
        "_label_cost": -reward or 0.0,  # not -0.0
        "_label_probability": propensity,
        "_label_Action": code + 1,
        "_labelIndex": code,
        "EventId": event,
        "a": [k + 1 for k in order],
        "c": {SHARED: x, "_multi": [{space: {str(label): 1}} for label in classes]},
    }
    if distribution is not None:
        line["p"] = [float(distribution[k]) for k in order]
    return line | {"VWState": {"m": "gaptron"}}
