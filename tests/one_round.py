"""What one answer teaches, tried out on copies: the learner itself stays as it was."""

import copy
from typing import Any

import numpy as np

import gaptron
from gaptron.kernels import play
from gaptron.types import UNKNOWN, Nothing, named
from gaptron.validation import only_row, sealed_row


def taught(learner: gaptron.Learner, decision: gaptron.Decision, label: int, shown: int) -> Any:
    """The state after the newest decision, had it played `label` and been shown `shown`, by the real `learn`."""
    core = learner._core
    assert decision.round == core.fresh
    state, rd, work = copy.deepcopy((core.state, core.round, core.scratch))
    beside = copy.deepcopy((core.seen, core.seen_room))
    learn_once(core.settings, state, decision._x, rd, work, label, shown, beside)
    return state


def decide_once(settings: Any, state: Any, x: Any, rd: Any, work: Any, u: float = 0.5) -> int:
    """The label that u draws for a row, with the round's own advice and labels; the decision is not taken."""
    count, unseen = named(decided=0, learned=0, trail=0), np.zeros((1, 0))
    given = only_row(sealed_row(x)), u, rd.advice[None].copy(), rd.among[None].copy()
    label = play.look(settings, state, *given, rd, work, count, False, unseen, unseen)
    assert count[0].decided == 0
    return int(label)


def learn_once(
    settings: Any,
    state: Any,
    x: Any,
    rd: Any,
    work: Any,
    label: int,
    shown: int,
    beside: tuple[Any, Any] = (Nothing(), np.zeros(0)),
) -> None:
    """The loop's verb, with nobody counting."""
    rd.answer[0].reward = float(shown == label)
    rd.answer[0].chance = rd.p[label if shown == UNKNOWN else shown]
    count, answered = named(decided=1, learned=0, trail=0), np.zeros(1, dtype=np.bool_)
    play.learn_once(settings, state, sealed_row(x), rd, work, label, shown, count, answered, *beside)
    assert answered[0] and count[0].learned == 1
