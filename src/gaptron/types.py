"""The nouns that several rooms share. They name things and do nothing."""

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


class Nothing(NamedTuple):
    """The scratch of an algorithm that needs none."""


def named(**numbers: float) -> Any:
    """Numbers with names, for a state or a scratch: `t = state.total[0]`, then `t.level += 1.0`.

    A record array of length 1, which compiled and interpreted code read and write alike at the cost of an array.
    """
    kinds = [(name, np.int64 if isinstance(number, int) else np.float64) for name, number in numbers.items()]
    record = np.zeros(1, dtype=np.dtype(kinds, align=True)).view(np.recarray)
    for name, number in numbers.items():
        record[name] = number
    return record


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


class Certificate(NamedTuple):
    """A bound that a run carries with it: E[M_T] ≤ (L_T(U) + C_T(U))/r, C_T(U) = (‖U‖²X² + N₀)/(2ε) + Λ."""

    level: float  # Λ, the sum of the rounds' surrogate gaps λ
    step: float  # ε = ηX² of the last round
    norm: float  # X, the longest row so far
    risk: float  # r
    in_expectation: bool  # bandit: the bound is on the mean, for U fixed before the draws
    apart: float = 0.0  # N₀: how far from U the learner started besides ‖U‖²X²

    def cost(self, norm: float) -> float:
        """C_T(U) for ‖U‖ = norm."""
        return ((norm * self.norm) ** 2 + self.apart) / (2 * self.step) + self.level

    def bound(self, comparator: Comparator) -> float:
        """What this U proves about the expected mistakes."""
        return (comparator.loss + self.cost(comparator.norm)) / self.risk


class Advice(NamedTuple):
    """How a learner and its advisers got on."""

    cost: float  # H: mistakes that the certificate's demands cost against the advice
    estimated: bool  # bandit: H is an estimate that errs low, never a bound
    heard: dict[str, float]  # adviser → its weight


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
    words: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # setting → its words, in the order of their codes
    grid: Mapping[str, tuple[Any, ...]] = MappingProxyType({})  # setting → values to try, crossed; empty: not tuned
    growth: Growth = Growth()
    own_coin: bool = False  # does it learn from a coin of its own draw, which a log of others cannot know?
    most_classes: int | None = None
    traits: frozenset[str] = frozenset()  # of TRAITS
    variants: Mapping[str, Variant] = MappingProxyType({})
