"""One process, four, a Dask cluster, after an interruption: the same results. A dead process affects no other task."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from gaptron.errors import SettingError
from gaptron.experiments import backends
from gaptron.experiments.backends import processes, serial
from gaptron.experiments.compare import Callbacks, compare
from gaptron.experiments.plan_file import parse
from gaptron.experiments.store import read
from gaptron.experiments.task import Result
from tests.experiments.small import plan, timeless, write

pytestmark = pytest.mark.xdist_group("backends")  # one process makes what they share
MAIN = "from gaptron.cli import main; main()"


def reversed_serial(jobs):
    return serial(reversed(list(jobs)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def expected(folder):
    """What one process finds."""
    return timeless(compare(plan(write(folder)), folder / "serial", serial))


def test_one_process_runs_every_task(expected, folder):
    assert len(expected) == 2 * (1 + 4) and all(result.ok for result in expected)
    assert not (folder / "serial" / "streams").exists()  # the maps are swept away
    assert len(read(folder / "serial" / "results.jsonl")[0]) == len(expected)


def test_the_order_of_the_tasks_changes_nothing(expected, folder):
    assert timeless(compare(plan(folder / "small.npz"), folder / "reversed", reversed_serial)) == expected


def test_what_is_known_is_not_run_again_and_more_seeds_are_added(expected, folder, tmp_path):
    ran = []
    callbacks = Callbacks(on_result=ran.append)
    compare(plan(folder / "small.npz", seeds=1), tmp_path, serial, callbacks)
    assert len(ran) == 5
    assert timeless(compare(plan(folder / "small.npz"), tmp_path, serial, callbacks)) == expected
    assert len(ran) == 10
    assert timeless(compare(plan(folder / "small.npz"), tmp_path, serial, callbacks)) == expected
    assert len(ran) == 10


class Sealed(str):
    """Cannot be packed."""

    def __reduce__(self):
        raise ValueError("sealed")


class Poison(str):
    """Kills the process that unpacks it."""

    def __reduce__(self):
        return os._exit, (1,)


@pytest.mark.slow
def test_four_processes_give_the_same_results_and_a_task_that_kills_its_process_fails_alone(expected, folder):
    def poisoned(jobs):
        jobs = list(jobs)
        deadly = jobs[0]._replace(task=jobs[0].task._replace(seed=99), made_by=Poison())
        sealed = jobs[0]._replace(task=jobs[0].task._replace(seed=98), made_by=Sealed())
        return processes([sealed, *jobs[:-1], deadly, jobs[-1]], n=4)

    seen = []
    found = compare(plan(folder / "small.npz"), folder / "four", poisoned, Callbacks(on_result=seen.append))
    assert timeless(found) == expected
    assert len(seen) == len(expected) + 2
    dead = {result.seed: result.error["type"] for result in seen if not result.ok}
    assert dead == {98: "PicklingError", 99: "WorkerDied"}


def test_a_missing_file_a_late_label_and_a_bad_setting_leave_the_rest_alone(folder, tmp_path):
    late = tmp_path / "late.csv"
    late.write_text("1,0,a\n0,1,b\n" * 50 + "1,1,c\n")
    text = f"""
    seeds = 2
    feedback = "full"
    streams = ["none.svm", {{ data = {str(late)!r}, classes = ["a", "b"] }}, {str(write(tmp_path))!r}]
    algorithms = ["frugal-gaptron", {{ name = "frugal-gaptron", settings = {{ scale = -1.0 }} }}]
    """
    results = compare(parse(text, "p"), tmp_path / "out", serial)
    assert [result.ok for result in results] == [False] * 8 + [True, False] * 2
    messages = [result.error["message"] for result in results if not result.ok]
    assert "none.svm: there is no such file" in messages[0]
    assert "line 101: label c is not one of the" in messages[4]
    assert "scale" in messages[-1]
    written, notes = read(tmp_path / "out" / "results.jsonl")
    assert sum(result.ok for result in written) == 2 and len(written) == 12 and not notes
    again = []
    compare(parse(text, "p"), tmp_path / "out", serial, Callbacks(on_result=again.append))
    assert len(again) == 10 and not any(result.ok for result in again)  # failures are tried again, results are not


# --- a real command, interrupted ---------------------------------------------------------------------------------


def start(data: Path, out: Path, seeds: int) -> subprocess.Popen:
    """`gaptron compare` in two processes; returns when it has some new results."""
    file = out / "results.jsonl"
    before = file.read_bytes().count(b"\n") if file.exists() else 0
    words = ["compare", str(data), "-a", "frugal-gaptron,banditron", "--seeds", str(seeds), "--no-grid"]
    words += ["--raw", "--bounds", "none", "-j", "2", "-o", str(out), "--no-report"]
    command = subprocess.Popen(
        [sys.executable, "-c", MAIN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    while not file.exists() or file.read_bytes().count(b"\n") < before + 2:
        assert command.poll() is None, command.stderr.read().decode()
        time.sleep(0.005)
    return command


def finish(data: Path, out: Path, seeds: int) -> tuple[list[Result], int]:
    """The same comparison to its end, in this process, and how many tasks that took."""
    words = f'streams = [{{ data = {str(data)!r}, unit_norm = false }}]\nalgorithms = ["frugal-gaptron", "banditron"]\n'
    fresh = []
    text = words + f'grids = false\nbounds = "none"\nseeds = {seeds}\n'
    return timeless(compare(parse(text, "p"), out, serial, Callbacks(on_result=fresh.append))), len(fresh)


@pytest.mark.slow
def test_after_a_kill_and_an_interruption_it_continues_where_it_stopped(folder, tmp_path):
    seeds, data, out = 400, write(folder), tmp_path / "out"
    expected, n = finish(data, tmp_path / "whole", seeds)
    assert n == 3 * seeds

    killed = start(data, out, seeds)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    lines = (out / "results.jsonl").read_bytes().splitlines()
    assert 2 <= len(lines) < n

    gone(killed.pid)  # workers notice that nobody waits for them
    interrupted = start(data, out, seeds)
    os.killpg(interrupted.pid, signal.SIGINT)  # as a terminal does: to the parent and its workers
    _, errors = interrupted.communicate()
    assert interrupted.returncode == 130
    assert b"interrupted" in errors and b"Traceback" not in errors
    text = (out / "results.jsonl").read_bytes()
    assert text.endswith(b"\n") and all(json.loads(line)["status"] == "ok" for line in text.splitlines())
    gone(interrupted.pid)

    found, left = finish(data, out, seeds)
    assert found == expected and 0 < left == n - len(text.splitlines())


def gone(group: int) -> None:
    """Returns when no process of the group is left."""
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


# --- Dask ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and two workers, each a separate process; the scheduler's address."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1"]
    started = []
    with open(folder / "log", "wb") as log:
        for words in (scheduler, worker, worker):
            started.append(subprocess.Popen([*words, *common], stdout=log, stderr=log, cwd=folder))
        try:
            while not file.exists():
                assert started[0].poll() is None, (folder / "log").read_text()
                time.sleep(0.05)
            yield json.loads(file.read_text())["address"]
        finally:
            for process in started:
                process.kill()
                process.wait()


@pytest.mark.slow
def test_dask_plays_external_models(cluster, folder, tmp_path):
    text = (
        f'streams = ["{write(folder)}"]\nseeds = 2\nfeedback = "full"\nalgorithms = ["sklearn:linear_model.Perceptron"]'
    )
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    expected = timeless(compare(parse(text, "p"), alone, serial))
    assert [result.ok for result in expected] == [True, True]
    assert timeless(compare(parse(text, "p"), spread, partial(backends.dask, address=cluster))) == expected


@pytest.mark.slow
def test_dask_gives_the_same_results_with_streams_sent_and_with_a_worker_killed(cluster, expected, folder, monkeypatch):
    from distributed import Client  # noqa: PLC0415

    with monkeypatch.context() as patch:
        patch.setattr(backends, "_sees", lambda folder: False)  # as if there were no shared file system
        found = compare(plan(folder / "small.npz"), folder / "sent", partial(backends.dask, address=cluster))
        assert timeless(found) == expected

    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        pids = list(client.run(os.getpid).values())
    killed = []

    def kill_one(_: Result) -> None:
        if not killed:
            os.kill(pids[0], signal.SIGKILL)
            killed.append(pids[0])

    found = compare(
        plan(folder / "small.npz", seeds=20),
        folder / "killed",
        partial(backends.dask, address=cluster),
        Callbacks(on_result=kill_one),
    )
    assert killed and all(result.ok for result in found)
    assert [result for result in timeless(found) if result.seed < 2] == expected
    assert len(found) == 10 * len(expected)


def test_a_missing_scheduler_is_one_error_message(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(backends, "TIMEOUT", 0.2)
    with pytest.raises(SettingError, match="no Dask scheduler"):
        list(backends.dask([], "tcp://127.0.0.1:9"))
