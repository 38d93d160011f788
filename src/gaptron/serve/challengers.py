"""Challengers: learners beside the live one, which learn from the same outcomes and never decide.

Before a challenger learns from an outcome, it is evaluated with the weights it has. With w = q(a)/p(a), its probability
of what was played over the logged propensity, and r the reward of what was played:

    bandit feedback     its reward is w·r and its error w·(1 - r)       (unbiased, Horvitz & Thompson 1952)
    full information    its reward is q(true label) and its error 1 - q(true label)

It is compared with what was played in the same decisions, so that what both have in common cancels: given the past,
its reward - r and 1 - r - its error both have the mean by which it is better. Plus 1 they are not negative, as the
intervals of `gaptron.offpolicy.confidence_sequence` need.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct, structs

from gaptron.algorithms import load
from gaptron.errors import GaptronError
from gaptron.offpolicy.sums import TermSums, WeightedSums
from gaptron.serve.adapter import Adapter, adapter_of
from gaptron.serve.events import Decided, Imported
from gaptron.serve.schemas import DecisionRequest, NewChallenger, NewModel, Outcome

MAX_CHALLENGERS = 5


class Evidence(NamedTuple):
    """The sums over the decisions on which a challenger was evaluated."""

    own: WeightedSums = WeightedSums()
    live: WeightedSums = WeightedSums()  # of what was played
    better: TermSums = TermSums()  # mean: 1 + the difference of the rewards, if positive it is better
    worse: TermSums = TermSums()  # mean: 1 + the difference of the errors, if positive it is worse

    def add(self, error: float, reward: float, live_error: float) -> "Evidence":
        """Return the sums after another decision: the challenger's estimates, and the error of what was played."""
        own = WeightedSums(self.own.mistakes.add(error), self.own.rewards.add(reward))
        better, worse = self.better.add(reward + live_error), self.worse.add(error + 1.0 - live_error)
        return Evidence(own, self.live.add(1.0, live_error), better, worse)


class SavedChallenger(Struct):
    """A challenger in a snapshot, without its learner."""

    name: str
    spec: NewChallenger
    algorithm: str
    since: int
    evidence: Evidence
    stopped: str | None


class Challenger:
    """A learner with its evidence."""

    def __init__(self, saved: SavedChallenger, adapter: Adapter | None) -> None:
        self.name, self.spec, self.algorithm, self.since = saved.name, saved.spec, saved.algorithm, saved.since
        self.evidence, self.stopped = saved.evidence, saved.stopped
        self.adapter = adapter  # None: it has stopped

    @classmethod
    def new(cls, name: str, spec: NewChallenger, since: int, adapter: Adapter) -> "Challenger":
        """Return a challenger without evidence.

        Args:
            name: its name.
            spec: how it differs from the model.
            since: when its evidence begins, in µs since 1970.
            adapter: its learner.
        """
        return cls(SavedChallenger(name, spec, adapter.learner.algorithm, since, Evidence(), None), adapter)

    def restart(self, at: int) -> None:
        """Forget the evidence: another policy is live from now on."""
        self.evidence, self.since = Evidence(), at

    def follow(self, decision: Decided, request: DecisionRequest, outcome: Outcome, error: float) -> None:
        """Evaluate the challenger on a decision and the error of what was played, then learn from it.

        Args:
            decision: the decision.
            request: its request as the model learns from it.
            outcome: the outcome.
            error: the error of what was played.
        """

        def follow(adapter: Adapter) -> None:
            estimates = self._estimates(adapter, decision, outcome, error)
            adapter.learn(self._understood(request), decision.label, decision.propensity, outcome)
            self.evidence = self.evidence.add(*estimates, error)

        self.attempt(follow)

    def learn(self, imported: Imported) -> None:
        """Learn from an imported decision, without an evaluation: another policy than the live one made it."""
        request = self._understood(imported.request)
        self.attempt(lambda adapter: adapter.learn(request, imported.label, imported.propensity, imported.outcome))

    def attempt(self, change: Callable[[Adapter], None]) -> None:
        """Change the learner. Whatever goes wrong stops the challenger, and nothing else.

        It depends on the log alone, so that a replay stops it at the same place.
        """
        if self.adapter is None:
            return
        try:
            change(self.adapter)
        except MemoryError:
            raise  # which a replay would not repeat
        except Exception as problem:
            kind = "" if isinstance(problem, GaptronError) else f"{type(problem).__name__}: "
            self.stop(f"{kind}{problem}")

    def stop(self, reason: str) -> None:
        """Learn no more. The evidence so far stays."""
        self.stopped, self.adapter = reason, None

    def _estimates(self, adapter: Adapter, decision: Decided, outcome: Outcome, error: float) -> tuple[float, float]:
        """The estimates of its error and its reward."""
        request = self._understood(decision.request_as_offered)
        true = adapter.true_choice(outcome, decision.label)
        if true is not None:
            probability = adapter.probability(request, true)
            return 1.0 - probability, probability
        weight = adapter.probability(request, decision.label) / decision.propensity
        return weight * error, weight * (1.0 - error)

    def _understood(self, request: DecisionRequest) -> DecisionRequest:
        """The request without what its algorithm does not take."""
        if request.advice is None or load(self.algorithm).CARD.advice:
            return request
        return structs.replace(request, advice=None)

    # --- saving -------------------------------------------------------------------------------------------------------

    def saved(self) -> SavedChallenger:
        """Everything except the learner."""
        return SavedChallenger(self.name, self.spec, self.algorithm, self.since, self.evidence, self.stopped)

    def tree(self) -> Any:
        """The state of the learner as plain values; that of a stopped one is not needed any more."""
        return None if self.adapter is None else self.adapter.tree()


def spec_of(model: NewModel, challenger: NewChallenger) -> NewModel:
    """The specification of a challenger's learner: the model's, except for what differs."""
    return structs.replace(
        model,
        algorithm=challenger.algorithm,
        settings=challenger.settings,
        seed=challenger.seed,
        use_features=challenger.use_features,
    )


def restored(saved: SavedChallenger, spec: NewModel, tree: Any) -> Challenger:
    """Return the challenger of a snapshot, whose learner has this specification."""
    if saved.stopped is not None:
        return Challenger(saved, None)
    adapter = adapter_of(spec)
    adapter.restore(tree)
    adapter.width = spec.features if isinstance(spec.features, int) else None
    return Challenger(saved, adapter)
