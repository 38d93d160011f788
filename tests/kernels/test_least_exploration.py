"""The least exploration: against bisection in long doubles, which knows only b - q + c/q ≤ λ."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gaptron.kernels.gaps import logistic
from gaptron.kernels.simplex import RAISED, draw, least_exploration, mask_unavailable, raise_rare, roots

some = settings(max_examples=200, deadline=None, derandomize=True)
LONG = np.longdouble
TINY = 1e-150  # b² underflows below it


def root(b, c):
    """One label's demand at λ = 0, by the kernel."""
    q = np.full(1, np.nan)
    total = roots(np.array([b]), np.array([c]), 0.0, q)
    assert total == q[0]
    return float(q[0])


def gap(b, c, q):
    """What the label's gap is at probability q."""
    return b - q + (c / q if c > 0 else 0.0)


def demand(b, c):
    """The root ρ(b, c) in long doubles, by the form without cancellation."""
    b, c = np.asarray(b, dtype=LONG), np.asarray(c, dtype=LONG)
    wide = np.sqrt(b * b + 4 * c)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(c > 0, 2 * c / (wide - b), LONG(0))
    return np.where(b > 0, (b + wide) / 2, low)


def level_by_bisection(b, c):
    """The least λ ≥ 0 with S(λ) ≤ 1: monotone, so halving is enough."""
    b, c = np.asarray(b, dtype=LONG), np.asarray(c, dtype=LONG)
    if demand(b, c).sum() <= 1:
        return 0.0
    low, high = LONG(0), LONG(1)
    while demand(b - high, c).sum() > 1:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if demand(b - middle, c).sum() > 1 else (low, middle)
    return float(high)


def paid(b, c):
    """What labels too rare to be drawn may cost: each takes 2⁻⁴⁰ from the largest, which has at least 1/K."""
    rare = int(((demand(b, c) < 2.0**-53) & (np.asarray(c) > 0)).sum())
    return rare * 2.0**-40 * (1 + 2 * np.max(c) * len(b) ** 2)


def solve(b, c, top=0):
    b, c = np.array(b, dtype=float), np.array(c, dtype=float)
    q = np.full(len(b), np.nan)
    level, solved = least_exploration(b, c, np.eye(len(b))[top], top, q)
    return level, solved, q


@st.composite
def demands(draw_one):
    """b and c of K labels: of any size, alike or not, seen for free or not."""
    K = draw_one(st.sampled_from([2, 3, 5, 17, 200]))
    rng = np.random.default_rng(draw_one(st.integers(0, 2**32 - 1)))
    size = 10.0 ** draw_one(st.floats(-6, 4))
    kind = draw_one(st.sampled_from(["mixed", "below", "alike", "one"]))
    if kind == "alike":
        b = np.full(K, draw_one(st.floats(-1, 1)) * size)
    elif kind == "one":
        b = np.full(K, -size)
        b[rng.integers(K)] = 1.0
    else:
        b = (rng.normal(size=K) if kind == "mixed" else -rng.random(K)) * size
    cost = draw_one(st.sampled_from([0.0, 1e-300, 1e-12, 1e-6, 1e-2, 1.0, 1e4]))
    c = np.full(K, cost) if draw_one(st.booleans()) else cost * rng.random(K)
    return b, c, int(np.argmax(b))


@some
@given(st.floats(-1e8, 1e8), st.one_of(st.just(0.0), st.floats(1e-280, 1e8)))
@example(0.0, 0.0)
@example(-1.0, 0.0)
@example(1e-300, 1e-280)
@example(-1e8, 1e-280)
def test_root_is_the_least_probability_that_keeps_the_gap(b, c):
    rho = root(b, c)
    assert rho >= 0.0 and (rho > 0.0 or c == 0.0 >= b)
    assert rho == pytest.approx(float(demand(b, c)), rel=1e-14, abs=TINY)
    if c > 0:
        assert gap(b, c, rho * (1 + 1e-12)) <= 1e-12 * (1 + abs(b) + c / rho)
        assert gap(b, c, rho * (1 - 1e-9)) > 0 or rho * 1e-9 < 1e-14 * (1 + abs(b) + c / rho)


def test_root_by_hand():
    assert root(0.0, 0.25) == 0.5
    assert root(1.5, 1.0) == 2.0
    assert root(-1.5, 1.0) == 0.5
    assert root(0.75, 0.0) == 0.75
    assert root(-1e9, 1e-9) == pytest.approx(1e-18, rel=1e-14)  # (b + √(b²+4c))/2 would give 0


@some
@given(demands())
def test_a_distribution_whose_gaps_are_at_most_the_level_and_no_lower_level_will_do(case):
    b, c, top = case
    level, solved, q = solve(b, c, top)
    slack = 1e-9 * (1 + np.abs(b).max() + c.max())
    assert (q >= 0).all() and q.sum() == pytest.approx(1.0, abs=1e-12)
    assert (q[c > 0] > 0).all()
    assert level >= 0.0 and (solved or level <= paid(b, c))
    for y in range(len(b)):
        assert gap(b[y], c[y], q[y]) <= level + slack
    least = level_by_bisection(b, c)
    assert level == pytest.approx(least, rel=1e-10, abs=slack)


@some
@given(demands())
def test_the_charge_is_the_largest_gap_of_the_distribution_played(case):
    """λ_t bounds the gaps of the q really played to rounding, not to the tolerance of the solver."""
    b, c, top = case
    level, solved, q = solve(b, c, top)
    seen = q > 0
    largest = np.max(b[seen] - q[seen] + np.where(c[seen] > 0, c[seen] / q[seen], 0.0))
    weight = np.max(np.abs(b)) + 1 + np.max(np.where(c[seen] > 0, c[seen] / q[seen], 0.0))
    assert largest <= level + 1e-13 * len(b) * weight
    if solved and level > 1e-6 * weight:
        assert largest == pytest.approx(level, rel=1e-6)


@some
@given(demands())
def test_without_a_level_every_label_but_the_top_gets_just_its_demand(case):
    b, c, top = case
    _, solved, q = solve(b, c, top)
    if solved:
        return
    rho = demand(b, c).astype(float)
    rare = (rho < 2.0**-53) & (c > 0)
    others = (np.arange(len(b)) != top) & ~rare
    if q.argmax() != top and rare.any():
        others[q.argmax()] = False  # it paid for them
    np.testing.assert_allclose(q[others], rho[others], rtol=1e-14, atol=TINY)
    np.testing.assert_array_equal(q[rare & (np.arange(len(b)) != top)], 2.0**-40)
    assert q[top] >= rho[top] * (1 - 1e-14) - rare.sum() * 2.0**-40
    for y in np.flatnonzero(others & (q > 1e-12)):
        less = q[y] * (1 - 1e-6)
        assert gap(b[y], c[y], less) > 0 or q[y] * 1e-6 < 1e-13 * (1 + abs(b[y]))


def test_exactly_one_needs_no_level():
    level, solved, q = solve([0.5, 0.5], [0.0, 0.0])
    assert (level, solved) == (0.0, False) and q.tolist() == [0.5, 0.5]
    level, solved, q = solve([0.0] * 4, [1 / 16] * 4)
    assert (level, solved) == (0.0, False) and q.tolist() == [0.25] * 4


def test_a_hair_above_one_is_charged():
    b = [0.5, np.nextafter(0.5, 1) + 1e-15]
    level, solved, q = solve(b, [0.0, 0.0])
    assert solved and 0.0 < level < 2e-15
    assert q.sum() == pytest.approx(1.0, abs=2e-16)
    assert max(np.array(b) - q) <= level + 2e-16


def test_full_information_level_by_hand():
    """c = 0: the demands (1, ½, -1) lose λ each until they sum to 1: λ = ¼."""
    level, solved, q = solve([1.0, 0.5, -1.0], [0.0] * 3)
    assert solved and level == pytest.approx(0.25, abs=1e-12)
    np.testing.assert_allclose(q, [0.75, 0.25, 0.0], atol=1e-12)


def test_bandit_level_by_hand():
    """K alike labels: q = 1/K each, so λ = b - 1/K + Kc."""
    for K in (2, 3, 10, 200):
        level, solved, q = solve([0.5] * K, [0.3] * K)
        assert solved and level == pytest.approx(0.5 - 1 / K + 0.3 * K, rel=1e-11)
        np.testing.assert_allclose(q, 1 / K, rtol=1e-12)


@pytest.mark.parametrize("big", [1e4, 1e8, 1e12])
def test_numbers_so_large_that_the_sum_cannot_be_met_exactly(big):
    level, _, q = solve([big, big * (1 + 1e-12), 0.0], [1.0, big, big])
    assert math.isfinite(level) and q.sum() == pytest.approx(1.0, abs=1e-12)
    assert level >= level_by_bisection([big, big * (1 + 1e-12), 0.0], [1.0, big, big]) * (1 - 1e-9)


def test_labels_too_rare_to_be_drawn_by_hand():
    """The demands of the last two are c/3 and 0: the one that counts gets 2⁻⁴⁰, the one that does not, nothing."""
    level, solved, q = solve([0.5, -3.0, -3.0], [0.0, 1e-20, 0.0])
    assert not solved and q.tolist() == [1 - 2.0**-40, 2.0**-40, 0.0]
    assert level == 0.0  # the first asked for ½ only
    level, solved, q = solve([1.0, -3.0, -3.0], [0.0, 1e-20, 0.0])
    assert q.tolist() == [1 - 2.0**-40, 2.0**-40, 0.0]
    assert level == 2.0**-40  # 1 - q(0): what it lost
    _, _, q = solve([0.5, -1.0], [0.0, 2.0**-52])  # at 2⁻⁵² a draw may find it
    assert q[1] == pytest.approx(2.0**-52, rel=1e-12)
    # Also where a level had to rise
    level, solved, q = solve([0.8, 0.8, -3.0], [0.0, 0.0, 1e-20])
    assert solved and q[2] == 2.0**-40 and q.sum() == pytest.approx(1.0, abs=1e-15)
    assert level == pytest.approx(0.3 + 2.0**-40, abs=1e-15)


def test_the_draw_at_zero_skips_what_has_next_to_no_probability():
    assert draw(np.array([1e-300, 0.25, 0.75]), 2, 0.0) == 1
    assert draw(np.array([0.0, 0.0, 1.0]), 2, 0.0) == 2
    assert draw(np.array([1e-17, 1.0]), 1, 0.0) == 1
    assert draw(np.array([0.5, 0.5 - 1e-16]), 0, 1 - 2**-53) in (0, 1)
    u = np.random.default_rng(0).random(20000)
    seen = np.bincount([draw(np.array([0.1, 0.2, 0.7]), 2, v) for v in u], minlength=3) / 20000
    np.testing.assert_allclose(seen, [0.1, 0.2, 0.7], atol=0.012)


@pytest.mark.parametrize("bandit", [True, False])
def test_demands_over_the_available_labels_are_those_of_the_available_labels_alone(bandit):
    rng = np.random.default_rng(3)
    for _ in range(200):
        K = int(rng.integers(2, 9))
        available = rng.random(K) < 0.6
        available[rng.integers(K)] = True
        z, h = rng.normal(size=K) * 3, 0.48 * rng.random() / K
        alone, n = z[available], int(available.sum())
        mask_unavailable(z, available)
        found = []
        for scores in (z, alone):
            p, b, c, q = (np.full(len(scores), np.nan) for _ in range(4))
            top = int(scores.argmax())
            logistic(scores, p, top, h, bandit, 1.0, 0, b, c)
            found.append((p, c, q, *least_exploration(b, c, scores, top, q)))
        (p, c, q, level, solved), (p1, c1, q1, level1, solved1) = found
        np.testing.assert_allclose(p[available], p1, rtol=1e-14)
        np.testing.assert_allclose(c[available], c1, rtol=1e-14)
        np.testing.assert_allclose(q[available], q1, rtol=1e-9, atol=1e-15)
        assert not p[~available].any() and not c[~available].any() and not q[~available].any()
        assert solved == solved1 and level == pytest.approx(level1, abs=1e-12)
        if n == 1:
            assert q[available] == 1.0 and level == 0.0


def test_what_a_rare_label_gets_is_taken_from_the_largest():
    """Three labels: one too rare to be drawn, one just frequent enough, and the largest. The gaps pay for it."""
    b, c = np.array([-1.0, -1.0, 0.25]), np.array([1e-17, 1e-15, 1e-3])
    q = np.array([2.0**-54, 2.0**-53, 1.0 - 2.0**-53])
    level = raise_rare(b, c, 0.0, q)
    np.testing.assert_array_equal(q[:2], [RAISED, 2.0**-53])
    assert abs(q.sum() - 1.0) <= 2.0**-52
    assert level == max(0.0, b[2] - q[2] + c[2] / q[2])
    kept = q.copy()
    assert raise_rare(b, np.array([0.0, 1e-15, 1e-3]), 0.5, kept) == 0.5  # nothing to raise: c = 0 is never observed
    np.testing.assert_array_equal(kept, q)
