"""Small streams, the kinds of rows, and helpers for all tests."""

import itertools
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

from gaptron.algorithms import NAMES

# The same examples in every run, and no clock: the machine may be busy.
settings.register_profile("gaptron", deadline=None, derandomize=True)
settings.load_profile("gaptron")

REPOSITORY = Path(__file__).parents[1]
INTERPRETED = bool(numba.config.DISABLE_JIT)
needs_compiler = pytest.mark.skipif(INTERPRETED, reason="about the compiler, which is off")

KINDS = {
    "dense64": lambda X: np.ascontiguousarray(X, dtype=np.float64),
    "dense32": lambda X: np.ascontiguousarray(X, dtype=np.float32),
    "csr": lambda X: sp.csr_matrix(np.asarray(X, dtype=np.float64)),
    "csr32": lambda X: sp.csr_matrix(np.asarray(X, dtype=np.float32)),
}


class Stream(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    K: int

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.X, axis=1).max(initial=0.0))


def exact32(X: Any) -> np.ndarray:
    """The same numbers in float32 and float64, so that every kind of row holds the same values."""
    return np.asarray(X, dtype=np.float32).astype(np.float64)


def random_stream(T: int = 200, d: int = 6, K: int = 4, seed: int = 0) -> Stream:
    """Labels that have nothing to do with the rows; a third of the entries are zero."""
    rng = np.random.default_rng(seed)
    X = exact32(rng.normal(size=(T, d)) * (rng.random((T, d)) > 0.33) / np.sqrt(d))
    return Stream(X, rng.integers(0, K, T), K)


def separable_stream(T: int = 200, d: int = 6, K: int = 3, seed: int = 0, margin: float = 0.2) -> Stream:
    """Rows a shade below unit norm, labelled by a fixed rule, kept only where its margin is wide."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(K, d))
    U /= np.linalg.norm(U)
    rows: list[np.ndarray] = []
    while len(rows) < T:
        x = rng.normal(size=d)
        x = exact32(x / np.linalg.norm(x) * (1 - 1e-6))
        z = np.sort(U @ x)
        if z[-1] - z[-2] > margin:
            rows.append(x)
    X = np.array(rows)
    return Stream(X, (X @ U.T).argmax(axis=1), K)


def noisy_stream(T: int = 200, d: int = 6, K: int = 3, seed: int = 0, noise: float = 0.15) -> Stream:
    """A separable stream some of whose labels were drawn again."""
    clean = separable_stream(T, d, K, seed)
    rng = np.random.default_rng(seed + 1)
    return Stream(clean.X, np.where(rng.random(T) < noise, rng.integers(0, K, T), clean.y), K)


STREAMS = {"random": random_stream, "separable": separable_stream, "noisy": noisy_stream}


@pytest.fixture(params=list(STREAMS))
def stream(request: pytest.FixtureRequest) -> Stream:
    return STREAMS[request.param]()


# Algorithms that a quick run tries on sparse rows too, which compile every algorithm once more.
ON_SPARSE = {"advised-gaptron", "arow", "banditron", "gaptron", "perceptron"}
# Rows in single precision compile everything once more. What reads rows is the same for all algorithms.
EVERY_KIND = [pytest.param(name, marks=[pytest.mark.slow] if name.endswith("32") else []) for name in KINDS]


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive every seed that a test leaves out from its name, so that each run of the suite draws the same numbers."""
    name, count, make = zlib.crc32(request.node.nodeid.encode()), itertools.count(), np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: make([name, next(count)] if seed is None else seed))


@pytest.fixture(params=EVERY_KIND)
def kind(request: pytest.FixtureRequest) -> Any:
    """A function that turns a float64 array into one kind of rows."""
    return KINDS[request.param]


def portrait(learner: Any) -> dict[str, Any]:
    """All that a learner is, copied: two equal portraits go on in the same way."""
    tree = learner.__getstate__()
    core = tree.pop("engine")
    core["count"].pop("trail")  # rounds decided one by one leave none
    tree["longest"] = float(f"{tree['longest']:.12g}")  # summed by other verbs for one row and for many
    return {name: _copied(part) for name, part in {**tree, **core}.items()}


def _copied(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _copied(inside) for name, inside in part.items()}
    if isinstance(part, np.ndarray):
        return part.shape, part.tobytes()
    return repr(part)


def shared_data() -> Path:
    """The folder of real data sets, or a skip."""
    named = os.environ.get("GAPTRON_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not (folder / "META.json").is_file():
        pytest.skip("shared data folder absent")
    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto` is every core this process may use, whether or not two of them share one piece of silicon."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.hookimpl(tryfirst=True)  # before pytest leaves the slow tests out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Most of the time goes into compiling, and what one process has compiled the others find on disk.

    The algorithms come first, all tests of one algorithm in one process (`--dist loadgroup`); the rest finds
    them compiled. What needs all algorithms comes last.
    """
    _sample(items)
    items.sort(key=lambda item: (item.name == "test_compiled_equals_interpreted", _algorithm(item) is None))
    for item in items:
        if name := _algorithm(item):
            item.add_marker(pytest.mark.xdist_group(name))


def _sample(items: list[pytest.Item]) -> None:
    """Of a test marked `sample(n)`, n cases spread over all of them stay quick; the others are slow."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            tests.setdefault(item.nodeid.split("[")[0], []).append(item)
    for cases in tests.values():
        mark = cases[0].get_closest_marker("sample")
        n = mark.args[0] if mark else 0
        quick = {(2 * i + 1) * len(cases) // (2 * n) for i in range(n)}  # the middle of n equal parts
        for i, item in enumerate(cases):
            if i not in quick:
                item.add_marker(pytest.mark.slow)


def _algorithm(item: pytest.Item) -> str | None:
    """The file of the algorithm that a test is about, if it is about one."""
    case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
    if case is not None and hasattr(case, "algorithm"):
        return NAMES[case.algorithm]
    return item.path.stem.removeprefix("test_") if item.path.parent.name == "algorithms" else None
