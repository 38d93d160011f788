"""Facts of Frugal Gaptron alone, against its definitions in textbook numpy.

The gap is always worked out from the definition, 1 - q(y) - ℓ^y + (η/2) E‖ĝ‖² with the centred baselines, averaging
over the label drawn; never from the b and c of the code.
"""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaptron
from gaptron.algorithms import frugal as file
from gaptron.data.examples import LARGEST_NORM, SMALLEST_NORM
from gaptron.errors import SettingError
from gaptron.kernels.simplex import TIE
from gaptron.types import UNKNOWN, Comparator, Feedback, Loss, Problem, named, new_round
from tests import plain
from tests.conftest import EVERY_KIND, KINDS, exact32, noisy_stream, portrait, random_stream, separable_stream

LN2 = math.log(2)
LOSSES = [loss.word for loss in Loss]
FEEDBACKS = ["full", "bandit"]
EACH = [(loss, feedback) for loss in LOSSES for feedback in FEEDBACKS]
some = settings(max_examples=150, deadline=None, derandomize=True)
close = np.testing.assert_allclose


def problem(loss, feedback="full", K=3, d=1, X=1.0):
    return Problem(K, d, Feedback[feedback.upper()], Loss[loss.upper().replace("-", "_")], X)


def learner(loss="logistic", feedback="full", K=3, seed=0, **more):
    return gaptron.Learner("frugal-gaptron", loss=loss, feedback=feedback, n_classes=K, seed=seed, **more)


def give_feedback(who, decision, truth):
    if who.problem.feedback is Feedback.BANDIT:
        who.learn(decision, correct=bool(decision.label == truth))
    else:
        who.learn(decision, label=truth)


# --- the definitions ----------------------------------------------------------------------------------------


def sure(s, z):
    return s.loss == Loss.HINGE and plain.margin(z, int(z.argmax())) > s.beta


def baseline(s, z):
    K = len(z)
    if s.loss == Loss.LOGISTIC:
        return (plain.softmax(z) - 1 / K) / LN2
    return np.eye(K)[z.argmax()] - 1 / K if sure(s, z) else np.zeros(K)


def estimate(s, z, q, y, label):
    """ĝ without its ⊗ x when y is the truth and `label` was played."""
    c = plain.coefficients(Loss(s.loss).word, z, y, s.beta)
    if not s.bandit:
        return c
    B = baseline(s, z)
    return B + (label == y) / q[label] * (c - B)


def second_moment(s, z, q, y):
    """E‖ĝ‖²/‖x‖² when y is the truth, label by label (all wrong ones have the same update)."""
    c = plain.coefficients(Loss(s.loss).word, z, y, s.beta)
    if not s.bandit:
        return (1 + 2 * s.delay) * float(c @ c)
    B = baseline(s, z)
    late = 2 * s.delay * float(c @ c)
    if q[y] == 0.0:
        return late + (math.inf if np.abs(c - B).max() > 0 else float(B @ B))
    seen = estimate(s, z, q, y, y)
    return late + q[y] * float(seen @ seen) + (1 - q[y]) * float(B @ B)


def gap(s, z, q, y, h):
    return s.risk * (1 - q[y]) - plain.loss(Loss(s.loss).word, z, y, s.beta) + h * second_moment(s, z, q, y)


def gaps(s, z, q, h):
    return np.array([gap(s, z, q, y, h) for y in range(len(z))])


def room(s, K, step):
    """A round, a scratch and a total before a decision: X = 1, Λ = 0."""
    bandit = Feedback.BANDIT if s.bandit else Feedback.FULL
    work = file.scratch(s, Problem(K, 1, bandit, Loss(s.loss), 1.0), False)
    rd = new_round(K, len(file.NOTES))
    return rd, work, named(square=1.0, level=0.0, step=step, last=step, gap=0.0)


def decided(s, z, share=1.0, step=None, u=0.5, available=True):
    """One decision at scores z (to rounding: see the round), ‖x‖² = share·X². Returns round, h, state, scratch."""
    K, step = len(z), s.first if step is None else step
    x = np.array([math.sqrt(share)])
    W = (np.asarray(z, dtype=float) / (step * x[0])).reshape(K, 1)
    rd, work, total = room(s, K, step)
    rd.available[:] = available
    state = file.FrugalState(W, total)
    file.decide(s, state, x, rd, work, u)
    return rd, step * float(x @ x) / 2, state, work


@st.composite
def scores(draw, sizes=(2, 3, 4, 10, 57, 200)):
    K = draw(st.sampled_from(sizes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = 10.0 ** draw(st.floats(-3, 4))
    kind = draw(st.sampled_from(["free", "tied", "two", "near"]))
    if kind == "free":
        return rng.normal(size=K) * size
    if kind == "tied":
        return rng.integers(-1, 2, size=K) * size
    z = -rng.random(K) * size
    z[rng.choice(K, 2, replace=False)] = [0.0, 0.0 if kind == "two" else -rng.random() * 1e-9]
    return z


def risks(draw, loss, K, bandit):
    top = 2.0 if loss == "logistic" else K / (K - 1)
    return 1.0 if bandit else 1.0 + draw(st.sampled_from([0.0, 0.0, 0.3, 0.99])) * (top - 1.0)


# --- one round ----------------------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("loss, feedback", EACH)
@some
@given(st.data())
def test_every_gap_is_at_most_the_level_whatever_the_scores_and_the_step(loss, feedback, data):
    z = data.draw(scores())
    K = len(z)
    s = file.recommend(
        problem(loss, feedback, K),
        risk=risks(data.draw, loss, K, feedback == "bandit"),
        delay=data.draw(st.sampled_from([0, 0, 1, 7])),
    )
    step = s.first * 10.0 ** data.draw(st.floats(-6, 4))
    rd, h, _, work = decided(s, z, data.draw(st.sampled_from([1.0, 0.25, 1e-8])), step)
    z, q, level = rd.z, rd.p, rd.note[0]
    assert (q >= 0).all() and q.sum() == pytest.approx(1.0, abs=1e-12)
    assert (q[work.c > 0] > 0).all()
    each = gaps(s, z, q, h)
    assert level >= 0.0
    # The sizes that meet in a gap: the scores, and the square of ĝ.
    size = 1 + np.abs(work.b).max() + np.abs(z).max() + float(np.max(work.c / np.where(q > 0, q, 1.0)))
    assert each.max() <= level + 1e-9 * size
    assert rd.note[1] == step and rd.note[2] == 1 - q[z.argmax()]
    if rd.note[3]:
        assert each.max() >= level - 1e-9 * size
    else:
        assert level <= 1e-9  # what labels too rare to be drawn were given
        for y in np.flatnonzero((z < z.max() - TIE * abs(z.max())) & (q > 1e-9))[:8]:  # no more than the gap demands
            less = q.copy()
            less[y] *= 1 - 1e-4
            assert gap(s, z, less, y, h) > 0 or 1e-4 * q[y] < 1e-9 * size


@pytest.mark.parametrize("loss", LOSSES)
@some
@given(st.data())
def test_full_information_never_needs_a_level(loss, data):
    z = data.draw(scores())
    s = file.recommend(
        problem(loss, K=len(z)),
        risk=risks(data.draw, loss, len(z), False),
        delay=data.draw(st.sampled_from([0, 0, 3])),
    )
    rd, _, _, _ = decided(s, z, data.draw(st.sampled_from([1.0, 0.9, 1e-3])))
    assert rd.note[0] <= 1e-12 * (1 + np.abs(z).max())


@pytest.mark.sample(4)
@pytest.mark.parametrize("K", [2, 3, 10, 200])
@pytest.mark.parametrize("loss", LOSSES)
def test_full_information_needs_no_level_near_ties_and_thresholds(loss, K):
    """Where S(0) is largest: a two-way tie (logistic), a K-way tie (hinges), and each side of the margin β."""
    top = 2.0 if loss == "logistic" else K / (K - 1)
    most = 0.0
    for risk in 1 + (top - 1) * np.array([0.0, 0.25, 0.5, 0.9, 0.999]):
        for beta in (None, risk / K, risk * (K - 1) / K):
            s = file.recommend(problem(loss, K=K), risk=risk, beta=beta)
            aside = np.concatenate([[0.0], np.logspace(-12, 0.3, 25), s.beta + np.array([-1e-9, 0.0, 1e-9])])
            for below in (0.0, 1e-6, 0.1, 1.0, 5.0, 40.0):
                for apart in aside:
                    z = np.full(K, -below - apart)
                    z[:2] = 0.0, -apart
                    rd, _, _, _ = decided(s, z)
                    most = max(most, rd.note[0])
    assert most <= 1e-12


def test_the_logistic_step_is_the_largest():
    """A two-way tie: S(0) = 1 exactly, and a step one hundredth larger needs a level."""
    for K in (2, 3, 50):
        s = file.recommend(problem("logistic", K=K))
        z = np.full(K, -800.0)
        z[:2] = 0.0
        _, _, _, work = decided(s, z)
        assert np.maximum(work.b, 0).sum() == pytest.approx(1.0, abs=1e-12)
        rd, _, _, _ = decided(s, z)
        close(rd.p[:2], 0.5, atol=1e-12)
        rd, _, _, _ = decided(s, z, step=1.01 * s.first)
        assert rd.note[0] > 1e-3 and rd.note[3] == 1.0


@pytest.mark.parametrize("loss", ["hinge", "smooth-hinge"])
@pytest.mark.parametrize("K", [2, 3, 50])
def test_the_hinges_steps_are_the_largest(loss, K):
    """A K-way tie: S(0) = 1, also with risk, and a step one hundredth larger needs a level."""
    for risk in (1.0, 1 + 0.5 / (K - 1)):
        s = file.recommend(problem(loss, K=K), risk=risk)
        rd, _, _, work = decided(s, np.zeros(K))
        assert np.maximum(work.b, 0).sum() == pytest.approx(1.0, abs=1e-12)
        close(rd.p, 1 / K, atol=1e-12)
        rd, _, _, _ = decided(s, np.zeros(K), step=1.01 * s.first)
        assert rd.note[0] > 1e-6


@pytest.mark.parametrize("loss, feedback", EACH)
def test_scores_far_apart(loss, feedback):
    """p̃ underflows; the others are not asked for more than nothing, and nothing overflows."""
    for z in ([1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [1e4, 1e4, 1e4], [-1e4, -1e4, -1e4 - 1e-6]):
        s = file.recommend(problem(loss, feedback, 3))
        rd, h, _, work = decided(s, z)
        assert np.isfinite(rd.p).all() and np.isfinite(rd.note).all()
        assert rd.p.sum() == pytest.approx(1.0, abs=1e-12)
        assert (rd.p[work.c > 0] > 0).all()
        assert gaps(s, rd.z, rd.p, h).max() <= rd.note[0] + 1e-9 * 1e4
    rd, _, _, _ = decided(file.recommend(problem(loss, feedback, 3)), [1e4, -1e4, 0.0])
    assert rd.p[0] > 1 - 1e-3


def test_a_common_shift_of_the_scores_changes_nothing_to_rounding():
    """The sums leave the centring out, so all scores of a round may drift together."""
    for loss, feedback in EACH:
        s = file.recommend(problem(loss, feedback, 4))
        z = np.array([0.3, -0.2, 0.25, -2.0])
        rd, _, _, _ = decided(s, z)
        other, _, _, _ = decided(s, z + 1e4)
        close(other.p, rd.p, atol=1e-8)
        close(other.note[0], rd.note[0], atol=1e-8)


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_drawing_at_zero_does_not_pick_a_label_of_next_to_no_probability(feedback):
    s = file.recommend(problem("logistic", feedback, 3))
    K, x = 3, np.array([1.0])
    W = (np.array([-1e4, 1e4, -1e4]) / s.first).reshape(K, 1)
    rd, work, total = room(s, K, s.first * 1e-18)
    label = file.decide(s, file.FrugalState(W * 1e18, total), x, rd, work, 0.0)
    if feedback == "full":
        assert label == 1 and rd.p[0] < 1e-17
    else:  # what feedback would be weighted with is given 2⁻⁴⁰, and may then be drawn
        assert rd.p[label] >= 2.0**-40 and rd.p[0] == rd.p[2] == 2.0**-40


# --- unavailable labels, fractional rewards ----------------------------------------------------------------


def learned(s, state, work, rd, x, label, reward):
    """ĝ without its ⊗ x, as `learn` takes it from feedback on `label`."""
    mine, own = copy.deepcopy((state, work))
    rd.feedback[0].reward, rd.feedback[0].propensity = reward, rd.p[label]
    file.learn(s, mine, x, rd, own, int(label), int(label) if reward > 0.0 or not s.bandit else UNKNOWN)
    return -(mine.W - state.W)[:, 0] / x[0]


@pytest.mark.sample(3)
@pytest.mark.parametrize("loss, feedback", EACH)
@some
@given(st.data())
def test_with_labels_left_out_a_round_is_one_of_the_others_alone(loss, feedback, data):
    """Gaps at most λ, estimates unbiased and as large as thought, all over the available labels; nothing outside."""
    z = data.draw(scores((3, 4, 6)))
    z = np.clip(z, -6, 6)
    K = len(z)
    available = np.array([bool(data.draw(st.booleans())) for _ in range(K)])
    available[data.draw(st.integers(0, K - 1))] = True
    available[data.draw(st.integers(0, K - 1))] = False
    if not available.any():
        return
    s = file.recommend(problem(loss, feedback, K))
    rd, h, state, work = decided(s, z, 0.64, s.first * 10.0 ** data.draw(st.floats(-2, 0)), available=available)
    x, q, left = np.array([0.8]), rd.p[available], rd.z[available]
    assert (
        not rd.p[~available].any() and q.sum() == pytest.approx(1.0, abs=1e-12) and np.isneginf(rd.z[~available]).all()
    )
    if len(left) == 1:
        assert q[0] == 1.0 and work.now[0].level == 0.0
        for reward in (0.0, 0.4, 1.0):
            close(learned(s, state, work, rd, x, int(np.flatnonzero(available)[0]), reward), 0.0, atol=1e-9)
        return
    slack = 1e-9 * (1 + 1 / q[q > 0].min())
    assert gaps(s, left, q, h).max() <= work.now[0].level + slack
    places = np.flatnonzero(available)
    for y in range(len(left)):
        mean, square = np.zeros(len(left)), 0.0
        for label in np.flatnonzero(q > 1e-15):
            answer_to = label if s.bandit else y
            g = learned(s, state, work, rd, x, places[answer_to], float(label == y))
            assert not g[~available].any()
            close(g[available], estimate(s, left, q, y, label), rtol=1e-9, atol=1e-9 * (1 + 1 / q[label]))
            mean, square = mean + q[label] * g[available], square + q[label] * float(g @ g)
        if q[y] > 1e-15:
            close(mean, plain.coefficients(loss, left, y, s.beta), atol=1e-8)
            close(square, second_moment(s, left, q, y), rtol=1e-6, atol=1e-8)


@some
@given(st.data())
def test_rewards_are_unbiased_and_vary_less_than_coins(data):
    """THEORY: E ĝ = Σ_k (r_k + (1 - s)/K) c^k, s = Σ r_k; and E‖ĝ‖² is at most that of outcomes drawn by coins."""
    z = np.clip(data.draw(scores((2, 3, 5))), -4, 4)
    K = len(z)
    s = file.recommend(problem("logistic", "bandit", K))
    rd, _, state, work = decided(s, z)
    x, q = np.array([1.0]), rd.p
    rewards = np.array([data.draw(st.floats(0, 1)) for _ in range(K)])
    mean, square, by_coins = np.zeros(K), 0.0, 0.0
    for label in np.flatnonzero(q > 1e-15):
        right, wrong, part = (learned(s, state, work, rd, x, label, r) for r in (1.0, 0.0, rewards[label]))
        right, wrong, part = right - right.mean(), wrong - wrong.mean(), part - part.mean()
        mean, square = mean + q[label] * part, square + q[label] * part @ part
        by_coins += q[label] * (rewards[label] * right @ right + (1 - rewards[label]) * wrong @ wrong)
    rest = (1 - rewards.sum()) / K
    c = [plain.coefficients("logistic", rd.z, k, s.beta) for k in range(K)]
    close(mean, sum((rewards[k] + rest) * c[k] for k in range(K)), atol=1e-9)
    assert square <= by_coins * (1 + 1e-12) + 1e-12


# --- estimators ---------------------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("loss, feedback", EACH)
@some
@given(st.data())
def test_what_is_learned_is_unbiased_and_as_large_as_the_gap_thinks(loss, feedback, data):
    """Every label that could be drawn, by the real `learn` on copies of the state; centred over labels."""
    z = data.draw(scores((2, 3, 5)))
    z = np.clip(z, -6, 6) if data.draw(st.booleans()) else z * min(1.0, 3 / np.abs(z).max(initial=1e-9))
    K = len(z)
    s = file.recommend(problem(loss, feedback, K))
    rd, h, state, work = decided(s, z, 0.64, s.first * 10.0 ** data.draw(st.floats(-2, 0)))
    x, q = np.array([0.8]), rd.p
    for y in range(K):
        mean, square = np.zeros(K), 0.0
        for label in np.flatnonzero(q > 1e-15):
            mine, own = copy.deepcopy((state, work))
            shown = y if feedback == "full" or label == y else UNKNOWN
            rd.feedback[0].reward, rd.feedback[0].propensity = float(label == y), q[label]
            file.learn(s, mine, x, rd, own, int(label), shown)
            g = -(mine.W - state.W)[:, 0] / x[0]
            g -= g.mean()  # the code leaves the common part out
            close(g, estimate(s, rd.z, q, y, label), rtol=1e-9, atol=1e-9 * (1 + 1 / q[label]))
            mean += q[label] * g
            square += q[label] * float(g @ g)
        c = plain.coefficients(loss, rd.z, y, s.beta)
        if q[y] > 1e-15:
            close(mean, c, atol=1e-9)
            close(square, second_moment(s, rd.z, q, y), rtol=1e-7, atol=1e-9)
        else:
            assert feedback == "full" or np.abs(c - baseline(s, rd.z)).max() == 0 or q[y] > 0
        if feedback == "bandit" and q[y] > 0:  # THEORY 2.2: the general form, and the rows of its table
            B = baseline(s, rd.z)
            general = 2 * B @ c - B @ B + (c - B) @ (c - B) / q[y]
            close(general, second_moment(s, rd.z, q, y), rtol=1e-9, atol=1e-9 / q[y])
            table_b = 1 - plain.loss(loss, rd.z, y, s.beta) + h * (2 * B @ c - B @ B)
            close(work.b[y], table_b, atol=1e-9 * (1 + np.abs(rd.z).max()))
            close(work.c[y], h * (c - B) @ (c - B), rtol=1e-9, atol=1e-15)


def test_the_table_of_baselines():
    """THEORY 2.2's b and c for the logistic loss and the sure hinge, letter by letter."""
    z = np.array([1.2, 0.1, -0.3, -0.3])
    K = 4
    s = file.recommend(problem("logistic", "bandit", K))
    rd, h, _, work = decided(s, z)
    p, kappa = plain.softmax(rd.z), h / LN2**2
    losses = -np.log2(p)
    close(work.b, 1 - losses + kappa * (p @ p - 2 * p + 1 / K), atol=1e-14)
    close(work.c, kappa * (1 - 1 / K), rtol=1e-14)
    s = file.recommend(problem("hinge", "bandit", K))
    rd, h, _, work = decided(s, z)
    assert plain.margin(rd.z, 0) > s.beta
    others = 1 - (1 - (z[1:] - z[0])) + h * (1 + 1 / K)
    close(work.b, [1 - h * (1 - 1 / K), *others], atol=1e-14)
    close(work.c, h * (1 - 1 / K), rtol=1e-14)


# --- runs by hand -------------------------------------------------------------------------------------------


def play_by_hand(who, rounds):
    """Each round: x, y, expected q, expected weights after it."""
    for t, (x, y, q, W) in enumerate(rounds, 1):
        decision = who.decide(x)
        close(decision.distribution, q, rtol=0, atol=1e-14, err_msg=f"round {t}")
        who.learn(decision, label=y)
        close(who.weights, W, rtol=0, atol=1e-14, err_msg=f"round {t}")


def test_five_rounds_of_the_hinge_by_hand():
    """K = 2: β = ½, ε = ½. A label asks 1 - ℓ + ½‖x‖²."""
    who = learner("hinge", K=2)
    assert (who.settings.first, who.settings.beta) == (0.5, 0.5)
    play_by_hand(
        who,
        [
            ([1, 0], 1, [0.5, 0.5], [[-0.5, 0], [0.5, 0]]),
            # m* = 1 > ½: sure, and right: silent
            ([1, 0], 1, [0.0, 1.0], [[-0.5, 0], [0.5, 0]]),
            # sure, and wrong
            ([1, 0], 0, [0.0, 1.0], [[0, 0], [0, 0]]),
            # half as long: a tie, both ask ⅛ and share the rest
            ([0, 0.5], 0, [0.5, 0.5], [[0, 0.25], [0, -0.25]]),
            # z = ±.2, m* = .4: 1 - .6 + .5 and 1 - 1.4 + .5
            ([0.6, 0.8], 1, [0.9, 0.1], [[-0.3, -0.15], [0.3, 0.15]]),
            ([0, 0], 1, [0.5, 0.5], [[-0.3, -0.15], [0.3, 0.15]]),
            # twice as long: η falls to an eighth, and the weights with it: z = ∓.15, 1 - .7 + .5, 1 - 1.3 + .5
            ([2, 0], 1, [0.2, 0.8], [[-0.325, -0.0375], [0.325, 0.0375]]),
        ],
    )
    assert who.certificate == (0.0, 0.5, 2.0, 1.0, False, 0.0, 0.0)


def test_five_rounds_of_the_smooth_hinge_by_hand():
    """K = 2: ε = ⅛, so ½·ε·8 = ½: a label below asks ½ - ℓ + 1, one above 1 - ½(1 - m)²."""
    play_by_hand(
        learner("smooth-hinge", K=2, norm=1.0),
        [
            ([1, 0], 1, [0.5, 0.5], [[-0.25, 0], [0.25, 0]]),
            # m = ½: 1 - ¼ + ⅛ = ⅞ for the top, nothing for the other
            ([1, 0], 1, [0.0, 1.0], [[-0.375, 0], [0.375, 0]]),
            ([1, 0], 0, [0.0, 1.0], [[-0.125, 0], [0.125, 0]]),
            ([0, 1], 0, [0.5, 0.5], [[-0.125, 0.25], [0.125, -0.25]]),
            # m = ¼: the other asks 1 - 1.5 + .5 = 0; v = 3/2
            ([0.6, 0.8], 0, [1.0, 0.0], [[-0.0125, 0.4], [0.0125, -0.4]]),
        ],
    )


def test_five_rounds_of_the_logistic_loss_by_hand():
    """K = 2: ε = 2 ln²2, κ = ‖x‖². W in units of ln 2."""
    two = 1 / (1 + 2**2.8)
    back = -1.4 + 2 * (1 - two)  # after a sure mistake
    a = np.array([-1.0, 1.0])[:, None] * LN2
    who = learner("logistic", K=2, norm=1.0)
    play_by_hand(
        who,
        [
            # p̃ = ½: 1 - 1 + ½
            ([1, 0], 1, [0.5, 0.5], a * [1, 0]),
            # p̃ = (⅕, ⅘): 1 - log₂5 + 2·.64 < 0 for the first; c = ⅕
            ([1, 0], 1, [0.0, 1.0], a * [1.4, 0]),
            ([1, 0], 0, [0.0, 1.0], a * [1.4 - 2 * (1 - two), 0]),
            # κ = ¼: a tie, ⅛ and half of the rest each; step ½·2·½
            ([0, 0.5], 0, [0.5, 0.5], a * [-back, -0.5]),
        ],
    )
    # z = (-w, w) ln 2 with w = .6·(-back) - .8·½
    w = 0.6 * -back - 0.8 * 0.5
    p = np.array([1, 4.0**w]) / (1 + 4.0**w)
    asked = np.maximum(1 + np.log2(p) + 2 * (1 - p) ** 2, 0)
    asked[p.argmax()] += 1 - asked.sum()
    decision = who.decide([0.6, 0.8])
    close(decision.distribution, asked, atol=1e-13)
    who.learn(decision, label=1)
    close(who.weights, a * (np.array([-back, -0.5]) + 2 * (1 - p[1]) * np.array([0.6, 0.8])), atol=1e-13)


def test_two_bandit_rounds_of_the_hinge_by_hand():
    """K = 2: e₀ = ¼, h = ⅛, c = ¼: at a tie √¼ each, and no level. Right: 1/q = 2 twice, so m* = ¼·2·2 = 1: sure.

    Then level λ: the other asks root(-λ - 1 + 3/16, 1/16), the top root(1 - λ - 1/16, 1/16).
    """
    who = learner("hinge", "bandit", K=2, seed=1)
    decision = who.decide([1.0])
    close(decision.distribution, [0.5, 0.5], atol=0)
    who.learn(decision, correct=True)
    top = decision.label
    close(who.weights[top], 0.5), close(who.weights[1 - top], -0.5)
    second = who.decide([1.0])
    q = second.distribution[1 - top]
    lower, upper = -1 + 3 / 16 - q + 1 / (16 * q), 1 - 1 / 16 - (1 - q) + 1 / (16 * (1 - q))
    level = who.certificate.level
    assert lower == pytest.approx(upper, abs=1e-11) and lower == pytest.approx(level, abs=1e-11) and 0 < level < 0.25


class Textbook:
    """Frugal Gaptron in plain Python: lists, sums and bisection; no root formula, no Newton, no numpy."""

    def __init__(self, loss, bandit, K, d, sigma=1.0, r=1.0, beta=None):
        self.loss, self.bandit, self.K, self.sigma, self.r = loss, bandit, K, sigma, r
        self.theta = [[0.0] * d for _ in range(K)]
        first = {
            "logistic": 2 * (2 - r) * LN2**2,
            "hinge": 1 - r * (K - 1) / K,
            "smooth-hinge": (1 - r * (K - 1) / K) / 4,
        }[loss]
        self.first = first / K if bandit else first
        self.beta, self.longest, self.total, self.levels = beta, 0.0, 0.0, []

    def about(self, z, y):
        """ℓ and c of label y."""
        K = self.K
        e = [0.0] * K
        if self.loss == "logistic":
            top = max(z)
            mass = [math.exp(v - top) for v in z]
            p = [m / sum(mass) for m in mass]
            c = [(p[k] - (k == y)) / LN2 for k in range(K)]
            return (math.log(sum(mass)) + top - z[y]) / LN2, c, [(v - 1 / K) / LN2 for v in p]
        best = z.index(max(z))
        rival = max((k for k in range(K) if k != y), key=lambda k: (z[k], -k))
        m = z[y] - z[rival]
        star = z[best] - max(z[k] for k in range(K) if k != best)
        B = list(e)
        if self.loss == "hinge":
            sure = star > self.beta
            value = 0.0 if sure and y == best else max(1 - m, 0.0)
            v = 1.0 if value > 0 else 0.0
            if sure:
                B = [(k == best) - 1 / K for k in range(K)]
        else:
            value = 1 - 2 * m if m <= 0 else max(1 - m, 0.0) ** 2
            v = 2.0 if m <= 0 else 2 * max(1 - m, 0.0)
        e[rival], e[y] = v, -v
        return value, e, B

    def gap(self, z, y, q, h):
        value, c, B = self.about(z, y)
        if not self.bandit:
            return self.r * (1 - q) - value + h * sum(v * v for v in c)
        far = sum((a - b) ** 2 for a, b in zip(c, B))
        if far > 0 and q == 0:
            return math.inf
        square = sum(2 * a * b - b * b for a, b in zip(c, B)) + (far / q if far > 0 else 0.0)
        return self.r * (1 - q) - value + h * square

    def least(self, z, y, level, h):
        low, high = 0.0, 1.0
        if self.gap(z, y, 0.0, h) <= level:
            return 0.0
        while self.gap(z, y, high, h) > level:
            high *= 2
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (middle, high) if self.gap(z, y, middle, h) > level else (low, middle)
        return high

    def decide(self, x):
        square = sum(v * v for v in x)
        self.longest = max(self.longest, square)
        eps = self.first
        if self.bandit and self.total > 0:
            eps = min(eps, self.sigma**2 / (2 * self.total))
        self.eta = eps / self.longest if self.longest else 0.0
        z = [self.eta * sum(w * v for w, v in zip(row, x)) for row in self.theta]
        h = self.eta * square / 2
        level = 0.0
        q = [self.least(z, y, 0.0, h) for y in range(self.K)]
        if sum(q) > 1 + 1e-13:
            low, high = 0.0, 4.0
            for _ in range(60):
                level = (low + high) / 2
                q = [self.least(z, y, level, h) for y in range(self.K)]
                low, high = (level, high) if sum(q) > 1 else (low, level)
        tied = [k for k in range(self.K) if z[k] >= max(z) - TIE * abs(max(z))]
        left = (1 - sum(q)) / len(tied)
        for k in tied:
            q[k] += left
        self.total += level
        self.levels.append(level)
        return z, q

    def learn(self, x, z, q, label, truth):
        _, c, B = self.about(z, truth)
        if self.bandit:
            w = 1 / q[label] if label == truth else 0.0
            c = [b + w * (a - b) for a, b in zip(c, B)]
        for k in range(self.K):
            for i, v in enumerate(x):
                self.theta[k][i] -= c[k] * v


@pytest.mark.sample(6)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("loss, feedback", EACH)
def test_thirty_rounds_as_plain_python_plays_them(loss, feedback, K):
    rng = np.random.default_rng(K)
    X = np.round(rng.choice([-1.0, 1.0], size=(30, 1)) * [1.0, 0.3] + 0.1 * rng.normal(size=(30, 2)), 2)
    X[4] = 0.0
    X[25:] *= 2
    who = learner(loss, feedback, K, seed=5)
    book = Textbook(loss, feedback == "bandit", K, 2, beta=who.settings.beta)
    assert who.settings.first == pytest.approx(book.first, rel=1e-14)
    for t in range(30):
        x = X[t].tolist()
        decision = who.decide(X[t])
        z, q = book.decide(x)
        close(decision.distribution, q, rtol=0, atol=2e-9, err_msg=f"round {t + 1}")
        truth = int(X[t, 0] > 0) if t % 10 else (decision.label + 1) % K
        give_feedback(who, decision, truth)
        book.learn(x, z, q, decision.label, truth)
        close(who.certificate.level, book.total, atol=1e-8)
        close(who.weights, (np.array(book.theta)) * who.certificate.step / max(book.longest, 1e-300), atol=1e-6)
    assert (book.total > 0) == (feedback == "bandit") or K > 2


# --- edges --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss, feedback", EACH)
def test_a_zero_row_is_a_tie_and_teaches_nothing(loss, feedback):
    for K in (2, 5):
        who = learner(loss, feedback, K)
        for _ in range(2):  # first of all, and again later
            before = who.weights.copy() if who.rounds else np.zeros((K, 3))
            decision = who.decide(np.zeros(3))
            close(decision.distribution, 1 / K)
            certificate = who.certificate
            assert certificate.level == who._engine.state.total[0].level and np.isfinite(certificate.cost(1.0))
            give_feedback(who, decision, 1)
            close(who.weights, before)
            assert who.certificate == certificate
            give_feedback(who, who.decide([1.0, -2.0, 0.5]), 1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("loss, feedback", EACH)
def test_a_row_a_million_times_longer_than_those_before(loss, feedback):
    s = random_stream(200, K=3)
    X = s.X.copy()
    X[100] *= 1e6
    who = learner(loss, feedback, s.K)
    with pytest.warns(gaptron.OutlierWarning, match="row 100 of X"):
        trace = who.play(X, s.y)
    assert np.isfinite(trace.notes).all() and np.isfinite(who.weights).all()
    assert who.certificate.norm == pytest.approx(np.linalg.norm(X, axis=1).max(), rel=1e-12)
    P = who.distribution(X)
    close(P.sum(axis=1), 1.0, atol=1e-12)
    if feedback == "full":
        assert trace.note("level").max() <= 1e-12
        assert trace.expected_mistakes <= who.bound(X, s.y).value


@pytest.mark.parametrize("loss, feedback", EACH)
def test_the_scale_of_the_rows_does_not_matter(loss, feedback):
    s = noisy_stream(150, K=3, seed=4)
    one = learner(loss, feedback, s.K)
    first = one.play(s.X, s.y)
    for factor, to in ((100.0, 1e-9), (1e-7, 1e-9), (2.0**20, 0.0), (2.0**-60, 0.0)):
        other = learner(loss, feedback, s.K)
        trace = other.play(s.X * factor, s.y)
        np.testing.assert_array_equal(trace.codes, first.codes)
        np.testing.assert_array_equal(trace.top, first.top)
        close(trace.notes, first.notes, rtol=to, atol=to)
        close(trace.truth_probability, first.truth_probability, rtol=to, atol=to)
        close(other.weights * factor, one.weights, rtol=max(to, 1e-15), atol=1e-9 * (to > 0))
        assert other.certificate.level == pytest.approx(one.certificate.level, rel=1e-9)


@pytest.mark.parametrize("loss, feedback", EACH)
@pytest.mark.filterwarnings("ignore::gaptron.OutlierWarning")
def test_rows_as_short_or_as_long_as_are_taken_stay_finite(loss, feedback):
    s = noisy_stream(100, K=3, seed=4)
    for factor in (2 * SMALLEST_NORM, LARGEST_NORM / 2):
        who = learner(loss, feedback, s.K)
        trace = who.play(s.X * factor, s.y)
        assert np.isfinite(trace.notes).all() and np.isfinite(trace.truth_probability).all()
        assert np.isfinite(who.scores(s.X * factor)).all()
        close(who.distribution(s.X * factor).sum(axis=1), 1.0, atol=1e-12)
        later = who.play(s.X * LARGEST_NORM / 2, s.y)
        assert np.isfinite(later.notes).all() and np.isfinite(who.weights).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_shortest_rows_are_rows_too_or_are_paid_for(loss):
    """What the certificate says of short rows must be true of them: a wrong label each round, and a U that never errs.

    Rows taken for zero are rounds skipped (THEORY 2.1): each costs λ_t = max_y(1 - q_t(y)).
    """
    T, x = 400, SMALLEST_NORM
    who = learner(loss, K=2)
    trace = who.play(np.full((T, 1), x), np.ones(T, dtype=int))
    U = np.array([[-5.0], [5.0]])
    L = sum(plain.loss(loss, U[:, 0], 1, -math.inf) for _ in range(T))
    certificate = who.certificate
    scaled = Comparator(L, float(np.linalg.norm(U)) / x, T)
    assert trace.expected_mistakes <= certificate.bound(scaled)


@pytest.mark.parametrize("loss, feedback", EACH)
def test_one_feature_two_classes_and_many_rounds(loss, feedback):
    rng = np.random.default_rng(2)
    X = rng.choice([-1.0, 1.0, 0.5], size=(500, 1))
    y = (X[:, 0] > 0).astype(int)
    who = learner(loss, feedback, 2)
    trace = who.play(X, y)
    assert trace.mistakes < 60 and np.isfinite(who.weights).all()
    close(who.weights.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.sample(4)
@pytest.mark.parametrize("rows", EVERY_KIND)
@pytest.mark.parametrize("loss, feedback", EACH)
def test_scores_differ_from_the_weights_by_one_number_a_row(loss, feedback, rows):
    s = random_stream(120, K=3)
    who = learner(loss, feedback, s.K)
    X = exact32(s.X)
    who.play(KINDS[rows](X), s.y)
    Z = who.scores(KINDS[rows](X)) - X @ who.weights.T
    close(Z - Z.mean(axis=1, keepdims=True), 0.0, atol=1e-9)


# --- what a decision fixes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss, feedback", EACH)
def test_looking_leaves_the_certificate_and_deciding_moves_it_once(loss, feedback):
    s = random_stream(80, K=3, seed=1)
    who = learner(loss, feedback, s.K, delay=4)
    trace = who.play(s.X, s.y)
    before, whole = who.certificate, portrait(who)
    longer = s.X * 50
    who.scores(longer), who.distribution(longer), who.predict(longer), who.weights, repr(who)
    assert who.certificate == before and portrait(who) == whole
    level, norm, opened = before.level, before.norm, []
    for x in (s.X[0], longer[1], s.X[2], longer[3] * 2):
        opened.append(who.decide(x))
        level += who._engine.round.note[0]
        norm = max(norm, float(np.linalg.norm(x)))
        assert who.certificate.level == pytest.approx(level, rel=1e-14)
        assert who.certificate.norm == pytest.approx(norm, rel=1e-14)
    told = who.certificate
    give_feedback(who, opened[2], 0)
    give_feedback(who, opened[0], 1)
    assert who.certificate == told  # feedback changes nothing of it; missing feedback has moved it already
    assert trace.note("level").sum() <= level


@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_is_the_sum_of_the_levels_noted_and_steps_never_grow(loss):
    for seed in range(3):
        s = separable_stream(400, seed=seed)
        who = learner(loss, "bandit", s.K, seed=seed, scale=0.3)
        trace = who.play(s.X, s.y)
        levels, steps = trace.note("level"), trace.note("step")
        assert who.certificate.level == pytest.approx(levels.sum(), rel=1e-12)
        assert (np.diff(steps) <= 0).all() and steps[0] == who.settings.first
        before = np.concatenate([[0.0], np.cumsum(levels)[:-1]])
        with np.errstate(divide="ignore"):
            close(steps, np.minimum(who.settings.first, 0.3**2 / (2 * before)), rtol=1e-9)
        assert (trace.note("solved") == (levels > 0)).all()
        assert levels.max() > 0 and steps[-1] < steps[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificates_step_is_that_of_the_last_round(loss):
    """THEORY: C_T(U) = ‖U‖²/(2η_T) + Λ_T, and η_T knows Λ_{T-1} only; the step after it charges too much."""
    s = separable_stream(400)
    who = learner(loss, "bandit", s.K, scale=0.1)
    trace = who.play(s.X, s.y)
    while trace.note("level")[-1] == 0.0:
        trace = who.play(s.X[:1], s.y[:1])
    assert who.certificate.step == trace.note("step")[-1]


# --- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3, 10, 50])
def test_the_steps_of_the_theory(K):
    first = {
        ("logistic", 1.0): 2 * LN2**2,
        ("logistic", 1.5): LN2**2,
        ("hinge", 1.0): 1 / K,
        ("smooth-hinge", 1.0): 1 / (4 * K),
        ("hinge", 1 + 1 / (2 * (K - 1))): 1 / (2 * K),
        ("smooth-hinge", 1 + 1 / (2 * (K - 1))): 1 / (8 * K),
    }
    for (loss, risk), step in first.items():
        assert file.recommend(problem(loss, K=K), risk=risk).first == pytest.approx(step, rel=1e-12)
        late = file.recommend(problem(loss, K=K), risk=risk, delay=4).first
        assert late == pytest.approx(step / 9, rel=1e-12)
    for loss, step in (("hinge", 1 / K**2), ("smooth-hinge", 1 / (4 * K**2)), ("logistic", 2 * LN2**2 / K)):
        assert file.recommend(problem(loss, "bandit", K)).first == pytest.approx(step, rel=1e-12)
    assert file.recommend(problem("hinge", "bandit", K)).beta == pytest.approx(1 - 1 / K, rel=1e-12)
    for risk in (1.0, 1 + 0.9 / (K - 1)):
        assert risk / K <= file.recommend(problem("hinge", K=K), risk=risk).beta <= risk * (K - 1) / K * (1 + 1e-12)


@pytest.mark.parametrize(
    "loss, feedback, given",
    [
        ("logistic", "full", {"risk": 2.0}),
        ("logistic", "full", {"risk": 0.99}),
        ("logistic", "full", {"risk": math.nan}),
        ("hinge", "full", {"risk": 1.5}),  # K/(K-1) for K = 3
        ("smooth-hinge", "full", {"risk": 1.6}),
        ("logistic", "bandit", {"risk": 1.2}),
        ("logistic", "bandit", {"risk": math.nan}),
        ("logistic", "full", {"delay": -1}),
        ("logistic", "full", {"delay": 1.5}),
        ("hinge", "full", {"beta": 0.3}),
        ("hinge", "full", {"beta": 0.7}),
        ("hinge", "full", {"beta": math.nan}),
        ("hinge", "bandit", {"beta": 0.7}),
        ("hinge", "bandit", {"beta": -0.1}),
        ("logistic", "bandit", {"scale": 0.0}),
        ("logistic", "bandit", {"scale": -1.0}),
        ("logistic", "bandit", {"scale": math.inf}),
        ("logistic", "bandit", {"scale": math.nan}),
        ("logistic", "full", {"delay": math.nan}),
        ("logistic", "full", {"delay": math.inf}),
        ("logistic", "full", {"unheard": 1}),
    ],
)
def test_refused_settings(loss, feedback, given):
    with pytest.raises(SettingError):
        learner(loss, feedback, 3, **given)


def test_accepted_at_the_edges():
    learner("hinge", "full", 3, beta=1 / 3), learner("hinge", "full", 3, beta=2 / 3)
    learner("hinge", "bandit", 3, beta=2 / 3), learner("logistic", "full", 2, risk=1.999999)
    learner("hinge", "full", 2, risk=1.9), learner("logistic", "full", 3, delay=0)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 0.0, math.inf])
def test_scales_that_cannot_be_squared_are_refused(scale):
    with pytest.raises(SettingError, match="scale"):
        learner("logistic", "bandit", 3, scale=scale)


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
def test_absurd_scales_stay_finite(scale):
    s = separable_stream(400)
    who = learner("logistic", "bandit", s.K, scale=scale)
    trace = who.play(s.X, s.y)
    assert who.certificate.level > 0
    assert np.isfinite(trace.notes).all() and np.isfinite(who.weights).all()
    assert who.certificate.cost(1.0) > 0


@pytest.mark.parametrize("risk", [1.0, 1.5])
def test_a_round_whose_norm_is_too_small_to_divide_by_costs_its_whole_gap(risk):
    """No update pays for it: the gap of label y is risk·(1 - p(y)), and only available labels count."""
    p, available = np.array([0.7, 0.25, 0.05, 0.0]), np.array([True, True, True, False])
    b, now = np.full(4, -math.inf), named(square=1e-310, level=0.0)
    assert file.keep_level(risk, available, b, p, now, 0.125) == risk * 0.95
    assert (now[0].square, now[0].level) == (0.0, risk * 0.95)
    np.testing.assert_array_equal(b, [1.0, 1.0, 1.0, -math.inf])
    now[0].square = 1.0
    assert file.keep_level(risk, available, b, p, now, 0.125) == now[0].level == risk * 0.125
