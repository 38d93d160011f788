"""Streams that need no file, by name: "synsep", "synnonsep:rounds=1000,seed=3", "digits", "letter".

A new generator or bundled set is one function and one line of `NAMED`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from gaptron.errors import InputError
from gaptron.streams.clicks import clicks
from gaptron.streams.stream import Stream
from gaptron.streams.synthetic import alternating, synnonsep, synsep, synswitch, twolabels, xor
from gaptron.text_numbers import as_number, as_whole
from gaptron.validation import measured


class Named(NamedTuple):
    """A function that makes a stream, and the options its name may carry."""

    make: Callable[..., Stream]
    options: Mapping[str, tuple[str, Callable[[str], Any]]]  # option → (parameter, what reads its value)


def digits() -> Stream:
    """1797 handwritten digits of 8 × 8 pixels, in their order in scikit-learn, each pixel in [0, 1]."""
    from sklearn.datasets import load_digits  # noqa: PLC0415

    X, y = load_digits(return_X_y=True)
    return Stream(measured(X / 16.0), y.astype(np.int64), tuple(range(10)), "digits", prepared=("divided by 16",))


def _of_scikit_learn(name: str) -> Stream:
    """A small set that comes with scikit-learn, in its order there (sorted by class: shuffle it)."""
    from sklearn import datasets  # noqa: PLC0415

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return Stream(measured(X), y.astype(np.int64), tuple(range(int(y.max()) + 1)), name)


def _shipped(name: str) -> Stream:
    """A small set that comes with gaptron; where from and under which licence is told in data/LICENCE.md."""
    with (files("gaptron.streams") / "data" / f"{name}.npz").open("rb") as file, np.load(file) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    return Stream(measured(X), y, tuple(range(int(y.max()) + 1)), name)


def _options(read: Callable[[str], Any], *names: str) -> dict[str, tuple[str, Callable[[str], Any]]]:
    return {name: (name, read) for name in names}


_ROUNDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {"rounds": ("n_rounds", as_whole), "seed": ("seed", as_whole)}
_DOCUMENTS = {**_ROUNDS, **_options(as_whole, "topics")}

NAMED = {
    "alternating": Named(alternating, {**_ROUNDS, **_options(as_whole, "period", "labels", "features")}),
    "breast_cancer": Named(partial(_of_scikit_learn, "breast_cancer"), {}),
    "clicks": Named(
        clicks,
        {
            **_ROUNDS,
            **_options(str, "world"),
            **_options(as_whole, "labels", "features"),
            **_options(as_number, "rate"),
        },
    ),
    "digits": Named(digits, {}),
    "iris": Named(partial(_of_scikit_learn, "iris"), {}),
    "letter": Named(partial(_shipped, "letter"), {}),
    "satimage": Named(partial(_shipped, "satimage"), {}),
    "segment": Named(partial(_shipped, "segment"), {}),
    "synnonsep": Named(synnonsep, {**_DOCUMENTS, "noise": ("noise", as_number)}),
    "synsep": Named(synsep, _DOCUMENTS),
    "synswitch": Named(synswitch, {**_ROUNDS, **_options(as_whole, "switches")}),
    "twolabels": Named(
        twolabels, {**_ROUNDS, **_options(as_whole, "contexts", "labels"), **_options(as_number, "first", "second")}
    ),
    "vowel": Named(partial(_shipped, "vowel"), {}),
    "wine": Named(partial(_of_scikit_learn, "wine"), {}),
    "xor": Named(xor, {**_ROUNDS, **_options(as_whole, "noise")}),
}


def make(words: str) -> Stream:
    """The stream of a name with its options, `name:option=value,option=value`."""
    name, _, tail = words.partition(":")
    known = NAMED[name].options
    settings = {}
    for part in filter(None, tail.split(",")):
        option, _, value = part.partition("=")
        if option not in known:
            raise InputError(f"{words}: {name} has no option {option!r}, only {', '.join(known) or 'none'}")
        parameter, read = known[option]
        number = read(value)
        if number is None:
            raise InputError(f"{words}: {option} cannot be {value!r}")
        settings[parameter] = number
    return NAMED[name].make(**settings)
