"""A log in memory: decisions, the propensities they were drawn with, and their rewards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gaptron.data.examples import Example, Examples, Table, as_table, csr
from gaptron.data.feedback import as_available
from gaptron.data.labels import Classes
from gaptron.errors import InputError, StreamError
from gaptron.features import Encoder, Features
from gaptron.learner import Learner, trace
from gaptron.offpolicy.checks import (
    as_examples,
    check_available,
    check_distribution,
    check_rewards,
    checked_policy,
    checked_propensity,
)
from gaptron.streams.raw_chunk import ErrorAt
from gaptron.types import Count, Flags, Integers, Matrix, Sparse, Vector

NEAR_CERTAIN = 0.99  # a round with this propensity says almost nothing about other labels


@final
@dataclass(frozen=True, eq=False)
class Log:
    """Logged rounds in chronological order. They are checked once, when the log is made.

    A reward lies in [0, 1]: 1 means that the label played was correct, 0 that it was wrong. A reward in between counts
    as a fraction of a mistake, 1 - reward.

    Make a log with `Log.from_arrays`, `open_log`, `from_obp` or `record`, and take a part of it with a slice:
    `log[:1000]`.
    """

    examples: Examples
    codes: Integers  # indices into `classes` of the labels played
    reward: Vector  # of the label played
    propensity: Vector  # probability with which the label played was drawn
    distribution: Matrix | None  # probability of every label, T × K; None: not logged
    classes: tuple[Any, ...]
    name: str  # of the file, for messages
    available: NDArray[np.bool_] | None = None  # which labels could be played, T × K; None: all, in every round
    feature_dicts: tuple[dict[str, Any], ...] | None = (
        None  # examples by name, where logged so; `examples` encodes them
    )
    policy: Matrix | None = None  # probabilities of the caller's policy: T × K, or T × 1 of the labels played

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        labels: Any,
        reward: Any,
        propensity: Any,
        *,
        classes: Iterable[Any],
        distribution: Any = None,
        available: Any = None,
        name: str = "arrays",
        error_at: ErrorAt | None = None,
    ) -> "Log":
        """Make a log from arrays with one entry per round.

        Args:
            X: Examples: a T × d array or sparse matrix, or a list of dicts of features by name. Learners with features
                take the dicts; for others they are encoded with `Features()`, each example by those before it.
            labels: The labels played.
            reward: The reward of each label played, from 0 to 1.
            propensity: The probability with which each label played was drawn.
            classes: All labels.
            distribution: The probability of every label, T × K, if it was logged.
            available: The labels that could be played in each round, as in `Learner.play`.
            name: Name of the log, for messages.
            error_at: Makes the error about a row; by default it names the row, from 0.

        Returns:
            The log.

        Raises:
            StreamError: An entry is wrong; the message names its row.
        """

        def row_error(row: int, problem: str) -> InputError:
            return StreamError(name, f"row {row}: {problem}")

        error_at = error_at or row_error
        by_name = tuple(dict(x) for x in X) if _are_dicts(X) else None
        table = _as_table(X, name) if by_name is None else encoded(by_name, error_at)
        try:
            known = Classes(classes)
            codes = known.codes(labels)
            allowed = None if available is None else as_available(available, len(codes), known)
        except InputError as error:
            raise StreamError(name, str(error)) from None
        rewards, propensities = _numbers(reward, "reward", name), _numbers(propensity, "propensity", name)
        for word, count in {"X": table.shape[:1], "reward": rewards.shape, "propensity": propensities.shape}.items():
            if count != codes.shape:
                raise StreamError(name, f"there are {len(codes)} labels, and {word} does not have one entry for each")
        whole = None if distribution is None else _numbers(distribution, "distribution", name)
        if not len(codes):
            raise StreamError(name, "contains no decisions")
        if len(known) < 2:
            raise StreamError(name, "there must be at least two classes")
        log = cls(
            as_examples(table, error_at), codes, rewards, propensities, whole, known.labels, name, allowed, by_name
        )
        return checked_log(log, error_at)

    @property
    def X(self) -> Table:  # noqa: N802
        """The numbers of the examples, T × d: a read-only array or a CSR array."""
        rows = self.examples.rows
        if not isinstance(rows, Sparse):
            return rows
        first, last = rows.indptr[0], rows.indptr[-1]
        return csr(rows.values[first:last], rows.indices[first:last], rows.indptr - first, self.n_features)

    @property
    def n_rounds(self) -> int:
        """Number of rounds, T."""
        return len(self.codes)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return self.examples.width

    @property
    def n_classes(self) -> int:
        """Number of labels, K."""
        return len(self.classes)

    @property
    def norm(self) -> float:
        """The largest ‖x‖."""
        return self.examples.longest

    @property
    def mistakes(self) -> Vector:
        """1 - reward of each round."""
        return 1.0 - self.reward

    @property
    def correct(self) -> Flags:
        """Whether the label played was correct, per round; refused if a reward lies strictly between 0 and 1."""
        between = (self.reward > 0.0) & (self.reward < 1.0)
        if between.any():
            row = int(between.argmax())
            raise InputError(
                f"{self.name}: round {row + 1} has reward {self.reward[row]:g}, but only rewards of 1 (correct) and 0 "
                "(wrong) can be counted"
            )
        correct: Flags = self.reward == 1.0
        return correct

    @property
    def smallest_propensity(self) -> float:
        """The smallest positive probability of any label or, without distributions, of any label played."""
        if self.distribution is None:
            return float(self.propensity.min())
        return float(self.distribution[self.distribution > 0.0].min())

    @property
    def near_certain(self) -> float:
        """Share of rounds with propensity 0.99 or more, which say almost nothing about other labels."""
        return float((self.propensity >= NEAR_CERTAIN).mean())

    def new_values(self) -> Matrix:
        """Return a matrix with room for one number per round and label."""
        return np.empty((self.n_rounds, self.n_classes))

    def place(self, t: int) -> int:
        """Return where the labels of a round are in such a matrix.

        Args:
            t: Index of the round.

        Returns:
            Its row.
        """
        return t

    def of_played(self, values: Matrix) -> Vector:
        """Return the numbers of the labels that were played.

        Args:
            values: One number per round and label.

        Returns:
            One number per round.
        """
        played: Vector = values[np.arange(self.n_rounds), self.codes]
        return played

    def sums(self, values: Matrix) -> Vector:
        """Sum over the labels of each round.

        Args:
            values: One number per round and label.

        Returns:
            One number per round.
        """
        total: Vector = values.sum(axis=1)
        return total

    def available_at(self, t: int) -> NDArray[np.bool_] | None:
        """Return which labels were available in one round.

        Args:
            t: Index of the round.

        Returns:
            A boolean per label, as `Learner.decide` takes it, or None if all were available.
        """
        return None if self.available is None else self.available[t]

    def example(self, t: int) -> Example:
        """Return one example.

        Args:
            t: Index of the round.

        Returns:
            The example, as `Learner.decide` takes it.
        """
        return self.examples[t]

    def examples_for(self, learner: Learner) -> Any:
        """Return the examples in the form that a learner takes.

        Args:
            learner: The learner.

        Returns:
            A list of dicts for a learner with features, else checked examples.

        Raises:
            InputError: The learner takes features by name and the log has numbers.
        """
        if learner.features is None:
            return self.examples
        if self.feature_dicts is None:
            raise InputError(
                f"{self.name}: the learner takes features by name, but this log has numbers, so it cannot evaluate it"
            )
        return list(self.feature_dicts)

    def count_against(self, labels: Any, *, several_right: bool = False) -> Count:
        """Compare the log's mistakes with those of a rule that would have played the given labels.

        Args:
            labels: The rule's label in each round.
            several_right: Whether more than one label may be correct in a round.

        Returns:
            The counts, as `Trace.count_against` returns them.
        """
        return trace.count(Classes(self.classes), self.codes, self.correct, labels, several_right)

    def with_policy(self, probabilities: Any) -> "Log":
        """Add the probabilities of your own policy, for `evaluate_policy`.

        Args:
            probabilities: One number per round, the policy's probability of the label played, or one row per round,
                its probability of every label.

        Returns:
            A copy of the log with these probabilities.
        """

        def error_at(row: int, problem: str) -> InputError:
            return StreamError(self.name, f"row {row}: {problem}")

        given = np.asarray(probabilities)
        given = given[:, :, 0] if given.ndim == 3 and given.shape[2] == 1 else given
        return replace(self, policy=checked_policy(given, self.codes, self.available, self.n_classes, error_at))

    def check_not_empty(self) -> None:
        """Refuse a log without rounds, such as an empty slice."""
        if not self.n_rounds:
            raise InputError(f"{self.name}: this part of the log contains no decisions")

    def __getitem__(self, part: slice) -> "Log":
        if not isinstance(part, slice):
            raise InputError("take a part of a log with a slice, for example log[:1000]")

        def cut(values: Any) -> Any:
            return None if values is None else values[part]

        return Log(
            self.examples[part],
            self.codes[part],
            self.reward[part],
            self.propensity[part],
            cut(self.distribution),
            self.classes,
            self.name,
            cut(self.available),
            cut(self.feature_dicts),
            cut(self.policy),
        )

    def __repr__(self) -> str:
        return (
            f"Log({self.name!r}, rounds={self.n_rounds}, n_classes={self.n_classes}, n_features={self.n_features}, "
            f"mistakes={self.mistakes.sum():g})"
        )


def checked_log(log: Log, error_at: ErrorAt) -> Log:
    """Return the log if its numbers are possible; else raise the error that `error_at` makes of round and problem."""
    check_rewards(log.reward, error_at)
    propensity = checked_propensity(log.propensity, error_at)
    if log.distribution is not None:
        check_distribution(log.distribution, log.codes, propensity, log.n_classes, error_at)
    if log.available is not None:
        check_available(log.codes, log.distribution, log.available, error_at)
    return replace(log, propensity=propensity)


def encoded(dicts: Sequence[Mapping[str, Any]], error_at: ErrorAt) -> Table:
    """Encode examples by name as numbers, each by those before it."""
    encoder, records = Encoder(Features()), []
    for at, x in enumerate(dicts):
        try:
            records.append(encoder.read_row(x))
        except InputError as problem:
            raise error_at(at, str(problem)) from None
    rows = encoder.encode(records, 0, len(records), learn=True).rows
    assert isinstance(rows, Sparse)
    return csr(rows.values, rows.indices, rows.indptr, encoder.width)


def _are_dicts(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(x, Mapping) for x in X)


def _as_table(X: Any, name: str) -> Table:
    try:
        table = as_table(X)
    except (TypeError, ValueError) as error:
        raise StreamError(name, f"X must be a matrix of numbers ({error})") from None
    if table.ndim != 2 or not table.shape[1]:
        raise StreamError(name, f"X must have one row per round and at least one column; its shape is {table.shape}")
    return table


def _numbers(values: Any, word: str, name: str) -> Vector:
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise StreamError(name, f"{word} must contain numbers") from None
