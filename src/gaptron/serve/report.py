"""The report of a model: a summary in one sentence, and its numbers. The web page shows it."""

import asyncio
import time
from math import isclose
from typing import Any

import numpy as np
from msgspec import structs

from gaptron.offpolicy.confidence_sequence import proven_interval_of_sums
from gaptron.offpolicy.estimates import on_policy
from gaptron.offpolicy.sums import WeightedSums
from gaptron.serve.challenger_report import ChallengerFacts, challenger_info
from gaptron.serve.coordinator import Coordinator, Counters
from gaptron.serve.decisions import as_time
from gaptron.serve.model_state import Model
from gaptron.serve.performance import LEVEL, Performance
from gaptron.serve.tally import DELAYS, WINDOW, LabelCounts, RecentOutcome

MAX_LABELS = 20  # in the estimates for single labels
MAX_ACTIONS = 20  # the most played ones
POINTS = 20  # of the curve of the error rate
MIN_PLAYED, MIN_DIFFERENCE = 100, 0.1  # plays of a label, and difference in outcome rates, that justify a warning
MAX_WIDTH = 0.5  # of an interval; a wider one says so little that its estimate is hidden
COUNTS = (
    "decisions",
    "outcomes",
    "late",
    "void",
    "overridden",
    "timed_out",
    "waiting",
    "unusable",
    "agreed",
    "shadow",
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
        self.label_counts = [structs.replace(counts) for counts in tally.labels]
        most_played = sorted(range(len(tally.labels)), key=lambda code: -tally.labels[code].played)[:MAX_LABELS]
        self.always = {code: tally.always(tally.labels[code]) for code in most_played}
        most_played_actions = sorted(tally.actions.items(), key=lambda one: -one[1].played)[:MAX_ACTIONS]
        self.actions = [(action, structs.replace(counts)) for action, counts in most_played_actions]
        self.recent: list[RecentOutcome] = tally.recent[-WINDOW:]
        self.top_probabilities = tally.top_probabilities[-WINDOW:]
        self.tally = {name: getattr(tally, name) for name in COUNTS}
        self.total, self.uniform = tally.total, tally.uniform
        self.shadow_played = Performance(tally.shadow, tally.shadow_played)
        self.shadow_model = tally.shadow_model
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
        is_of_deleted = seq < model.first_seq  # a model that had the same name
        if is_of_deleted or (time.monotonic() - made_at > MAX_AGE and seq != model.seq):
            facts = Facts(coordinator, model)
            made = await asyncio.to_thread(report, facts)
            self._reports[model.name] = time.monotonic(), facts.seq, made
        return made


def report(facts: Facts) -> dict[str, Any]:
    """Compute the report."""
    errors = np.array([outcome.error for outcome in facts.recent])
    shadow = _shadow(facts)
    return {
        "model": facts.name,
        "summary": _summary(facts, errors, shadow),
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
        "total": _total(facts),
        "uniform": _weighted(facts.uniform, facts),
        "single_label": _single_label(facts),
        "shadow": shadow,
        "labels": _labels(facts),
        "actions": _actions(facts),
        "exploration": None if not facts.top_probabilities else 1.0 - float(np.mean(facts.top_probabilities)),
        "expert_weights": facts.expert_weights,
        "delays": [{"up_to": end, "outcomes": count} for end, count in zip([*map(float, DELAYS), None], facts.delays)],
        "challengers": [challenger_info(one, LEVEL) for one in facts.challengers],
        "certificate": facts.certificate,
        "changes": facts.changes,
    }


# --- in words ---------------------------------------------------------------------------------------------------------


def _summary(facts: Facts, errors: Any, shadow: dict[str, Any] | None) -> str:
    tally = facts.tally
    imported = ""
    if tally["imported"]:
        were = "was" if tally["imported"] == 1 else "were"
        imported = f" {_number(tally['imported'], 'decision')} of other logs {were} imported and learned."
    return f"{_of_decisions(facts, errors, shadow)}{imported}"


def _of_decisions(facts: Facts, errors: Any, shadow: dict[str, Any] | None) -> str:
    tally = facts.tally
    if not tally["decisions"]:
        return "No decisions yet."
    decisions, waiting = _decisions(facts), ""
    if tally["waiting"]:
        waiting = f" {_number(tally['waiting'], 'outcome')} arrived and will be learned at the end of the timeout."
    if shadow is not None:
        return f"Shadow mode. {decisions}; {_comparison(facts, shadow)}.{waiting}"
    if not len(errors):
        if waiting and tally["imported"]:
            return f"{decisions}.{waiting}"
        return f"{'Nothing learned' if waiting else 'No outcomes'} yet. {decisions}.{waiting}"
    last = f"in the last {_number(len(errors), 'outcome')}{' and timeouts' if tally['timed_out'] else ''}"
    if facts.has_actions:
        reward = _mean_reward(errors)
        between = "" if reward is None else f" ({reward['low']:.2f} to {reward['high']:.2f})"
        return f"Learning. {decisions}; mean reward {1.0 - errors.mean():.2f}{between} {last}.{waiting}"
    return f"Learning. {decisions}; error rate {_percent(errors.mean())} {last}.{waiting}"


def _decisions(facts: Facts) -> str:
    tally = facts.tally
    with_outcome = (tally["outcomes"] + tally["waiting"]) / tally["decisions"]
    decisions = f"{_number(tally['decisions'], 'decision')}, {_percent(with_outcome)} with an outcome"
    if tally["timed_out"]:
        decisions += f", {_percent(tally['timed_out'] / tally['decisions'])} timed out and counted as wrong"
    return decisions


def _comparison(facts: Facts, shadow: dict[str, Any]) -> str:
    choice = "action" if facts.has_actions else "label"
    if shadow["agreement"] is None:
        return "none in this mode yet"
    agrees = f"the model agrees with the played {choice} in {_percent(shadow['agreement'])}"
    model, played = shadow["error_rate"], shadow["played"]["error_rate"]
    if model is None:
        return agrees
    low, high, caller = shadow["low"], shadow["high"], "that of the caller is"
    if facts.has_actions:
        reward = f"its mean reward would be {1.0 - model:.2f} ({1.0 - high:.2f} to {1.0 - low:.2f})"
        return f"{agrees}; {reward}, {caller} {1.0 - played:.2f}"
    error_rate = f"its error rate would be {_percent(model)} ({_percent(low)} to {_percent(high)})"
    return f"{agrees}; {error_rate}, {caller} {_percent(played)}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _warnings(facts: Facts) -> list[str]:
    """Warn if outcomes are missing more often for some labels: neither arrived, nor counted as wrong, nor still due."""
    rates = []
    for label, counts in zip(facts.labels, facts.label_counts):
        due = counts.played - counts.pending - counts.void
        if due >= MIN_PLAYED:
            rates.append(((counts.outcomes + counts.timed_out) / due, label))
    if len(rates) < 2:
        return []
    (least, rare), (most, often) = min(rates), max(rates)
    if most - least < MIN_DIFFERENCE:
        return []
    return [
        f"{_percent(most)} of the decisions for {often} have an outcome, but only {_percent(least)} of those for "
        f"{rare}. If the missing outcomes differ from the known ones, the model and the estimates here are biased."
    ]


# --- in numbers -------------------------------------------------------------------------------------------------------


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


def _total(facts: Facts) -> dict[str, Any]:
    """The policy as it was played, over the whole log."""
    rates = facts.total.rates()
    return {**rates, "mean_reward": None if rates["error_rate"] is None else 1.0 - rates["error_rate"]}


def _weighted(sums: WeightedSums, facts: Facts) -> dict[str, Any] | None:
    """The estimated error rate of another policy, by inverse propensity, with its proven interval.

    The estimate is self-normalised, since the weights need not average 1 where the policy plays what the log does not
    have; the interval is valid all the same.
    """
    if sums.mistakes.rounds < 2:
        return None
    proven = proven_interval_of_sums(sums, LEVEL)
    low, high = sorted((proven.low, proven.high))
    if high - low > MAX_WIDTH:
        hidden = f"the interval is {_percent(low)} to {_percent(high)}: {_what_is_missing(facts)}"
        return {"error_rate": None, "low": low, "high": high, "hidden": hidden}
    error_rate = min(max(sums.mistakes.total / (sums.weight or 1.0), low), high)
    return {"error_rate": error_rate, "low": low, "high": high}


def _what_is_missing(facts: Facts) -> str:
    """Why an interval is wide: more random draws help only where not every decision was drawn uniformly."""
    if isclose(facts.uniform.weight, facts.uniform.mistakes.rounds):  # every weight is 1
        return "too few decisions for an estimate yet"
    source = "by the caller" if facts.mode == "shadow" else "(epsilon)"
    return f"too few decisions say something about it yet; more of them do if more are drawn at random {source}"


def _single_label(facts: Facts) -> list[dict[str, Any]]:
    """The estimated error rates of always playing one label, over the whole log."""
    estimates = ((facts.labels[code], _weighted(sums, facts)) for code, sums in facts.always.items())
    return [{"label": label, **estimate} for label, estimate in estimates if estimate is not None]


def _shadow(facts: Facts) -> dict[str, Any] | None:
    """In shadow mode: what the model would have earned, and what the caller did, over all decisions in this mode."""
    if facts.mode != "shadow":
        return None
    played = facts.shadow_played.rates()
    model = _weighted(facts.shadow_model, facts) or {"error_rate": None, "low": None, "high": None}
    return {
        "agreement": facts.tally["agreed"] / facts.tally["shadow"] if facts.tally["shadow"] else None,
        "decisions": played.pop("decisions"),
        "outcomes": played.pop("outcomes"),
        **model,
        "played": played,
    }


def _labels(facts: Facts) -> list[dict[str, Any]]:
    counted = [(label, counts, _error_rate(counts)) for label, counts in zip(facts.labels, facts.label_counts)]
    return [
        {"label": label, **_counts(facts, counts), "error_rate": error_rate} for label, counts, error_rate in counted
    ]


def _actions(facts: Facts) -> list[dict[str, Any]]:
    """The most played actions."""
    counted = [(action, counts, _error_rate(counts)) for action, counts in facts.actions]
    return [
        {"action": action, **_counts(facts, counts), "mean_reward": None if error_rate is None else 1.0 - error_rate}
        for action, counts, error_rate in counted
    ]


def _counts(facts: Facts, counts: LabelCounts) -> dict[str, Any]:
    return {
        "played": counts.played,
        "share": counts.played / max(1, facts.tally["decisions"]),
        "outcome_rate": (counts.outcomes + counts.waiting) / counts.played if counts.played else None,
        "timed_out": counts.timed_out,
    }


def _error_rate(counts: LabelCounts) -> float | None:
    """The share of what was learned from that was wrong; a timeout that is learned from counts as wrong."""
    learned = counts.outcomes + counts.timed_out
    return (counts.errors + counts.timed_out) / learned if learned else None
