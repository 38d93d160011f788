"""Advice, available labels and feedback of a caller, checked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.data.labels import Classes
from gaptron.errors import DecisionError, InputError
from gaptron.types import Flags, Matrix


def as_advice(advice: Any, rounds: int, classes: Classes) -> Matrix:
    """Check the predictions of a caller's own model: probabilities, rounds × K, or a label per round.

    Args:
        advice: the predictions.
        rounds: the number of rounds.
        classes: the labels.

    Returns:
        The predictions as probabilities that sum to 1, rounds × K.
    """
    try:
        given = np.asarray(advice)
    except ValueError as problem:
        raise InputError(f"advice is not a rectangular array: {problem}") from None
    if given.ndim == 1:
        try:
            codes = classes.codes(advice)
        except InputError as problem:
            raise InputError(f"advice, {problem}") from None
        table = np.zeros((len(codes), len(classes)))
        table[np.arange(len(codes)), codes] = 1.0
    else:
        if given.ndim != 2 or given.dtype.kind not in "biuf" or given.shape[1] != len(classes):
            raise InputError(
                f"advice must hold a label or {len(classes)} probabilities for each round, "
                f"not an array of {given.dtype} of shape {given.shape}"
            )
        table = given.astype(np.float64, order="C")  # column-major arrays are another type for the compiler
        bad = ~(np.isfinite(table).all(axis=1) & (table >= 0.0).all(axis=1))
        with np.errstate(over="ignore", invalid="ignore"):
            total = table.sum(axis=1)
        bad |= ~((total > 0.0) & np.isfinite(total))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"advice of round {at} is not a distribution over labels: {given[at].tolist()}; "
                "it must hold finite numbers of at least 0 that do not sum to 0"
            )
        table /= total[:, None]
    if len(table) != rounds:
        raise InputError(f"advice is for {len(table)} rounds, but there are {rounds}")
    return table


# --- available labels, rewards ----------------------------------------------------------------------------------


def as_available(available: Any, rounds: int, classes: Classes) -> NDArray[np.bool_]:
    """Check which labels are available in each round: rounds × K booleans, or a list of lists of labels.

    Args:
        available: the available labels.
        rounds: the number of rounds.
        classes: the labels.

    Returns:
        The flags, rounds × K.
    """
    try:
        groups: Any = available if isinstance(available, np.ndarray) and available.ndim else list(available)
    except TypeError:
        raise InputError(_AVAILABLE) from None
    if len(groups) != rounds:
        raise InputError(f"available is for {len(groups)} rounds, but there are {rounds}")
    if _are_flags(groups, 2, classes) and groups.any(axis=1).all():
        return np.array(groups, order="C")
    table = np.zeros((rounds, len(classes)), dtype=np.bool_)
    for at, labels in enumerate(groups):
        table[at] = available_labels(labels, classes, f"available of round {at}")
    return table


def _are_flags(given: Any, ndim: int, classes: Classes) -> bool:
    """Whether this is an array of K booleans, or of rows of K, which is not a list of labels."""
    return (
        isinstance(given, np.ndarray)
        and given.dtype == np.bool_
        and given.ndim == ndim
        and given.shape[-1] == len(classes)
        and not isinstance(classes.labels[0], bool)
    )


_AVAILABLE = "available must hold a list of labels for each round, or rounds × K booleans"


def available_labels(labels: Any, classes: Classes, name: str = "available") -> Flags:
    """Check which labels are available in one round: at least one label, or K booleans."""
    if _are_flags(labels, 1, classes) and labels.any():
        return np.array(labels)
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise InputError(f"{name} is {labels!r}: it must be a list of labels, or {len(classes)} booleans")
    given = [label.item() if isinstance(label, np.generic) else label for label in labels]
    flags = np.zeros(len(classes), dtype=np.bool_)
    # True is also 1 to Python: booleans are labels only where the classes are booleans.
    if given and all(isinstance(label, bool) for label in given) and not isinstance(classes.labels[0], bool):
        if len(given) != len(classes):
            raise InputError(f"{name} has {len(given)} booleans for {len(classes)} labels")
        flags[:] = given
    else:
        for label in given:
            try:
                flags[classes.code(label)] = True
            except InputError as problem:
                raise InputError(f"{name}: {problem}") from None
    if not flags.any():
        raise InputError(f"{name} is empty: at least one label must be available")
    return flags


def as_reward(reward: Any) -> float:
    """Check the reward of a label: a number from 0 to 1."""
    value = _as_number(reward)
    if value is None or not 0.0 <= value <= 1.0:
        raise InputError(f"reward={reward!r} must be a number from 0 (wrong) to 1 (correct)")
    return value


def as_correct(correct: Any) -> bool:
    """Check whether a label was correct: True or False, or 1 or 0."""
    value = _as_number(correct)
    if value not in (0.0, 1.0):
        raise DecisionError(f"correct={correct!r} must be True or False; use reward=... for values in between")
    return value == 1.0


def _as_number(given: Any) -> float | None:
    """Convert a number or a boolean; None for anything else."""
    return float(given) if isinstance(given, (bool, int, float, np.bool_, np.integer, np.floating)) else None


def as_rewards(reward: Any, rounds: int, n_classes: int) -> Matrix:
    """Check the rewards of many rounds: one number for the true label, or one for each label.

    Args:
        reward: the rewards.
        rounds: the number of rounds.
        n_classes: K.

    Returns:
        The rewards, rounds × 1 or rounds × K.
    """
    try:
        given = np.asarray(reward)
    except ValueError as problem:
        raise InputError(f"reward is not a rectangular array: {problem}") from None
    if given.dtype.kind not in "biuf" or given.shape not in ((rounds,), (rounds, 1), (rounds, n_classes)):
        each = f", or {rounds} × {n_classes} numbers, one for each label" if n_classes > 1 else ""
        raise InputError(
            f"reward must hold a number for each of {rounds} rounds{each}; "
            f"it is an array of {given.dtype} of shape {given.shape}"
        )
    rewards = given.reshape(rounds, -1).astype(np.float64)
    bad = ~((rewards >= 0.0) & (rewards <= 1.0)).all(axis=1)
    if bad.any():
        at = int(bad.argmax())
        raise InputError(f"reward of round {at} is {given[at].tolist()}: it must lie between 0 (wrong) and 1 (correct)")
    return rewards
