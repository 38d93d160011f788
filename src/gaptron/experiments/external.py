"""External models: classifiers of River and scikit-learn that take part in a comparison.

A name such as `river:forest.AMFClassifier` is a library, a module and a class. An external model predicts the label of
an example and then learns from the true label, so it plays with full information only. It gets the examples as
prepared for every algorithm, and the codes of the labels.
"""

import importlib
import inspect
import math
import time
import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any, NamedTuple, Protocol

import numpy as np

from gaptron.data.labels import Classes
from gaptron.errors import InputError, SettingError
from gaptron.learner.trace import Trace
from gaptron.streams.rows import Rows
from gaptron.types import Integers

NO_THEOREM = "no theorem: a model of another library"


class Library(NamedTuple):
    """A library whose classifiers can play."""

    title: str
    package: str  # on the package index
    install: str
    base: str  # the class of its classifiers, in its module `base`
    learn: str  # the method that learns one example
    seed: str  # the parameter that takes a seed
    example: str


LIBRARIES = {
    "river": Library(
        title="River",
        package="river",
        install="pip install '.[river]' in gaptron's source folder",
        base="Classifier",
        learn="learn_one",
        seed="seed",
        example="river:forest.AMFClassifier",
    ),
    "sklearn": Library(
        title="scikit-learn",
        package="scikit-learn",
        install="pip install scikit-learn",
        base="ClassifierMixin",
        learn="partial_fit",
        seed="random_state",
        example="sklearn:linear_model.SGDClassifier",
    ),
}
EXAMPLES = tuple(library.example for library in LIBRARIES.values())


def library_of(name: str) -> Library | None:
    """Return the library that a name refers to; None for the name of an algorithm of gaptron."""
    prefix, colon, _ = name.partition(":")
    return LIBRARIES.get(prefix) if colon else None


def installed(library: Library) -> str:
    """Return the library with its installed version."""
    try:
        return f"{library.package} {metadata.version(library.package)}"
    except metadata.PackageNotFoundError:
        return f"{library.package}, which is not installed"


# --- making a model ---------------------------------------------------------------------------------------------


def parameters(name: str) -> dict[str, Any]:
    """Return the parameters of a classifier and their defaults.

    Raises:
        SettingError: the library is not installed, or has no such classifier.
    """
    return _defaults(_find(name, classifier=True))


def make(name: str, settings: Mapping[str, Any], seed: int) -> Any:
    """Make a new model. A value such as "river:drift.ADWIN" becomes an object of that class, with its defaults.

    Args:
        name: the name of a classifier.
        settings: values of its parameters.
        seed: for each class that has a parameter for it, unless `settings` has a value.

    Returns:
        The model.

    Raises:
        SettingError: there is no such classifier, or it cannot be made with these settings.
    """
    _find(name, classifier=True)
    return _make(name, settings, seed)


def used(name: str, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the value of every parameter of a model, as plain values."""
    return {word: _plain(value) for word, value in (parameters(name) | _seeded(name, settings, seed)).items()}


def _make(name: str, settings: Mapping[str, Any], seed: int) -> Any:
    kind = _find(name)
    values = {
        word: _make(value, {}, seed) if isinstance(value, str) and library_of(value) else value
        for word, value in _seeded(name, settings, seed).items()
    }
    try:
        return kind(**values)
    except Exception as problem:  # another library may raise anything
        raise SettingError(f"{name} cannot be made with settings {dict(settings)}: {problem}") from None


def _seeded(name: str, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    library = library_of(name)
    assert library is not None
    return {**({library.seed: seed} if library.seed in _defaults(_find(name)) else {}), **settings}


def _find(name: str, *, classifier: bool = False) -> type:
    """Import the class of this name."""
    library, (prefix, _, path) = library_of(name), name.partition(":")
    assert library is not None
    module_name, _, class_name = path.rpartition(".")
    if not module_name:
        raise SettingError(f"{name!r} must name a module and a class, such as {library.example}")
    try:
        base = getattr(importlib.import_module(f"{prefix}.base"), library.base)
    except ImportError:
        raise SettingError(f"{name} needs {library.title}: {library.install}") from None
    try:
        module = importlib.import_module(f"{prefix}.{module_name}")
    except ImportError as problem:
        raise SettingError(f"{name} cannot be imported ({problem}); a name is {library.example}") from None
    classes = {word: kind for word, kind in vars(module).items() if isinstance(kind, type)}
    can_play = [word for word, kind in classes.items() if issubclass(kind, base) and hasattr(kind, library.learn)]
    if class_name in (can_play if classifier else classes):
        return classes[class_name]
    known = ", ".join(sorted(word for word in can_play if not inspect.isabstract(classes[word])))
    missing = f"is not a classifier with {library.learn}" if class_name in classes else "does not exist"
    raise SettingError(f"{name} {missing}; classifiers in {prefix}.{module_name}: {known or 'none'}")


def _defaults(kind: type) -> dict[str, Any]:
    single = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(kind).parameters.values()
    return {p.name: None if p.default is p.empty else p.default for p in found if p.kind in single}


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: an object by the name of its class, and None for an infinite number."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__


# --- playing ----------------------------------------------------------------------------------------------------


class _Player(Protocol):
    """A model of another library in the loop of a comparison."""

    def example(self, X: Rows, t: int) -> Any:
        """Return example t as the library takes it."""

    def predict(self, x: Any) -> Any:
        """Return the code of the predicted label; None before the first label was learned."""

    def learn(self, x: Any, y: int) -> None:
        """Learn from an example and its true label."""


class _River:
    """A River classifier. A binary one gets False and True, the labels that River defines for it."""

    def __init__(self, model: Any, name: str, n_classes: int) -> None:
        if n_classes > 2 and not model._multiclass:
            remedy = f'river:multiclass.OneVsRestClassifier with the setting classifier = "{name}"'
            raise SettingError(f"{name} is for two labels, but the stream has {n_classes}: use {remedy}")
        self._model = model
        self._multiclass = model._multiclass

    def example(self, X: Rows, t: int) -> dict[int, float]:
        """Return the features by number: all of a dense example, those that are not zero of a sparse one."""
        if isinstance(X, np.ndarray):
            return dict(enumerate(X[t].tolist()))
        part = slice(X.indptr[t], X.indptr[t + 1])
        return dict(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))

    def predict(self, x: dict[int, float]) -> Any:
        return self._model.predict_one(x)

    def learn(self, x: dict[int, float], y: int) -> None:
        self._model.learn_one(x, y if self._multiclass else bool(y))


class _Sklearn:
    """A scikit-learn classifier with `partial_fit`."""

    def __init__(self, model: Any, n_classes: int) -> None:
        self._model = model
        self._classes = np.arange(n_classes)
        self._fitted = False

    def example(self, X: Rows, t: int) -> Rows:
        """Return the example as a matrix of one row."""
        return X[t : t + 1]

    def predict(self, x: Rows) -> Any:
        return self._model.predict(x)[0] if self._fitted else None

    def learn(self, x: Rows, y: int) -> None:
        self._model.partial_fit(x, [y], classes=self._classes)
        self._fitted = True


def play(model: Any, name: str, X: Rows, y: Integers, n_classes: int, order: Integers) -> tuple[Trace, float]:
    """Predict the label of every example, then learn from its true label.

    A model that predicts None, as River's do before the first label, plays the first label: so does a learner of
    gaptron whose scores are all equal.

    Args:
        model: a new model.
        name: its name, for errors.
        X: the examples.
        y: the codes of their true labels.
        n_classes: the number of labels.
        order: the order of the rounds.

    Returns:
        The trace, and the seconds spent predicting and learning.

    Raises:
        SettingError: the model is for two labels, and there are more.
        InputError: the model predicts something that is not a label.
    """
    player: _Player = _River(model, name, n_classes) if name.startswith("river:") else _Sklearn(model, n_classes)
    codes = {code: code for code in range(n_classes)}  # True is 1, and so is NumPy's 1
    trace = Trace.of(Classes(range(n_classes)), y[order], (), np.empty((len(order), 0)))
    seconds = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model may repeat one in every round
        for place, (t, truth) in enumerate(zip(order.tolist(), trace.truth.tolist(), strict=True)):
            x = player.example(X, t)
            start = time.perf_counter()
            predicted = player.predict(x)
            player.learn(x, truth)
            seconds += time.perf_counter() - start
            code = codes.get(0 if predicted is None else predicted)
            if code is None:
                raise InputError(
                    f"{name} predicted {predicted!r} in round {place + 1}, not a label from 0 to {n_classes - 1}"
                )
            trace.codes[place] = trace.top[place] = code
    trace.truth_probability[:] = trace.codes == trace.truth
    return trace, seconds
