"""Advised Gaptron against its definition in textbook numpy, and against advisers who wish it ill.

The gap is always worked out from the definition, 1 - q(y) - ℓ^y + E[(η/2)‖ĝ‖² + (ερ²/2)⟨r, a⟩²], averaging over the
label drawn; never from the b and c of the code.
"""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaptron
from gaptron.algorithms import advised as file
from gaptron.algorithms import frugal
from gaptron.errors import InputError, NoBoundError, SettingError
from gaptron.types import UNKNOWN, Feedback, Loss, Problem, Round
from tests import plain
from tests.conftest import KINDS, noisy_stream, portrait, random_stream, separable_stream

LN2 = math.log(2)
FEEDBACKS = ["full", "bandit"]
PULL, RANGE = 0.1, 10.0
some = settings(max_examples=100, deadline=None, derandomize=True)
close = np.testing.assert_allclose


def learner(feedback="full", K=3, seed=0, **more):
    return gaptron.Learner("advised-gaptron", feedback=feedback, n_classes=K, seed=seed, **more)


def problem(feedback="full", K=3, d=1, X=1.0):
    return Problem(K, d, Feedback[feedback.upper()], Loss.LOGISTIC, X)


def answer(who, decision, truth):
    if who.problem.feedback is Feedback.BANDIT:
        who.learn(decision, correct=bool(decision.label == truth))
    else:
        who.learn(decision, label=truth)


# --- the definition -----------------------------------------------------------------------------------------


def centred(logs):
    """Logarithms cut to RANGE below the largest and made to sum to 0."""
    a = np.maximum(logs, logs.max() - RANGE)
    return a - a.mean()


def root(b, c):
    """The positive root of ρ² - bρ - c, by the form without cancellation."""
    wide = np.sqrt(b * b + 4 * c)
    low = np.divide(2 * c, wide - b, out=np.zeros_like(b), where=c > 0)
    return np.where(b > 0, (b + wide) / 2, low)


def spread(b, c, heir):
    """q and λ: what is left goes to the heir, or λ rises, found by halving, until the demands sum to 1."""
    asked = root(b, c)
    if asked.sum() <= 1:
        asked[heir] += 1 - asked.sum()
        return asked, 0.0
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if root(b - middle, c).sum() > 1 else (low, middle)
    asked = root(b - high, c)
    return asked / asked.sum(), high


def top(a):
    """The top label; of equals (to rounding), the lowest."""
    return int(np.argmax(a >= a.max() - 1e-12))


class Textbook:
    """The whole algorithm, with one object a thing and no thought of speed."""

    def __init__(self, feedback, K, d):
        self.bandit, self.K = feedback == "bandit", K
        self.steps = (1.0, 2.0, 8.0, 0.3) if self.bandit else (2.0, 0.1, 0.3, 1.0)
        self.sigma = 0.3 if self.bandit else 2.0
        self.first = 2 * LN2**2 / (K if self.bandit else 1)
        self.theta, self.g = np.zeros((K, d)), 0.0  # Σ ĝ and Σ⟨r, a⟩
        self.U = np.zeros((4, K, d))
        self.N = np.zeros((K, d))  # shared
        self.omega = np.full(9, 1 / 9 if self.bandit else 1 / 5)
        self.stacked = 0.0
        self.t, self.X2, self.squares = 0, 0.0, 0.0
        self.Lambda = self.H = self.most = 0.0

    def adagrad(self, j):
        return j == 3 if self.bandit else j > 0

    def decide(self, x, advice=None):
        K, self.x = self.K, x
        self.t += 1
        self.X2 = max(self.X2, x @ x)
        self.squares += x @ x
        G = self.Lambda + self.most
        least = self.sigma / 16 / math.sqrt(K * self.t) if self.bandit else self.first / 100
        self.eps = self.first if G == 0 else min(self.first, max(self.sigma**2 / (2 * G), least))
        eta = self.eps / self.X2 if self.X2 > 0 else 0.0
        w = -eta * self.theta @ x
        f = [plain.softmax(w)]
        for j in range(4):
            z = self.U[j] @ x
            f.append(1 / (1 + np.exp(-z)) if self.bandit and j == 0 else plain.softmax(z))
        if advice is not None:
            p = np.asarray(advice) / np.sum(advice)
            f += [(1 - m) * p + m / K for m in (0.0, 0.2, 0.5, 0.8)]
        self.f, n = np.array(f), len(f)
        if self.bandit:
            share = self.omega[:n] / self.omega[:n].sum()
            self.a = centred(np.log(np.maximum(share @ self.f, 1e-12)))
            self.outside = top(share[1:] @ self.f[1:])
            heir = top(share @ self.f)
            self.z = w + (1 - self.eps * PULL * self.g) * self.a
        else:
            with np.errstate(divide="ignore"):
                self.L = np.array([centred(np.log(p)) for p in self.f]) * 5 / n  # so that all start with 1/n
            self.a = self.omega[:n] @ self.L
            self.outside = top(self.omega[1:n] @ self.L[1:])
            heir = top(self.a)
            self.z = w
        p = self.p = plain.softmax(self.z)
        loss = np.array([plain.loss("logistic", self.z, y, 0.0) for y in range(K)])
        kappa = eta * (x @ x) / (2 * LN2**2)
        if self.bandit:
            other, mu = self.eps * PULL / (2 * LN2**2), p @ self.a
            b = 1 - loss + kappa * (p @ p - 2 * p + 1 / K) + other * (mu**2 - 2 * mu * self.a)
            c = kappa * (1 - 1 / K) + other * self.a**2
        else:
            b = 1 - loss + kappa * np.array([np.sum((p - np.eye(K)[y]) ** 2) for y in range(K)])
            c = np.zeros(K)
        self.q, self.level = spread(b, c, heir)
        self.Lambda += self.level
        return self.q

    def learn(self, label, truth):
        K, x, n = self.K, self.x, len(self.f)
        e, hit = np.eye(K), label == truth
        if self.bandit:
            r = (self.p - 1 / K + (hit / self.q[label]) * (1 / K - e[label])) / LN2
            self.g += r @ self.a
            if hit:
                self.H += min(1 / self.q[label], 10) * (label == self.outside) - 1
        else:
            r = (self.p - e[truth]) / LN2
            self.H += (self.outside == truth) - self.q[truth]
        self.theta += np.outer(r, x)
        self.most = max(self.most, self.H)
        mean = self.squares / self.t
        rows = []
        for j in range(4):
            f = self.f[j + 1]
            if self.bandit and j == 0:
                row = (f[label] - hit) * e[label]
            elif hit or not self.bandit:
                row = f - e[truth]
            else:
                row = f[label] / max(1 - f[label], 1e-3) * (e[label] - f)
            rows.append(np.where(np.abs(row) < 1e-3, 0.0, row))
        if mean > 0:
            shared = [rows[j] ** 2 for j in range(4) if self.adagrad(j)]
            self.N += np.outer(np.mean(shared, axis=0), x**2)
            for j, step in enumerate(self.steps):
                grad = np.outer(rows[j], x)
                if self.adagrad(j):
                    self.U[j] -= step / math.sqrt(mean) * grad / np.sqrt(self.N + 1e-8 * mean)
                else:
                    self.U[j] -= step / max(x @ x, mean) * grad
        if self.bandit:
            phi = np.clip(self.f[:, label], 1e-3, 1 - 1e-3)
            total = self.omega[:n].sum()
            after = self.omega[:n] * (phi if hit else 1 - phi)
            self.omega[:n] = total * (0.99 * after / after.sum() + 0.01 / n)
        else:
            g = self.L @ (plain.softmax(self.a) - e[truth])
            self.stacked += g @ g
            self.omega[:n] -= g / math.sqrt(1 + self.stacked)


def sheet(K):
    return Round(np.zeros(K), np.zeros(K), np.zeros(19 * K + 6), np.zeros(len(file.NOTES)), np.zeros(K))


def moments(bandit, p, q, y, a):
    """Mean of r, of ‖r‖² and of ⟨r, a⟩² when y is the truth, draw by draw."""
    K, e = len(p), np.eye(len(p))
    mean, square, inner = np.zeros(K), 0.0, 0.0
    for label in range(K):
        if q[label] == 0.0 or not bandit:
            continue
        r = (p - 1 / K + ((label == y) / q[label]) * (1 / K - e[label])) / LN2
        mean += q[label] * r
        square += q[label] * (r @ r)
        inner += q[label] * (r @ a) ** 2
    if not bandit:
        mean = (p - e[y]) / LN2
        square = mean @ mean
    return mean, square, inner


def gaps(bandit, z, q, a, step, share):
    """gap(y) of every label at scores z, ‖x‖² = share·X²."""
    p, found = plain.softmax(z), []
    for y in range(len(z)):
        _, square, inner = moments(bandit, p, q, y, a)
        second = step / 2 * (share * square + PULL * inner)
        found.append(1 - q[y] - plain.loss("logistic", z, y, 0.0) + second)
    return np.array(found)


def gaps_of(who, decision, x, longest):
    """The gaps of the round just decided, from what the learner shows and Σ⟨r, a⟩."""
    s, bandit = decision._sheet, who.problem.feedback is Feedback.BANDIT
    level, step = s.note[0], s.note[1]
    z = who.weights @ x
    if bandit:
        z = z + (1 - step * PULL * who._core.state.total[file.MOVED]) * s.z
    share = (x @ x) / longest**2 if longest > 0 else 0.0
    return gaps(bandit, z, s.p, s.z, step, share), level


# --- side by side -------------------------------------------------------------------------------------------


def advice_of(kind, K, truth, rng):
    """What a caller's adviser says of a round whose truth it may know."""
    e = np.eye(K)
    if kind == "none" or (kind == "sometimes" and rng.random() < 0.5):
        return None
    if kind == "uniform":
        return np.full(K, 1 / K)
    if kind == "constant":
        return e[K - 1]
    if kind == "liar":  # knows the truth, and never says it
        return e[(truth + 1 + rng.integers(K - 1)) % K]
    if kind == "right":
        return e[truth]
    return rng.gamma(0.5, size=K) + 2 * e[truth] + 1e-9


ADVISERS = ["none", "uniform", "constant", "liar", "right", "sometimes", "random"]


@pytest.mark.parametrize("rows", ["dense64", "csr"])
@pytest.mark.parametrize("K, adviser", [(2, "none"), (3, "sometimes"), (10, "none"), (10, "liar"), (2, "random")])
@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_rounds_as_the_textbook_plays_them(feedback, K, adviser, rows):
    rng = np.random.default_rng(K)
    s = random_stream(250, K=K, seed=K) if K != 3 else noisy_stream(250, K=3)
    X = s.X * 10.0 ** rng.uniform(-1, 1, size=(250, 1))  # rows of all lengths
    X[[0, 9, 40]] = 0.0
    who, book = learner(feedback, K), Textbook(feedback, K, X.shape[1])
    table = KINDS[rows](X)
    for t in range(250):
        truth = int(s.y[t])
        said = advice_of(adviser, K, truth, rng)
        x = table[t]
        decision = who.decide(x, advice=said)
        q, note = book.decide(X[t], said), dict(zip(file.NOTES, decision._sheet.note))
        to = dict(rtol=1e-9, atol=1e-9, err_msg=f"round {t}")
        close(decision.distribution, q, **to)
        close(note["level"], book.level, **to)
        close(note["step"], book.eps, **to)
        close(decision._sheet.z, book.a, **to)
        answer(who, decision, truth)
        book.learn(decision._code, truth)
        close(who._core.state.total[file.COST], book.H, **to)
        mine = who._core.state.omega
        if feedback == "bandit":
            mine = mine / mine.sum()
        close(mine, book.omega, **to)
    assert who.certificate.level == pytest.approx(book.Lambda, abs=1e-9)
    theta = -(book.theta - book.theta.mean(axis=0)) * book.eps / book.X2
    close(who.weights, theta, atol=1e-9 * (1 + np.abs(theta).max()))
    assert who.advice.cost == pytest.approx(book.H, abs=1e-9)


def test_the_first_rounds_of_full_information_by_hand():
    """K = 2, x = 1: all advisers tie, κ = 1: p̃ = ½, both labels ask 1 - 1 + ½. Told 1, k° = 0: H = 0 - ½.

    Then w = ∓ ln 2 (step 2 ln²2, coefficient ½/ln 2), p̃ = (⅕, ⅘): the first asks 1 - log₂5 + 1.28 < 0.
    The advisers' scores: softmax 2: ∓1; AdaGrad: ∓ its step (γ/√γ² = 1, up to 10⁻⁸). All L_j point to label 1.
    """
    who = learner(K=2)
    first = who.decide([1.0])
    close(first.distribution, [0.5, 0.5], atol=1e-15)
    who.learn(first, label=1)
    assert who.advice.cost == -0.5
    close(who.weights, [[-LN2], [LN2]], rtol=1e-14)
    close(who._core.state.W.reshape(5, 2)[1:, 1], [1.0, 0.1, 0.3, 1.0], rtol=1e-7)
    second = who.decide([1.0])
    close(second.distribution, [0.0, 1.0], atol=1e-15)
    close(who.scores([[1.0]]), np.array([[-1, 1]]) * (LN2 + 1 + 0.1 + 0.3 + 1) / 5, rtol=1e-7)
    who.learn(second, label=1)
    assert who.advice.cost == -0.5  # + 1 - 1: k° was right, and played
    assert who.certificate.step == 2 * LN2**2 and who.certificate.level == 0.0


def test_the_first_bandit_rounds_by_hand():
    """K = 2, x = 1: f_0 and the softmaxes say ½, a = 0. κ = ½, c = ¼, b = 1 - 1 + ½(½ - 1 + ½) = 0: q = ½ each.

    A hit: weight 2, k° = 0. H = +1 if 0 was played (and right), -1 if 1 was. ω does not move: every φ_j is ½.
    """
    costs = set()
    for seed in range(6):
        who = learner("bandit", K=2, seed=seed)
        decision = who.decide([1.0])
        close(decision.distribution, [0.5, 0.5], atol=1e-15)
        who.learn(decision, correct=True)
        costs.add((decision.label, who.advice.cost))
        close(list(who.advice.heard.values()), 0.2, atol=1e-15)
        # r = (½ - ½ + 2(½ - 1))/ln 2 at the label: W = ε·1/ln 2 = ln 2, ε = ln²2
        assert who.weights[decision.label, 0] == pytest.approx(LN2, rel=1e-14)
        # One-vs-all moved the played label alone, by ½; softmax 2 by 2·½ both ways, softmax 8 by 8·½, AdaGrad by .3.
        k = decision.label
        W = who._core.state.W.reshape(5, 2)
        close(W[1], 0.5 * np.eye(2)[k], rtol=1e-14)
        close(W[2:, k], [1.0, 4.0, 0.3], rtol=1e-7)
        close(W[2:, 1 - k], [-1.0, -4.0, -0.3], rtol=1e-7)
    assert costs == {(0, 1.0), (1, -1.0)}


def test_a_first_wrong_bandit_guess_by_hand():
    """A miss at K = 3: r = p̃ - ⅓ = 0, so the certified learner stays; the advisers move away from the label."""
    who = learner("bandit", K=3, seed=0)
    decision = who.decide([1.0])
    who.learn(decision, correct=False)
    k, W = decision.label, who._core.state.W.reshape(5, 3)
    close(W[0] - W[0].mean(), 0.0, atol=1e-15)
    close(W[1], -0.5 * np.eye(3)[k], rtol=1e-14)
    close(W[2], -2 * 0.5 * (np.eye(3)[k] - 1 / 3), rtol=1e-14)  # f/(1 - f) = ½ at f = ⅓
    close(W[3], 4 * W[2], rtol=1e-14)
    # φ: ½ for one-vs-all, ⅓ for the others; 1 - φ: ½ and ⅔.
    omega = np.array([4, 3, 4, 4, 4]) / 19 * 0.99 + 0.01 / 5
    close(list(who.advice.heard.values()), omega, rtol=1e-12)
    assert who.advice.cost == 0.0


@pytest.mark.parametrize("K", [2, 7])
def test_the_step_by_hand(K):
    """ε = min{e₀, max{σ²/(2(Λ + H*)), floor}}, the floor s/√(Kt) under bandit feedback and e₀/100 else."""
    for feedback in FEEDBACKS:
        s = file.recommend(problem(feedback, K))
        for t, level, most in [(1, 0.0, 0.0), (5, 0.0, 20.0), (5, 7.0, 20.0), (5, 1e-9, 0.0), (100, 0.0, 1e9)]:
            state, rd = file.init(s, problem(feedback, K), False), sheet(K)
            state.total[[file.LEVEL, file.LARGEST, file.CLOCK]] = level, most, t - 1
            file.decide(s, state, np.ones(1), rd, 0.5)
            least = 0.3 / 16 / math.sqrt(K * t) if feedback == "bandit" else 2 * LN2**2 / 100
            sigma, first = (0.3, 2 * LN2**2 / K) if feedback == "bandit" else (2.0, 2 * LN2**2)
            wanted = first if level + most == 0 else min(first, max(sigma**2 / (2 * (level + most)), least))
            assert rd.note[1] == pytest.approx(wanted, rel=1e-12)


def test_what_a_hit_says_of_the_cost_by_hand():
    """+ min{1/q, 10}·1[y' = k°] - 1 on a hit, nothing on a miss; H* is the largest so far."""
    s = file.recommend(problem("bandit", 3))
    for chance, label, truth, cost in [
        (0.5, 0, 0, 1.0),
        (0.02, 0, 0, 9.0),
        (0.02, 1, 1, -1.0),
        (0.02, 0, UNKNOWN, 0.0),
    ]:
        state, rd = file.init(s, problem("bandit", 3), False), sheet(3)
        state.total[[file.COST, file.LARGEST]] = 2.0, 2.5
        file.decide(s, state, np.ones(1), rd, 0.5)  # all tie: k° = 0
        rd.p[label] = chance
        file.commit(s, state, rd)
        file.learn(s, state, np.ones(1), rd, label, truth)
        assert state.total[file.COST] == pytest.approx(2.0 + cost, abs=1e-12)
        assert state.total[file.LARGEST] == pytest.approx(max(2.5, 2.0 + cost), abs=1e-12)


# --- the gap ------------------------------------------------------------------------------------------------


@st.composite
def states(draw, feedback, sizes=(2, 3, 5, 12, 30), largest=5.0):
    """A state no run need ever reach, a row, and perhaps advice. Returns settings, state, x, sheet."""
    K = draw(st.sampled_from(sizes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    s = file.recommend(problem(feedback, K))
    state = file.init(s, problem(feedback, K), False)
    size = 10.0 ** draw(st.floats(-3, largest))
    kind = draw(st.sampled_from(["free", "tied", "one"]))
    certified = {
        "free": rng.normal(size=K),
        "tied": rng.integers(-1, 2, size=K).astype(float),
        "one": -np.ones(K) + np.eye(K)[rng.integers(K)],
    }[kind]
    state.W[:K, 0] = certified * size
    state.W[K:, 0] = rng.normal(size=4 * K) * 10.0 ** draw(st.floats(-2, 3))
    length = 10.0 ** draw(st.sampled_from([0.0, 0.0, -1.0, -6.0, -100.0]))
    short = draw(st.sampled_from([1.0, 1.0, 0.3, 1e-4, 0.0]))
    total = state.total
    total[file.SQUARE] = length**2
    total[file.LEVEL] = draw(st.sampled_from([0.0, 0.1, 5.0, 1e4]))
    total[file.LARGEST] = draw(st.sampled_from([0.0, 1.0, 300.0, 1e6]))
    total[file.CLOCK] = draw(st.sampled_from([0, 1, 1000, 10**7]))
    total[file.MOVED] = draw(st.sampled_from([0.0, 1.0, -20.0, 500.0, -1e5]))  # v = 1 - ερ²·this
    if feedback == "bandit":
        state.omega[:] = rng.gamma(0.2, size=9) + 1e-9
    else:
        state.omega[:] = rng.normal(size=9) * 3
    rd = sheet(K)
    if draw(st.booleans()):
        rd.advice[:] = np.eye(K)[rng.integers(K)] if draw(st.booleans()) else rng.dirichlet(np.full(K, 0.3))
    state.W[:K] *= length  # a sum of rows
    state.W[K:] /= length  # steps of 1/‖x‖² times rows
    return s, state, np.array([length * short]), rd


@pytest.mark.parametrize("feedback", FEEDBACKS)
@some
@given(st.data())
def test_every_gap_is_at_most_the_level_in_any_state(feedback, data):
    s, state, x, rd = data.draw(states(feedback))
    K, before = len(rd.z), state.total.copy()
    label = file.decide(s, state, x, rd, data.draw(st.floats(0, 1, exclude_max=True)))
    np.testing.assert_array_equal(state.total, before)
    q, a, level, step = rd.p, rd.z, rd.note[0], rd.note[1]
    assert (q >= 0).all() and q.sum() == pytest.approx(1.0, abs=1e-12) and 0 <= label < K and q[label] > 0
    share = x[0] ** 2 / before[file.SQUARE] if before[file.SQUARE] > 1e-280 else 0.0
    ratio = step / before[file.SQUARE] if before[file.SQUARE] > 1e-280 else 0.0
    z = ratio * state.W[:K, 0] * x[0]
    if feedback == "bandit":
        assert a.sum() == pytest.approx(0.0, abs=1e-12 * K) and a.max() - a.min() <= RANGE + 1e-12
        z = z + (1 - step * PULL * before[file.MOVED]) * a
        assert (q[state.c > 0] >= 2.0**-53).all()
    each = gaps(feedback == "bandit", z, q, a, step, share)
    size = 1 + np.abs(z).max() + np.max(state.c / np.where(q > 0, q, 1.0))
    assert level >= 0.0
    assert each.max() <= level + 1e-9 * size
    if rd.note[3]:  # and no larger than it need be
        assert each.max() >= level - 1e-9 * size
    if feedback == "full":
        assert level <= 1e-12 * size


@some
@given(st.data())
def test_what_is_learned_is_unbiased_and_as_large_as_the_gap_thinks(data):
    """Both blocks, every label that could be drawn, by the real `learn` on copies of the state."""
    s, state, x, rd = data.draw(states("bandit", (2, 3, 5), largest=1.0))
    state.total[file.MOVED] = np.clip(state.total[file.MOVED], -20, 20)
    K = len(rd.z)
    file.decide(s, state, x, rd, 0.5)
    q, a = rd.p, rd.z
    v = 1 - rd.note[1] * PULL * state.total[file.MOVED]
    z = (rd.note[1] / state.total[file.SQUARE] if x[0] else 0.0) * state.W[:K, 0] * x[0] + v * a
    p, unit = plain.softmax(z), x[0] if x[0] else 1.0
    for y in range(K):
        mean, square, inner, shift = np.zeros(K), 0.0, 0.0, 0.0
        for label in np.flatnonzero(q):
            mine = copy.deepcopy(state)
            file.learn(s, mine, x, rd, int(label), y if label == y else UNKNOWN)
            g = -(mine.W - state.W)[:K, 0] / unit
            g -= g.mean()  # the code leaves the common part out
            moved = mine.total[file.MOVED] - state.total[file.MOVED]
            mean, shift = mean + q[label] * g, shift + q[label] * moved
            square, inner = square + q[label] * (g @ g), inner + q[label] * moved**2
        c = (p - np.eye(K)[y]) / LN2
        _, expected, expected_inner = moments(True, p, q, y, a)
        weight = 1 + 1 / q[y] if q[y] else 1.0
        if x[0]:
            noise = 1e-9 * weight + 1e-13 * np.abs(state.W[:K]).max() / unit * weight
            close(mean, c, rtol=0, atol=noise)
            close(square, expected, rtol=1e-6, atol=noise * weight)
        close(shift, c @ a, rtol=0, atol=1e-9 * weight)
        close(inner, expected_inner, rtol=1e-7, atol=1e-9 * weight)


@pytest.mark.parametrize("adviser", ADVISERS)
@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_the_gap_keeps_its_level_along_whole_runs(feedback, adviser):
    """Rows of all lengths, the label that q likes least, or one drawn."""
    for K in (2, 6):
        rng = np.random.default_rng(K)
        who, longest, levels, steps = learner(feedback, K), 0.0, 0.0, []
        for t in range(150):
            x = np.zeros(3) if t in (0, 50) else rng.normal(size=3) * 10.0 ** rng.uniform(-2, 1)
            guess = who.distribution(x[None])[0]
            truth = int(guess.argmin()) if t % 3 else int(rng.integers(K))
            decision = who.decide(x, advice=advice_of(adviser, K, truth, rng))
            longest = max(longest, np.linalg.norm(x))
            each, level = gaps_of(who, decision, x, longest)
            assert each.max() <= level + 1e-9
            levels += level
            steps.append(decision._sheet.note[1])
            answer(who, decision, truth)
        assert who.certificate.level == pytest.approx(levels, abs=1e-12)
        assert (np.diff(steps) <= 0).all() and steps[0] == who.settings.first


# --- rare labels --------------------------------------------------------------------------------------------


def tiny_state(K=3, certified=(0.0, 1e8, 0.0)):
    """Scores so far apart that the demands of the others fall below 2⁻⁵³ at a small ε."""
    s = file.recommend(problem("bandit", K))
    state = file.init(s, problem("bandit", K), False)
    state.total[file.SQUARE] = 1.0
    state.total[file.LARGEST], state.total[file.CLOCK] = 1e30, 1e15
    state.W[:K, 0] = np.array(certified) * 1e12
    return s, state


def test_a_draw_at_zero_does_not_pick_a_label_of_next_to_no_probability():
    s, state = tiny_state()
    rd = sheet(3)
    assert file.decide(s, state, np.array([1e-3]), rd, 0.0) == 0  # q = 2⁻⁴⁰ now: it may be drawn, at 1/q = 2⁴⁰
    assert rd.p[0] == rd.p[2] == 2.0**-40 and rd.p.sum() == 1.0
    full = file.recommend(problem("full", 3))
    state = file.init(full, problem("full", 3), False)
    state.total[file.SQUARE] = 1.0
    state.W[:3, 0] = [-1e4, 1e4, -1e4]
    rd = sheet(3)
    assert file.decide(full, state, np.array([1.0]), rd, 0.0) != 2
    assert rd.p.sum() == 1.0 and rd.p[2] == 0.0


def test_labels_too_rare_to_be_drawn_are_raised_and_paid_for():
    """c > 0 and a demand below 2⁻⁵³: 2⁻⁴⁰ each, from the largest, and λ is the largest gap of that."""
    s, state = tiny_state()
    rd = sheet(3)
    x = np.array([1e-3])
    file.decide(s, state, x, rd, 0.5)
    demands = root(state.b, state.c)
    assert (demands[[0, 2]] < 2.0**-53).all() and (state.c > 0).all()
    z = rd.note[1] * state.W[:3, 0] * x[0] + rd.z
    each = gaps(True, z, rd.p, rd.z, rd.note[1], 1e-6)
    assert each.max() <= rd.note[0] + 1e-15
    assert 0.0 <= rd.note[0] <= 1e-11


def test_frugal_raises_them_too():
    s = frugal.recommend(problem("bandit", 3))
    K, x = 3, np.array([1.0])
    state = frugal.init(s, problem("bandit", 3), False)
    step = 1e-30
    state.total[:3] = 1.0, 0.0, step
    state.W[:, 0] = np.array([-1e3, 1e3, -1e3]) / step
    rd = Round(np.zeros(K), np.zeros(K), np.zeros(K + 3), np.zeros(4))
    frugal.decide(s, state, x, rd, 0.5)
    assert rd.note[1] == pytest.approx(step)
    assert rd.p[0] == rd.p[2] == 2.0**-40
    each = [state.b[y] - rd.p[y] + state.c[y] / rd.p[y] for y in range(K)]
    assert max(each) <= rd.note[0] <= 2.0**-38


# --- advice at the door -------------------------------------------------------------------------------------

GOOD_ROWS = [[0.5, 0.25, 0.25]] * 4
BAD = {
    "nan": [[0.5, 0.5, math.nan], *GOOD_ROWS[1:]],
    "infinite": [*GOOD_ROWS[1:], [1.0, math.inf, 0.0]],
    "negative": [*GOOD_ROWS[1:], [1.0, -1e-9, 0.0]],
    "sum 0": [*GOOD_ROWS[1:], [0.0, 0.0, 0.0]],
    "too few labels": [[0.5, 0.5]] * 4,
    "too many labels": [[0.25] * 4] * 4,
    "too few rounds": GOOD_ROWS[1:],
    "too many rounds": [*GOOD_ROWS, GOOD_ROWS[0]],
    "too few labels told": [0, 1, 2],
    "unknown label": [0, 1, 2, 3],
    "unknown word": ["a", "b", "c", "a"],
    "missing label": [0, 1, None, 2],
    "three dimensions": [GOOD_ROWS],
    "a number": 1,
    "words for numbers": [["x", "y", "z"]] * 4,
    "complex": np.full((4, 3), 1 + 1j),
    "ragged": [[0.5, 0.25, 0.25], [1.0], [1.0], [1.0]],
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_bad_advice_is_one_clear_error_that_changes_nothing(feedback, name):
    s = random_stream(20, K=3)
    for begun in (True, False):
        who = learner(feedback)
        if begun:
            who.play(s.X, s.y, advice=s.y)
        before = portrait(who)
        with pytest.raises(InputError, match=r"advice|label"):
            who.play(s.X[:4], s.y[:4], advice=BAD[name])
        with pytest.raises(InputError, match=r"advice|label"):
            who.distribution(s.X[:4], advice=BAD[name])
        assert portrait(who) == before
    if name in ("nan", "too few labels", "too many labels"):
        with pytest.raises(InputError, match="advice"):
            who.decide(s.X[0], advice=BAD[name][0])
    if name in ("infinite", "negative", "sum 0"):
        with pytest.raises(InputError, match="advice"):
            who.decide(s.X[0], advice=BAD[name][-1])
    if name == "ragged":
        with pytest.raises(InputError, match="advice"):
            who.decide(s.X[0], advice=BAD[name])
    if name in ("unknown label", "unknown word"):
        with pytest.raises(InputError, match="label"):
            who.decide(s.X[0], advice=BAD[name][-1])
    assert portrait(who) == before
    first, other = who.decide(s.X[0]), learner(feedback).decide(s.X[0])  # and the draws go on as if nothing was
    np.testing.assert_array_equal(first.distribution, other.distribution)
    assert first.label == other.label


@pytest.mark.parametrize("name", ["frugal-gaptron", "perceptron"])
def test_advice_to_an_algorithm_that_takes_none(name):
    s = random_stream(5, K=3)
    who = gaptron.Learner(name, n_classes=3, seed=0)
    before = portrait(who)
    for verb in (
        lambda: who.play(s.X, s.y, advice=s.y),
        lambda: who.decide(s.X[0], advice=1),
        lambda: who.predict(s.X, advice=s.y),
    ):
        with pytest.raises(InputError, match="advised-gaptron"):
            verb()
        assert portrait(who) == before
    assert who.advice is None


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_advice_in_any_measure_and_as_labels(feedback):
    """Normalised at the door; a label is its one-hot; words are labels too; play is decide and learn."""
    s = noisy_stream(60)
    e = np.eye(3)
    soft = e[s.y] * 3 + 1.0
    sizes = 2.0 ** np.random.default_rng(0).integers(-30, 30, size=(60, 1))
    whos = [learner(feedback) for _ in range(4)]
    traces = [whos[i].play(s.X, s.y, advice=a) for i, a in enumerate((soft, soft * sizes, s.y, e[s.y]))]
    for one, two in ((0, 1), (2, 3)):
        np.testing.assert_array_equal(traces[one].notes, traces[two].notes)
        assert portrait(whos[one]) == portrait(whos[two])
    assert (traces[0].notes != traces[2].notes).any()
    words = np.array(["dog", "ant", "cat"])
    named = gaptron.Learner("advised-gaptron", feedback=feedback, classes=words, seed=0)
    np.testing.assert_array_equal(named.play(s.X, words[s.y], advice=words[s.y]).notes, traces[2].notes)
    single = learner(feedback)
    for t in range(60):
        answer(single, single.decide(s.X[t], advice=int(s.y[t])), int(s.y[t]))
    assert portrait(single) == portrait(whos[2])
    assert whos[2].advice.heard["caller"] > 0


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_advice_given_once_is_not_heard_again(feedback):
    """Rounds with and without it, mixed: a later round without advice is like one of a learner that never had any."""
    s = noisy_stream(80)
    who = learner(feedback)
    who.play(s.X[:40], s.y[:40], advice=s.y[:40])
    heard = who._core.state.omega[file.INSIDE :].copy()
    assert "caller" in who.advice.heard
    with_it = who.distribution(s.X[40:], advice=s.y[40:])
    without = who.distribution(s.X[40:])
    assert (with_it != without).any()
    trace = who.play(s.X[40:], s.y[40:])
    assert not trace.note("caller").any()
    np.testing.assert_array_equal(who._core.state.omega[file.INSIDE :], heard)
    quiet = learner(feedback)
    quiet.play(s.X, s.y)
    assert "caller" not in quiet.advice.heard and not hasattr(quiet.advice, "caller")


# --- rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_rows_of_zeros_first_and_only(feedback):
    who = learner(feedback)
    who.play(np.zeros((30, 4)), np.arange(30) % 3)
    assert not who._core.state.W.any() and not who._core.state.N.any() and not who.weights.any()
    assert np.isfinite(who._core.state.total).all() and np.isfinite(who._core.state.omega).all()
    assert who.certificate.norm == 0.0
    s = separable_stream(300, d=4)
    trace = who.play(s.X, s.y)
    assert trace.wrong[200:].mean() < 0.35
    assert np.isfinite(trace.notes).all()


def test_advice_is_learned_from_where_the_rows_are_all_zero():
    """Bandit: the block of v and the weights of the advisers still run."""
    y = np.random.default_rng(0).integers(0, 3, 2000)
    for feedback in FEEDBACKS:
        trace = learner(feedback).play(np.zeros((2000, 2)), y, advice=y)
        assert trace.wrong[1000:].mean() < 0.05


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_the_scale_of_the_rows_does_not_matter(feedback):
    s = noisy_stream(300)
    sizes = np.exp(np.random.default_rng(0).normal(size=(300, 1)) * 2)
    for X in (s.X, s.X * sizes):
        plain_one = learner(feedback)
        one = plain_one.play(X, s.y)
        for factor in (2.0**10, 2.0**-330, 2.0**400):
            other = learner(feedback)
            two = other.play(X * factor, s.y)
            np.testing.assert_array_equal(one.codes, two.codes)
            np.testing.assert_array_equal(one.notes, two.notes)
            close(other.weights * factor, plain_one.weights, rtol=1e-12)
        for factor in (1000.0, 1e-100):
            close(learner(feedback).play(X * factor, s.y).truth_probability, one.truth_probability, atol=1e-6)


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_rows_of_next_to_nothing_and_of_next_to_too_much_stay_finite(feedback):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(-160, 150, size=(200, 1))
    who = learner(feedback)
    trace = who.play(X, rng.integers(0, 3, 200), advice=rng.integers(0, 3, 200))
    assert np.isfinite(trace.notes).all() and np.isfinite(who.weights).all()
    assert np.isfinite(who._core.state.W).all() and np.isfinite(who._core.state.omega).all()
    close(who.distribution(X).sum(axis=1), 1.0, atol=1e-12)


# --- what it shows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_predict_is_the_top_of_the_advice_and_distribution_is_q(feedback):
    """k̂ gets what is left: q(k̂) is at least what is not explored. The certified scores may disagree."""
    s = noisy_stream(200)
    who = learner(feedback)
    trace = who.play(s.X, s.y, advice=s.y)
    before = portrait(who)
    Z, Q, labels = (verb(s.X, advice=s.y) for verb in (who.scores, who.distribution, who.predict))
    np.testing.assert_array_equal(labels, Z.argmax(axis=1))
    close(Z.sum(axis=1), 0.0, atol=1e-11)
    assert portrait(who) == before
    decision = who.decide(s.X[0], advice=int(s.y[0]))
    np.testing.assert_array_equal(decision.distribution, Q[0])
    assert decision._sheet.note[2] == 1 - Q[0, labels[0]]
    assert (trace.note("explored") >= 0).all()
    certified = (s.X @ who.weights.T).argmax(axis=1)
    liar = who.predict(s.X, advice=(certified + 1) % 3)
    assert feedback == "bandit" or (liar != certified).any()


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_late_answers_end_the_certificate(feedback):
    s = noisy_stream(10)
    who = learner(feedback)
    decisions = [who.decide(x) for x in s.X[:3]]
    for decision, truth in zip(decisions, s.y):
        answer(who, decision, int(truth))
    for look in (lambda: who.certificate, lambda: who.bound(s.X[:3], s.y[:3])):
        with pytest.raises(NoBoundError, match="late"):
            look()
    assert who.advice is not None
    on_time = learner(feedback)
    answer(on_time, on_time.decide(s.X[0]), int(s.y[0]))
    assert on_time.bound(s.X[:1], s.y[:1]).value > 0


# --- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feedback", FEEDBACKS)
@pytest.mark.parametrize(
    "given",
    [
        {"rule": "luck"},
        {"rule": None},
        {"rule": 0},
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": math.nan},
        {"scale": math.inf},
        {"scale": 1e-200},
        {"scale": "big"},
        {"risk": 1.0},
        {"loss": "hinge"},
    ],
    ids=str,
)
def test_refused_settings(feedback, given):
    with pytest.raises(SettingError, match=next(iter(given))):
        learner(feedback, **given)


def test_no_graph():
    with pytest.raises(SettingError, match="feedback"):
        gaptron.Learner("advised-gaptron", feedback="label-efficient", n_classes=3)


def test_the_settings_of_the_theory():
    for K in (2, 3, 50):
        full, bandit = (file.recommend(problem(f, K)) for f in FEEDBACKS)
        assert full == (2.0, 0, 2 * LN2**2, 2 * LN2**2 / 100, False)
        assert bandit == (0.3, 0, 2 * LN2**2 / K, 0.3 / 16, True)


def test_by_its_certificate_alone_full_information_keeps_the_largest_step():
    s = random_stream(400, K=2)
    who, usual = learner(K=2, rule="certificate"), learner(K=2)
    trace = who.play(s.X, s.y, advice=s.y)
    assert (trace.note("step") == 2 * LN2**2).all()
    assert who.certificate.step == 2 * LN2**2 and who.advice.cost > 1
    assert usual.play(s.X, s.y, advice=s.y).note("step")[-1] < 2 * LN2**2


def test_by_its_certificate_alone_a_bandit_follows_its_levels():
    """ε = min{e₀, σ²/(2Λ)}, σ = 1, no floor, whatever H says."""
    X, y = np.ones((3000, 1)), np.zeros(3000, dtype=int)
    who = learner("bandit", K=3, rule="certificate")
    trace = who.play(X, y)
    Lambda = np.concatenate([[0.0], np.cumsum(trace.note("level"))[:-1]])
    with np.errstate(divide="ignore"):
        close(trace.note("step"), np.minimum(2 * LN2**2 / 3, 1 / (2 * Lambda)), rtol=1e-9)
    assert who.settings.scale == 1.0 and who.settings.least == 0.0
    usual = learner("bandit", K=3)
    steps = usual.play(X, y).note("step")
    assert (steps >= 0.3 / 16 / np.sqrt(3 * np.arange(1, 3001)) * (1 - 1e-12)).all()
