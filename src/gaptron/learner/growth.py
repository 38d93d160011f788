"""Growth: copy a state into one with more labels or more features.

One of the two grows at a time. `init` makes the state of the larger problem, and what was learned is copied into it: an
axis whose length has changed is indexed by what has grown, alone (K) or jointly (label k's feature i has index k·d + i,
or i·K + k). New weights are zero, new variances and step sizes are those of the first round, and sums over all rounds
are copied. An algorithm declares exceptions on its card (`Growth`) or handles them in its `grown`.

    features    as if the learner had had all features from the start, with zeros in the new columns
    labels      scores of the known labels are unchanged and new labels have weight zero; settings are those for the new
                K, and no theorem covers the run any more
"""

from typing import Any

import numpy as np

from gaptron.algorithms.protocol import AnyAlgorithm, HasGrown
from gaptron.data.labels import Classes
from gaptron.errors import InputError, SettingError
from gaptron.types import Growth, Integers, Problem


def new_places_of_labels(
    name: str, algorithm: AnyAlgorithm, problem: Problem, known: Classes, wanted: Classes
) -> Integers | None:
    """The index of each known label among the wanted ones; None if no label is new."""
    gone = [label for label in known.labels if label not in wanted.labels]
    if gone:
        raise InputError(
            f"labels can only be added, but {gone[0]!r} is missing: give all known labels and the new ones"
        )
    if len(wanted) == len(known):
        if wanted.labels != known.labels:
            raise InputError("no label is new: grow adds labels and does not reorder known ones")
        return None
    if problem.graph is not None:
        raise SettingError("labels cannot be added with a feedback graph, which is for the labels it was given with")
    most = algorithm.CARD.most_classes
    if most is not None and len(wanted) > most:
        raise SettingError(f"{name} is for at most {most} classes, not {len(wanted)}")
    return np.array([wanted.code(label) for label in known.labels])


def check_can_grow(name: str, algorithm: AnyAlgorithm, *, labels: bool) -> None:
    """Raise `SettingError` for an algorithm whose state cannot grow."""
    if not algorithm.CARD.growth.possible:
        what, remedy = ("labels", "classes=[...]") if labels else ("features", "n_features=...")
        raise SettingError(f"{name} cannot grow and there are new {what}: give all in {remedy} before the first round")


def grow(
    algorithm: AnyAlgorithm,
    settings: Any,
    old: Any,
    new: Any,
    places: Integers,
    size: int,
    *,
    labels: bool,
    sparse: bool,
) -> None:
    """Copy `old` into `new`, a state made by `init`.

    `places` has the index of each old label (or feature) among the `size` new ones.
    """
    growth = algorithm.CARD.growth
    move(growth, old, new, places, size, labels=labels, sparse=sparse)
    if labels:
        for name in growth.centred:
            after, before = getattr(new, name), getattr(old, name)
            after, before = (after.T, before.T) if sparse else (after, before)
            after[np.setdiff1d(np.arange(size), places)] = before.mean(axis=0)
    if isinstance(algorithm, HasGrown):
        algorithm.grown(settings, old, new, places, labels, sparse)


def move(growth: Growth, old: Any, new: Any, places: Integers, size: int, *, labels: bool, sparse: bool) -> None:
    """Copy every number to its new place."""
    # Has the slower of two joint indices grown?
    slower = growth.joint != "blocks" and labels != (sparse and growth.joint == "rows")
    for name, was, now in zip(old._fields, old, new):
        if name not in growth.by_hand:
            axes = [_new_places(n, m, places, size, slower) for n, m in zip(was.shape, now.shape)]
            now[np.ix_(*axes)] = was


def reset(growth: Growth, state: Any, fresh: Any, wider: Any, features: Integers, size: int, *, sparse: bool) -> None:
    """Set some features of a state back to the first round.

    Args:
        growth: of the algorithm.
        state: the state.
        fresh: a state of the same shape, made by `init`.
        wider: the same with one feature more, which shows the axes that features have.
        features: the features.
        size: how many there are.
        sparse: the layout of the state.
    """
    slower = growth.joint != "blocks" and sparse and growth.joint == "rows"
    for was, now, more in zip(state, fresh, wider):
        for axis, (n, m) in enumerate(zip(was.shape, more.shape)):
            if n != m:
                at = (slice(None),) * axis + (_joint_places(features, n // size, size, slower),)
                was[at] = now[at]


def _new_places(before: int, after: int, places: Integers, size: int, slower: bool) -> Integers:
    """The new index of each number on one axis."""
    if before == after:
        return np.arange(before)
    return _joint_places(places, before // len(places), size, slower)


def _joint_places(places: Integers, count: int, size: int, slower: bool) -> Integers:
    """The indices on an axis that these places, of `size`, and all of `count` others index together."""
    others = np.arange(count)
    if slower:
        return np.add.outer(places * count, others).ravel()
    return np.add.outer(others * size, places).ravel()
