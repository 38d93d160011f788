"""Statistics of a run: the frequency of each label, the mistakes in the last quarter, the most frequent confusions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gaptron.learner.trace import Trace

MAX_CONFUSIONS, MAX_LABELS = 3, 6  # pairs of labels, and labels, that a summary lists
CHANGED = 2.0  # standard errors by which the last quarter differs from the rounds before it
MAX_CLASSES = 1_000  # with more classes, pairs of labels are not counted


class RunStatistics:
    """Counts over a run that is played in chunks.

    Args:
        classes: the labels in the order of their codes.
        n_rounds: the number of rounds, if it is known.
    """

    def __init__(self, classes: Sequence[Any], n_rounds: int | None) -> None:
        K = len(classes)
        self.classes = classes
        self._last_quarter = None if n_rounds is None else n_rounds - n_rounds // 4  # its first round
        self._rounds = np.zeros(K, dtype=np.int64)
        self._pairs = np.zeros((K, K) if K <= MAX_CLASSES else (0, 0), dtype=np.int64)
        self._played = self._mistakes = self._late_mistakes = 0

    def add(self, trace: "Trace") -> None:
        """Count a chunk."""
        self._rounds += np.bincount(trace.truth, minlength=len(self.classes))
        if self._pairs.size:
            np.add.at(self._pairs, (trace.truth, trace.top), 1)
        if self._last_quarter is not None:
            self._late_mistakes += int(trace.wrong[max(0, self._last_quarter - self._played) :].sum())
        self._played += trace.rounds
        self._mistakes += trace.mistakes

    def as_values(self) -> dict[str, Any]:
        """Return the statistics as plain values."""
        most = int(self._rounds.argmax())
        return {
            "classes": [{"label": label, "rounds": int(n)} for label, n in zip(self.classes, self._rounds)],
            "majority": {"label": self.classes[most], "mistakes": int(self._played - self._rounds[most])},
            "last_quarter": self._recent(),
            "confused": self._confusions(),
        }

    def _recent(self) -> dict[str, Any] | None:
        """The mistakes of the last quarter, and whether they are more or fewer than before beyond chance."""
        late = 0 if self._last_quarter is None else self._played - self._last_quarter
        if not late:
            return None
        before, share = self._played - late, self._mistakes / self._played
        change = self._late_mistakes / late - (self._mistakes - self._late_mistakes) / before
        noticeable = CHANGED * (share * (1.0 - share) * (1.0 / before + 1.0 / late)) ** 0.5
        kind = "none" if abs(change) <= noticeable else "rise" if change > 0.0 else "fall"
        return {"rounds": late, "mistakes": self._late_mistakes, "change": kind}

    def _confusions(self) -> list[dict[str, Any]]:
        wrong = self._pairs.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_CONFUSIONS]
        pairs = [divmod(int(at), len(wrong)) for at in order]
        return [
            {"truth": self.classes[truth], "top": self.classes[top], "rounds": int(wrong[truth, top])}
            for truth, top in pairs
            if wrong[truth, top]
        ]


def frequencies(classes: list[dict[str, Any]], rounds: int) -> str:
    """List the most frequent labels with their shares."""
    ranked = sorted(classes, key=lambda each: -int(each["rounds"]))
    shares = [f"{each['label']} {each['rounds'] / max(1, rounds):.0%}" for each in ranked[:MAX_LABELS]]
    more = f" and {len(ranked) - MAX_LABELS} more" if len(ranked) > MAX_LABELS else ""
    return ", ".join(shares) + more
