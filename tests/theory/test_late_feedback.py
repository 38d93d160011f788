"""Late feedback with full information: the certificate remains valid, on every path, in any order."""

import copy
import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import NAMES, load
from gaptron.algorithms.protocol import HasLateProof
from gaptron.errors import NoBoundError
from gaptron.types import Feedback
from tests import plain
from tests.conftest import noisy_stream, portrait, random_stream, separable_stream

PROVED = [name for name in NAMES if isinstance(load(name), HasLateProof)]
ORDERS = ("random", "reversed", "at the end, reversed", "right ones first", "at once")


def orders(kind, rng, waiting, y, last):
    """Which of the pending decisions get feedback now: indices into the list."""
    if kind == "at once":
        return range(len(waiting))
    if kind == "random":
        return [i for i in rng.permutation(len(waiting)) if last or rng.random() < 0.1]
    if kind == "right ones first":  # an order that reacts to the draws, which full information allows
        return [i for i, (t, d) in enumerate(waiting) if last or d.label == y[t] or rng.random() < 0.02]
    if last or (kind == "reversed" and len(waiting) >= 40):
        return range(len(waiting) - 1, -1, -1)
    return []


def run(who, s, kind, seed=0):
    """Σ(1 - q(y)) over the rounds, and the rounds in the order in which they were learned from."""
    rng, waiting, expected, learned = np.random.default_rng(seed), [], 0.0, []
    for t, x in enumerate(s.X):
        decision = who.decide(x)
        expected += 1.0 - decision.distribution[s.y[t]]
        waiting.append((t, decision))
        chosen = [waiting[i] for i in orders(kind, rng, waiting, s.y, t == len(s.y) - 1)]
        for at, early in chosen:
            who.learn(early, label=int(s.y[at]))
            learned.append((at, early.distribution[s.y[at]]))
        waiting = [w for w in waiting if w[1] in who._open]
    assert not waiting
    return expected, learned


def rules(who, s):
    """Rules U to compare with: nothing, the weights learned at several sizes, the least squares rule."""
    yield np.zeros((s.K, s.X.shape[1]))
    target = np.eye(s.K)[s.y] - 1 / s.K
    for U in (who.weights, np.linalg.lstsq(s.X, target, rcond=None)[0].T):
        for size in (0.3, 1.0, 3.0, 10.0):
            yield size * U


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("algorithm", PROVED)
def test_expected_mistakes_are_within_the_certificate_whatever_the_order(algorithm, kind):
    for stream in (noisy_stream, separable_stream, random_stream):
        s = stream(300)
        who = gaptron.Learner(algorithm, n_classes=s.K, seed=1)
        expected, _ = run(who, s, kind)
        for U in rules(who, s):
            loss = sum(plain.loss("logistic", U @ x, int(y), 1 / s.K) for x, y in zip(s.X, s.y))
            assert expected <= loss + who.certificate.cost(float(np.linalg.norm(U))) + 1e-9
        assert who.bound(s.X, s.y).value >= expected - 1e-9


@pytest.mark.parametrize("algorithm", PROVED)
def test_delay_is_charged_where_it_costs_and_not_at_once(algorithm):
    """Nothing is learned before the last decision: without the charge the number would be too small."""
    s = separable_stream(400)
    who = gaptron.Learner(algorithm, n_classes=s.K, seed=1)
    expected, _ = run(who, s, "at the end, reversed")
    bound = who.bound(s.X, s.y)
    assert who.certificate.level > 0.1 * expected
    assert bound.value - who.certificate.level < expected <= bound.value
    prompt = gaptron.Learner(algorithm, n_classes=s.K, seed=1)
    run(prompt, s, "at once")
    assert prompt.certificate.level <= 1e-9


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("risk", [1.0, 1.5])
def test_the_sum_of_gaps_by_textbook(kind, risk):
    """gap = r(1 - q(y)) - ℓ(W) + (η/2)‖g‖² at the W of the day and the q of the decision."""
    s = noisy_stream(200)
    who = gaptron.Learner("frugal-gaptron", n_classes=s.K, seed=2, risk=risk)
    twin = gaptron.Learner("frugal-gaptron", n_classes=s.K, seed=2, risk=risk)
    _, learned = run(who, s, kind)
    squares = np.maximum.accumulate((s.X**2).sum(axis=1))
    W, total, at_most, met = np.zeros((s.K, s.X.shape[1])), 0.0, [], 0
    waiting = iter(learned)
    events = []  # how far the decisions had come when each round was learned from
    run_decided(twin, s, kind, events)
    for (t, q), seen in zip(waiting, events):
        eta = who.settings.first / squares[seen]
        p = plain.softmax(eta * W @ s.X[t])
        c = (p - np.eye(s.K)[s.y[t]]) / math.log(2)
        total += risk * (1 - q) + math.log2(p[s.y[t]]) + eta / 2 * (c @ c) * (s.X[t] @ s.X[t])
        W -= np.outer(c, s.X[t])
        at_most.append(total)
        met += 1
    assert met == 200
    assert who._engine.state.total[0].gap == pytest.approx(total, abs=1e-8)
    assert who.certificate.level == pytest.approx(max(0.0, total), abs=1e-8)


def run_decided(who, s, kind, events):
    """The same run again, noting the last example decided before each feedback."""
    real = who.learn
    who.learn = lambda *a, **k: (events.append(who.decided - 1), real(*a, **k))
    run(who, s, kind)


@pytest.mark.parametrize("algorithm", PROVED)
def test_feedback_that_never_comes_leaves_a_certificate_of_the_rest(algorithm):
    s = noisy_stream(120)
    who = gaptron.Learner(algorithm, n_classes=s.K, seed=1)
    kept = [who.decide(x) for x in s.X]
    for t in range(0, 120, 2):
        who.learn(kept[t], label=int(s.y[t]))
    expected = sum(1 - kept[t].distribution[s.y[t]] for t in range(0, 120, 2))
    zero = 60 * math.log2(s.K)
    assert expected <= zero + who.certificate.cost(0.0)
    with pytest.raises(NoBoundError, match="60 decisions have had no feedback"):
        who.bound(s.X[::2], s.y[::2])


@pytest.mark.parametrize("algorithm", PROVED)
def test_under_bandit_feedback_late_feedback_still_ends_the_certificate(algorithm):
    s = noisy_stream(20)
    who = gaptron.Learner(algorithm, n_classes=s.K, feedback="bandit", seed=1)
    first, second = who.decide(s.X[0]), who.decide(s.X[1])
    who.learn(second, correct=True), who.learn(first, correct=False)
    with pytest.raises(NoBoundError, match="late"):
        _ = who.certificate


# --- what learning from late feedback may not change -------------------------------------------------------


def committed(name):
    """The numbers of a state that a decision alone fixes, which late feedback must not change."""
    return {
        "frugal-gaptron": lambda state: [state.total[0][word] for word in ("square", "level", "step", "last")],
        "squarecb": lambda state: [state.clock[0].decisions],
    }[name]


@pytest.mark.parametrize("algorithm", ["frugal-gaptron", "squarecb"])
def test_late_feedback_counts_no_decision(algorithm):
    s = random_stream(40, K=3)
    who = gaptron.Learner(algorithm, n_classes=3, feedback="bandit", seed=1, norm=4.0)
    who.play(s.X[:20], s.y[:20])
    kept = [who.decide(x) for x in s.X[20:]]
    before, decided = committed(algorithm)(who._engine.state), who.decided
    for decision in kept[::-1]:
        who.learn(decision, correct=bool(decision.label == 0))
        assert committed(algorithm)(who._engine.state) == before and who.decided == decided


@pytest.mark.parametrize("algorithm", [*PROVED, "softmax"])
def test_with_full_information_the_new_scores_are_not_mixed_with_the_old_draw(algorithm):
    """p of the row as seen today is a distribution: the label's old probability must not be written into it."""
    s = noisy_stream(120)
    who = gaptron.Learner(algorithm, n_classes=s.K, seed=1, norm=1.0)
    old = who.decide(s.X[0])
    who.play(s.X[1:], s.y[1:])
    today = who.distribution(s.X[:1])[0]
    who.learn(old, label=int(s.y[0]))
    np.testing.assert_array_equal(who._engine.round.p, today)


@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize("algorithm", ["frugal-gaptron", "squarecb", "banditron", "softmax"])
def test_pending_decisions_of_a_file_are_learned_from_as_those_in_memory(algorithm, feedback, tmp_path):
    card = load(algorithm).CARD
    if Feedback[feedback.upper()] not in card.feedback:
        pytest.skip("not its feedback")
    s = noisy_stream(80)
    who = gaptron.Learner(algorithm, n_classes=s.K, feedback=feedback, seed=1, norm=1.0, horizon=100)
    rng = np.random.default_rng(0)
    kept = []
    for t in range(80):
        available = np.unique([int(s.y[t]), *rng.integers(0, s.K, 2)])
        kept.append(who.decide(s.X[t], available=available if t % 3 else None))
    who.save(tmp_path / "model")
    other = gaptron.Learner.load(tmp_path / "model")
    twin = copy.deepcopy(who)
    for each in (who, other, twin):
        pending = each.pending
        for number in sorted(pending, key=lambda n: (n * 37) % 80):
            decision, truth = pending[number], int(s.y[number - 1])
            if feedback == "full":
                each.learn(decision, label=truth)
            elif number % 5 and card.rewards:
                each.learn(decision, reward=0.25 if decision.label == truth else 0.0)
            else:
                each.learn(decision, correct=bool(decision.label == truth))
    assert portrait(other) == portrait(who) == portrait(twin)
