"""Vowpal Wabbit's decision-service format (`--dsjson`): one round per line, as Azure Personalizer logs it.

    {"_label_cost":-1,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1,"EventId":"1","a":[2,1],
     "c":{"User":{"age":31},"_multi":[{"_tag":"article-7","Topic":{"sport":1}},{"_tag":"article-9","Topic":{"news":1}}]},
     "p":[0.8,0.2]}

(on one line in a file). `c` without `_multi` is the context, `_multi` are the actions, which may differ from line to
line. Actions are numbered from 1, and the one played comes first in `a` and `p`. Nested names are joined by a point.
The id of an action is its `_tag`, or else its feature id. Rounds with `_skipLearn` are left out.

Lines that gaptron writes have the features of the context under C, and those of each action under A, beside i, its id
for other programs; when they are read, these names are left out again, and all others are taken as they are. The same
holds for lines of Azure Personalizer, which have the context under FromUrl and the features of an action under j, as
arrays of objects: the features have the names that Rank had.
"""

from collections.abc import Iterator
from typing import Any

from gaptron.data.values import CLOSE
from gaptron.streams.actions.costs import Costs
from gaptron.streams.actions.features import flatten, flatten_objects
from gaptron.streams.actions.ids import TAG, Ids
from gaptron.streams.actions.rounds import PLAYED, NamedRounds, Round, RoundCollector
from gaptron.streams.json_lines import LogLines, MalformedError, encode, get, number, numbers, short
from gaptron.streams.source import Source

OURS = {"m": "gaptron"}  # under VWState
CONTEXT, ACTION, ID = "C", "A", "i"
RANK_CONTEXT, RANK_ACTION = "FromUrl", "j"  # of Personalizer
RANKED = {"_tag", "i", RANK_ACTION}  # what an action of Personalizer has; i has the id again


# --- reading ------------------------------------------------------------------------------------------------


def read(source: Source, costs: Costs, ids: Ids, *, skip_damaged: bool) -> NamedRounds:
    """Read a file in this format."""
    rounds, skipped = RoundCollector(source.name), 0

    def take(at: int, line: dict[str, Any]) -> None:
        nonlocal skipped
        if line.get("_skipLearn") is True:
            skipped += 1
        else:
            rounds.add(at, _round(line, costs, ids))

    LogLines(source, skip_damaged=skip_damaged, header=False).each(take)
    notes = (f"{skipped:,} rounds with _skipLearn were left out",) if skipped else ()
    return rounds.stream(named=not ids.by_position, notes=(*ids.notes, *notes))


def _round(line: dict[str, Any], costs: Costs, ids: Ids) -> Round:
    if "_outcomes" in line:
        raise MalformedError("_outcomes: rounds with several slots are not supported, only one action per round")
    shared = get(line, "c")
    if not isinstance(shared, dict):
        raise MalformedError("c is not an object")
    given = get(shared, "_multi")
    if not isinstance(given, list) or not given:
        raise MalformedError("c._multi must be an array of at least one action")
    ours = line.get("VWState") == OURS
    ranked = [name for name in shared if not name.startswith("_")] == [RANK_CONTEXT]
    actions = [_action(at, each, ids, ours=ours, ranked=ranked) for at, each in enumerate(given)]
    if ranked:
        context = flatten_objects(_objects(shared[RANK_CONTEXT]), f"c.{RANK_CONTEXT}")
    else:
        context = flatten(get(shared, CONTEXT), f"c.{CONTEXT}") if ours else flatten(shared, "c", vw=True)
    order, played, propensity = decision(line, len(actions))
    reward = costs.reward(number(get(line, "_label_cost"), "_label_cost"))
    return Round(context, actions, PLAYED, played, propensity, [reward], distribution(line, order, propensity))


def _action(at: int, given: Any, ids: Ids, *, ours: bool, ranked: bool) -> tuple[Any, dict[str, Any]]:
    what = f"action {at + 1} of c._multi"
    own = ours and isinstance(given, dict)
    if ranked and isinstance(given, dict) and "_tag" in given and given.keys() <= RANKED:
        features, own = flatten_objects(_objects(given.get(RANK_ACTION)), f"{RANK_ACTION} of {what}"), True
    else:
        features = flatten(get(given, ACTION), f"{ACTION} of {what}") if own else flatten(given, what, vw=True)
    tag = given.get("_tag")
    if tag is not None and not isinstance(tag, str):
        raise MalformedError(f"_tag of {what} is {short(tag)}, not a text")
    return ids.take(at, tag, {} if own and ids.where in (None, TAG) else features), features


def _objects(given: Any) -> list[Any]:
    """Objects of features in an array, or one alone; None: there are none."""
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def decision(line: dict[str, Any], K: int) -> tuple[list[int], int, float]:
    """Read which of K actions was played.

    Args:
        line: the line.
        K: the number of actions.

    Returns:
        The order of the actions, numbered from 1; the position of the one played, from 0; and its propensity.
    """
    order = [action_number(each, "a", K) for each in get(line, "a")] if isinstance(get(line, "a"), list) else []
    if sorted(order) != list(range(1, K + 1)):
        raise MalformedError(f"a must name each of the {K} actions of c._multi once, from 1")
    played = action_number(get(line, "_label_Action"), "_label_Action", K)
    propensity = number(get(line, "_label_probability"), "_label_probability")
    if played != order[0]:
        raise MalformedError(f"_label_Action is {played}, but a starts with {order[0]}")
    return order, played - 1, propensity


def distribution(line: dict[str, Any], order: list[int], propensity: float) -> list[float] | None:
    """Read the probability of every action, in the order of their numbers; None if it was not logged."""
    if "p" not in line:
        return None
    logged = numbers(line["p"], "p", len(order))
    if not abs(logged[0] - propensity) <= CLOSE * abs(propensity):
        raise MalformedError(f"_label_probability is {propensity:g}, but p starts with {logged[0]:g}")
    return [p for _, p in sorted(zip(order, logged))]


def action_number(value: Any, name: str, K: int) -> int:
    """Check the number of one of K actions, from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= K:
        raise MalformedError(f"{name} is {short(value)}, not one of 1..{K}")
    return value


# --- writing ------------------------------------------------------------------------------------------------


def write(stream: NamedRounds) -> Iterator[bytes]:
    """Yield the lines of a log."""
    for t in range(stream.n_rounds):
        yield encode(
            line_of(
                str(t + 1),
                stream.contexts[t],
                stream.actions[t],
                int(stream.codes[t]),
                float(stream.propensity[t]),
                float(stream.reward[t]),
                stream.distribution_at(t),
            )
        )


def line_of(
    event: str,
    context: dict[str, Any],
    actions: dict[Any, dict[str, Any]],
    code: int,
    propensity: float,
    reward: float,
    p: Any,
) -> dict[str, Any]:
    """Return a decision as the JSON object of its line."""
    order = [code, *(k for k in range(len(actions)) if k != code)]
    line: dict[str, Any] = {
        "_label_cost": Costs().cost(reward) or 0.0,  # not -0.0
        "_label_probability": propensity,
        "_label_Action": code + 1,
        "_labelIndex": code,
        "EventId": event,
        "a": [k + 1 for k in order],
        "c": {
            CONTEXT: context,
            "_multi": [
                {"_tag": str(action), ID: {"id": str(action)}, ACTION: features} for action, features in actions.items()
            ],
        },
    }
    if p is not None:
        line["p"] = [float(p[k]) for k in order]
    return line | {"VWState": OURS}
