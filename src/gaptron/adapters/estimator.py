"""OnlineClassifier: a Learner that keeps scikit-learn's contract."""

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

from gaptron.adapters.making import knowing, make, tells_probabilities
from gaptron.algorithms import NAMES, load
from gaptron.errors import InputError, SettingError
from gaptron.features.tables import n_rows as n_rows_by_name
from gaptron.features.tables import taken
from gaptron.learner import DEFAULT, Learner
from gaptron.types import Matrix, Vector
from gaptron.validation import as_worth

FLOATS = (np.float64, np.float32)
SEEDS = 2**31 - 1


class OnlineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier over any algorithm of this library.

    Args:
        algorithm: a name from `gaptron.algorithms.NAMES`.
        feedback: "full", "bandit" or a graph, as for `Learner`. Under bandit feedback the labels y only answer whether
            each guess was right.
        loss: "logistic", "hinge" or "smooth-hinge", where the algorithm has a choice.
        epochs: how often `fit` passes over the rows.
        shuffle: whether `fit` puts the rows in a new random order for each pass. `partial_fit` never does.
        fit_intercept: append a constant feature of 1 to every row; rows by name have one anyway.
        features: "auto" or `Features(...)`: X is a table (pandas, polars, Arrow), a list of dicts or an array, with
            words, gaps and times as they are. Left out, X is a matrix of numbers.
        norm: a promise that no row of X is longer; if it is needed, `fit` and the first `partial_fit` measure it.
        radius: D, the norm of the rules U we compare with, where the algorithm needs it.
        horizon: T, where the algorithm needs it; `fit` fills in the rounds it will play.
        settings: a dictionary of the algorithm's own settings, in place of the theorem's.
        random_state: for the order of rows and the learner's draws.
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

    def fit(self, X: Any, y: Any, reward: Any = None) -> Self:
        """Forget everything, then play the rows `epochs` times. The labels are those of y.

        `reward` (bandit): what the right label of each row is worth, from 0 to 1; left out, 1.
        """
        load(self.algorithm)  # a wrong name is said before the data are looked at
        if not isinstance(self.epochs, (int, np.integer)) or self.epochs < 1:
            raise SettingError(f"epochs={self.epochs!r} must be a whole number of at least 1")
        X, y = self._checked(X, y, reset=True)
        worth = None if reward is None else as_worth(reward, len(y), 1)
        classes = np.unique(y)
        rng = check_random_state(self.random_state)
        rounds = int(self.epochs) * len(y)
        learner = knowing(None, classes.tolist(), lambda: self._make(classes, rng, horizon=rounds))
        mistakes, rows = 0, self._rows(X)
        for _ in range(self.epochs):
            order = rng.permutation(len(y)) if self.shuffle else np.arange(len(y))
            if learner is not None:
                mistakes += learner.play(taken(rows, order), y[order], reward=_of(worth, order)).mistakes
        self._take(learner, classes, mistakes, int(self.epochs))
        self._closed = False
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, reward: Any = None) -> Self:
        """Go on with these rows, once, in their order; a row of weight n, a whole number, n times in a row.

        `classes`, in the first call, says which labels there are, once and for all. Left out, a label is added when it
        is first seen, with weight zero (the algorithms that mix many rules cannot: give them `classes`). `reward` as
        in `fit`.
        """
        load(self.algorithm)
        first = not self.__sklearn_is_fitted__()
        X, y = self._checked(X, y, reset=first)
        worth = None if reward is None else as_worth(reward, len(y), 1)
        if sample_weight is not None:
            again = np.repeat(np.arange(len(y)), _times(sample_weight, len(y)))
            X, y, worth = taken(X, again), y[again], _of(worth, again)
        closed = classes is not None if first else self._closed
        labels = self._labels(y, None if first else self.classes_, classes, closed)
        before = None if first else self.learner_
        learner = knowing(before, labels.tolist(), lambda: self._make(labels, check_random_state(self.random_state)))
        mistakes = learner.play(self._rows(X), y, reward=worth).mistakes if learner is not None else 0
        self._take(learner, labels, mistakes + (0 if first else self.mistakes_), 1 if first else self.n_iter_ + 1)
        self._closed = closed
        return self

    def _labels(self, y: NDArray[Any], known: NDArray[Any] | None, classes: Any, closed: bool) -> NDArray[Any]:
        """All labels from now on, sorted."""
        if classes is not None:
            given = np.unique(classes)
            if known is not None and not np.array_equal(given, known):
                raise InputError(f"classes={given.tolist()} differ from those known so far: {known.tolist()}")
            known = given
        if known is None:
            return np.unique(y)
        strangers = np.setdiff1d(y, known).tolist()
        if closed and strangers:
            raise InputError(
                f"label {strangers[0]!r} is not one of the classes {known.tolist()} given in the first call: "
                "leave classes= out there, and labels may come later"
            )
        labels = np.union1d(known, y)
        if not set(known.tolist()) <= set(labels.tolist()):  # NumPy makes words of numbers that meet words
            raise InputError(f"label {y.tolist()[0]!r} is of another kind than those known: {known.tolist()}")
        return labels

    def _make(self, classes: NDArray[Any], rng: Any, **more: Any) -> Learner:
        return make(self, classes.tolist(), int(rng.randint(SEEDS)), **more)

    def _take(self, learner: Learner | None, classes: NDArray[Any], mistakes: int, passes: int) -> None:
        self.learner_, self.classes_, self.mistakes_, self.n_iter_ = learner, classes, mistakes, passes

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        if self.features is None:
            X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=FLOATS)
        else:
            y = column_or_1d(y)
            if n_rows_by_name(X) != len(y):
                raise InputError(f"X has {n_rows_by_name(X)} rows but y has {len(y)} labels")
        check_classification_targets(y)
        return X, y

    def _rows(self, X: Any) -> Any:
        """X with its constant."""
        if self.features is not None or not self.fit_intercept:
            return X
        ones = np.ones((X.shape[0], 1), dtype=X.dtype)
        if sp.issparse(X):
            blocks: Any = [X, sp.csr_array(ones)]
            return sp.hstack(blocks, format="csr")
        return np.hstack([X, ones])

    # --- predicting -----------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the largest score for each row."""
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def decision_function(self, X: Any) -> Matrix | Vector:
        """One score per row and label; for two labels the second's less the first's."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @available_if(tells_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """P(y|x) by the logistic model that is learned: softmax of the scores. Logistic loss, full information only."""
        return np.asarray(scipy.special.softmax(self._scores(X), axis=1))

    @available_if(tells_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Matrix:
        """The logarithm of `predict_proba`."""
        return np.asarray(scipy.special.log_softmax(self._scores(X), axis=1))

    def playing_distribution(self, X: Any) -> Matrix:
        """What the learner would draw its labels from: how it explores, not how likely the labels are."""
        rows = self._seen(X)
        return np.ones((self._count(rows), 1)) if self.learner_ is None else self.learner_.distribution(rows)

    def _scores(self, X: Any) -> Matrix:
        rows = self._seen(X)
        return np.zeros((self._count(rows), 1)) if self.learner_ is None else self.learner_.scores(rows)

    def _count(self, rows: Any) -> int:
        return int(rows.shape[0]) if self.features is None else n_rows_by_name(rows)

    def _seen(self, X: Any) -> Any:
        check_is_fitted(self)
        if self.features is not None:
            return X
        return self._rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS))

    # --- what was learned -----------------------------------------------------------------------------------

    @property
    def t_(self) -> int:
        """How many rounds were learned from."""
        check_is_fitted(self)
        return 0 if self.learner_ is None else self.learner_.rounds

    @property
    def coef_(self) -> Matrix:
        """The weights, one row per label; for two labels one row, the second's less the first's."""
        return self._weights()[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Vector:
        """The weight of the constant feature; zero without one."""
        weights = self._weights()
        return weights[:, -1] if self.fit_intercept else np.zeros(len(weights))

    def _weights(self) -> Matrix:
        if not self.__sklearn_is_fitted__():
            raise AttributeError("not fitted yet: there are no weights")
        if self.features is not None:
            raise AttributeError("the weights are of encoded columns: learner_.weights holds them")
        card = load(self.algorithm).CARD
        if "mixture" in card.traits or (self.settings or {}).get("kernel"):
            held = "the certified part" if card.advice else "a mean"
            raise AttributeError(f"what {self.algorithm} predicts is no one linear rule; learner_.weights holds {held}")
        if self.learner_ is None:
            return np.zeros((1, self.n_features_in_ + int(self.fit_intercept)))
        weights = self.learner_.weights
        return weights[1:] - weights[:1] if len(weights) == 2 else weights


def _of(worth: Matrix | None, rows: NDArray[np.int64]) -> Matrix | None:
    return None if worth is None else worth[rows]


def _times(sample_weight: Any, n_rows: int) -> NDArray[np.int64]:
    """How often each row is played."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise InputError(f"sample_weight has shape {weights.shape}, but there are {n_rows} rows")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights == np.floor(weights)).all()):
        raise InputError("sample_weight must hold whole numbers of at least 0: a round is played or it is not")
    return weights.astype(np.int64)
