"""Advised Gaptron for actions with features, as a user meets it; its experts against textbook numpy."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from gaptron import ActionExamples, Learner, ModelFileError, SettingError
from gaptron.learner import model_file
from tests import plain
from tests.conftest import portrait
from tests.plain_actions import LAYOUTS, give_feedback, learner, rounds, together, world

REPOSITORY = Path(__file__).parents[2]
close = np.testing.assert_allclose


def advised(feedback="bandit", **more):
    return learner(feedback, "advised-gaptron", **more)


def clicks(T=200, seed=0, d=5, context=2, most=6, layout="dense"):
    """Rounds with contexts, and a reward of 0 or 1 for every action."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, most + 1, T)
    rows = np.zeros((counts.sum(), d + context))
    rows[:, :d] = rng.normal(size=(counts.sum(), d)) * (rng.random((counts.sum(), d)) > 0.3)
    contexts = np.zeros((T, d + context))
    contexts[:, d:] = rng.normal(size=(T, context))
    rule = rng.normal(size=d + context)
    z = (rows + np.repeat(contexts, counts, axis=0)) @ rule - 1.0
    rewards = (rng.random(len(z)) < 1.0 / (1.0 + np.exp(-z))).astype(float)
    return ActionExamples.of(LAYOUTS[layout](rows), counts, sp.csr_array(contexts)), rewards, rows, contexts


# --- a textbook -----------------------------------------------------------------------------------------------


def textbook(rows, contexts, counts, rewards):
    """The scores of exploiting rounds, and the action played in each."""
    d = rows.shape[1]
    sigmoid = lambda z: 1.0 / (1.0 + np.exp(-z))  # noqa: E731
    u, P = np.zeros((3, d + 1)), np.repeat([[8.0], [16.0], [16.0]], d + 1, axis=1)
    P[0, d] = 4.0  # of the constant
    omega, beta, squares = np.full(4, 0.25), 0.0, 0.0
    lengths, start, out = np.zeros(2), 0, []
    for t, K in enumerate(counts):
        Phi, psi, r = rows[start : start + K], contexts[t], rewards[start : start + K]
        start += K
        own = np.array([(Phi**2).sum(axis=1).max(), psi @ psi])
        lengths += own
        sizes = np.maximum(own, lengths / (t + 1.0))
        x = Phi / math.sqrt(sizes[0]) if sizes[0] else Phi
        shared = np.append(psi / math.sqrt(sizes[1]) if sizes[1] else psi, 1.0)
        X = np.column_stack([x, np.zeros(K)])
        z = X @ u[0] + shared @ u[0]
        softmaxes = [np.append(X @ u[1], beta), X @ u[2]]
        f = np.array([np.full(K, 1.0 / K), sigmoid(z), plain.softmax(softmaxes[0])[:K], plain.softmax(softmaxes[1])])
        scores = omega / omega.sum() @ f
        B = scores + sigmoid(z + 0.3 * np.sqrt(x**2 @ P[0, :d])) - f[1]
        a = int(B.argmax())
        out.append((scores, a))
        none = 1.0 - f[2].sum()
        # Bayes' rule
        phi = np.clip(f[:, a], 1e-3, 1.0 - 1e-3)
        after = omega * (phi if r[a] else 1.0 - phi)
        after /= after.sum()
        share = 0.01 * max(r[a], min(1.0, 5.0 * after @ f[:, a]))
        omega = (1.0 - share) * after + share / 4.0
        # steps of the experts
        D = X[a] + shared
        step(u[0], P[0], D, f[1, a] - r[a], f[1, a] * (1.0 - f[1, a]), 0.0)
        for j, least in ((1, 0.0), (2, 2.0)):
            p = f[j + 1]
            error = 1.0 - p[a] if r[a] else p[a]
            if error < (0.1 if r[a] else 1e-3):
                continue
            odds = p[a] / max(1.0 - p[a], 1e-3)
            slope = -1.0 if r[a] else odds
            if j == 1:
                g = -slope * none
                squares += g * g
                beta -= g / math.sqrt(1.0 + squares)
            step(u[j], P[j], X[a] - p @ X, slope, odds if j == 1 else 0.25 * error, least)
    return out


def step(u, P, D, slope, h, least):
    u -= slope * D * P / (1.0 + h * (D * D) @ P)
    P[:] = np.maximum(P / (1.0 + h * D * D * P), least)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_exploiting_rounds_are_those_of_the_textbook(layout):
    stream, rewards, rows, contexts = clicks(layout=layout)
    who, start = advised(), 0
    for t, (scores, action) in enumerate(textbook(rows, contexts, stream.counts, rewards)):
        decision = who.decide(actions=stream[t])
        close(decision._z, scores, rtol=1e-9, atol=1e-12)
        assert decision.action == action
        assert decision.propensity == 1.0
        who.learn(decision, reward=float(rewards[start + action]))
        start += len(scores)


# --- laws -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("budget", [2.0, 0.01])
def test_playing_is_deciding_and_learning_one_by_one_with_contexts(layout, budget):
    stream, rewards, _, _ = clicks(layout=layout)
    one, other = advised(budget=budget), advised(budget=budget)
    trace = one.play(stream, rewards=rewards)
    for t in range(len(stream)):
        decision = other.decide(actions=stream[t])
        assert decision.action == trace.labels[t]
        other.learn(decision, reward=float(rewards[stream.first[t] + decision.action]))
    before, after = portrait(one), portrait(other)
    assert before.pop("fractions") != after.pop("fractions")  # rewards of all actions may be fractions
    assert before == after
    assert 0.0 < trace.notes[:, trace.note_names.index("exploiting")].mean() <= (1.0 if budget > 1 else 0.99)


def test_dense_and_sparse_rows_agree_with_contexts():
    runs = [advised(budget=0.01).play(*clicks(layout=layout)[:1], rewards=clicks()[1]) for layout in LAYOUTS]
    np.testing.assert_array_equal(runs[0].labels, runs[1].labels)
    close(runs[0].notes, runs[1].notes, atol=1e-8)


def test_the_context_tells_how_likely_a_reward_is():
    stream, rewards, rows, _ = clicks(T=1_500)
    without = ActionExamples.of(rows, stream.counts)
    shares = [advised().play(each, rewards=rewards).reward.mean() for each in (stream, without)]
    uniform = rewards.mean()
    assert shares[0] > uniform + 0.15
    assert shares[0] > shares[1] - 0.03


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_the_order_of_actions_does_not_matter(feedback):
    rng, one, other = np.random.default_rng(4), advised(feedback), advised(feedback)
    for _ in range(80):
        Phi = rng.normal(size=(rng.integers(1, 6), 3))
        y, order = int(Phi[:, 0].argmax()), rng.permutation(len(Phi))
        first, second = one.decide(actions=Phi), other.decide(actions=Phi[order])
        close(first._z[order], second._z, atol=1e-9)
        if feedback == "full":
            one.learn(first, action=y)
            other.learn(second, action=int(np.flatnonzero(order == y)[0]))
        else:  # all rounds are exploiting ones
            assert first.action == order[second.action]
            give_feedback(one, first, y)
            other.learn(second, correct=bool(first.action == y))


def test_columns_can_be_added_at_once_or_one_by_one():
    for feedback in ("full", "bandit"):
        offers, right = world(60)
        wide = [np.pad(Phi, ((0, 0), (0, 3))) for Phi in offers]
        one, other = advised(feedback, n_features=4), advised(feedback)
        one.play(offers[:30], right[:30])
        for width in (5, 6, 7):
            one.grow(n_features=width)
        one.play(wide[30:], right[30:])
        other.play(wide, right)
        for name, part in one._engine.state._asdict().items():
            if name != "total":
                np.testing.assert_array_equal(part, getattr(other._engine.state, name))


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_a_model_file_in_the_middle_of_a_run_with_pending_decisions(feedback, tmp_path):
    offers, right = world(160, most=7)
    more = {} if feedback == "full" else {"budget": 0.0025}
    who = advised(feedback, **more)
    who.play(together(offers[:60]), right[:60])
    held = [who.decide(actions=Phi) for Phi in offers[60:75]]
    who.save(tmp_path / "model")
    back = Learner.load(tmp_path / "model")
    for decision, y in zip(held, right[60:75]):
        again = back.pending[decision.round]
        if feedback == "bandit":
            np.testing.assert_array_equal(again._saved_scratch[0], decision._saved_scratch[0])
        give_feedback(who, decision, y)
        give_feedback(back, again, y)
    one, other = (each.play(together(offers[75:]), right[75:]) for each in (who, back))
    np.testing.assert_array_equal(one.labels, other.labels)
    assert portrait(who) == portrait(back)


def test_an_exploiting_round_whose_feedback_is_late_stays_one():
    offers, right = world(60)
    who = advised(budget=0.0025)
    first = who.decide(actions=offers[0])
    assert first.propensity == 1.0
    for Phi in offers[1:40]:
        decision = who.decide(actions=Phi)
        give_feedback(who, decision, int(decision.distribution.argmin()))
    certified = who.decide(actions=offers[40])
    assert certified.propensity < 1.0
    t = who._engine.state.total[0]
    before, theta = t.waiting, who._engine.state.W[:, 3].copy()
    assert before == 1.0
    give_feedback(who, first, right[0])
    assert t.waiting == 0.0
    np.testing.assert_array_equal(who._engine.state.W[:, 3], theta)
    give_feedback(who, certified, right[40])
    assert np.abs(who._engine.state.W[:, 3] - theta).max() > 0.0


def test_interpreted_equals_compiled():
    code = "import json; from tests.algorithms.test_advised_actions import transcript; print(json.dumps(transcript()))"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'src'}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == json.loads(json.dumps(transcript()))


def transcript():
    """What 60 rounds of every kind come to."""
    book = {}
    for layout in LAYOUTS:
        stream, rewards, _, _ = clicks(60, layout=layout)
        for budget in (2.0, 0.0):
            who = advised(budget=budget)
            book[f"{layout} {budget}"] = who.play(stream, rewards=rewards).labels.tolist()
        offers, right = world(60)
        trace = advised("full").play(together(offers, layout), right)
        book[f"{layout} full"] = [round(p, 9) for p in trace.truth_probability.tolist()]
    return book


# --- what the learner says of itself --------------------------------------------------------------------------


def test_it_says_which_experts_it_follows():
    offers, right = world(600, most=6, noise=0.2)
    for feedback, names in (
        ("full", ["certified", "newton", "tracker"]),
        ("bandit", ["certified", "one-vs-all", "newton", "tracker"]),
    ):
        who = advised(feedback)
        who.play(offers, right)
        advice = who.advice
        assert list(advice.weights) == names
        assert advice.discovery is None
        assert advice.stickiness == 0.0
        assert advice.weights["certified"] < 0.5
        assert advice.regret["certified"] < 0.0


def test_one_action_is_played_for_sure():
    for feedback in ("full", "bandit"):
        who = advised(feedback, **({"budget": 0.0} if feedback == "bandit" else {}))
        for Phi in rounds(20, most=1):
            decision = who.decide(actions=Phi)
            assert decision.propensity == 1.0
            give_feedback(who, decision, 0)
        assert who.certificate.level == 0.0


def test_rows_of_zeros_and_equal_rows():
    for Phi in (np.zeros((3, 2)), np.ones((3, 2))):
        for feedback, more in (("full", {}), ("bandit", {}), ("bandit", {"budget": 0.0})):
            who = advised(feedback, **more)
            for t in range(20):
                decision = who.decide(actions=Phi)
                assert np.isfinite(decision.distribution).all()
                give_feedback(who, decision, t % 3)
            assert np.isfinite(who._engine.state.W).all()


def test_rewards_between_0_and_1():
    stream, _, rows, _ = clicks(400)
    rewards = 1.0 / (1.0 + np.exp(-rows @ np.arange(-3.0, 4.0)))
    trace = advised().play(stream, rewards=rewards)
    best = np.maximum.reduceat(rewards, stream.first[:-1])
    assert trace.reward.mean() > 0.9 * best.mean()


def test_settings_without_a_theorem_or_a_use_are_refused():
    for more, words in (
        ({"delay": 3}, "delay has no theorem"),
        ({"scale": 1.0}, "scale"),
        ({"budget": -1.0}, "budget"),
    ):
        with pytest.raises(SettingError, match=words):
            advised(**more)
    with pytest.raises(SettingError, match="reach"):
        advised("full", reach=1.0)


@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("W", lambda W: W[:-1]),
        ("W", lambda W: W * np.nan),
        ("W", lambda W: -np.abs(W) - 1.0),
        ("W", lambda W: W[:, :5]),
        ("regret", lambda regret: regret[:-1]),
        ("total", lambda total: total | {"square": math.nan}),
        ("total", lambda total: {name: total[name] for name in list(total)[1:]}),
    ],
)
def test_a_forged_state_is_refused(feedback, name, change, tmp_path):
    offers, right = world(10)
    who = advised(feedback)
    who.play(offers, right)
    tree = who.__getstate__()
    tree["engine"]["state"][name] = change(tree["engine"]["state"][name])
    model_file.write(tmp_path / "model", tree)
    with pytest.raises(ModelFileError):
        Learner.load(tmp_path / "model")
