"""The laws: what is true of every algorithm, each a function whose name is the sentence.

A law gets a `Case` (which algorithm, how it is built) and `rows`, the function that makes one kind of rows.
An algorithm added to `gaptron.algorithms.NAMES` is covered by being there.
"""

import copy
import inspect
import re
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import NAMES, load
from gaptron.data.examples import sealed_row
from gaptron.kernels import play as kernel
from gaptron.types import UNKNOWN, Feedback, Problem
from tests.algorithms.variants import TRAITS, traits_of, variants_of
from tests.conftest import INTERPRETED, Stream, exact32, portrait, random_stream
from tests.one_round import decide_once

GRAPH = "label-efficient"  # the graph that stands for graph feedback: one label shows all, the others nothing
COMMON = {"norm": 4.0, "radius": 1.0, "horizon": 2000}


class Case(NamedTuple):
    algorithm: str
    loss: str
    feedback: str
    variant: str
    keywords: dict[str, Any]

    @property
    def traits(self) -> frozenset[str]:
        """What some laws must know of it; see `tests.algorithms.variants.TRAITS`."""
        return traits_of(self.algorithm, self.variant)

    @property
    def most(self) -> int:
        """The number of labels it is tried with."""
        return self.file.CARD.most_classes or 4

    def stream(self, T: int = 200, seed: int = 0, K: int = 4) -> Stream:
        return random_stream(T, K=min(K, self.most), seed=seed)

    def learner(self, K: int | None = None, seed: int = 7, **more: Any) -> gaptron.Learner:
        size = {} if "classes" in more else {"n_classes": K or self.most}
        given = {**COMMON, **self.keywords, **size, **more}
        told = GRAPH if self.feedback == "graph" else self.feedback
        return gaptron.Learner(self.algorithm, loss=self.loss, feedback=told, seed=seed, **given)

    @property
    def file(self) -> Any:
        return load(self.algorithm)

    @property
    def partial(self) -> bool:
        return self.feedback != "full"

    def shows(self, learner: gaptron.Learner, code: int, truth: int) -> bool:
        """Does playing `code` show that `truth` is right?"""
        if self.feedback == "graph":
            return bool(learner.problem.graph[code, truth])
        return self.feedback == "full" or code == truth

    def reveal(self, learner: gaptron.Learner, decision: gaptron.Decision, truth: Any) -> None:
        if self.feedback == "bandit":
            learner.learn(decision, correct=bool(decision.label == truth))
        elif self.shows(learner, decision._code, learner.classes.index(truth)):
            learner.learn(decision, label=truth)
        else:
            learner.learn(decision)

    def __str__(self) -> str:
        return "-".join(word for word in (self.algorithm, self.loss, self.feedback, self.variant) if word)


def cases() -> list[Case]:
    found = []
    for name in NAMES:
        card = load(name).CARD
        for loss in card.losses:
            for feedback in card.feedback:
                found.append(Case(name, loss.word, feedback.word, "", {}))
                for word, variant in variants_of(name).items():
                    if loss in (variant.losses or card.losses) and feedback in (variant.feedback or card.feedback):
                        found.append(Case(name, loss.word, feedback.word, word, dict(variant.settings)))
    return found


Law = Callable[[Case, Callable[[np.ndarray], Any]], None]
LAWS: dict[str, Law] = {}


def law(function: Law) -> Law:
    LAWS[function.__name__] = function
    return function


def same_traces(one: gaptron.Trace, other: gaptron.Trace) -> None:
    for part in ("codes", "top", "truth", "truth_probability", "notes"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part), err_msg=part)


def close(one: np.ndarray, other: np.ndarray, to: float) -> None:
    """Equal to `to`, relative to the size of the whole."""
    scale = max(1.0, float(np.abs(other).max(initial=0.0)))
    np.testing.assert_allclose(one, other, rtol=0.0, atol=to * scale)


# --- playing ----------------------------------------------------------------------------------------------


@law
def playing_in_chunks_is_playing_in_one_call(case: Case, rows: Any) -> None:
    X, y, K = case.stream(150)
    whole, parts = case.learner(K), case.learner(K)
    one = whole.play(rows(X), y)
    cuts = [0, 1, 2, 40, 40, 111, 150]
    traces = [parts.play(rows(X)[a:b], y[a:b]) for a, b in pairwise(cuts)]
    joined = traces[0]
    for trace in traces[1:]:
        joined = joined + trace
    same_traces(one, joined)
    assert portrait(whole) == portrait(parts)


@law
def playing_is_deciding_and_learning_round_by_round(case: Case, rows: Any) -> None:
    X, y, K = case.stream(150)
    whole, single = case.learner(K), case.learner(K)
    one = whole.play(rows(X), y)
    table = rows(X)
    for t in range(len(y)):
        decision = single.decide(table[t])
        assert decision.label == one.codes[t]
        assert decision.round == t + 1
        assert single._engine.round.z.argmax() == one.top[t]
        assert decision.distribution[y[t]] == one.truth_probability[t]
        assert decision.propensity == decision.distribution[one.codes[t]]
        np.testing.assert_array_equal(single._engine.round.note, one.notes[t])
        case.reveal(single, decision, int(y[t]))
    assert portrait(whole) == portrait(single)
    np.testing.assert_array_equal(whole.weights, single.weights)


@law
def these_rows_play_as_dense_float64_rows_do(case: Case, rows: Any) -> None:
    X, y, K = case.stream(200, seed=3)
    if "layout" in case.traits and not isinstance(rows(X), np.ndarray):
        return
    plain, other = case.learner(K), case.learner(K)
    one, two = plain.play(X, y), other.play(rows(X), y)
    if "ties" not in case.traits:
        np.testing.assert_array_equal(one.codes, two.codes)
        np.testing.assert_array_equal(one.top, two.top)
    close(two.truth_probability, one.truth_probability, 1e-9)
    close(other.weights, plain.weights, 1e-9)


@law
def same_seed_same_labels_and_other_seed_other_draws(case: Case, rows: Any) -> None:
    X, y, K = case.stream(200)
    one, two, other = case.learner(K, seed=1), case.learner(K, seed=1), case.learner(K, seed=2)
    first = one.play(rows(X), y)
    same_traces(first, two.play(rows(X), y))
    assert portrait(one) == portrait(two)
    second = other.play(rows(X), y)
    if first.variance > 5:  # some draws could well have gone the other way
        assert (first.codes != second.codes).any()
    elif first.variance == 0:
        same_traces(first, second)


# --- the distribution -------------------------------------------------------------------------------------


@law
def p_is_a_distribution_never_below_its_promised_floor(case: Case, rows: Any) -> None:
    X, y, K = case.stream(300, seed=5)
    learner = case.learner(K)
    learner.play(rows(X), y)
    floor = learner.settings.gamma / K if "floor" in case.traits else 0.0
    P = learner.distribution(rows(X))
    assert P.shape == (300, K)
    assert (P >= floor * (1 - 1e-12)).all() and (P >= 0.0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    if "floor" in case.traits:  # and none likelier than the top
        np.testing.assert_array_equal(P[np.arange(300), learner.scores(rows(X)).argmax(axis=1)], P.max(axis=1))
    decision = learner.decide(rows(X)[0])
    np.testing.assert_array_equal(decision.distribution, P[0])


@law
def no_probability_exceeds_one_whatever_the_norms(case: Case, rows: Any) -> None:
    """One label is always right and steps are large: rounding could take its probability above 1."""
    X, _, K = case.stream(60, K=2)
    x = X[:1] / np.linalg.norm(X[0])
    for size in (1e-59, 1.0, 1e59):
        if size > 1e38 and rows(X).dtype == np.float32:
            continue
        many, right = rows(np.repeat(x * size, 60, axis=0)), np.zeros(60, dtype=np.int64)
        ball = {name: value / size for name, value in case.keywords.items() if name == "ball"}
        learner = case.learner(K, norm=2 * size, radius=1 / size, horizon=1, **ball)
        for _ in range(1 if "sampler" in case.traits else 4):
            trace = learner.play(many, right)
            assert (trace.truth_probability <= 1.0).all()
        p = learner.distribution(many[:1])[0]
        assert (p >= 0.0).all() and (p <= 1.0).all()
        np.testing.assert_allclose(p.sum(), 1.0, rtol=0, atol=1e-12)
        assert learner.decide(many[0]).propensity <= 1.0


@law
def a_learner_never_peeks_at_what_was_not_shown(case: Case, rows: Any) -> None:
    if not case.partial:
        return
    X, y, K = case.stream(300)
    honest, spied = case.learner(K), case.learner(K)
    one = honest.play(rows(X), y)
    assert 0 < one.mistakes < 300
    swapped = y.copy()
    for t in range(300):
        code = int(one.codes[t])
        hidden = [k for k in range(K) if k != y[t] and not case.shows(honest, code, k)]
        if hidden and not case.shows(honest, code, int(y[t])):
            swapped[t] = hidden[0]
    assert (swapped != y).any()
    two = spied.play(rows(X), swapped)
    np.testing.assert_array_equal(one.codes, two.codes)
    np.testing.assert_array_equal(one.top, two.top)
    np.testing.assert_array_equal(one.notes, two.notes)
    assert portrait(honest) == portrait(spied)


# --- labels that are not available, fractional rewards ----------------------------------------------


def some_available(y: np.ndarray, K: int, seed: int = 4) -> np.ndarray:
    """Which labels are available, T × K: the true one always, others in half of the rounds."""
    available = np.random.default_rng(seed).random((len(y), K)) < 0.5
    available[np.arange(len(y)), y] = True
    return available


def refused(call: Callable[[], Any], words: str) -> None:
    """It is refused in words that name an algorithm that can."""
    with pytest.raises(gaptron.errors.InputError, match=rf"cannot {words}.*; algorithms that can: .*squarecb"):
        call()


@law
def naming_every_label_as_available_is_naming_none(case: Case, rows: Any) -> None:
    X, y, K = case.stream(120)
    plain, named = case.learner(K), case.learner(K)
    all_labels = np.ones((120, K), dtype=bool)
    if not case.file.CARD.available:
        refused(lambda: named.play(rows(X), y, available=all_labels), "leave labels out")
        refused(lambda: named.decide(rows(X)[0], available=[0, 1]), "leave labels out")
        refused(lambda: named.distribution(rows(X), available=all_labels), "leave labels out")
        assert portrait(named) == portrait(plain)
        return
    same_traces(plain.play(rows(X), y), named.play(rows(X), y, available=all_labels))
    assert portrait(plain) == portrait(named)
    np.testing.assert_array_equal(plain.distribution(rows(X)), named.distribution(rows(X), available=[range(K)] * 120))
    one, two = plain.decide(rows(X)[0]), named.decide(rows(X)[0], available=range(K))
    np.testing.assert_array_equal(one.distribution, two.distribution)
    case.reveal(plain, one, int(y[0])), case.reveal(named, two, int(y[0]))
    assert portrait(plain) == portrait(named)


@law
def labels_left_out_are_never_played_and_the_rest_is_a_distribution(case: Case, rows: Any) -> None:
    if not case.file.CARD.available:
        return
    X, y, K = case.stream(300, seed=8)
    learner, single, available = case.learner(K), case.learner(K), some_available(y, K)
    before = learner.distribution(rows(X), available=available)
    assert not before[~available].any()
    trace = learner.play(rows(X), y, available=available)
    assert available[np.arange(300), trace.codes].all() and available[np.arange(300), trace.top].all()
    P, Z = learner.distribution(rows(X), available=available), learner.scores(rows(X), available=available)
    assert (P >= 0.0).all() and not P[~available].any()
    assert np.isneginf(Z[~available]).all() and np.isfinite(Z[available]).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(learner.predict(rows(X), available=available), Z.argmax(axis=1))
    alone = np.eye(K, dtype=bool)[y]
    np.testing.assert_array_equal(learner.distribution(rows(X), available=alone), alone)
    drawn, expected, spread = np.zeros(K), np.zeros(K), np.zeros(K)
    table = rows(X)
    for t in range(300):
        decision = single.decide(table[t], available=np.flatnonzero(available[t]))
        p = decision.distribution
        assert decision._code == trace.codes[t] and not p[~available[t]].any()
        drawn[decision._code] += 1
        expected, spread = expected + p, spread + p * (1 - p)
        case.reveal(single, decision, int(y[t]))
    assert portrait(single) == portrait(learner)
    assert (np.abs(drawn - expected) <= 4.5 * np.sqrt(spread) + 1e-6).all()


@law
def renaming_labels_renames_which_are_available(case: Case, rows: Any) -> None:
    if not case.file.CARD.available:
        return
    X, y, K = case.stream(100)
    names, available = np.array(["dog", "ant", "cat", "bee"])[:K], some_available(y, K)
    plain, named = case.learner(K), case.learner(classes=names)
    one = plain.play(rows(X), y, available=available)
    two = named.play(rows(X), names[y], available=[set(names[flags]) for flags in available])
    same_traces(one, two)
    np.testing.assert_array_equal(plain.weights, named.weights)


@law
def a_correct_label_has_reward_one_and_a_wrong_one_zero(case: Case, rows: Any) -> None:
    if case.feedback != "bandit":
        return
    X, y, K = case.stream(120)
    plain, paid, each = case.learner(K), case.learner(K), case.learner(K)
    if not case.file.CARD.rewards:
        fresh = case.learner(K)
        refused(lambda: fresh.play(rows(X), y, rewards=np.full(120, 0.5)), "learn from rewards between")
        decision = fresh.decide(rows(X)[0])
        refused(lambda: fresh.learn(decision, reward=0.5), "learn from rewards between")
    one = plain.play(rows(X), y)
    same_traces(one, paid.play(rows(X), y, rewards=np.ones(120)))
    assert portrait(plain) == portrait(paid)
    table = rows(X)
    for t in range(120):
        decision = each.decide(table[t])
        each.learn(decision, reward=float(decision.label == y[t]))
    assert portrait(plain) == portrait(each)


@law
def rewards_of_every_label_are_the_feedback_on_the_labels_played(case: Case, rows: Any) -> None:
    if case.feedback != "bandit":
        return
    X, _, K = case.stream(150)
    rng = np.random.default_rng(9)
    rewards = (rng.random((150, K)) < 0.6) * (rng.random((150, K)) if case.file.CARD.rewards else 1.0)
    whole, single = case.learner(K), case.learner(K)
    one = whole.play(rows(X), rewards=rewards)
    table = rows(X)
    for t in range(150):
        decision = single.decide(table[t])
        assert decision.label == one.codes[t]
        assert np.isclose(one.truth_probability[t], decision.distribution @ rewards[t], atol=1e-12)
        single.learn(decision, reward=rewards[t, decision._code])
    one_by_one, at_once = portrait(single), portrait(whole)
    # That several labels could be right ends the bound, and feedback one by one does not reveal that.
    assert at_once.pop("fractions") == "True" and one_by_one.pop("fractions") == str(case.file.CARD.rewards)
    assert at_once == one_by_one
    np.testing.assert_array_equal(one.reward, rewards[np.arange(150), one.codes])
    assert one.mistakes == (one.reward == 0).sum() and np.isfinite(whole.weights).all()


# --- manners ----------------------------------------------------------------------------------------------


def _parts(X: Any) -> list[np.ndarray]:
    return [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [X]


@law
def inputs_are_never_written_and_may_be_read_only(case: Case, rows: Any) -> None:
    X, y, K = case.stream(60)
    mine, labels = rows(X), y.copy()
    before = [part.copy() for part in _parts(mine)]
    for part in [*_parts(mine), labels]:
        part.flags.writeable = False
    learner = case.learner(K)
    trace = learner.play(mine, labels)
    learner.predict(mine)
    decision = learner.decide(mine[0])
    case.reveal(learner, decision, int(labels[0]))
    for now, then in zip(_parts(mine), before):
        np.testing.assert_array_equal(now, then)
    np.testing.assert_array_equal(labels, y)
    same_traces(trace, case.learner(K).play(rows(X), y))


@law
def looking_changes_nothing(case: Case, rows: Any) -> None:
    X, y, K = case.stream(120)
    quiet, looked = case.learner(K), case.learner(K)
    looked.predict(rows(X)), looked.scores(rows(X)), looked.distribution(rows(X))
    assert portrait(quiet) == portrait(looked)
    quiet.play(rows(X)[:60], y[:60]), looked.play(rows(X)[:60], y[:60])
    before = portrait(looked)
    Z, P, labels = looked.scores(rows(X)), looked.distribution(rows(X)), looked.predict(rows(X))
    _ = looked.weights, looked.classes, repr(looked)
    assert portrait(looked) == before
    np.testing.assert_array_equal(labels, Z.argmax(axis=1))
    seen, mine = Z[:60], X[:60] @ looked.weights.T  # a shift common to all labels says nothing
    if not {"mixture", "own row"} & case.traits:
        close(seen - seen.mean(axis=1, keepdims=True), mine - mine.mean(axis=1, keepdims=True), 1e-9)
    assert P.shape == Z.shape == (120, K)
    same_traces(quiet.play(rows(X)[60:], y[60:]), looked.play(rows(X)[60:], y[60:]))
    assert portrait(quiet) == portrait(looked)


@law
def weights_handed_out_are_a_copy(case: Case, rows: Any) -> None:
    X, y, K = case.stream(50)
    learner = case.learner(K)
    learner.play(rows(X), y)
    before = portrait(learner)
    W = learner.weights
    assert W.shape == (K, X.shape[1])
    W[:] = 99.0
    assert portrait(learner) == before


@law
def weights_stay_finite_on_a_long_hostile_stream(case: Case, rows: Any) -> None:
    """Always the label that scores least, rows of all sizes, some zero, some nearly so."""
    blocks, size, d = (3, 40, 5) if INTERPRETED else (100, 1000, 5)
    K = case.most
    if "sampler" in case.traits:
        blocks, size = 6, 40
    rng = np.random.default_rng(11)
    learner = case.learner(K, norm=1000.0, horizon=blocks * size)
    for _ in range(blocks):
        X = rng.normal(size=(size, d))
        X *= 10.0 ** rng.uniform(-30, 3, size=(size, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
        X[rng.random(size) < 0.01] = 0.0
        X = exact32(X * (1 - 1e-6))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gaptron.OutlierWarning)  # of all sizes means that some are far longer
            trace = learner.play(rows(X), learner.scores(rows(X)).argmin(axis=1))
        assert np.isfinite(trace.truth_probability).all() and np.isfinite(trace.notes).all()
        assert np.isfinite(learner.weights).all()
    P = learner.distribution(rows(X))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@law
def rows_at_the_edges_of_the_range_are_rows_like_others(case: Case, rows: Any) -> None:
    """Norms from 1e-60 to 1e60 are taken: at both ends, and side by side, nothing overflows or becomes NaN."""
    X, y, K = case.stream(90)
    lengths = np.linalg.norm(X, axis=1)
    X = X[lengths > 0] / lengths[lengths > 0, None]
    for least, most in ((1e-59, 1e-59), (1e59, 1e59), (1e-59, 1e59)):
        if most > 1e38 and rows(X).dtype == np.float32:
            continue
        ball = {name: value / most for name, value in case.keywords.items() if name == "ball"}
        learner = case.learner(K, norm=2 * most, radius=1 / most, **ball)
        scaled = X * np.where(np.arange(len(X)) % 2 == 0, least, most)[:, None]
        trace = learner.play(rows(scaled), y[: len(X)])
        assert np.isfinite(trace.truth_probability).all() and np.isfinite(trace.notes).all()
        assert np.isfinite(learner.weights).all()
        np.testing.assert_allclose(learner.distribution(rows(scaled)).sum(axis=1), 1.0, rtol=0, atol=1e-9)


# --- symmetries -------------------------------------------------------------------------------------------


@law
def renaming_classes_renames_predictions(case: Case, rows: Any) -> None:
    X, y, K = case.stream(150)
    names = np.array(["dog", "ant", "cat", "bee"])[:K]
    plain, named = case.learner(K), case.learner(classes=names)
    one, two = plain.play(rows(X), y), named.play(rows(X), names[y])
    same_traces(one, two)
    np.testing.assert_array_equal(two.labels, names[one.codes])
    np.testing.assert_array_equal(named.predict(rows(X)), names[plain.predict(rows(X))])
    np.testing.assert_array_equal(plain.weights, named.weights)
    decision = named.decide(rows(X)[0])
    assert decision.label == names[plain.decide(rows(X)[0]).label]
    case.reveal(named, decision, "dog")


@law
def no_label_is_special_once_ties_are_broken(case: Case, rows: Any) -> None:
    """Swapping labels 1 and 2 swaps their weights. Ties go to the lowest code, so the first two rounds break them
    in a way that 1 and 2 share (label 0 tops the all-zero scores, and is the first rival). The draw reads
    labels in order, so under bandit feedback the seed would have to be swapped too: full information only."""
    if case.partial or case.most < 3 or {"sampler", "label order"} & case.traits:
        return
    X, y, _ = case.stream(150, K=3, seed=9)
    X[1] = exact32(X[0] + X[1] * 0.25)
    assert X[0] @ X[1] > 0
    y[:2] = 1, 2
    swap = np.array([0, 2, 1])
    one, two = case.learner(3), case.learner(3)
    first, second = one.play(rows(X), y), two.play(rows(X), swap[y])
    np.testing.assert_array_equal(swap[first.top], second.top)
    close(second.truth_probability, first.truth_probability, 1e-9)
    close(two.weights[swap], one.weights, 1e-9)


@law
def rotating_features_changes_nothing(case: Case, rows: Any) -> None:
    if {"axes", "mixture"} & case.traits:
        return
    X, y, K = case.stream(200, seed=4)
    X = exact32(X + np.random.default_rng(1).normal(size=X.shape) / 4)  # rows with disjoint supports tie exactly
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))
    plain, turned = case.learner(K), case.learner(K)
    one = plain.play(rows(X), y)
    XQ = X @ Q if rows(X).dtype == np.float64 else X.astype(np.float32) @ Q.astype(np.float32)
    two = turned.play(rows(XQ), y)
    to = 1e-9 if rows(X).dtype == np.float64 else 1e-4
    close(turned.weights @ Q.T, plain.weights, to)
    close(two.truth_probability, one.truth_probability, to)
    np.testing.assert_array_equal(one.codes, two.codes)


# --- late feedback -----------------------------------------------------------------------------------------


def _open_decisions(
    case: Case, rows: Any, s: Stream, last: int = 100
) -> tuple[gaptron.Learner, list[gaptron.Decision]]:
    learner = case.learner(s.K)
    learner.play(rows(s.X)[:60], s.y[:60])
    table = rows(s.X)
    return learner, [learner.decide(table[t]) for t in range(60, last)]


@law
def late_feedback_is_learned_as_if_the_example_were_scored_today(case: Case, rows: Any) -> None:
    """By hand: score the row with today's weights, put in the probability of the draw, learn. Nothing is committed."""
    s = case.stream(100)
    learner, decisions = _open_decisions(case, rows, s)
    state, file = copy.deepcopy(learner._engine.state), case.file
    rd, work = (
        copy.deepcopy(learner._engine.round),
        file.scratch(learner.settings, learner.problem, learner._engine.sparse),
    )
    evidence = copy.deepcopy(learner._engine.evidence)
    count, propensities = copy.deepcopy(learner._engine.count), [d.distribution for d in decisions]
    for i in np.random.default_rng(3).permutation(39):  # all but the newest, whose scores are still those of now
        truth, code = int(s.y[60 + i]), decisions[i]._code
        case.reveal(learner, decisions[i], truth)
        shown = truth if case.shows(learner, code, truth) else UNKNOWN
        x, u = sealed_row(decisions[i]._x), decisions[i]._u
        decide_once(learner.settings, state, x, rd, work, u)
        if case.partial:
            rd.p[code] = propensities[i][code]
        for name, saved in zip(learner._engine.late_fields, decisions[i]._saved_scratch or ()):
            getattr(work if name in work._fields else rd, name).view(np.ndarray)[...] = saved
        rd.feedback[0].reward = float(shown == code)
        rd.feedback[0].propensity = propensities[i][code if shown == UNKNOWN else shown]
        done = np.zeros(1, dtype=np.bool_)
        kernel.learn_once(
            learner.settings,
            state,
            x,
            rd,
            work,
            code,
            shown,
            count,
            done,
            evidence,
            np.zeros(learner.problem.n_classes),
        )
        assert done[0]
    for mine, theirs in zip((*learner._engine.state, *learner._engine.evidence), (*state, *evidence)):
        np.testing.assert_array_equal(mine, theirs)
    for decision, p in zip(decisions, propensities):
        np.testing.assert_array_equal(decision.distribution, p)  # learning writes nothing there
    assert learner.rounds == 99


@law
def feedback_on_the_newest_decision_is_not_late(case: Case, rows: Any) -> None:
    """Others may still be open: what was decided for this one is what is learned from."""
    s = case.stream(80)
    (one, first), (two, second) = _open_decisions(case, rows, s, 80), _open_decisions(case, rows, s, 80)
    case.reveal(one, first[-1], int(s.y[79]))
    kept = (
        kernel.learn_once,
        two.settings,
        two._engine.state,
        sealed_row(second[-1]._x),
        two._engine.round,
        two._engine.scratch,
        second[-1]._code,
    )
    truth = int(s.y[79])
    shown = truth if case.shows(two, second[-1]._code, truth) else UNKNOWN
    beside = two._engine.evidence, two._engine.evidence_buffer
    two._engine.round.feedback[0].reward = float(shown == second[-1]._code)
    two._engine.round.feedback[0].propensity = second[-1].distribution[second[-1]._code if shown == UNKNOWN else shown]
    kept[0](*kept[1:], shown, two._engine.count, np.zeros(1, dtype=np.bool_), *beside)
    for mine, theirs in zip(one._engine.state, two._engine.state):
        np.testing.assert_array_equal(mine, theirs)


# --- files ------------------------------------------------------------------------------------------------


@law
def save_load_continue_is_continue(case: Case, rows: Any) -> None:
    """Two late decisions are open when the file is written; the last rounds are decided one by one."""
    s = case.stream(80)
    table, learner = rows(s.X), case.learner(s.K)
    learner.play(table[:59], s.y[:59])
    waiting = [learner.decide(table[59]), learner.decide(table[60])]
    case.reveal(learner, learner.decide(table[61]), int(s.y[61]))
    with TemporaryDirectory() as folder:
        learner.save(Path(folder, "model"))
        other = gaptron.Learner.load(Path(folder, "model"))
    assert portrait(other) == portrait(learner)
    for one, two in zip(learner._engine.state, other._engine.state):
        np.testing.assert_array_equal(one, two)
    assert list(other.pending) == list(learner.pending) == [60, 61]
    for mine, t in zip(reversed(waiting), (60, 59)):
        theirs = other.pending[mine.round]
        assert (theirs.label, theirs.propensity) == (mine.label, mine.propensity)
        case.reveal(learner, mine, int(s.y[t])), case.reveal(other, theirs, int(s.y[t]))
    same_traces(learner.play(table[62:75], s.y[62:75]), other.play(table[62:75], s.y[62:75]))
    for t in range(75, 80):
        mine, theirs = learner.decide(table[t]), other.decide(table[t])
        assert mine.label == theirs.label
        case.reveal(learner, mine, int(s.y[t])), case.reveal(other, theirs, int(s.y[t]))
    assert portrait(other) == portrait(learner)
    np.testing.assert_array_equal(other.weights, learner.weights)


# --- papers -----------------------------------------------------------------------------------------------


@law
def recommend_gives_settings_that_init_accepts(case: Case, rows: Any) -> None:
    file = case.file
    sparse = hasattr(rows(np.zeros((1, 1))), "indptr")
    base = case.learner().problem
    own = {k: v for k, v in case.keywords.items() if k not in COMMON}
    for K, d, X, D, T in [(2, 1, 1.0, 0.1, 1), (3, 7, 0.01, 5.0, 10**6), (50, 2, 30.0, 1.0, 1000)]:
        if case.most == 2 < K:
            continue
        problem = Problem(K, d, base.feedback, base.loss, X, D, T)
        settings = file.recommend(problem, **own)
        assert type(settings).__name__ == type(case.learner().settings).__name__
        state = file.init(settings, problem, sparse)
        W = file.weights(state, sparse)
        assert W.shape == (K, d) and not W.any()
        assert file.scratch(settings, problem, sparse) is not None
        assert isinstance(file.theorem(problem, settings), str) and file.theorem(problem, settings)


@law
def the_docstring_names_a_paper_its_feedback_and_its_cost(case: Case, rows: Any) -> None:
    text = case.file.__doc__
    assert re.search(r"\b(19|20)\d\d\b", text)
    assert "Feedback:" in text and "Cost:" in text
    told = text.split("Feedback:")[1].split(".")[0]
    assert set(re.findall(r"\w+", told)) == {f.word for f in case.file.CARD.feedback}


@law
def the_card_is_filled(case: Case, rows: Any) -> None:
    card = case.file.CARD
    assert re.search(r"\b(19|20)\d\d\b", card.paper)
    assert card.feedback and card.losses and card.time and card.memory
    assert bool(card.regret_full) == (Feedback.FULL in card.feedback)
    assert bool(card.regret_bandit) == (Feedback.BANDIT in card.feedback)
    assert case.traits <= set(TRAITS)
    given = set(inspect.signature(case.file.recommend).parameters)
    assert {*card.words, *card.grid} <= given
    assert set(case.keywords) - {"radius", "horizon"} <= given
