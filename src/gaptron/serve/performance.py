"""How well decisions did: counts and running sums of some of them, such as those of one hour or one country."""

from typing import Any

from msgspec import Struct

from gaptron.offpolicy.estimates import on_policy_of_sums
from gaptron.offpolicy.sums import MistakeSums

LEVEL = 0.95  # of every interval that the service shows


class Performance(Struct, array_like=True, gc=False):
    """The counts of some decisions."""

    decisions: int = 0
    mistakes: MistakeSums = MistakeSums()  # 1 - reward, of those that were learned from

    def learned(self, error: float) -> None:
        """Count one of the decisions as learned from."""
        self.mistakes = self.mistakes.add(error)

    def rates(self) -> dict[str, Any]:
        """The error rate with its interval; `outcomes` includes timeouts that count as wrong."""
        rates: dict[str, Any] = {"decisions": self.decisions, "outcomes": self.mistakes.rounds}
        if not self.mistakes.rounds:
            return {**rates, "error_rate": None, "low": None, "high": None}
        found = on_policy_of_sums(self.mistakes, LEVEL)
        return {**rates, "error_rate": found.mistakes, "low": found.low, "high": found.high}
