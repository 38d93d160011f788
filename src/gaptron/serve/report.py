"""What a model's page shows: one sentence, and the numbers behind it."""

from typing import Any

import numpy as np

from gaptron.logged.confidence_sequence import proved_interval
from gaptron.logged.estimates import on_policy
from gaptron.serve.decisions import as_time
from gaptron.serve.desk import Counts, Desk
from gaptron.serve.fold import Model
from gaptron.serve.tally import DELAYS, WINDOW, Seen

LEVEL = 0.95
MOST_SHOWN = 20  # labels
PIECES = 20  # of the window, for its curve
MANY, APART = 100, 0.1  # plays of a label, and difference of shares answered, that are worth a warning


class Facts:
    """What the report needs of a model, copied, so that it can be made in another thread."""

    def __init__(self, desk: Desk, model: Model) -> None:
        self.name, self.mode, self.feedback = model.name, model.mode, model.spec.feedback
        self.algorithm = model.adapter.learner.algorithm
        self.labels = model.adapter.labels
        self.version, self.seq = model.version, model.seq
        tally = model.tally
        self.of_label = [(one.played, one.answered, one.wrong) for one in tally.labels]
        self.recent: list[Seen] = tally.recent[-WINDOW:]
        self.sure = tally.sure[-WINDOW:]
        self.sums = {
            word: getattr(tally, word)
            for word in ("decisions", "answered", "late", "void", "overridden", "defaulted", "agreed", "apprenticed")
        }
        self.delays = list(tally.delays)
        self.waiting = len(model.waiting)
        counts: Counts = desk.counts[model.name]
        self.here = {word: getattr(counts, word) for word in ("duplicates", "conflicts", "refused", "retries")}
        self.certificate = model.adapter.certificate()
        self.heard = model.adapter.heard()
        self.changes = [{"at": as_time(at), "what": words} for at, words in tally.changes]


def report(facts: Facts) -> dict[str, Any]:
    """All numbers of the page, as JSON has them."""
    wrong = np.array([seen.wrong for seen in facts.recent])
    return {
        "model": facts.name,
        "sentence": _sentence(facts, wrong),
        "warnings": _warnings(facts),
        "algorithm": facts.algorithm,
        "feedback": facts.feedback,
        "mode": facts.mode,
        "learned": facts.version,
        "seq": facts.seq,
        "counts": {**facts.sums, "waiting": facts.waiting, **facts.here},
        "recent": _mistakes(wrong),
        "always": _always(facts, wrong),
        "labels": _labels(facts),
        "exploration": None if not facts.sure else 1.0 - float(np.mean(facts.sure)),
        "heard": facts.heard,
        "delays": [{"upto": end, "answers": count} for end, count in zip([*map(float, DELAYS), None], facts.delays)],
        "certificate": facts.certificate,
        "changes": facts.changes,
    }


def _sentence(facts: Facts, wrong: Any) -> str:
    sums = facts.sums
    if not sums["decisions"]:
        return "Nothing was decided yet."
    asked = f"{sums['decisions']:,} decisions, {_percent(sums['answered'] / sums['decisions'])} answered"
    if facts.mode == "apprentice":
        agreed = sums["agreed"] / max(1, sums["apprenticed"])
        return f"Apprentice. {asked}; it would have played your label in {_percent(agreed)}."
    if not len(wrong):
        return f"Waiting for answers. {asked}."
    return f"Learning. {asked}, {_percent(wrong.mean())} wrong of the last {len(wrong):,} answered."


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _mistakes(wrong: Any) -> dict[str, Any] | None:
    """The share of mistakes in the window, and in each piece of it."""
    if len(wrong) < 2:
        return None
    whole = on_policy(wrong, LEVEL)
    pieces = [on_policy(part, LEVEL) for part in np.array_split(wrong, min(PIECES, len(wrong) // 10 or 1))]
    curve = [{"wrong": one.mistakes, "low": one.low, "high": one.high} for one in pieces]
    return {"answers": len(wrong), "wrong": whole.mistakes, "low": whole.low, "high": whole.high, "curve": curve}


def _always(facts: Facts, wrong: Any) -> list[dict[str, Any]]:
    """What always playing one label would have cost in the window, by inverse propensity, with the proved interval."""
    if facts.mode == "apprentice" or len(wrong) < 2:
        return []
    codes = np.array([seen.code for seen in facts.recent])
    chances = np.array([seen.probability for seen in facts.recent])
    shown = sorted(range(len(facts.labels)), key=lambda code: -facts.of_label[code][0])[:MOST_SHOWN]
    rows = []
    for code in shown:
        estimate = proved_interval((codes == code) / chances, wrong, LEVEL)
        low, high = sorted((estimate.low, estimate.high))
        wrong_share = min(max(estimate.mistakes, low), high)  # weights do not average 1 exactly; the interval is proved
        rows.append({"label": facts.labels[code], "wrong": wrong_share, "low": low, "high": high})
    return rows


def _labels(facts: Facts) -> list[dict[str, Any]]:
    total = max(1, facts.sums["decisions"])
    return [
        {
            "label": label,
            "played": played,
            "share": played / total,
            "answered": answered / played if played else None,
            "wrong": wrong / answered if answered else None,
        }
        for label, (played, answered, wrong) in zip(facts.labels, facts.of_label)
    ]


def _warnings(facts: Facts) -> list[str]:
    shares = [
        (answered / played, label)
        for label, (played, answered, _) in zip(facts.labels, facts.of_label)
        if played >= MANY
    ]
    if len(shares) < 2:
        return []
    (least, rare), (most, often) = min(shares), max(shares)
    if most - least < APART:
        return []
    return [
        f"{often} is answered in {_percent(most)} of its decisions, {rare} in {_percent(least)}. If the answers that "
        "are missing differ from those that came, what is learned and estimated here is biased."
    ]
