"""`Abstainer`: an algorithm for prediction with abstention, its state and its random generator, as one object."""

import functools
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np

from gaptron.abstention.trace import ABSTAIN, AbstainerTrace
from gaptron.abstention.validation import as_cost, as_costs, as_label, as_labels, as_prediction, as_predictions
from gaptron.data.state_tree import fill, numbers, spread
from gaptron.data.values import whole
from gaptron.errors import DecisionError, InputError, ModelFileError, NoBoundError, SettingError
from gaptron.learner import model_file
from gaptron.learner.chunks import chunks
from gaptron.learner.locking import UseLock
from gaptron.learner.seeds import generator
from gaptron.types import Flags, Integers, Vector

ALGORITHMS = {"adahedge": "adahedge", "exponential-weights": "exponential_weights"}


@dataclass(frozen=True, eq=False, slots=True)
class AbstainerDecision:
    """One prediction as drawn, with what is needed to learn from its feedback later."""

    prediction: int  # -1, +1 or ABSTAIN
    propensity: float  # the probability with which this prediction was drawn
    distribution: Vector = field(repr=False)  # the probabilities of -1, ABSTAIN and +1, in this order
    vote: float  # the weighted mean of the experts, in [-1, 1]
    round: int  # counted from 1
    _cost: float | None = field(repr=False)  # None: given with the label
    _pending: Any = field(repr=False)
    _owner: object = field(repr=False)
    _learned: Flags = field(repr=False)


class AbstainerBound(NamedTuple):
    """A proven bound on the expected loss of a run."""

    value: float  # bound on the expected loss: the loss of the best expert plus `regret`
    regret: float  # the theorem's bound on the expected loss minus the loss of any expert
    measured: float  # the expected loss minus the loss of the best expert
    expert: int  # the best expert
    expert_losses: Vector  # Σ½(1 - y·prediction) of each expert
    theorem: str  # the name of the theorem


class Abstainer:
    """Predicts -1 or +1 from the predictions of experts, or abstains at a cost.

    Args:
        n_experts: the number of experts.
        algorithm: "adahedge" (nothing to tune) or "exponential-weights" (its learning rate is 1 - 2·cost).
        cost: the cost of abstaining, if it is the same in all rounds. `exponential-weights` needs the largest cost.
        seed: the seed of the draws; None takes one from the operating system.
    """

    def __init__(
        self, n_experts: int, algorithm: str = "adahedge", *, cost: float | None = None, seed: int | None = None
    ) -> None:
        if isinstance(n_experts, bool) or not isinstance(n_experts, (int, np.integer)) or n_experts < 1:
            raise SettingError(f"n_experts={n_experts!r} must be an integer of at least 1")
        if algorithm not in ALGORITHMS:
            raise SettingError(f"unknown algorithm {algorithm!r}; choose one of {', '.join(ALGORITHMS)}")
        try:
            self._cost = None if cost is None else as_cost(cost)
        except InputError as problem:
            raise SettingError(str(problem)) from None
        self.algorithm = algorithm
        self.n_experts = int(n_experts)
        self._experts = _hedge().init(self.n_experts, self._module.initial_eta(self._cost))
        self._rng = generator(seed)
        self._use = UseLock()
        self._interrupted: AbstainerTrace | None = None
        self._late = False  # whether a decision was made while another waited for its feedback

    # --- properties ---------------------------------------------------------------------------------------

    @property
    def _module(self) -> ModuleType:
        return _algorithm(self.algorithm)  # not an attribute, because a module can be neither copied nor pickled

    @property
    def rounds(self) -> int:
        """The number of rounds learned from."""
        return int(self._experts.totals[0].learned)

    @property
    def decided(self) -> int:
        """The number of decisions made."""
        return int(self._experts.totals[0].decided)

    @property
    def interrupted(self) -> AbstainerTrace | None:
        """The trace of the rounds that the last `play` completed before it was interrupted (Ctrl-C, or an error)."""
        return self._interrupted

    @property
    def cost(self) -> float | None:
        """The cost of abstaining in rounds that state none."""
        return self._cost

    @property
    def weights(self) -> Vector:
        """The weights of the experts, which sum to 1."""
        w: Vector = self._experts.weights / self._experts.weights.sum()
        return w

    @property
    def eta(self) -> float:
        """The learning rate η of the next round; for `adahedge` it is infinite until the leading experts disagree."""
        return float(self._experts.totals[0].eta)

    @property
    def expert_losses(self) -> Vector:
        """The loss Σ ½(1 - y·prediction) of each expert so far; for experts that predict ±1, their mistakes."""
        losses: Vector = self._experts.losses.copy()
        return losses

    @property
    def expected_loss(self) -> float:
        """The exact expectation, over the draws, of mistakes plus costs so far."""
        return float(self._experts.totals[0].expected)

    def __repr__(self) -> str:
        return f"Abstainer({self.n_experts}, {self.algorithm!r}, cost={self._cost}, rounds={self.rounds})"

    # --- one round at a time --------------------------------------------------------------------------------

    def decide(self, predictions: Any, *, cost: float | None = None) -> AbstainerDecision:
        """Predict -1 or +1, or abstain.

        Args:
            predictions: the prediction of each expert, a number in [-1, 1].
            cost: the cost of abstaining in this round, if it is known before the label. If it is above ½, a fair coin,
                whose expected loss is ½, replaces abstaining.

        Returns:
            The decision; pass it to `learn` with the true label.
        """
        x = as_prediction(predictions, self.n_experts)
        stated = None if cost is None else as_cost(cost)
        known = self._cost if stated is None else stated
        coin = known is not None and known > 0.5
        loop = _loop()
        with self._use.writing:
            pending = loop.decide(self._experts, x, coin)
            drawn = loop.draw(pending.vote, coin, self._rng.random())
            self._late |= self.decided != self.rounds
            self._experts.totals[0].decided += 1
            round = self.decided
        agree, abstain, oppose = loop.probabilities(pending.vote, coin)
        distribution = np.array([oppose, abstain, agree] if pending.vote >= 0.0 else [agree, abstain, oppose])
        return AbstainerDecision(
            ABSTAIN if drawn == ABSTAIN else drawn,
            float(distribution[drawn + 1]),
            distribution,
            float(pending.vote),
            round,
            known if coin else stated,
            pending,
            self,
            np.zeros(1, dtype=np.bool_),
        )

    def learn(self, decision: AbstainerDecision, label: int, cost: float | None = None) -> None:
        """Learn from the true label of a decision.

        Feedback may come late and in any order. The loss of a late round is that of the vote at its decision, and the
        experts' losses are added to their current ones. `certificate` remains valid; the theorem behind `bound` does
        not hold then.

        Args:
            decision: the result of `decide`.
            label: the true label, -1 or +1.
            cost: the cost of abstaining, if it was not given to `decide`.
        """
        if decision._owner is not self:
            raise DecisionError("this decision was made by another Abstainer")
        if decision._learned[0]:
            raise DecisionError(f"the decision of round {decision.round} was already learned from")
        if decision._cost is not None and cost is not None:
            raise DecisionError(f"the cost of round {decision.round} was given to decide: leave it out here")
        y = as_label(label)
        charged = self._cost_of(decision._cost if cost is None else as_cost(cost))
        with self._use.writing:
            _loop().learn_once(self._module.ADAPTS, self._experts, decision._pending, y, charged, decision._learned)

    def _cost_of(self, stated: float | None) -> float:
        if stated is None and self._cost is None:
            raise InputError("the cost of abstaining is missing: give it here, or to the constructor as cost=...")
        return self._cost if stated is None else stated  # type: ignore[return-value]

    # --- many rounds ----------------------------------------------------------------------------------------

    def play(
        self,
        predictions: Any,
        labels: Any,
        costs: Any = None,
        *,
        known: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> AbstainerTrace:
        """Decide and learn round by round, in compiled code. A further call continues the run.

        Args:
            predictions: the predictions of the experts in [-1, 1], rounds × experts.
            labels: the true labels, -1 or +1, one per round.
            costs: the costs of abstaining, one per round or one for all; by default the constructor's.
            known: whether a round's cost is known before its decision; otherwise it comes with the label.
            progress: called from time to time with the number of rounds just played.

        Returns:
            The trace of these rounds.
        """
        self._interrupted = None
        X = as_predictions(predictions, self.n_experts)
        y = as_labels(labels)
        T = len(y)
        if len(X) != T:
            raise InputError(f"there are {len(X)} rounds of predictions but {T} labels")
        c = as_costs(self._cost_of(None) if costs is None else costs, T)
        coins = (c if known else np.full(T, self._cost or 0.0)) > 0.5
        trace = AbstainerTrace(np.empty(T, dtype=np.int64), np.empty(T), y, np.where(coins, 0.5, c), np.empty(T))
        before = None
        try:
            with self._use.writing:
                before = self.rounds
                if T:
                    self._late |= self.decided != self.rounds
                self._play_chunks(X, y, c, coins, trace, progress)
        except BaseException:
            if before is not None:
                self._interrupted = trace.first(self.rounds - before)
            raise
        return trace

    def _play_chunks(
        self,
        X: Any,
        y: Integers,
        costs: Vector,
        coins: Flags,
        trace: AbstainerTrace,
        progress: Callable[[int], None] | None,
    ) -> None:
        loop = _loop()
        for chunk in chunks(len(y), progress=progress):
            rows = np.ascontiguousarray(X[chunk], dtype=np.float64)
            out = loop.Played(trace.predictions[chunk], trace.votes[chunk], trace.expected_losses[chunk])
            draws, before = self._rng.bit_generator.state, self.rounds
            try:
                u = self._rng.random(len(rows))
                loop.play(self._module.ADAPTS, self._experts, rows, y[chunk], costs[chunk], coins[chunk], u, out)
            except BaseException:
                if self.rounds == before:  # interrupted before this chunk: put its draws back
                    self._rng.bit_generator.state = draws
                raise

    # --- saving --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the abstainer to a file, without the decisions that wait for feedback. Replaces an old file atomically.

        Args:
            path: the file to write.
        """
        model_file.write(path, self.__getstate__())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an abstainer from a file. It continues exactly as the saved one would have.

        Args:
            path: a file written by `save`.

        Returns:
            The abstainer.

        Raises:
            ModelFileError: if the file is not a valid abstainer of this version.
        """
        tree = model_file.read(path)
        abstainer = cls.__new__(cls)
        try:
            abstainer.__setstate__(tree)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as problem:
            raise ModelFileError(path, f"it is not an abstainer of this version: {problem}") from None
        return abstainer

    def __getstate__(self) -> dict[str, Any]:
        with self._use.reading:
            return {
                "abstainer": self.algorithm,
                "n_experts": self.n_experts,
                "cost": self._cost,
                "late": self._late,
                "generator": self._rng.bit_generator.state,
                "experts": spread(self._experts),
            }

    def __setstate__(self, tree: dict[str, Any]) -> None:
        if numbers(tree["experts"]) < whole("n_experts", tree["n_experts"]):
            raise ValueError(f"the file has no data for {tree['n_experts']} experts")
        self.__init__(tree["n_experts"], tree["abstainer"], cost=tree["cost"])  # type: ignore[misc]
        self._experts = fill(self._experts, tree["experts"], "experts")
        self._rng.bit_generator.state = tree["generator"]
        self._late = bool(tree["late"])
        if self.rounds > self.decided:
            raise ValueError("more rounds were learned from than decided")

    # --- theory ---------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> float:
        """A bound on the expected loss minus the loss of any expert, proven by this run itself.

        It never exceeds the theorem's bound, and it holds for all costs and for late feedback (about the rounds learned
        from). It may be negative: abstaining can be cheaper than the best expert.
        """
        totals = self._experts.totals[0]
        against_vote = self._module.certificate(self.n_experts, totals.eta, totals.mixability)
        return float(against_vote - totals.saved)

    def bound(self, trace: AbstainerTrace | None = None) -> AbstainerBound:
        """Return the theorem's bound for the rounds played, and the measured regret.

        Args:
            trace: the trace of all rounds played. For `adahedge` it gives a smaller bound if the costs vary.

        Returns:
            The bound.

        Raises:
            NoBoundError: if the assumptions of the theorem do not hold for this run.
        """
        if not self.rounds:
            raise NoBoundError("no rounds were played yet")
        if self.decided != self.rounds:
            raise NoBoundError(f"{self.decided - self.rounds} decisions have no feedback yet")
        if self._late:
            raise NoBoundError("feedback came late, after the next decision: no theorem applies; use `certificate`")
        if trace is not None and trace.rounds != self.rounds:
            raise InputError(f"the trace has {trace.rounds} rounds, but {self.rounds} were played")
        totals = self._experts.totals[0]
        max_cost = float(totals.max_cost)
        if max_cost > 0.5:
            raise NoBoundError(
                f"a cost of {max_cost:.6g} became known after its prediction, too late for a coin: use `certificate`"
            )
        costs = None if trace is None else trace.costs
        regret = self._module.regret(self.n_experts, self.eta, float(totals.variance), max_cost, costs)
        losses = self.expert_losses
        best = int(losses.argmin())
        least = float(losses[best])
        theorem = self._module.theorem(costs)
        return AbstainerBound(least + regret, regret, self.expected_loss - least, best, losses, theorem)


@functools.cache
def _algorithm(name: str) -> ModuleType:
    return importlib.import_module(f"gaptron.abstention.{ALGORITHMS[name]}")


@functools.cache
def _loop() -> ModuleType:
    """The compiled loop, imported on first use to keep `import gaptron` fast."""
    return importlib.import_module("gaptron.abstention.rounds")


@functools.cache
def _hedge() -> ModuleType:
    return importlib.import_module("gaptron.abstention.hedge")
