"""Growth: a state that makes room for labels or features nobody knew of when it was made.

One of the two grows at a time. `init` makes the state of the larger problem, and what was learned is written over it:
an axis whose length has changed counts what has grown, alone (K) or with the other (label k's feature i is number
k·d + i, or i·K + k). So new weights are zero, new variances and step sizes are those of the first round, and sums over
all rounds stay as they are.

    features    as if the learner had been as wide from the start, where the new columns were zero
    labels      scores of the known labels stay, new labels have weight zero; settings are those for the new K, and no
                theorem speaks of the run any more
"""

from typing import Any

import numpy as np

from gaptron.errors import SettingError
from gaptron.types import Integers

# Whose first weights are sums less their mean over labels: the sum of a label of weight zero is the mean of the others.
CENTRED = frozenset({"advised-gaptron", "frugal-gaptron"})
# Their state is a crowd of rules for just these labels and features, with losses or draws of its own.
MIXTURES = frozenset({"aggregating", "exp4", "hinge-lmc", "obama"})
WORK = frozenset({"r", "b", "c"})  # written over before they are read
# Made from K and not learned; or brought over by hand.
AFRESH = {
    "advised-gaptron": {"squares", "work", "w", "g"},
    "frugal-gaptron": {"total"},
    "gappletron": {"shows", "wide", "cover"},
    "laplace": {"points"},
}
BLOCKS = frozenset({"advised-gaptron"})  # whose weights are those of several learners, one after the other
BY_ROWS = frozenset({"laplace", "newtron", "ons"})  # whose vectors over all weights lie as the weights lie


def grown(algorithm: str, old: Any, new: Any, places: Integers, room: int, *, labels: bool, sparse: bool) -> Any:
    """`new`, a state fresh from `init`, holding what `old` had learned.

    `places` says where each old label (or feature) stands among the `room` new ones.
    """
    if algorithm in MIXTURES:
        what = "labels: give classes=[...]" if labels else "features: give n_features=..."
        raise SettingError(f"{algorithm} cannot grow, and has met new {what} with all of them before the first round")
    outer = algorithm not in BLOCKS and labels != (
        sparse and algorithm in BY_ROWS
    )  # does what has grown count the slower of two joint indices?
    for name, was, now in zip(old._fields, old, new):
        if name not in WORK and name not in AFRESH.get(algorithm, ()):
            spots = [_spots(n, m, places, room, outer) for n, m in zip(was.shape, now.shape)]
            now[np.ix_(*spots)] = was
    if algorithm == "frugal-gaptron":
        square, level, step, last = old.total
        new.total[:] = square, level, min(step, new.total[2]), last  # no step is larger than the first, or than before
    if labels and algorithm in CENTRED:
        W, was = (new.W.T, old.W.T) if sparse else (new.W, old.W)
        W[np.setdiff1d(np.arange(room), places)] = was[: len(places)].mean(axis=0)
    return new


def _spots(before: int, after: int, places: Integers, room: int, outer: bool) -> Integers:
    """Where the numbers of one axis stand after growth."""
    if before == after:
        return np.arange(before)
    others = np.arange(before // len(places))
    return np.add.outer(places * len(others), others).ravel() if outer else np.add.outer(others * room, places).ravel()
