"""What a user wants to know of a run first: how the labels were spread, the last quarter, what was taken for what."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gaptron.trace import Trace

CONFUSED, NAMED = 3, 6  # pairs of labels, and labels, that a summary lists
LARGEST = 1_000  # labels up to which every pair is counted


class Seen:
    """Counts over a run that comes in pieces. `late`: the round the last quarter begins with, where that is known."""

    def __init__(self, classes: Sequence[Any], late: int | None) -> None:
        K = len(classes)
        self.classes = classes
        self._late = late
        self._rounds = np.zeros(K, dtype=np.int64)
        self._pairs = np.zeros((K, K) if K <= LARGEST else (0, 0), dtype=np.int64)
        self._done = self._late_mistakes = 0

    def add(self, part: "Trace") -> None:
        """Count a piece."""
        self._rounds += np.bincount(part.truth, minlength=len(self.classes))
        if self._pairs.size:
            np.add.at(self._pairs, (part.truth, part.top), 1)
        if self._late is not None:
            self._late_mistakes += int(part.wrong[max(0, self._late - self._done) :].sum())
        self._done += part.rounds

    def account(self) -> dict[str, Any]:
        """All of it as plain values."""
        quarter = None if self._late is None else self._done - self._late
        return {
            "classes": [{"label": label, "rounds": int(n)} for label, n in zip(self.classes, self._rounds)],
            "last_quarter": {"rounds": quarter, "mistakes": self._late_mistakes} if quarter else None,
            "confused": self._confused(),
        }

    def _confused(self) -> list[dict[str, Any]]:
        wrong = self._pairs.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:CONFUSED]
        pairs = [divmod(int(at), len(wrong)) for at in order]
        return [
            {"truth": self.classes[truth], "top": self.classes[top], "rounds": int(wrong[truth, top])}
            for truth, top in pairs
            if wrong[truth, top]
        ]


def shares(classes: list[dict[str, Any]], rounds: int) -> str:
    """The commonest labels and how often each came."""
    ranked = sorted(classes, key=lambda each: -int(each["rounds"]))
    words = [f"{each['label']} {each['rounds'] / max(1, rounds):.0%}" for each in ranked[:NAMED]]
    more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
    return ", ".join(words) + more
