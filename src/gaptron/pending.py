"""Decisions that wait for their answers, by round.

They are held weakly: nobody can answer a decision that its caller has dropped, so dropping one frees it, and a learner
whose answers never come does not grow. Decisions that come from a file are held until they are answered or forgotten,
for nobody else holds them.
"""

from typing import Any
from weakref import ref

FIRST_SWEEP = 1_024


class Pending:
    """The decisions one learner has made and not been told about."""

    def __init__(self) -> None:
        self._waiting: dict[int, ref[Any]] = {}
        self._held: dict[int, Any] = {}
        self._sweep = FIRST_SWEEP  # how many there may be before dropped ones are looked for

    def add(self, decision: Any) -> None:
        """Watch a decision."""
        self._waiting[decision.round] = ref(decision)
        if len(self._waiting) > self._sweep:
            self._waiting = {round: seen for round, seen in self._waiting.items() if seen() is not None}
            self._sweep = max(FIRST_SWEEP, 2 * len(self._waiting))

    def hold(self, decision: Any) -> None:
        """Watch a decision, and keep it."""
        self.add(decision)
        self._held[decision.round] = decision

    def close(self, decision: Any) -> None:
        """It was answered, or never will be."""
        del self._waiting[decision.round]
        self._held.pop(decision.round, None)

    def __contains__(self, decision: Any) -> bool:
        seen = self._waiting.get(decision.round)
        return seen is not None and seen() is decision

    def by_round(self) -> dict[int, Any]:
        """All of them that somebody still holds, the oldest first."""
        found = {round: seen() for round, seen in sorted(self._waiting.items())}
        return {round: decision for round, decision in found.items() if decision is not None}
