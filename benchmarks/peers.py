"""Speed of gaptron and comparable libraries on the same stream, as ratios in one run.

Vowpal Wabbit (`--oaa`, reading its own binary cache, string feature names), scikit-learn's `SGDClassifier.partial_fit`
in one call, River's softmax regression one example at a time; and dense examples (d = 100, K = 10), one at a time,
through River and through `decide` and `learn`. All use their defaults; only speed is measured. Libraries that are not
installed are skipped with a message: `pip install vowpalwabbit river`.

Then the same rounds from text files, svmlight and VW text, each in a new process: processor time and peak memory of the
whole process.

    python benchmarks/peers.py [--rounds 100000] [--text-rounds 300000]
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from gaptron import Learner
from gaptron.streams import Stream, synsep


def gaptron(stream: Stream, loss: str) -> float:
    Learner("gaptron", n_classes=stream.n_classes, loss=loss, seed=0).play(stream.X[:10], stream.y[:10])
    learner = Learner("gaptron", n_classes=stream.n_classes, loss=loss, seed=0)
    start = time.perf_counter()
    learner.play(stream.X, stream.y)
    return time.perf_counter() - start


def narrow(rounds: int) -> tuple[np.ndarray, list[int]]:
    """Return dense examples for libraries that take one at a time: d = 100, K = 10."""
    rng = np.random.default_rng(0)
    means, y = rng.normal(size=(10, 100)) / 10, rng.integers(0, 10, rounds)
    return means[y] + rng.normal(size=(rounds, 100)) / 10, y.tolist()


def one_by_one(rounds: int) -> float:
    X, y = narrow(rounds)
    learner = Learner("frugal-gaptron", n_classes=10, norm=10.0, seed=0)
    learner.learn(learner.decide(X[0]), label=y[0])
    start = time.perf_counter()
    for x, label in zip(X, y, strict=True):
        learner.learn(learner.decide(x), label=label)
    return time.perf_counter() - start


def river_narrow(rounds: int) -> float:
    X, labels = narrow(rounds)
    names = [str(j) for j in range(X.shape[1])]
    return river_on([dict(zip(names, x)) for x in X.tolist()], labels)


def sklearn(stream: Stream) -> float:
    from sklearn.linear_model import SGDClassifier  # noqa: PLC0415

    model = SGDClassifier(loss="log_loss", random_state=0)
    start = time.perf_counter()
    model.partial_fit(stream.X, stream.y, classes=np.arange(stream.n_classes))
    return time.perf_counter() - start


def river(stream: Stream, rounds: int) -> float:
    X = stream.X[:rounds]
    examples = [
        dict(zip(map(str, X.indices[a:b].tolist()), X.data[a:b].tolist()))
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    return river_on(examples, stream.y[:rounds].tolist())


def river_on(examples: list[dict[str, float]], labels: list[int]) -> float:
    from river.linear_model import SoftmaxRegression  # noqa: PLC0415

    model = SoftmaxRegression()
    start = time.perf_counter()
    for x, y in zip(examples, labels, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)
    return time.perf_counter() - start


def vw(stream: Stream) -> float:
    from vowpalwabbit import pyvw  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        data, cache = Path(folder, "data.vw"), Path(folder, "data.cache")
        X: Any = stream.X
        with data.open("w") as out:
            for a, b, y in zip(X.indptr[:-1], X.indptr[1:], stream.y, strict=True):
                out.write(f"{y + 1} | " + " ".join(f"f{i}" for i in X.indices[a:b]) + "\n")
        arguments = f"--oaa {stream.n_classes} -d {data} --cache_file {cache} --quiet"
        pyvw.Workspace(arguments).finish()  # the first pass writes the cache
        start = time.perf_counter()
        pyvw.Workspace(arguments).finish()
        return time.perf_counter() - start


def write(rounds: int, svmlight: Path, vw_text: Path) -> None:
    """Write this many rounds of synsep in both formats, chunk by chunk."""
    with svmlight.open("w") as one, vw_text.open("w") as other:
        for start in range(0, rounds, 50_000):
            stream = synsep(min(50_000, rounds - start), seed=start)
            X: Any = stream.X
            for a, b, y in zip(X.indptr[:-1], X.indptr[1:], stream.y, strict=True):
                features = X.indices[a:b].tolist()
                one.write(f"{y + 1} " + " ".join([f"{i + 1}:1" for i in features]) + "\n")
                other.write(f"{y + 1} | " + " ".join([f"f{i}" for i in features]) + "\n")


# Run in a separate process: ru_maxrss of a child is at least that of the process that started it.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def process(*words: str) -> tuple[float, float]:
    """Return the processor seconds and megabytes of a command, the best of three runs."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", *words]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(3)]
    return min(float(run[0]) for run in runs), min(float(run[1]) for run in runs)


def text_files(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        svmlight, vw_text = Path(folder, "data.svm"), Path(folder, "data.vw")
        write(rounds, svmlight, vw_text)
        logistic = ("-a", "gaptron", "--loss", "logistic")
        runs: dict[str, tuple[str, ...]] = {
            f"{name}, {path.suffix[1:]}": ("gaptron", "play", str(path), "--no-bound", *words)
            for path in (svmlight, vw_text)
            for name, words in (("gaptron logistic", logistic), ("the default", ()))
        }
        runs["Vowpal Wabbit --oaa, vw"] = ("vowpalwabbit", "--oaa", "9", "-d", str(vw_text), "--quiet")
        print(f"text files, {rounds:,} rounds: {svmlight.stat().st_size / 1e6:.0f} MB of svmlight, ", end="")
        print(f"{vw_text.stat().st_size / 1e6:.0f} MB of VW text; whole processes")
        for name, words in runs.items():
            if importlib.util.find_spec(words[0]) is None:
                print(f"  {name:<30} not installed: pip install {words[0]}")
                continue
            seconds, memory = process(*words)
            print(
                f"  {name:<30}{seconds:>9.2f} s{rounds / seconds / 1e6:>9.3f} M rounds/s{memory:>9.0f} MB", flush=True
            )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=100_000)
    arguments.add_argument("--text-rounds", type=int, default=300_000)
    options = arguments.parse_args()
    T = options.rounds
    stream = synsep(T)
    few = min(T, 5_000)
    runs = {
        "gaptron logistic": (lambda: gaptron(stream, "logistic"), T, "gaptron"),
        "gaptron hinge": (lambda: gaptron(stream, "hinge"), T, "gaptron"),
        "scikit-learn SGDClassifier": (lambda: sklearn(stream), T, "sklearn"),
        "Vowpal Wabbit --oaa": (lambda: vw(stream), T, "vowpalwabbit"),
        "River softmax, one by one": (lambda: river(stream, few), few, "river"),
        "River softmax, dense d=100": (lambda: river_narrow(few // 5), few // 5, "river"),
        "frugal decide+learn, the same": (lambda: one_by_one(4 * few), 4 * few, "gaptron"),
    }
    ours = None
    print(f"synsep, {T:,} rounds")
    for name, (run, rounds, package) in runs.items():
        if importlib.util.find_spec(package) is None:
            print(f"  {name:<30} not installed: pip install {package}")
            continue
        speed = rounds / min(run() for _ in range(3))
        ours = ours or speed
        print(f"  {name:<30}{speed / 1e6:>9.4f} M rounds/s   gaptron logistic is {ours / speed:>7.1f} x as fast")
    text_files(options.text_rounds)


if __name__ == "__main__":
    main()
