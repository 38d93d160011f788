"""The nouns that several rooms share. They name things and do nothing."""

from collections.abc import Mapping
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


Rows = NDArray[np.float64] | Sparse
Row = NDArray[np.float64] | SparseRow


class Round(NamedTuple):
    """One round's work sheet: `decide` fills it, `learn` reads it, however much later."""

    z: Vector  # scores; their argmax is the practical answer
    p: Vector  # the distribution the label is drawn from
    memo: Vector  # whatever else the algorithm will want back when it learns
    note: Vector  # what a trace records of this round, one number per name in NOTES
    advice: Vector = np.zeros(0)  # what the caller's own model says, K probabilities; zeros: nothing; empty: not taken


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


class Card(NamedTuple):
    """What an algorithm says of itself to the overview table, the command line and comparisons."""

    paper: str
    feedback: tuple[Feedback, ...]
    losses: tuple[Loss, ...]
    time: str
    memory: str
    regret_full: str
    regret_bandit: str
    advice: bool = False  # does it take a caller's own probabilities each round?
    words: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # setting → its words, in the order of their codes
    grid: Mapping[str, tuple[Any, ...]] = MappingProxyType({})  # setting → values to try, crossed; empty: not tuned
