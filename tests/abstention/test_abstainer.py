"""The public API of `Abstainer`: what it accepts, what it refuses, and that a refusal changes nothing."""

import copy
import json
import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import gaptron
from gaptron import ABSTAIN, Abstainer
from gaptron.abstention import AbstainerTrace
from gaptron.errors import DecisionError, InputError, NoBoundError, SettingError
from tests.abstention.streams import ADVICE, one_good, random_advice
from tests.conftest import REPOSITORY, needs_compiler

X, Y = random_advice(120, 4)
COSTS = np.random.default_rng(2).uniform(0.0, 0.9, 120)
ALGORITHMS = ["adahedge", "exponential-weights"]


def portrait(abstainer):
    """All that it is, copied."""
    counts = abstainer.decided, abstainer.rounds, abstainer._late
    return counts, [part.tobytes() for part in abstainer._experts], repr(abstainer._rng.bit_generator.state)


def one_by_one(abstainer, X, y, costs, known=True):
    decisions = []
    for x, label, cost in zip(X, y, costs):
        decision = abstainer.decide(x, cost=cost if known else None)
        abstainer.learn(decision, label, None if known else cost)
        decisions.append(decision)
    return decisions


# --- laws -------------------------------------------------------------------------------------------------


@pytest.mark.sample(8)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", ADVICE)
def test_playing_at_once_in_chunks_and_one_by_one_give_the_same_bits(algorithm, known, name):
    X, y = ADVICE[name](T=120)
    make = lambda: Abstainer(X.shape[1], algorithm, cost=0.3, seed=7)  # noqa: E731
    whole, parts, single = make(), make(), make()
    trace = whole.play(X, y, COSTS, known=known)
    pieces = [parts.play(X[a:b], y[a:b], COSTS[a:b], known=known) for a, b in ((0, 1), (1, 50), (50, 50), (50, 120))]
    decisions = one_by_one(single, X, y, COSTS, known)
    total = pieces[0] + pieces[1] + pieces[2] + pieces[3]
    for field in ("predictions", "votes", "labels", "costs", "expected_losses"):
        np.testing.assert_array_equal(getattr(trace, field), getattr(total, field))
    np.testing.assert_array_equal(trace.predictions, [decision.prediction for decision in decisions])
    np.testing.assert_array_equal(trace.votes, [decision.vote for decision in decisions])
    assert portrait(whole) == portrait(parts) == portrait(single)


INTERPRET = """
import json
from gaptron import Abstainer
from tests.abstention.streams import ADVICE
for algorithm in ("adahedge", "exponential-weights"):
    for name in ADVICE:
        X, y = ADVICE[name](T=120)
        trace = Abstainer(X.shape[1], algorithm, cost=0.3, seed=7).play(X, y)
        print(json.dumps([trace.predictions.tolist(), trace.votes.tolist(), trace.expected_losses.tolist()]))
"""


@needs_compiler
def test_compiled_equals_interpreted():
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", INTERPRET], env=env, cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    cases = [(algorithm, name) for algorithm in ALGORITHMS for name in ADVICE]
    for line, (algorithm, name) in zip(done.stdout.splitlines(), cases, strict=True):
        X, y = ADVICE[name](T=120)
        trace = Abstainer(X.shape[1], algorithm, cost=0.3, seed=7).play(X, y)
        predictions, votes, expected = json.loads(line)
        np.testing.assert_array_equal(trace.predictions, predictions)
        np.testing.assert_allclose(trace.votes, votes, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(trace.expected_losses, expected, rtol=1e-12, atol=1e-12)


def test_a_long_stream_is_played_in_chunks_with_the_same_result():
    X, y = random_advice(20_000, 3)
    whole, parts, seen = Abstainer(3, cost=0.2, seed=1), Abstainer(3, cost=0.2, seed=1), []
    whole.play(X, y, progress=seen.append)
    assert sum(seen) == 20_000 and len(seen) > 1
    for start in range(0, 20_000, 999):
        parts.play(X[start : start + 999], y[start : start + 999])
    assert portrait(whole) == portrait(parts)


def test_other_kinds_of_numbers_are_the_same_advice():
    votes = np.sign(X)
    kinds = [votes, votes.astype(np.float32), votes.astype(int), np.asfortranarray(votes), votes.tolist()]
    traces = [Abstainer(4, cost=0.3, seed=0).play(kind, label) for kind, label in zip(kinds, [Y, Y * 1.0, [*Y], Y, Y])]
    for trace in traces[1:]:
        np.testing.assert_array_equal(trace.predictions, traces[0].predictions)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_draws_do_not_touch_the_expectations(algorithm):
    runs = [Abstainer(4, algorithm, cost=0.3, seed=seed) for seed in range(300)]
    traces = [run.play(X, Y) for run in runs]
    assert len({run.expected_loss for run in runs}) == 1
    assert len({trace.loss for trace in traces}) > 10
    losses = np.array([trace.loss for trace in traces])
    assert abs(losses.mean() - runs[0].expected_loss) < 4 * losses.std() / np.sqrt(len(losses))


def test_renaming_the_labels_renames_the_predictions():
    one, two = Abstainer(4, cost=0.3, seed=0).play(X, Y), Abstainer(4, cost=0.3, seed=0).play(-X, -Y)
    np.testing.assert_array_equal(one.predictions, -two.predictions)


def test_inputs_are_not_written_and_a_decision_keeps_its_own():
    X1, y1 = X.copy(), Y.copy()
    Abstainer(4, cost=0.3).play(X1, y1)
    np.testing.assert_array_equal(X1, X)
    np.testing.assert_array_equal(y1, Y)
    one, two = Abstainer(4, cost=0.3, seed=0), Abstainer(4, cost=0.3, seed=0)
    row = X[0].copy()
    decision = one.decide(row)
    row[:] = 1.0
    one.learn(decision, 1)
    two.learn(two.decide(X[0]), 1)
    assert portrait(one) == portrait(two)


def test_experts_that_agree_are_never_doubted():
    trace = Abstainer(5, cost=0.1, seed=0).play(np.tile([[1.0], [-1.0]], (500, 5)), np.tile([1, -1], 500))
    assert trace.mistakes == trace.abstentions == 0


# --- what a decision and a trace say ------------------------------------------------------------------------


def test_a_decision_says_what_it_was_drawn_from():
    abstainer = Abstainer(2, cost=0.3, seed=1)
    decision = abstainer.decide([-1.0, 0.5])
    assert decision.vote == -0.25 and decision.round == 1
    np.testing.assert_allclose(decision.distribution, [0.25, 0.75, 0.0])
    assert decision.prediction == ABSTAIN and decision.propensity == 0.75
    assert "vote=-0.25" in repr(decision) and "ABSTAIN" in repr(decision)
    expensive = abstainer.decide([-1.0, 0.5], cost=0.7)
    np.testing.assert_allclose(expensive.distribution, [0.625, 0.0, 0.375])
    assert expensive.prediction in (-1, 1)


def test_a_coin_replaces_abstaining_above_a_half():
    X, y = random_advice(4000, 4)
    trace = Abstainer(4, cost=0.6, seed=0).play(X, y)
    assert trace.abstentions == 0 and (trace.costs == 0.5).all()
    assert trace.loss == trace.mistakes
    assert abs(trace.loss - trace.expected_loss) < 4 * np.sqrt(4000 / 4)


def test_a_trace_adds_up():
    abstainer = Abstainer(6, cost=0.2, seed=0)
    trace = abstainer.play(*one_good())
    assert trace.loss == pytest.approx(trace.mistakes + 0.2 * trace.abstentions)
    assert set(np.unique(trace.predictions)) <= {-1, 0, 1}
    answered = ~trace.abstained
    assert trace.mistakes == np.sum(trace.predictions[answered] != trace.labels[answered])
    curve = trace.curve
    assert curve.rounds[-1] == trace.rounds == 300
    assert curve.loss[-1] == pytest.approx(trace.loss)
    assert curve.expected_loss[-1] == pytest.approx(trace.expected_loss) == abstainer.expected_loss
    assert (curve.mistakes[-1], curve.abstentions[-1]) == (trace.mistakes, trace.abstentions)
    assert repr(trace).startswith("AbstainerTrace(rounds=300, mistakes=")
    assert abstainer.rounds == 300 and abstainer.cost == 0.2
    assert abstainer.weights.argmax() == 3 and abstainer.weights.sum() == pytest.approx(1.0)
    assert repr(abstainer) == "Abstainer(6, 'adahedge', cost=0.2, rounds=300)"


def test_nothing_played_is_an_empty_trace():
    abstainer = Abstainer(4, cost=0.1)
    trace = abstainer.play(np.zeros((0, 4)), [])
    assert isinstance(trace, AbstainerTrace) and trace.rounds == 0 and trace.loss == 0.0
    assert len(trace.curve.rounds) == 0


def test_a_cost_in_learn_replaces_the_constructors():
    one, two = Abstainer(4, cost=0.4, seed=0), Abstainer(4, seed=0)
    one_by_one(one, X, Y, COSTS / 2, known=False)
    two.play(X, Y, COSTS / 2)
    assert one.expected_loss == two.expected_loss


# --- refusals -----------------------------------------------------------------------------------------------


def spoiled(value, at=(3, 2)):
    bad = X.copy()
    bad[at] = value
    return bad


BAD_PLAYS = {
    "above-one": (lambda: (spoiled(1.5), Y), "round 3: expert 2 predicts 1.5"),
    "below": (lambda: (spoiled(-1.01), Y), "round 3: expert 2 predicts -1.01"),
    "nan": (lambda: (spoiled(np.nan), Y), "round 3: expert 2 predicts nan"),
    "inf": (lambda: (spoiled(np.inf), Y), "round 3: expert 2 predicts inf"),
    "too-few": (lambda: (X[:, :3], Y), "there are 3 predictions per round, but 4 experts"),
    "too-many": (lambda: (np.hstack([X, X]), Y), "8 predictions per round"),
    "one-dimension": (lambda: (X[0], Y), "two dimensions"),
    "ragged": (lambda: ([[1, 1], [1]], [1, 1]), "rectangular"),
    "words": (lambda: ([["a"] * 4], [1]), "numbers"),
    "complex": (lambda: (X.astype(complex), Y), "numbers"),
    "label-zero": (lambda: (X, np.where(np.arange(120) == 7, 0, Y)), "round 7: label 0 is neither -1 nor"),
    "label-nan": (lambda: (X, np.where(np.arange(120) == 7, np.nan, Y)), "round 7: label nan"),
    "label-half": (lambda: (X, Y * 0.5), "round 0: label"),
    "label-bool": (lambda: (X, Y > 0), "not bool"),
    "label-word": (lambda: (X, ["yes"] * 120), "labels must be"),
    "labels-short": (lambda: (X, Y[:-1]), "120 rounds of predictions but 119 labels"),
    "labels-2d": (lambda: (X, Y[:, None]), "one dimension"),
    "cost-negative": (lambda: (X, Y, np.where(np.arange(120) == 7, -0.1, 0.2)), "round 7: cost -0.1"),
    "cost-nan": (lambda: (X, Y, np.where(np.arange(120) == 7, np.nan, 0.2)), "round 7: cost nan"),
    "cost-infinite": (lambda: (X, Y, np.inf), "round 0: cost inf"),
    "costs-short": (lambda: (X, Y, [0.1] * 119), "120 rounds, but costs has shape"),
    "cost-word": (lambda: (X, Y, "cheap"), "costs must be an array of numbers"),
    "cost-none": (lambda: (X, Y, None), "cost of abstaining is missing"),
}


@pytest.mark.parametrize("case", BAD_PLAYS)
def test_bad_data_is_refused_and_changes_nothing(case):
    data, message = BAD_PLAYS[case]
    abstainer = Abstainer(4, seed=0)
    abstainer.play(X[:20], Y[:20], 0.3)
    before = portrait(abstainer)
    with pytest.raises(InputError, match=message):
        given = data()
        abstainer.play(*given, *([0.2] if len(given) == 2 else []))
    assert portrait(abstainer) == before


BAD_ROWS = {
    "above-one": ([0.0, 1.5, 0.0, 0.0], "expert 1 predicts 1.5"),
    "nan": ([0.0, 0.0, 0.0, np.nan], "expert 3 predicts nan"),
    "too-few": ([0.0], "1 predictions per round, but 4"),
    "a-matrix": (X[:2], "those of one round"),
    "a-number": (0.5, "those of one round"),
    "words": (["a"] * 4, "numbers"),
    "nothing": (None, "numbers"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_round_is_refused_and_changes_nothing(case):
    x, message = BAD_ROWS[case]
    abstainer = Abstainer(4, cost=0.2, seed=0)
    before = portrait(abstainer)
    with pytest.raises(InputError, match=message):
        abstainer.decide(x)
    with pytest.raises(InputError, match="cost=-1"):
        abstainer.decide(X[0], cost=-1)
    assert portrait(abstainer) == before


def test_bad_feedback_is_refused_and_may_be_given_again():
    abstainer, other = Abstainer(4, seed=0), Abstainer(4, seed=0)
    decision = abstainer.decide(X[0])
    before = portrait(abstainer)
    for label in (0, 2, None, "yes", np.nan, [1], True):
        with pytest.raises(InputError, match="neither -1 nor"):
            abstainer.learn(decision, label, 0.1)
    for cost in (-0.1, np.nan, np.inf, "cheap", True):
        with pytest.raises(InputError, match="cost="):
            abstainer.learn(decision, 1, cost)
    with pytest.raises(InputError, match="cost of abstaining is missing"):
        abstainer.learn(decision, 1)
    with pytest.raises(DecisionError, match="another"):
        other.learn(decision, 1, 0.1)
    assert portrait(abstainer) == before
    abstainer.learn(decision, 1, 0.1)
    after = portrait(abstainer)
    with pytest.raises(DecisionError, match="round 1 was already learned from"):
        abstainer.learn(decision, 1, 0.1)
    assert portrait(abstainer) == after


def test_a_cost_is_given_once():
    abstainer = Abstainer(4, seed=0)
    with pytest.raises(DecisionError, match="was given to decide"):
        abstainer.learn(abstainer.decide(X[0], cost=0.2), 1, 0.3)
    expensive = Abstainer(4, cost=0.8, seed=0)
    with pytest.raises(DecisionError, match="was given to decide"):
        expensive.learn(expensive.decide(X[0]), 1, 0.3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_experts": 0}, "n_experts=0"),
        ({"n_experts": 2.5}, "n_experts=2.5"),
        ({"n_experts": True}, "n_experts=True"),
        ({"algorithm": "magic"}, "adahedge, exponential-weights"),
        ({"cost": -1}, "cost=-1"),
        ({"cost": "x"}, "cost='x'"),
        ({"cost": float("nan")}, "cost=nan"),
        ({"algorithm": "exponential-weights"}, "below 1/2"),
        ({"algorithm": "exponential-weights", "cost": 0.5}, "below 1/2"),
    ],
)
def test_impossible_settings_are_named(given, message):
    with pytest.raises(SettingError, match=message):
        Abstainer(**{"n_experts": 3, **given})


def test_no_bound_before_the_first_round_or_with_missing_feedback():
    abstainer = Abstainer(4, cost=0.2, seed=0)
    with pytest.raises(NoBoundError, match="no rounds"):
        abstainer.bound()
    trace = abstainer.play(X, Y)
    with pytest.raises(InputError, match="120 were played"):
        abstainer.bound(trace + trace)
    abstainer.decide(X[0])
    with pytest.raises(NoBoundError, match="1 decisions have no feedback"):
        abstainer.bound()


def test_a_play_past_a_pending_decision_counts_as_late():
    abstainer = Abstainer(4, cost=0.2, seed=0)
    waiting = abstainer.decide(X[0])
    abstainer.play(X[1:], Y[1:])
    abstainer.learn(waiting, Y[0])
    with pytest.raises(NoBoundError, match="late"):
        abstainer.bound()


def test_it_is_importable_from_the_package():
    assert gaptron.Abstainer is Abstainer and gaptron.ABSTAIN == 0


def test_the_state_does_not_grow_with_the_rounds():
    X, y = random_advice(2_000, 20)
    abstainer = Abstainer(20, cost=0.2, seed=0)
    abstainer.play(X, y)
    tracemalloc.start()
    abstainer.play(X, y)
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    for _ in range(5):
        abstainer.play(X, y)
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000
    assert peak - before < X.nbytes  # a trace and the draws, but no second copy of the advice


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_copies_continue_alike(again):
    X, y = random_advice(60, 4)
    one = Abstainer(4, cost=0.3, seed=5)
    one.play(X[:30], y[:30])
    other = again(one)
    np.testing.assert_array_equal(other.play(X[30:], y[30:]).predictions, one.play(X[30:], y[30:]).predictions)
    assert other.certificate == one.certificate


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_cost_above_one_half_that_a_coin_replaced_keeps_the_bound(one_by_one):
    """The round then costs 1/2 in expectation. A cost that becomes known with the label ends the bound."""
    rng = np.random.default_rng(0)
    X, y = rng.choice([-1.0, 1.0], size=(30, 3)), rng.choice([-1, 1], size=30)
    known, late = Abstainer(3, cost=0.8, seed=0), Abstainer(3, cost=0.1, seed=0)
    if one_by_one:
        for x, label in zip(X, y):
            known.learn(known.decide(x), int(label))
            late.learn(late.decide(x), int(label), cost=0.8)
    else:
        known.play(X, y)
        late.play(X, y, costs=0.8, known=False)
    assert known._experts.totals[0].max_cost == 0.5
    assert known.bound().measured <= known.bound().regret < np.inf
    with pytest.raises(NoBoundError, match=r"a cost of 0\.8 became known after its prediction"):
        late.bound()
