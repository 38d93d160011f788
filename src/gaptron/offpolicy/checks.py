"""Checks of logged decisions. Each error names the first round that is wrong; `error_at` makes it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.data.examples import LARGEST_NORM, SMALLEST_NORM, Examples, Table, first_not_finite, norms, parts_of
from gaptron.data.values import CLOSE, MIN_PROPENSITY, ROUNDED
from gaptron.streams.raw_chunk import ErrorAt
from gaptron.types import Integers, Matrix, Vector


def as_examples(table: Table, error_at: ErrorAt) -> Examples:
    """Check the numbers of a table and compute the norm of each row, once for every later use."""
    sizes = norms(table)
    row = first_not_finite(sizes)
    if row is not None:
        raise error_at(row, "a feature is NaN or infinite: clean the data first")
    outside = (sizes > LARGEST_NORM) | ((sizes < SMALLEST_NORM) & (sizes > 0.0))
    _refuse(
        outside,
        lambda row: f"x has norm {sizes[row]:.3g}, outside {SMALLEST_NORM:g} to {LARGEST_NORM:g}: scale the features",
        error_at,
    )
    return Examples(parts_of(table), table.shape[1], sizes)


def check_rewards(reward: Vector, error_at: ErrorAt) -> None:
    """Refuse rewards outside [0, 1]."""
    _refuse(
        ~((reward >= 0.0) & (reward <= 1.0)),
        lambda row: f"reward {reward[row]:g} is not in [0, 1], where 1 is correct and 0 is wrong",
        error_at,
    )


def checked_propensity(propensity: Vector, error_at: ErrorAt) -> Vector:
    """Return the propensities, at most 1; refuse those above it or below `MIN_PROPENSITY`."""
    _refuse(
        ~((propensity >= MIN_PROPENSITY) & (propensity <= 1.0 + ROUNDED)),
        lambda row: (
            f"propensity {propensity[row]:g} is not between {MIN_PROPENSITY:g} and 1: it is the probability with which "
            "the label played was drawn"
        ),
        error_at,
    )
    result: Vector = np.minimum(propensity, 1.0)
    return result


def check_distribution(distribution: Matrix, codes: Integers, propensity: Vector, K: int, error_at: ErrorAt) -> None:
    """Refuse distributions that do not sum to 1 or contradict the propensity of the label played."""
    if distribution.shape != (len(codes), K):
        raise error_at(0, f"the distribution has shape {distribution.shape}, not {(len(codes), K)}")
    negative = ~(distribution >= 0.0).all(axis=1)
    _refuse(negative, lambda row: "the distribution contains NaN or a negative number", error_at)
    with np.errstate(over="ignore"):  # a sum that overflows is not 1 either
        wrong_sum = ~(abs(distribution.sum(axis=1) - 1.0) <= CLOSE)
    _refuse(wrong_sum, lambda row: "the distribution does not sum to 1", error_at)
    played = distribution[np.arange(len(codes)), codes]
    _refuse(
        ~(abs(played - propensity) <= CLOSE * propensity),
        lambda row: (
            f"propensity {propensity[row]:g} of the label played differs from the distribution, which has "
            f"{played[row]:g}"
        ),
        error_at,
    )


def check_available(
    codes: Integers, distribution: Matrix | None, available: NDArray[np.bool_], error_at: ErrorAt
) -> None:
    """Refuse decisions for labels that were not available, and positive probabilities of such labels."""
    unavailable = ~available[np.arange(len(codes)), codes]
    _refuse(unavailable, lambda row: "the label played was not available", error_at)
    if distribution is not None and distribution.shape == available.shape:
        positive = ((distribution > 0.0) & ~available).any(axis=1)
        _refuse(positive, lambda row: "the distribution has a positive probability of an unavailable label", error_at)


def checked_policy(
    probabilities: Any, codes: Integers, available: NDArray[np.bool_] | None, K: int, error_at: ErrorAt
) -> Matrix:
    """Return the probabilities of the caller's policy: T × K, or T × 1 if only those of the labels played are given."""
    try:
        policy = np.array(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise error_at(0, "the policy's probabilities must be numbers, equally many in every round") from None
    policy = policy[:, None] if policy.ndim == 1 else policy
    if policy.ndim != 2 or len(policy) != len(codes) or policy.shape[1] not in (1, K):
        raise error_at(
            0,
            f"the policy's probabilities have shape {policy.shape}: give one per round, that of the label played, or "
            f"{K}, that of every label",
        )
    outside = ~((policy >= 0.0) & (policy <= 1.0 + ROUNDED)).all(axis=1)
    _refuse(outside, lambda row: "a probability of the policy is not in [0, 1]", error_at)
    if policy.shape[1] == 1:
        return policy
    _refuse(
        abs(policy.sum(axis=1) - 1.0) > CLOSE,
        lambda row: f"the policy's probabilities sum to {policy[row].sum():.6g}, not to 1",
        error_at,
    )
    if available is not None:
        positive = ((policy > 0.0) & ~available).any(axis=1)
        _refuse(positive, lambda row: "the policy has a positive probability of an unavailable label", error_at)
    return policy


def _refuse(wrong: Any, problem: Callable[[int], str], error_at: ErrorAt) -> None:
    """Raise the error for the first round that is wrong."""
    if wrong.any():
        row = int(wrong.argmax())
        raise error_at(row, problem(row))
