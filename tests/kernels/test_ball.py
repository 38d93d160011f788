"""The lazy ball against projection written out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaptron.data.examples import checked
from gaptron.kernels import ball as kernel
from gaptron.kernels.rows import by_label, row, zeros
from gaptron.types import named
from tests.conftest import INTERPRETED, KINDS

RADIUS = 0.7


def run(steps, radius, project):
    """W = c·V through `project`, and the same W projected in the open."""
    V, ball, W = np.zeros((3, 4)), kernel.new_ball(), np.zeros((3, 4))
    for G in steps:
        inner, square = float(np.sum(ball[0].scale * V * G)), float(np.sum(G * G))
        V += G / ball[0].scale
        project(V, ball, radius, inner, square)
        W = W + G
        size = np.linalg.norm(W)
        if size > radius:
            W = W * (radius / size)
    return V, ball, W


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.3, 30.0]))
def test_moving_and_projecting_is_what_it_says(seed, scale):
    steps = np.random.default_rng(seed).normal(size=(60, 3, 4)) * scale
    V, ball, W = run(steps, RADIUS, kernel.project)
    np.testing.assert_allclose(ball[0].scale * V, W, atol=1e-9)
    assert ball[0].square == pytest.approx(np.sum(W * W), rel=1e-8)
    assert math.sqrt(ball[0].square) <= RADIUS * (1 + 1e-12)


def test_no_projection_inside():
    V, ball, W = run(np.full((1, 3, 4), 0.1), RADIUS, kernel.project)
    np.testing.assert_array_equal(V, W)
    assert ball[0].scale == 1.0 and ball[0].updates == 1


def test_a_tiny_scale_is_taken_up():
    steps = np.random.default_rng(0).normal(size=(200, 3, 4)) * 1e3
    V, ball, W = run(steps, RADIUS, kernel.project)
    assert ball[0].updates < 200  # refreshed on the way
    np.testing.assert_allclose(ball[0].scale * V, W, atol=1e-9)


def test_the_refresh_after_many_updates(monkeypatch):
    """The interpreted body, with a REFRESH small enough to meet."""
    body = kernel.project if INTERPRETED else kernel.project.py_func
    monkeypatch.setattr(kernel, "REFRESH", 7)
    steps = np.random.default_rng(1).normal(size=(100, 3, 4)) * 0.05
    V, ball, W = run(steps, RADIUS, body)
    assert ball[0].updates < 7
    np.testing.assert_allclose(ball[0].scale * V, W, atol=1e-12)


def test_refresh_changes_the_writing_and_not_the_weights():
    V = np.arange(6.0).reshape(2, 3)
    ball = named(scale=0.25, square=-1.0, updates=5)
    kernel.refresh(V, ball)
    np.testing.assert_array_equal(V, np.arange(6.0).reshape(2, 3) / 4)
    assert ball[0].scale == 1.0 and ball[0].updates == 0
    assert ball[0].square == pytest.approx(55 / 16)


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", ["dense64", "csr"])
@pytest.mark.parametrize("changed", [0, 1, 2, 4])
@pytest.mark.parametrize("radius", [0.7, math.inf])
def test_adding_and_projecting_is_the_sum_and_the_nearest_point(kind, changed, radius):
    rng = np.random.default_rng(changed)
    sparse, ball, W = kind.startswith("csr"), kernel.new_ball(), np.zeros((4, 5))
    V = zeros(4, 5, sparse)
    for x in rng.normal(size=(50, 5)):
        r = np.where(np.arange(4) < changed, rng.normal(size=4), 0.0)
        rng.shuffle(r)
        rows = checked(KINDS[kind](x[None])).rows
        kernel.add_and_project(V, ball, radius, row(rows, 0), r.copy(), W @ x)
        W = W + np.outer(r, x)
        W *= min(1.0, radius / max(np.linalg.norm(W), 1e-300))
        np.testing.assert_allclose(by_label(V, sparse) * ball[0].scale, W, atol=1e-12)
    assert (ball[0].square > 0.0) == (changed > 0 and radius < math.inf)


def test_scale():
    z = np.array([1.0, -2.0])
    kernel.scale(named(scale=0.5, square=0.0, updates=0), z)
    np.testing.assert_array_equal(z, [0.5, -1.0])
    kernel.scale(kernel.new_ball(), z)
    np.testing.assert_array_equal(z, [0.5, -1.0])
