"""The arguments of a learner's methods, where every round brings its own actions."""

from collections.abc import Mapping, Sequence
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
from gaptron.features import ActionEncoder, ActionRecord, ActionRecords
from gaptron.features.rounds import as_id, objects, places_of_ids, record_of, rewards_by_name
from gaptron.learner.action_decision import ActionDecision
from gaptron.learner.action_engine import ActionEngine
from gaptron.learner.action_trace import ActionTrace
from gaptron.learner.arguments import REFUSES_FRACTIONS, Arguments
from gaptron.types import UNKNOWN, Feedback, Integers, Vector

NO_CONTEXT = 'only actions=... is taken here: a context needs named features, features="auto"'
NAMED = 'for named features: give actions by name to a learner with features="auto"'


class ActionArguments(Arguments):
    """The checks of one learner with `actions=True`."""

    def __init__(self, engine: ActionEngine, encoder: ActionEncoder | None, promised: bool) -> None:
        super().__init__(engine, Classes(()), encoder, promised)
        self.engine = engine

    # --- examples -------------------------------------------------------------------------------------------

    def offer(self, x: Any, actions: Any, available: Any, excluded: Any, advice: Any) -> Offer | ActionRecord:
        """Check the actions of one round."""
        if self.encoder is not None:
            return self._record(x, actions, available, excluded, advice)
        if isinstance(actions, Mapping | ActionRecord):
            raise InputError(f"actions by name are {NAMED}")
        if excluded is not None:
            raise InputError("excluded=... is for named features: give the rows that may be played in available=...")
        if x is not None:
            raise InputError(NO_CONTEXT)
        if actions is None:
            raise InputError("give the actions of the round, one row each: actions=...")
        self._refuse_advice(advice)
        offer = checked_offer(actions, available)
        self._check_width(offer.width, "actions")
        self.check_norm(offer.norm, "actions")
        return offer

    def _record(self, x: Any, actions: Any, available: Any, excluded: Any, advice: Any) -> ActionRecord:
        """Check the context and the actions of one round, by name."""
        self._refuse_advice(advice)
        if available is not None:
            raise InputError("available=... is for actions in arrays: list the ids to leave out in excluded=...")
        if isinstance(actions, ActionRecord):
            if x is not None or excluded is not None:
                raise InputError("a checked round has its context and its excluded actions: leave x and excluded out")
            return actions
        if actions is None:
            raise InputError("give the actions of the round by name: decide(context, actions={id: features, ...})")
        return record_of(x, actions, excluded)

    def rounds(self, X: Any) -> Any:
        """Check the actions of many rounds; one matrix is one round. With named features they are `ActionRecords`."""
        if self.encoder is not None:
            return ActionRecords.of(X)
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

    def run(self, X: Any, y: Any, available: Any, rewards: Any, advice: Any) -> tuple[Any, ActionTrace, bool]:
        """Check what `play` is given: the actions that may be played, the trace to fill, and whether any may not."""
        self._refuse_advice(advice)
        rounds = self.rounds(X)
        if (y is None) == (rewards is None):
            raise InputError("play(actions, y) needs the right action of each round, or rewards=..., and not both")
        if rewards is not None and self._problem.feedback is not Feedback.BANDIT:
            raise InputError("rewards are bandit feedback: make the learner with feedback='bandit'")
        named = isinstance(rounds, ActionRecords)
        if named:
            rewards = rewards_by_name(rewards, rounds)
        else:
            self.check_norm(rounds.longest, "actions")
        earned = np.zeros((0, 1)) if rewards is None else rewards_of_rows(rewards, rounds)
        if ((earned > 0.0) & (earned < 1.0)).any():
            self._check_able("rewards", REFUSES_FRACTIONS)
        truth = np.full(len(rounds), UNKNOWN) if y is None else self.right_actions(y, rounds)
        starts = rounds.first - rounds.first[0]
        rows = np.arange(starts[-1]) - np.repeat(starts[:-1], rounds.counts)
        flags = self._allowed(rounds, available)
        before: Integers = np.concatenate([[0], np.cumsum(flags)])  # how many rows that can be played come before each
        if not flags.all():
            if y is not None and not named:
                at = starts[:-1] + truth
                missing = np.flatnonzero(~flags[at])
                if missing.size:
                    raise InputError(f"round {missing[0]}: the right action {truth[missing[0]]} is not available")
                truth = before[at] - before[starts[:-1]]
            rounds, rows = rounds if named else rounds.only(flags), rows[flags]
            earned = earned[flags] if len(earned) else earned
        ids = objects([name for each in rounds for name in each.ids]) if named else None
        notes = self.engine.algorithm.NOTES
        return rounds, ActionTrace.of_rounds(before[starts], rows, ids, truth, notes, earned), not flags.all()

    def _allowed(self, rounds: Any, available: Any) -> NDArray[np.bool_]:
        """Which rows may be played; by name, which of the actions given."""
        if isinstance(rounds, ActionRecords):
            if available is not None:
                raise InputError("available=... is for actions in arrays: list the ids in excluded, in each round")
            return rounds.offered
        if available is None:
            return np.ones(rounds.first[-1] - rounds.first[0], dtype=np.bool_)
        return all_available(available, rounds)

    def scored(self, X: Any, available: Any, advice: Any) -> tuple[Any, NDArray[np.bool_]]:
        """Check actions that are only scored: those that may be played, and which of all rows they are."""
        self._refuse_advice(advice)
        if self.encoder is None and available is not None and not isinstance(X, list | tuple | ActionExamples):
            available = [available]
        rounds = self.rounds(X)
        flags = self._allowed(rounds, available)
        return rounds if flags.all() or isinstance(rounds, ActionRecords) else rounds.only(flags), flags

    def top_of_each_round(self, X: Any, scores: Vector) -> NDArray[Any]:
        """The row, or the id, of the largest score of each round."""
        rounds = self.rounds(X)
        starts = rounds.first - rounds.first[0]
        top = [int(scores[a:b].argmax()) for a, b in pairwise(starts)]
        if isinstance(rounds, ActionRecords):
            return objects([each.given[k] for each, k in zip(rounds, top)])
        return np.array(top, dtype=np.int64)

    def right_actions(self, y: Any, rounds: ActionExamples) -> Integers:
        """Check the right action of each round: its row, or its id."""
        if isinstance(rounds, ActionRecords):
            return places_of_ids(y, rounds)
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
        truth = _code(action, decision._ids, decision._places, decision._count, "action")
        return truth, float(truth == decision._code)

    def code(self, action: Any, given: Offer | ActionRecord, what: str) -> int:
        """Check a row or an id, and return its place among the actions that may be played."""
        if isinstance(given, ActionRecord):
            return _code(action, given.ids, (), 0, what)
        return _code(action, None, given.places, given.given, what)

    def logged_feedback(
        self, code: int, given: Offer | ActionRecord, truth: Any, correct: Any, reward: Any
    ) -> tuple[int, float]:
        """Check the feedback on a logged action: the right action, or UNKNOWN, and the reward of the one played."""
        if self._problem.feedback is Feedback.BANDIT:
            return self._bandit_feedback(code, truth, correct, reward)
        if correct is not None or reward is not None or truth is None:
            raise DecisionError("full information: call learn_logged(..., truth=the right action)")
        right = self.code(truth, given, "truth")
        return right, float(right == code)

    def check_feedback(self, action: Any, available: Any, truth: Any, correct: Any, reward: Any) -> None:
        """Check the feedback on a logged action, given the ids or rows of all actions that could be played."""
        if available is None:
            raise InputError("give the actions of the round: available=[...]")
        ids = tuple(available)
        code = ids.index(as_id(action, ids, "label"))
        if self._problem.feedback is Feedback.BANDIT:
            self._bandit_feedback(code, truth, correct, reward)
        elif correct is not None or reward is not None or truth is None:
            raise DecisionError("full information: give truth=the right action")
        else:
            as_id(truth, ids, "truth")


def _code(action: Any, ids: Sequence[Any] | None, places: Sequence[int] | Integers, count: int, what: str) -> int:
    """Return the place of an action among those that may be played, which have ids or are rows."""
    if action is None:
        raise InputError(f"give {what}=..., the {'id' if ids is not None else 'row'} of one of the actions")
    return as_action(action, places, count) if ids is None else ids.index(as_id(action, ids, what))
