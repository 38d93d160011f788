"""Growth: a state that makes room for labels or features nobody knew of when it was made.

One of the two grows at a time. `init` makes the state of the larger problem, and what was learned is written over it:
an axis whose length has changed counts what has grown, alone (K) or with the other (label k's feature i is number
k·d + i, or i·K + k). So new weights are zero, new variances and step sizes are those of the first round, and sums over
all rounds stay as they are. What differs from that an algorithm says on its card (`Growth`) or does in its `grown`.

    features    as if the learner had been as wide from the start, where the new columns were zero
    labels      scores of the known labels stay, new labels have weight zero; settings are those for the new K, and no
                theorem speaks of the run any more
"""

from typing import Any

import numpy as np

from gaptron.algorithm import Algorithm, HasGrown
from gaptron.errors import InputError, SettingError
from gaptron.types import Growth, Integers, Problem
from gaptron.validation import Classes


def new_places_of_labels(
    name: str, file: Algorithm, problem: Problem, known: Classes, wanted: Classes
) -> Integers | None:
    """Where each known label stands among those wanted, which hold new ones too; None if none is new."""
    gone = [label for label in known.labels if label not in wanted.labels]
    if gone:
        raise InputError(f"a learner only gains labels, but {gone[0]!r} is not among the new ones")
    if len(wanted) == len(known):
        if wanted.labels != known.labels:
            raise InputError("no label is new: grow adds labels and does not put known ones in another order")
        return None
    if problem.graph is not None:
        raise SettingError("the feedback graph is for the labels it was given with: no more can be added")
    most = file.CARD.most_classes
    if most is not None and len(wanted) > most:
        raise SettingError(f"{name} is for at most {most} classes, not {len(wanted)}")
    return np.array([wanted.code(label) for label in known.labels])


def check_can_grow(name: str, file: Algorithm, *, labels: bool) -> None:
    """Refuse for an algorithm whose state is for just these labels and features."""
    if not file.CARD.growth.possible:
        what = "labels: give classes=[...]" if labels else "features: give n_features=..."
        raise SettingError(f"{name} cannot grow, and has met new {what} with all of them before the first round")


def grow(
    file: Algorithm, settings: Any, old: Any, new: Any, places: Integers, room: int, *, labels: bool, sparse: bool
) -> None:
    """Write what `old` had learned over `new`, a state fresh from `init`.

    `places` says where each old label (or feature) stands among the `room` new ones.
    """
    growth = file.CARD.growth
    move(growth, old, new, places, room, labels=labels, sparse=sparse)
    if labels:
        for name in growth.centred:
            W, was = getattr(new, name), getattr(old, name)
            W, was = (W.T, was.T) if sparse else (W, was)
            W[np.setdiff1d(np.arange(room), places)] = was.mean(axis=0)
    if isinstance(file, HasGrown):
        file.grown(settings, old, new, places, labels, sparse)


def move(growth: Growth, old: Any, new: Any, places: Integers, room: int, *, labels: bool, sparse: bool) -> None:
    """Every number to its new place."""
    # Does what has grown count the slower of two joint indices?
    slower = growth.joint != "blocks" and labels != (sparse and growth.joint == "rows")
    for name, was, now in zip(old._fields, old, new):
        if name not in growth.by_hand:
            axes = [_new_places(n, m, places, room, slower) for n, m in zip(was.shape, now.shape)]
            now[np.ix_(*axes)] = was


def _new_places(before: int, after: int, places: Integers, room: int, slower: bool) -> Integers:
    """Where the numbers of one axis stand after growth."""
    if before == after:
        return np.arange(before)
    others = np.arange(before // len(places))
    if slower:
        return np.add.outer(places * len(others), others).ravel()
    return np.add.outer(others * room, places).ravel()
