"""The report of a model: a summary in one sentence, and its numbers. The web page shows it."""

import asyncio
import time
from typing import Any

import numpy as np

from gaptron.offpolicy.confidence_sequence import proven_interval
from gaptron.offpolicy.estimates import on_policy
from gaptron.serve.challenger_report import ChallengerFacts, challenger_info
from gaptron.serve.coordinator import Coordinator, Counters
from gaptron.serve.decisions import as_time
from gaptron.serve.model_state import Model
from gaptron.serve.tally import DELAYS, WINDOW, RecentOutcome

LEVEL = 0.95
MAX_LABELS = 20  # in the estimates for single labels
MAX_ACTIONS = 20  # the most played ones
POINTS = 20  # of the curve of the error rate
MIN_PLAYED, MIN_DIFFERENCE = 100, 0.1  # plays of a label, and difference in outcome rates, that justify a warning
COUNTS = (
    *("decisions", "outcomes", "late", "void", "overridden", "timed_out", "unusable", "agreed", "shadow"),
    "imported",
)
MAX_AGE = 1.0  # seconds for which a report is reused


class Facts:
    """Copies of the values that a report needs, so that it can be computed in another thread."""

    def __init__(self, coordinator: Coordinator, model: Model) -> None:
        self.name, self.mode, self.feedback = model.name, model.mode, model.spec.feedback
        self.algorithm = model.adapter.learner.algorithm
        self.has_actions = model.spec.actions
        self.labels = model.adapter.labels
        self.version, self.seq = model.version, model.seq
        tally = model.tally
        self.label_counts = [(counts.played, counts.outcomes, counts.errors) for counts in tally.labels]
        most_played = sorted(tally.actions.items(), key=lambda one: -one[1].played)[:MAX_ACTIONS]
        self.actions = [(action, counts.played, counts.outcomes, counts.errors) for action, counts in most_played]
        self.recent: list[RecentOutcome] = tally.recent[-WINDOW:]
        self.top_probabilities = tally.top_probabilities[-WINDOW:]
        self.tally = {name: getattr(tally, name) for name in COUNTS}
        self.delays = list(tally.delays)
        self.pending = len(model.pending)
        counters: Counters = coordinator.counters[model.name]
        self.counters = {name: getattr(counters, name) for name in ("duplicates", "conflicts", "refused", "retries")}
        self.certificate = model.adapter.certificate()
        self.challengers = [ChallengerFacts(one) for one in model.challengers.values()]
        self.expert_weights = model.adapter.expert_weights()
        self.changes = [{"at": as_time(at), "what": description} for at, description in tally.changes]


class ReportCache:
    """Reports that are computed at most once a second, however many pages show them."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[float, int, dict[str, Any]]] = {}

    async def get(self, coordinator: Coordinator, model: Model) -> dict[str, Any]:
        """Return the report of a model; compute it if it is old and the model has changed."""
        made_at, seq, made = self._reports.get(model.name, (0.0, -1, {}))
        if time.monotonic() - made_at > MAX_AGE and seq != model.seq:
            facts = Facts(coordinator, model)
            made = await asyncio.to_thread(report, facts)
            self._reports[model.name] = time.monotonic(), facts.seq, made
        return made


def report(facts: Facts) -> dict[str, Any]:
    """Compute the report."""
    errors = np.array([outcome.error for outcome in facts.recent])
    return {
        "model": facts.name,
        "summary": _summary(facts, errors),
        "warnings": _warnings(facts),
        "algorithm": facts.algorithm,
        "feedback": facts.feedback,
        "mode": facts.mode,
        "has_actions": facts.has_actions,
        "learned": facts.version,
        "seq": facts.seq,
        "counts": {**facts.tally, "pending": facts.pending, **facts.counters},
        "recent": _recent(errors),
        "mean_reward": _mean_reward(errors),
        "single_label": _single_label(facts, errors),
        "labels": _labels(facts),
        "actions": _actions(facts),
        "exploration": None if not facts.top_probabilities else 1.0 - float(np.mean(facts.top_probabilities)),
        "expert_weights": facts.expert_weights,
        "delays": [{"up_to": end, "outcomes": count} for end, count in zip([*map(float, DELAYS), None], facts.delays)],
        "challengers": [challenger_info(one, LEVEL) for one in facts.challengers],
        "certificate": facts.certificate,
        "changes": facts.changes,
    }


def _summary(facts: Facts, errors: Any) -> str:
    tally = facts.tally
    if not tally["decisions"]:
        return "No decisions yet."
    decisions = f"{tally['decisions']:,} decisions, {_percent(tally['outcomes'] / tally['decisions'])} with an outcome"
    if facts.mode == "shadow":
        agreed = tally["agreed"] / max(1, tally["shadow"])
        choice = "action" if facts.has_actions else "label"
        return f"Shadow mode. {decisions}; the model agrees with the played {choice} in {_percent(agreed)}."
    if not len(errors):
        return f"No outcomes yet. {decisions}."
    if facts.has_actions:
        reward = _mean_reward(errors)
        between = "" if reward is None else f" ({reward['low']:.2f} to {reward['high']:.2f})"
        mean = f"mean reward {1.0 - errors.mean():.2f}{between}"
        return f"Learning. {decisions}; {mean} in the last {len(errors):,} outcomes."
    return f"Learning. {decisions}; error rate {_percent(errors.mean())} in the last {len(errors):,} outcomes."


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _recent(errors: Any) -> dict[str, Any] | None:
    """The error rate of the recent outcomes, and its curve."""
    if len(errors) < 2:
        return None
    whole = on_policy(errors, LEVEL)
    chunks = [on_policy(chunk, LEVEL) for chunk in np.array_split(errors, min(POINTS, len(errors) // 10 or 1))]
    curve = [{"error_rate": one.mistakes, "low": one.low, "high": one.high} for one in chunks]
    return {
        "outcomes": len(errors),
        "error_rate": whole.mistakes,
        "low": whole.low,
        "high": whole.high,
        "curve": curve,
    }


def _mean_reward(errors: Any) -> dict[str, float] | None:
    """The mean reward of the recent outcomes, with its interval."""
    if len(errors) < 2:
        return None
    whole = on_policy(errors, LEVEL)
    return {"mean": 1.0 - whole.mistakes, "low": 1.0 - whole.high, "high": 1.0 - whole.low}


def _single_label(facts: Facts, errors: Any) -> list[dict[str, Any]]:
    """The estimated error rate of always playing one label, by inverse propensity, with its proven interval."""
    if facts.has_actions or facts.mode == "shadow" or len(errors) < 2:
        return []
    codes = np.array([outcome.code for outcome in facts.recent])
    propensities = np.array([outcome.propensity for outcome in facts.recent])
    most_played = sorted(range(len(facts.labels)), key=lambda code: -facts.label_counts[code][0])[:MAX_LABELS]
    estimates = []
    for code in most_played:
        estimate = proven_interval((codes == code) / propensities, errors, LEVEL)
        low, high = sorted((estimate.low, estimate.high))
        error_rate = min(max(estimate.mistakes, low), high)  # the weights need not average 1; the interval is proven
        estimates.append({"label": facts.labels[code], "error_rate": error_rate, "low": low, "high": high})
    return estimates


def _labels(facts: Facts) -> list[dict[str, Any]]:
    total = max(1, facts.tally["decisions"])
    return [
        {
            "label": label,
            "played": played,
            "share": played / total,
            "outcome_rate": outcomes / played if played else None,
            "error_rate": errors / outcomes if outcomes else None,
        }
        for label, (played, outcomes, errors) in zip(facts.labels, facts.label_counts)
    ]


def _actions(facts: Facts) -> list[dict[str, Any]]:
    """The most played actions."""
    total = max(1, facts.tally["decisions"])
    return [
        {
            "action": action,
            "played": played,
            "share": played / total,
            "outcome_rate": outcomes / played if played else None,
            "mean_reward": 1.0 - errors / outcomes if outcomes else None,
        }
        for action, played, outcomes, errors in facts.actions
    ]


def _warnings(facts: Facts) -> list[str]:
    rates = [
        (outcomes / played, label)
        for label, (played, outcomes, _) in zip(facts.labels, facts.label_counts)
        if played >= MIN_PLAYED
    ]
    if len(rates) < 2:
        return []
    (least, rare), (most, often) = min(rates), max(rates)
    if most - least < MIN_DIFFERENCE:
        return []
    return [
        f"{_percent(most)} of the decisions for {often} have an outcome, but only {_percent(least)} of those for "
        f"{rare}. If the missing outcomes differ from the known ones, the model and the estimates here are biased."
    ]
