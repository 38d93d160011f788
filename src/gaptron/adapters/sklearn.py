"""OnlineClassifier: a learner with the interface of a scikit-learn classifier."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import scipy.special
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gaptron.adapters.construction import has_class_probabilities, make_learner, with_labels
from gaptron.algorithms import NAMES, load
from gaptron.data.feedback import as_rewards
from gaptron.errors import InputError, SettingError
from gaptron.features.tables import n_rows as n_rows_by_name
from gaptron.features.tables import taken
from gaptron.learner import DEFAULT, Learner
from gaptron.types import Matrix, Vector

FLOATS = (np.float64, np.float32)
SEEDS = 2**31 - 1
LISTED = 8  # columns in a warning


class OnlineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier for any algorithm of this library.

    Args:
        algorithm: A name from `gaptron.algorithms.NAMES`.
        feedback: "full", "bandit" or a graph, as for `Learner`. Under bandit feedback y is used only to determine
            whether each label played was correct.
        loss: "logistic", "hinge" or "smooth-hinge", where the algorithm has a choice.
        epochs: The number of passes of `fit` over the examples.
        shuffle: Whether `fit` shuffles the examples before each pass. `partial_fit` never does.
        fit_intercept: Append a constant feature of 1; encoded features by name always have one.
        features: "auto" or `Features(...)`: X is a table (pandas, polars, Arrow), a list of dicts or an array, and may
            contain strings, missing values and times. By default X is a matrix of numbers.
        norm: An upper bound on the norm of the examples; if needed, `fit` and the first `partial_fit` measure it.
        radius: D, the norm of the rules U that bounds compare with, where the algorithm needs it.
        horizon: T, where the algorithm needs it; by default the rounds that `fit` will play.
        settings: A dictionary of the algorithm's own settings, which replace those of the theorem.
        random_state: Seed or generator for shuffling and for the learner's draws.
    """

    def __init__(
        self,
        algorithm: str = DEFAULT,
        *,
        feedback: Any = "full",
        loss: str | None = None,
        epochs: int = 10,
        shuffle: bool = True,
        fit_intercept: bool = True,
        features: Any = None,
        norm: float | None = None,
        radius: float | None = None,
        horizon: int | None = None,
        settings: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.feedback = feedback
        self.loss = loss
        self.epochs = epochs
        self.shuffle = shuffle
        self.fit_intercept = fit_intercept
        self.features = features
        self.norm = norm
        self.radius = radius
        self.horizon = horizon
        self.settings = settings
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = self.algorithm not in NAMES or load(self.algorithm).CARD.most_classes is None
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    # --- learning -------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, rewards: Any = None, **unsupported: Any) -> Self:
        """Learn from scratch, with `epochs` passes over the examples. The labels are those in y.

        Args:
            X: Examples.
            y: True labels.
            rewards: Under bandit feedback, the reward of the true label of each example, from 0 to 1; by default 1.
            unsupported: Refused; `sample_weight` is an argument of `partial_fit`.

        Returns:
            The estimator.
        """
        if unsupported:
            raise TypeError(_refusal(next(iter(unsupported))))
        load(self.algorithm)  # refuse an unknown name before looking at the data
        if not isinstance(self.epochs, (int, np.integer)) or self.epochs < 1:
            raise SettingError(f"epochs={self.epochs!r} must be an integer of at least 1")
        X, y = self._checked(X, y, reset=True)
        rewards = None if rewards is None else as_rewards(rewards, len(y), 1)
        classes = np.unique(y)
        rng = check_random_state(self.random_state)
        rounds = int(self.epochs) * len(y)
        learner = with_labels(None, classes.tolist(), lambda: self._make(classes, rng, horizon=rounds))
        mistakes, examples = 0, self._with_intercept(X)
        for _ in range(self.epochs):
            order = rng.permutation(len(y)) if self.shuffle else np.arange(len(y))
            if learner is not None:
                mistakes += learner.play(taken(examples, order), y[order], rewards=_select(rewards, order)).mistakes
        self._store(learner, classes, mistakes, int(self.epochs))
        self._note_columns(X, [])
        self._closed = False
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, rewards: Any = None) -> Self:
        """Continue learning with one pass over the examples, in their order.

        Args:
            X: Examples.
            y: True labels.
            classes: All labels, in the first call. By default a label is added with weight zero when it first occurs;
                algorithms that mix many rules cannot add labels and need `classes`.
            sample_weight: How many times each example is played, an integer.
            rewards: As in `fit`.

        Returns:
            The estimator.
        """
        load(self.algorithm)
        first = not self.__sklearn_is_fitted__()
        X, y = self._checked(X, y, reset=first)
        rewards = None if rewards is None else as_rewards(rewards, len(y), 1)
        if sample_weight is not None:
            repeated = np.repeat(np.arange(len(y)), _repetitions(sample_weight, len(y)))
            X, y, rewards = taken(X, repeated), y[repeated], _select(rewards, repeated)
        closed = classes is not None if first else self._closed
        labels = self._labels(y, None if first else self.classes_, classes, closed)
        before = None if first else self.learner_
        learner = with_labels(
            before, labels.tolist(), lambda: self._make(labels, check_random_state(self.random_state))
        )
        mistakes = learner.play(self._with_intercept(X), y, rewards=rewards).mistakes if learner is not None else 0
        self._store(learner, labels, mistakes + (0 if first else self.mistakes_), 1 if first else self.n_iter_ + 1)
        self._note_columns(X, [] if first else list(getattr(self, "feature_names_in_", [])))
        self._closed = closed
        return self

    def _labels(self, y: NDArray[Any], known: NDArray[Any] | None, classes: Any, closed: bool) -> NDArray[Any]:
        """Return all labels known after this call, sorted."""
        if classes is not None:
            given = np.unique(classes)
            if known is not None and not np.array_equal(given, known):
                raise InputError(f"classes={given.tolist()} differ from the known ones: {known.tolist()}")
            known = given
        if known is None:
            return np.unique(y)
        unknown = np.setdiff1d(y, known).tolist()
        if closed and unknown:
            raise InputError(
                f"label {unknown[0]!r} is not one of the classes {known.tolist()} given in the first call: "
                "leave out classes= there to add labels later"
            )
        labels = np.union1d(known, y)
        if not set(known.tolist()) <= set(
            labels.tolist()
        ):  # NumPy converts numbers to strings when it joins them with strings
            raise InputError(f"label {y.tolist()[0]!r} has another type than the known labels: {known.tolist()}")
        return labels

    def _make(self, classes: NDArray[Any], rng: Any, **defaults: Any) -> Learner:
        return make_learner(self, classes.tolist(), int(rng.randint(SEEDS)), **defaults)

    def _store(self, learner: Learner | None, classes: NDArray[Any], mistakes: int, passes: int) -> None:
        self.learner_, self.classes_, self.mistakes_, self.n_iter_ = learner, classes, mistakes, passes

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        if self.features is None:
            with _features_hint():
                X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=FLOATS)
        else:
            if not reset:
                self._warn_about_columns(X)
            y = column_or_1d(y)
            if n_rows_by_name(X) != len(y):
                raise InputError(f"X has {n_rows_by_name(X)} rows but y has {len(y)} labels")
        check_classification_targets(y)
        return X, y

    def _with_intercept(self, X: Any) -> Any:
        """Append the constant feature."""
        if self.features is not None or not self.fit_intercept:
            return X
        ones = np.ones((X.shape[0], 1), dtype=X.dtype)
        if sp.issparse(X):
            blocks: Any = [X, sp.csr_array(ones)]
            return sp.hstack(blocks, format="csr")
        return np.hstack([X, ones])

    # --- predicting -----------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label with the largest score.

        Args:
            X: Examples.

        Returns:
            One label per example.
        """
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def decision_function(self, X: Any) -> Matrix | Vector:
        """Compute the scores.

        Args:
            X: Examples.

        Returns:
            One score per example and label; for two labels, one per example, the second's minus the first's.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @available_if(has_class_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Predict P(y|x) with the learned logistic model. Needs logistic loss and full information.

        Args:
            X: Examples.

        Returns:
            One probability per example and label.
        """
        return np.asarray(scipy.special.softmax(self._scores(X), axis=1))

    @available_if(has_class_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Matrix:
        """Compute the logarithm of `predict_proba`.

        Args:
            X: Examples.

        Returns:
            One log probability per example and label.
        """
        return np.asarray(scipy.special.log_softmax(self._scores(X), axis=1))

    def playing_distribution(self, X: Any) -> Matrix:
        """Return the distributions from which the learner would draw its labels.

        They describe its exploration, not how likely each label is to be correct.

        Args:
            X: Examples.

        Returns:
            One probability per example and label.
        """
        examples = self._checked_examples(X)
        return np.ones((self._count(examples), 1)) if self.learner_ is None else self.learner_.distribution(examples)

    def _scores(self, X: Any) -> Matrix:
        examples = self._checked_examples(X)
        return np.zeros((self._count(examples), 1)) if self.learner_ is None else self.learner_.scores(examples)

    def _count(self, X: Any) -> int:
        return int(X.shape[0]) if self.features is None else n_rows_by_name(X)

    def _checked_examples(self, X: Any) -> Any:
        check_is_fitted(self)
        if self.features is not None:
            self._warn_about_columns(X)
            return X
        with _features_hint():
            return self._with_intercept(validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS))

    def _note_columns(self, X: Any, known: list[str]) -> None:
        """Keep the names of the columns of a table, after those known; `partial_fit` may add some."""
        if self.features is None:  # scikit-learn has kept them
            return
        names = list(dict.fromkeys([*known, *_column_names(X)]))
        if names:
            self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        else:
            for name in ("feature_names_in_", "n_features_in_"):
                self.__dict__.pop(name, None)

    def _warn_about_columns(self, X: Any) -> None:
        """Warn of a table without some of the columns that the model learned from."""
        names, known = _column_names(X), getattr(self, "feature_names_in_", None)
        if not names or known is None:
            return
        absent = [str(name) for name in known if name not in names]
        if absent:
            listed = ", ".join(absent[:LISTED]) + (f" and {len(absent) - LISTED} more" if len(absent) > LISTED else "")
            warnings.warn(f"X does not have the columns {listed}, which count as missing", UserWarning, stacklevel=4)

    # --- the learned model -----------------------------------------------------------------------------------

    @property
    def t_(self) -> int:
        """Number of rounds learned from."""
        check_is_fitted(self)
        return 0 if self.learner_ is None else self.learner_.rounds

    @property
    def coef_(self) -> Matrix:
        """Weights, one row per label; for two labels one row, the second's minus the first's."""
        return self._weights()[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Vector:
        """Weight of the constant feature; zero without one."""
        weights = self._weights()
        return weights[:, -1] if self.fit_intercept else np.zeros(len(weights))

    def _weights(self) -> Matrix:
        if not self.__sklearn_is_fitted__():
            raise AttributeError("the estimator is not fitted and has no weights")
        if self.features is not None:
            raise AttributeError("the weights belong to encoded columns: use learner_.weights")
        card = load(self.algorithm).CARD
        if not card.linear or (self.settings or {}).get("kernel"):
            content = "the certified part" if card.advice else "a mean"
            raise AttributeError(
                f"{self.algorithm} does not predict with a single linear rule; learner_.weights is {content}"
            )
        if self.learner_ is None:
            return np.zeros((1, self.n_features_in_ + int(self.fit_intercept)))
        weights = self.learner_.weights
        return weights[1:] - weights[:1] if len(weights) == 2 else weights


def _column_names(X: Any) -> list[str]:
    """The columns of a pandas, polars or Arrow table; none of lists and arrays."""
    names = X.column_names if hasattr(X, "num_rows") else getattr(X, "columns", [])
    return [name for name in names if isinstance(name, str)]


@contextlib.contextmanager
def _features_hint() -> Iterator[None]:
    """Say in errors about missing values and words how they can be learned from."""
    try:
        yield
    except ValueError as problem:
        text = str(problem)
        if "NaN" not in text and "could not convert string" not in text:
            raise
        raise InputError(
            f'{text}\nOnlineClassifier(features="auto") takes tables with words, missing values and times as they are.'
        ) from None


def _refusal(argument: str) -> str:
    if argument == "sample_weight":
        return (
            "fit() does not take sample_weight, because it shuffles whole rounds: repeat the examples, or give whole "
            "numbers to partial_fit(X, y, sample_weight=...)"
        )
    return f"fit() got an unexpected argument {argument!r}"


def _select(rewards: Matrix | None, rows: NDArray[np.int64]) -> Matrix | None:
    return None if rewards is None else rewards[rows]


def _repetitions(sample_weight: Any, n_rows: int) -> NDArray[np.int64]:
    """Check sample weights, the number of times that each example is played."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise InputError(f"sample_weight has shape {weights.shape}, but X has {n_rows} rows")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights == np.floor(weights)).all()):
        raise InputError(
            "sample_weight must contain integers of at least 0, because a round is played a whole number of times"
        )
    return weights.astype(np.int64)
