"""A small comparison every test here may run: two algorithms that are compiled anyway, on 200 rounds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gaptron.experiments.plan import Plan
from gaptron.experiments.plan_file import parse
from gaptron.experiments.task import Result
from gaptron.streams import Stream
from tests.conftest import noisy_stream

PLAN = """
feedback = ["full", "bandit"]
seeds = {seeds}
streams = ["{data}"]
algorithms = ["frugal-gaptron", {{ name = "banditron", grid = {{ gamma = [0.1, 0.3] }} }}]
"""


def stream() -> Stream:
    X, y, _ = noisy_stream(T=200)
    return Stream.from_arrays(X, y)


def write(folder: Path) -> Path:
    """The small stream as a file."""
    path, made = folder / "small.npz", stream()
    np.savez(path, X=made.X, y=made.y)
    return path


def plan(data: Path | str, seeds: int = 2) -> Plan:
    return parse(PLAN.format(data=data, seeds=seeds), "small.toml")


def timeless(results: list[Result]) -> list[Result]:
    """All of the results but the clock's part, and the last digits of what an optimiser finds, which memory decides."""
    return [replace(result, seconds=None, bound=result.bound and _shortened(result.bound)) for result in results]


def _shortened(bound: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.10g}") if isinstance(value, float) else value for name, value in bound.items()}
