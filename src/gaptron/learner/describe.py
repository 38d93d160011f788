"""A learner's settings, certificate, bound and observed evidence as plain values for JSON, reports and summaries."""

import math
from collections.abc import Mapping
from typing import Any

from gaptron.algorithms import load
from gaptron.errors import NoBoundError
from gaptron.learner.learner import Learner
from gaptron.learner.trace import Tally, Trace
from gaptron.types import Observed

RADIUS = 20.0  # ‖U‖X of the rules that the sentence about the observed feedback covers

Values = dict[str, Any]


def settings(learner: Learner) -> Values:
    """Return the settings in use, with choices as the words users type; None for a number that is not finite."""
    words = load(learner.algorithm).CARD.words
    values: Values = {}
    for name, value in learner.settings._asdict().items():
        plain = value.item() if hasattr(value, "item") else value
        if name == "loss":
            values[name] = learner.problem.loss.word
        elif name in words:
            values[name] = words[name][int(plain)]
        else:
            values[name] = None if isinstance(plain, float) and not math.isfinite(plain) else plain
    return values


def certificate(learner: Learner, tally: Tally, notes: Mapping[str, float]) -> Values | None:
    """Return the learner's certificate and how many rounds explored; None if the algorithm has no certificate.

    Args:
        learner: after the run.
        tally: the totals of the run.
        notes: the mean of each of the algorithm's notes over the run.
    """
    try:
        proved = learner.certificate
    except NoBoundError:
        return None
    if proved is None:
        return None
    values: Values = {name: getattr(proved, name) for name in ("level", "step", "norm", "apart", "exploiting")}
    values["explored"] = tally.explored / tally.rounds
    if "solved" in notes:
        values["solved"] = notes["solved"]
    return values


def observed(evidence: Observed | None) -> Values | None:
    """Return what the feedback proves about every linear rule; None if no evidence was collected."""
    if evidence is None:
        return None
    return {
        **evidence._asdict(),
        "softmax": [proof._asdict() for proof in evidence.softmax],
        "one_vs_all": [proof._asdict() for proof in evidence.one_vs_all],
        "radius": RADIUS,
        "cost": evidence.cost(RADIUS / evidence.norm) if evidence.norm > 0.0 else None,
        "least_loss": evidence.least_loss(RADIUS),
        "sentence": evidence.sentence(RADIUS),
    }


def observed_by(learner: Learner) -> tuple[Values | None, str | None]:
    """Return what this learner's feedback proves; or None and the reason, if there is one."""
    try:
        return observed(learner.observed), None
    except NoBoundError as reason:
        return None, str(reason)


def bound(learner: Learner, X: Any, y: Any, trace: Trace) -> tuple[Values | None, str | None]:
    """Return the bound for the best comparator in hindsight; or None and the reason why there is none."""
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
        "used": trace.expected_mistakes / proved.value if proved.value else None,  # by this run
        "theorem": proved.theorem,
    }, None
