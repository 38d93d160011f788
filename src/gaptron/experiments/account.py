"""Settings, certificate and bound of a run as plain values, the same wherever they are shown."""

import math
from collections.abc import Mapping
from typing import Any

from gaptron.algorithms import load
from gaptron.errors import NoBoundError
from gaptron.learner import Learner
from gaptron.trace import Trace

Account = dict[str, Any]


def settings(learner: Learner) -> Account:
    """The settings in use, in the words users type; None where there is no finite number."""
    words = load(learner.algorithm).CARD.words
    account: Account = {}
    for name, value in learner.settings._asdict().items():
        plain = value.item() if hasattr(value, "item") else value
        if name == "loss":
            account[name] = learner.problem.loss.word
        elif name in words:
            account[name] = words[name][int(plain)]
        else:
            account[name] = None if isinstance(plain, float) and not math.isfinite(plain) else plain
    return account


def certificate(learner: Learner, trace: Trace | None, notes: Mapping[str, float]) -> Account | None:
    """The bound that the run carried with it, and how the rounds went that it speaks of; None if there is none.

    Args:
        learner: after the run.
        trace: of the run, if it was kept.
        notes: the mean of each of the algorithm's notes over the run.
    """
    try:
        carried = learner.certificate
    except NoBoundError:
        return None
    if carried is None:
        return None
    account: Account = {"level": carried.level, "step": carried.step, "norm": carried.norm, "apart": carried.apart}
    if trace is not None:
        account["explored"] = float((trace.codes != trace.top).mean())
        if "solved" in notes:
            account["solved"] = notes["solved"]
    return account


def bound(learner: Learner, X: Any, y: Any, trace: Trace) -> tuple[Account | None, str | None]:
    """The bound for the best comparator in hindsight; or None, and why."""
    try:
        proved = learner.bound(X, y, trace)
    except NoBoundError as reason:
        return None, str(reason)
    if not math.isfinite(proved.value):
        return None, f"the bound is infinite ({proved.theorem})"
    return {
        "value": proved.value,
        "comparator_loss": proved.comparator.loss,
        "comparator_norm": proved.comparator.norm,
        "regret": proved.regret,
        "used": trace.expected_mistakes / proved.value if proved.value else None,  # of this very run
        "theorem": proved.theorem,
    }, None
