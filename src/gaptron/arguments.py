"""What callers give a learner, checked against its problem and what its algorithm can do."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.algorithms import able
from gaptron.by_name import ByName
from gaptron.core import Core
from gaptron.decision import EVERY, SILENCE
from gaptron.errors import DecisionError, InputError, OutlierWarning
from gaptron.types import UNKNOWN, Feedback, Flags, Integers, Matrix, Problem, Vector
from gaptron.validation import (
    FAR,
    FEW,
    CheckedRows,
    Classes,
    Labels,
    as_advice,
    as_among,
    as_correct,
    as_reward,
    as_worth,
    available,
    checked,
    checked_row,
)

REFUSES_FRACTIONS = "cannot learn from rewards between 0 and 1"
ROUNDING = 1e-6  # rows scaled to unit norm in float32 may be this much longer than 1


class Arguments:
    """The checks of one learner.

    Args:
        core: the algorithm at work, which knows the problem.
        classes: the labels.
        names: the encoder, where rows are given by name.
        promised: was the longest norm given by the caller, not measured?
    """

    def __init__(self, core: Core, classes: Classes, names: ByName | None, promised: bool) -> None:
        self._core = core
        self.classes = classes
        self.names = names
        self.promised = promised

    @property
    def _problem(self) -> Problem:
        return self._core.problem

    # --- rows -----------------------------------------------------------------------------------------------

    def row(self, x: Any) -> Any:
        """One row, checked: a `CheckedRow`, or the cells of a row by name."""
        if self.names is not None:
            return self.names.row(x)
        if isinstance(x, Mapping):
            raise InputError('x is a dict: make the learner with features="auto", and it takes rows by name')
        row = checked_row(x)
        self._check_width(row.width, "x")
        self.check_norm(row.norm, "x")
        return row

    def rows(self, X: Any, learn: bool = False) -> CheckedRows:
        """Many rows, checked; `learn`: the encoder of rows by name learns from them."""
        if self.names is not None:
            return self.names.rows(X, learn=learn)
        if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
            raise InputError('X holds dicts: make the learner with features="auto", and it takes rows by name')
        rows = checked(X)
        self._check_width(rows.width, "X")
        return rows

    def _check_width(self, width: int, name: str) -> None:
        d = self._problem.n_features
        if d and width != d:
            raise InputError(f"{name} has {width} columns; the learner knows {d} features")
        if width == 0:
            raise InputError(f"{name} has no columns")

    def check_norm(self, longest: float, name: str) -> None:
        """Refuse rows longer than was promised or measured."""
        X = self._problem.norm
        if X is not None and longest > X * (1 + ROUNDING):
            source = "promised" if self.promised else "measured on the first play"
            raise InputError(
                f"{name} holds a row of norm {longest:.6g}, above the norm {X:.6g} {source}: "
                "give a larger norm=... or scale the rows"
            )

    def warn_of_outlier(self, rows: CheckedRows, longest_before: float) -> None:
        """Tell the user of a row far longer than all before it: those of this X, and those played earlier."""
        early = self._core.learned < FEW
        if early and rows.outlier is not None:
            what = f"row {rows.outlier} of X is more than {FAR:.0f} times as long as every row before it"
        elif not early and rows.longest > FAR * longest_before > 0.0:
            far = f"more than {FAR:.0f} times as long as every row played before"
            what = f"X holds a row of norm {rows.longest:.3g}, {far}"
        else:
            return
        warnings.warn(
            f"{what}: one such row makes the steps of many algorithms too small for all others; clip it, or scale "
            "every row to norm 1",
            OutlierWarning,
            stacklevel=3,
        )

    # --- advice, and labels that are available ----------------------------------------------------------------

    def opinion(self, advice: Any) -> Vector:
        """A caller's advice on one row as probabilities; empty if there is none."""
        if advice is None:
            return SILENCE
        one: Vector = self.opinions(advice if getattr(advice, "ndim", 1) == 2 else [advice], 1)[0]
        return one.copy()

    def opinions(self, advice: Any, rounds: int) -> Matrix:
        """A caller's advice as probabilities, one row a round; no columns if there is none."""
        if advice is None:
            return np.zeros((rounds, 0))
        self._check_able("advice", "cannot take advice")
        return as_advice(advice, rounds, self.classes)

    def available(self, among: Any) -> Flags:
        """Which labels are available in one round; empty if all are."""
        if among is None:
            return EVERY
        self._check_able("among", "cannot leave labels out of a round")
        return available(among, self.classes)

    def all_available(self, among: Any, rounds: int) -> NDArray[np.bool_]:
        """Which labels are available, one row a round; no columns if all are."""
        if among is None:
            return np.ones((rounds, 0), dtype=np.bool_)
        self._check_able("among", "cannot leave labels out of a round")
        return as_among(among, rounds, self.classes)

    def _check_able(self, trait: str, refusal: str) -> None:
        """Refuse what this algorithm cannot do, and say which can."""
        if not getattr(self._core.file.CARD, trait):
            raise InputError(f"{self._core.algorithm} {refusal}; algorithms that can: {able(trait)}")

    # --- answers ----------------------------------------------------------------------------------------------

    def answer(self, code: int, among: Flags, label: Any, correct: Any, reward: Any) -> tuple[int, float]:
        """What the answer to a label played shows: the true label, or UNKNOWN, and what the one played was worth."""
        graph = self._problem.graph
        if self._problem.feedback is Feedback.BANDIT:
            if label is not None or (correct is None) == (reward is None):
                raise DecisionError(
                    "bandit feedback: answer with learn(decision, correct=True or False), or reward=..."
                )
            if reward is None:
                worth = float(as_correct(correct))
            else:
                worth = as_reward(reward)
                if 0.0 < worth < 1.0:
                    self._check_able("rewards", REFUSES_FRACTIONS)
            return (code if worth > 0.0 else UNKNOWN), worth
        if correct is not None or reward is not None or (label is None and graph is None):
            raise DecisionError(
                "full information: answer with learn(decision, label=the right label)"
                if graph is None
                else "graph feedback: answer with learn(decision, label=...) or, if nothing was shown, learn(decision)"
            )
        if label is None:
            return UNKNOWN, 0.0
        truth = self.classes.code(label)
        if graph is not None and not graph[code, truth]:
            raise DecisionError(f"playing {self.classes.labels[code]!r} does not show {label!r} in this graph")
        if len(among) and not among[truth]:
            raise InputError(f"label {label!r} cannot be the right one: it was not available in this round")
        return truth, float(truth == code)

    def truth(self, X: Any, y: Labels | None, without: int | None) -> Integers:
        """The codes of the true labels: of y, or of a stream; `without`: of so many rounds, where none is needed."""
        if y is not None:
            return self.classes.codes(y)
        if not is_stream(X):
            if without is not None:
                return np.full(without, UNKNOWN)
            raise InputError("play(X, y) needs the labels y, or a stream that has them")
        if self.classes.labels not in (X.classes, tuple(range(len(X.classes)))):
            raise InputError("the labels of this stream are not the learner's: give the learner classes=stream.classes")
        codes: Integers = X.y
        return codes

    def worth(self, reward: Any, rounds: int) -> Matrix:
        """What labels are worth; no columns: the right one 1, the others nothing."""
        if reward is None:
            return np.zeros((rounds, 0))
        if self._problem.feedback is not Feedback.BANDIT:
            raise InputError("rewards are answers to the label played: give the learner feedback='bandit'")
        worth = as_worth(reward, rounds, len(self.classes))
        if ((worth > 0.0) & (worth < 1.0)).any():
            self._check_able("rewards", REFUSES_FRACTIONS)
        return worth

    def check_truth_available(self, truth: Integers, among: NDArray[np.bool_]) -> None:
        """Refuse rounds whose right label is told and was not available."""
        if self._problem.feedback is Feedback.BANDIT or not among.shape[1]:
            return
        missing = ~among[np.arange(len(truth)), truth]
        if missing.any():
            at = int(missing.argmax())
            label = self.classes.labels[truth[at]]
            raise InputError(f"row {at}: the right label {label!r} is not among the available ones")


def is_stream(X: Any) -> bool:
    """Has X been read and checked by `gaptron.streams`? A table may have columns of any name."""
    return hasattr(X, "checked") and hasattr(X, "classes") and hasattr(X, "n_rounds")
