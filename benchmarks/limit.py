"""Speed of `play` relative to the speed limit, measured in one run.

The limit is a compiled loop over the same examples in the same layout that only scores each example and applies a
rank-one update to every label: the minimum work of a first-order learner. Rounds that bring their own actions, and
Advised Gaptron without and with its kernel expert, are timed too, without such a limit. Each figure is processor time,
the best of several interleaved runs, because the machine may be busy.

    python benchmarks/limit.py [--rounds 50000] [--repeats 7]
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from gaptron import ActionExamples, Learner
from gaptron.data.examples import checked
from gaptron.kernels.compile.jit import jit
from gaptron.kernels.rows import add, row, scores, zeros
from gaptron.streams import synsep
from gaptron.types import Sparse

ENTRANTS = {
    "gaptron logistic": {"algorithm": "gaptron", "loss": "logistic"},
    "gaptron hinge": {"algorithm": "gaptron", "loss": "hinge"},
    "gaptron smooth hinge": {"algorithm": "gaptron", "loss": "smooth-hinge"},
    "gaptron bandit logistic": {"algorithm": "gaptron", "loss": "logistic", "feedback": "bandit"},
    "gaptron bandit hinge": {"algorithm": "gaptron", "loss": "hinge", "feedback": "bandit"},
    "frugal logistic": {"algorithm": "frugal-gaptron", "loss": "logistic"},
    "frugal hinge": {"algorithm": "frugal-gaptron", "loss": "hinge"},
    "frugal bandit logistic": {"algorithm": "frugal-gaptron", "loss": "logistic", "feedback": "bandit"},
    "frugal bandit hinge": {"algorithm": "frugal-gaptron", "loss": "hinge", "feedback": "bandit"},
    "advised": {"algorithm": "advised-gaptron"},
    "advised bandit": {"algorithm": "advised-gaptron", "feedback": "bandit"},
    "advised bandit, observed": {"algorithm": "advised-gaptron", "feedback": "bandit", "observe": True},
}
# The other algorithms whose round costs O(nnz·K), with default settings.
OTHERS = {
    name: {"algorithm": name, "feedback": feedback}
    for name, feedback in {
        "arow": "full",
        "banditron": "bandit",
        "confidit": "bandit",
        "gappletron": "bandit",
        "laplace": "full",
        "newtron": "bandit",
        "ons": "full",
        "perceptron": "full",
        "randomized-decoding": "bandit",
        "second-order-perceptron": "full",
        "separable": "bandit",
        "soba": "bandit",
        "softmax": "full",
        "squarecb": "bandit",
    }.items()
}
FEEDBACKS = ("full", "bandit")
WITH_ACTIONS: dict[str, dict[str, Any]] = {
    "advised": {"algorithm": "advised-gaptron"},
    "advised bandit": {"algorithm": "advised-gaptron", "feedback": "bandit"},
    "frugal": {"algorithm": "frugal-gaptron"},
    "frugal bandit": {"algorithm": "frugal-gaptron", "feedback": "bandit"},
    "softmax": {"algorithm": "softmax"},
    "squarecb": {"algorithm": "squarecb", "feedback": "bandit"},
    "epsilon-greedy": {"algorithm": "epsilon-greedy", "feedback": "bandit"},
}


@jit
def score_and_add(X: Any, W: Any, z: Any, r: Any, T: int) -> None:
    """Score every example, and update every label a little."""
    for t in range(T):
        x = row(X, t)
        scores(W, x, z)
        for k in range(z.shape[0]):
            r[k] = 1e-9 * z[k]
        add(W, x, r)


def limit(X: Any, K: int) -> Callable[[], None]:
    rows, d = checked(X).rows, X.shape[1]
    T = X.shape[0]
    W = zeros(K, d, isinstance(rows, Sparse))
    W += np.random.default_rng(0).normal(size=W.shape) * 1e-3
    return lambda: score_and_add(rows, W, np.zeros(K), np.zeros(K), T)


def entrant(options: dict[str, Any], X: Any, y: Any, K: int) -> Callable[[], None]:
    T = len(y)
    arguments = {"observe": False, **options}
    return lambda: Learner(**arguments, n_classes=K, radius=1.0, horizon=T, seed=0).play(X, y)


def compare(name: str, X: Any, y: Any, K: int, repeats: int, entrants: dict[str, dict[str, Any]]) -> None:
    runs = {"the limit": limit(X, K)} | {label: entrant(options, X, y, K) for label, options in entrants.items()}
    best = dict.fromkeys(runs, np.inf)
    for _ in range(repeats + 1):  # the first round compiles
        for label, run in runs.items():
            start = time.process_time()
            run()
            best[label] = min(best[label], time.process_time() - start)
    print(f"\n{name}: {len(y):,} rounds, d = {X.shape[1]}, K = {K}")
    for label, seconds in best.items():
        ratios = (
            f"{seconds / best['the limit']:>6.2f} x the limit {seconds / best['gaptron hinge']:>6.2f} x gaptron hinge"
        )
        print(f"  {label:<26}{len(y) / seconds / 1e6:>8.3f} M rounds/s {ratios}")


def actions(T: int, repeats: int, *, K: int = 10, nonzeros: int = 20, width: int = 2_000) -> None:
    """Rounds that bring their own actions: sparse, and dense with as many columns as sparse ones have non-zeros."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.permuted(np.tile(np.arange(width), (K * T // 100, 1)), axis=1)[:, :nonzeros], axis=1)
    columns = np.tile(columns, (100, 1))
    values = rng.normal(size=columns.shape) / np.sqrt(nonzeros)
    ends = np.arange(0, columns.size + 1, nonzeros)
    sparse = sp.csr_array((values.ravel(), columns.ravel(), ends), shape=(len(columns), width))
    for name, rows in {"sparse": sparse, "dense": values}.items():
        y = (rows @ rng.normal(size=rows.shape[1])).reshape(-1, K).argmax(axis=1)
        rounds = ActionExamples.of(rows, np.full(len(y), K))
        best = dict.fromkeys(WITH_ACTIONS, np.inf)
        for _ in range(repeats + 1):  # the first round compiles
            for label, options in WITH_ACTIONS.items():
                learner = Learner(**options, actions=True, seed=0)
                start = time.process_time()
                learner.play(rounds, y)
                best[label] = min(best[label], time.process_time() - start)
        print(f"\nactions, {name}: {len(y):,} rounds, {K} actions with {nonzeros} non-zeros, d = {rows.shape[1]}")
        for label, seconds in best.items():
            print(f"  {label:<26}{seconds / len(y) * 1e6:>8.2f} µs a round")


def kernel_expert(T: int, repeats: int) -> None:
    """Rounds of Advised Gaptron: labels of a linear rule, and random ones, from which every round is learned."""
    rng = np.random.default_rng(0)
    print(f"\nkernel expert: {T:,} dense rounds, µs a round without it -> with it")
    heads = [f"{kind} {feedback}" for kind in ("easy", "noisy") for feedback in FEEDBACKS]
    print(f"  {'d':>4} {'K':>4}" + "".join(f"{head:>18}" for head in heads))
    for d in (10, 100, 784):
        for K in (2, 10, 100):
            X = rng.normal(size=(T, d))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            streams = ((X @ rng.normal(size=(d, K))).argmax(axis=1), rng.integers(K, size=T))
            cells = []
            for y in streams:
                for feedback in FEEDBACKS:
                    best = dict.fromkeys((False, True), np.inf)
                    for _ in range(repeats + 1):  # the first round compiles
                        for wanted in best:
                            learner = Learner(n_classes=K, feedback=feedback, kernel=wanted, observe=False, seed=0)
                            start = time.process_time()
                            learner.play(X, y)
                            best[wanted] = min(best[wanted], time.process_time() - start)
                    cells.append(" -> ".join(f"{seconds / T * 1e6:.1f}" for seconds in best.values()))
            print(f"  {d:>4} {K:>4}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=50_000)
    arguments.add_argument("--repeats", type=int, default=7)
    options = arguments.parse_args()
    rng = np.random.default_rng(0)
    T = options.rounds // 5
    X = rng.random((T, 784))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ rng.normal(size=(784, 10))).argmax(axis=1)
    compare("dense", X, y, 10, options.repeats, ENTRANTS)
    compare("dense float32", X.astype(np.float32), y, 10, options.repeats, ENTRANTS)
    y = (X @ rng.normal(size=(784, 100))).argmax(axis=1)
    compare("dense, many labels", X, y, 100, options.repeats, ENTRANTS)
    y = (X @ rng.normal(size=(784, 1000))).argmax(axis=1)
    compare("dense, 1000 labels", X[: T // 10], y[: T // 10], 1000, options.repeats, ENTRANTS)
    stream = synsep(options.rounds)
    y = rng.integers(stream.n_classes, size=options.rounds)
    compare("sparse, random labels", stream.X, y, stream.n_classes, options.repeats, ENTRANTS)
    actions(options.rounds // 5, options.repeats)
    kernel_expert(options.rounds // 10, options.repeats)
    compare("synsep, sparse", stream.X, stream.y, stream.n_classes, options.repeats, ENTRANTS | OTHERS)


if __name__ == "__main__":
    main()
