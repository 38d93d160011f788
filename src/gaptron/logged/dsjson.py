"""Vowpal Wabbit's decision-service form (`--dsjson`): one event a line.

    {"_label_cost":-1,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1,"EventId":"1","a":[2,1,3],
     "c":{"x":{"0":0.5,"3":1.25},"_multi":[{"label":{"cat":1}},{"label":{"dog":1}},{"label":{"owl":1}}]},
     "p":[0.8,0.1,0.1],"VWState":{"m":"gaptron"}}

(in a file: one line). Actions are counted from 1, the one played comes first in `a` and `p`, and the cost is -reward.
Labels that are whole numbers are under "number" instead of "label", so that 1 and "1" come back as what they were.
Where not all labels were available, "among" names the actions that were, also from 1.
Events of others are read too, as long as the actions are the same in every line: their shared features are hashed to
columns by namespace and name, as the reader of VW's text does.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gaptron.errors import StreamError
from gaptron.logged.jsonl import features, labels_of
from gaptron.logged.lines import (
    LogBuilder,
    LoggedDecision,
    LogLines,
    MalformedError,
    chances,
    encode,
    get,
    is_column,
    number,
    numbers,
    short,
)
from gaptron.logged.log import CLOSE, Log
from gaptron.streams import vw
from gaptron.streams.source import Source

SHARED = "x"  # the namespace of features on our own lines
LABEL, NUMBER = "label", "number"  # and of labels: texts, and whole numbers
WIDE = 2**24  # columns that are taken on the word of a single line
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


class Event(NamedTuple):
    """One line, before it is known what the columns are."""

    shared: dict[str, Any]
    actions: list[Any]
    decision: LoggedDecision


# --- reading ------------------------------------------------------------------------------------------------


class _Events:
    """The events so far: the first one fixes the actions, and whether features are numbered or hashed."""

    def __init__(self, source: Source, n_features: int | None, column: str | None) -> None:
        self.builder = LogBuilder(source)
        self.actions: list[Any] | None = None
        self.width = n_features or 0
        self._n_features = n_features
        self._column = column  # of the reader's own probabilities
        self._numbered = True

    def take(self, at: int, line: dict[str, Any]) -> None:
        event = _event(line)
        if self.actions is None:
            numbered, width = _is_numbered(event.shared), self.width
            width = width or (0 if numbered else vw.WIDTH)
        else:
            numbered, width = self._numbered, self.width
            if event.actions != self.actions:
                raise MalformedError("its actions are not those of the lines before, and labels are fixed here")
        pairs = _columns(event.shared) if numbered else _hashed(event.shared, width)
        columns, values = [column for column, _ in pairs], [value for _, value in pairs]
        widest = max(columns, default=-1) + 1
        if self._n_features is not None and widest > self._n_features:
            raise MalformedError(f"feature {widest - 1} is past the last one (n_features={self._n_features})")
        if widest > max(WIDE, width):
            raise MalformedError(f"feature {widest - 1} makes very wide rows: say n_features=... if that is right")
        policy = chances(line, self._column, _labels(event.actions))
        self.builder.add(at, event.decision._replace(columns=columns, values=values, policy=policy))
        self.actions, self._numbered, self.width = event.actions, numbered, max(width, widest)


def read(source: Source, n_features: int | None, *, skip_damaged: bool = False, column: str | None = None) -> Log:
    """The log in a file of this form, with the probabilities in a column of the reader's own if one is named."""
    events = _Events(source, n_features, column)
    LogLines(source, skip_damaged=skip_damaged, header=False).each(events.take)
    if events.actions is not None and not events.width:
        raise StreamError(source.name, "no line has a feature: say n_features=... if that is right")
    return events.builder.log(_labels(events.actions or []), events.width)


def _event(line: dict[str, Any]) -> Event:
    context = get(line, "c")
    if not isinstance(context, dict):
        raise MalformedError("c is not an object")
    actions = get(context, "_multi")
    if not isinstance(actions, list) or len(actions) < 2:
        raise MalformedError("c._multi must be an array of at least two actions")
    K, order = len(actions), _order(line, len(actions))
    played = _whole(get(line, "_label_Action"), "_label_Action", K)
    probability = number(get(line, "_label_probability"), "_label_probability")
    if played != order[0]:
        raise MalformedError(f"_label_Action is {played}, but a begins with {order[0]}")
    distribution = None
    if "p" in line:
        logged = numbers(line["p"], "p", K)
        if not abs(logged[0] - probability) <= CLOSE * abs(probability):
            raise MalformedError(f"_label_probability is {probability:g}, but p begins with {logged[0]:g}")
        distribution = [chance for _, chance in sorted(zip(order, logged))]
    cost = number(get(line, "_label_cost"), "_label_cost")
    if not -1.0 <= cost <= 0.0:
        raise MalformedError(f"_label_cost {cost:g} is not in [-1, 0]: the cost of a reward in [0, 1] is -reward")
    shared = {name: value for name, value in context.items() if name != "_multi"}
    among = _among(line["among"], K) if "among" in line else None
    return Event(shared, actions, LoggedDecision([], [], played - 1, probability, -cost, distribution, among))


def _among(actions: Any, K: int) -> list[int]:
    if not isinstance(actions, list) or not actions:
        raise MalformedError("among is not an array of at least one action")
    return [_whole(action, "among", K) - 1 for action in actions]


def _order(line: dict[str, Any], K: int) -> list[int]:
    order = [_whole(action, "a", K) for action in get(line, "a")] if isinstance(get(line, "a"), list) else []
    if sorted(order) != list(range(1, K + 1)):
        raise MalformedError(f"a must name each of the {K} actions of c._multi once, from 1")
    return order


def _whole(value: Any, name: str, K: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= K:
        raise MalformedError(f"{name} is {short(value)}, not one of 1..{K}")
    return value


def _is_numbered(shared: dict[str, Any]) -> bool:
    features = shared.get(SHARED)
    return list(shared) == [SHARED] and isinstance(features, dict) and all(map(is_column, features))


def _columns(shared: dict[str, Any]) -> list[tuple[int, float]]:
    if not _is_numbered(shared):
        raise MalformedError("its features have names, those of the first line numbers")
    return [(int(key), number(value, f"feature {key}")) for key, value in shared[SHARED].items()]


def _hashed(shared: dict[str, Any], width: int) -> list[tuple[int, float]]:
    pairs: list[tuple[int, float]] = []

    def keep(space: str, name: str, value: float) -> None:
        pairs.append((vw.column(f"{space}^{name}".encode(errors="surrogatepass"), width), value))

    def flatten(fields: dict[str, Any], space: str) -> None:
        """Features with their namespaces, as VW reads JSON: texts and true are indicators, arrays are numbered."""
        for key, value in fields.items():
            if key.startswith("_") or value is None or value is False:
                continue
            if isinstance(value, dict):
                flatten(value, key)
            elif isinstance(value, str):
                keep(space, f"{key}={value}", 1.0)
            elif isinstance(value, list):
                for at, element in enumerate(value):
                    flatten(element if isinstance(element, dict) else {str(at): element}, key)
            else:
                keep(space, key, 1.0 if value is True else number(value, key))

    flatten(shared, "")
    return pairs


def _labels(actions: list[Any]) -> tuple[Any, ...]:
    """What our own lines call the labels; actions of others are 0, 1, ..."""
    texts, whole = _names(actions, LABEL), _names(actions, NUMBER)
    if whole is not None and all(map(_WHOLE.fullmatch, whole)):
        return tuple(map(int, whole))
    return tuple(range(len(actions))) if texts is None else tuple(texts)


def _names(actions: list[Any], space: str) -> list[str] | None:
    """The one name that each action has in this namespace, if they are made so and all different."""
    names: list[str] = []
    for action in actions:
        inside = action.get(space) if isinstance(action, dict) and list(action) == [space] else None
        if not isinstance(inside, dict) or len(inside) != 1:
            return None
        names += inside
    return names if len(set(names)) == len(names) else None


# --- writing ------------------------------------------------------------------------------------------------


def write(log: Log) -> Iterator[bytes]:
    """The lines of a log."""
    for t in range(log.n_rounds):
        p = None if log.distribution is None else log.distribution[t]
        played = int(log.codes[t]), float(log.probability[t]), float(log.reward[t])
        line = event_line(str(t + 1), features(log.row(t)), log.classes, *played, p)
        among = labels_of(range(1, log.n_classes + 1), log.available(t))
        yield encode(line if among is None else line | {"among": among})


def event_line(
    event: str,
    row: list[float] | dict[str, Any],
    classes: Sequence[Any],
    code: int,
    probability: float,
    reward: float,
    distribution: Any,
) -> dict[str, Any]:
    """A decision, as its line says it."""
    space = LABEL if isinstance(classes[0], str) else NUMBER
    x = row if isinstance(row, dict) else {str(at): value for at, value in enumerate(row) if value}
    order = [code, *(k for k in range(len(classes)) if k != code)]
    line: dict[str, Any] = {
        "_label_cost": -reward or 0.0,  # not -0.0
        "_label_probability": probability,
        "_label_Action": code + 1,
        "_labelIndex": code,
        "EventId": event,
        "a": [k + 1 for k in order],
        "c": {SHARED: x, "_multi": [{space: {str(label): 1}} for label in classes]},
    }
    if distribution is not None:
        line["p"] = [float(distribution[k]) for k in order]
    return line | {"VWState": {"m": "gaptron"}}
