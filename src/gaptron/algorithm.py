"""What a file in `algorithms/` must have to be an algorithm. A module is one if it has the names of `Algorithm`.

Further names are optional; each has a protocol of its own below, and `isinstance(file, HasCertificate)` asks for it.
The compiled bodies `decide`, `learn` and `commit` are documented here and registered with `kernels.play.algorithm`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from gaptron.types import (
    Advice,
    Card,
    Certificate,
    Comparator,
    Flags,
    Integers,
    Matrix,
    Problem,
    Round,
    Rounding,
    Row,
    Size,
)


class Algorithm(Protocol):
    """One paper, one file."""

    CARD: Card
    """What the algorithm is, takes and costs, how it is tuned and how it grows."""

    NOTES: tuple[str, ...]
    """Names of the numbers that a trace keeps of each round."""

    recommend: Callable[..., Any]
    """recommend(problem, **given): the theorem's settings. Parameters beside `problem` are those a user may give.

    Raises `SettingError` for a value that is impossible, and through `problem.need` for one that is missing.
    """

    def init(self, settings: Any, problem: Problem, sparse: bool, /) -> Any:
        """The state before the first round: what will be learned, and nothing else, in the layout of the rows."""

    def scratch(self, settings: Any, problem: Problem, sparse: bool, /) -> Any:
        """Work space for one caller. Whatever is in it may be lost between two rounds."""

    def weights(self, state: Any, sparse: bool, /) -> Matrix:
        """W, K × d."""

    def theorem(self, problem: Problem, settings: Any, /) -> str:
        """Where the bound comes from, in words."""

    def bound(self, problem: Problem, settings: Any, comparator: Comparator, /) -> float:
        """The theorem's number; its docstring has every assumption. Raises `NoBoundError` where no theorem speaks."""

    def decide(self, s: Any, state: Any, x: Row, rd: Round, work: Any, u: float, /) -> int:
        """The paper's lines up to the draw, by the one number u ∈ [0, 1). Writes nothing but `rd` and `work`.

        Fills `rd.z`, `rd.p` and `rd.note`; returns the label.
        """

    def learn(self, s: Any, state: Any, x: Row, rd: Round, work: Any, label: int, truth: int, /) -> None:
        """The paper's update. `truth` is the right label, or UNKNOWN where the feedback did not show it.

        `rd` and `work` are as `decide` left them. If the answer is late, `decide` has filled them anew with the
        weights of today, and where the answer depends on the draw `rd.p[label]` is the probability it was drawn with.
        """


@runtime_checkable
class HasCertificate(Protocol):
    """A run carries a bound with it."""

    def certificate(self, settings: Any, state: Any, /) -> Certificate:
        """The bound so far."""


@runtime_checkable
class HasRoundedBound(Protocol):
    """Its theorem, which no certificate carries, can count what rounding weights to single precision costs."""

    def rounded_bound(self, problem: Problem, settings: Any, comparator: Comparator, rounding: Rounding, /) -> float:
        """The theorem's number with the rounding of the run; `bound`, where there was none."""


@runtime_checkable
class HasAdvice(Protocol):
    """It listens to advisers."""

    def advice(self, settings: Any, state: Any, /) -> Advice:
        """Who was heard, and what the certificate cost against them."""


@runtime_checkable
class HasExcused(Protocol):
    """Some rounds count nothing in the comparator's loss."""

    def excused(self, problem: Problem, notes: Matrix, hit: Flags, /) -> Flags:
        """Which."""


@runtime_checkable
class HasPasses(Protocol):
    """A round costs other than one product per non-zero and label."""

    def passes(self, settings: Mapping[str, Any], size: Size, /) -> float:
        """How many products a round takes."""


@runtime_checkable
class HasCheck(Protocol):
    """The state holds numbers that compiled code uses as places."""

    def check_state(self, settings: Any, problem: Problem, state: Any, /) -> None:
        """Raise `ValueError` if a place in a state read from a file lies outside its array."""


@runtime_checkable
class HasGrown(Protocol):
    """Growing takes more than moving numbers to their new places."""

    def grown(self, settings: Any, old: Any, new: Any, places: Integers, labels: bool, sparse: bool, /) -> None:
        """Finish `new`, where all that `CARD.growth` covers is in place. `places`: of the old labels or features."""


@runtime_checkable
class HasMemory(Protocol):
    """A proof needs each decision's own scores when its answer comes late."""

    def remembers(self, settings: Any, /) -> tuple[str, ...]:
        """The fields of its scratch that a decision keeps, with its scores, until it is answered; none: nothing.

        If the answer is late, `decide` is asked again as always, and then these are put back as they were.
        """


@runtime_checkable
class HasLateProof(Protocol):
    """Its certificate may go on holding after late answers, however late."""

    def late_proof(self, settings: Any, /) -> bool:
        """Does it, with these settings? The state then counts what lateness cost, and `certificate` reports it."""
