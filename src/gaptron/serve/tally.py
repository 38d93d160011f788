"""Counts over the events of one model, for the report and for Prometheus. They depend on the log only."""

from typing import TypeVar

from msgspec import Struct, field

T = TypeVar("T")

WINDOW, MAX_CHANGES = 1000, 50
MAX_ACTIONS = 1000  # that are counted; beyond, the half that was played least is forgotten
DELAYS = (1, 10, 60, 600, 3600, 86_400)  # seconds: the upper ends of all columns but the last


class RecentOutcome(Struct, array_like=True, gc=False):
    """A decision that was learned from."""

    code: int  # of its label; -1 if it was an action
    error: float  # 1 - reward
    propensity: float


class LabelCounts(Struct, array_like=True, gc=False):
    """The counts of one label or action."""

    played: int = 0
    outcomes: int = 0
    errors: float = 0.0


class Tally(Struct):
    """The counts of one model."""

    decisions: int = 0
    outcomes: int = 0
    late: int = 0
    void: int = 0
    overridden: int = 0
    timed_out: int = 0
    unusable: int = 0  # of decisions whose propensity is out of bounds, in logs of other versions
    agreed: int = 0  # shadow mode: the caller played the label that the model would have played
    shadow: int = 0
    imported: int = 0  # decisions of other logs; they count nowhere else
    labels: list[LabelCounts] = field(default_factory=list)
    actions: dict[str, LabelCounts] = field(default_factory=dict)  # of those that are counted, since they are
    delays: list[int] = field(default_factory=lambda: [0] * (len(DELAYS) + 1))
    recent: list[RecentOutcome] = field(default_factory=list)  # only the last WINDOW count
    top_probabilities: list[float] = field(default_factory=list)  # the largest of each recent distribution
    changes: list[tuple[int, str]] = field(default_factory=list)  # the last ones: time in µs, and description

    def changed(self, at: int, description: str) -> None:
        """Record a change of the configuration."""
        self.changes = [*self.changes, (at, description)][-MAX_CHANGES:]

    def decided(self, played: int | str, top_probability: float | None, agreed: bool | None) -> None:
        """Count a decision for a label (its code) or an action (its id).

        `top_probability` is None in shadow mode, `agreed` is None in live mode.
        """
        self.decisions += 1
        self._counts(played).played += 1
        if top_probability is not None:
            _append(self.top_probabilities, top_probability)
        if agreed is not None:
            self.shadow += 1
            self.agreed += agreed

    def learned(self, played: int | str, error: float, propensity: float, delay: int | None) -> None:
        """Count a decision that was learned from, `delay` µs after it was made; None: it timed out."""
        if delay is None:
            self.timed_out += 1
        else:
            self.outcomes += 1
            counts = self._counts(played)
            counts.outcomes += 1
            counts.errors += error
            self.delays[sum(delay >= 1_000_000 * end for end in DELAYS)] += 1
        _append(self.recent, RecentOutcome(played if isinstance(played, int) else -1, error, propensity))

    def _counts(self, played: int | str) -> LabelCounts:
        if isinstance(played, int):
            return self.labels[played]
        if played not in self.actions:
            if len(self.actions) >= MAX_ACTIONS:
                most = sorted(self.actions, key=lambda one: (-self.actions[one].played, one))[: MAX_ACTIONS // 2]
                self.actions = {one: self.actions[one] for one in most}
            self.actions[played] = LabelCounts()
        return self.actions[played]


def _append(window: list[T], value: T) -> None:
    window.append(value)
    if len(window) >= 2 * WINDOW:
        del window[:WINDOW]
