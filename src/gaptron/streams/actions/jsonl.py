"""Rounds of named actions as JSON lines: one round per line.

    {"context":{"user":"student"},"actions":{"a7":{"topic":"sport"},"a9":{"topic":"news"}},
     "played":"a7","probability":0.8,"reward":1}
    {"context":{"user":"student"},"actions":{"a7":{"topic":"sport"},"a9":{"topic":"news"}},"right":"a7"}
    {"context":{"user":"student"},"actions":{"a7":{"topic":"sport"},"a9":{"topic":"news"}},"rewards":{"a7":1,"a9":0}}

(each on one line in a file). Actions are an object, id → features, or an array of {"id":"a7","features":{...}}. A round
has the action `played` with its `probability` and `reward`, the `right` action, or the `rewards` of all actions; the
same in all lines. `context` may be left out. `distribution` (id → probability) and `excluded` (ids of actions that
could not be played) are optional. Other fields are ignored.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from gaptron.streams.actions.features import flatten
from gaptron.streams.actions.rounds import PLAYED, REWARDS, RIGHT, NamedRounds, Round, RoundCollector, position_of
from gaptron.streams.json_lines import LogLines, MalformedError, encode, get, number, short
from gaptron.streams.source import Source

Actions = list[tuple[Any, dict[str, Any]]]


# --- reading ------------------------------------------------------------------------------------------------


def read(source: Source, *, skip_damaged: bool) -> NamedRounds:
    """Read a file in this format."""
    rounds = RoundCollector(source.name)
    lines = LogLines(source, skip_damaged=skip_damaged, header=False)
    lines.each(lambda at, line: rounds.add(at, _round(line)))
    return rounds.stream(named=True)


def _round(line: dict[str, Any]) -> Round:
    context, given = flatten(line.get("context", {}), "context"), _actions(get(line, "actions"))
    excluded = {_position(each, given, "excluded") for each in _excluded(line)}
    actions = [each for at, each in enumerate(given) if at not in excluded]
    known = {str(action) for action, _ in given}
    if not actions:
        raise MalformedError("all actions are excluded" if given else "there is no action")
    kinds = [kind for kind in (PLAYED, RIGHT, REWARDS) if kind in line]
    if len(kinds) != 1:
        raise MalformedError("a round needs one of the fields played (with probability and reward), right and rewards")
    if kinds == [RIGHT]:
        return Round(context, actions, RIGHT, _position(line[RIGHT], actions, RIGHT))
    if kinds == [REWARDS]:
        return Round(context, actions, REWARDS, rewards=_by_id(line[REWARDS], actions, known, REWARDS))
    played = _position(line[PLAYED], actions, PLAYED)
    probability = number(get(line, "probability"), "probability")
    reward = number(get(line, "reward"), "reward")
    drawn_from = None
    if "distribution" in line:
        drawn_from = _by_id(line["distribution"], actions, known, "distribution")
    return Round(context, actions, PLAYED, played, probability, [reward], drawn_from)


def _actions(given: Any) -> Actions:
    if isinstance(given, dict):
        return [(action, flatten(features, f"action {short(action)}")) for action, features in given.items()]
    if not isinstance(given, list):
        raise MalformedError(
            "actions is neither an object, id → features, nor an array of objects with id and features"
        )
    actions: Actions = []
    for at, each in enumerate(given):
        if not isinstance(each, dict):
            raise MalformedError(f"entry {at + 1} of actions is {short(each)}, not an object with id and features")
        action = _id(get(each, "id"), f"the id of entry {at + 1} of actions")
        actions.append((action, flatten(each.get("features", {}), f"action {short(action)}")))
    return actions


def _id(value: Any, what: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MalformedError(f"{what} is {short(value)}, not a text or a whole number")
    return value


def _excluded(line: dict[str, Any]) -> Sequence[Any]:
    excluded = line.get("excluded", [])
    if not isinstance(excluded, list):
        raise MalformedError("excluded is not an array of ids")
    return excluded


def _position(value: Any, actions: Actions, name: str) -> int:
    at = position_of(_id(value, name), actions)
    if at is None:
        raise MalformedError(f"{name} is {short(value)}, which is not the id of an action that could be played")
    return at


def _by_id(given: Any, actions: Actions, known: set[str], name: str) -> list[float]:
    """Read a number for each action that could be played; `known` are the ids of the others too."""
    if not isinstance(given, dict):
        raise MalformedError(f"{name} is not an object, id → number")
    unknown = next((action for action in given if action not in known), None)
    if unknown is not None:
        raise MalformedError(f"{name} names {short(unknown)}, which is not the id of an action")
    return [number(get(given, str(action)), f"{name} of {short(action)}") for action, _ in actions]


# --- writing ------------------------------------------------------------------------------------------------


def write(stream: NamedRounds) -> Iterator[bytes]:
    """Yield the lines of a stream."""
    first = stream.first
    for t in range(stream.n_rounds):
        context, actions = stream.contexts[t], stream.actions[t]
        if stream.kind == PLAYED:
            drawn = int(stream.codes[t]), float(stream.propensity[t]), float(stream.reward[t])
            yield encode(line_of("", context, actions, *drawn, stream.distribution_at(t)))
            continue
        line: dict[str, Any] = {"context": context, "actions": _plain(actions)}
        if stream.kind == REWARDS:
            rewards = stream.reward[first[t] : first[t + 1]].tolist()
            line[REWARDS] = {str(action): reward for action, reward in zip(actions, rewards)}
        else:
            line[RIGHT] = stream.action(t)
        yield encode(line)


def line_of(
    event: str,
    context: dict[str, Any],
    actions: dict[Any, dict[str, Any]],
    code: int,
    propensity: float,
    reward: float,
    p: Any,
) -> dict[str, Any]:
    """Return a decision as the JSON object of its line; `event` is its id, or "" for none."""
    decision: dict[str, Any] = {"event": event} if event else {}
    decision |= {"context": context, "actions": _plain(actions)}
    decision |= {PLAYED: list(actions)[code], "probability": propensity, "reward": reward}
    if p is not None:
        decision["distribution"] = {str(action): float(each) for action, each in zip(actions, p)}
    return decision


def _plain(actions: dict[Any, dict[str, Any]]) -> Any:
    if all(isinstance(action, str) for action in actions):
        return actions
    return [{"id": action, "features": features} for action, features in actions.items()]
