"""A model is what its entries make of it, in the order of the log: a pure fold.

No clock and no generator is read here (an import contract forbids them): times stand in the entries, and the draw of a
decision is a hash of its event's id. So whoever folds the same entries gets the same labels, probabilities and weights,
to the bit, as long as gaptron, numba and the kind of processor are the same.
"""

import heapq

from msgspec import UNSET, Struct, structs

from gaptron.errors import GaptronError, InputError, SettingError
from gaptron.serve import draws
from gaptron.serve.adapter import Adapter, right
from gaptron.serve.entries import Answered, Changed, Created, Decided, Entry, Forgot, Ticked
from gaptron.serve.problems import RefusedError, invalid
from gaptron.serve.tally import OfLabel, Tally
from gaptron.serve.words import MOST_LABELS, ChangedModel, DecisionRequest, Outcome

WRONG = Outcome(correct=False)


class DifferenceError(GaptronError):
    """A decision of the log that the fold would have made otherwise."""


class Waiting(Struct, gc=False):
    """A decision whose wait is not over, and its answer if there is one."""

    seq: int
    event: str
    at: int
    decision: Decided
    outcome: Outcome | None = None
    answered_at: int = 0


class Model:
    """One model: its learner, its rules, the decisions that wait, and its sums."""

    def __init__(self, created: Created) -> None:
        spec = created.spec
        self.spec, self.key = spec, created.key
        self.wait, self.default, self.mode = spec.wait, spec.default, spec.mode
        if self.default == "wrong":
            check_default(self.wait, spec.feedback)
        self.adapter = Adapter(spec)
        self.version = 0  # answers learned from
        self.forgotten = 0  # decisions up to this entry are answered too late
        self.seq = 0  # of its last entry
        self.waiting: dict[str, Waiting] = {}
        self.tally = Tally(labels=[OfLabel() for _ in spec.labels])
        self._due: list[tuple[int, int, str]] = []  # a heap of what waits

    @property
    def name(self) -> str:
        """What it is called."""
        return self.spec.name

    # --- what does not change it ------------------------------------------------------------------------------------

    def look(self, request: DecisionRequest, event: str, at: int) -> Decided:
        """The decision for this request as things stand."""
        try:
            self.adapter.check(request)
            code, p = self.adapter.look(request, draws.number(self.key, event))
        except (InputError, SettingError) as problem:
            raise invalid(str(problem)) from None
        due, waits = None if self.wait is None else at + round(1e6 * self.wait), self.default == "wrong"
        label = self.adapter.labels[code]
        if self.mode == "apprentice":
            if request.played is None:
                raise invalid('the model is an apprentice: say "played", your own label and its probability')
            self.adapter.code(request.played.label)
            if request.played.label not in (self.adapter.among(request) or self.adapter.labels):
                raise invalid(f"{request.played.label!r} was played, but is not among the labels available")
            played = request.played
            return Decided(request, self.version, played.label, played.probability, would=label, due=due, waits=waits)
        if request.played is not None:
            raise invalid("only an apprentice is told what was played: leave out played, or change the mode")
        return Decided(request, self.version, label, float(p[code]), tuple(p.tolist()), due=due, waits=waits)

    def check_outcome(self, outcome: Outcome, decision: Decided) -> None:
        """Refuse an answer that makes no sense for this model."""
        self.adapter.check_outcome(outcome, decision.request)

    def check_change(self, change: ChangedModel) -> None:
        """Refuse a change that cannot be made."""
        if change == ChangedModel():
            raise invalid("say what shall change: add_labels, wait, default or mode")
        default = self.default if change.default is UNSET else change.default
        wait = self.wait if change.wait is UNSET else change.wait
        if default == "wrong":
            check_default(wait, self.spec.feedback)
        if change.add_labels is UNSET:
            return
        labels = [*self.adapter.labels, *change.add_labels]
        if len(set(labels)) != len(labels):
            raise invalid("a label that shall be added is there already, or named twice")
        if len(labels) > MOST_LABELS:
            raise invalid(f"a model has at most {MOST_LABELS} labels, not {len(labels)}")
        trial = Adapter(self.spec)
        trial.restore(self.adapter.tree())
        try:
            trial.grow(list(change.add_labels))
        except (InputError, SettingError) as problem:
            raise invalid(str(problem)) from None

    def is_late(self, decided: Entry, at: int) -> bool:
        """Would an answer at this time be kept, but not learned from?"""
        decision: Decided = decided.body
        return decided.seq <= self.forgotten or (decided.event not in self.waiting and decision.is_over(at))

    def may_forget(self, decided: Entry) -> bool:
        """Is it not one of those that wait?"""
        return decided.event not in self.waiting

    def next_due(self, upto: int, most: int) -> int | None:
        """The last due time, not past `upto`, of about `most` decisions that wait; None: nothing is due."""
        if not self._due or self._due[0][0] > upto:
            return None
        first = heapq.nsmallest(most, self._due)
        return max(due for due, _, _ in first if due <= upto)

    # --- what changes it ------------------------------------------------------------------------------------------

    def apply(self, entry: Entry, decided: Entry | None = None, *, check: bool = True) -> None:
        """Take an entry. An outcome comes with the entry of its decision. `check`: compare decisions with our own.

        Those of deciders are not compared: they were made with the model as it was earlier.
        """
        body = entry.body
        if isinstance(body, Decided):
            if check and body.made is None:
                self._compare(entry)
            self._decide(entry, body)
        elif isinstance(body, Answered):
            assert decided is not None
            self._answer(entry, body.outcome, decided)
        elif isinstance(body, Ticked):
            self._tick(body.upto)
        elif isinstance(body, Forgot):
            self.forgotten = body.upto
        elif isinstance(body, Changed):
            self._change(body.change, entry.at)
        self.seq = entry.seq

    def compare_made(self, entry: Entry) -> None:
        """Make a decider's decision again. This must be the model as it was then."""
        made = entry.body.made
        self._compare(structs.replace(entry, at=made.at, body=structs.replace(entry.body, made=None)))

    def _compare(self, entry: Entry) -> None:
        assert entry.event is not None
        try:
            ours = self.look(entry.body.request, entry.event, entry.at)
        except RefusedError as problem:
            raise DifferenceError(f"entry {entry.seq} of {self.name}: {problem.detail}") from None
        if ours != entry.body:
            raise DifferenceError(f"entry {entry.seq} of {self.name}: the log has {entry.body}, the fold gives {ours}")

    def _decide(self, entry: Entry, decision: Decided) -> None:
        assert entry.event is not None
        self.adapter.width = self.adapter.width_of(decision.request)
        if decision.waits:
            assert decision.due is not None
            self.waiting[entry.event] = Waiting(entry.seq, entry.event, entry.at, decision)
            heapq.heappush(self._due, (decision.due, entry.seq, entry.event))
        agreed = None if decision.would is None else decision.would == decision.label
        sure = None if decision.distribution is None else max(decision.distribution)
        self.tally.decided(self.adapter.codes[decision.label], sure, agreed)

    def _answer(self, entry: Entry, outcome: Outcome, decided: Entry) -> None:
        assert entry.event is not None
        decision: Decided = decided.body
        if self.is_late(decided, entry.at):
            self.tally.late += 1
            return
        held = self.waiting.get(entry.event)
        if held is not None:
            held.outcome, held.answered_at = outcome, entry.at
        else:
            self._learn(decision, outcome, entry.at - decided.at)

    def _tick(self, upto: int) -> None:
        while self._due and self._due[0][0] <= upto:
            _, _, event = heapq.heappop(self._due)
            held = self.waiting.pop(event)
            if held.outcome is None:
                self._learn(held.decision, WRONG, None)
            else:
                self._learn(held.decision, held.outcome, held.answered_at - held.at)

    def _learn(self, decision: Decided, outcome: Outcome, delay: int | None) -> None:
        if outcome.played is not None and outcome.played != decision.label:
            self.tally.overridden += 1
            return
        if outcome.void:
            self.tally.void += 1
            return
        self.adapter.learn(decision.request, decision.label, decision.probability, outcome)
        self.version += 1
        wrong = 1.0 - outcome.reward if outcome.reward is not None else float(not right(outcome, decision.label))
        self.tally.answer(self.adapter.codes[decision.label], wrong, decision.probability, delay)

    def _change(self, change: ChangedModel, at: int) -> None:
        if change.add_labels is not UNSET:
            self.adapter.grow(list(change.add_labels))
            self.tally.labels += [OfLabel() for _ in change.add_labels]
            self.tally.changed(at, f"labels added: {', '.join(change.add_labels)}")
        if change.wait is not UNSET:
            self.wait = change.wait
            self.tally.changed(at, "answers may take any time" if self.wait is None else f"wait: {self.wait:g} s")
        if change.default is not UNSET:
            self.default = change.default
            self.tally.changed(at, f"without an answer in time: {self.default}")
        if change.mode is not UNSET:
            self.mode = change.mode
            self.tally.changed(at, f"mode: {self.mode}")

    # --- to keep ----------------------------------------------------------------------------------------------------

    def restore(self, waiting: list[Waiting]) -> None:
        """Take up decisions that wait."""
        self.waiting = {held.event: held for held in waiting}
        self._due = [(held.decision.due or 0, held.seq, held.event) for held in waiting]
        heapq.heapify(self._due)


def check_default(wait: float | None, feedback: str) -> None:
    """Refuse a default outcome that could never come, or say nothing."""
    if wait is None:
        raise invalid('default "wrong" needs a wait: how many seconds may an answer take?')
    if feedback == "full":
        raise invalid('default "wrong" says nothing under full information, which needs the right label')
