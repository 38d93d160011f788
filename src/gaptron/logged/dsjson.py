"""Vowpal Wabbit's decision-service form (`--dsjson`): one event a line.

    {"_label_cost":-1,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1,"EventId":"1","a":[2,1,3],
     "c":{"x":{"0":0.5,"3":1.25},"_multi":[{"label":{"cat":1}},{"label":{"dog":1}},{"label":{"owl":1}}]},
     "p":[0.8,0.1,0.1],"VWState":{"m":"gaptron"}}

(in a file: one line). Actions are counted from 1, the one played comes first in `a` and `p`, and the cost is -reward.
Events of others are read too, as long as the actions are the same in every line: their shared features are hashed to
columns by namespace and name, as the reader of VW's text does.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gaptron.errors import StreamError
from gaptron.logged.jsonl import features
from gaptron.logged.lines import Entry, Gathered, MalformedError, encode, get, is_column, number, numbers, objects
from gaptron.logged.log import CLOSE, Log
from gaptron.streams import vw
from gaptron.streams.labels import tidy
from gaptron.streams.source import Source

SHARED, LABEL = "x", "label"  # the namespaces of our own lines


class Event(NamedTuple):
    """One line, before it is known what the columns are."""

    shared: dict[str, Any]
    actions: list[Any]
    entry: Entry


# --- reading ------------------------------------------------------------------------------------------------


def read(source: Source, n_features: int | None) -> Log:
    """The log in a file of this form."""
    actions: list[Any] | None = None
    width = n_features or 0
    ours = True
    gathered = Gathered(source)
    for at, line in objects(source):
        try:
            event = _event(line)
            if actions is None:
                actions, ours = event.actions, _ours(event.shared)
                width = n_features or (0 if ours else vw.WIDTH)
            if event.actions != actions:
                raise MalformedError("its actions are not those of the lines before, and labels are fixed here")
            pairs = _numbered(event.shared) if ours else _hashed(event.shared, width)
            columns, values = [column for column, _ in pairs], [value for _, value in pairs]
            widest = max(columns, default=-1) + 1
            if n_features is not None and widest > n_features:
                raise MalformedError(f"feature {widest - 1} is past the last one (n_features={n_features})")
            width = max(width, widest)
            gathered.add(at, event.entry._replace(columns=columns, values=values))
        except MalformedError as problem:
            raise StreamError(source.name, str(problem), at) from None
    if actions is not None and not width:
        raise StreamError(source.name, "no line has a feature: say n_features=... if that is right")
    return gathered.log(_labels(actions or []), width)


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
        chances = numbers(line["p"], "p", K)
        if not abs(chances[0] - probability) <= CLOSE * abs(probability):
            raise MalformedError(f"_label_probability is {probability:g}, but p begins with {chances[0]:g}")
        distribution = [chance for _, chance in sorted(zip(order, chances))]
    cost = number(get(line, "_label_cost"), "_label_cost")
    if not -1.0 <= cost <= 0.0:
        raise MalformedError(f"_label_cost {cost:g} is not in [-1, 0]: the cost of a reward in [0, 1] is -reward")
    shared = {name: value for name, value in context.items() if name != "_multi"}
    return Event(shared, actions, Entry([], [], played - 1, probability, -cost, distribution))


def _order(line: dict[str, Any], K: int) -> list[int]:
    order = [_whole(action, "a", K) for action in get(line, "a")] if isinstance(get(line, "a"), list) else []
    if sorted(order) != list(range(1, K + 1)):
        raise MalformedError(f"a must name each of the {K} actions of c._multi once, from 1")
    return order


def _whole(value: Any, name: str, K: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= K:
        raise MalformedError(f"{name} is {value!r}, not one of 1..{K}")
    return value


def _ours(shared: dict[str, Any]) -> bool:
    found = shared.get(SHARED)
    return list(shared) == [SHARED] and isinstance(found, dict) and all(map(is_column, found))


def _numbered(shared: dict[str, Any]) -> list[tuple[int, float]]:
    if not _ours(shared):
        raise MalformedError("its features have names, those of the first line numbers")
    return [(int(key), number(value, f"feature {key}")) for key, value in shared[SHARED].items()]


def _hashed(shared: dict[str, Any], width: int) -> list[tuple[int, float]]:
    return [(vw.column(f"{space}^{name}".encode(), width), value) for space, name, value in _flat(shared)]


def _flat(found: dict[str, Any], space: str = "") -> Iterator[tuple[str, str, float]]:
    """Features with their namespaces, as VW reads JSON: texts and true are indicators, arrays are numbered."""
    for key, value in found.items():
        if key.startswith("_") or value is None or value is False:
            continue
        if isinstance(value, dict):
            yield from _flat(value, key)
        elif isinstance(value, str):
            yield space, f"{key}={value}", 1.0
        elif isinstance(value, list):
            for at, entry in enumerate(value):
                yield from _flat(entry if isinstance(entry, dict) else {str(at): entry}, key)
        else:
            yield space, key, 1.0 if value is True else number(value, key)


def _labels(actions: list[Any]) -> tuple[Any, ...]:
    """What our own lines call the labels; actions of others are 0, 1, ..."""
    names: list[str] = []
    for action in actions:
        found = action.get(LABEL) if isinstance(action, dict) and list(action) == [LABEL] else None
        if not isinstance(found, dict) or len(found) != 1:
            return tuple(range(len(actions)))
        names += found
    labels = tidy(names)
    return labels if len(set(labels)) == len(labels) else tuple(range(len(actions)))


# --- writing ------------------------------------------------------------------------------------------------


def write(log: Log) -> Iterator[str]:
    """The lines of a log."""
    actions = [{LABEL: {str(label): 1}} for label in log.classes]
    for t in range(log.n_rounds):
        row, code = features(log.row(t)), int(log.codes[t])
        x = row if isinstance(row, dict) else {str(at): value for at, value in enumerate(row) if value}
        order = [code, *(k for k in range(log.n_classes) if k != code)]
        line: dict[str, Any] = {
            "_label_cost": -float(log.reward[t]) or 0.0,  # not -0.0
            "_label_probability": float(log.probability[t]),
            "_label_Action": code + 1,
            "_labelIndex": code,
            "EventId": str(t + 1),
            "a": [k + 1 for k in order],
            "c": {SHARED: x, "_multi": actions},
        }
        if log.distribution is not None:
            line["p"] = [float(log.distribution[t, k]) for k in order]
        yield encode(line | {"VWState": {"m": "gaptron"}})
