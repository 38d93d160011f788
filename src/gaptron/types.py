"""The nouns that several rooms share. They name things and do nothing."""

import functools
from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import SettingError

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNKNOWN = -1
"""What a learner is told of the truth when the feedback did not show it."""


class Loss(IntEnum):
    """The surrogate losses of the paper (base-2 logistic, truncated hinge, smooth hinge)."""

    LOGISTIC = 0
    HINGE = 1
    SMOOTH_HINGE = 2

    @property
    def word(self) -> str:
        """Its name where users see it."""
        return self.name.lower().replace("_", "-")


class Feedback(IntEnum):
    """What a round shows: the true label, whether the label played was right, or what a graph on labels shows."""

    FULL = 0
    BANDIT = 1
    GRAPH = 2

    @property
    def word(self) -> str:
        """Its name where users see it."""
        return self.name.lower()


class Sparse(NamedTuple):
    """Rows in compressed form (CSR): row t is indices and values from indptr[t] to indptr[t+1]."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]


class SparseRow(NamedTuple):
    """One row of a `Sparse` block."""

    indices: NDArray[np.int32]
    values: NDArray[np.float64]


class RowsToCome(NamedTuple):
    """Rows that are made when they are asked for, in order and each once."""

    rounds: int
    most: int  # rows to ask for at a time
    block: Callable[[int, int], Sparse]  # the rows from the first number to before the second


Rows = NDArray[np.float64] | Sparse | RowsToCome
Row = NDArray[np.float64] | SparseRow


class Round(NamedTuple):
    """What a round is about, the same for every algorithm. Whatever else an algorithm needs is in its own scratch."""

    z: Vector  # scores; their argmax is the practical answer
    p: Vector  # the distribution the label is drawn from
    note: Vector  # what a trace records of this round, one number per name in NOTES
    advice: Vector  # what the caller's own model says, K probabilities; zeros: nothing; empty: not taken
    among: Flags  # which labels may be played; an algorithm whose card does not take this finds all of them
    # What an answer that comes late needs of its decision, as it was then: the label that was the last right one
    # (or UNKNOWN), whether the round was free, and whether another label than the caller's might be played. Written by
    # `decide`, where the algorithm uses them.
    mark: Any
    # label: the one played, written before `commit`. Written before `learn`: reward, what it was worth, 1 right, 0
    # wrong; chance, the probability that the draw gave the true label or, where that is not shown, the label played.
    answer: Any


class Nothing(NamedTuple):
    """The scratch of an algorithm that needs none."""


def named(**numbers: float) -> Any:
    """Numbers with names, for a state or a scratch: `t = state.total[0]`, then `t.level += 1.0`.

    A record array of length 1, which compiled and interpreted code read and write alike at the cost of an array.
    """
    return _record(tuple((name, type(number), number) for name, number in numbers.items())).copy()


@functools.lru_cache(maxsize=256)
def _record(numbers: tuple[tuple[str, type, float], ...]) -> Any:
    """The record that `named` copies: making one takes longer than a round, and every look at a learner needs some."""
    if taken := [name for name, _, _ in numbers if hasattr(np.record, name)]:  # interpreted code would read the method
        raise ValueError(f"{taken[0]!r} is a method of numpy's records: find another name for this number")
    kinds = [(name, np.int64 if issubclass(kind, int) else np.float64) for name, kind, _ in numbers]
    record = np.zeros(1, dtype=np.dtype(kinds, align=True)).view(np.recarray)
    for name, _, number in numbers:
        record[name] = number
    return record


def new_round(n_classes: int, notes: int, *, advice: bool = False) -> Round:
    """Room for one round: every label may be played, nobody advises."""
    K = n_classes
    return Round(
        np.zeros(K),
        np.zeros(K),
        np.zeros(notes),
        np.zeros(K if advice else 0),
        np.ones(K, dtype=np.bool_),
        named(last=UNKNOWN, free=0, apart=0),
        named(label=0, reward=0.0, chance=0.0),
    )


class Problem(NamedTuple):
    """What is known before the first round. None means: not known."""

    n_classes: int
    n_features: int
    feedback: Feedback
    loss: Loss
    norm: float | None = None  # X ≥ ‖x‖
    radius: float | None = None  # D ≥ ‖U‖
    horizon: int | None = None  # T
    graph: Flags | None = None  # K × K: playing the row's label shows the truth if it is the column's

    def need(self, *names: str) -> tuple[float, ...]:
        """The named numbers, or one error that says which are missing and how to give them."""
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            what = {"norm": "an upper bound on ‖x‖", "radius": "D ≥ ‖U‖", "horizon": "the number of rounds T"}
            wanted = " and ".join(f"{name}=... ({what[name]})" for name in missing)
            raise SettingError(
                f"{self.feedback.word} feedback with this algorithm needs {wanted}"
                + ("; `play` on rows in memory measures the norm by itself" if "norm" in missing else "")
            )
        return tuple(float(getattr(self, name)) for name in names)


class Comparator(NamedTuple):
    """A fixed linear rule U, judged on a stream."""

    loss: float  # L_T(U)
    norm: float  # ‖U‖
    rounds: int  # T


class Rounding(NamedTuple):
    """What keeping weights in single precision has done to a run; in double nothing is counted."""

    lean: float = 0.0  # A: Σ of what rounding added to half of ‖W‖², times the step where the proof has it there
    drift: float = 0.0  # B: Σ of how far it moved the weights


UNCOUNTED: Any = named(**Rounding()._asdict())[:0]
"""A state's `rounding` while nothing is counted: a record of none."""


class Certificate(NamedTuple):
    """A bound that a run carries with it: E[M_T] ≤ (L_T(U) + C_T(U))/r.

    C_T(U) = (‖U‖²X² + N₀)/(2ε) + Λ + M - Ψ + A + B‖U‖.
    """

    level: float  # Λ, the sum of the rounds' surrogate gaps λ
    step: float  # ε = ηX² of the last round
    norm: float  # X, the longest row so far
    risk: float  # r
    in_expectation: bool  # bandit: the bound is on the mean, for U fixed before the draws
    apart: float = 0.0  # N₀: how far from U the learner started besides ‖U‖²X²
    free: float = 0.0  # M - Ψ: misses of rounds without exploration, less what their hits prove; may be negative
    rounding: Rounding = Rounding()  # A and B: of weights in single precision

    def cost(self, norm: float) -> float:
        """C_T(U) for ‖U‖ = norm."""
        rounded = self.rounding.lean + self.rounding.drift * norm
        return ((norm * self.norm) ** 2 + self.apart) / (2 * self.step) + self.level + self.free + rounded

    def bound(self, comparator: Comparator) -> float:
        """What this U proves about the expected mistakes."""
        return (comparator.loss + self.cost(comparator.norm)) / self.risk


class Proof(NamedTuple):
    """What the answers prove of every linear rule U: level ≤ its loss + price·X²‖U‖², on these rounds."""

    level: float  # Ψ
    price: float  # c
    excess: float  # Δ = max{0, M - Ψ}, so that M ≤ loss of U + c·X²‖U‖² + Δ

    def least_loss(self, radius: float) -> float:
        """No rule with ‖U‖X ≤ radius has less loss on these rounds."""
        return max(0.0, self.level - self.price * radius**2)


class Observed(NamedTuple):
    """What the answers of one run prove of every linear rule, even one chosen afterwards: a fact about these rounds."""

    rounds: int  # that were answered: all numbers are about these
    waiting: int  # decisions without an answer
    mistakes: int  # M
    norm: float  # X, the longest row
    # Each proof holds for every U; there are several where several prices were tried.
    softmax: tuple[Proof, ...]  # of the base-2 logistic loss; if each label that was confirmed was the only right one
    one_vs_all: tuple[
        Proof, ...
    ]  # of the log loss of K questions a round, one a label; several labels may be right, or none

    def cost(self, norm: float) -> float:
        """C(U) = c·X²‖U‖² + Δ for ‖U‖ = norm: M is at most the logistic loss of U plus this."""
        return min(proof.price * (norm * self.norm) ** 2 + proof.excess for proof in self.softmax)

    def least_loss(self, radius: float = 20.0) -> float:
        """The logistic loss that every linear rule with ‖U‖X ≤ radius has at least on these rounds."""
        return max(proof.least_loss(radius) for proof in self.softmax)

    def sentence(self, radius: float = 20.0) -> str:
        """What may be said of it, and no more."""
        least, rules = self.least_loss(radius), f"every linear rule of norm ≤ {radius:g}/X (X = {self.norm:.4g})"
        if least == 0.0:
            return f"nothing yet about {rules}, on these {self.rounds:,} rounds"
        return f"{rules} has base-2 log loss at least {least:,.1f} on these {self.rounds:,} rounds"


class Count(NamedTuple):
    """A run beside a given rule, counted on the answers alone."""

    rounds: int
    alone_wrong: int  # we were wrong, and the rule would have played another label: it may have been right
    alone_right: int  # we were right, and it would have played another label
    both_wrong: int  # we were wrong, and it would have played the same label
    several_right: bool = False  # may more than one label be right in a round?

    @property
    def more(self) -> int:
        """D: we made at most so many mistakes more than the rule."""
        return self.alone_wrong - (0 if self.several_right else self.alone_right)

    @property
    def at_least(self) -> int:
        """The rule made, or would have made, at least so many mistakes."""
        return self.both_wrong + (0 if self.several_right else self.alone_right)


class Advice(NamedTuple):
    """How a learner and its advisers got on."""

    # Full information: H, expected mistakes that the certificate's demands cost against the advice. Bandit: what the
    # rounds without exploration have cost of their budget.
    cost: float
    heard: dict[str, float]  # expert → its weight
    # Expert → our mistakes less its own: exactly with full information, at most under bandit feedback if one label is
    # right in each round.
    ahead: dict[str, float]
    stickiness: float  # log-odds by which the last right label is preferred
    discovery: float | None  # bandit: finds per play of a label never hit
    v: float  # the weight of the advice in the certified scores


class Size(NamedTuple):
    """How large a stream is, for those who ask what a round of it costs."""

    n_classes: int
    n_features: int
    nonzeros: float  # numbers in a row, on average
    rounds: int


class Growth(NamedTuple):
    """What becomes of a state when labels or features are added that nobody knew of at the start."""

    possible: bool = True
    joint: str = "label"  # vectors over all weights: "label": k·d + i; "rows": as W lies; "blocks": i·K + k
    centred: tuple[str, ...] = ()  # weights that count less their mean over labels: a new label starts at that mean
    by_hand: tuple[str, ...] = ()  # fields that the algorithm's own `grown` brings over


class Variant(NamedTuple):
    """Another way to build an algorithm that is worth the same tests as its default."""

    settings: Mapping[str, Any]
    feedback: tuple[Feedback, ...] = ()  # for which feedback; empty: for each it has
    losses: tuple[Loss, ...] = ()
    traits: frozenset[str] | None = None  # None: the card's


TRAITS = {
    "axes": "each feature has a step size of its own, so that rotating the features changes the run",
    "label order": "numbers drawn in advance belong to the labels in their order: swapping two changes the run",
    "floor": "no label is ever drawn more rarely than γ/K",
    "mixture": "the scores are those of many rules together, not of the weights shown",
    "own row": "the scores count the row asked about as if it had been learned from",
    "sampler": "random numbers move the weights, and each round goes through the past again",
    "ties": "first rounds tie, and rounding then tells equal labels apart in an order that depends on the layout",
}


class Card(NamedTuple):
    """What an algorithm says of itself to the overview table, the command line, comparisons and tests."""

    paper: str
    feedback: tuple[Feedback, ...]
    losses: tuple[Loss, ...]  # the first is the default
    time: str
    memory: str
    regret_full: str
    regret_bandit: str
    advice: bool = False  # does it take a caller's own probabilities each round?
    among: bool = False  # can labels be left out of a round?
    rewards: bool = False  # bandit: does it learn from answers between right and wrong?
    words: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # setting → its words, in the order of their codes
    grid: Mapping[str, tuple[Any, ...]] = MappingProxyType({})  # setting → values to try, crossed; empty: not tuned
    growth: Growth = Growth()
    single: tuple[str, ...] = ()  # the state's tables that may be kept in single precision
    own_coin: bool = False  # does it learn from a coin of its own draw, which a log of others cannot know?
    most_classes: int | None = None
    traits: frozenset[str] = frozenset()  # of TRAITS
    variants: Mapping[str, Variant] = MappingProxyType({})
