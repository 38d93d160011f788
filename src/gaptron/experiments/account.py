"""Settings, certificate, bound and what was observed of a run as plain values, the same wherever they are shown."""

import math
from collections.abc import Mapping
from typing import Any

from gaptron.algorithms import load
from gaptron.errors import NoBoundError
from gaptron.learner import Learner
from gaptron.trace import Tally, Trace
from gaptron.types import Observed

Account = dict[str, Any]
RADIUS = 20.0  # of the rules, ‖U‖X, that is spoken of where what was observed is shown


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


def certificate(learner: Learner, tally: Tally, notes: Mapping[str, float]) -> Account | None:
    """The bound that the run carried with it, and how the rounds went that it speaks of; None if there is none.

    Args:
        learner: after the run.
        tally: of the run.
        notes: the mean of each of the algorithm's notes over the run.
    """
    try:
        carried = learner.certificate
    except NoBoundError:
        return None
    if carried is None:
        return None
    account: Account = {name: getattr(carried, name) for name in ("level", "step", "norm", "apart", "free")}
    account["explored"] = tally.explored / tally.rounds
    if "solved" in notes:
        account["solved"] = notes["solved"]
    return account


def observed(said: Observed | None) -> Account | None:
    """What the answers proved of every linear rule; None if that was not kept."""
    if said is None:
        return None
    return {
        **said._asdict(),
        "softmax": [proof._asdict() for proof in said.softmax],
        "one_vs_all": [proof._asdict() for proof in said.one_vs_all],
        "radius": RADIUS,
        "cost": said.cost(RADIUS / said.norm) if said.norm > 0.0 else None,
        "least_loss": said.least_loss(RADIUS),
        "sentence": said.sentence(RADIUS),
    }


def observed_by(learner: Learner) -> tuple[Account | None, str | None]:
    """What the answers of this learner proved; or None, and why where there is a reason."""
    try:
        return observed(learner.observed), None
    except NoBoundError as reason:
        return None, str(reason)


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
