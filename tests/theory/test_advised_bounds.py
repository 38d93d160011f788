"""Advised Gaptron's promises on whole runs, whatever its advisers do, and what it makes of good and bad ones."""

import copy
import math

import numpy as np
import pytest

import gaptron
from gaptron.algorithms import advised as file
from gaptron.streams import synsep
from gaptron.types import UNKNOWN, Comparator
from tests import plain
from tests.algorithms.test_advised import LN2, PULL, advice_of, answer, learner, problem, sheet
from tests.conftest import STREAMS, noisy_stream, separable_stream
from tests.theory.test_frugal_bounds import judge

LEAST, MOST = 1 / (4 * LN2**2), 25 / LN2**2  # of c_T = 1/(2ε_T), full information
KINDS_OF_ADVICE = ["none", "uniform", "constant", "liar", "right", "opposite"]


def softmax_advice(X, y, K, step):
    """A softmax regression's forecasts along the stream; with a step below 0 it learns the opposite."""
    U, said = np.zeros((K, X.shape[1])), []
    for t in range(X.shape[0]):
        p = plain.softmax(np.clip(U @ X[t], -30, 30))
        said.append(p)
        U -= step * np.outer(p - np.eye(K)[y[t]], X[t])
    return np.array(said)


def said_of(kind, s, seed=0):
    if kind == "none":
        return None
    if kind == "opposite":
        return softmax_advice(s.X, s.y, s.K, -1.0)
    rng = np.random.default_rng(seed)
    return np.array([advice_of(kind, s.K, int(y), rng) for y in s.y])


# --- full information: on every path ------------------------------------------------------------------------


@pytest.mark.parametrize("adviser", KINDS_OF_ADVICE)
@pytest.mark.parametrize("name", STREAMS)
def test_streams_keep_the_bound_of_the_best_comparator_whatever_the_advice(name, adviser):
    s = STREAMS[name](300)
    who = learner(K=s.K)
    trace = who.play(s.X, s.y, advice=said_of(adviser, s))
    bound, certificate = who.bound(s.X, s.y), who.certificate
    assert trace.expected_mistakes <= bound.value
    assert certificate.level <= 1e-12 and not certificate.in_expectation and certificate.apart == 0.0
    assert LEAST * (1 - 1e-12) <= 1 / (2 * certificate.step) <= MOST * (1 + 1e-12)
    assert certificate.norm == pytest.approx(s.norm)
    rng = np.random.default_rng(0)
    for size in (0.0, 0.1, 1.0, 10.0):  # all U at once, chosen in hindsight
        rule = judge("logistic", s.X, s.y, rng.normal(size=bound.U.shape) * size + bound.U)
        mine = rule.loss + (rule.norm * s.norm) ** 2 / (2 * certificate.step)
        assert trace.expected_mistakes <= mine + 1e-9
        assert certificate.bound(rule) == pytest.approx(mine, abs=1e-6)
        assert file.bound(problem("full", s.K, X=s.norm), who.settings, rule) >= mine - 1e-9


@pytest.mark.parametrize("adviser", ["none", "liar", "right"])
@pytest.mark.parametrize("kind", ["least", "repeat", "tie"])
def test_adversaries_do_not_break_the_bound(kind, adviser):
    """The truth is named after q is seen; the adviser knows it and helps, or lies."""
    for K in (2, 4):
        rng = np.random.default_rng(K)
        who, X, y, expected = learner(K=K), rng.normal(size=(200, 2)), [], 0.0
        if kind != "least":
            X[:] = X[0]
        for t, x in enumerate(X):
            q = who.distribution(x[None])[0]
            truth = t % 2 if kind == "tie" else int(q.argmin())
            decision = who.decide(x, advice=advice_of(adviser, K, truth, rng))
            expected += 1 - decision.distribution[truth]
            answer(who, decision, truth)
            y.append(truth)
        assert expected <= who.bound(X, np.array(y)).value
        assert who.certificate.level <= 1e-12


def test_perfect_advice_drives_the_step_to_its_floor_and_no_further():
    """K = 2, x = 1, uniform labels: the certificate's demands cost a share of every round, so H grows for ever."""
    y = np.random.default_rng(0).integers(0, 2, 8000)
    who = learner(K=2)
    trace = who.play(np.ones((8000, 1)), y, advice=y)
    H = np.cumsum(1 - trace.truth_probability)  # k° is right from the start, bar the first ties
    steps = trace.note("step")
    assert steps.min() == steps[-1] == pytest.approx(2 * LN2**2 / 100, rel=1e-12)
    assert 1 / (2 * who.certificate.step) == pytest.approx(MOST, rel=1e-12)
    assert who.advice.cost == pytest.approx(H[-1], abs=2.0) and not who.advice.estimated
    before = steps > 2 * LN2**2 / 100 * 1.01
    assert before.any() and trace.expected_mistakes <= who.bound(np.ones((8000, 1)), y).value
    middle = int(before.sum()) - 1  # σ²/(2H*), σ = 2
    assert steps[middle] == pytest.approx(2 / trace.note("cost")[: middle + 1].max(), rel=1e-9)


# --- bandit: in the mean ------------------------------------------------------------------------------------


def every_path(s, state, X, y, said, seen=()):
    """All draws, each with its chance: mistakes, Λ_T, ε_T and the a of every round."""
    t = len(seen)
    if t == len(X):
        wrong = sum(label != truth for (_, _, label), truth in zip(seen, y))
        a = np.array([a for _, a, _ in seen])
        chance = math.prod(chance for chance, _, _ in seen)
        yield chance, wrong, state.total[file.LEVEL], state.total[file.STEP], a
        return
    rd = sheet(s_classes := len(said[t]))
    rd.advice[:] = said[t]
    file.decide(s, state, X[t], rd, 0.5)
    assert rd.p.sum() == pytest.approx(1.0, abs=1e-12)
    for label in range(s_classes):
        if rd.p[label] > 0:
            mine, own = copy.deepcopy(state), copy.deepcopy(rd)
            file.commit(s, mine, own)
            file.learn(s, mine, X[t], own, label, label if label == y[t] else UNKNOWN)
            yield from every_path(s, mine, X, y, said, (*seen, (rd.p[label], rd.z.copy(), label)))


@pytest.mark.parametrize("K, T", [(2, 4), (3, 3)])
@pytest.mark.parametrize("adviser", ["silent", "liar", "right", "constant"])
def test_the_bandit_bound_holds_exactly_on_small_environments(adviser, K, T):
    """Every draw path enumerated: E[M] ≤ E[L(U, v)] + E[N/(2ε_T) + Λ_T], N = ‖U‖²X² + (v - 1)²/ρ²."""
    rng = np.random.default_rng(K)
    tightest = 0.0
    for trial in range(6):
        X = rng.normal(size=(T, 2)) * (10.0 ** rng.uniform(-1, 1, size=(T, 1)) if trial % 2 else 1.0)
        if trial < 2:
            X[:] = X[0]
        y = rng.integers(0, K, T)
        said = np.array([np.zeros(K) if adviser == "silent" else advice_of(adviser, K, k, rng) for k in y])
        s = file.recommend(problem("bandit", K))
        paths = list(every_path(s, file.init(s, problem("bandit", K, 2), False), X, y, said))
        chance, wrong, level, step, a = (np.array(part) for part in zip(*paths))
        assert chance.sum() == pytest.approx(1.0, abs=1e-12)
        longest = np.linalg.norm(X, axis=1).max()
        rules = [(np.zeros((K, 2)), v) for v in (0.0, 0.9, 1.0, 1.1)]
        rules += [(rng.normal(size=(K, 2)) * size / longest, v) for size in (0.1, 0.3, 1.0) for v in (0.9, 1.0)]
        for U, v in rules:
            Z = (X @ U.T)[None] + v * a  # path × round × label
            low = Z.max(axis=2, keepdims=True)
            losses = (np.log(np.exp(Z - low).sum(axis=2)) + low[..., 0] - Z[:, np.arange(T), y]) / LN2
            N = (np.linalg.norm(U) * longest) ** 2 + (v - 1) ** 2 / PULL
            bound = chance @ (losses.sum(axis=1) + N / (2 * step) + level)
            assert chance @ wrong <= bound + 1e-9
            tightest = max(tightest, chance @ wrong / bound)
    assert tightest > 0.2  # the bound is not so far off that nothing could break it


@pytest.mark.slow
@pytest.mark.parametrize("adviser", ["none", "liar"])
def test_the_bandit_bound_holds_in_the_mean(adviser):
    """24 seeds. U fixed before the draws has v = 0; U = 0, v = 1 is the advice itself."""
    s = noisy_stream(300)
    said = said_of(adviser, s)
    U = np.array([s.X[s.y == k].mean(axis=0) for k in range(s.K)])
    rules = [judge("logistic", s.X, s.y, U / np.linalg.norm(U) * size) for size in (0.0, 2.0, 5.0)]
    missed, bounds, itself = [], [], []
    for seed in range(24):
        who, loss = learner("bandit", s.K, seed=seed), 0.0
        if seed < 6:  # slowly, to see the a of every round
            wrong = 0
            for t in range(len(s.y)):
                decision = who.decide(s.X[t], advice=None if said is None else said[t])
                loss += plain.loss("logistic", decision._sheet.z, int(s.y[t]), 0.0)
                wrong += decision.label != s.y[t]
                answer(who, decision, int(s.y[t]))
            itself.append(loss + who.certificate.level - wrong)
        else:
            wrong = who.play(s.X, s.y, advice=said).mistakes
        missed.append(wrong)
        assert who.certificate.in_expectation and who.certificate.apart == 10.0
        bounds.append([who.certificate.bound(rule) for rule in rules])
        for rule, value in zip(rules, bounds[-1]):
            N = (rule.norm * s.norm) ** 2 + 10
            assert value == pytest.approx(rule.loss + N / (2 * who.certificate.step) + who.certificate.level)
            assert value <= file.bound(who.problem._replace(norm=s.norm), who.settings, rule)
    error = np.std(missed, ddof=1) / math.sqrt(24)
    assert np.mean(missed) - 3 * error <= np.min(np.mean(bounds, axis=0))
    assert np.mean(itself) >= -3 * error


def level_bound(K, T, sigma, s):
    """(3) of the theory, letter by letter; at ρ² = 0.1, A = 10."""
    wide = 1 + 3 * 10**2 * 0.1
    alpha, early, most = 0.22 * (K - 1) * wide, LN2**2 / (8 * K * wide), 2 + 0.1 * 10**2 * (1 + 3 / K)
    first = max(sigma**2 / (2 * early) + most, most * s**2 / (K * early**2))
    return sigma * math.sqrt(alpha * T) + 4 * alpha * s * math.sqrt(T / K) + most + first


@pytest.mark.parametrize("adviser", ["none", "liar", "right", "constant"])
def test_no_adversary_makes_the_levels_larger_than_their_bound(adviser):
    for K, scale in ((2, 0.3), (5, 3.0)):
        rng = np.random.default_rng(K)
        who, x = learner("bandit", K, scale=scale), np.ones(1)
        for t in range(200):
            truth = int(who.distribution(x[None])[0].argmin()) if t > 50 else 0  # sure first, then betrayed
            answer(who, who.decide(x, advice=advice_of(adviser, K, truth, rng)), truth)
        most = level_bound(K, 200, scale, scale / 16)
        assert file.largest_level(who.problem, who.settings, 200) == pytest.approx(most, rel=1e-12)
        assert 0 <= who.certificate.level <= most


def test_the_level_is_at_most_alpha_times_the_step_in_any_state():
    """λ_t ≤ 0.22(K-1)c̃·ε where κ̃ ≤ 1/(16K): the sure step of the proof of (3), over random states."""
    rng, met = np.random.default_rng(0), 0
    wide = 1 + 3 * 10**2 * 0.1
    for _ in range(600):
        K = int(rng.choice([2, 3, 10]))
        s = file.recommend(problem("bandit", K))
        state, rd = file.init(s, problem("bandit", K), False), sheet(K)
        step = min(s.first, LN2**2 / (8 * K * wide)) * 10.0 ** rng.uniform(-2, 0)
        state.total[file.SQUARE], state.total[file.CLOCK] = 1.0, 1e18
        state.total[file.LEVEL] = s.scale**2 / (2 * step)
        state.W[:K, 0] = -rng.random(K) * 10.0 ** rng.uniform(-1, 1.5) / step
        state.W[int(rng.integers(K)), 0] = 0.0
        state.W[K:, 0] = rng.normal(size=4 * K) * 10.0 ** rng.uniform(-1, 1)
        state.total[file.MOVED] = rng.normal() * 5 / (step * PULL)
        file.decide(s, state, np.ones(1), rd, 0.5)
        assert rd.note[1] == pytest.approx(step, rel=1e-9)
        assert rd.note[0] <= 0.22 * (K - 1) * wide * step + 1e-12
        met += rd.note[0] > 0
    assert met > 20


def test_the_bounds_known_before_the_run():
    full, bandit = (problem(f, 4, X=1.5) for f in ("full", "bandit"))
    rule = Comparator(100.0, 2.0, 900)
    value = 100 + MOST * 9
    assert file.bound(full, file.recommend(full), rule) == pytest.approx(value, rel=1e-12)
    assert file.bound(full, file.recommend(full, rule="certificate"), rule) == pytest.approx(100 + LEAST * 9, rel=1e-12)
    s, level = file.recommend(bandit), level_bound(4, 900, 0.3, 0.3 / 16)
    value = 100 + 19 * math.sqrt(4 * 900) / (2 * 0.3 / 16) + level
    assert file.bound(bandit, s, rule) == pytest.approx(value, rel=1e-12)
    s, level = file.recommend(bandit, rule="certificate"), level_bound(4, 900, 1.0, 0.0)
    assert file.bound(bandit, s, rule) == pytest.approx(100 + 19 * max(1 / LN2**2, level) + level, rel=1e-12)


# --- good and bad advice ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize("K", [2, 10])
def test_hard_labels_right_seven_times_in_ten_are_followed(K, feedback):
    """Labels uniform, rows without information: only the adviser knows anything.

    With full information the certificate's demands may cost some 4 % of the rounds for ever: the step has a floor.
    """
    T, rng = 12_000, np.random.default_rng(K)
    y = rng.integers(0, K, T)
    said = np.where(rng.random(T) < 0.7, y, (y + rng.integers(1, K, T)) % K)
    X = np.ones((T, 1))
    own, price = int((said != y).sum()), 0.045 * T
    trace = learner(feedback, K).play(X, y, advice=said)
    assert trace.top_mistakes <= 1.1 * own
    assert trace.mistakes <= (1.1 * own if feedback == "bandit" else own + price)
    always = learner(feedback, K).play(X, y, advice=y)
    assert always.mistakes <= (150 if feedback == "bandit" else price)


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_advice_no_better_than_chance_is_ignored(feedback):
    T, K = 4000, 3
    s = separable_stream(T, K=K)
    said = np.random.default_rng(5).integers(0, K, T)
    alone, advised = (learner(feedback, K) for _ in range(2))
    one, two = alone.play(s.X, s.y), advised.play(s.X, s.y, advice=said)
    assert two.wrong[T // 2 :].mean() <= one.wrong[T // 2 :].mean() + 0.02
    assert one.wrong[T // 2 :].mean() < 0.1
    if feedback == "bandit":
        assert two.note("caller")[-1] < 0.2


@pytest.mark.parametrize("adviser", ["opposite", "liar", "constant"])
def test_hostile_advice_does_little_harm(adviser):
    """Full information: level with Frugal, which hears nobody. Bandit: a few points from having no adviser."""
    T = 3000
    stream = synsep(T)
    X, y, K = stream.X.toarray().astype(float), stream.y, stream.n_classes
    rng = np.random.default_rng(0)
    if adviser == "opposite":
        said = softmax_advice(X, y, K, -1.0)
    else:
        said = np.array([advice_of(adviser, K, int(k), rng) for k in y])
    frugal = gaptron.Learner("frugal-gaptron", n_classes=K, seed=0).play(X, y).expected_mistakes
    full = learner(K=K).play(X, y, advice=said).expected_mistakes
    assert full <= frugal + 0.005 * T
    alone = learner("bandit", K).play(X, y).mistakes
    bandit = learner("bandit", K).play(X, y, advice=said).mistakes
    assert bandit <= alone + 0.05 * T
