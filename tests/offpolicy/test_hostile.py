"""Short runs of the benchmarks that damage files and stop processes, so that they keep working and finding."""

import importlib.util
import os
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.sample(2)
@pytest.mark.parametrize("reader", ["log.jsonl", "log.dsjson", "log.npz", "log.jsonl.gz"])
def test_hostile_files_are_read_or_refused_by_name(reader):
    complaints = []
    outcomes = load("fuzz/logs").fuzz(reader, 300, seed=5, complain=complaints.append)
    assert not complaints
    assert outcomes["read"] + outcomes["refused"] == 300 and min(outcomes["read"], outcomes["refused"]) > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(
    ("kind", "name"), [("decisions", "log.jsonl"), ("decisions", "log.jsonl.gz"), ("save", "log.jsonl")]
)
def test_stopped_processes_lose_nothing(kind, name):
    outcomes = load("interrupted_logs").interrupt(kind, name, 6, seed=1)
    assert (outcomes["lost"], outcomes["unreadable"], outcomes["out of order"]) == (0, 0, 0)
    assert outcomes["SIGKILL"] == outcomes["SIGINT"] == 3 and outcomes["acknowledged"] >= 6
