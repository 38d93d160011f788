"""Abstainer: an algorithm, what it knows of its experts, and its randomness, as one object a user holds."""

import functools
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np

from gaptron import model_file
from gaptron.abstention.trace import ABSTAIN, AbstainerTrace
from gaptron.abstention.validation import as_cost, as_costs, as_label, as_labels, as_prediction, as_predictions
from gaptron.blocks import blocks
from gaptron.errors import DecisionError, InputError, ModelFileError, NoBoundError, SettingError
from gaptron.given_values import whole
from gaptron.in_use import InUse
from gaptron.seeds import generator
from gaptron.snapshot import fill, numbers, spread
from gaptron.types import Flags, Integers, Vector

ALGORITHMS = {"adahedge": "adahedge", "exponential-weights": "exponential_weights"}


@dataclass(frozen=True, eq=False, slots=True)
class AbstainerDecision:
    """One prediction drawn, and all that is needed to learn from its answer later."""

    prediction: int  # -1, +1 or ABSTAIN
    probability: float  # the chance this prediction had of being drawn
    distribution: Vector = field(repr=False)  # of -1, ABSTAIN and +1, in this order
    vote: float  # the weighted mean of the experts, in [-1, 1]
    round: int
    _cost: float | None = field(repr=False)  # told with the predictions; None: to be told with the label
    _sheet: Any = field(repr=False)
    _owner: object = field(repr=False)
    _answered: Flags = field(repr=False)


class AbstainerBound(NamedTuple):
    """A proved number beside a run."""

    value: float  # expected loss at most: the best expert's loss, and the regret
    regret: float  # the theorem's: the expected loss is at most this above any expert's
    measured: float  # what the regret against the best expert was
    expert: int  # the best
    expert_losses: Vector  # Σ½(1 - y·prediction) of each expert
    theorem: str


class Abstainer:
    """Predicts -1 or +1 from the advice of experts, or abstains at a cost.

    Args:
        n_experts: how many experts advise.
        algorithm: "adahedge" (nothing to tune) or "exponential-weights" (its step is 1 - 2·cost).
        cost: what abstaining costs, where it is the same in all rounds. `exponential-weights` needs the largest.
        seed: for the draws; None takes a fresh one from the system.
    """

    def __init__(
        self, n_experts: int, algorithm: str = "adahedge", *, cost: float | None = None, seed: int | None = None
    ) -> None:
        if isinstance(n_experts, bool) or not isinstance(n_experts, (int, np.integer)) or n_experts < 1:
            raise SettingError(f"n_experts={n_experts!r} must be a whole number of at least 1")
        if algorithm not in ALGORITHMS:
            raise SettingError(f"unknown algorithm {algorithm!r}; there are: {', '.join(ALGORITHMS)}")
        try:
            self._cost = None if cost is None else as_cost(cost)
        except InputError as problem:
            raise SettingError(str(problem)) from None
        self.algorithm = algorithm
        self.n_experts = int(n_experts)
        self._experts = _hedge().init(self.n_experts, self._file.first(self._cost))
        self._rng = generator(seed)
        self._use = InUse()
        self._interrupted: AbstainerTrace | None = None
        self._late = False  # was a decision made while another waited for its answer?

    # --- what it is ---------------------------------------------------------------------------------------

    @property
    def _file(self) -> ModuleType:
        return _algorithm(self.algorithm)  # a module is not kept: it could be neither copied nor pickled

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return int(self._experts.totals[0].learned)

    @property
    def decided(self) -> int:
        """How many decisions were made."""
        return int(self._experts.totals[0].decided)

    @property
    def interrupted(self) -> AbstainerTrace | None:
        """If the last `play` ended early (Ctrl-C, or an error of `progress`): the trace of the rounds it did play."""
        return self._interrupted

    @property
    def cost(self) -> float | None:
        """What abstaining costs where no round says otherwise."""
        return self._cost

    @property
    def weights(self) -> Vector:
        """How much each expert counts: a distribution."""
        w: Vector = self._experts.weights / self._experts.weights.sum()
        return w

    @property
    def eta(self) -> float:
        """The step η of the next round; infinite while no expert of `adahedge` has been worth doubting."""
        return float(self._experts.totals[0].eta)

    @property
    def expert_losses(self) -> Vector:
        """Σ ½(1 - y·prediction) of each expert so far: mistakes, for experts that say ±1."""
        losses: Vector = self._experts.losses.copy()
        return losses

    @property
    def expected_loss(self) -> float:
        """Mistakes and costs so far, in expectation over the draws: exact."""
        return float(self._experts.totals[0].expected)

    def __repr__(self) -> str:
        return f"Abstainer({self.n_experts}, {self.algorithm!r}, cost={self._cost}, rounds={self.rounds})"

    # --- one round at a time --------------------------------------------------------------------------------

    def decide(self, predictions: Any, *, cost: float | None = None) -> AbstainerDecision:
        """Predict -1 or +1, or abstain, given what each expert predicts, a number in [-1, 1].

        A cost that is known now may be told now. If it is above ½ a fair coin, which costs ½, stands in for abstaining.
        """
        x = as_prediction(predictions, self.n_experts)
        stated = None if cost is None else as_cost(cost)
        known = self._cost if stated is None else stated
        coin = known is not None and known > 0.5
        loop = _loop()
        with self._use.writing:
            sheet = loop.decide(self._experts, x, coin)
            drawn = loop.draw(sheet.vote, coin, self._rng.random())
            self._late |= self.decided != self.rounds
            self._experts.totals[0].decided += 1
            round = self.decided
        agree, silent, oppose = loop.chances(sheet.vote, coin)
        distribution = np.array([oppose, silent, agree] if sheet.vote >= 0.0 else [agree, silent, oppose])
        return AbstainerDecision(
            ABSTAIN if drawn == ABSTAIN else drawn,
            float(distribution[drawn + 1]),
            distribution,
            float(sheet.vote),
            round,
            known if coin else stated,
            sheet,
            self,
            np.zeros(1, dtype=np.bool_),
        )

    def learn(self, decision: AbstainerDecision, label: int, cost: float | None = None) -> None:
        """Answer a decision with the right label, -1 or +1, and the cost of abstaining if it was not told before.

        Answers may come late and in any order. A late one is charged with the vote of its own decision and added to the
        experts as they stand by then; `certificate` goes on to hold, the theorem behind `bound` does not.
        """
        if decision._owner is not self:
            raise DecisionError("this decision was made by another abstainer")
        if decision._answered[0]:
            raise DecisionError(f"the decision of round {decision.round} has been answered already")
        if decision._cost is not None and cost is not None:
            raise DecisionError(f"the cost of round {decision.round} was known when it was decided: leave it out here")
        y = as_label(label)
        price = self._price(decision._cost if cost is None else as_cost(cost))
        with self._use.writing:
            _loop().learn_once(self._file.ADAPTS, self._experts, decision._sheet, y, price, decision._answered)

    def _price(self, stated: float | None) -> float:
        if stated is None and self._cost is None:
            raise InputError("what does abstaining cost? Give cost=... here, or once in Abstainer(..., cost=...)")
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
        """Decide, then learn, round by round, compiled. Call again to go on.

        Args:
            predictions: rounds × experts, in [-1, 1].
            labels: -1 or +1, one a round.
            costs: of abstaining, one a round or one for all; by default the constructor's.
            known: whether a round's cost is known when it is decided, or told with the label.
            progress: called with the number of rounds just played, now and then.
        """
        self._interrupted = None
        X = as_predictions(predictions, self.n_experts)
        y = as_labels(labels)
        T = len(y)
        if len(X) != T:
            raise InputError(f"there are {len(X)} rounds of predictions but {T} labels")
        c = as_costs(self._price(None) if costs is None else costs, T)
        coins = (c if known else np.full(T, self._cost or 0.0)) > 0.5
        trace = AbstainerTrace(np.empty(T, dtype=np.int64), np.empty(T), y, np.where(coins, 0.5, c), np.empty(T))
        before = None
        try:
            with self._use.writing:
                before = self.rounds
                if T:
                    self._late |= self.decided != self.rounds
                self._play_blocks(X, y, c, coins, trace, progress)
        except BaseException:
            if before is not None:
                self._interrupted = trace.first(self.rounds - before)
            raise
        return trace

    def _play_blocks(
        self,
        X: Any,
        y: Integers,
        costs: Vector,
        coins: Flags,
        trace: AbstainerTrace,
        progress: Callable[[int], None] | None,
    ) -> None:
        loop = _loop()
        for part in blocks(len(y), progress=progress):
            rows = np.ascontiguousarray(X[part], dtype=np.float64)
            out = loop.Played(trace.predictions[part], trace.votes[part], trace.expected_losses[part])
            draws, before = self._rng.bit_generator.state, self.rounds
            try:
                u = self._rng.random(len(rows))
                loop.play(self._file.ADAPTS, self._experts, rows, y[part], costs[part], coins[part], u, out)
            except BaseException:
                if self.rounds == before:  # interrupted before the block: its draws are still to come
                    self._rng.bit_generator.state = draws
                raise

    # --- to keep --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, less the decisions that wait for their answers. The old file or the new one."""
        model_file.write(path, self.__getstate__())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The abstainer in a file. It goes on as the one that was saved would have."""
        tree = model_file.read(path)
        abstainer = cls.__new__(cls)
        try:
            abstainer.__setstate__(tree)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as problem:
            raise ModelFileError(path, f"it holds no abstainer of this version: {problem}") from None
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
            raise ValueError(f"{tree['n_experts']} experts are claimed and not there")
        self.__init__(tree["n_experts"], tree["abstainer"], cost=tree["cost"])  # type: ignore[misc]
        self._experts = fill(self._experts, tree["experts"], "experts")
        self._rng.bit_generator.state = tree["generator"]
        self._late = bool(tree["late"])
        if self.rounds > self.decided:
            raise ValueError("more rounds were learned from than decided")

    # --- theory ---------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> float:
        """What this very run proves: its expected loss is at most this above the loss of any expert.

        Never above the theorem's number, and valid whatever the costs and however late the answers (for the rounds
        answered). It may be negative: abstaining can be cheaper than the best expert.
        """
        totals = self._experts.totals[0]
        proved = self._file.certificate(self.n_experts, totals.eta, totals.mixability)
        return float(proved - totals.saved)

    def bound(self, trace: AbstainerTrace | None = None) -> AbstainerBound:
        """The theorem's number for the rounds played, and the regret beside it.

        `trace`, of all rounds played, sharpens it for `adahedge` where the costs vary.
        """
        if not self.rounds:
            raise NoBoundError("nothing was played yet")
        if self.decided != self.rounds:
            raise NoBoundError(f"{self.decided - self.rounds} decisions have not been answered")
        if self._late:
            raise NoBoundError("answers came late, after the next decision: no theorem then, but see `certificate`")
        if trace is not None and trace.rounds != self.rounds:
            raise InputError(f"the trace has {trace.rounds} rounds, and {self.rounds} were played")
        totals = self._experts.totals[0]
        dearest = float(totals.dearest)
        if dearest > 0.5:
            raise NoBoundError(
                f"a cost of {dearest:.6g} was told after its prediction, too late to flip a coin: see `certificate`"
            )
        costs = None if trace is None else trace.costs
        regret = self._file.regret(self.n_experts, self.eta, float(totals.variance), dearest, costs)
        losses = self.expert_losses
        best = int(losses.argmin())
        least = float(losses[best])
        theorem = self._file.theorem(costs)
        return AbstainerBound(least + regret, regret, self.expected_loss - least, best, losses, theorem)


@functools.cache
def _algorithm(name: str) -> ModuleType:
    return importlib.import_module(f"gaptron.abstention.{ALGORITHMS[name]}")


@functools.cache
def _loop() -> ModuleType:
    """The compiled loop, imported at first use so that `import gaptron` stays quick."""
    return importlib.import_module("gaptron.abstention.rounds")


@functools.cache
def _hedge() -> ModuleType:
    return importlib.import_module("gaptron.abstention.hedge")
