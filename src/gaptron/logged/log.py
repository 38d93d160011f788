"""A log: decisions that were made, how likely each was, and what came of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gaptron import trace
from gaptron.errors import InputError, StreamError
from gaptron.streams.block import Blame
from gaptron.streams.rows import Rows, csr, first_not_finite, norms, tidy_rows
from gaptron.types import Count, Flags, Integers, Matrix, Vector
from gaptron.validation import Classes, as_among

CLOSE = 1e-4  # how far probabilities may be from summing to 1, and from each other: some loggers write float32
CERTAIN = 0.99  # a probability past which a round says next to nothing of other labels
ROUNDED = 1e-6  # how far above 1 a probability may be and still be 1


@final
@dataclass(frozen=True, eq=False)
class Log:
    """Logged rounds in memory, in the order they happened. Nobody checks them again.

    A reward lies in [0, 1]: 1 means that the label played was right, 0 that it was wrong, and what is missing to 1
    counts as that much of a mistake.
    """

    X: Rows
    codes: Integers  # of the labels played
    reward: Vector
    probability: Vector  # of the label played, when it was drawn
    distribution: Matrix | None  # of every label, where it was kept
    classes: tuple[Any, ...]
    name: str
    among: NDArray[np.bool_] | None = None  # which labels were available, T × K; None: all, in every round
    policy: Matrix | None = None  # chances that a policy of the reader's own gives: T × K, or T × 1 of the label played

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        labels: Any,
        reward: Any,
        probability: Any,
        *,
        classes: Iterable[Any],
        distribution: Any = None,
        among: Any = None,
        name: str = "arrays",
    ) -> Self:
        """A log of arrays, a row or number for each round. `among` as `Learner.play` takes it."""
        rows = tidied(X, name)
        try:
            known = Classes(classes)
            codes = known.codes(labels)
            allowed = None if among is None else as_among(among, len(codes), known)
        except InputError as error:
            raise StreamError(name, str(error)) from None
        rewards, chances = _numbers(reward, "reward", name), _numbers(probability, "probability", name)
        for word, count in {"X": rows.shape[:1], "reward": rewards.shape, "probability": chances.shape}.items():
            if count != codes.shape:
                raise StreamError(name, f"there are {len(codes)} labels, and {word} does not have one entry for each")
        whole = None if distribution is None else _numbers(distribution, "distribution", name)

        def blame(row: int, problem: str) -> InputError:
            return StreamError(name, f"row {row}: {problem}")

        if not len(codes):
            raise StreamError(name, "holds no decisions")
        if len(known) < 2:
            raise StreamError(name, "there must be at least two classes")
        if allowed is not None:
            check_available(codes, whole, allowed, blame)
        return cls(*checked(rows, codes, rewards, chances, whole, len(known), blame), known.labels, name, allowed)

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.codes)

    @property
    def n_features(self) -> int:
        """d."""
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)

    @property
    def norm(self) -> float:
        """The largest ‖x‖."""
        return float(norms(self.X).max())

    @property
    def mistakes(self) -> Vector:
        """1 - reward, round by round."""
        return 1.0 - self.reward

    @property
    def right(self) -> Flags:
        """Which labels played were right; refused where a reward lies between right and wrong."""
        between = (self.reward > 0.0) & (self.reward < 1.0)
        if between.any():
            row = int(between.argmax())
            raise InputError(
                f"{self.name}: round {row + 1} has reward {self.reward[row]:g}, neither right (1) nor wrong (0), and "
                "only those count here"
            )
        right: Flags = self.reward == 1.0
        return right

    @property
    def least(self) -> float:
        """The smallest probability, above 0, that is in sight: of any label, or else of those played."""
        if self.distribution is None:
            return float(self.probability.min())
        return float(self.distribution[self.distribution > 0.0].min())

    @property
    def certain(self) -> float:
        """The share of rounds whose label was all but certain (0.99): they show nothing of other labels."""
        return float((self.probability >= CERTAIN).mean())

    def available(self, t: int) -> NDArray[np.bool_] | None:
        """Which labels were available in a round, as `Learner.decide` takes it; None: all."""
        return None if self.among is None else self.among[t]

    def row(self, t: int) -> Any:
        """One row, as `Learner.decide` takes it."""
        return one_row(self.X, t)

    def count_against(self, labels: Any, *, several_right: bool = False) -> Count:
        """The log beside a rule that would have played these labels, one a round. See `Trace.count_against`."""
        return trace.count(Classes(self.classes), self.codes, self.right, labels, several_right)

    def with_policy(self, probabilities: Any) -> "Log":
        """The same log beside the probabilities of a policy of your own, for `judge_policy`.

        A number for each round is the chance it gives the label that was played; a row of K, that of every label.
        """

        def blame(row: int, problem: str) -> InputError:
            return StreamError(self.name, f"row {row}: {problem}")

        given = np.asarray(probabilities)
        given = given[:, :, 0] if given.ndim == 3 and given.shape[2] == 1 else given
        return replace(self, policy=checked_policy(given, self.codes, self.among, self.n_classes, blame))

    def __getitem__(self, part: slice) -> "Log":
        if not isinstance(part, slice):
            raise InputError("a log is cut by a slice, such as log[:1000]")
        distribution = None if self.distribution is None else self.distribution[part]
        cut = (self.X[part], self.codes[part], self.reward[part], self.probability[part], distribution)
        among = None if self.among is None else self.among[part]
        return Log(*cut, self.classes, self.name, among, None if self.policy is None else self.policy[part])

    def __repr__(self) -> str:
        return (
            f"Log({self.name!r}, rounds={self.n_rounds}, n_classes={self.n_classes}, n_features={self.n_features}, "
            f"mistakes={self.mistakes.sum():g})"
        )


def tidied(X: Any, name: str) -> Rows:
    """X as rows, or an error."""
    try:
        rows = tidy_rows(X)
    except (TypeError, ValueError) as error:
        raise StreamError(name, f"X must be a matrix of numbers ({error})") from None
    if rows.ndim != 2 or not rows.shape[1]:
        raise StreamError(name, f"X must have a row for each round and at least one column; it is {rows.shape}")
    return rows


def one_row(X: Rows, t: int) -> Any:
    """A row of X, as `Learner.decide` takes it."""
    if not sparse.issparse(X):
        return X[t]
    part = slice(*X.indptr[t : t + 2])
    return csr(X.data[part], X.indices[part], [0, part.stop - part.start], X.shape[1])


def checked(
    X: Rows, codes: Integers, reward: Vector, probability: Vector, distribution: Matrix | None, K: int, blame: Blame
) -> tuple[Rows, Integers, Vector, Vector, Matrix | None]:
    """The fields of a log, or the error that names the first row that nothing can be judged by."""

    def refuse(bad: Any, problem: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise blame(row, problem.format(p=probability[row], r=reward[row]))

    row = first_not_finite(X)
    if row is not None:
        raise blame(row, "a feature is NaN or infinite: clean the data first")
    refuse(~((reward >= 0.0) & (reward <= 1.0)), "reward {r:g} is not in [0, 1], where 1 is right and 0 is wrong")
    refuse(
        ~((probability > 0.0) & (probability <= 1.0 + ROUNDED)),
        "probability {p:g} is not in (0, 1]: it is the chance that the label played had of being drawn",
    )
    probability = np.minimum(probability, 1.0)
    if distribution is not None:
        if distribution.shape != (len(codes), K):
            raise blame(0, f"the distribution has shape {distribution.shape}, not {(len(codes), K)}")
        refuse(~(distribution >= 0.0).all(axis=1), "the distribution holds NaN or a negative number")
        with np.errstate(over="ignore"):  # a sum past the range of floats is not 1 either
            refuse(~(abs(distribution.sum(axis=1) - 1.0) <= CLOSE), "the distribution does not sum to 1")
        played = distribution[np.arange(len(codes)), codes]
        refuse(
            ~(abs(played - probability) <= CLOSE * probability),
            "probability {p:g} of the label played is not the one the distribution gives it",
        )
    return X, codes, reward, probability, distribution


def checked_policy(chances: Any, codes: Integers, among: NDArray[np.bool_] | None, K: int, blame: Blame) -> Matrix:
    """What a policy of the reader's own gives each label, T × K, or T × 1 if only of the labels played; or an error."""
    try:
        policy = np.array(chances, dtype=np.float64)
    except (TypeError, ValueError):
        raise blame(0, "the policy's probabilities must be numbers, as many in every round") from None
    policy = policy[:, None] if policy.ndim == 1 else policy
    if policy.ndim != 2 or len(policy) != len(codes) or policy.shape[1] not in (1, K):
        given = f"the policy's probabilities have shape {policy.shape}"
        raise blame(0, f"{given}: give one a round, of the label played, or {K}, of every label")
    wrong = ~((policy >= 0.0) & (policy <= 1.0 + ROUNDED)).all(axis=1)
    if wrong.any():
        raise blame(int(wrong.argmax()), "a probability of the policy is not in [0, 1]")
    if policy.shape[1] == 1:
        return policy
    wrong = abs(policy.sum(axis=1) - 1.0) > CLOSE
    if wrong.any():
        row = int(wrong.argmax())
        raise blame(row, f"the policy's probabilities sum to {policy[row].sum():.6g}, not to 1")
    if among is not None:
        wrong = ((policy > 0.0) & ~among).any(axis=1)
        if wrong.any():
            raise blame(int(wrong.argmax()), "the policy gives a chance to a label that was not available")
    return policy


def check_available(codes: Integers, distribution: Matrix | None, among: NDArray[np.bool_], blame: Blame) -> None:
    """Refuse a decision for a label that was not available, or a chance for one."""
    out = ~among[np.arange(len(codes)), codes]
    if out.any():
        raise blame(int(out.argmax()), "the label played is not among those that were available")
    if distribution is not None and distribution.shape == among.shape:
        chance = ((distribution > 0.0) & ~among).any(axis=1)
        if chance.any():
            raise blame(int(chance.argmax()), "the distribution gives a chance to a label that was not available")


def _numbers(values: Any, word: str, name: str) -> Vector:
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise StreamError(name, f"{word} must hold numbers") from None
