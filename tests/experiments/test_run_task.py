"""One task: the cached examples, in the order and with the draws of its seed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from gaptron import InputError, Learner
from gaptron.data.examples import checked
from gaptron.experiments import run_task as module
from gaptron.experiments.run_task import run_task
from gaptron.experiments.stream_cache import as_matrix, cache_stream
from gaptron.experiments.task import Result, Task, version
from gaptron.streams import Stream, prepare
from gaptron.streams.clicks import clicks
from gaptron.types import Sparse
from tests.experiments.small import stream, timeless

TASK = Task("small", "frugal-gaptron", "full", "logistic", 3, {}, bound=True)


@pytest.fixture
def cached(tmp_path):
    return cache_stream(stream(), tmp_path)


def sparse_stream():
    made = stream()
    return Stream.from_arrays(sparse.csr_array(made.X), made.y)


def test_the_arrays_of_a_worker_are_memory_maps_and_validation_does_not_copy_them(tmp_path):
    for made in (stream(), sparse_stream()):
        cached = cache_stream(made, tmp_path)
        arrays = cached.arrays()
        assert all(isinstance(array, np.memmap) for array in arrays.values())
        examples = checked(as_matrix(arrays, cached.n_features))
        inside = examples.rows
        assert examples.width == made.n_features
        if isinstance(inside, Sparse):
            pairs = [(inside.indptr, "ends"), (inside.indices, "indices"), (inside.values, "values")]
        else:
            pairs = [(inside, "X")]
        assert all(np.shares_memory(array, arrays[name]) for array, name in pairs)


def test_playing_does_not_write_into_the_files(cached, tmp_path):
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.npy")}
    assert len(before) == 2 and run_task(TASK, cached, version()).ok
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.npy")} == before


@pytest.mark.parametrize("shuffle", [False, True])
def test_rewards_follow_the_order_of_the_rounds(tmp_path, monkeypatch, shuffle):
    """In several chunks, in the order of the seed, as `play` on the stream in that order."""
    made = clicks(300, seed=2, labels=4)
    available = np.random.default_rng(0).random((300, 4)) < 0.5
    available[np.arange(300), made.y] = True
    made = replace(made, available=available)
    monkeypatch.setattr(module, "CHUNK", 64 * 20 * 8)
    task = Task("clicks", "squarecb", "bandit", "logistic", 3, {}, shuffle=shuffle)
    result = run_task(task, cache_stream(made, tmp_path), version())
    assert result.ok, result.error
    learner = Learner("squarecb", n_classes=4, feedback="bandit", seed=3, norm=made.norm, horizon=300)
    trace = learner.play(prepare(made, shuffle=3) if shuffle else made)
    assert result.reward == trace.reward.sum() > 0 and result.mistakes == trace.mistakes == 300 - result.reward
    assert result.best_reward == made.rewards[np.arange(300), made.y].sum()
    assert type(result).from_json(result.to_json()) == result
    assert cache_stream(clicks(300, seed=2, labels=4), tmp_path).data != cache_stream(made, tmp_path).data


def test_a_stream_is_cached_once_and_identified_by_its_content(tmp_path):
    made = stream()
    first, again = cache_stream(made, tmp_path), cache_stream(made, tmp_path)
    assert first == again and len(list(tmp_path.iterdir())) == 1
    y = made.y.copy()
    y[7] = (y[7] + 1) % made.n_classes
    assert cache_stream(Stream.from_arrays(made.X, y), tmp_path).data != first.data
    assert cache_stream(Stream.from_arrays(made.X, made.y, classes=range(4)), tmp_path).data != first.data
    assert cache_stream(prepare(made, constant=True), tmp_path).data != first.data


def test_a_result_equals_that_of_a_learner_on_the_shuffled_stream(cached):
    result = run_task(TASK, cached, version())
    made = prepare(stream(), shuffle=3)
    learner = Learner("frugal-gaptron", n_classes=3, norm=made.norm, horizon=200, seed=3)
    trace = learner.play(made.X, made.y)
    assert (result.mistakes, result.top_mistakes) == (trace.mistakes, trace.top_mistakes)
    assert result.expected_mistakes == trace.expected_mistakes
    assert result.curve["mistakes"] == trace.curve.mistakes.tolist() and result.curve["rounds"][-1] == 200
    assert result.bound["value"] == pytest.approx(learner.bound(made.X, made.y, trace).value, rel=1e-6)
    assert result.certificate["level"] == learner.certificate.level
    assert result.used["scale"] == 1.0 and result.seconds > 0
    assert result.prepared[-1] == "shuffled (seed 3)"


@pytest.mark.parametrize("make", [stream, sparse_stream])
def test_a_bandit_result_has_the_observed_evidence_of_a_learner(make, tmp_path):
    task = Task("small", "banditron", "bandit", "hinge", 3, {}, bound=True)
    cached = cache_stream(make(), tmp_path)
    result = run_task(task, cached, version())
    made = prepare(make(), shuffle=3)
    learner = Learner("banditron", n_classes=3, feedback="bandit", norm=made.norm, horizon=200, seed=3)
    learner.play(made.X, made.y)
    assert result.observed["softmax"] == [proof._asdict() for proof in learner.observed.softmax]
    assert result.observed["sentence"] == learner.observed.sentence()
    assert Result.from_json(result.to_json()) == result
    assert run_task(task._replace(bound=False), cached, version()).observed is None


def test_without_a_shuffle_the_order_is_the_streams(cached):
    result = run_task(TASK._replace(shuffle=False), cached, version())
    made = stream()
    trace = Learner("frugal-gaptron", n_classes=3, norm=made.norm, horizon=200, seed=3).play(made.X, made.y)
    assert result.expected_mistakes == trace.expected_mistakes and not result.prepared


def test_the_hinge_bound_finds_each_rounds_own_place_in_the_shuffled_trace(cached):
    task = TASK._replace(algorithm="gaptron", loss="hinge")  # excludes rounds the learner was certain and right about
    made = prepare(stream(), shuffle=3)
    learner = Learner("gaptron", n_classes=3, norm=made.norm, horizon=200, loss="hinge", seed=3)
    trace = learner.play(made.X, made.y)
    expected = pytest.approx(learner.bound(made.X, made.y, trace).value, rel=1e-4)
    assert run_task(task, cached, version()).bound["value"] == expected
    with pytest.raises(InputError, match="labels of this trace"):  # the trace is in another order
        learner.bound(stream().X, stream().y, trace)


@pytest.mark.parametrize("make", [stream, sparse_stream], ids=["dense", "sparse"])
def test_chunks_of_any_size_give_the_same_result(make, tmp_path, monkeypatch):
    cached = cache_stream(make(), tmp_path)
    whole = run_task(TASK, cached, version())
    monkeypatch.setattr(module, "CHUNK", 1000)
    assert timeless([run_task(TASK, cached, version())]) == timeless([whole])


def test_algorithms_are_paired_by_the_seed(cached, monkeypatch):
    seen = []

    class Spy(Learner):
        def play(self, X, y, **more):
            seen.append((checked(X).rows.tobytes(), y.codes.tobytes(), repr(self._engine.rng.bit_generator.state)))
            return super().play(X, y, **more)

    monkeypatch.setattr(module, "Learner", Spy)
    for task in (TASK, TASK._replace(algorithm="banditron", feedback="bandit", loss="hinge", bound=False)):
        assert run_task(task, cached, version()).ok
    assert len(seen) == 2 and seen[0] == seen[1]
    run_task(TASK._replace(seed=4), cached, version())
    assert seen[2] != seen[0]


def test_an_error_becomes_a_failed_result(cached, monkeypatch):
    result = run_task(TASK._replace(settings={"scale": -1.0}), cached, version())
    assert result.status == "failed" and result.mistakes is None
    assert result.error["type"] == "SettingError" and "scale" in result.error["message"]
    assert result.error["traceback"] == ""

    def burst(*_):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(module, "_chunks", burst)
    result = run_task(TASK, cached, version())
    assert (result.status, result.error["type"]) == ("failed", "ZeroDivisionError")
    assert "Traceback" in result.error["traceback"]


def test_a_task_of_other_sources_is_refused(cached):
    result = run_task(TASK, cached, "0.0.1+other")
    assert "made by 0.0.1+other" in result.error["message"]


def test_the_key_covers_what_determines_the_outcome():
    key = TASK.key("d")
    for change in ({"stream": "other"}, {"role": "grid"}, {"tuned": "gamma"}):
        assert TASK._replace(**change).key("d") == key
    changes = (
        {"algorithm": "gaptron"},
        {"feedback": "bandit"},
        {"loss": "hinge"},
        {"seed": 4},
        {"settings": {"scale": 2.0}},
        {"radius": 3.0},
        {"shuffle": False},
        {"bound": False},
    )
    assert len({key, TASK.key("e"), *(TASK._replace(**change).key("d") for change in changes)}) == len(changes) + 2
    assert TASK.key(None) != TASK._replace(stream="other").key(None)
