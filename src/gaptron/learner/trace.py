"""Trace: the label played in every round of a run, and sums over the rounds."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.data.labels import Classes, Labels
from gaptron.errors import InputError
from gaptron.types import Count, Flags, Integers, Matrix, Vector


class Curve(NamedTuple):
    """Sums up to and including log-spaced rounds."""

    rounds: Integers
    mistakes: Integers
    expected_mistakes: Vector
    top_mistakes: Integers


@dataclass(frozen=True, eq=False)
class Trace:
    """The rounds of a run, in the order played. `first + second` is the trace of both."""

    classes: Classes
    codes: Integers  # label played
    top: Integers  # label of the largest score
    truth: Integers
    truth_probability: Vector  # p(y), the propensity of the true label; the mean reward, where each label has a reward
    note_names: tuple[str, ...]
    notes: Matrix  # the algorithm's notes, one row per round
    rewards: Matrix  # of the true label, T × 1, or of each label, T × K; T × 0: 1 for the true label, 0 for the others
    _run: tuple[Integers, Vector] | None = None  # codes and probabilities in the order played, if it is another

    @classmethod
    def of(cls, classes: Classes, truth: Integers, note_names: tuple[str, ...], rewards: Matrix) -> "Trace":
        """Allocate a trace for the rounds of these true labels, to be filled.

        Args:
            classes: the labels.
            truth: the codes of the true labels.
            note_names: the names of the algorithm's notes.
            rewards: rewards, as in the field.

        Returns:
            The trace, with arrays that are not initialised.
        """
        T = len(truth)
        codes, top = np.empty(T, dtype=np.int64), np.empty(T, dtype=np.int64)
        return cls(classes, codes, top, truth, np.empty(T), note_names, np.empty((T, len(note_names))), rewards)

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.codes)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels played."""
        return self.classes.decode(self.codes)

    @property
    def wrong(self) -> Flags:
        """Which rounds were mistakes: the label was not the true one or, where each has a reward, its reward is 0."""
        return self._misses(self.codes)

    def _misses(self, codes: Integers) -> Flags:
        if self.rewards.shape[1] > 1:
            return np.equal(self.rewards[np.arange(self.rounds), codes], 0.0)
        return np.not_equal(codes, self.truth)

    @property
    def reward(self) -> Vector:
        """The reward of the label played in each round: the one given, otherwise 1 if it was correct and 0 if not."""
        if self.rewards.shape[1] > 1:
            return self.rewards[np.arange(self.rounds), self.codes]
        hit = np.where(self.wrong, 0.0, 1.0)
        return hit * self.rewards[:, 0] if self.rewards.shape[1] else hit

    @property
    def mistakes(self) -> int:
        """The number of mistakes."""
        return int(np.count_nonzero(self.wrong))

    @property
    def expected_mistakes(self) -> float:
        """Σ(1 - p_t(y_t)): exact with full information, an unbiased estimate under bandit feedback."""
        return float(np.sum(1.0 - self.truth_probability))

    @property
    def variance(self) -> float:
        """Σ p_t(y_t)(1 - p_t(y_t)): the variance of the mistakes over the draws."""
        return float(np.sum(self.truth_probability * (1.0 - self.truth_probability)))

    @property
    def top_mistakes(self) -> int:
        """The number of mistakes of the labels with the largest scores, on the rounds as they were played."""
        return int(np.count_nonzero(self._misses(self.top)))

    def count_against(self, labels: Labels, *, several_right: bool = False) -> Count:
        """Compare the run with a rule that would have played these labels: counts, not probabilities.

        Only the feedback is used: whether the labels played were correct. The rule may be anything, also one that was
        made afterwards and knows the true labels.

        Args:
            labels: the rule's label for each round.
            several_right: more than one label may be correct in a round. A round in which the label played was correct
                then says nothing about another label.

        Returns:
            How often one of them, or both, must have been wrong.

        Raises:
            InputError: there is not one label per round, or several labels have a reward in a round.
        """
        if self.rewards.shape[1] > 1 and not several_right:
            several = np.count_nonzero(self.rewards > 0.0, axis=1) > 1
            if several.any():
                raise InputError(
                    f"several labels have a reward in round {int(several.argmax()) + 1}: give several_right=True"
                )
        return count(self.classes, self.codes, ~self.wrong, labels, several_right)

    def note(self, name: str) -> Vector:
        """Return one of the algorithm's notes.

        Args:
            name: one of `note_names`.

        Returns:
            A number per round.

        Raises:
            InputError: the algorithm does not have this note.
        """
        if name not in self.note_names:
            raise InputError(f"there is no note {name!r}; this algorithm has: {', '.join(self.note_names) or 'none'}")
        return self.notes[:, self.note_names.index(name)]

    @property
    def curve(self) -> Curve:
        """Mistakes up to ten log-spaced rounds per decade, and up to the last round."""
        marks = checkpoints(self.rounds)
        at = marks - 1
        return Curve(
            marks,
            np.cumsum(self.wrong, dtype=np.int64)[at],
            np.cumsum(1.0 - self.truth_probability)[at],
            np.cumsum(self._misses(self.top), dtype=np.int64)[at],
        )

    @property
    def as_played(self) -> tuple[Integers, Vector]:
        """Labels played and probabilities of the true ones, in the order of the run, which identify it."""
        return (self.codes, self.truth_probability) if self._run is None else self._run

    def in_order(self, places: Integers) -> "Trace":
        """Return the same rounds in another order.

        Args:
            places: the index of the first round, of the second, and so on.

        Returns:
            The trace in this order.
        """
        return Trace(
            self.classes,
            self.codes[places],
            self.top[places],
            self.truth[places],
            self.truth_probability[places],
            self.note_names,
            self.notes[places],
            self.rewards[places],
            self.as_played,
        )

    def first(self, rounds: int) -> "Trace":
        """Return the trace of the first rounds.

        Args:
            rounds: how many.

        Returns:
            Their trace.
        """
        return Trace(
            self.classes,
            self.codes[:rounds],
            self.top[:rounds],
            self.truth[:rounds],
            self.truth_probability[:rounds],
            self.note_names,
            self.notes[:rounds],
            self.rewards[:rounds],
        )

    def __add__(self, other: "Trace") -> "Trace":
        if self.classes.labels != other.classes.labels or self.note_names != other.note_names:
            raise InputError("these traces are of learners with different labels or algorithms")
        if self.rewards.shape[1] != other.rewards.shape[1]:
            raise InputError("these traces have rewards of different kinds")
        join = np.concatenate
        return Trace(
            self.classes,
            join([self.codes, other.codes]),
            join([self.top, other.top]),
            join([self.truth, other.truth]),
            join([self.truth_probability, other.truth_probability]),
            self.note_names,
            join([self.notes, other.notes]),
            join([self.rewards, other.rewards]),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(rounds={self.rounds}, mistakes={self.mistakes}, "
            f"expected_mistakes={self.expected_mistakes:.1f}, top_mistakes={self.top_mistakes})"
        )


def count(classes: Classes, played: Integers, right: Flags, labels: Labels, several_right: bool) -> Count:
    """Compare labels that were played, and whether they were right, with those of a rule."""
    others = classes.codes(labels)
    if len(others) != len(played):
        raise InputError(f"there are {len(played)} rounds, but the rule has {len(others)} labels")
    apart = others != played
    alone_wrong, alone_right, both_wrong = (
        int(np.count_nonzero(part)) for part in (~right & apart, right & apart, ~right & ~apart)
    )
    return Count(len(played), alone_wrong, alone_right, both_wrong, several_right)


def checkpoints(rounds: int) -> Integers:
    """1, 2, ..., then ten rounds per decade, and the last round."""
    if rounds == 0:
        return np.zeros(0, dtype=np.int64)
    marks = np.unique(np.round(10 ** np.arange(0, np.log10(rounds) + 0.05, 0.1)).astype(np.int64))
    return np.append(marks[marks < rounds], rounds)


@dataclass
class Tally:
    """Sums over traces, in memory that does not grow with the number of rounds."""

    rounds: int = 0
    mistakes: int = 0
    expected_mistakes: float = 0.0
    top_mistakes: int = 0
    reward: float = 0.0
    variance: float = 0.0
    explored: int = 0  # rounds whose label was not the top one

    def add(self, trace: Trace) -> None:
        """Add the rounds of a trace.

        Args:
            trace: the trace.
        """
        self.rounds += trace.rounds
        self.mistakes += trace.mistakes
        self.expected_mistakes += trace.expected_mistakes
        self.top_mistakes += trace.top_mistakes
        self.reward += float(trace.reward.sum())
        self.variance += trace.variance
        self.explored += int(np.count_nonzero(trace.codes != trace.top))
