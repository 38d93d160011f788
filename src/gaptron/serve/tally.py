"""Counts over the events of one model, for the report and for Prometheus. They depend on the log only.

However long the log is, the memory they take is limited.
"""

from typing import TypeVar

from msgspec import Struct, field

from gaptron.offpolicy.sums import MistakeSums, WeightedSums
from gaptron.serve.events import Decided
from gaptron.serve.history import History
from gaptron.serve.performance import Performance
from gaptron.serve.segments import Segments, features_of, features_of_action

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
    outcomes: int = 0  # that were learned from
    errors: float = 0.0  # of these
    timed_out: int = 0  # decisions without an outcome that were learned from as wrong
    void: int = 0  # decisions without an outcome that nothing is learned from
    pending: int = 0  # decisions that wait for their timeout
    waiting: int = 0  # of these, the ones whose outcome has arrived
    since: int = 0  # number of decisions the model had learned from when the label was added
    always: WeightedSums = WeightedSums()  # of playing it always, up to the last decision for it; not of actions


class Tally(Struct):
    """The counts of one model."""

    decisions: int = 0
    outcomes: int = 0
    late: int = 0
    void: int = 0
    overridden: int = 0
    timed_out: int = 0
    waiting: int = 0  # outcomes that have arrived and are learned from at their timeout
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
    mistakes: MistakeSums = MistakeSums()  # of all decisions that were learned from
    uniform: WeightedSums = WeightedSums()  # of a policy that draws uniformly
    shadow_played: MistakeSums = MistakeSums()  # shadow mode: of what the caller played
    shadow_model: WeightedSums = WeightedSums()  # shadow mode: of what the model would have played
    history: History = field(default_factory=History)
    segments: Segments = field(default_factory=Segments)
    action_segments: Segments = field(default_factory=Segments)  # by the features of the action that was played

    @property
    def total(self) -> Performance:
        """All decisions."""
        return Performance(self.decisions, self.mistakes)

    def changed(self, at: int, description: str) -> None:
        """Record a change of the configuration."""
        self.changes = [*self.changes, (at, description)][-MAX_CHANGES:]

    def add_labels(self, count: int) -> None:
        """Count these labels as well, from now on."""
        self.labels += [LabelCounts(since=self.mistakes.rounds) for _ in range(count)]

    def decided(self, played: int | str, decision: Decided, at: int) -> None:
        """Count a decision for a label (its code) or an action (its id), made at this time."""
        self.decisions += 1
        self.history.decided(at)
        self.segments.decided(features_of(decision))
        self.action_segments.decided(features_of_action(decision))
        counts = self._new_counts(played)
        counts.played += 1
        counts.pending += decision.learn_when_due
        if decision.distribution is not None:
            _append(self.top_probabilities, max(decision.distribution))
        if decision.shadow_label is not None:
            self.shadow += 1
            self.agreed += decision.shadow_label == decision.label

    def arrived(self, played: int | str) -> None:
        """Count an outcome that is learned from at its timeout."""
        self.waiting += 1
        counts = self._counts(played)
        if counts is not None:
            counts.waiting += 1

    def ended(self, played: int | str, arrived: bool) -> None:
        """The timeout of a pending decision is over."""
        self.waiting -= arrived
        counts = self._counts(played)
        if counts is not None:  # those of an action may be newer than the decision
            counts.pending = max(0, counts.pending - 1)
            counts.waiting = max(0, counts.waiting - arrived)

    def voided(self, played: int | str) -> None:
        """Count a decision that has no outcome, and that nothing is learned from."""
        self.void += 1
        counts = self._counts(played)
        if counts is not None:
            counts.void += 1

    def learned(
        self, played: int | str, decision: Decided, at: int, error: float, *, delay: int | None, n_available: int
    ) -> None:
        """Count a decision that was learned from.

        Args:
            played: the code of its label, or the id of its action.
            decision: the decision.
            at: the time of the decision.
            error: 1 - reward.
            delay: µs from the decision until its outcome arrived. None: it timed out.
            n_available: the number of labels or actions that could be played.
        """
        counts, propensity = self._new_counts(played), decision.propensity
        if delay is None:
            self.timed_out += 1
            counts.timed_out += 1
        else:
            self.outcomes += 1
            counts.outcomes += 1
            counts.errors += error
            self.delays[sum(delay >= 1_000_000 * end for end in DELAYS)] += 1
        if isinstance(played, int):
            counts.always = self.always(counts).add(1.0 / propensity, error)
        self.mistakes = self.mistakes.add(error)
        self.history.learned(at, error)
        self.segments.learned(features_of(decision), error)
        self.action_segments.learned(features_of_action(decision), error)
        self.uniform = self.uniform.add(1.0 / (n_available * propensity), error)
        if decision.shadow_propensity is not None:
            self.shadow_played = self.shadow_played.add(error)
            self.shadow_model = self.shadow_model.add(decision.shadow_propensity / propensity, error)
        _append(self.recent, RecentOutcome(played if isinstance(played, int) else -1, error, propensity))

    def always(self, counts: LabelCounts) -> WeightedSums:
        """The sums of playing a label always, since it was added."""
        rounds = self.mistakes.rounds - counts.since
        return counts.always.add_zeros(rounds - counts.always.mistakes.rounds)

    def _counts(self, played: int | str) -> LabelCounts | None:
        """The counts of a label, or of an action if it is counted."""
        return self.labels[played] if isinstance(played, int) else self.actions.get(played)

    def _new_counts(self, played: int | str) -> LabelCounts:
        """The counts of a label, or of an action that is counted from now on."""
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
