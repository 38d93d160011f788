"""Run one task of a comparison on a cached stream."""

import time
import traceback
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from gaptron.data.examples import Examples, parts_of
from gaptron.errors import GaptronError, SettingError
from gaptron.experiments import action_stream, external
from gaptron.experiments.stream_cache import Arrays, CachedStream, as_matrix
from gaptron.experiments.task import OK, Result, Task, processor
from gaptron.kernels import observed
from gaptron.learner import Learner, describe
from gaptron.learner.playing import best_reward, labels_of, play_chunks
from gaptron.learner.trace import Tally, Trace
from gaptron.streams.rounds import Rounds
from gaptron.streams.rows import Rows
from gaptron.types import Feedback, Integers, Observed, Sparse

MANY_RIGHT = "theorems are about one right action in each round, and here every action has its own reward"
CHUNK = 1 << 25  # bytes of a stream that are copied at a time, at most


def run_task(task: Task, cached: CachedStream, made_by: str, arrays: Arrays | None = None) -> Result:
    """Run a task. Every error becomes a failed result; nothing is raised.

    Args:
        task: the task to run.
        cached: its stream in the cache.
        made_by: the version of gaptron that planned the task; a worker of another version refuses it.
        arrays: the stream's arrays, if the process has mapped them already.

    Returns:
        The result: complete, or failed with the type, message and traceback of the error.
    """
    try:
        if made_by != task.version:
            raise SettingError(f"this process runs gaptron {task.version}, but the tasks were made by {made_by}")
        return _result(task, cached, cached.arrays() if arrays is None else arrays)
    except Exception as problem:
        # Errors that gaptron raises on purpose need no traceback.
        text = "" if isinstance(problem, GaptronError) else traceback.format_exc()
        return task.failed(cached.data, type(problem).__name__, str(problem), text)


class _Played(NamedTuple):
    """What one contender's run adds to a result."""

    trace: Trace
    seconds: float
    used: describe.Values
    bound_reason: str | None
    bound: describe.Values | None = None
    certificate: describe.Values | None = None
    observed: Observed | None = None


def _result(task: Task, cached: CachedStream, arrays: Arrays) -> Result:
    rewards, has_actions = arrays.get("rewards"), action_stream.FIRST in arrays
    order = None
    if task.shuffle and not cached.shuffled:
        order = np.random.default_rng(task.seed).permutation(cached.n_rounds)
    play = _play_actions if has_actions else _play_learner
    played = (_play_external if external.library_of(task.algorithm) else play)(task, cached, arrays, order)
    trace, curve = played.trace, played.trace.curve
    if has_actions:
        reward, best = action_stream.total_reward(arrays, trace.codes), action_stream.best_reward(arrays)
    else:
        reward = None if rewards is None else float(trace.reward.sum())
        best = best_reward(rewards, arrays["y"])
    return Result(
        key=task.key(cached.data),
        status=OK,
        version=task.version,
        processor=processor(),
        data=cached.data,
        prepared=(*cached.prepared, *([f"shuffled (seed {task.seed})"] if task.shuffle else [])),
        rounds=cached.n_rounds,
        n_classes=cached.n_classes,
        n_features=cached.n_features,
        mistakes=trace.mistakes,
        expected_mistakes=trace.expected_mistakes,
        top_mistakes=trace.top_mistakes,
        reward=reward,
        best_reward=best,
        curve={
            "rounds": curve.rounds.tolist(),
            "mistakes": curve.mistakes.tolist(),
            "expected": curve.expected_mistakes.tolist(),
        },
        used=played.used,
        certificate=played.certificate,
        observed=describe.observed(played.observed),
        bound=played.bound,
        bound_reason=played.bound_reason,
        seconds=played.seconds,
        **task.shared,
    )


def _play_external(task: Task, cached: CachedStream, arrays: Arrays, order: Integers | None) -> _Played:
    for name in ("available", "rewards"):
        if name in arrays:
            raise SettingError(f"{task.algorithm} cannot play a stream with {name}: remove it from the stream")
    X, y = as_matrix(arrays, cached.n_features), arrays["y"]
    model = external.make(task.algorithm, task.settings, task.seed)
    rounds = np.arange(len(y)) if order is None else order
    trace, seconds = external.play(model, task.algorithm, X, y, cached.n_classes, rounds)
    return _Played(trace, seconds, external.used(task.algorithm, task.settings, task.seed), external.NO_THEOREM)


def _play_learner(task: Task, cached: CachedStream, arrays: Arrays, order: Integers | None) -> _Played:
    X, y, rewards = as_matrix(arrays, cached.n_features), arrays["y"], arrays.get("rewards")
    learner = _learner(task, cached)
    examples = Examples(parts_of(X), cached.n_features, np.broadcast_to(cached.norm, len(y)))
    rounds = Rounds(examples, y, arrays.get("available"), rewards)
    tally, trace, notes, seconds = play_chunks(learner, _chunks(rounds, X, order), keep_notes=task.bound)
    assert trace is not None  # a stream has rounds
    bound: describe.Values | None = None
    reason: str | None = "not requested for this run"
    evidence: Observed | None = None
    if task.bound:
        # The bound is computed on the stream in its own order, which needs no copy: a sum over rounds does not depend
        # on their order, and the trace is put back into it.
        in_order = trace if order is None else trace.in_order(np.argsort(order))
        bound, reason = describe.bound(learner, examples, labels_of(learner, y), in_order)
        if task.feedback == Feedback.BANDIT.word and rewards is None:  # a reward is neither correct nor wrong
            evidence = _evidence(_chunks(rounds, X, order), cached, trace)
    certificate = describe.certificate(learner, tally, notes)
    return _Played(trace, seconds, describe.settings(learner), reason, bound, certificate, evidence)


def _play_actions(task: Task, cached: CachedStream, arrays: Arrays, order: Integers | None) -> _Played:
    """Play rounds that bring their own actions, in order."""
    rounds = action_stream.examples_of(arrays, cached.n_features)
    y, rewards = arrays.get("y"), arrays.get("rewards")
    known = {"n_features": cached.n_features, "horizon": cached.n_rounds, "norm": cached.norm or None}
    learner = Learner(
        task.algorithm,
        actions=True,
        feedback=task.feedback,
        seed=task.seed,
        observe=False,
        **{**known, **task.settings},
    )
    learner.warm_up(rounds[:1], one_by_one=False)
    start = time.perf_counter()
    trace = learner.play(rounds, y, rewards=rewards)
    seconds = time.perf_counter() - start
    bound: describe.Values | None = None
    reason: str | None = "not requested for this run"
    if task.bound:
        bound, reason = (None, MANY_RIGHT) if y is None else describe.bound(learner, rounds, y, trace)
    tally = Tally()
    tally.add(trace)
    notes = dict(zip(trace.note_names, trace.notes.mean(axis=0).tolist()))
    certificate = describe.certificate(learner, tally, notes)
    return _Played(trace, seconds, describe.settings(learner), reason, bound, certificate)


def _learner(task: Task, cached: CachedStream) -> Learner:
    known = {"radius": task.radius, "horizon": cached.n_rounds, "norm": cached.norm or None}
    return Learner(
        task.algorithm,
        n_classes=cached.n_classes,
        n_features=cached.n_features,
        feedback=task.feedback,
        loss=task.loss,
        seed=task.seed,
        observe=False,  # it would count in the time of a round; `_evidence` collects it after the run
        **{**known, **task.settings},
    )


def _evidence(chunks: Iterable[Rounds], cached: CachedStream, trace: Trace) -> Observed:
    """Return what the feedback of a bandit run proves about every linear rule, as a learner with observe=True would."""
    K, start, correct = cached.n_classes, 0, np.equal(trace.codes, trace.truth).astype(np.float64)
    evidence: observed.Evidence | None = None
    for chunk in chunks:
        if evidence is None:
            evidence = observed.new_evidence(K, cached.n_features, isinstance(chunk.X.rows, Sparse))
        stop = start + len(chunk.y)
        available = np.ones((len(chunk.y), 0), dtype=np.bool_) if chunk.available is None else chunk.available
        feedback = trace.codes[start:stop], correct[start:stop], available
        observed.observe_all(evidence, chunk.X.rows, *feedback, np.ones(K, dtype=np.bool_), np.zeros(K))
        start = stop
    assert evidence is not None  # a stream has rounds
    return observed.proved(evidence, 0)


def _chunks(rounds: Rounds, X: Rows, order: Integers | None) -> Iterator[Rounds]:
    """Yield the rounds in their own order or the given one, in chunks: no process copies all of them.

    Args:
        rounds: all rounds; their examples were checked when the stream was prepared.
        X: the same examples as a matrix.
        order: the order in which to play, if it is not that of the stream.
    """
    examples: Examples = rounds.X
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    step = max(1, CHUNK * len(examples) // max(1, size))
    for start in range(0, len(examples), step):
        if order is None:
            chosen = slice(start, start + step)
            yield rounds.part(examples[chosen], chosen)
        else:
            shuffled = order[start : start + step]
            chunk = Examples(parts_of(X[shuffled]), examples.width, examples.norms[shuffled])
            yield rounds.part(chunk, shuffled)
