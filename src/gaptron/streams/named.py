"""Built-in streams by name: "synsep", "synnonsep:rounds=1000,seed=3", "digits", "letter".

To add a generator or a bundled data set, write a function and add a line to `NAMED`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from gaptron.data.examples import measured
from gaptron.data.text_numbers import as_number, as_whole
from gaptron.errors import InputError
from gaptron.streams.clicks import clicks
from gaptron.streams.stream import Stream
from gaptron.streams.synthetic import alternating, synnonsep, synsep, synswitch, twolabels, xor

Options = Mapping[str, tuple[str, Callable[[str], Any]]]  # option → (parameter, parser of its value)


class Named(NamedTuple):
    """A function that returns a stream, and the options that may follow its name."""

    make: Callable[..., Stream]
    options: Options


def digits() -> Stream:
    """Return 1797 handwritten digits of 8 × 8 pixels, in the order of scikit-learn, each pixel in [0, 1]."""
    from sklearn.datasets import load_digits  # noqa: PLC0415

    X, y = load_digits(return_X_y=True)
    return Stream(measured(X / 16.0), y.astype(np.int64), tuple(range(10)), "digits", prepared=("divided by 16",))


def _from_scikit_learn(name: str) -> Stream:
    """Return a small data set of scikit-learn, in its order there (sorted by class: shuffle it)."""
    from sklearn import datasets  # noqa: PLC0415

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return Stream(measured(X), y.astype(np.int64), tuple(range(int(y.max()) + 1)), name)


def _bundled(name: str) -> Stream:
    """Return a small data set of this package; data/LICENCE.md has its source and licence."""
    with (files("gaptron.streams") / "data" / f"{name}.npz").open("rb") as file, np.load(file) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    return Stream(measured(X), y, tuple(range(int(y.max()) + 1)), name)


def _options(parse: Callable[[str], Any], *names: str) -> dict[str, tuple[str, Callable[[str], Any]]]:
    return {name: (name, parse) for name in names}


_ROUNDS: Options = {"rounds": ("n_rounds", as_whole), "seed": ("seed", as_whole)}
_DOCUMENTS = {**_ROUNDS, **_options(as_whole, "topics")}

NAMED = {
    "alternating": Named(alternating, {**_ROUNDS, **_options(as_whole, "period", "labels", "features")}),
    "breast_cancer": Named(partial(_from_scikit_learn, "breast_cancer"), {}),
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
    "iris": Named(partial(_from_scikit_learn, "iris"), {}),
    "letter": Named(partial(_bundled, "letter"), {}),
    "satimage": Named(partial(_bundled, "satimage"), {}),
    "segment": Named(partial(_bundled, "segment"), {}),
    "synnonsep": Named(synnonsep, {**_DOCUMENTS, "noise": ("noise", as_number)}),
    "synsep": Named(synsep, _DOCUMENTS),
    "synswitch": Named(synswitch, {**_ROUNDS, **_options(as_whole, "switches")}),
    "twolabels": Named(
        twolabels, {**_ROUNDS, **_options(as_whole, "contexts", "labels"), **_options(as_number, "first", "second")}
    ),
    "vowel": Named(partial(_bundled, "vowel"), {}),
    "wine": Named(partial(_from_scikit_learn, "wine"), {}),
    "xor": Named(xor, {**_ROUNDS, **_options(as_whole, "noise")}),
}


def make(source: str) -> Stream:
    """Return the stream of a name with options, `name:option=value,option=value`."""
    name, settings = read_options(source, lambda name: NAMED[name].options)
    return NAMED[name].make(**settings)


def read_options(source: str, options: Callable[[str], Options]) -> tuple[str, dict[str, Any]]:
    """Read a name with options, `name:option=value,option=value`.

    Args:
        source: the name with its options.
        options: returns, for a name, each option with the name of its argument and how its value is read.

    Returns:
        The name, and the arguments.
    """
    name, _, tail = source.partition(":")
    known = options(name)
    settings = {}
    for pair in filter(None, tail.split(",")):
        option, _, value = pair.partition("=")
        if option not in known:
            raise InputError(
                f"{source}: {name} has no option {option!r}; its options are: {', '.join(known) or 'none'}"
            )
        parameter, parse = known[option]
        parsed = parse(value)
        if parsed is None:
            raise InputError(f"{source}: {option} cannot be {value!r}")
        settings[parameter] = parsed
    return name, settings
