"""Learner: the object a user holds. It checks arguments, and returns the caller's own labels."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gaptron.algorithms import able, load
from gaptron.algorithms.feedback import as_graph
from gaptron.algorithms.protocol import HasAdvice, HasCertificate
from gaptron.data import state_tree
from gaptron.data.actions import ActionExamples, Offer
from gaptron.data.examples import Example, Examples, checked
from gaptron.data.labels import Classes, Labels
from gaptron.data.values import MIN_PROPENSITY, choice, flag, number, plain_dict, positive, whole
from gaptron.errors import DecisionError, InputError, ModelFileError, NoBoundError, SettingError
from gaptron.features import Account, ActionEncoder, ActionRecord, ActionRecords, Encoder, in_file
from gaptron.features.action_encoder import MOST_ROUNDS
from gaptron.features.declaration import as_features
from gaptron.features.tables import Record
from gaptron.learner import action_decision, growth, model_file
from gaptron.learner.action_arguments import ActionArguments
from gaptron.learner.action_decision import ActionDecision, ActionPreview, at_width, without_columns
from gaptron.learner.action_engine import ActionEngine
from gaptron.learner.action_trace import ActionTrace
from gaptron.learner.arguments import Arguments, is_stream
from gaptron.learner.chunks import chunks
from gaptron.learner.decision import ALL_AVAILABLE, NO_ADVICE, Decision, Pending, as_tree, from_tree
from gaptron.learner.engine import Engine, evidence_module
from gaptron.learner.locking import UseLock
from gaptron.learner.memory import PRECISIONS
from gaptron.learner.seeds import generator
from gaptron.learner.settings import checked_epsilon, checked_settings, has_own_epsilon
from gaptron.learner.trace import Trace
from gaptron.theory import bounds
from gaptron.theory.bounds import Bound
from gaptron.theory.conditions import Conditions, check_precision
from gaptron.types import (
    UNKNOWN,
    Advice,
    Certificate,
    Feedback,
    Flags,
    Loss,
    Matrix,
    Nothing,
    Observed,
    Problem,
    Sparse,
    SparseRow,
    Vector,
)

DEFAULT = "advised-gaptron"  # the algorithm, where none is named


class Learner:
    """An online multiclass learner: it predicts a label for each example, then learns from the feedback.

    Args:
        algorithm: a name from `gaptron.algorithms.NAMES`. Left out, advised-gaptron.
        n_classes: the number of labels, which are then 0..K-1; or give `classes`.
        classes: the labels, of any kind.
        actions: every round brings its own actions, each with its own features, in place of K labels; see docs page
            "Actions with features".
        n_features: the width of the examples. Left out, the first examples set it.
        features: "auto" or `Features(...)`: examples, or the context and the actions of a round, are given by name,
            with words, missing values and times; see `gaptron.features`. Left out, they are arrays of numbers.
        feedback: "full" (the true label is revealed), "bandit" (only whether the label played was correct), or a graph:
            a boolean K × K matrix, or "apple-tasting" or "label-efficient" (playing the row's label reveals the true
            label if it is the column's).
        loss: "logistic", "hinge" or "smooth-hinge", where the algorithm has a choice.
        norm: an upper bound on ‖x‖, from 1e-60 to 1e60. Left out, the first `play` measures it.
        radius: D, the norm of the rules U that bounds compare with, from 1e-60 to 1e60, where the algorithm needs it.
        horizon: T, the number of rounds, at most 2**53, where the algorithm needs it.
        seed: the seed of the learner's draws. None takes one from the operating system.
        observe: bandit feedback: also record what the feedback proves about every linear rule; see `observed`.
        epsilon: the share of decisions drawn uniformly, such as 0.02, so that other policies can be evaluated from the
            log. Every propensity includes it. It ends `bound` and `certificate`. For `epsilon-greedy` it is that
            algorithm's own setting.
        precision: "single" stores weights, and what is stored for each of them, in float32: half the memory. Every sum
            stays in double precision. `bound` and `certificate` are refused.
        settings: the algorithm's own settings, in place of those of the theorem. A number is 0, or its size is from
            1e-100 to 1e100; some may be infinite.

    Raises:
        SettingError: an argument is unknown, missing or impossible.

    Example:
        >>> import gaptron
        >>> learner = gaptron.Learner(classes=["spam", "ham"], norm=1.0, seed=0)
        >>> decision = learner.decide([0.6, 0.8])
        >>> learner.learn(decision, label="ham")
        >>> learner.rounds
        1
    """

    def __init__(
        self,
        algorithm: str | None = None,
        *,
        n_classes: int | None = None,
        classes: Iterable[Any] | None = None,
        actions: bool = False,
        n_features: int | None = None,
        features: Any = None,
        feedback: Any = "full",
        loss: str | None = None,
        norm: float | None = None,
        radius: float | None = None,
        horizon: int | None = None,
        seed: int | None = None,
        observe: bool = True,
        epsilon: float | None = None,
        precision: str = "double",
        **settings: Any,
    ) -> None:
        if algorithm is None:
            algorithm = DEFAULT
        module = load(algorithm)
        if flag("actions", actions):
            _check_actions(algorithm, n_classes, classes, feedback)
            classes = ()
        if (n_classes is None) == (classes is None):
            raise SettingError("give either n_classes=K or classes=[...]")
        self._classes = Classes(range(whole("n_classes", n_classes)) if classes is None else classes)
        K, most = 1 if actions else len(self._classes), module.CARD.most_classes
        if K < 2 and not actions:
            raise SettingError(f"there must be at least two classes, not {K}")
        if most is not None and K > most:
            raise SettingError(f"{algorithm} is for at most {most} classes, not {K}: use another algorithm")
        encoder = None if features is None else _new_encoder(features, algorithm, n_features, norm, actions)
        graph = as_graph(feedback, K)
        problem = Problem(
            K,
            0 if n_features is None else whole("n_features", n_features),
            choice("feedback", feedback if graph is None else "graph", module.CARD.feedback, algorithm),
            choice("loss", loss, (Loss.LOGISTIC,) if actions else module.CARD.losses, algorithm),
            positive("norm", norm) if encoder is None else 1.0,
            positive("radius", radius),
            None if horizon is None else whole("horizon", horizon),
            graph,
            actions,
            encoder is not None,
        )
        if epsilon is not None and has_own_epsilon(module):
            settings["epsilon"], epsilon = epsilon, None
        settings = checked_settings(algorithm, module, settings)
        share = 0.0 if epsilon is None else checked_epsilon(algorithm, module, epsilon)
        if precision not in PRECISIONS:
            raise SettingError(f"precision={precision!r} must be {' or '.join(map(repr, PRECISIONS))}")
        single = precision == "single"
        if single and not module.CARD.single:
            raise SettingError(f"{algorithm} has no precision='single'; algorithms that have: {able('single')}")
        started = algorithm, problem, settings, seed, flag("observe", observe) and not actions, share, single
        of_actions = encoder if isinstance(encoder, ActionEncoder) else None
        self._actions = ActionArguments(ActionEngine(*started), of_actions, norm is not None) if actions else None
        self._engine: Engine = Engine(*started) if self._actions is None else self._actions.engine
        self._encoder = encoder
        self._arguments = self._actions or Arguments(self._engine, self._classes, encoder, norm is not None)
        self._open = Pending()
        self._conditions = Conditions()
        self._lock = UseLock()
        self._interrupted: Trace | None = None
        self.reading: dict[str, Any] = {}
        """How the files that it learned from were read, to read the next one alike. Saved in the model file."""

    # --- properties ---------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> str:
        """The name of the algorithm."""
        return self._engine.name

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in the order of the weights' rows."""
        return self._classes.labels

    @property
    def problem(self) -> Problem:
        """What is known about the problem."""
        return self._engine.problem

    @property
    def settings(self) -> Any:
        """The settings in use; None while the norm of the first examples is not known."""
        return self._engine.settings

    @property
    def epsilon(self) -> float:
        """The share of decisions drawn uniformly. Of `epsilon-greedy`, that algorithm's own setting."""
        return self._engine.epsilon if not has_own_epsilon(self._engine.algorithm) else self._engine.own_epsilon

    @property
    def features(self) -> list[Account] | None:
        """How each column is encoded so far; None if examples are given as numbers."""
        return None if self._encoder is None else self._encoder.columns

    @property
    def decided(self) -> int:
        """How many decisions were made."""
        return self._engine.decided

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self._engine.learned

    @property
    def pending(self) -> dict[int, Decision]:
        """The decisions that wait for feedback, by round: those the caller still holds, and those of the model file."""
        return self._open.by_round()

    @property
    def interrupted(self) -> Trace | None:
        """If the last `play` was interrupted (Ctrl-C, or an error in `progress`): the trace of the rounds it played."""
        return self._interrupted

    @property
    def weights(self) -> Matrix:
        """The weights, K × d. For `advised-gaptron` those of its certified part; its experts have their own.

        Under bandit feedback they are zero until the first certified round.
        """
        with self._lock.reading:
            return self._engine.weights

    def __repr__(self) -> str:
        size = "actions=True" if self.problem.actions else f"n_classes={len(self._classes)}"
        return (
            f"Learner({self.algorithm!r}, {size}, "
            f"n_features={self.problem.n_features or None}, feedback={self.problem.feedback.word!r}, "
            f"loss={self.problem.loss.word!r}, rounds={self.rounds})"
        )

    # --- one round at a time --------------------------------------------------------------------------------

    def decide(
        self, x: Any = None, *, actions: Any = None, available: Any = None, excluded: Any = None, advice: Any = None
    ) -> Decision:
        """Draw a label for one example, or one of the actions of a round.

        Args:
            x: a one-dimensional array, a 1 × d sparse matrix or a checked `Example`; with `features`, a dict. With
                `actions=True` and `features`, the features of the round itself, which may be left out.
            actions: with `actions=True`: an array or sparse matrix, one row of features per action. With `features`, a
                dict id → features, or a list of (id, features). Ids are texts or whole numbers.
            available: the labels that may be played, or K booleans, where the algorithm supports it. Left out, all are.
                Of actions in an array: their rows, or a boolean for each.
            excluded: of actions by name: the ids of those that are not part of the round.
            advice: the prediction of your own model for x, where the algorithm takes it: a probability for each label,
                or a label. It may depend on anything but the draw that follows.

        Returns:
            The decision, with its label and its propensity; of actions an `ActionDecision`. Pass it to `learn` when the
            feedback is known.

        Raises:
            InputError: x does not fit this learner.
            InUseError: another thread is using this learner.
        """
        given = self._arguments
        if self._actions is not None:
            return self._decide_actions(self._actions.offer(x, actions, available, excluded, advice))
        if actions is not None or excluded is not None:
            what = "actions" if actions is not None else "excluded"
            raise InputError(f"{what}=... is for a learner with actions=True; this one chooses between labels")
        example, advice_row, allowed = given.example(x), given.advice_row(advice), given.available(available)
        with self._lock.writing:
            code, fields = self._draw(self._begin(example), advice_row, allowed)
            self._conditions.left_out |= allowed is not ALL_AVAILABLE and not allowed.all()
            decision = Decision(label=self._classes.labels[code], **fields)
            self._open.add(decision)
        return decision

    def _decide_actions(self, given: Offer | ActionRecord) -> ActionDecision:
        """`decide`, where every round brings its own actions."""
        with self._lock.writing:
            code, fields = self._draw(self._begin(given), NO_ADVICE, ALL_AVAILABLE)
            if isinstance(given, ActionRecord):
                ids, places, count, left_out = given.ids, np.arange(len(given.ids)), len(given.ids), False
            else:
                ids, places, count = None, given.places, given.given
                left_out = count > len(places)
            self._conditions.left_out |= left_out
            label = places.item(code) if ids is None else ids[code]
            z = self._engine.round.z.copy()
            chosen = ActionDecision(label=label, **fields, _z=z, _places=places, _count=count, _ids=ids)
            self._open.add(chosen)
        return chosen

    def _draw(self, row: Any, advice_row: Vector, allowed: Flags) -> tuple[int, dict[str, Any]]:
        """Draw a label, and return its code and what every decision keeps."""
        engine, conditions = self._engine, self._conditions
        conditions.late = max(conditions.late, engine.decided - engine.learned)
        code, u = engine.decide(row, advice_row, allowed)
        p = engine.round.p.copy()
        return code, {
            "propensity": p.item(code),
            "round": engine.decided,
            "_code": code,
            "_x": row,
            "_p": p,
            "_u": u,
            "_advice": advice_row,
            "_available": allowed,
            "_learned": np.zeros(1, dtype=np.bool_),
            "_owner": self,
            "_saved_scratch": engine.saved_scratch(),
        }

    def learn(
        self,
        decision: Decision,
        *,
        label: Any = None,
        correct: bool | None = None,
        reward: float | None = None,
        action: Any = None,
    ) -> None:
        """Learn from the feedback on a decision.

        Feedback may come late, in any order, or never. If anything was decided or learned in between, the example is
        scored again with the current weights; only the label and its propensity are those of the draw. Most theorems
        assume no delay, and then late feedback ends `bound`.

        Args:
            decision: what `decide` returned.
            label: the true label (full information), or the label that the graph reveals, if it reveals one.
            correct: whether the label played was correct (bandit). With full information and two labels, of which one
                is right, this reveals the true label too.
            reward: the reward of the label played, from 0 to 1 (bandit): 1 is `correct=True`, 0 is `correct=False`, and
                some algorithms learn from rewards in between. Give the number itself, do not round it at random.
            action: the right action (full information), where rounds bring their own actions: its row, or its id.

        Raises:
            DecisionError: the decision is not pending, is another learner's, or the feedback is of another kind.
            InputError: the label or reward is impossible.
            InUseError: another thread is using this learner.
        """
        with self._lock.writing:
            self._check_open(decision)
            if self._actions is not None and isinstance(decision, ActionDecision):
                truth, value = self._actions.feedback_on(decision, label, action, correct, reward)
            elif action is not None:
                raise DecisionError("action=... is for a learner with actions=True: give label=...")
            else:
                truth, value = self._arguments.feedback(decision._code, decision._available, label, correct, reward)
            x, engine, conditions = self._row_of(decision), self._engine, self._conditions
            conditions.late = max(conditions.late, engine.decided - decision.round)
            conditions.fractions |= 0.0 < value < 1.0
            if decision.round != engine.last_scored_round:
                made = decision._u, decision._advice, decision._available, decision._saved_scratch
                engine.rescore(x, decision._code, decision.propensity, *made)
            propensity = float(decision._p[decision._code if truth == UNKNOWN else truth])
            engine.learn(x, decision._code, truth, value, propensity, decision._learned)
            self._open.close(decision)

    def forget(self, decision: Decision) -> None:
        """Drop a decision whose feedback will never come.

        Args:
            decision: what `decide` returned. It is not pending any more, and cannot be learned from.

        Raises:
            DecisionError: the decision is not pending, or is another learner's.
        """
        with self._lock.writing:
            self._check_open(decision)
            self._open.close(decision)

    def learn_logged(
        self,
        x: Any = None,
        label: Any = None,
        propensity: Any = None,
        *,
        correct: bool | None = None,
        reward: float | None = None,
        truth: Any = None,
        available: Any = None,
        advice: Any = None,
        actions: Any = None,
        action: Any = None,
        excluded: Any = None,
    ) -> None:
        """Learn from a decision of another policy.

        The example is scored with the current weights. The round counts as decided and learned. It ends `bound` and
        `certificate`, because the theorems are about the learner's own draws.

        Args:
            x: the example, as `decide` takes it.
            label: the label that was played.
            propensity: the probability with which it was drawn, at least 1e-6.
            correct: whether it was correct (bandit).
            reward: its reward, from 0 to 1 (bandit).
            truth: the true label, or the right action (full information or graph).
            available: the labels that could be played. Left out, all could.
            advice: the prediction of your own model, where the algorithm takes it.
            actions: with `actions=True`: the actions of the round, as `decide` takes them.
            action: with `actions=True`, in place of the label: the row, or the id, of the action that was played.
            excluded: with actions by name: the ids of those that could not be played.

        Raises:
            SettingError: the algorithm learns from how it drew its label, which a log does not contain.
            DecisionError: the feedback is of another kind.
            InputError: an argument does not fit this learner.
            InUseError: another thread is using this learner.
        """
        if self._engine.algorithm.CARD.own_coin:
            raise SettingError(
                f"{self.algorithm} learns from how it drew its label, which a log cannot say: use another algorithm"
            )
        given: Any
        advice_row, allowed = NO_ADVICE, ALL_AVAILABLE
        if self._actions is not None:
            if label is not None:
                raise DecisionError("this learner chooses between actions: give action=... in place of label=...")
            given = self._actions.offer(x, actions, available, excluded, advice)
            code = self._actions.code(action, given, "action")
            revealed, value = self._actions.logged_feedback(code, given, truth, correct, reward)
        else:
            if actions is not None or action is not None or excluded is not None:
                raise InputError("actions=... is for a learner with actions=True; this one chooses between labels")
            given, advice_row = self._arguments.example(x), self._arguments.advice_row(advice)
            code, allowed = self._classes.code(label), self._arguments.available(available)
            if len(allowed) and not allowed[code]:
                raise InputError(f"label {label!r} was played, but it is not one of the available labels")
            revealed, value = self._arguments.feedback(code, allowed, truth, correct, reward)
        probability = number("propensity", propensity)
        if not MIN_PROPENSITY <= probability <= 1.0:
            raise InputError(f"propensity={propensity!r} must lie between {MIN_PROPENSITY:g} and 1")
        engine = self._engine
        with self._lock.writing:
            row = self._begin(given)
            self._conditions.off_policy = True
            engine.score_logged(row, code, probability, engine.rng.random(), advice_row, allowed)
            engine.commit(code)
            engine.learn(row, code, revealed, value, probability, np.zeros(1, dtype=np.bool_))

    def _begin(self, given: Any) -> Any:
        """Encode an example given by name, and make the weights if there are none; the row or rows in their layout."""
        example: Example | Offer = given
        if isinstance(self._encoder, ActionEncoder):
            self._retire_ids(self._encoder)
            example = self._encoder.encode_offer(given, learn=True)
            self._grow_features(example.width)
        elif self._encoder is not None:
            example = self._encoder.encode_row(given, learn=True)
            self._grow_features(example.width)
        self._engine.begin(example.width, example.sparse, None)
        self._conditions.longest = max(self._conditions.longest, example.norm)
        return example.in_layout(self._engine.sparse)

    def _retire_ids(self, encoder: ActionEncoder) -> None:
        """Before a round: free the columns of actions that have not been offered for long."""
        encoder.rows = self.decided  # also if encoding the last round was interrupted
        names = encoder.idle_ids()
        if names:  # the weights first: an interruption in between leaves ids without a weight
            self._engine.reset_features(encoder.places_of(names))
            encoder.retire(names)

    def _check_open(self, decision: Decision) -> None:
        if not isinstance(decision, Decision):
            raise DecisionError(f"{decision!r} is not a decision: give what decide(x) returned")
        if decision._owner is not self:
            raise DecisionError("this decision was made by another learner")
        if decision not in self._open:
            grew = self._conditions.grew
            if grew is not None and decision.round <= grew:
                raise DecisionError(
                    f"labels were added after round {decision.round}: its decision cannot be learned from"
                )
            raise DecisionError(f"the decision of round {decision.round} was learned from already, or dropped")

    def _row_of(self, decision: Decision) -> Any:
        """The decision's row, or the rows of its actions, at the current width."""
        if isinstance(decision, ActionDecision):
            actions: Any = decision._x
            if isinstance(self._encoder, ActionEncoder) and self._encoder.freed:
                actions = without_columns(actions, self._encoder.freed_since(decision.round))
            return at_width(actions, self.problem.n_features)
        missing = 0 if isinstance(decision._x, SparseRow) else self.problem.n_features - len(decision._x)
        return np.append(decision._x, np.zeros(missing)) if missing else decision._x

    # --- many rounds ----------------------------------------------------------------------------------------

    def play(
        self,
        X: Any,
        y: Labels | None = None,
        *,
        available: Any = None,
        rewards: Any = None,
        advice: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> Trace:
        """Play many rounds in compiled code: for each example predict a label, then learn from the feedback.

        Calling it again continues. An interruption (Ctrl-C) ends it between two chunks of rounds: `rounds` counts the
        rounds learned from in total, `interrupted` has their trace, and playing the rest gives the same result as an
        uninterrupted run.

        Args:
            X: an array, a SciPy sparse matrix or checked `Examples`; with `features`, a table (pandas, polars, Arrow),
                a list of dicts or an array; or a `Stream`, which holds all of the following too. With `actions=True`
                `ActionExamples`, or a matrix per round; with `features` too, `ActionRecords`, or a dict such as
                {"context": {...}, "actions": {id: {...}}, "excluded": [id]} per round.
            y: the true labels. Under bandit feedback they only determine whether each prediction was correct.
            available: T × K booleans, or T lists of labels: those that may be played, where the algorithm supports it.
            rewards: bandit feedback: rewards from 0 to 1, T for the true labels, or T × K for all labels. In the second
                case several labels or none may be correct, and y is not needed. Rewards between 0 and 1 are for the
                algorithms that support them.
            advice: the predictions of your own model, where the algorithm takes them: T × K probabilities, or T labels.
            progress: called from time to time with the number of rounds played since the last call.

        Returns:
            The trace: the label played in every round, and sums over the rounds.

        Raises:
            InputError: an argument does not fit this learner. Nothing was learned.
            SettingError: the learner has `epsilon`, or needs a setting that is missing.
            InUseError: another thread is using this learner.
        """
        self._interrupted = None
        self._arguments.check_playable()
        if self._actions is not None:
            return self._play_actions(self._actions, X, y, available, rewards, advice, progress)
        given, engine, conditions = self._arguments, self._engine, self._conditions
        examples, encoder = given.examples(X), self._encoder
        T, stream = len(examples), is_stream(X)
        reward_rows = given.rewards(X.rewards if stream and rewards is None else rewards, T)
        truth = given.truth(X, y, T if reward_rows.shape[1] > 1 else None)
        if T != len(truth):
            raise InputError(f"X has {T} rows but y has {len(truth)} labels")
        allowed = given.all_available(X.available if stream and available is None else available, T)
        given.check_truth_available(truth, allowed)
        longest = 1.0  # of every encoded example
        if encoder is None:
            longest = examples.longest
            given.check_norm(longest, "X")
            given.warn_of_outlier(examples, longest, conditions.longest)
        advice_rows = given.advice_rows(advice, T)
        trace, before = Trace.of(self._classes, truth, engine.algorithm.NOTES, reward_rows), None
        try:
            with self._lock.writing:
                if T == 0:
                    return trace
                if encoder is None:
                    engine.begin(examples.width, isinstance(examples.rows, Sparse), longest)
                    most = engine.chunk_size(examples)
                else:
                    engine.begin(encoder.width, True, longest)
                    most = encoder.block_rows(examples)
                # Before the first round, so that an interruption cannot skip it.
                conditions.longest = max(conditions.longest, longest)
                conditions.late = max(conditions.late, engine.decided - engine.learned)
                conditions.left_out |= not allowed.all()
                conditions.fractions |= reward_rows.shape[1] > 1 or bool((reward_rows < 1.0).any())
                before = engine.learned
                for part in chunks(T, most, progress):
                    if encoder is None:
                        engine.play(examples[part], advice_rows, allowed, trace, part)
                    else:
                        self._play_encoded(encoder, examples, advice_rows, allowed, trace, part)
        except BaseException:
            if before is not None:
                self._interrupted = trace.first(engine.learned - before)
            raise
        return trace

    def _play_actions(
        self,
        given: ActionArguments,
        X: Any,
        y: Any,
        available: Any,
        rewards: Any,
        advice: Any,
        progress: Callable[[int], None] | None,
    ) -> ActionTrace:
        """`play`, where every round brings its own actions."""
        engine, conditions, before = given.engine, self._conditions, None
        rounds, trace, left_out = given.run(X, y, available, rewards, advice)
        encoder = self._encoder if isinstance(self._encoder, ActionEncoder) else None
        longest = rounds.longest if encoder is None else 1.0
        try:
            with self._lock.writing:
                if encoder is None:
                    engine.begin(rounds.width, rounds.sparse, longest)
                else:
                    engine.begin(encoder.width, True, longest)
                # Before the first round, so that an interruption cannot skip it.
                conditions.longest = max(conditions.longest, longest)
                conditions.late = max(conditions.late, engine.decided - engine.learned)
                conditions.left_out |= left_out and encoder is None
                conditions.fractions |= bool(len(trace.rewards))
                before = engine.learned
                if encoder is None:
                    for part in chunks(len(rounds), engine.rounds_per_chunk(rounds), progress):
                        engine.play_actions(rounds[part], trace, part)
                else:
                    for part in chunks(len(rounds), MOST_ROUNDS, progress):
                        self._play_named(encoder, rounds, trace, part)
        except BaseException:
            if before is not None:
                self._interrupted = trace.first(engine.learned - before)
            raise
        return trace

    def _play_encoded(
        self, encoder: Encoder, given: Any, advice_rows: Matrix, allowed: NDArray[np.bool_], trace: Trace, part: slice
    ) -> None:
        """Encode one chunk, grow to its width, and play it. If it is not played, the encoder forgets it."""
        mark, before = encoder.mark(), self._engine.learned
        try:
            examples = encoder.encode(given, part.start, part.stop, learn=True)
            self._grow_features(examples.width)
            self._engine.play(examples, advice_rows, allowed, trace, part)
        except BaseException:
            if self._engine.learned == before:
                encoder.back_to(mark)
            raise

    def _play_named(self, encoder: ActionEncoder, rounds: ActionRecords, trace: ActionTrace, chunk: slice) -> None:
        """Encode one chunk of rounds, grow to its width, and play it, as `_play_encoded`; in parts, to retire ids."""
        start = chunk.start
        while start < chunk.stop:
            self._retire_ids(encoder)
            part = slice(start, min(chunk.stop, start + encoder.rounds_to_retirement()))
            mark, before = encoder.mark(), self._engine.learned
            try:
                examples = encoder.encode_rounds(rounds[part], learn=True)
                self._grow_features(examples.width)
                cast(ActionEngine, self._engine).play_actions(examples, trace, part)
            except BaseException:
                if self._engine.learned == before:
                    encoder.back_to(mark)
                raise
            start = part.stop

    def predict(self, X: Any, *, available: Any = None, advice: Any = None) -> NDArray[Any]:
        """Predict the label of the largest score for each example. Changes nothing.

        Several threads may call predict, scores and distribution at the same time. While one thread learns, they raise
        `InUseError` in the others.

        Args:
            X: examples, as `play` takes them, or one checked `Example`.
            available: the labels that may be played, as `play` takes them.
            advice: the predictions of your own model, as `play` takes them.

        Returns:
            A label for each example.

        Raises:
            InputError: an argument does not fit this learner.
            InUseError: another thread is learning.
        """
        if self._actions is not None:
            return self._actions.top_of_each_round(X, self.scores(X, available=available, advice=advice))
        return self._classes.decode(self.scores(X, available=available, advice=advice).argmax(axis=1))

    def rank(self, x: Any = None, actions: Any = None, *, available: Any = None, excluded: Any = None) -> list[Any]:
        """Order the actions of one round by their scores, best first. Makes no decision and changes nothing.

        Args:
            x: the features of the round itself, as `decide` takes them. `rank(Phi)` is `rank(actions=Phi)`.
            actions: the actions, as `decide` takes them.
            available: the actions that may be played, as `decide` takes them.
            excluded: the actions that may not be played, as `decide` takes them.

        Returns:
            The rows, or the ids, of the actions that may be played.

        Raises:
            SettingError: the learner chooses between labels.
            InputError: an argument does not fit this learner.
            InUseError: another thread is learning.
        """
        if self._actions is None:
            raise SettingError("rank is for a learner with actions=True; `scores` has the scores of labels")
        preview = self.preview(x, actions, available=available, excluded=excluded)
        return [preview.actions[k] for k in preview.order]

    def preview(
        self, x: Any = None, actions: Any = None, *, available: Any = None, excluded: Any = None, advice: Any = None
    ) -> ActionPreview:
        """Compute in one pass the scores of a round's actions and what `decide` would draw from. Changes nothing.

        Args:
            x: the features of the round itself, as `decide` takes them. `preview(Phi)` is `preview(actions=Phi)`.
            actions: the actions, as `decide` takes them.
            available: the actions that may be played, as `decide` takes them.
            excluded: the actions that may not be played, as `decide` takes them.
            advice: the prediction of your own model, as `decide` takes it.

        Returns:
            The actions that may be played, with their scores and propensities.

        Raises:
            SettingError: the learner chooses between labels.
            InputError: an argument does not fit this learner.
            InUseError: another thread is learning.
        """
        if self._actions is None:
            raise SettingError("preview is for a learner with actions=True; `distribution` is for labels")
        if self._encoder is None and actions is None:
            x, actions = None, x
        given = self._actions.offer(x, actions, available, excluded, advice)
        with self._lock.reading:
            z, p = self._score_offer(given)
        return ActionPreview(given.ids if isinstance(given, ActionRecord) else tuple(given.places.tolist()), z, p)

    def scores(
        self, X: Any = None, actions: Any = None, *, available: Any = None, excluded: Any = None, advice: Any = None
    ) -> Any:
        """Compute the score of every label for each example. Changes nothing.

        Args:
            X: examples, as `predict` takes them; with `actions`, the features of one round.
            actions: actions by name of one round, as `decide` takes them.
            available: the labels that may be played, as `play` takes them.
            excluded: the actions that may not be played, as `decide` takes them.
            advice: the predictions of your own model, as `play` takes them.

        Returns:
            The scores, T × K; -inf where a label is not available. Of actions: one per row; with `actions`, a dict
            id → score.

        Raises:
            InputError: an argument does not fit this learner.
            InUseError: another thread is learning.
        """
        return self._score(X, actions, available, excluded, advice)[0]

    def distribution(
        self, X: Any = None, actions: Any = None, *, available: Any = None, excluded: Any = None, advice: Any = None
    ) -> Any:
        """Compute the distribution that the label of each example would be drawn from. Changes nothing.

        Args:
            X: examples, as `predict` takes them; with `actions`, the features of one round.
            actions: actions by name of one round, as `decide` takes them.
            available: the labels that may be played, as `play` takes them.
            excluded: the actions that may not be played, as `decide` takes them.
            advice: the predictions of your own model, as `play` takes them.

        Returns:
            The propensity of every label, T × K. Of actions: one per row; with `actions`, a dict id → propensity.

        Raises:
            InputError: an argument does not fit this learner.
            InUseError: another thread is learning.
        """
        return self._score(X, actions, available, excluded, advice)[1]

    def _score(self, X: Any, actions: Any, available: Any, excluded: Any, advice: Any) -> tuple[Any, Any]:
        if (actions is not None or excluded is not None) and not isinstance(self._encoder, ActionEncoder):
            raise InputError('a round of actions by name is for a learner with actions=True and features="auto"')
        if self._actions is not None:
            if actions is not None or excluded is not None:
                given = cast(ActionRecord, self._actions.offer(X, actions, available, excluded, advice))
                with self._lock.reading:
                    z, p = self._score_offer(given)
                return dict(zip(given.ids, z.tolist())), dict(zip(given.ids, p.tolist()))
            rounds, flags = self._actions.scored(X, available, advice)
            with self._lock.reading:
                z, p = self._score_rounds(rounds)
            Z, P = np.full(len(flags), -np.inf), np.zeros(len(flags))
            Z[flags], P[flags] = z, p
            return Z, P
        examples, encoder, engine = self._arguments.examples(X), self._encoder, self._engine
        advice_rows = self._arguments.advice_rows(advice, len(examples))
        allowed = self._arguments.all_available(available, len(examples))
        with self._lock.reading:
            if encoder is None:
                return engine.score(examples, advice_rows, allowed)
            T, step = len(examples), encoder.block_rows(examples)
            Z, P = np.empty((T, self.problem.n_classes)), np.empty((T, self.problem.n_classes))
            for start in range(0, T, step):
                part = slice(start, min(start + step, T))
                encoded = encoder.encode(examples, part.start, part.stop, learn=False)
                Z[part], P[part] = engine.score(encoded, advice_rows[part], allowed[part])
            return Z, P

    def _score_offer(self, given: Offer | ActionRecord) -> tuple[Vector, Vector]:
        """Scores and distribution of one round."""
        if isinstance(given, ActionRecord):
            return self._score_rounds(ActionRecords([given]))
        return self._score_rounds(given.as_examples())

    def _score_rounds(self, rounds: Any) -> tuple[Vector, Vector]:
        """Scores and distributions of rounds, one number per action that may be played."""
        engine = cast(ActionEngine, self._engine)
        if not isinstance(rounds, ActionRecords):
            return engine.score_actions(rounds)
        Z, P = [np.zeros(0)], [np.zeros(0)]
        for start in range(0, len(rounds), MOST_ROUNDS):
            encoder = cast(ActionEncoder, self._encoder)
            z, p = engine.score_actions(encoder.encode_rounds(rounds[start : start + MOST_ROUNDS], learn=False))
            Z.append(z)
            P.append(p)
        return np.concatenate(Z), np.concatenate(P)

    # --- growing, seeds, compiling ------------------------------------------------------------------------------

    def grow(self, *, classes: Iterable[Any] | None = None, n_features: int | None = None) -> None:
        """Add labels or features that were not known before.

        New weights are zero. More features change nothing else. More labels bring the settings recommended for their
        number, end `bound` and `certificate` if a round was played, and drop the pending decisions.

        Args:
            classes: all labels, old and new, in the order wanted from now on.
            n_features: the new width; new columns come last.

        Raises:
            InputError: a label or feature would be removed.
            SettingError: the algorithm mixes many rules, or feedback is a graph: they cannot grow.
        """
        if (classes is None) == (n_features is None):
            raise SettingError("give either classes=[...], all labels, old and new, or n_features=..., the new width")
        if classes is not None and self._actions is not None:
            raise SettingError("this learner chooses between actions and has no labels to add")
        if n_features is not None and self._encoder is not None:
            raise SettingError("a learner with features=... adds columns by itself: leave out n_features")
        with self._lock.writing:
            if classes is not None:
                self._grow_labels(Classes(classes))
            else:
                self._grow_features(whole("n_features", n_features))

    def _grow_labels(self, wanted: Classes) -> None:
        places = growth.new_places_of_labels(
            self.algorithm, self._engine.algorithm, self.problem, self._classes, wanted
        )
        if places is None:
            return
        self._engine.enlarge(self.problem._replace(n_classes=len(wanted)), places, len(wanted), labels=True)
        self._classes = self._arguments.classes = wanted
        if self.decided:
            self._conditions.grew = self.decided
            self._open = Pending()

    def _grow_features(self, width: int) -> None:
        d = self.problem.n_features
        if width < d:
            raise InputError(f"a learner only gains features: it has {d}, and n_features={width} is fewer")
        if width > d:
            self._engine.enlarge(self.problem._replace(n_features=width), np.arange(d), width, labels=False)

    def change_epsilon(self, epsilon: float) -> None:
        """Change the share of decisions drawn uniformly, from the next decision on.

        Args:
            epsilon: the new share. Nothing else changes. If rounds were played with uniform draws, `bound` and
                `certificate` remain refused.

        Raises:
            SettingError: an impossible share, or the algorithm does not support it.
        """
        engine = self._engine
        with self._lock.writing:
            if has_own_epsilon(engine.algorithm):
                engine.change_own_epsilon(number("epsilon", epsilon))
                return
            share = checked_epsilon(self.algorithm, engine.algorithm, epsilon)
            if self.decided:
                self._conditions.epsilon = max(self._conditions.epsilon, engine.epsilon)
            engine.epsilon = share

    def reseed(self, seed: int | None = None) -> None:
        """Use another seed from now on. Otherwise all learners loaded from one file draw the same numbers.

        Args:
            seed: the new seed; None takes one from the operating system.
        """
        with self._lock.writing:
            self._engine.rng = generator(seed)

    def warm_up(self, X: Any = None, *, sparse: bool = False, one_by_one: bool = True, play: bool = True) -> None:
        """Compile now what later calls need, so that none of them waits. Changes nothing.

        An untrained learner of the same kind plays one round. Compiled code is cached on disk for other processes too.

        Args:
            X: examples of the type to compile for, as `play` takes them; the first one is used. Left out: zeros.
            sparse: if X is left out: compile for sparse examples.
            one_by_one: compile `decide`, `learn`, `learn_logged`, `predict`, `scores` and `distribution`.
            play: compile `play`, unless the learner has `epsilon`.

        Raises:
            SettingError: deciding one by one needs a setting that is missing, such as `norm`.
        """
        twin = self._untrained()
        if self._actions is not None:
            twin._warm_up_actions(X, sparse if self._engine.state is None else self._engine.sparse, one_by_one, play)
            return
        if X is None:
            width = self.problem.n_features or 1
            X = [{}] if self._encoder is not None else sp.csr_array((1, width)) if sparse else np.zeros((1, width))
        examples = twin._arguments.examples(X)[:1]
        engine, is_sparse = self._engine, isinstance(examples, Examples) and isinstance(examples.rows, Sparse)
        if engine.state is not None:
            is_sparse = engine.sparse
        if one_by_one:
            twin._one_round(Record() if self._encoder is not None else examples[0], is_sparse)
            twin.scores(examples)
        if play and not engine.epsilon:
            if self._encoder is None:
                twin._engine.begin(examples.width, is_sparse, examples.longest or 1.0)
            twin.play(examples, self.classes[:1])

    def _warm_up_actions(self, X: Any, sparse: bool, one_by_one: bool, play: bool) -> None:
        """`warm_up` of an untrained learner, with two actions."""
        given = cast(ActionArguments, self._actions)
        full = self.problem.feedback is Feedback.FULL
        rounds: Any
        if self._encoder is not None:
            rounds = ActionRecords.of([{"actions": {"0": {}, "1": {}}}] if X is None else X)[:1]
            right: Any = rounds[0].ids[0]
        else:
            if X is None:
                zeros = np.zeros((2, self.problem.n_features or 1))
                X = sp.csr_array(zeros) if sparse else zeros
            rounds, right = given.rounds(X)[:1], 0
            as_sparse = rounds.sparse if self._engine.state is None else sparse
            given.engine.begin(rounds.width, as_sparse, None if one_by_one else rounds.longest or 1.0)
        if one_by_one:
            self.learn(self.decide(actions=rounds[0]), **({"action": right} if full else {"correct": True}))
            if not self._engine.algorithm.CARD.own_coin:
                feedback: dict[str, Any] = {"truth": right} if full else {"correct": True}
                self.learn_logged(None, None, 1.0, actions=rounds[0], action=right, **feedback)
            self.scores(rounds)
        if play and not self._engine.epsilon:
            self.play(rounds, [right])

    def _untrained(self) -> "Learner":
        """A learner made with the same arguments, that has learned nothing."""
        engine, problem, encoder = self._engine, self.problem, self._encoder
        shape: dict[str, Any] = {"n_features": problem.n_features or None, "norm": problem.norm}
        return Learner(
            self.algorithm,
            classes=None if problem.actions else self.classes,
            actions=problem.actions,
            feedback=problem.feedback.word if problem.graph is None else problem.graph,
            loss=problem.loss.word,
            radius=problem.radius,
            horizon=problem.horizon,
            seed=0,
            observe=engine.observes,
            precision="single" if engine.single else "double",
            **(shape if encoder is None else {"features": encoder.features}),
            **{"epsilon": engine.epsilon or None, **engine.overrides},
        )

    def _one_round(self, x: Any, sparse: bool) -> None:
        """Decide and learn once, and learn from one logged decision."""
        if self._encoder is None:
            self._engine.begin(x.width, sparse, None)
        decision, graph, label = self.decide(x), self.problem.graph, self.classes[0]
        if self.problem.feedback is Feedback.BANDIT:
            self.learn(decision, correct=True)
            feedback: dict[str, Any] = {"correct": True}
        else:
            self.learn(decision, label=label if graph is None or graph[decision._code, 0] else None)
            feedback = {"truth": label if graph is None or graph[0, 0] else None}
        if not self._engine.algorithm.CARD.own_coin:
            self.learn_logged(x, label, 1.0, **feedback)

    # --- model file -----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file: weights, settings, random generator, pending decisions.

        An interruption leaves the old file or the new one, never half a file.

        Args:
            path: the file. Labels must be strings, numbers, booleans or tuples of them.

        Raises:
            ModelFileError: the file cannot be written, or a label cannot be stored.
            InUseError: another thread is learning.
        """
        model_file.write(path, self.__getstate__())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a learner from a file. It continues as the saved one would have; `pending` has its decisions.

        Args:
            path: a file that `save` wrote.

        Returns:
            The learner.

        Raises:
            ModelFileError: the file cannot be read, is damaged, or is of another version.
        """
        tree = model_file.read(path)
        learner = cls.__new__(cls)
        try:
            learner.__setstate__(tree)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as problem:
            # The checksum is right, so another version or another program wrote it: anything may be wrong.
            raise ModelFileError(path, f"it does not hold a learner of this version: {problem}") from None
        return learner

    def __getstate__(self) -> dict[str, Any]:
        with self._lock.reading:
            problem, waiting = self.problem, list(self.pending.values())
            return {
                "algorithm": self.algorithm,
                "classes": list(self.classes),
                "actions": problem.actions,
                "n_features": problem.n_features,
                "feedback": problem.feedback.word if problem.graph is None else problem.graph,
                "loss": problem.loss.word,
                "norm_promised": self._arguments.promised,
                "radius": problem.radius,
                "horizon": problem.horizon,
                "observe": self._engine.observes,
                "engine": self._engine.as_tree(),
                **self._conditions.as_tree(),
                "reading": self.reading,
                "features": None if self._encoder is None else in_file.as_tree(self._encoder),
                "pending": self._pending_tree(waiting),
            }

    def _pending_tree(self, waiting: list[Decision]) -> dict[str, Any]:
        rows = [self._row_of(decision) for decision in waiting]
        if self._actions is not None:
            return action_decision.as_tree(cast(list[ActionDecision], waiting), rows, self._engine.late_fields)
        return as_tree(waiting, rows, self.problem.n_classes, self._engine.late_fields)

    def __setstate__(self, tree: dict[str, Any]) -> None:
        engine = tree["engine"]
        if type(tree["classes"]) is not list:
            raise ValueError("classes are missing")
        actions = tree.get("actions", False)  # files of learners for labels may leave it out
        self.__init__(  # type: ignore[misc]  # the same checks as for any caller
            tree["algorithm"],
            classes=None if actions is True else tree["classes"],
            actions=actions,
            n_features=tree["n_features"] or None,
            feedback=tree["feedback"],
            loss=tree["loss"],
            norm=engine["norm"] if tree["norm_promised"] else None,
            radius=tree["radius"],
            horizon=tree["horizon"],
            observe=tree["observe"],
            precision="single" if engine["single"] else "double",
            **{"epsilon": engine["epsilon"] or None, **engine["overrides"]},
        )
        if tree["features"] is not None:
            if self.problem.n_features == 0 and engine["state"] is not None:
                raise ValueError("a state without features")
            encoder = in_file.from_tree(tree["features"], self.problem.n_features, actions=actions)
            self._encoder = self._arguments.encoder = encoder
            self._engine.problem = self.problem._replace(encoded=True)
        self._engine.restore(engine)
        self._conditions = Conditions.from_tree(tree)
        self.reading = plain_dict("reading", tree["reading"])
        read: Callable[..., Iterable[Decision]] = from_tree if self._actions is None else action_decision.from_tree
        for decision in read(tree["pending"], self, self._engine):
            self._open.hold(decision)

    # --- theory ---------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> Certificate | None:
        """The bound that the run has earned so far; None where the algorithm has none.

        Late feedback ends it, unless the algorithm was made for it (`delay`) or, with full information, counts what it
        costs; then the certificate is about the rounds learned from so far. With `available` it is about rounds whose
        true label was available; U's loss is counted over the available labels, or over all, which is at least as much.
        """
        engine = self._engine
        if engine.state is None or not isinstance(engine.algorithm, HasCertificate):
            return None
        self._check_theorem_covers_run()
        return engine.algorithm.certificate(engine.settings, engine.state)

    def _check_theorem_covers_run(self) -> None:
        engine = self._engine
        self._conditions.check_own_draws(engine.algorithm, engine.settings, engine.epsilon)
        check_precision(engine.single)

    @property
    def observed(self) -> Observed | None:
        """What the feedback so far proves about every linear rule; None without bandit feedback or `observe`.

        It holds for any algorithm, any data, and feedback in any order. It is about the decisions that were learned
        from, including logged ones. Refused once labels were added, or a reward lay between 0 and 1.
        """
        engine = self._engine
        with self._lock.reading:
            grew = self._conditions.grew
            if grew is not None and self.problem.feedback is Feedback.BANDIT:
                raise NoBoundError(f"labels were added after round {grew}: what was observed is about the old ones")
            if isinstance(engine.evidence, Nothing):
                return None
            if engine.evidence.count[0].partial:
                raise NoBoundError("a reward was neither right nor wrong (1 or 0): what is observed needs one of these")
            return cast(Observed, evidence_module().proved(engine.evidence, engine.decided - engine.learned))

    @property
    def advice(self) -> Advice | None:
        """The weights of the experts so far, and what they cost; None where the algorithm has no experts."""
        engine = self._engine
        if engine.state is None or not isinstance(engine.algorithm, HasAdvice):
            return None
        return engine.algorithm.advice(engine.settings, engine.state)

    def bound(self, X: Any, y: Labels, trace: Trace | None = None, *, U: Any = None) -> Bound:
        """Compute the tightest bound that the theorem gives for the stream that was played.

        Args:
            X: all examples, or rounds of actions, that this learner has played, in their order.
            y: their true labels, or the rows of the right actions.
            trace: what `play` returned. With the hinge loss it makes the bound tighter: rounds in which the true label
                won by a margin do not count.
            U: a rule to compare with, K × d, or for actions d numbers. Left out, the best one in hindsight is searched.

        Returns:
            The bound and the comparator that it is about.

        Raises:
            NoBoundError: no theorem covers this run; the message says why.
            InputError: the arguments are not those of this run.
        """
        rounds: Any = None
        if self._actions is None:
            truth = self._classes.codes(y)
        else:
            rounds = self._actions.rounds(X)
            truth = self._actions.right_actions(y, rounds)
        if self.settings is None or not len(truth):
            raise NoBoundError("no round was played yet")
        if len(truth) != self.rounds:
            raise NoBoundError(f"the learner has played {self.rounds} rounds, but this stream has {len(truth)}")
        if self.decided != self.rounds:
            raise NoBoundError(f"{self.decided - self.rounds} decisions have had no feedback")
        engine, problem = self._engine, self.problem
        self._check_theorem_covers_run()
        self._conditions.check_loss_known(engine.algorithm, problem)
        examples: Any = rounds
        if isinstance(rounds, ActionRecords):
            examples = rounds = self._rounds_again(rounds)
        elif rounds is None:
            examples = checked(X) if self._encoder is None else self._encoded_again(self._encoder, X)
        if examples.width != problem.n_features:
            raise InputError(f"X has {examples.width} columns; the learner knows {problem.n_features} features")
        if problem.norm is None:
            problem = problem._replace(norm=self._conditions.longest)
        if isinstance(trace, ActionTrace):
            engine.check_own_trace(trace, trace.truth)
            if not np.array_equal(trace.rows_of(trace.truth) if self._encoder is None else trace.truth, truth):
                raise InputError("the right actions of this trace are not those of y")
        elif trace is not None:
            engine.check_own_trace(trace, truth)
        given = examples.as_matrix() if rounds is None else rounds
        run = engine.algorithm, problem, self.settings, self.certificate, given, truth, trace
        return bounds.tightest(*run) if U is None else bounds.for_rule(*run, U)

    def _encoded_again(self, encoder: Encoder, X: Any) -> Examples:
        """Encode all examples that were played from the first one, as they were encoded when they were played."""
        fresh = Encoder(encoder.features)
        given = fresh.read(X)
        examples = fresh.encode(given, 0, len(given), learn=True)
        if not state_tree.same(in_file.as_tree(fresh), in_file.as_tree(encoder)):
            raise NoBoundError(
                "X does not hold the examples that were played, all of them, from the first, in their order"
            )
        return Examples(examples.rows, self.problem.n_features, examples.norms)

    def _rounds_again(self, rounds: ActionRecords) -> ActionExamples:
        """`_encoded_again`, of rounds of actions by name."""
        encoder = cast(ActionEncoder, self._encoder)
        if encoder.freed:
            raise NoBoundError("actions that were not offered any more have lost their columns: no bound is known")
        fresh = ActionEncoder(encoder.features)
        examples = fresh.encode_rounds(rounds, learn=True)
        if not state_tree.same(in_file.as_tree(fresh), in_file.as_tree(encoder)):
            raise NoBoundError(
                "X does not hold the rounds that were played, all of them, from the first, in their order"
            )
        return replace(examples, width=self.problem.n_features)

    def check(self, X: Any) -> Any:
        """Check examples once, to use them several times, whole or by index. Changes nothing.

        Args:
            X: examples, as `play` takes them.

        Returns:
            The checked examples, for `play`, `predict`, `scores` and `distribution`; `examples[t]` is one of them, for
            `decide` and `learn_logged`. Without `features` they are `gaptron.data.examples.Examples`.

        Raises:
            InputError: this learner cannot play X: it is too wide, its norms are too large, or it is not numbers.
        """
        if self._actions is not None:
            rounds = self._actions.rounds(X)
            if self._encoder is None:
                self._actions.check_norm(rounds.longest, "actions")
            return rounds
        examples = self._arguments.examples(X)
        if self._encoder is None:
            self._arguments.check_norm(examples.longest, "X")
        return examples

    def check_feedback(
        self,
        label: Any,
        *,
        correct: bool | None = None,
        reward: float | None = None,
        truth: Any = None,
        available: Any = None,
    ) -> None:
        """Raise the error that `learn_logged` would raise for this feedback. Changes nothing.

        With `actions=True`, label and truth are actions, and `available` is needed: all actions that could be played.

        Args:
            label: the label that was played.
            correct: bandit feedback: whether the label was correct.
            reward: bandit feedback: the reward of the label, from 0 to 1.
            truth: full information: the true label.
            available: the labels that could be played; None: all labels.
        """
        if self._actions is not None:
            self._actions.check_feedback(label, available, truth, correct, reward)
            return
        allowed = self._arguments.available(available)
        self._arguments.feedback(self._classes.code(label), allowed, truth, correct, reward)


def _check_actions(algorithm: str, n_classes: Any, classes: Any, feedback: Any) -> None:
    """Refuse settings that do not go with `actions=True`."""
    if n_classes is not None or classes is not None:
        raise SettingError("with actions=True every round brings its own actions: leave out n_classes and classes")
    if not load(algorithm).CARD.actions:
        raise SettingError(f"{algorithm} does not support actions=True; algorithms that do: {able('actions')}")
    if not isinstance(feedback, str) or feedback not in ("full", "bandit"):
        raise SettingError(f"feedback={feedback!r}: actions=True is for feedback 'full' or 'bandit'")


def _new_encoder(features: Any, algorithm: str, n_features: Any, norm: Any, actions: bool) -> Encoder:
    if n_features is not None or norm is not None:
        raise SettingError("features=... fixes width and norm of examples: leave out n_features=... and norm=...")
    if not load(algorithm).CARD.growth.possible:
        raise SettingError(f"{algorithm} cannot grow, and examples by name bring new words: use another algorithm")
    declared = as_features(features, actions=actions)
    return ActionEncoder(declared) if actions else Encoder(declared)
