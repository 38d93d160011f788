"""Vowpal Wabbit's contextual-bandit text (`--cb`): `action:cost:probability | features`, one decision per line.

    2:-1:0.8 |user country=FR hour:14
    1:0:0.1 |user country=DE hour:15

Actions are numbered from 1. Features are hashed to columns as in the reader of VW's multiclass text.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from gaptron.data.text_numbers import as_number, shown
from gaptron.errors import InputError, StreamError
from gaptron.offpolicy.builder import LogBuilder, LoggedDecision
from gaptron.offpolicy.log import Log
from gaptron.streams import vw
from gaptron.streams.actions.costs import Costs, read_costs
from gaptron.streams.json_lines import DamagedLineError, DamagedLogWarning, MalformedError
from gaptron.streams.source import Source, read_text

LINES = 1 << 16  # read at a time
MOST = 100_000  # actions
LISTED = 5  # skipped lines that a warning lists


def read(
    source: Source,
    n_features: int | None,
    costs: str | None,
    *,
    classes: Sequence[Any] | None = None,
    skip_damaged: bool = False,
) -> Log:
    """Read a log in this format; `classes` are the labels of actions 1, 2, ..., by default these numbers."""
    decisions: list[tuple[int, int, float, float, bytes]] = []
    skipped: list[tuple[int, str]] = []
    for text in read_text(source, LINES):
        text.check_line_ends()
        for number, line in text.records():
            try:
                decisions.append((number, *_decision(line), line))
            except MalformedError as problem:
                if not skip_damaged:
                    raise DamagedLineError(source.name, str(problem), number) from None
                skipped.append((number, str(problem)))
    if skipped:
        found = "; ".join(f"line {number}: {problem}" for number, problem in skipped[:LISTED])
        more = f"; and {len(skipped) - LISTED} more" if len(skipped) > LISTED else ""
        warnings.warn(f"{source.name}: {len(skipped)} lines skipped: {found}{more}", DamagedLogWarning, stacklevel=2)
    scale = read_costs(costs) if costs else _found_costs(source.name, [cost for _, _, cost, _, _ in decisions])
    labels = range(1, max((action for _, action, *_ in decisions), default=0) + 1) if classes is None else classes
    builder, width = LogBuilder(source), n_features or vw.WIDTH
    for number, action, cost, propensity, line in decisions:
        try:
            if action > len(labels):
                raise MalformedError(f"action {action} is above {len(labels)}, the number of labels")
            pairs = [
                (vw.column(namespace + b"^" + name, width), 1.0 if value is None else value)
                for namespace, name, value in vw.features(line)
            ]
            columns, values = [at for at, _ in pairs], [value for _, value in pairs]
            builder.add(number, LoggedDecision(values, columns, action - 1, propensity, scale.reward(cost), None))
        except (MalformedError, vw.MalformedLineError, InputError) as problem:
            raise StreamError(source.name, str(problem), number) from None
    if len(labels) < 2:
        raise StreamError(source.name, "every decision is action 1, but a log needs at least two actions")
    return builder.log(tuple(labels), width)


def _decision(line: bytes) -> tuple[int, float, float]:
    """Return action, cost and probability of a line."""
    head, bar, _ = line.partition(b"|")
    if not bar:
        raise MalformedError("no | before the features")
    tokens = head.decode("utf-8", "replace").split()
    if tokens and tokens[0] == "shared":
        raise MalformedError("this file has a line for each action (--cb_adf): add --actions")
    label = next((token for token in tokens if ":" in token and not token.startswith("'")), "")
    parts = label.split(":")
    numbers = [number for number in map(as_number, parts) if number is not None]
    if len(parts) != 3 or len(numbers) != 3:
        found = f"{shown(label)} is not" if label else "there is no"
        raise MalformedError(f"{found} action:cost:probability before the |, for example 2:0:0.25")
    action, cost, propensity = numbers
    if not (action.is_integer() and 1 <= action <= MOST):
        raise MalformedError(f"action {action:g} is not a number from 1")
    return int(action), cost, propensity


def _found_costs(source: str, costs: list[float]) -> Costs:
    """Return the range of the costs where they show it: -1..0 or 0..1."""
    low, high = min(costs, default=0.0), max(costs, default=0.0)
    if -1.0 <= low < 0.0 and high <= 0.0:
        return Costs(-1.0, 0.0)
    if 0.0 <= low and 0.0 < high <= 1.0:
        return Costs(0.0, 1.0)
    raise StreamError(source, f"the costs lie between {low:g} and {high:g}: give costs='LOW..HIGH', their range")
