"""The arguments of a learner's methods, where every round brings its own actions."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.data.actions import (
    ActionExamples,
    Offer,
    all_available,
    as_action,
    checked_actions,
    checked_offer,
    rewards_of_rows,
)
from gaptron.data.labels import Classes
from gaptron.errors import DecisionError, InputError
from gaptron.learner.action_decision import ActionDecision
from gaptron.learner.action_engine import ActionEngine
from gaptron.learner.action_trace import ActionTrace
from gaptron.learner.arguments import REFUSES_FRACTIONS, Arguments
from gaptron.types import UNKNOWN, Feedback, Integers, Vector

NO_CONTEXT = "a learner with actions=True takes only actions=...: features that all actions share cancel out"


class ActionArguments(Arguments):
    """The checks of one learner with `actions=True`."""

    def __init__(self, engine: ActionEngine, promised: bool) -> None:
        super().__init__(engine, Classes(()), None, promised)
        self.engine = engine

    # --- examples -------------------------------------------------------------------------------------------

    def offer(self, x: Any, actions: Any, available: Any, advice: Any) -> Offer:
        """Check the actions of one round."""
        if x is not None:
            raise InputError(NO_CONTEXT)
        if actions is None:
            raise InputError("give the actions of the round, one row each: actions=...")
        self._refuse_advice(advice)
        offer = checked_offer(actions, available)
        self._check_width(offer.width, "actions")
        self.check_norm(offer.norm, "actions")
        return offer

    def rounds(self, X: Any) -> ActionExamples:
        """Check the actions of many rounds; one matrix is one round."""
        if isinstance(X, Offer):
            X = X.as_examples()
        elif not isinstance(X, list | tuple | ActionExamples):
            X = [X]
        rounds = checked_actions(X)
        self._check_width(rounds.width, "actions")
        return rounds

    def _refuse_advice(self, advice: Any) -> None:
        if advice is not None:
            raise InputError("advice on actions with features is not supported: leave advice out")

    def run(
        self, X: Any, y: Any, available: Any, rewards: Any, advice: Any
    ) -> tuple[ActionExamples, ActionTrace, bool]:
        """Check what `play` is given: the actions that may be played, the trace to fill, and whether any may not."""
        self._refuse_advice(advice)
        rounds = self.rounds(X)
        if (y is None) == (rewards is None):
            raise InputError("play(actions, y) needs the right action of each round, or rewards=..., and not both")
        if rewards is not None and self._problem.feedback is not Feedback.BANDIT:
            raise InputError("rewards are bandit feedback: make the learner with feedback='bandit'")
        self.check_norm(rounds.longest, "actions")
        earned = np.zeros((0, 1)) if rewards is None else rewards_of_rows(rewards, rounds)
        if ((earned > 0.0) & (earned < 1.0)).any():
            self._check_able("rewards", REFUSES_FRACTIONS)
        truth = np.full(len(rounds), UNKNOWN) if y is None else self.right_actions(y, rounds)
        starts = rounds.first - rounds.first[0]
        rows = np.arange(starts[-1]) - np.repeat(starts[:-1], rounds.counts)
        flags = np.ones(len(rows), dtype=np.bool_)
        if available is not None:
            flags = all_available(available, rounds)
            if y is not None:
                at = starts[:-1] + truth
                missing = np.flatnonzero(~flags[at])
                if missing.size:
                    raise InputError(f"round {missing[0]}: the right action {truth[missing[0]]} is not available")
                before: Integers = np.cumsum(flags) - flags  # how many rows that can be played come before each
                truth = before[at] - before[starts[:-1]]
            rounds, rows = rounds.only(flags), rows[flags]
            earned = earned[flags] if len(earned) else earned
        trace = ActionTrace.of_rounds(rounds, rows, truth, self.engine.algorithm.NOTES, earned)
        return rounds, trace, not flags.all()

    def scored(self, X: Any, available: Any, advice: Any) -> tuple[ActionExamples, NDArray[np.bool_]]:
        """Check actions that are only scored: those that may be played, and which of all rows they are."""
        self._refuse_advice(advice)
        single = not isinstance(X, list | tuple | ActionExamples)
        rounds = self.rounds(X)
        if available is None:
            return rounds, np.ones(rounds.first[-1] - rounds.first[0], dtype=np.bool_)
        flags = all_available([available] if single else available, rounds)
        return rounds.only(flags), flags

    def top_of_each_round(self, X: Any, scores: Vector) -> Integers:
        """The row of the largest score of each round."""
        first = self.rounds(X).first
        starts = first - first[0]
        return np.array([scores[a:b].argmax() for a, b in pairwise(starts)], dtype=np.int64)

    def right_actions(self, y: Any, rounds: ActionExamples) -> Integers:
        """Check the right action of each round: its row."""
        truth = np.asarray(y)
        if truth.ndim != 1 or truth.dtype.kind not in "iu":
            raise InputError("y must hold the row of the right action of each round, as whole numbers")
        if len(truth) != len(rounds):
            raise InputError(f"there are {len(rounds)} rounds of actions, but y has {len(truth)} entries")
        wrong = np.flatnonzero((truth < 0) | (truth >= rounds.counts))
        if wrong.size:
            t = int(wrong[0])
            raise InputError(f"round {t}: action {truth[t]} is not one of the {rounds.counts[t]} actions")
        return truth.astype(np.int64)

    # --- feedback -------------------------------------------------------------------------------------------

    def feedback_on(
        self, decision: ActionDecision, label: Any, action: Any, correct: Any, reward: Any
    ) -> tuple[int, float]:
        """Check the feedback on an action: the right action, or UNKNOWN, and the reward of the action played."""
        if label is not None:
            raise DecisionError("this learner chooses between actions: give action=... in place of label=...")
        if self._problem.feedback is Feedback.BANDIT:
            return self._bandit_feedback(decision._code, action, correct, reward)
        if correct is not None or reward is not None or action is None:
            raise DecisionError("full information: call learn(decision, action=the right action)")
        truth = as_action(action, decision._places, decision._count)
        return truth, float(truth == decision._code)
