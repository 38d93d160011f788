"""The state of a model: what results from replaying its part of the event log.

Replaying is a pure function. This module reads no clock and no random generator (an import contract forbids it): times
are in the events, and the draw of a decision is a hash of its event's id. Replaying the same events therefore gives the
same labels, propensities and weights, to the bit, as long as gaptron, numba and the processor type are the same.
"""

import heapq

from msgspec import UNSET, Struct, structs

from gaptron.data.values import MIN_PROPENSITY
from gaptron.errors import DecisionError, GaptronError, InputError, SettingError
from gaptron.serve import draws
from gaptron.serve.adapter import Adapter, adapter_of, is_correct
from gaptron.serve.challengers import Challenger, spec_of
from gaptron.serve.events import (
    Activated,
    ChallengerAdded,
    ChallengerRemoved,
    ChallengerStopped,
    Changed,
    Created,
    Decided,
    Event,
    Imported,
    OutcomeRecorded,
    Promoted,
    Redacted,
    TimedOut,
)
from gaptron.serve.problems import RefusedError, invalid
from gaptron.serve.schemas import (
    MAX_LABELS,
    MIN_LABELS,
    DecisionRequest,
    ModelChange,
    NewChallenger,
    NewModel,
    Outcome,
)
from gaptron.serve.tally import Tally

WRONG = Outcome(correct=False)


class ReplayMismatchError(GaptronError):
    """The log contains something that replaying it does not reproduce."""


class PendingDecision(Struct, gc=False):
    """A decision that is learned from when it is due, and its outcome if there is one."""

    seq: int
    event_id: str
    at: int
    decision: Decided
    outcome: Outcome | None = None
    outcome_at: int = 0
    activated: bool = False

    @property
    def is_shown(self) -> bool:
        """Does a missing outcome mean anything? Not if what was decided may never have been shown."""
        return self.activated or not self.decision.request.deferred


class Model:
    """One model: its learner, its configuration, its pending decisions and its counts."""

    def __init__(self, created: Created) -> None:
        spec = created.spec
        self.spec, self.key = spec, created.key
        self.feedback_timeout, self.on_timeout, self.mode = spec.feedback_timeout, spec.on_timeout, spec.mode
        check_timeout(self.on_timeout, self.feedback_timeout, spec.feedback)
        self.adapter = adapter_of(spec)
        self.promoted: NewChallenger | None = None  # the specification of the live policy, if it was a challenger
        self.challengers: dict[str, Challenger] = {}
        self.retired: list[str] = []  # labels that are not played any more
        self.display_names: dict[str, str] = {}  # by label
        self.last_decision_at: int | None = None  # µs
        self.version = 0  # number of outcomes learned from
        self.redacted_through = 0  # outcomes of decisions up to this event are late
        self.first_seq = self.created_at = 0  # number and time (µs) of the event that created it
        self.seq = 0  # of its last event
        self.pending: dict[str, PendingDecision] = {}
        self.pending_size = 0  # in examples: a decision with actions has one per action
        self.tally = Tally()
        self.tally.add_labels(len(self.adapter.labels))
        self._due: list[tuple[int, int, str]] = []  # a heap of the pending decisions

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.spec.name

    @property
    def live_spec(self) -> NewModel:
        """The specification of the live policy: that of the model, or what a promotion changed."""
        return self.spec if self.promoted is None else spec_of(self.spec, self.promoted)

    @property
    def settled_spec(self) -> NewModel:
        """The specification of the live policy, with the features that the first decision settled."""
        return structs.replace(self.live_spec, features=self.adapter.features)

    def spec_of(self, challenger: NewChallenger) -> NewModel:
        """The specification of a challenger's learner, with what the model is now."""
        adapter = self.adapter
        now = structs.replace(
            self.spec, features=adapter.features, labels=list(adapter.labels) or None, epsilon=adapter.epsilon
        )
        return spec_of(now, challenger)

    def owns(self, decided: Event) -> bool:
        """Is this a decision of this model, and not of a deleted model with the same name?"""
        return decided.is_since(self.first_seq)

    # --- queries: these change nothing --------------------------------------------------------------------------------

    def decide(self, request: DecisionRequest, event_id: str, at: int) -> Decided:
        """Return the decision for a request. The model changes when `apply` gets it as an event."""
        played = request.played
        if played is not None and played.propensity < MIN_PROPENSITY:
            raise invalid(
                f"played.propensity is {played.propensity:g}: it must be at least {MIN_PROPENSITY:g}, because the "
                "outcome is learned from with the weight 1/propensity"
            )
        return self._decided(request, event_id, at)

    def _decided(self, request: DecisionRequest, event_id: str, at: int) -> Decided:
        """The decision for a request that is within bounds, or in the log already."""
        limited = self.limited(request)
        offered = None if limited is request else limited.available
        try:
            self.adapter.check(limited)
            draw = self.adapter.decide(limited, draws.number(self.key, event_id))
            if self.mode == "live" and request.played is not None:
                raise invalid('"played" is for models in shadow mode: omit it, or change the mode')
            played = None if self.mode == "live" else self.adapter.check_played(limited)
        except (InputError, SettingError) as problem:
            raise invalid(str(problem)) from None
        due = None if self.feedback_timeout is None else at + round(1e6 * self.feedback_timeout)
        learn_when_due = self.on_timeout == "wrong"
        if played is None or request.played is None:
            return Decided(
                request,
                self.version,
                draw.played,
                draw.propensity,
                draw.distribution,
                due=due,
                learn_when_due=learn_when_due,
                ranking=draw.ranking,
                offered=offered,
            )
        return Decided(
            request,
            self.version,
            played,
            request.played.propensity,
            shadow_label=draw.played,
            shadow_propensity=draw.probability(played),
            due=due,
            learn_when_due=learn_when_due,
            offered=offered,
        )

    def limited(self, request: DecisionRequest) -> DecisionRequest:
        """The request, limited to labels that are not retired; the same object if none is."""
        if not self.retired:
            return request
        left = tuple([label for label in request.available or self.adapter.labels if label not in self.retired])
        if not left:
            raise invalid(f"all available labels are retired: {', '.join(request.available or ())}")
        return structs.replace(request, available=left)

    def check_outcome(self, outcome: Outcome, decision: Decided) -> None:
        """Refuse an outcome that this model cannot learn from."""
        try:
            self.adapter.check_outcome(outcome, self._learned_request(decision), decision.label)
        except (DecisionError, InputError) as problem:
            raise invalid(str(problem)) from None

    def _learned_request(self, decision: Decided) -> DecisionRequest:
        """The request as it is learned from. With full information, a retired label may be the true one."""
        return decision.request if self.spec.feedback == "full" else decision.request_as_offered

    def check_change(self, change: ModelChange) -> None:
        """Refuse a change that cannot be made."""
        if change == ModelChange():
            raise invalid(f"the change is empty: give {', '.join(ModelChange.__struct_fields__)}")
        check_timeout(
            self.on_timeout if change.on_timeout is UNSET else change.on_timeout,
            self.feedback_timeout if change.feedback_timeout is UNSET else change.feedback_timeout,
            self.spec.feedback,
        )
        self._check_added(change.add_labels or [])
        self._check_retired(change)
        self._check_display_names(change)
        self._check_learner_change(change)

    def _check_added(self, added: list[str]) -> None:
        if added and self.spec.actions:
            raise invalid("add_labels is for models with labels; this one chooses among the actions of each request")
        labels = [*self.adapter.labels, *added]
        if len(set(labels)) != len(labels):
            raise invalid("add_labels contains a label that exists already, or the same label twice")
        if len(labels) > MAX_LABELS:
            raise invalid(f"a model has at most {MAX_LABELS} labels, not {len(labels)}")

    def _check_retired(self, change: ModelChange) -> None:
        if change.retire_labels is UNSET:
            return
        labels = self._check_labels("retire_labels", change.retire_labels, change)
        left = len(labels) - len({*self.retired, *change.retire_labels})
        if left < MIN_LABELS:
            raise invalid(f"retire_labels leaves {left} of {len(labels)} labels: at least {MIN_LABELS} must stay")
        self.adapter.check_can_limit()

    def _check_display_names(self, change: ModelChange) -> None:
        if change.display_names is not UNSET:
            self._check_labels("display_names", list(change.display_names), change)

    def _check_labels(self, field: str, named: list[str], change: ModelChange) -> list[str]:
        """Refuse names that are not labels, and return the labels with those that the change adds."""
        if self.spec.actions:
            raise invalid(f"{field} is for models with labels; this one chooses among the actions of each request")
        labels = [*self.adapter.labels, *(change.add_labels or [])]
        for label in named:
            if label not in labels:
                raise invalid(f"{field} contains {label!r}, which is not a label of this model")
        return labels

    def _check_learner_change(self, change: ModelChange) -> None:
        """Refuse what the learner cannot do, by trying it on a copy."""
        if change.add_labels is UNSET and change.epsilon is UNSET:
            return
        trial = adapter_of(self.live_spec)
        trial.restore(self.adapter.tree())
        try:
            _change_learner(trial, change)
        except (InputError, SettingError) as problem:
            raise invalid(str(problem)) from None

    def is_late(self, decided: Event, at: int) -> bool:
        """Would an outcome at this time be recorded, but not learned from?"""
        decision: Decided = decided.body
        return decided.seq <= self.redacted_through or (
            decided.event_id not in self.pending and decision.is_expired(at)
        )

    def can_activate(self, event_id: str | None) -> bool:
        """Would activating the decision change anything?"""
        pending = self.pending.get(event_id or "")
        return pending is not None and not pending.is_shown

    def can_redact(self, decided: Event) -> bool:
        """Are the features of a decision, or of an imported one, no longer needed?"""
        return isinstance(decided.body, Imported) or decided.event_id not in self.pending

    def next_due(self, until: int, limit: int) -> int | None:
        """The last due time, at most `until`, of about `limit` pending decisions; None if none is due."""
        if not self._due or self._due[0][0] > until:
            return None
        first = heapq.nsmallest(limit, self._due)
        return max(due for due, _, _ in first if due <= until)

    # --- changes ------------------------------------------------------------------------------------------------------

    def apply(self, event: Event, decided: Event | None = None, *, check: bool = True) -> None:
        """Apply the next event of the log.

        Args:
            event: the event.
            decided: for an outcome, the event of its decision.
            check: recompute each decision and compare it with the log. Decisions of replicas are not compared here,
                because they were made with an earlier state of the model.
        """
        body = event.body
        if isinstance(body, Created):
            self.first_seq, self.created_at = event.seq, event.at
        elif isinstance(body, Decided):
            if check and body.replica is None:
                self._compare(event)
            if self.owns(event):
                self._apply_decided(event, body)
        elif isinstance(body, OutcomeRecorded):
            assert decided is not None
            self._apply_outcome(event, body.outcome, decided)
        elif isinstance(body, Activated):
            assert event.event_id is not None
            self.pending[event.event_id].activated = True
        elif isinstance(body, TimedOut):
            self._apply_timeout(body.until)
        elif isinstance(body, Redacted):
            self.redacted_through = body.through
        elif isinstance(body, Changed):
            self._apply_change(body.change, event.at)
        elif isinstance(body, Imported):
            self._apply_imported(body)
        elif isinstance(body, ChallengerAdded):
            self.challengers[body.name] = self.new_challenger(body.name, body.spec, event.at)
        elif isinstance(body, ChallengerRemoved):
            del self.challengers[body.name]
        elif isinstance(body, ChallengerStopped):
            self.challengers[body.name].stop(body.reason)
        elif isinstance(body, Promoted):
            self._apply_promoted(body, event.at)
        self.seq = event.seq

    def compare_replica_decision(self, event: Event) -> None:
        """Recompute a decision of a replica and compare it. This must be the state that the replica decided with."""
        stamp = event.body.replica
        self._compare(structs.replace(event, at=stamp.at, body=structs.replace(event.body, replica=None)))

    def _compare(self, event: Event) -> None:
        assert event.event_id is not None
        try:
            replayed = self._decided(event.body.request, event.event_id, event.at)
        except RefusedError as problem:
            raise ReplayMismatchError(f"event {event.seq} of {self.name}: {problem.detail}") from None
        if replayed != event.body:
            fields = Decided.__struct_fields__
            differing = [name for name in fields if getattr(replayed, name) != getattr(event.body, name)]
            raise ReplayMismatchError(  # without the features, which not everybody may see who sees this
                f"event {event.seq} of {self.name}: replaying gives {replayed.label!r} with propensity "
                f"{replayed.propensity!r}, the log has {event.body.label!r} with {event.body.propensity!r}; "
                f"they differ in {', '.join(differing)}"
            )

    def _apply_decided(self, event: Event, decision: Decided) -> None:
        assert event.event_id is not None
        self._settle(decision.request)
        self.last_decision_at = event.at
        if decision.learn_when_due:
            assert decision.due is not None
            self.pending[event.event_id] = PendingDecision(event.seq, event.event_id, event.at, decision)
            self.pending_size += self.adapter.size(decision.request)
            heapq.heappush(self._due, (decision.due, event.seq, event.event_id))
        self.tally.decided(self.adapter.tally_key(decision.label), decision, event.at)

    def _apply_outcome(self, event: Event, outcome: Outcome, decided: Event) -> None:
        assert event.event_id is not None
        decision: Decided = decided.body
        if self.is_late(decided, event.at):
            self.tally.late += 1
            return
        pending = self.pending.get(event.event_id)
        if pending is not None:
            pending.outcome, pending.outcome_at = outcome, event.at
            self.tally.arrived(self.adapter.tally_key(decision.label))
        else:
            self._learn(decision, outcome, decided.at, event.at - decided.at)

    def _apply_timeout(self, until: int) -> None:
        while self._due and self._due[0][0] <= until:
            _, _, event_id = heapq.heappop(self._due)
            pending = self.pending.pop(event_id)
            self.pending_size -= self.adapter.size(pending.decision.request)
            played = self.adapter.tally_key(pending.decision.label)
            self.tally.ended(played, pending.outcome is not None)
            if pending.outcome is not None:
                self._learn(pending.decision, pending.outcome, pending.at, pending.outcome_at - pending.at)
            elif pending.is_shown:
                self._learn(pending.decision, WRONG, pending.at, None)
            else:
                self.tally.voided(played)

    def _learn(self, decision: Decided, outcome: Outcome, at: int, delay: int | None) -> None:
        if outcome.played is not None and outcome.played != decision.label:
            self.tally.overridden += 1
            return
        if outcome.void:
            self.tally.voided(self.adapter.tally_key(decision.label))
            return
        if not decision.is_in_bounds:
            self.tally.unusable += 1
            return
        self.adapter.learn(self._learned_request(decision), decision.label, decision.propensity, outcome)
        self.version += 1
        error = 1.0 - (outcome.reward if outcome.reward is not None else float(is_correct(outcome, decision.label)))
        played = self.adapter.tally_key(decision.label)
        n_available = self.adapter.n_available(decision.request_as_offered)
        self.tally.learned(played, decision, at, error, delay=delay, n_available=n_available)
        for challenger in self.challengers.values():
            challenger.follow(decision, self._learned_request(decision), outcome, error)

    def _apply_change(self, change: ModelChange, at: int) -> None:
        _change_learner(self.adapter, change)
        for challenger in self.challengers.values():
            challenger.attempt(lambda adapter: _change_learner(adapter, change))
        if change.epsilon is not UNSET:
            self.tally.changed(at, f"epsilon: {change.epsilon:g}")
        if change.add_labels is not UNSET:
            self.tally.add_labels(len(change.add_labels))
            self.tally.changed(at, f"labels added: {', '.join(change.add_labels)}")
        if change.retire_labels is not UNSET:
            retired = [label for label in dict.fromkeys(change.retire_labels) if label not in self.retired]
            self.retired += retired
            self.tally.changed(at, f"labels retired: {', '.join(retired)}")
        if change.display_names is not UNSET:
            changed = {**self.display_names, **change.display_names}
            self.display_names = {label: name for label, name in changed.items() if name is not None}
            self.tally.changed(at, f"display names: {', '.join(change.display_names)}")
        if change.feedback_timeout is not UNSET:
            self.feedback_timeout = change.feedback_timeout
            limit = "none" if self.feedback_timeout is None else f"{self.feedback_timeout:g} s"
            self.tally.changed(at, f"feedback timeout: {limit}")
        if change.on_timeout is not UNSET:
            self.on_timeout = change.on_timeout
            self.tally.changed(at, f"on timeout: {self.on_timeout}")
        if change.mode is not UNSET:
            self.mode = change.mode
            self.tally.changed(at, f"mode: {self.mode}")

    # --- challengers --------------------------------------------------------------------------------------------------

    def new_challenger(self, name: str, spec: NewChallenger, at: int) -> Challenger:
        """Return a challenger that has learned nothing. The model changes when `apply` gets it as an event."""
        adapter = adapter_of(self.spec_of(spec))
        if self.retired:
            adapter.check_can_limit()
        return Challenger.new(name, spec, at, adapter)

    def _apply_promoted(self, promoted: Promoted, at: int) -> None:
        challenger, spec = self.challengers.pop(promoted.challenger), self.live_spec
        former = NewChallenger(
            algorithm=spec.algorithm, settings=spec.settings, seed=spec.seed, use_features=spec.use_features
        )
        assert challenger.adapter is not None
        self.challengers[promoted.former] = Challenger.new(promoted.former, former, at, self.adapter)
        self.adapter, self.promoted = challenger.adapter, challenger.spec
        for other in self.challengers.values():
            other.restart(at)
        self.tally.changed(at, f"promoted: {promoted.challenger} ({self.adapter.learner.algorithm})")

    def _apply_imported(self, imported: Imported) -> None:
        self._settle(imported.request)
        self.adapter.learn(imported.request, imported.label, imported.propensity, imported.outcome)
        self.version += 1
        self.tally.imported += 1
        for challenger in self.challengers.values():
            challenger.learn(imported)

    def _settle(self, request: DecisionRequest) -> None:
        """Take from the first decision how features are given."""
        is_new = not self.adapter.is_settled
        self.adapter.settle(request)
        if is_new:
            for challenger in self.challengers.values():
                challenger.attempt(lambda adapter: adapter.settle(request))

    # --- saving -------------------------------------------------------------------------------------------------------

    def restore_promoted(self, promoted: NewChallenger | None) -> None:
        """Restore the kind of learner that is live in a snapshot."""
        if promoted is not None:
            self.promoted = promoted
            self.adapter = adapter_of(self.live_spec)

    def restore_pending(self, pending: list[PendingDecision]) -> None:
        """Restore the pending decisions of a snapshot."""
        self.pending = {one.event_id: one for one in pending}
        self.pending_size = sum(self.adapter.size(one.decision.request) for one in pending)
        self._due = [(one.decision.due or 0, one.seq, one.event_id) for one in pending]
        heapq.heapify(self._due)


def _change_learner(adapter: Adapter, change: ModelChange) -> None:
    if change.epsilon is not UNSET:
        adapter.change_epsilon(change.epsilon)
    if change.add_labels is not UNSET:
        adapter.grow(list(change.add_labels))


def check_timeout(on_timeout: str, feedback_timeout: float | None, feedback: str) -> None:
    """Refuse a default outcome that could never apply, or that says nothing."""
    if on_timeout != "wrong":
        return
    if feedback_timeout is None:
        raise invalid('on_timeout "wrong" needs a feedback_timeout in seconds')
    if feedback == "full":
        raise invalid('on_timeout "wrong" does not name a true label, which full-information feedback needs')
