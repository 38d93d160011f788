"""Costs as rewards: Vowpal Wabbit's files have the cost of an action, and learners its reward."""

from typing import NamedTuple

from gaptron.data.text_numbers import as_number
from gaptron.errors import SettingError
from gaptron.streams.json_lines import MalformedError

_BETWEEN = ".."


class Costs(NamedTuple):
    """The range of costs: the lowest is a reward of 1, the highest one of 0."""

    low: float = -1.0
    high: float = 0.0

    def reward(self, cost: float) -> float:
        """Return (high - cost) / (high - low); raise MalformedError if the cost is outside the range."""
        if not self.low <= cost <= self.high:
            raise MalformedError(
                f"cost {cost:g} is not in [{self.low:g}, {self.high:g}], where {self.low:g} is a reward of 1: "
                "give costs='LOW..HIGH', for example costs='0..1'"
            )
        return (self.high - cost) / (self.high - self.low)

    def cost(self, reward: float) -> float:
        """Return the cost of a reward in [0, 1]."""
        return self.high - reward * (self.high - self.low)


def read_costs(text: str | None) -> Costs:
    """Parse a range of costs such as "0..1"; None is "-1..0", where the cost is the reward with a minus sign."""
    if text is None:
        return Costs()
    low, between, high = text.partition(_BETWEEN)
    ends = as_number(low), as_number(high)
    if not between or ends[0] is None or ends[1] is None or not -1e100 <= ends[0] < ends[1] <= 1e100:
        raise SettingError(f"costs={text!r} must be the lowest and the highest cost, for example '0..1' or '-1..0'")
    return Costs(ends[0], ends[1])
