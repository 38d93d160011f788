"""Forged model files: the numbers of a saved learner set to others, under a right checksum, then loaded and used.

A forgery must be refused with a `ModelFileError`, or give a learner that plays without touching memory that is not its
own. To see silent overruns run it without the compiler, where Python checks every index:

    NUMBA_DISABLE_JIT=1 python benchmarks/fuzz/forgeries.py [--forgeries 100000] [--seed 0]

Prints how many were tried, refused and played; any other exception, and any crash, ends it.
"""

import argparse
import copy
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from gaptron import Learner, ModelFileError, model_file
from gaptron.algorithms import NAMES, load
from gaptron.errors import GaptronError
from gaptron.types import Feedback

INTEGERS = (-1, 0, 1, 5, 5000, 2**31, 2**53, 2**63 - 1, -(2**63))
FLOATS = (-1.0, 0.0, -0.0, 0.5, 1.0, 1e300, -1e300, 1e-300, float("nan"), float("inf"), -float("inf"))
WORDS = ("", "gaptron", "full", "bandit", "\0", "9" * 40)
K, D, ROUNDS = 3, 4, 30
X = np.random.default_rng(0).normal(size=(ROUNDS, D)) / 2.0
Y = np.random.default_rng(1).integers(0, K, ROUNDS)


def learners() -> Iterator[tuple[str, Any]]:
    """A learner of every algorithm, feedback and layout, taught a little, with decisions in flight."""
    for name in NAMES:
        card = load(name).CARD
        kinds = {"": {}, **{word: dict(variant.settings) for word, variant in card.variants.items()}}
        if name == "frugal-gaptron":
            kinds["delay"] = {"delay": 2}
        for word, settings in kinds.items():
            for feedback in card.feedback:
                for sparse in (False, True):
                    rows = sp.csr_matrix(X) if sparse else X
                    labels = Y % 2 if card.most_classes == 2 else Y
                    given = {"norm": 8.0, "radius": 1.0, "horizon": 500, **settings}
                    shown = "label-efficient" if feedback is Feedback.GRAPH else feedback.word
                    try:
                        learner = Learner(
                            name, n_classes=card.most_classes or K, feedback=shown, seed=0, **small(name), **given
                        )
                        learner.play(rows[:20], labels[:20])
                    except GaptronError:
                        continue  # a variant that is for another feedback
                    waiting = [learner.decide(rows[t]) for t in (20, 21)]
                    yield f"{name} {word} {shown} {'sparse' if sparse else 'dense'}", (learner, waiting, rows, labels)


def small(name: str) -> dict[str, Any]:
    """Settings that keep the slow ones small."""
    return {
        "aggregating": {"chains": 2, "steps": 1, "memory": 8},
        "hinge-lmc": {"chains": 2, "steps": 1, "memory": 8},
        "obama": {"chains": 2, "steps": 1, "memory": 8},
        "exp4": {"experts": 5},
    }.get(name, {})


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a tree; of long arrays a few."""
    if isinstance(tree, dict):
        for word, part in tree.items():
            yield from places(part, (*path, word))
    elif isinstance(tree, (list, tuple)):
        for i, part in enumerate(tree):
            yield from places(part, (*path, i))
    elif isinstance(tree, np.ndarray) and tree.size:
        yield from ((*path, np.unravel_index(i, tree.shape)) for i in {0, tree.size // 2, tree.size - 1})
        yield path
    else:
        yield path


def forged(tree: Any, path: tuple[Any, ...], rng: np.random.Generator) -> Any:
    """A copy of the tree with another value there."""
    tree = copy.deepcopy(tree)
    holder = tree
    for step in path[:-1]:
        holder = holder[step]
    at, value = path[-1], holder[path[-1]]
    if isinstance(holder, np.ndarray):
        pool = FLOATS if holder.dtype.kind == "f" else INTEGERS if holder.dtype.kind == "i" else (0, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            holder[at] = np.array(pool[rng.integers(len(pool))]).astype(holder.dtype)
        return tree
    if isinstance(value, np.ndarray):
        choices = [value[:-1], value[..., :0], value.astype(np.float32), np.zeros((1, 1)), value.reshape(-1), None, 0]
    elif isinstance(value, bool) or value is None:
        choices = [True, False, None, 0, 1.0, "yes", [1], {}]
    elif isinstance(value, int):
        choices = [*INTEGERS, value + 1, value - 1, float(value), str(value), None, True]
    elif isinstance(value, float):
        choices = [*FLOATS, value * 2, int(value) if np.isfinite(value) else 0, None]
    elif isinstance(value, str):
        choices = [*WORDS, *NAMES, None, 3]
    else:
        choices = [None, 0, [], {}]
    holder[at] = choices[rng.integers(len(choices))]
    return tree


def use(path: Path, rows: Any, labels: Any) -> str:
    """Load a file and use what it holds as its owner would."""
    try:
        learner = Learner.load(path)
    except ModelFileError:
        return "refused"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers = np.asarray(labels)
            for decision in learner.pending.values():
                if learner.problem.feedback is Feedback.FULL:
                    learner.learn(decision, label=learner.classes[0])
                elif learner.problem.feedback is Feedback.BANDIT:
                    learner.learn(decision, correct=bool(decision.round % 2))
                else:
                    learner.learn(decision)
            learner.predict(rows)
            learner.distribution(rows)
            learner.play(rows[22:], answers[22:])
            _ = learner.weights, learner.advice
    except GaptronError:
        return "refused later"
    except (ArithmeticError, ValueError):  # interpreted, a root of a negative number; compiled, it would be NaN
        return "makes no sense"
    return "played"


def run(forgeries: int, seed: int, each: int | None = None, without: tuple[str, ...] = ()) -> Counter[str]:
    """Forge that many files, spread evenly over all learners but those of the algorithms left out."""
    rng, counts = np.random.default_rng(seed), Counter[str]()
    everyone = [(name, made) for name, made in learners() if made[0].algorithm not in without]
    share = each or -(-forgeries // len(everyone))
    with TemporaryDirectory() as folder:
        path = Path(folder, "model")
        for _, (learner, _waiting, rows, labels) in everyone:
            tree = learner.__getstate__()
            ways = list(places(tree))
            for _ in range(share):
                try:
                    model_file.write(path, forged(tree, ways[rng.integers(len(ways))], rng))
                except ModelFileError:
                    counts["not a file"] += 1
                    continue
                counts[use(path, rows, labels)] += 1
    return counts


def main() -> None:
    """The whole run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forgeries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", default="", help="algorithms to leave out, such as exp4, which is slow to load")
    given = parser.parse_args()
    counts = run(given.forgeries, given.seed, without=tuple(given.without.split(",")))
    print(f"{sum(counts.values())} forgeries: {dict(counts)}; no crash")


if __name__ == "__main__":
    main()
