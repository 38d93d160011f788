"""Challengers: learners beside the live one, which learn from the same outcomes and never decide.

Before a challenger learns from an outcome, it is evaluated with the weights it has. With w = q(a)/p(a), its probability
of what was played over the logged propensity, and r the reward of what was played:

    bandit feedback     its reward is w·r and its error w·(1 - r)       (unbiased, Horvitz & Thompson 1952)
    full information    its reward is q(true label) and its error 1 - q(true label)

It is compared with what was played in the same decisions, so that what both have in common cancels: given the past,
its reward - r and 1 - r - its error both have the mean by which it is better. Plus 1 they are not negative, as the
intervals of `gaptron.offpolicy.confidence_sequence` need.
"""

from typing import Any

from msgspec import Struct, field, structs

from gaptron.algorithms import load
from gaptron.errors import GaptronError
from gaptron.serve.adapter import Adapter, adapter_of
from gaptron.serve.events import Decided, Imported
from gaptron.serve.schemas import DecisionRequest, NewChallenger, NewModel, Outcome

MAX_CHALLENGERS = 5


class Sums(Struct, array_like=True, gc=False):
    """What a bound on the mean of terms X_t ≥ 0 needs of them."""

    count: int = 0
    total: float = 0.0
    spread: float = 0.0  # Σ(X_t - X̂_t)², X̂_t the mean of the terms before, at most 1

    def add(self, term: float) -> None:
        """Add a term."""
        self.count += 1
        before = min((0.5 + self.total) / self.count, 1.0)
        self.spread += (term - before) ** 2
        self.total += term


class Evidence(Struct, array_like=True):
    """The sums over the decisions on which a challenger was evaluated."""

    error: Sums = field(default_factory=Sums)
    reward: Sums = field(default_factory=Sums)
    live_error: Sums = field(default_factory=Sums)  # of what was played
    live_reward: Sums = field(default_factory=Sums)
    better: Sums = field(default_factory=Sums)  # mean: 1 + the difference of the rewards, if positive it is better
    worse: Sums = field(default_factory=Sums)  # mean: 1 + the difference of the errors, if positive it is worse

    def add(self, error: float, reward: float, live_error: float) -> None:
        """Add the estimates of one decision and the error of what was played."""
        live_reward = 1.0 - live_error
        self.error.add(error)
        self.reward.add(reward)
        self.live_error.add(live_error)
        self.live_reward.add(live_reward)
        self.better.add(reward + live_error)
        self.worse.add(error + live_reward)


class SavedChallenger(Struct):
    """A challenger in a snapshot, without its learner."""

    name: str
    spec: NewChallenger
    since: int
    evidence: Evidence
    stopped: str | None


class Challenger:
    """A learner with its evidence.

    Args:
        name: its name.
        spec: how it differs from the model.
        since: when its evidence began, in µs since 1970.
        adapter: its learner.
    """

    def __init__(self, name: str, spec: NewChallenger, since: int, adapter: Adapter) -> None:
        self.name, self.spec, self.since = name, spec, since
        self.adapter = adapter
        self.evidence = Evidence()
        self.stopped: str | None = None  # why it no longer learns

    def restart(self, at: int) -> None:
        """Forget the evidence: another policy is live from now on."""
        self.evidence, self.since = Evidence(), at

    def follow(self, decision: Decided, outcome: Outcome, error: float) -> None:
        """Evaluate the challenger on a decision and the error of what was played, then learn from it.

        Whatever goes wrong stops the challenger, and nothing else. It depends on the log alone, so a replay stops it at
        the same place.
        """
        if self.stopped is not None:
            return
        try:
            request = self._understood(decision.request)
            estimates = self._estimates(request, decision, outcome, error)
            self._learn(request, decision, outcome)
        except MemoryError:
            raise  # which a replay would not repeat
        except Exception as problem:
            self.stop(_reason(problem))
        else:
            self.evidence.add(*estimates, error)

    def learn(self, imported: Imported) -> None:
        """Learn from an imported decision, without an evaluation: another policy than the live one made it."""
        if self.stopped is not None:
            return
        try:
            self._learn(self._understood(imported.request), imported, imported.outcome)
        except MemoryError:
            raise
        except Exception as problem:
            self.stop(_reason(problem))

    def _learn(self, request: DecisionRequest, decision: Decided | Imported, outcome: Outcome) -> None:
        self.adapter.learn(request, decision.label, decision.propensity, outcome)

    def _estimates(
        self, request: DecisionRequest, decision: Decided, outcome: Outcome, error: float
    ) -> tuple[float, float]:
        """The estimates of its error and its reward."""
        true = self.adapter.true_choice(outcome, decision.label)
        if true is not None:
            probability = self.adapter.probability(request, true)
            return 1.0 - probability, probability
        weight = self.adapter.probability(request, decision.label) / decision.propensity
        return weight * error, weight * (1.0 - error)

    def _understood(self, request: DecisionRequest) -> DecisionRequest:
        """The request without what its algorithm does not take."""
        if request.advice is None or load(self.adapter.learner.algorithm).CARD.advice:
            return request
        return structs.replace(request, advice=None)

    def grow(self, labels: list[str]) -> None:
        """Add labels."""
        if self.stopped is not None:
            return
        try:
            self.adapter.grow(labels)
        except MemoryError:
            raise
        except Exception as problem:
            self.stop(_reason(problem))

    def stop(self, reason: str) -> None:
        """Learn no more. The evidence so far stays."""
        self.stopped = reason

    # --- saving -------------------------------------------------------------------------------------------------------

    def saved(self) -> SavedChallenger:
        """Everything except the learner."""
        return SavedChallenger(self.name, self.spec, self.since, self.evidence, self.stopped)

    def tree(self) -> Any:
        """The state of the learner as plain values; that of a stopped one is not needed any more."""
        return self.adapter.tree() if self.stopped is None else None


def spec_of(model: NewModel, labels: tuple[str, ...], challenger: NewChallenger) -> NewModel:
    """The specification of a challenger's learner: the model's, with the present labels and what differs."""
    return structs.replace(
        model,
        labels=list(labels) or None,
        algorithm=challenger.algorithm,
        settings=challenger.settings,
        seed=challenger.seed,
        use_features=challenger.use_features,
    )


def restored(
    saved: SavedChallenger, model: NewModel, labels: tuple[str, ...], width: int | None, tree: Any
) -> Challenger:
    """Return the challenger of a snapshot."""
    adapter = adapter_of(spec_of(model, labels, saved.spec))
    if saved.stopped is None:
        adapter.restore(tree)
    adapter.width = width
    challenger = Challenger(saved.name, saved.spec, saved.since, adapter)
    challenger.evidence, challenger.stopped = saved.evidence, saved.stopped
    return challenger


def _reason(problem: Exception) -> str:
    kind = "" if isinstance(problem, GaptronError) else f"{type(problem).__name__}: "
    return f"{kind}{problem}"
