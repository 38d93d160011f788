"""The protocol of an algorithm: the names that a module in `algorithms/` must have.

There is no base class. A module is an algorithm if it has the names of `Algorithm`. Further names are optional; each
has its own protocol below, and callers test for it with `isinstance(algorithm, HasCertificate)`.

An algorithm has three tuples, and the protocols are generic in their types:

    Settings    numbers fixed before the first round, such as step sizes
    State       what is learned; saved in model files
    Scratch     work space for one round; never saved

`decide`, `learn` and `commit` are compiled and must be registered with `gaptron.kernels.play.algorithm`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from gaptron.types import Advice, Card, Certificate, Comparator, Flags, Integers, Matrix, Problem, Round, Row, Size

Settings = TypeVar("Settings")
State = TypeVar("State")
Scratch = TypeVar("Scratch")
# The same, for protocols that only take them as arguments.
TheSettings = TypeVar("TheSettings", contravariant=True)
TheState = TypeVar("TheState", contravariant=True)
TheScratch = TypeVar("TheScratch", contravariant=True)


class Algorithm(Protocol[Settings, State, Scratch]):
    """An algorithm: one paper, one module."""

    CARD: Card
    """The paper, the feedback and losses it supports, its cost, how it is tuned and how its state grows."""

    @property
    def NOTES(self) -> tuple[str, ...]:  # noqa: N802
        """The names of the numbers that a trace records of each round (`Round.note`)."""

    recommend: Callable[..., Settings]
    """Return the settings of the theorem.

    Args:
        problem: what is known before the first round.
        **overrides: values that replace the theorem's. Each has a default, and the parameters of this function are the
            settings that a user may give.

    Returns:
        The settings.

    Raises:
        SettingError: a value is impossible or, through `problem.need`, missing.
    """

    def init(self, settings: Settings, problem: Problem, sparse: bool, /) -> State:
        """Return the state before the first round.

        Args:
            settings: the settings.
            problem: the problem, with the number of features known.
            sparse: whether examples are sparse, which decides the layout of the weights (`kernels.rows.zeros`).

        Returns:
            The state: a named tuple of arrays, with everything that is learned and nothing else.
        """

    def scratch(self, settings: Settings, problem: Problem, sparse: bool, /) -> Scratch:
        """Return the work space of one caller.

        Args:
            settings: the settings.
            problem: the problem, with the number of features known.
            sparse: whether examples are sparse.

        Returns:
            A named tuple of arrays. Its contents may be lost between two rounds.
        """

    def weights(self, state: State, sparse: bool, /) -> Matrix:
        """Return the weights.

        Args:
            state: the state.
            sparse: whether examples are sparse.

        Returns:
            W, K × d.
        """

    def theorem(self, problem: Problem, settings: Settings, /) -> str:
        """Return the source of the bound in words.

        Args:
            problem: the problem.
            settings: the settings.

        Returns:
            The theorem and its paper, or why there is none.
        """

    def bound(self, problem: Problem, settings: Settings, comparator: Comparator, /) -> float:
        """Return the theorem's bound on the expected number of mistakes. The docstring states every assumption.

        Args:
            problem: the problem.
            settings: the settings.
            comparator: the linear rule U that the bound compares with.

        Returns:
            The bound; inf if the theorem does not cover this comparator.

        Raises:
            NoBoundError: no theorem covers these settings.
        """

    def decide(self, s: Settings, state: State, x: Row, rd: Round, work: Scratch, u: float, /) -> int:
        """Compute the scores and the distribution of one round and draw a label: the paper's lines up to the draw.

        Writes only to `rd` (`z`, `p` and `note`) and to `work`, so that scoring an example changes nothing.

        Args:
            s: the settings.
            state: the state.
            x: the example.
            rd: the round. `advice` and `available` are filled in.
            work: the scratch.
            u: the random number of the draw, uniform on [0, 1).

        Returns:
            The label.
        """

    def learn(self, s: Settings, state: State, x: Row, rd: Round, work: Scratch, label: int, truth: int, /) -> None:
        """Update the state with the feedback of one round: the paper's update.

        Args:
            s: the settings.
            state: the state, which is changed in place.
            x: the example.
            rd: the round as `decide` left it, with `feedback` filled in. If feedback is late, `decide` has run again
                with today's weights, and under partial feedback `rd.p[label]` is the propensity of the decision.
            work: the scratch as `decide` left it.
            label: the label played.
            truth: the true label, or UNKNOWN if the feedback did not reveal it.
        """


AnyAlgorithm: TypeAlias = Algorithm[Any, Any, Any]
"""An algorithm whose tuples the caller hands on without reading them."""


@runtime_checkable
class HasCommit(Protocol[TheSettings, TheState, TheScratch]):
    """An algorithm whose decisions change the state, with or without feedback."""

    def commit(self, s: TheSettings, state: TheState, rd: Round, work: TheScratch, /) -> None:
        """Update the state with a decision that was made.

        Args:
            s: the settings.
            state: the state, which is changed in place.
            rd: the round as `decide` left it, with `feedback.label` filled in.
            work: the scratch as `decide` left it.
        """


@runtime_checkable
class HasCertificate(Protocol[TheSettings, TheState]):
    """An algorithm whose state carries a bound on the run so far."""

    def certificate(self, settings: TheSettings, state: TheState, /) -> Certificate:
        """Return the bound on the run so far.

        Args:
            settings: the settings.
            state: the state.

        Returns:
            The certificate.
        """


@runtime_checkable
class HasAdvice(Protocol[TheSettings, TheState]):
    """An algorithm that combines experts."""

    def advice(self, settings: TheSettings, state: TheState, /) -> Advice:
        """Return the weights of the experts and the comparison with them.

        Args:
            settings: the settings.
            state: the state.

        Returns:
            The weights, and what the certificate cost compared with the experts.
        """


@runtime_checkable
class HasExcused(Protocol):
    """An algorithm whose bound leaves some rounds out of the comparator's loss."""

    def excused(self, problem: Problem, notes: Matrix, hit: Flags, /) -> Flags:
        """Return the rounds that are left out.

        Args:
            problem: the problem.
            notes: the trace's notes, one row per round.
            hit: whether the top label was the true label, per round.

        Returns:
            Whether each round is left out.
        """


@runtime_checkable
class HasPasses(Protocol):
    """An algorithm whose cost per round is not one product per non-zero feature and label."""

    def passes(self, settings: Mapping[str, Any], size: Size, /) -> float:
        """Return the cost of a round.

        Args:
            settings: the settings that a user gave.
            size: the size of the stream.

        Returns:
            The number of products that a round takes.
        """


@runtime_checkable
class HasCheck(Protocol[TheSettings, TheState]):
    """An algorithm whose state holds numbers that compiled code uses as indices."""

    def check_state(self, settings: TheSettings, problem: Problem, state: TheState, /) -> None:
        """Check the indices of a state that was read from a file.

        Args:
            settings: the settings.
            problem: the problem.
            state: the state.

        Raises:
            ValueError: an index lies outside its array.
        """


@runtime_checkable
class HasGrown(Protocol[TheSettings, TheState]):
    """An algorithm for which growing takes more than moving numbers to their new places."""

    def grown(
        self, settings: TheSettings, old: TheState, new: TheState, places: Integers, labels: bool, sparse: bool, /
    ) -> None:
        """Complete a state with more labels or features.

        Args:
            settings: the settings for the larger problem.
            old: the state before.
            new: the state after, which is changed in place. Everything that `CARD.growth` covers is filled in.
            places: the new index of each old label or feature.
            labels: whether labels were added, and not features.
            sparse: whether examples are sparse.
        """


@runtime_checkable
class HasLateFields(Protocol[TheSettings]):
    """An algorithm whose `learn` needs some numbers as they were when the decision was made."""

    def late_fields(self, settings: TheSettings, /) -> tuple[str, ...]:
        """Return the fields of the scratch, or of the round, that a decision saves until its feedback arrives.

        If feedback is late, `decide` runs again and then these fields are restored.

        Args:
            settings: the settings.

        Returns:
            The names of the fields; those that the scratch does not have are of the round. Empty: nothing is saved.
        """


@runtime_checkable
class HasLoggedDecisions(Protocol[TheSettings]):
    """An algorithm whose scratch says how the label was drawn, which differs where another policy drew it."""

    def adopt_logged(self, settings: TheSettings, scratch: Any, propensity: float, /) -> None:
        """Correct the scratch, as `decide` left it, for a decision of another policy.

        Args:
            settings: the settings.
            scratch: the scratch, which is changed in place.
            propensity: the probability with which the other policy drew its label.
        """


@runtime_checkable
class HasLateProof(Protocol[TheSettings]):
    """An algorithm whose certificate may stay valid however late feedback is."""

    def late_proof(self, settings: TheSettings, /) -> bool:
        """Return whether it does with these settings. The state then counts the cost of the delay.

        Args:
            settings: the settings.

        Returns:
            Whether the certificate stays valid.
        """
