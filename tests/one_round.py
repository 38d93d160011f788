"""One update, computed on copies: the learner itself does not change."""

import copy
from typing import Any

import numpy as np

import gaptron
from gaptron.data.examples import only_row, sealed_row
from gaptron.kernels import play
from gaptron.types import UNKNOWN, Nothing, named


def state_after(learner: gaptron.Learner, decision: gaptron.Decision, label: int, shown: int) -> Any:
    """The state after the newest decision if it had played `label` and the feedback had revealed `shown`."""
    core = learner._engine
    assert decision.round == core.last_scored_round
    state, rd, work = copy.deepcopy((core.state, core.round, core.scratch))
    beside = copy.deepcopy((core.evidence, core.evidence_buffer))
    learn_once(core.settings, state, decision._x, rd, work, label, shown, beside)
    return state


def decide_once(settings: Any, state: Any, x: Any, rd: Any, work: Any, u: float = 0.5) -> int:
    """The label that u draws for an example, with the advice and labels of the round; nothing is committed."""
    count, unseen = named(decided=0, learned=0, trail=0), np.zeros((1, 0))
    given = only_row(sealed_row(x)), u, rd.advice[None].copy(), rd.available[None].copy()
    label = play.score(settings, state, *given, rd, work, count, False, unseen, unseen)
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
    """Run the compiled `learn_once` on these tuples."""
    rd.feedback[0].reward = float(shown == label)
    rd.feedback[0].propensity = rd.p[label if shown == UNKNOWN else shown]
    count, answered = named(decided=1, learned=0, trail=0), np.zeros(1, dtype=np.bool_)
    play.learn_once(settings, state, sealed_row(x), rd, work, label, shown, count, answered, *beside)
    assert answered[0] and count[0].learned == 1
