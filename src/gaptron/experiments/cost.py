"""What a task will roughly cost, for people who wonder whether to wait. Measured once; right within a few times."""

from gaptron.experiments.shelf import Shelved
from gaptron.experiments.task import Task

ROUND, TERM = 2e-7, 1.5e-9  # seconds a round costs anyway, and for each product of a weight and a number of the row
SEARCH = 60  # passes over the stream to find the best comparator
CHAINS = ("aggregating", "hinge-lmc", "obama")  # go through their past again and again
PAST, STEPS = 10_000, 32  # rounds they keep, and looks they take at each
EXPERTS = 1000


def seconds(task: Task, shelved: Shelved) -> float:
    """Seconds of one core, without compiling."""
    terms = shelved.nonzeros * shelved.n_classes
    T = shelved.n_rounds
    if task.settings.get("matrix") == "full":
        terms *= shelved.n_features * shelved.n_classes / shelved.nonzeros
    if task.algorithm == "exp4":
        terms *= task.settings.get("experts", EXPERTS)
    if task.algorithm in CHAINS:
        terms *= STEPS * min(T, PAST) / 2
    play = T * (ROUND + TERM * terms)
    return play + (SEARCH * T * TERM * shelved.nonzeros * shelved.n_classes if task.bound else 0.0)
