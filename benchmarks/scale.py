"""Rounds per second and memory as a stream grows: in length T, labels K, features d, and nonzeros per example.

Sparse examples of ones at random positions, labels of a random linear rule with 20 % noise. One of the four sizes grows
and the others stay at T = 50,000, K = 10, d = 1,000 and 30 nonzeros per example. Each figure is measured in a separate
process, as processor time of `play` only. A chunk of 100,000 examples is played repeatedly with new noise, so that the
stream grows and not the data in memory. Memory is the increase of the process from before the learner is created to
after the last round. The time of a round grows like the size to the power of the exponent, fitted by least squares over
the upper half of the sizes.

Vowpal Wabbit (`--oaa`, full information) makes one pass over its own binary cache of one chunk; it is skipped if it is
not installed: `pip install vowpalwabbit`.

    python benchmarks/scale.py [--axis K] [--longest 10000000]
"""

import argparse
import importlib.util
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SIZES = {"T": 50_000, "K": 10, "d": 1_000, "nnz": 30}
AXES = {
    "T": [100_000, 1_000_000, 10_000_000, 100_000_000],
    "K": [10, 100, 1_000, 10_000],
    "d": [100, 1_000, 10_000, 100_000, 1_000_000],
    "nnz": [10, 30, 100, 300],
}
ENTRANTS = {
    "frugal-gaptron": {"algorithm": "frugal-gaptron"},
    "advised-gaptron": {},
    "advised-gaptron, single": {"precision": "single"},
    "advised-gaptron, bandit": {"feedback": "bandit"},
    "squarecb": {"algorithm": "squarecb", "feedback": "bandit"},
    "arow": {"algorithm": "arow"},
    "vw --oaa": {},
}
CHUNK = 100_000


def examples(n: int, d: int, nnz: int) -> Any:
    """Return n examples of ones at random positions, scaled to norm 1."""
    nnz = min(nnz, d)
    rng = np.random.default_rng(0)
    positions = np.sort(rng.integers(d - nnz + 1, size=(n, nnz)), axis=1) + np.arange(nnz)  # distinct
    values = np.full(n * nnz, 1.0 / math.sqrt(nnz))
    return sp.csr_matrix((values, positions.ravel().astype(np.int32), np.arange(0, n * nnz + 1, nnz)), shape=(n, d))


def labels(X: Any, K: int, d: int) -> np.ndarray:
    """Return the labels of a linear rule: the label of the example's feature with the largest weight."""
    weight, label = np.random.default_rng(1).random(d), np.random.default_rng(2).integers(K, size=d)
    strongest = weight[X.indices].reshape(X.shape[0], -1).argmax(axis=1)
    return label[X.indices.reshape(X.shape[0], -1)[np.arange(X.shape[0]), strongest]]


def resident() -> float:
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(name: str, T: int, K: int, d: int, nnz: int) -> dict[str, float]:
    """Return seconds per round, and the increase of memory in MB."""
    X = examples(min(T, CHUNK), d, nnz)
    y = labels(X, K, d)
    if name.startswith("vw"):
        return vowpal_wabbit(X, y, K)
    from gaptron import Learner  # noqa: PLC0415

    arguments = {"observe": False, "norm": 1.01, "seed": 0, "horizon": T, "radius": 1.0, **ENTRANTS[name]}
    Learner(n_classes=2, **arguments).play(X[:10, :10], np.zeros(10, dtype=int))  # compiles
    before, spent = resident(), 0.0
    learner = Learner(n_classes=K, **arguments)
    rng = np.random.default_rng(3)
    for _ in range(0, T, CHUNK):
        noisy = np.where(rng.random(len(y)) < 0.2, rng.integers(K, size=len(y)), y)
        start = time.process_time()
        learner.play(X, noisy)
        spent += time.process_time() - start
    return {"seconds": spent / max(T, len(y)), "MB": resident() - before}


def vowpal_wabbit(X: Any, y: np.ndarray, K: int) -> dict[str, float]:
    """Measure one pass over its cache."""
    from vowpalwabbit import pyvw  # noqa: PLC0415

    bits = max(18, math.ceil(math.log2(X.shape[1] * K)))
    with tempfile.TemporaryDirectory() as folder:
        data, cache = Path(folder, "data.vw"), Path(folder, "data.cache")
        with data.open("w") as out:
            for a, b, label in zip(X.indptr[:-1], X.indptr[1:], y, strict=True):
                pairs = (f"{i}:{v:.4f}" for i, v in zip(X.indices[a:b], X.data[a:b]))
                out.write(f"{label + 1} | {' '.join(pairs)}\n")
        arguments = f"--oaa {K} -b {bits} -d {data} --cache_file {cache} --quiet"
        before = resident()
        model = pyvw.Workspace(arguments)  # the first pass writes the cache
        MB = resident() - before
        model.finish()
        start = time.process_time()
        pyvw.Workspace(arguments).finish()
        return {"seconds": (time.process_time() - start) / X.shape[0], "MB": MB}


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Fit the exponent of the time per round as a power of the size, over the upper half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def in_subprocess(name: str, sizes: dict[str, int]) -> dict[str, float] | None:
    """Return the measurement made in a separate process; None if it failed."""
    command = [sys.executable, __file__, "--one", json.dumps([name, sizes])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  {name} {sizes}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def table(axis: str, longest: int) -> None:
    sizes = [size for size in AXES[axis] if axis != "T" or size <= longest]
    print(f"\n| {axis} = | " + " | ".join(f"{size:,}" for size in sizes) + " | exponent |")
    print("|---" * (len(sizes) + 2) + "|")
    for name in ENTRANTS:
        if name.startswith("vw") and (axis == "T" or importlib.util.find_spec("vowpalwabbit") is None):
            continue
        found = []
        for size in sizes:
            used = {**SIZES, axis: size}
            if axis != "T":  # enough rounds to measure, and not too many
                used["T"] = int(min(SIZES["T"], max(1_000, 5e8 / (used["K"] * used["nnz"] * 10))))
            if axis == "nnz":
                used["d"] = 10_000
            found.append(in_subprocess(name, used))
        cells = ["—" if f is None else f"{1e-3 / f['seconds']:.3g} k/s, {f['MB']:.0f} MB" for f in found]
        known = [(size, f["seconds"]) for size, f in zip(sizes, found) if f is not None]
        power = f"{exponent(*map(list, zip(*known))):.2f}" if len(known) > 2 else "—"
        print(f"| {name} | " + " | ".join(cells) + f" | {power} |", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--axis", choices=list(AXES), nargs="*", default=list(AXES))
    arguments.add_argument("--longest", type=int, default=10_000_000)
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.one:
        name, sizes = json.loads(options.one)
        print(json.dumps(measure(name, **sizes)))
        return
    for axis in options.axis:
        table(axis, options.longest)


if __name__ == "__main__":
    main()
