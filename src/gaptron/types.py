"""Data types that several packages share."""

import functools
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
"""The true label where the feedback did not reveal it."""

MOST_ACTIONS = 200
"""The most actions that one round may bring."""


class Loss(IntEnum):
    """The surrogate losses of van der Hoeven 2020 (base-2 logistic, truncated hinge, smooth hinge)."""

    LOGISTIC = 0
    HINGE = 1
    SMOOTH_HINGE = 2

    @property
    def word(self) -> str:
        """Its name where users see it."""
        return self.name.lower().replace("_", "-")


class Feedback(IntEnum):
    """What a round reveals: the true label, whether the label played is right, or what a feedback graph reveals."""

    FULL = 0
    BANDIT = 1
    GRAPH = 2

    @property
    def word(self) -> str:
        """Its name where users see it."""
        return self.name.lower()


class Sparse(NamedTuple):
    """Sparse examples in CSR form: example t is indices and values from indptr[t] to indptr[t+1]."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]


class SparseRow(NamedTuple):
    """One example of a `Sparse` block."""

    indices: NDArray[np.int32]
    values: NDArray[np.float64]


Rows = NDArray[np.float64] | Sparse


class ActionRound(NamedTuple):
    """The actions of one round, each with its own features, and what they share."""

    rows: Rows  # one row per action
    context: SparseRow  # features of the round itself, in columns that no action uses; empty: none


class ActionRows(NamedTuple):
    """The same with buffers. It takes the place of an example."""

    rows: Rows
    context: SparseRow
    pairs: Matrix  # buffer: ‖φ_j - φ_k‖² of every two actions, if there are few; `kernels.rows.sqnorm` fills it
    space: Vector  # buffer: four numbers per feature, zero between two calls


class ActionRounds(NamedTuple):
    """The actions of many rounds: those of round t are the rows from first[t] to first[t+1]."""

    first: Integers
    rows: Rows
    contexts: Sparse  # one row per round


Row = NDArray[np.float64] | SparseRow


class Round(NamedTuple):
    """One round, with the same fields for every algorithm. An algorithm's other work space is its scratch."""

    z: Vector  # the scores; `predict` returns their argmax
    p: Vector  # the distribution that the label is drawn from
    note: Vector  # the numbers that a trace records of this round, one per name in NOTES
    advice: Vector  # K probabilities of the caller's model; zeros: none; empty: the algorithm takes no advice
    available: Flags  # the labels that may be played; all True for algorithms whose card has available=False
    # label: the label played, written before `commit`. Written before `learn`: reward, 1 for right and 0 for wrong, or
    # between; propensity, the probability of drawing the true label or, if it is not revealed, the label played.
    feedback: Any


class Nothing(NamedTuple):
    """The scratch of an algorithm that needs none."""


def named(**numbers: float) -> Any:
    """Make a record of named numbers for a state or a scratch.

    Read and write it as `t = state.total[0]`, `t.level += 1.0`.

    It is a record array of length 1, which compiled and interpreted code read and write in the same way.
    """
    return _record(tuple((name, type(number), number) for name, number in numbers.items())).copy()


@functools.lru_cache(maxsize=256)
def _record(numbers: tuple[tuple[str, type, float], ...]) -> Any:
    """The record that `named` copies. Building one takes longer than a round, and every scoring call needs some."""
    if taken := [name for name, _, _ in numbers if hasattr(np.record, name)]:  # interpreted code would read the method
        raise ValueError(f"{taken[0]!r} is a method of numpy's records: use another name for this number")
    kinds = [(name, np.int64 if issubclass(kind, int) else np.float64) for name, kind, _ in numbers]
    record = np.zeros(1, dtype=np.dtype(kinds, align=True)).view(np.recarray)
    for name, _, number in numbers:
        record[name] = number
    return record


def new_round(n_classes: int, notes: int, *, advice: bool = False) -> Round:
    """Allocate a round in which every label is available and there is no advice."""
    K = n_classes
    return Round(
        np.zeros(K),
        np.zeros(K),
        np.zeros(notes),
        np.zeros(K if advice else 0),
        np.ones(K, dtype=np.bool_),
        named(label=0, reward=0.0, propensity=0.0),
    )


class Problem(NamedTuple):
    """What is known before the first round; None: not known."""

    n_classes: int
    n_features: int
    feedback: Feedback
    loss: Loss
    norm: float | None = None  # X ≥ ‖x‖
    radius: float | None = None  # D ≥ ‖U‖
    horizon: int | None = None  # T
    graph: Flags | None = None  # K × K: playing the row's label reveals the true label if it is the column's
    actions: bool = False  # does every round bring its own actions? Then n_classes is 1: all share one row of weights
    encoded: bool = False  # are examples encoded from named features?

    def need(self, *names: str) -> tuple[float, ...]:
        """The values of the named fields.

        Args:
            *names: "norm", "radius" or "horizon".

        Returns:
            One number per name.

        Raises:
            SettingError: at least one is None; the message names all that are missing.
        """
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            what = {"norm": "an upper bound on ‖x‖", "radius": "D ≥ ‖U‖", "horizon": "the number of rounds T"}
            wanted = " and ".join(f"{name}=... ({what[name]})" for name in missing)
            raise SettingError(
                f"{self.feedback.word} feedback with this algorithm needs {wanted}"
                + ("; `play` on examples in memory measures the norm" if "norm" in missing else "")
            )
        return tuple(float(getattr(self, name)) for name in names)


class Comparator(NamedTuple):
    """A fixed linear rule U, evaluated on a stream."""

    loss: float  # L_T(U)
    norm: float  # ‖U‖
    rounds: int  # T
    actions: int = 0  # Σ K_t, where every round has its own actions
    most_actions: int = 0  # max K_t


class Certificate(NamedTuple):
    """A bound computed from a run: E[M_T] ≤ (L_T(U) + C_T(U))/r.

    C_T(U) = (‖U‖²X² + N₀)/(2ε) + Λ + M - Ψ.
    """

    level: float  # Λ, the sum of the rounds' surrogate gaps λ
    step: float  # ε = ηX² of the last round
    norm: float  # X, the largest norm of an example so far
    risk: float  # r
    in_expectation: bool  # bandit: the bound holds in expectation, for U fixed before the draws
    apart: float = 0.0  # N₀: the distance of U from the start, besides ‖U‖²X²
    exploiting: float = 0.0  # M - Ψ: mistakes of exploiting rounds minus what their right labels prove; may be negative

    def cost(self, norm: float) -> float:
        """The cost C_T(U) of the certificate.

        Args:
            norm: ‖U‖.

        Returns:
            C_T(U).
        """
        return ((norm * self.norm) ** 2 + self.apart) / (2 * self.step) + self.level + self.exploiting

    def bound(self, comparator: Comparator) -> float:
        """The bound on the expected mistakes for one rule U.

        Args:
            comparator: the loss and the norm of U on the stream that was played.

        Returns:
            The bound.
        """
        return (comparator.loss + self.cost(comparator.norm)) / self.risk


class Proof(NamedTuple):
    """What the feedback proves of every linear rule U: level ≤ its loss + price·X²‖U‖², on these rounds."""

    level: float  # Ψ
    price: float  # c
    excess: float  # Δ = max{0, M - Ψ}, so that M ≤ loss of U + c·X²‖U‖² + Δ

    def least_loss(self, radius: float) -> float:
        """A lower bound on the loss of every rule with ‖U‖X ≤ radius on these rounds.

        Args:
            radius: the largest ‖U‖X.

        Returns:
            The lower bound, at least 0.
        """
        return max(0.0, self.level - self.price * radius**2)


class Observed(NamedTuple):
    """What the feedback of one run proves of every linear rule, even one chosen afterwards, on these rounds."""

    rounds: int  # rounds with feedback: all numbers are about these
    waiting: int  # decisions without feedback
    mistakes: int  # M
    norm: float  # X, the largest norm of an example
    # Each proof holds for every U; there are several where several prices were tried.
    softmax: tuple[Proof, ...]  # for the base-2 logistic loss, if each label with reward 1 was the only right one
    # For the log loss of K binary questions per round, one per label; several labels may be right, or none.
    one_vs_all: tuple[Proof, ...]

    def cost(self, norm: float) -> float:
        """C(U) = c·X²‖U‖² + Δ: M is at most the logistic loss of U plus this.

        Args:
            norm: ‖U‖.

        Returns:
            The smallest C(U) of the proofs.
        """
        return min(proof.price * (norm * self.norm) ** 2 + proof.excess for proof in self.softmax)

    def least_loss(self, radius: float = 20.0) -> float:
        """A lower bound on the logistic loss of every linear rule with ‖U‖X ≤ radius on these rounds.

        Args:
            radius: the largest ‖U‖X.

        Returns:
            The largest lower bound of the proofs.
        """
        return max(proof.least_loss(radius) for proof in self.softmax)

    def sentence(self, radius: float = 20.0) -> str:
        """The result as a sentence.

        Args:
            radius: the largest ‖U‖X of the rules it is about.

        Returns:
            The sentence.
        """
        least, rules = self.least_loss(radius), f"every linear rule of norm ≤ {radius:g}/X (X = {self.norm:.4g})"
        if least == 0.0:
            return f"nothing yet about {rules}, on these {self.rounds:,} rounds"
        return f"{rules} has base-2 log loss at least {least:,.1f} on these {self.rounds:,} rounds"


class Count(NamedTuple):
    """A run compared with a given rule by counts of the feedback."""

    rounds: int
    alone_wrong: int  # the learner was wrong, and the rule would have played another label, which may be right
    alone_right: int  # the learner was right, and the rule would have played another label
    both_wrong: int  # the learner was wrong, and the rule would have played the same label
    several_right: bool = False  # may more than one label be right in a round?

    @property
    def more(self) -> int:
        """D: the learner made at most this many mistakes more than the rule."""
        return self.alone_wrong - (0 if self.several_right else self.alone_right)

    @property
    def at_least(self) -> int:
        """The rule made, or would have made, at least this many mistakes."""
        return self.both_wrong + (0 if self.several_right else self.alone_right)


class Advice(NamedTuple):
    """A learner compared with its experts."""

    # Full information: H, the expected mistakes that the certificate's demands cost compared with the experts. Bandit:
    # the part of their budget that the exploiting rounds have used.
    cost: float
    weights: dict[str, float]  # expert → its weight
    # Expert → the learner's mistakes minus its own: exact with full information; an upper bound under bandit feedback,
    # if one label is right in each round.
    regret: dict[str, float]
    stickiness: float  # log-odds in favour of the last label known to be right
    discovery: float | None  # bandit: how often a label that was never right turns out right, per play of such a label
    v: float  # the weight of the advice in the certified scores


class Size(NamedTuple):
    """The size of a stream, for estimates of the cost of a round."""

    n_classes: int
    n_features: int
    nonzeros: float  # non-zero features of an example, on average
    rounds: int


class Growth(NamedTuple):
    """How a state grows when labels or features are added."""

    possible: bool = True
    joint: str = "label"  # index of vectors over all weights: "label": k·d + i; "rows": layout of W; "blocks": i·K + k
    centred: tuple[str, ...] = ()  # weights defined up to their mean over labels: a new label starts at that mean
    by_hand: tuple[str, ...] = ()  # fields that the algorithm's `grown` fills


class Card(NamedTuple):
    """The description of an algorithm, for the overview table, the command line, comparisons and tests."""

    paper: str
    feedback: tuple[Feedback, ...]
    losses: tuple[Loss, ...]  # the first is the default
    time: str
    memory: str
    regret_full: str
    regret_bandit: str
    advice: bool = False  # does it take the probabilities of the caller's model in each round?
    available: bool = False  # can a round have unavailable labels?
    rewards: bool = False  # bandit: does it learn from rewards between 0 and 1?
    actions: bool = False  # can every round bring its own actions, each with its own features?
    words: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # setting → its values by name, in the order of codes
    grid: Mapping[str, tuple[Any, ...]] = MappingProxyType({})  # setting → values to try, crossed; empty: not tuned
    growth: Growth = Growth()
    single: tuple[str, ...] = ()  # the state's tables that may be in single precision
    own_coin: bool = False  # does learning need a random number of the decision that a decision log does not have?
    most_classes: int | None = None
    linear: bool = True  # are the scores those of `weights`, and not of several rules together?
