"""Forge model files: change the values of a saved learner under a valid checksum, then load and use the file.

A forgery must be refused with a `ModelFileError`, or give a learner that plays without accessing memory outside its
arrays. To detect silent overruns run it without the compiler, where Python checks every index:

    NUMBA_DISABLE_JIT=1 PYTHONPATH=. python benchmarks/fuzz/forgeries.py [--forgeries 100000] [--seed 0]

Prints how many were tried, refused and played; any other exception or crash stops it.
"""

import argparse
import copy
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
from tests.algorithms.variants import variants_of

from gaptron import ActionRecords, Features, Learner, ModelFileError
from gaptron.algorithms import NAMES, load
from gaptron.errors import GaptronError
from gaptron.features import action_encoder
from gaptron.learner import model_file
from gaptron.types import Feedback

INTEGERS = (-1, 0, 1, 5, 5000, 2**31, 2**53, 2**63 - 1, -(2**63))
FLOATS = (-1.0, 0.0, -0.0, 0.5, 1.0, 1e300, -1e300, 1e-300, float("nan"), float("inf"), -float("inf"))
WORDS = ("", "gaptron", "full", "bandit", "\0", "9" * 40)
K, D, ROUNDS = 3, 4, 30
X = np.random.default_rng(0).normal(size=(ROUNDS, D)) / 2.0
Y = np.random.default_rng(1).integers(0, K, ROUNDS)


def learners() -> Iterator[tuple[str, Any]]:
    """Yield a learner of every algorithm, feedback and layout, after some rounds, with pending decisions."""
    for name in NAMES:
        card = load(name).CARD
        kinds = {"": {}, **{word: dict(variant.settings) for word, variant in variants_of(name).items()}}
        if name == "frugal-gaptron":
            kinds["delay"] = {"delay": 2}
        for word, settings in kinds.items():
            for feedback in card.feedback:
                for sparse in (False, True):
                    examples = sp.csr_matrix(X) if sparse else X
                    labels = Y % 2 if card.most_classes == 2 else Y
                    arguments = {"norm": 8.0, "radius": 1.0, "horizon": 500, **settings}
                    shown = "label-efficient" if feedback is Feedback.GRAPH else feedback.word
                    try:
                        learner = Learner(
                            name, n_classes=card.most_classes or K, feedback=shown, seed=0, **small(name), **arguments
                        )
                        learner.play(examples[:20], labels[:20])
                    except GaptronError:
                        continue  # the variant does not support this feedback
                    waiting = [learner.decide(examples[t]) for t in (20, 21)]
                    yield (
                        f"{name} {word} {shown} {'sparse' if sparse else 'dense'}",
                        (learner, waiting, examples, labels),
                    )


def action_learners() -> Iterator[tuple[str, Any]]:
    """Yield the same for learners whose rounds bring their own actions: three rows of X each."""
    for name in NAMES:
        card = load(name).CARD
        for feedback in (each for each in card.feedback if card.actions and each is not Feedback.GRAPH):
            for sparse in (False, True):
                rounds = [np.roll(X, -t, axis=0)[:3] for t in range(ROUNDS)]
                offers: list[Any] = [sp.csr_array(Phi) for Phi in rounds] if sparse else rounds
                learner = Learner(name, actions=True, feedback=feedback.word, norm=8.0, seed=0)
                learner.play(offers[:20], Y[:20])
                waiting = [learner.decide(actions=offers[t], available=[0, t % 3]) for t in (20, 21)]
                yield f"{name} actions {feedback.word} {sparse}", (learner, waiting, offers, Y)


def named_learners() -> Iterator[tuple[str, Any]]:
    """Yield the same for learners whose rounds are given by name; ids come and go."""
    words = ("a", "b", "c", None)
    rounds = [
        {
            "context": {"user": words[t % 4], "hour": float(X[t, 0])},
            "actions": {f"{t // 8}-{k}": {"topic": words[k], "age": float(X[t, k])} for k in range(K)},
        }
        for t in range(ROUNDS)
    ]
    right = [f"{t // 8}-{Y[t]}" for t in range(ROUNDS)]
    before, action_encoder.IDLE = action_encoder.IDLE, 8
    for name, feedback in (("frugal-gaptron", "full"), ("frugal-gaptron", "bandit"), ("squarecb", "bandit")):
        features = Features(most_words=8, buckets=2, most_crosses=10)
        learner = Learner(name, actions=True, feedback=feedback, features=features, seed=0)
        learner.play(rounds[:20], right[:20])
        waiting = [learner.decide(actions=rounds[t]["actions"], excluded=right[:0]) for t in (20, 21)]
        yield f"{name} named {feedback}", (learner, waiting, ActionRecords.of(rounds), right)
    action_encoder.IDLE = before


def small(name: str) -> dict[str, Any]:
    """Return settings that make the slow algorithms fast."""
    return {
        "aggregating": {"chains": 2, "steps": 1, "memory": 8},
        "hinge-lmc": {"chains": 2, "steps": 1, "memory": 8},
        "obama": {"chains": 2, "steps": 1, "memory": 8},
        "exp4": {"experts": 5},
    }.get(name, {})


def paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every value of a tree; for arrays, to a few elements."""
    if isinstance(tree, dict):
        for word, child in tree.items():
            yield from paths(child, (*path, word))
    elif isinstance(tree, (list, tuple)):
        for i, child in enumerate(tree):
            yield from paths(child, (*path, i))
    elif isinstance(tree, np.ndarray) and tree.size:
        yield from ((*path, np.unravel_index(i, tree.shape)) for i in {0, tree.size // 2, tree.size - 1})
        yield path
    else:
        yield path


def forged(tree: Any, path: tuple[Any, ...], rng: np.random.Generator) -> Any:
    """Return a copy of the tree with a different value at this path."""
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


def use(path: Path, examples: Any, labels: Any) -> str:
    """Load a file and use the learner as a user would."""
    try:
        learner = Learner.load(path)
    except ModelFileError:
        return "refused"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            truth = np.asarray(labels)
            for decision in learner.pending.values():
                if learner.problem.actions and learner.problem.feedback is Feedback.FULL:
                    learner.learn(decision, action=decision.label)
                elif learner.problem.feedback is Feedback.FULL:
                    learner.learn(decision, label=learner.classes[0])
                elif learner.problem.feedback is Feedback.BANDIT:
                    learner.learn(decision, correct=bool(decision.round % 2))
                else:
                    learner.learn(decision)
            learner.predict(examples)
            learner.distribution(examples)
            learner.play(examples[22:], truth[22:])
            _ = learner.weights, learner.advice
    except GaptronError:
        return "refused later"
    except (ArithmeticError, ValueError):  # interpreted, the root of a negative number raises; compiled, it is NaN
        return "arithmetic error"
    return "played"


def run(forgeries: int, seed: int, each: int | None = None, without: tuple[str, ...] = ()) -> Counter[str]:
    """Forge this many files, spread evenly over all learners except those of the excluded algorithms."""
    rng, counts = np.random.default_rng(seed), Counter[str]()
    every = chain(learners(), action_learners(), named_learners())
    everyone = [(name, made) for name, made in every if made[0].algorithm not in without]
    share = each or -(-forgeries // len(everyone))
    with TemporaryDirectory() as folder:
        path = Path(folder, "model")
        for _, (learner, _waiting, examples, labels) in everyone:
            tree = learner.__getstate__()
            known_paths = list(paths(tree))
            for _ in range(share):
                try:
                    model_file.write(path, forged(tree, known_paths[rng.integers(len(known_paths))], rng))
                except ModelFileError:
                    counts["not a file"] += 1
                    continue
                counts[use(path, examples, labels)] += 1
    return counts


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forgeries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", default="", help="algorithms to exclude, such as exp4, which is slow to load")
    options = parser.parse_args()
    counts = run(options.forgeries, options.seed, without=tuple(options.without.split(",")))
    print(f"{sum(counts.values())} forgeries: {dict(counts)}; no crash")


if __name__ == "__main__":
    main()
