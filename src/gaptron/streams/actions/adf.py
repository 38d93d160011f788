"""Vowpal Wabbit's text with action-dependent features (`--cb_explore_adf`): a block of lines per round.

    shared |C user=student hour:14
    |A 'article-7 topic=sport age:3
    0:-1:0.8 'article-9|A topic=news age:1

Blocks are separated by empty lines. The line of the action played begins with `action:cost:probability`; the number
of the action is not used. If every action has `action:cost` without a probability, as in `--csoaa_ldf`, the costs are
those of every action. The tag of a line, or else its feature id, is the id of the action.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gaptron.data.text_numbers import as_number, shown
from gaptron.errors import StreamError
from gaptron.streams import vw
from gaptron.streams.actions.costs import Costs
from gaptron.streams.actions.features import JOIN, put_token
from gaptron.streams.actions.ids import Ids
from gaptron.streams.actions.rounds import PLAYED, REWARDS, NamedRounds, Round, RoundCollector
from gaptron.streams.json_lines import MalformedError
from gaptron.streams.source import Source, read_text
from gaptron.types import MOST_ACTIONS

LINES = 1 << 16  # read at a time
SHARED = "shared"


class _Line(NamedTuple):
    """A line of a block."""

    number: int
    is_shared: bool
    label: tuple[float, ...]  # cost and, of the action played, probability
    tag: str | None
    features: dict[str, Any]


def read(source: Source, costs: Costs, ids: Ids) -> NamedRounds:
    """Read a file in this format."""
    rounds = RoundCollector(source.name)
    for block in _blocks(source):
        at = block[0][0]
        try:
            lines = []
            for at, line in block:
                lines.append(_line(at, line))
            at = block[0][0]
            given = _round(lines, costs, ids)
        except (MalformedError, vw.MalformedLineError) as problem:
            raise StreamError(source.name, str(problem), at) from None
        rounds.add(at, given)
    return rounds.stream(named=not ids.by_position, notes=ids.notes)


def _blocks(source: Source) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the lines of each round with their numbers."""
    block: list[tuple[int, bytes]] = []
    for text in read_text(source, LINES):
        text.check_line_ends()
        for number, line in enumerate(text.data.splitlines(), text.first):
            if line.strip():
                block.append((number, line))
                if len(block) > MOST_ACTIONS + 1:
                    raise StreamError(
                        source.name,
                        f"there are more than {MOST_ACTIONS} actions in the round of line {block[0][0]}: choose "
                        "candidates, and put an empty line between rounds",
                        number,
                    )
            elif block:
                yield block
                block = []
    if block:
        yield block


def _line(number: int, line: bytes) -> _Line:
    head, bar, _ = line.partition(b"|")
    if not bar:
        raise MalformedError("no | before the features")
    try:
        tokens = head.decode().split()
        tag = None
        if tokens and (tokens[-1].startswith("'") or not head[-1:].isspace()):
            tag = tokens.pop().removeprefix("'")
        features: dict[str, Any] = {}
        for namespace, name, value in vw.features(line):
            space = namespace.decode()
            put_token(features, f"{space}{JOIN}{name.decode()}" if space else name.decode(), value)
    except UnicodeDecodeError:
        raise MalformedError("the line is not UTF-8 text: convert the file first") from None
    is_shared = tokens == [SHARED] or (not tokens and tag == SHARED)
    return _Line(number, is_shared, () if is_shared else _label(tokens), tag, features)


def _label(tokens: list[str]) -> tuple[float, ...]:
    if not tokens:
        return ()
    parts = tokens[0].split(":")
    numbers = [as_number(part) for part in parts]
    if len(tokens) > 1 or len(parts) not in (2, 3) or None in numbers:
        raise MalformedError(f"{shown(' '.join(tokens))} is not action:cost:probability, as in 0:-1:0.8")
    return tuple(number for number in numbers[1:] if number is not None)


def _round(lines: list[_Line], costs: Costs, ids: Ids) -> Round:
    context: dict[str, Any] = {}
    if lines[0].is_shared:
        context, lines = lines[0].features, lines[1:]
    late = next((line for line in lines if line.is_shared), None)
    if late is not None:
        raise MalformedError(
            f"line {late.number} is shared, but not the first of its round: put an empty line before it"
        )
    actions = [(ids.take(at, line.tag, line.features), line.features) for at, line in enumerate(lines)]
    labels = [line.label for line in lines]
    played = [at for at, label in enumerate(labels) if label]
    if not played:
        raise MalformedError(
            "no action of this round has a cost: write action:cost:probability before the action played, or remove the "
            "round"
        )
    if len(played) == len(labels) and all(len(label) == 1 for label in labels):
        return Round(context, actions, REWARDS, rewards=[costs.reward(label[0]) for label in labels])
    if len(played) > 1:
        raise MalformedError(f"lines {lines[played[0]].number} and {lines[played[1]].number} both have a cost")
    label = labels[played[0]]
    if len(label) < 2:
        raise MalformedError("the action played has a cost but no probability: write action:cost:probability")
    return Round(context, actions, PLAYED, played[0], label[1], [costs.reward(label[0])])
