"""The arguments of a learner's methods, checked against its problem and what its algorithm supports."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.algorithms import able
from gaptron.data.examples import FAR, FEW, LARGEST_SINGLE, Examples, checked, checked_example
from gaptron.data.feedback import as_advice, as_available, as_correct, as_reward, as_rewards, available_labels
from gaptron.data.labels import Classes, EncodedLabels, Labels
from gaptron.errors import DecisionError, InputError, OutlierWarning, SettingError
from gaptron.features import Encoder
from gaptron.learner.decision import ALL_AVAILABLE, NO_ADVICE
from gaptron.learner.engine import Engine
from gaptron.types import UNKNOWN, Feedback, Flags, Integers, Matrix, Problem, Vector

REFUSES_FRACTIONS = "cannot learn from rewards between 0 and 1"
ROUNDING = 1e-6  # examples scaled to unit norm in float32 may be this much longer than 1


class Arguments:
    """The checks of one learner.

    Args:
        engine: the engine, which knows the problem.
        classes: the labels.
        encoder: encodes examples by name; None: examples are numbers.
        promised: whether the caller gave the norm; otherwise it is measured.
    """

    def __init__(self, engine: Engine, classes: Classes, encoder: Encoder | None, promised: bool) -> None:
        self._engine = engine
        self.classes = classes
        self.encoder = encoder
        self.promised = promised

    @property
    def _problem(self) -> Problem:
        return self._engine.problem

    def check_playable(self) -> None:
        """Refuse to play with `epsilon`: the compiled loop draws from the algorithm's own distribution."""
        if self._engine.epsilon:
            raise SettingError(f"play does not support epsilon={self._engine.epsilon:g}: use decide and learn instead")

    # --- examples -------------------------------------------------------------------------------------------

    def example(self, x: Any) -> Any:
        """Check one example: an `Example`, or a `Record` if it is given by name."""
        if self.encoder is not None:
            return self.encoder.read_row(x)
        if isinstance(x, Mapping):
            raise InputError('x is a dict: make the learner with features="auto", to give examples by name')
        example = checked_example(x)
        self._check_width(example.width, "x")
        self.check_norm(example.norm, "x")
        return example

    def examples(self, X: Any) -> Any:
        """Check many examples: `Examples`, or a `Table` or `Records` if they are given by name."""
        if self.encoder is not None:
            return self.encoder.read(X)
        if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
            raise InputError('X holds dicts: make the learner with features="auto", to give examples by name')
        examples = checked(X)
        self._check_width(examples.width, "X")
        return examples

    def _check_width(self, width: int, name: str) -> None:
        d = self._problem.n_features
        if d and width != d:
            raise InputError(f"{name} has {width} columns; the learner has {d} features")
        if width == 0:
            raise InputError(f"{name} has no columns")

    def check_norm(self, longest: float, name: str) -> None:
        """Refuse examples longer than the norm that was given or measured, or than the learner's precision allows."""
        if self._engine.single and longest > LARGEST_SINGLE:
            raise InputError(
                f"{name} holds an example of norm {longest:.6g}; in single precision weights overflow above "
                f"{LARGEST_SINGLE:g}: scale the examples, or leave out precision"
            )
        X = self._problem.norm
        if X is not None and longest > X * (1 + ROUNDING):
            source = "given" if self.promised else "measured on the first play"
            raise InputError(
                f"{name} holds an example of norm {longest:.6g}, above the norm {X:.6g} {source}: "
                "give a larger norm=... or scale the examples"
            )

    def warn_of_outlier(self, examples: Examples, longest: float, longest_before: float) -> None:
        """Warn of an example far longer than all before it: those of this X, and those played earlier."""
        early = self._engine.learned < FEW
        outlier = examples.outlier if early else None
        if outlier is not None:
            what = f"row {outlier} of X is more than {FAR:.0f} times as long as every row before it"
        elif not early and longest > FAR * longest_before > 0.0:
            what = f"X holds a row of norm {longest:.3g}, more than {FAR:.0f} times as long as every row played before"
        else:
            return
        warnings.warn(
            f"{what}: one such example makes the steps of many algorithms too small for all others; clip it, or scale "
            "every example to norm 1",
            OutlierWarning,
            stacklevel=3,
        )

    # --- advice, available labels ------------------------------------------------------------------------------

    def advice_row(self, advice: Any) -> Vector:
        """A caller's advice on one example as probabilities; empty if there is none."""
        if advice is None:
            return NO_ADVICE
        one: Vector = self.advice_rows(advice if getattr(advice, "ndim", 1) == 2 else [advice], 1)[0]
        return one.copy()

    def advice_rows(self, advice: Any, rounds: int) -> Matrix:
        """A caller's advice as probabilities, one row per round; no columns if there is none."""
        if advice is None:
            return np.zeros((rounds, 0))
        self._check_able("advice", "cannot take advice")
        return as_advice(advice, rounds, self.classes)

    def available(self, available: Any) -> Flags:
        """Which labels are available in one round; empty if all are."""
        if available is None:
            return ALL_AVAILABLE
        self._check_able("available", "cannot leave labels out of a round")
        return available_labels(available, self.classes)

    def all_available(self, available: Any, rounds: int) -> NDArray[np.bool_]:
        """Which labels are available, one row per round; no columns if all are."""
        if available is None:
            return np.ones((rounds, 0), dtype=np.bool_)
        self._check_able("available", "cannot leave labels out of a round")
        return as_available(available, rounds, self.classes)

    def _check_able(self, trait: str, refusal: str) -> None:
        """Refuse what this algorithm does not support, and name those that do."""
        if not getattr(self._engine.algorithm.CARD, trait):
            raise InputError(f"{self._engine.name} {refusal}; algorithms that can: {able(trait)}")

    # --- feedback ----------------------------------------------------------------------------------------------

    def feedback(self, code: int, available: Flags, label: Any, correct: Any, reward: Any) -> tuple[int, float]:
        """Check the feedback on a label: the true label, or UNKNOWN, and the reward of the label played."""
        graph = self._problem.graph
        if self._problem.feedback is Feedback.BANDIT:
            return self._bandit_feedback(code, label, correct, reward)
        if graph is None and label is None and reward is None and correct is not None:
            return self._of_two(code, available, as_correct(correct))
        if correct is not None or reward is not None or (label is None and graph is None):
            raise DecisionError(
                "full information: call learn(decision, label=the true label)"
                if graph is None
                else "graph feedback: call learn(decision, label=...) or, if no label was revealed, learn(decision)"
            )
        if label is None:
            return UNKNOWN, 0.0
        truth = self.classes.code(label)
        if graph is not None and not graph[code, truth]:
            raise DecisionError(f"playing {self.classes.labels[code]!r} does not reveal {label!r} in this graph")
        if len(available) and not available[truth]:
            raise InputError(f"label {label!r} cannot be the true one: it was not available in this round")
        return truth, float(truth == code)

    def _of_two(self, code: int, available: Flags, correct: bool) -> tuple[int, float]:
        """Return the true label of two, where one is right: the label played or, if it was wrong, the other one."""
        labels = np.flatnonzero(available) if len(available) else np.arange(len(self.classes))
        if len(labels) != 2:
            raise DecisionError(
                f"correct={correct} reveals the true label only where there are two, and this round had {len(labels)}: "
                "call learn(decision, label=the true label), or make the learner with feedback='bandit'"
            )
        return (code if correct else int(labels[labels != code][0])), float(correct)

    def _bandit_feedback(self, code: int, truth: Any, correct: Any, reward: Any) -> tuple[int, float]:
        if truth is not None or (correct is None) == (reward is None):
            raise DecisionError(
                "bandit feedback: call learn(decision, correct=True or False), or learn(decision, reward=...)"
            )
        if reward is None:
            value = float(as_correct(correct))
        else:
            value = as_reward(reward)
            if 0.0 < value < 1.0:
                self._check_able("rewards", REFUSES_FRACTIONS)
        return (code if value > 0.0 else UNKNOWN), value

    def truth(self, X: Any, y: Labels | None, without: int | None) -> Integers:
        """The codes of the true labels: of y, or of a stream; `without`: of so many rounds, if none is needed."""
        if y is not None:
            return self.classes.codes(y)
        if is_stream(X):
            return self.classes.codes(EncodedLabels(X.y, X.classes))
        if without is not None:
            return np.full(without, UNKNOWN)
        raise InputError("play(X, y) needs the labels y, or a stream that has them")

    def rewards(self, reward: Any, rounds: int) -> Matrix:
        """The rewards of labels; no columns: 1 for the true one, 0 for the others."""
        if reward is None:
            return np.zeros((rounds, 0))
        if self._problem.feedback is not Feedback.BANDIT:
            raise InputError("rewards are bandit feedback: make the learner with feedback='bandit'")
        rewards = as_rewards(reward, rounds, len(self.classes))
        if ((rewards > 0.0) & (rewards < 1.0)).any():
            self._check_able("rewards", REFUSES_FRACTIONS)
        return rewards

    def check_truth_available(self, truth: Integers, available: NDArray[np.bool_]) -> None:
        """Refuse rounds whose true label is revealed but was not available."""
        if self._problem.feedback is Feedback.BANDIT or not available.shape[1]:
            return
        missing = ~available[np.arange(len(truth)), truth]
        if missing.any():
            at = int(missing.argmax())
            label = self.classes.labels[truth[at]]
            raise InputError(f"row {at}: the true label {label!r} is not available")


def is_stream(X: Any) -> bool:
    """Whether X is a stream of `gaptron.streams`. A table may have columns of any name."""
    return hasattr(X, "checked") and hasattr(X, "classes") and hasattr(X, "n_rounds")
