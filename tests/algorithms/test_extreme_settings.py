"""Every extreme problem and setting gives finite settings and a finite state, or one SettingError."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from gaptron import Learner
from gaptron.algorithms import NAMES, load
from gaptron.errors import InputError, SettingError
from gaptron.learner.settings import LARGEST_COUNT, check_ranges, checked_settings, recommended
from gaptron.types import Feedback, Loss, Problem
from tests.algorithms.laws import Case, cases

SIZES = (None, 1e-200, 1e-60, 1.0, 1e60, 1e300)
HORIZONS = (None, 1, 2**53, 2**62)
COUNTS = ((2, 1), (30, 3), (2, 10**9), (2, 10**30))
BY_DESIGN = ("ball", "guard", "limit")  # infinite: there is none


def infinite(values: Any) -> list[str]:
    """The fields of a tuple that are NaN, or infinite although infinity has no meaning there."""
    found = []
    for name, value in zip(values._fields, values):
        if isinstance(value, float) and not (math.isfinite(value) or (value == math.inf and name in BY_DESIGN)):
            found.append(name)
        if isinstance(value, np.ndarray) and value.dtype.names:
            found += [f"{name}.{word}" for word in value.dtype.names if not np.isfinite(value[word]).all()]
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size < 10**5:
            found += [] if np.isfinite(value).all() else [name]
    return found


@pytest.mark.parametrize("case", cases(), ids=str)
def test_an_extreme_problem_gives_finite_settings_or_one_error(case: Case) -> None:
    base = case.learner().problem
    own = {name: value for name, value in case.keywords.items() if name not in ("norm", "radius", "horizon")}
    accepted = 0
    for X, D, T, (K, d) in itertools.product(SIZES, SIZES, HORIZONS, COUNTS):
        if K > (case.file.CARD.most_classes or K) or (base.graph is not None and K != 2):
            continue
        graph = None if base.graph is None else base.graph[:2, :2]
        problem = Problem(K, d, base.feedback, base.loss, X, D, T, graph)
        try:
            settings = recommended(case.file, problem, own)
            accepted += 1
        except SettingError:
            continue
        assert not infinite(settings), (problem, settings)
        if K * d > 10:
            continue
        try:
            state = case.file.init(settings, problem, False)
        except SettingError:
            continue
        assert not infinite(state), (problem, settings)
    assert accepted


FLAGS_AND_WORDS = ("kernel", "matrix", "oracle", "play", "step", "steps", "update", "weighting")
NOT_NUMBERS = (True, np.bool_(True), "1", b"1")
EXTREME = (1e308, 1e100, 1e-100, 5e-324, 0.0, -1.0, math.nan, math.inf, -math.inf, 10**400, *NOT_NUMBERS)


@pytest.mark.parametrize("case", [case for case in cases() if not case.variant], ids=str)
def test_an_extreme_setting_gives_finite_settings_or_one_error(case: Case) -> None:
    base = case.learner().problem
    for name, X, value in itertools.product(settings_of(case.algorithm), (1e-60, 1.0, 1e60), EXTREME):
        problem = base._replace(norm=X, radius=X, horizon=LARGEST_COUNT, n_features=2)
        try:
            checked = checked_settings(case.algorithm, case.file, {name: value})
            assert name in FLAGS_AND_WORDS or not isinstance(value, str | bytes | bool | np.bool_)
            settings = recommended(case.file, problem, checked)
            state = case.file.init(settings, problem, False)
        except SettingError:
            continue
        assert not infinite(settings) and not infinite(state), (problem, settings)


def settings_of(name: str) -> list[str]:
    return list(load(name).recommend.__annotations__.keys() - {"problem", "return"})


@pytest.mark.parametrize("name", NAMES)
def test_numpy_scalars_are_converted(name: str) -> None:
    algorithm = load(name)
    kinds = {word: str(kind) for word, kind in algorithm.recommend.__annotations__.items() if word != "problem"}
    for word in settings_of(name):
        if "float" in kinds[word]:
            assert type(checked_settings(name, algorithm, {word: np.float32(0.5)})[word]) is float
        elif "int" in kinds[word]:
            assert type(checked_settings(name, algorithm, {word: np.float64(5)})[word]) is int
            assert type(checked_settings(name, algorithm, {word: np.int8(5)})[word]) is int


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"norm": 1e300}, "norm=1e.300 must lie between 1e-60 and 1e.60"),
        ({"norm": 1e-61}, "norm=1e-61 must lie"),
        ({"radius": 1e61}, "radius=1e.61 must lie"),
        ({"horizon": 2**62}, "horizon=4611686018427387904 must be at most 2"),
        ({"n_features": 2**31}, "n_features=2147483648 must be at most"),
    ],
)
def test_the_error_names_the_number(changed: dict[str, Any], says: str) -> None:
    problem = Problem(3, 2, Feedback.FULL, Loss.LOGISTIC)._replace(**changed)
    with pytest.raises(SettingError, match=says):
        check_ranges(problem)
    with pytest.raises(SettingError, match=says):
        Learner("gaptron", n_classes=3, **changed)


@pytest.mark.parametrize("name", ["norm", "radius", "horizon", "n_features", "n_classes", "epsilon", "eta"])
@pytest.mark.parametrize("value", ["1", True, np.bool_(True), math.nan, 10**400, b"1", [1], object()])
def test_arguments_are_numbers(name: str, value: Any) -> None:
    with pytest.raises((SettingError, InputError), match=name):
        Learner("gaptron", **{"n_classes": 3, name: value})
