"""Rank tests over streams: Friedman, Nemenyi, and Wilcoxon with Holm's correction.

Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006, sections 3.1.3 and 3.2.
A table has one row per stream and one column per algorithm; smaller is better; ties share their ranks.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from gaptron.types import Matrix, Vector

ALPHA = 0.05
MIN_STREAMS = 6  # with five streams, five wins of five are not significant at 5 % (two-sided): 2/2⁵ = 0.0625


class Ranks(NamedTuple):
    """Average ranks, and the tests of whether they differ."""

    average: Vector  # of each column; 1 is best
    streams: int
    p: float | None  # Friedman's test that all are equal; None: too few streams or columns
    critical: float | None  # Nemenyi: average ranks that differ by more are significantly different
    versus_best: Vector | None  # Holm-adjusted Wilcoxon p-values against the best column; NaN for itself

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Maximal groups of columns within the critical difference, as first and last position in the order of rank."""
        if self.critical is None:
            return []
        ordered = np.sort(self.average)
        groups: list[tuple[int, int]] = []
        for first in range(len(ordered)):
            last = int(np.searchsorted(ordered, ordered[first] + self.critical, side="right")) - 1
            if last > first and (not groups or last > groups[-1][1]):
                groups.append((first, last))
        return groups


def ranks(table: Matrix) -> Ranks:
    """Compute average ranks, and the tests if there are enough streams."""
    n, k = table.shape
    ranked = np.apply_along_axis(stats.rankdata, 1, table) if n else np.zeros((0, k))
    average = ranked.mean(axis=0) if n else np.full(k, math.nan)
    if n < MIN_STREAMS or k < 2:
        return Ranks(average, n, None, None, None)
    return Ranks(average, n, friedman(ranked), nemenyi(k, n), _versus(table, int(np.argmin(average))))


def friedman(ranked: Matrix) -> float:
    """Return the p-value of Iman and Davenport's F, the less conservative form of Friedman's test."""
    n, k = ranked.shape
    square = float(((ranked.mean(axis=0) - (k + 1) / 2) ** 2).sum()) * n * n * (k - 1)
    within = float(((ranked - (k + 1) / 2) ** 2).sum())
    if within == 0.0:
        return 1.0  # all columns tie on every stream
    chi = square / within
    if chi >= n * (k - 1):
        return 0.0  # the order is the same on every stream
    return float(stats.f.sf((n - 1) * chi / (n * (k - 1) - chi), k - 1, (k - 1) * (n - 1)))


def nemenyi(k: int, n: int) -> float:
    """Return the critical difference of the average ranks of k algorithms on n streams, at 5 %."""
    q = float(stats.studentized_range.ppf(1 - ALPHA, k, math.inf)) / math.sqrt(2)
    return q * math.sqrt(k * (k + 1) / (6 * n))


def holm(p: Sequence[float]) -> Vector:
    """Adjust p-values for multiple tests: the smallest times their number, the next times one less, made monotone."""
    raw = np.asarray(p, dtype=float)
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1))
    adjusted = np.empty(len(raw))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _versus(table: Matrix, best: int) -> Vector:
    others = [column for column in range(table.shape[1]) if column != best]
    adjusted = np.full(table.shape[1], math.nan)
    adjusted[others] = holm([_wilcoxon(table[:, column] - table[:, best]) for column in others])
    return adjusted


def _wilcoxon(differences: Vector) -> float:
    """Return the two-sided p-value; ties are split evenly between the signs."""
    if not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences, zero_method="zsplit", method="auto").pvalue)
