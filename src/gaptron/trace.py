"""What a run leaves behind: every round's label, and sums over them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.types import Count, Flags, Integers, Matrix, Vector
from gaptron.validation import Classes, Labels


class Curve(NamedTuple):
    """Sums up to log-spaced rounds."""

    rounds: Integers
    mistakes: Integers
    expected_mistakes: Vector
    top_mistakes: Integers


@dataclass(frozen=True, eq=False)
class Trace:
    """Rounds in the order played. `first + second` is the trace of both."""

    classes: Classes
    codes: Integers  # label played
    top: Integers  # label of the largest score
    truth: Integers
    truth_probability: Vector  # p(y): what the draw gave the true label; the mean earned, where each label has a worth
    note_names: tuple[str, ...]
    notes: Matrix  # the algorithm's notes, a row a round
    worth: Matrix  # what the right label is worth, T × 1, or what each label would earn, T × K; T × 0: right is 1
    _run: tuple[Integers, Vector] | None = None  # codes and probabilities as played, if the rounds are in another order

    @classmethod
    def of(cls, classes: Classes, truth: Integers, note_names: tuple[str, ...], worth: Matrix) -> "Trace":
        """Room for the rounds of these true labels, to be filled."""
        T = len(truth)
        codes, top = np.empty(T, dtype=np.int64), np.empty(T, dtype=np.int64)
        return cls(classes, codes, top, truth, np.empty(T), note_names, np.empty((T, len(note_names))), worth)

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return len(self.codes)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels played, in the caller's own words."""
        return self.classes.decode(self.codes)

    @property
    def wrong(self) -> Flags:
        """Which rounds were mistakes: the label was not the true one or, where each has a worth, earned nothing."""
        return self._misses(self.codes)

    def _misses(self, codes: Integers) -> Flags:
        if self.worth.shape[1] > 1:
            return np.equal(self.worth[np.arange(self.rounds), codes], 0.0)
        return np.not_equal(codes, self.truth)

    @property
    def reward(self) -> Vector:
        """What the label played earned in each round: 1 if it was right and 0 if not, or what rewards were given."""
        if self.worth.shape[1] > 1:
            return self.worth[np.arange(self.rounds), self.codes]
        hit = np.where(self.wrong, 0.0, 1.0)
        return hit * self.worth[:, 0] if self.worth.shape[1] else hit

    @property
    def mistakes(self) -> int:
        """How many labels played were wrong."""
        return int(np.count_nonzero(self.wrong))

    @property
    def expected_mistakes(self) -> float:
        """Σ(1 - p_t(y_t)): exact in full information, an unbiased estimate under bandit feedback."""
        return float(np.sum(1.0 - self.truth_probability))

    @property
    def variance(self) -> float:
        """Σ p_t(y_t)(1 - p_t(y_t)): how much luck the draws had to hand out."""
        return float(np.sum(self.truth_probability * (1.0 - self.truth_probability)))

    @property
    def top_mistakes(self) -> int:
        """How many mistakes the top label would have made, on the rounds as they were played."""
        return int(np.count_nonzero(self._misses(self.top)))

    def count_against(self, labels: Labels, *, several_right: bool = False) -> Count:
        """The run beside a rule that would have played these labels, one a round: a count, no probability.

        Only the answers are used, whether our own labels were right. The rule may be anything, also one that was made
        afterwards and knows the truth. `several_right`: more than one label may be right in a round; then a round in
        which we were right says nothing about a rule that would have played another label.
        """
        if self.worth.shape[1] > 1 and not several_right:
            several = np.count_nonzero(self.worth > 0.0, axis=1) > 1
            if several.any():
                raise InputError(
                    f"several labels earn something in round {int(several.argmax()) + 1}: give several_right=True"
                )
        return count(self.classes, self.codes, ~self.wrong, labels, several_right)

    def note(self, name: str) -> Vector:
        """One of the algorithm's notes, a number a round."""
        if name not in self.note_names:
            raise InputError(f"no note {name!r}; this algorithm notes: {', '.join(self.note_names) or 'nothing'}")
        return self.notes[:, self.note_names.index(name)]

    @property
    def curve(self) -> Curve:
        """Mistakes so far, at ten log-spaced rounds a decade and the last."""
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
        """Labels played and the chances of the true ones, in the order of the run: they tell one run from another."""
        return (self.codes, self.truth_probability) if self._run is None else self._run

    def in_order(self, places: Integers) -> "Trace":
        """The same rounds in another order: first the one at places[0], and so on."""
        return Trace(
            self.classes,
            self.codes[places],
            self.top[places],
            self.truth[places],
            self.truth_probability[places],
            self.note_names,
            self.notes[places],
            self.worth[places],
            self.as_played,
        )

    def first(self, rounds: int) -> "Trace":
        """The trace of the first rounds alone."""
        return Trace(
            self.classes,
            self.codes[:rounds],
            self.top[:rounds],
            self.truth[:rounds],
            self.truth_probability[:rounds],
            self.note_names,
            self.notes[:rounds],
            self.worth[:rounds],
        )

    def __add__(self, other: "Trace") -> "Trace":
        if self.classes.labels != other.classes.labels or self.note_names != other.note_names:
            raise InputError("these traces are of different learners")
        if self.worth.shape[1] != other.worth.shape[1]:
            raise InputError("these traces count rewards in different ways")
        join = np.concatenate
        return Trace(
            self.classes,
            join([self.codes, other.codes]),
            join([self.top, other.top]),
            join([self.truth, other.truth]),
            join([self.truth_probability, other.truth_probability]),
            self.note_names,
            join([self.notes, other.notes]),
            join([self.worth, other.worth]),
        )

    def __repr__(self) -> str:
        return (
            f"Trace(rounds={self.rounds}, mistakes={self.mistakes}, "
            f"expected_mistakes={self.expected_mistakes:.1f}, top_mistakes={self.top_mistakes})"
        )


def count(classes: Classes, played: Integers, right: Flags, labels: Labels, several_right: bool) -> Count:
    """Labels that were played and their answers, beside those of a given rule."""
    others = classes.codes(labels)
    if len(others) != len(played):
        raise InputError(f"there are {len(played)} rounds, but the rule has {len(others)} labels")
    apart = others != played
    alone_wrong, alone_right, both_wrong = (
        int(np.count_nonzero(part)) for part in (~right & apart, right & apart, ~right & ~apart)
    )
    return Count(len(played), alone_wrong, alone_right, both_wrong, several_right)


def checkpoints(rounds: int) -> Integers:
    """1, 2, ... and then ten a decade, up to and with the last round."""
    if rounds == 0:
        return np.zeros(0, dtype=np.int64)
    marks = np.unique(np.round(10 ** np.arange(0, np.log10(rounds) + 0.05, 0.1)).astype(np.int64))
    return np.append(marks[marks < rounds], rounds)


@dataclass
class Tally:
    """Sums over traces, in memory that does not grow with the rounds."""

    rounds: int = 0
    mistakes: int = 0
    expected_mistakes: float = 0.0
    top_mistakes: int = 0
    reward: float = 0.0
    variance: float = 0.0
    explored: int = 0  # rounds whose label was not the top one

    def add(self, trace: Trace) -> None:
        """Count a trace's rounds too."""
        self.rounds += trace.rounds
        self.mistakes += trace.mistakes
        self.expected_mistakes += trace.expected_mistakes
        self.top_mistakes += trace.top_mistakes
        self.reward += float(trace.reward.sum())
        self.variance += trace.variance
        self.explored += int(np.count_nonzero(trace.codes != trace.top))
