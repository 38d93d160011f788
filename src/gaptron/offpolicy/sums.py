"""Running sums: all that the intervals of `estimates` and `confidence_sequence` need to know about the rounds.

They take constant memory and are exact: adding rounds one by one gives the sums of the whole arrays, up to rounding.
"""

from math import floor
from typing import NamedTuple

import numpy as np

from gaptron.types import Vector

EXACT = 20  # terms of a series that are added one by one


class MistakeSums(NamedTuple):
    """Sums of mistakes in [0, 1]."""

    rounds: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, mistake: float) -> "MistakeSums":
        """Return the sums after another round."""
        return MistakeSums(self.rounds + 1, self.total + mistake, self.squares + mistake * mistake)


class TermSums(NamedTuple):
    """Sums of terms X_t ≥ 0, and of their squared distances from guesses X̂_t that know only the terms before."""

    rounds: int = 0
    total: float = 0.0
    spread: float = 0.0

    def add(self, term: float) -> "TermSums":
        """Return the sums after another term."""
        rounds = self.rounds + 1
        distance = term - min((0.5 + self.total) / rounds, 1.0)
        return TermSums(rounds, self.total + term, self.spread + distance * distance)

    def add_zeros(self, zeros: int) -> "TermSums":
        """Return the sums after so many terms 0, in constant time."""
        if zeros <= 0:
            return self
        rounds, limit, guess = self.rounds, self.rounds + zeros, 0.5 + self.total  # the guess in round t is guess/t
        capped = min(limit, max(rounds, floor(guess)))  # up to this round it is 1
        squares = guess * guess * (_tail(capped) - _tail(limit))
        return TermSums(limit, self.total, self.spread + (capped - rounds) + squares)


class WeightedSums(NamedTuple):
    """Sums of w·m and of w·(1 - m), for importance weights w and mistakes m in [0, 1]."""

    mistakes: TermSums = TermSums()
    rewards: TermSums = TermSums()

    def add(self, weight: float, mistake: float) -> "WeightedSums":
        """Return the sums after another round."""
        return WeightedSums(self.mistakes.add(weight * mistake), self.rewards.add(weight * (1.0 - mistake)))

    def add_zeros(self, zeros: int) -> "WeightedSums":
        """Return the sums after so many rounds with weight 0, in constant time."""
        return WeightedSums(self.mistakes.add_zeros(zeros), self.rewards.add_zeros(zeros)) if zeros > 0 else self

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return self.mistakes.total + self.rewards.total


def mistake_sums(mistakes: Vector) -> MistakeSums:
    """Return the sums of all rounds."""
    return MistakeSums(len(mistakes), float(mistakes.sum()), float(np.square(mistakes).sum()))


def term_sums(terms: Vector) -> TermSums:
    """Return the sums of all terms."""
    guesses = (0.5 + np.concatenate([[0.0], np.cumsum(terms[:-1])])) / np.arange(1, len(terms) + 1)
    return TermSums(len(terms), float(terms.sum()), float(np.square(terms - np.minimum(guesses, 1.0)).sum()))


def weighted_sums(weights: Vector, mistakes: Vector) -> WeightedSums:
    """Return the sums of all rounds."""
    return WeightedSums(term_sums(weights * mistakes), term_sums(weights * (1.0 - mistakes)))


def _tail(n: int) -> float:
    """Σ 1/t² over all t > n, by the Euler-Maclaurin series; the relative error is below 1e-11."""
    tail = 0.0
    while n < EXACT:
        n += 1
        tail += 1.0 / (n * n)
    r = 1.0 / n
    return tail + r * (1.0 + r * (-1.0 / 2.0 + r * (1.0 / 6.0 + r * r * (-1.0 / 30.0 + r * r / 42.0))))
