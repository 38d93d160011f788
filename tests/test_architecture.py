"""Rules that every module in `algorithms/` follows."""

import inspect
from pathlib import Path

import pytest

from gaptron import algorithms
from gaptron.algorithms import NAMES, load
from gaptron.errors import SettingError
from gaptron.types import Card

FOLDER = Path(algorithms.__file__).parent
CONTRACT = ("init", "scratch", "weights", "recommend", "theorem", "bound")
VERBS = ("decide", "learn")


def sources(name):
    """The source files of an algorithm."""
    one = FOLDER / f"{NAMES[name]}.py"
    return [one] if one.exists() else sorted((FOLDER / NAMES[name]).glob("*.py"))


def bodies(module):
    """The modules with `decide` and `learn`: the algorithm itself, or one module for each feedback."""
    if hasattr(module, "decide"):
        return [module]
    return [part for part in vars(module).values() if inspect.ismodule(part) and hasattr(part, "decide")]


def test_names_are_the_modules_of_the_package():
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "protocol", "feedback"}
    files |= {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert set(NAMES.values()) == files
    assert len(set(NAMES.values())) == len(NAMES)
    assert list(NAMES) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_follows_the_protocol(name):
    module = load(name)
    assert isinstance(module.CARD, Card)
    assert isinstance(module.NOTES, tuple) and all(isinstance(note, str) for note in module.NOTES)
    for part in CONTRACT:
        assert inspect.isfunction(getattr(module, part)), part
        assert getattr(module, part).__doc__, part
    assert bodies(module)
    for body in bodies(module):
        for verb in VERBS:
            assert callable(getattr(body, verb)) and getattr(body, verb).__doc__, verb
        own = {n: c for n, c in vars(body).items() if isinstance(c, type) and c.__module__ == body.__name__}
        settings = [n for n in own if f"{n}State" in own]
        assert len(settings) == 1
        last = "" if body is module else body.__name__.rpartition(".")[2].replace("_", "")
        assert settings[0].lower() == NAMES[name].replace("_", "") + last
        for tuple_ in (own[settings[0]], own[f"{settings[0]}State"]):
            assert issubclass(tuple_, tuple) and tuple_._fields and tuple_.__doc__


@pytest.mark.parametrize("name", NAMES)
def test_what_recommend_takes_is_a_setting_or_named_like_one(name):
    module = load(name)
    first, *rest = inspect.signature(module.recommend).parameters.values()
    assert first.name == "problem"
    for parameter in rest:
        assert parameter.default is not inspect.Parameter.empty


@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_does_not_use_other_packages(name):
    text = "".join(path.read_text() for path in sources(name)).replace(
        load(name).__doc__, ""
    )  # whose example uses them
    for word in ("numba", "json", "http", "plot", "import scipy", "gaptron.learner", "gaptron.streams"):
        assert word not in text


def test_an_unknown_name_names_the_choices():
    with pytest.raises(SettingError, match=", ".join(NAMES)):
        load("magic")
