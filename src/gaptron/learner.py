"""Learner: an algorithm, its settings, its state and its randomness, as one object a user holds."""

import functools
import importlib
import inspect
import math
import os
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gaptron import bounds, growth, model_file, snapshot
from gaptron.algorithm import HasAdvice, HasCertificate, HasCheck, HasMemory
from gaptron.algorithms import load
from gaptron.bounds import Bound
from gaptron.decision import SILENCE, Decision, Pending, as_tree, copied, from_tree
from gaptron.errors import DecisionError, InputError, ModelFileError, NoBoundError, SettingError
from gaptron.feedback import as_graph
from gaptron.given_values import choice, count, number, positive, whole
from gaptron.in_use import InUse
from gaptron.seeds import generator
from gaptron.trace import Trace
from gaptron.types import (
    UNKNOWN,
    Advice,
    Certificate,
    Feedback,
    Integers,
    Matrix,
    Problem,
    Round,
    Row,
    Rows,
    Sparse,
    SparseRow,
    Vector,
    named,
)
from gaptron.validation import Classes, Labels, as_advice, as_row, as_rows, block, n_rows, row_like

DEFAULT = "advised-gaptron"  # the algorithm, where none is named
FIRST_BLOCK, BLOCK = 1_024, 65_536  # rounds between two looks at the outside world (progress, Ctrl-C): first, most
ROUNDING = 1e-6  # rows scaled to unit norm in float32 may be this much longer than 1
DENSE_BLOCK = 1 << 24  # numbers at most in a block of sparse rows that must be written out


class Learner:
    """An online multiclass learner.

    Args:
        algorithm: a name from `gaptron.algorithms.NAMES`.
        n_classes: number of labels, which are then 0..K-1; or give `classes`.
        classes: the labels themselves, of any kind.
        n_features: width of the rows; settled by the first ones seen if left out.
        feedback: "full" (the right label is told), "bandit" (only whether ours was right), or a graph: a boolean K × K
            matrix, or "apple-tasting" or "label-efficient" (playing the row's label shows the column's).
        loss: "logistic", "hinge" or "smooth-hinge", where the algorithm has a choice.
        norm: a promise that ‖x‖ ≤ norm; the first `play` measures it if left out.
        radius: D, the norm of the rules U we compare with, where the algorithm needs it.
        horizon: T, the number of rounds, where the algorithm needs it.
        seed: for the learner's draws; None takes a fresh one from the system.
        settings: the algorithm's own settings, in place of the theorem's.
    """

    def __init__(
        self,
        algorithm: str = DEFAULT,
        *,
        n_classes: int | None = None,
        classes: Iterable[Any] | None = None,
        n_features: int | None = None,
        feedback: Any = "full",
        loss: str | None = None,
        norm: float | None = None,
        radius: float | None = None,
        horizon: int | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        self.algorithm = algorithm
        self._file = load(algorithm)
        if (n_classes is None) == (classes is None):
            raise SettingError("give either n_classes=K or classes=[...]")
        self._classes = Classes(range(whole("n_classes", n_classes)) if classes is None else classes)
        if len(self._classes) < 2:
            raise SettingError(f"there must be at least two classes, not {len(self._classes)}")
        self._check_number_of(self._classes)
        graph = as_graph(feedback, len(self._classes))
        self._problem = Problem(
            len(self._classes),
            0 if n_features is None else whole("n_features", n_features),
            choice("feedback", feedback if graph is None else "graph", self._file.CARD.feedback, algorithm),
            choice("loss", loss, self._file.CARD.losses, algorithm),
            positive("norm", norm),
            positive("radius", radius),
            None if horizon is None else whole("horizon", horizon),
            graph,
        )
        known = dict(list(inspect.signature(self._file.recommend).parameters.items())[1:])
        for name, value in settings.items():
            if name not in known:
                raise SettingError(f"{algorithm} has no setting {name!r}; it has: {', '.join(known) or 'none'}")
            if not isinstance(known[name].default, (str, bool)) and value is not None:
                if isinstance(value, str):
                    raise SettingError(f"{name}={value!r} must be a number")
                number(name, value)
        self._given = settings
        self._shown: Any = int(self._problem.feedback) if graph is None else graph
        self._settings: Any = None
        self._state: Any = None
        self._sparse = False
        self._round: Any = None  # room for one round, and the algorithm's scratch for it
        self._work: Any = None
        self._fresh = 0  # the round that `_round` and `_work` still describe as it was decided; 0: none
        self._rng = generator(seed)
        self._decide_once: Any = None  # the loop's verbs, compiled for this learner's types
        self._learn_once: Any = None
        self._open = Pending()
        self._count = named(decided=0, learned=0, trail=0)  # written by the compiled loop
        self._grew: int | None = None  # the round after which labels were added
        self._taught = False  # by decisions that were not its own
        self._late = 0  # most answers missing when a decision was made, or decisions made without an answer
        self._longest = 0.0
        self._promised = norm is not None
        self._use = InUse()
        self._interrupted: Trace | None = None
        try:
            self._settings = self._file.recommend(self._problem, **settings)
        except SettingError:
            if norm is not None:
                raise
            self._file.recommend(self._problem._replace(norm=1.0), **settings)  # raises unless only the norm is missing

    # --- what it is ---------------------------------------------------------------------------------------

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in the order of the weights' rows."""
        return self._classes.labels

    @property
    def problem(self) -> Problem:
        """What is known about the problem."""
        return self._problem

    @property
    def settings(self) -> Any:
        """The settings in use; None while they wait for the norm of the first rows."""
        return self._settings

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return int(self._count[0].learned)

    @property
    def decided(self) -> int:
        """How many decisions were made."""
        return int(self._count[0].decided)

    @property
    def pending(self) -> dict[int, Decision]:
        """The decisions that may still be answered, by round: those somebody holds, and those of the file."""
        return self._open.by_round()

    @property
    def interrupted(self) -> Trace | None:
        """If the last `play` ended early (Ctrl-C, or an error of `progress`): the trace of the rounds it did play."""
        return self._interrupted

    @property
    def weights(self) -> Matrix:
        """The weights, K × d. Those of `advised-gaptron` are its certified part's; the advisers have their own."""
        if self._state is None:
            return np.zeros((self._problem.n_classes, self._problem.n_features))
        with self._use.reading:
            return np.array(self._file.weights(self._state, self._sparse))

    def __repr__(self) -> str:
        return (
            f"Learner({self.algorithm!r}, n_classes={len(self._classes)}, "
            f"n_features={self._problem.n_features or None}, feedback={self._problem.feedback.word!r}, "
            f"loss={self._problem.loss.word!r}, rounds={self.rounds})"
        )

    def reseed(self, seed: int | None = None) -> None:
        """Draw from another seed from now on: learners loaded from one file would else all draw the same numbers."""
        with self._use.writing:
            self._rng = generator(seed)

    # --- one round at a time --------------------------------------------------------------------------------

    def decide(self, x: Any, *, advice: Any = None) -> Decision:
        """Draw a label for the row x (a 1-D array or a 1 × d sparse matrix).

        `advice`, where the algorithm takes it, is what your own model says of x: a probability for each label, or a
        label. It may know anything but the draw to come.
        """
        row, width = as_row(x)
        norm = math.sqrt(_sqnorm(row))
        if not math.isfinite(norm):
            raise InputError("x holds NaN or infinity, or numbers too large to square")
        self._check(width, norm, "x")
        opinion = self._one_opinion(advice)
        with self._use.writing:
            self._begin(width, isinstance(row, SparseRow), None)
            row = row_like(row, self._sparse, width)
            rd, work, count = self._round, self._work, self._count
            self._fresh = 0
            self._hear(opinion)
            if self._decide_once is None:
                self._compile_once(row)
            u = self._rng.random()
            code = int(self._decide_once(self._settings, self._state, row, rd, work, u))
            self._longest = max(self._longest, norm)
            self._late = max(self._late, self.decided - self.rounds)
            self._commit_once(self._settings, self._state, rd, work, count)
            p = rd.p.copy()
            decision = Decision(
                self._classes.labels[code],
                p.item(code),
                self.decided,
                code,
                row,
                p,
                u,
                opinion,
                np.zeros(1, dtype=np.bool_),
                self,
                copied(rd, work) if self._remembers else None,
            )
            self._fresh = decision.round
            self._open.add(decision)
        return decision

    def learn(self, decision: Decision, *, label: Any = None, correct: bool | None = None) -> None:
        """Answer a decision: with the right `label` (full information), or whether it was `correct` (bandit).

        With a graph: with the `label` if the graph showed it, with nothing if it did not.

        Answers may come late, in any order, or never. If anything was decided or learned in between, the row is scored
        again with the weights of today; only the label and its probability are those of the draw. Most theorems assume
        no delay, and then a late answer ends `bound`.
        """
        with self._use.writing:
            self._check_open(decision)
            truth = self._answer(decision._code, decision.label, label, correct)
            self._late = max(self._late, self.decided - decision.round)
            x, (rd, work) = self._row_of(decision), (self._round, self._work)
            if decision._kept is not None:
                rd, work = decision._kept
            elif decision.round != self._fresh:
                self._look_again(x, decision._code, decision._p, decision._u, decision._advice)
            self._fresh = 0
            if self._learn_once is None:
                self._compile_once(x)
            self._learn_once(
                self._settings, self._state, x, rd, work, decision._code, truth, self._count, decision._answered
            )
            self._open.close(decision)

    def forget(self, decision: Decision) -> None:
        """Give up a decision whose answer will never come: it is pending no longer and cannot be answered."""
        with self._use.writing:
            self._check_open(decision)
            self._open.close(decision)

    def learn_logged(
        self,
        x: Any,
        label: Any,
        probability: float,
        *,
        correct: bool | None = None,
        truth: Any = None,
        advice: Any = None,
    ) -> None:
        """Learn from a decision that another made: for the row x it played `label`, drawn with `probability`.

        The answer is `correct` (bandit) or `truth`, the right label, as for `learn`. The row is scored with the
        weights of today; `bound` and `certificate` end, for the theorems are about the learner's own draws.
        """
        if self._file.CARD.own_coin:
            raise SettingError(
                f"{self.algorithm} learns from how it drew its label, which the log of others cannot say"
            )
        row, width = as_row(x)
        norm = math.sqrt(_sqnorm(row))
        if not math.isfinite(norm):
            raise InputError("x holds NaN or infinity, or numbers too large to square")
        self._check(width, norm, "x")
        code, opinion = self._classes.code(label), self._one_opinion(advice)
        chance = number("probability", probability)
        if not 0.0 < chance <= 1.0:
            raise InputError(f"probability={probability!r} must lie in (0, 1]")
        shown = self._answer(code, label, truth, correct)
        with self._use.writing:
            self._begin(width, isinstance(row, SparseRow), None)
            row = row_like(row, self._sparse, width)
            self._longest, self._taught = max(self._longest, norm), True
            self._fresh = 0
            p = np.full(self._problem.n_classes, chance)  # read at the label alone
            if self._learn_once is None:
                self._compile_once(row)
            self._look_again(row, code, p, self._rng.random(), opinion)
            self._commit_once(self._settings, self._state, self._round, self._work, self._count)
            answered = np.zeros(1, dtype=np.bool_)
            self._learn_once(
                self._settings, self._state, row, self._round, self._work, code, shown, self._count, answered
            )

    def _check_open(self, decision: Decision) -> None:
        if not isinstance(decision, Decision):
            raise DecisionError(f"{decision!r} is no decision: give what decide(x) returned")
        if decision._owner is not self:
            raise DecisionError("this decision was made by another learner")
        if decision not in self._open:
            if self._grew is not None and decision.round <= self._grew:
                raise DecisionError(f"labels were added after round {decision.round}: its decision can teach no more")
            raise DecisionError(f"the decision of round {decision.round} has been answered already, or given up")

    def _row_of(self, decision: Decision) -> Row:
        """The decision's row, as wide as rows are now."""
        if isinstance(decision._x, SparseRow) or len(decision._x) == self._problem.n_features:
            return decision._x
        return np.append(decision._x, np.zeros(self._problem.n_features - len(decision._x)))

    def _answer(self, code: int, played: Any, label: Any, correct: bool | None) -> int:
        if self._problem.feedback is Feedback.FULL:
            if label is None or correct is not None:
                raise DecisionError("full information: answer with learn(decision, label=the right label)")
            return self._classes.code(label)
        if self._problem.graph is not None:
            if correct is not None:
                raise DecisionError(
                    "graph feedback: answer with learn(decision, label=...) or, if nothing was shown, learn(decision)"
                )
            if label is None:
                return UNKNOWN
            truth = self._classes.code(label)
            if not self._problem.graph[code, truth]:
                raise DecisionError(f"playing {played!r} does not show {label!r} in this graph")
            return truth
        if label is not None or correct is None:
            raise DecisionError("bandit feedback: answer with learn(decision, correct=True or False)")
        if not isinstance(correct, (bool, np.bool_)):
            raise DecisionError(f"correct={correct!r} must be True or False")
        return code if correct else UNKNOWN

    def _look_again(self, x: Row, code: int, p: Vector, u: float, opinion: Vector) -> None:
        """Fill the round as if the row were seen today; the label's probability is that of the draw.

        Not where the truth is told whatever was played: there the chance of the label weighs nothing, and two
        distributions would be mixed.
        """
        self._hear(opinion)
        if self._decide_once is None:
            self._compile_once(x)
        self._decide_once(self._settings, self._state, x, self._round, self._work, u)
        if self._problem.feedback is not Feedback.FULL:
            self._round.p[code] = p[code]

    def _hear(self, opinion: Vector) -> None:
        if len(self._round.advice):
            self._round.advice[:] = opinion if len(opinion) else 0.0

    def _one_opinion(self, advice: Any) -> Vector:
        """A caller's advice on one row; empty if there is none."""
        if advice is None:
            return SILENCE
        opinions = self._opinions(advice if getattr(advice, "ndim", 1) == 2 else [advice], 1)
        return opinions[0].copy()

    def _compile_once(self, x: Row) -> None:
        """The loop's verbs as compiled for the types of this learner, to be called with no others."""
        loop, count, answered = _loop(), self._count, np.zeros(1, dtype=np.bool_)
        tuples = self._settings, self._state
        rd, work = self._round, self._work
        self._decide_once = _direct(loop.decide_once, *tuples, x, rd, work, 0.5)
        self._commit_once = _direct(loop.commit_once, *tuples, rd, work, count)
        self._learn_once = _direct(loop.learn_once, *tuples, x, rd, work, 0, 0, count, answered)

    @property
    def _remembers(self) -> bool:
        return isinstance(self._file, HasMemory) and self._file.remembers(self._settings)

    # --- many rounds ----------------------------------------------------------------------------------------

    def play(self, X: Any, y: Labels, *, advice: Any = None, progress: Callable[[int], None] | None = None) -> Trace:
        """Predict, then learn, round by round, compiled. Call again to go on.

        Under bandit feedback the labels y only answer whether each guess was right.
        `advice`, where the algorithm takes it, is your own model's: T × K probabilities, or T labels.
        `progress` is called with the number of rounds just played, now and then.

        An interruption (Ctrl-C) ends it between two blocks of rounds: `rounds` says how many were learned from in all,
        `interrupted` has their trace, and playing on from there is as if nothing had happened.
        """
        rows, width = as_rows(X)
        truth = self._classes.codes(y)
        T = n_rows(rows)
        if T != len(truth):
            raise InputError(f"X has {T} rows but y has {len(truth)} labels")
        longest = self._longest_row(rows)
        self._check(width, longest, "X")
        opinions = self._opinions(advice, T)
        if T == 0:
            names = self._file.NOTES
            return Trace(self._classes, truth, truth, truth, np.zeros(0), names, np.zeros((0, len(names))))
        with self._use.writing:
            self._begin(width, isinstance(rows, Sparse), longest)
            self._longest = max(self._longest, longest)  # before the first round: an interruption may not skip it
            self._late = max(self._late, self.decided - self.rounds)
            self._fresh, self._interrupted, before = 0, None, self.rounds
            names = self._file.NOTES
            trace = Trace(
                self._classes,
                np.empty(T, dtype=np.int64),
                np.empty(T, dtype=np.int64),
                truth,
                np.empty(T),
                tuple(names),
                np.empty((T, len(names))),
            )
            try:
                self._play_blocks(rows, width, truth, opinions, trace, progress)
            except BaseException:
                self._interrupted = trace.first(self.rounds - before)
                raise
        return trace

    def _play_blocks(
        self,
        rows: Rows,
        width: int,
        truth: Integers,
        opinions: Matrix,
        trace: Trace,
        progress: Callable[[int], None] | None,
    ) -> None:
        loop, T = _loop(), len(truth)
        start, step, most = 0, FIRST_BLOCK, BLOCK
        if isinstance(rows, Sparse) and not self._sparse:
            most = max(1, min(BLOCK, DENSE_BLOCK // max(1, width)))
        while start < T:
            clock = time.perf_counter()
            part = slice(start, min(start + min(step, most), T))
            out = loop.Played(trace.codes[part], trace.top[part], trace.truth_probability[part], trace.notes[part])
            Xs = block(rows, start, part.stop, self._sparse, width)
            generator, before = self._rng.bit_generator.state, self.rounds
            try:
                u = self._rng.random(part.stop - start)
                loop.play(
                    self._settings,
                    self._state,
                    Xs,
                    truth[part],
                    u,
                    self._shown,
                    opinions[part],
                    self._round,
                    self._work,
                    self._count,
                    out,
                )
            except BaseException:
                if self.rounds == before:  # interrupted before the block: its draws are still to come
                    self._rng.bit_generator.state = generator
                raise
            if progress is not None:
                progress(part.stop - start)
            start = part.stop
            if time.perf_counter() - clock < 0.1:
                step *= 2

    def predict(self, X: Any, *, advice: Any = None) -> NDArray[Any]:
        """The label of the largest score for each row. Changes nothing. `advice` as in `play`.

        Many threads may look (predict, scores, distribution) at once; while one teaches, the others are refused.
        """
        return self._classes.decode(self.scores(X, advice=advice).argmax(axis=1))

    def scores(self, X: Any, *, advice: Any = None) -> Matrix:
        """One score per row and label. Changes nothing. `advice` as in `play`."""
        return self._look(X, advice)[0]

    def distribution(self, X: Any, *, advice: Any = None) -> Matrix:
        """What labels would be drawn from, per row. Changes nothing. `advice` as in `play`."""
        return self._look(X, advice)[1]

    def _look(self, X: Any, advice: Any) -> tuple[Matrix, Matrix]:
        rows, width = as_rows(X)
        T, K = n_rows(rows), self._problem.n_classes
        self._check(width, self._longest_row(rows), "X", promised=False)
        opinions = self._opinions(advice, T)
        Z, P = np.zeros((T, K)), np.full((T, K), 1.0 / K)
        if self._settings is None:
            return Z, P  # before the first round every score is zero and nothing speaks for any label
        with self._use.reading:
            state, problem = self._state, self._problem._replace(n_features=width)
            if state is None:
                state = self._file.init(self._settings, problem, False)
            loop, rd = _loop(), self._new_round()
            work = self._file.scratch(self._settings, problem, self._sparse)
            step = max(1, min(BLOCK, DENSE_BLOCK // max(1, width)))
            for start in range(0, T, step):
                stop = min(start + step, T)
                Xs = block(rows, start, stop, self._sparse, width)
                loop.look(self._settings, state, Xs, opinions[start:stop], rd, work, Z[start:stop], P[start:stop])
        return Z, P

    # --- growing --------------------------------------------------------------------------------------------

    def grow(self, *, classes: Iterable[Any] | None = None, n_features: int | None = None) -> None:
        """Make room for labels, or for features, that were not known.

        `classes` holds all labels, old and new, in the order wanted from now on; `n_features` is the new width, and new
        columns come last. New weights are zero. More features change nothing else. More labels bring the settings
        recommended for their number, end `bound` and `certificate` if a round was played, and end the decisions still
        unanswered. The algorithms that mix many rules, and learners with a graph, cannot grow.
        """
        if (classes is None) == (n_features is None):
            raise SettingError("give either classes=[...], the labels old and new, or n_features=..., the new width")
        with self._use.writing:
            if classes is not None:
                self._grow_labels(Classes(classes))
            else:
                self._grow_features(whole("n_features", n_features))

    def _grow_labels(self, wanted: Classes) -> None:
        gone = [label for label in self.classes if label not in wanted.labels]
        if gone:
            raise InputError(f"a learner only gains labels, but {gone[0]!r} is not among the new ones")
        if len(wanted) == len(self._classes):
            if wanted.labels != self.classes:
                raise InputError("no label is new: grow adds labels and does not put known ones in another order")
            return
        if self._problem.graph is not None:
            raise SettingError("the feedback graph is for the labels it was given with: no more can be added")
        self._check_number_of(wanted)
        places = np.array([wanted.code(label) for label in self.classes])
        self._enlarge(self._problem._replace(n_classes=len(wanted)), places, len(wanted), labels=True)
        self._classes = wanted
        if self.decided:
            self._grew = self.decided
            self._open = Pending()

    def _grow_features(self, width: int) -> None:
        d = self._problem.n_features
        if width < d:
            raise InputError(f"a learner only gains features: it has {d}, and n_features={width} is fewer")
        if width > d:
            self._enlarge(self._problem._replace(n_features=width), np.arange(d), width, labels=False)

    def _enlarge(self, problem: Problem, places: Integers, room: int, *, labels: bool) -> None:
        settled = self._settings is not None
        settings = self._file.recommend(problem if settled else problem._replace(norm=1.0), **self._given)
        if self._state is not None:
            growth.check_can_grow(self.algorithm, self._file, labels=labels)
            _check_memory(problem)
            state = self._file.init(settings, problem, self._sparse)
            growth.grow(self._file, settings, self._state, state, places, room, labels=labels, sparse=self._sparse)
            self._state = state
        self._problem = problem
        self._settings = settings if settled else None
        if self._state is not None:
            self._make_room()

    # --- to keep --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file: weights, settings, generator, pending decisions. The old file or the new one.

        Labels must be texts, numbers, True, False, None or tuples of them.
        """
        model_file.write(path, self.__getstate__())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The learner in a file. It goes on as the one that was saved would have; `pending` has its decisions.

        An answer to one of them is learned from as a late one: the row is scored again.
        """
        tree = model_file.read(path)
        learner = cls.__new__(cls)
        try:
            learner.__setstate__(tree)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as problem:
            # The checksum is right, so it is another version's or somebody's own work: no telling how it is wrong.
            raise ModelFileError(path, f"it holds no learner of this version: {problem}") from None
        return learner

    def __getstate__(self) -> dict[str, Any]:
        with self._use.reading:
            problem, waiting = self._problem, list(self.pending.values())
            return {
                "algorithm": self.algorithm,
                "classes": list(self._classes.labels),
                "n_features": problem.n_features,
                "feedback": problem.feedback.word if problem.graph is None else problem.graph,
                "loss": problem.loss.word,
                "norm": problem.norm,
                "norm_promised": self._promised,
                "radius": problem.radius,
                "horizon": problem.horizon,
                "given": self._given,
                "settings": snapshot.spread(self._settings),
                "sparse": self._sparse,
                "state": snapshot.spread(self._state),
                "generator": self._rng.bit_generator.state,
                "count": snapshot.spread(self._count),
                "late": self._late,
                "longest": self._longest,
                "grew": self._grew,
                "taught": self._taught,
                "pending": as_tree(waiting, [self._row_of(d) for d in waiting], problem.n_classes),
            }

    def __setstate__(self, tree: dict[str, Any]) -> None:
        if type(tree["classes"]) is not list or (tree["settings"] is None and tree["state"] is not None):
            raise ValueError("classes or settings are missing")
        self.__init__(  # type: ignore[misc]  # through the same checks as everybody
            tree["algorithm"],
            classes=tree["classes"],
            n_features=tree["n_features"] or None,
            feedback=tree["feedback"],
            loss=tree["loss"],
            norm=tree["norm"] if tree["norm_promised"] else None,
            radius=tree["radius"],
            horizon=tree["horizon"],
            **tree["given"],
        )
        self._problem = self._problem._replace(norm=positive("norm", tree["norm"]))
        K, d, sparse = self._problem.n_classes, self._problem.n_features, bool(tree["sparse"])
        self._sparse = sparse
        if tree["settings"] is not None:
            recommended = self._file.recommend(self._problem, **self._given)
            self._settings = snapshot.same_settings(recommended, tree["settings"])
        if tree["state"] is not None:
            snapshot.check_room(K, d, tree["state"])
            _check_memory(self._problem)
            self._state = snapshot.fill(self._file.init(self._settings, self._problem, sparse), tree["state"], "state")
            if isinstance(self._file, HasCheck):
                self._file.check_state(self._settings, self._problem, self._state)
            self._make_room()
        self._rng.bit_generator.state = tree["generator"]
        self._count = snapshot.fill(self._count, tree["count"], "count")
        self._late = count("late", tree["late"])
        self._longest = number("longest", tree["longest"])
        self._grew = None if tree["grew"] is None else count("grew", tree["grew"])
        self._taught = bool(tree["taught"])
        if self.rounds > self.decided:
            raise ValueError("more rounds were learned from than decided")
        kept = copied(self._round, self._work) if self._remembers else None
        for waiting in from_tree(tree["pending"], self, self._sparse, kept):
            self._open.hold(waiting)

    # --- theory ---------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> Certificate | None:
        """The bound the run carries with it so far; None where the algorithm has none. Refused after late answers."""
        if self._state is None or not isinstance(self._file, HasCertificate):
            return None
        self._check_covered()
        return self._file.certificate(self._settings, self._state)

    @property
    def advice(self) -> Advice | None:
        """How the learner and its advisers got on so far; None where the algorithm has no advisers."""
        if self._state is None or not isinstance(self._file, HasAdvice):
            return None
        return self._file.advice(self._settings, self._state)

    def bound(self, X: Any, y: Labels, trace: Trace | None = None, *, U: Any = None) -> Bound:
        """The tightest bound the theorem gives on the stream that was played.

        The best comparator in hindsight is found on (X, y), all rounds this learner has played; or give your own rule
        U, K × d. `trace`, where the loss is the truncated hinge, lets rounds the learner was sure and right about
        count nothing.
        """
        rows, width = as_rows(X)
        truth = self._classes.codes(y)
        if self._settings is None or not len(truth):
            raise NoBoundError("nothing was played yet")
        if len(truth) != self.rounds:
            raise NoBoundError(f"the learner has played {self.rounds} rounds, but this stream has {len(truth)}")
        if self.decided != self.rounds:
            raise NoBoundError(f"{self.decided - self.rounds} decisions have not been answered")
        self._check_covered()
        if width != self._problem.n_features:
            raise InputError(f"X has {width} columns; the learner knows {self._problem.n_features} features")
        problem = self._problem
        if problem.norm is None:
            problem = problem._replace(norm=self._longest)
        if trace is not None:
            self._check_trace(trace, truth)
        run = self._file, problem, self._settings, self.certificate, _matrix(rows, width), truth, trace
        return bounds.tightest(*run) if U is None else bounds.for_rule(*run, U)

    def _check_trace(self, trace: Trace, truth: Integers) -> None:
        """Refuse a trace of another run: its mask would make the number too small."""
        if trace.rounds != len(truth):
            raise InputError(f"the trace has {trace.rounds} rounds, the stream {len(truth)}")
        if _loop().trail_of(trace.codes, trace.truth_probability, 0) != self._count[0].trail:
            raise InputError("this trace is of another run: give what this learner's own play returned, all of it")
        if not np.array_equal(trace.truth, truth):
            raise InputError("the labels of this trace are not those of y")

    def _check_covered(self) -> None:
        if self._grew is not None:
            raise NoBoundError(
                f"labels were added after round {self._grew}, and the theorem is for labels known before"
            )
        if self._taught:
            raise NoBoundError("it was taught by decisions that another made, and the theorem is for its own draws")
        allowed = getattr(self._settings, "delay", 0)
        if self._late > allowed:
            raise NoBoundError(f"answers came up to {self._late} decisions late, and the theorem allows {allowed}")

    # --- checks and room ------------------------------------------------------------------------------------

    def _check(self, width: int, longest: float, name: str, promised: bool = True) -> None:
        d, X = self._problem.n_features, self._problem.norm
        if d and width != d:
            raise InputError(f"{name} has {width} columns; the learner knows {d} features")
        if width == 0:
            raise InputError(f"{name} has no columns")
        if promised and X is not None and longest > X * (1 + ROUNDING):
            source = "promised" if self._promised else "measured on the first play"
            raise InputError(
                f"{name} holds a row of norm {longest:.6g}, above the norm {X:.6g} {source}: "
                "give a larger norm=... or scale the rows"
            )

    def _check_number_of(self, classes: Classes) -> None:
        most = self._file.CARD.most_classes
        if most is not None and len(classes) > most:
            raise SettingError(f"{self.algorithm} is for at most {most} classes, not {len(classes)}")

    def _opinions(self, advice: Any, rounds: int) -> Matrix:
        """A caller's advice as probabilities, one row a round; no columns if there is none."""
        if advice is None:
            return np.zeros((rounds, 0))
        if not self._file.CARD.advice:
            raise InputError(f"{self.algorithm} takes no advice; {DEFAULT} does")
        return as_advice(advice, rounds, self._classes)

    def _longest_row(self, rows: Rows) -> float:
        """The largest ‖x‖, by one pass that also finds what is not a number."""
        squares = np.empty(n_rows(rows))
        _loop().sqnorms(rows, squares)
        if not np.isfinite(squares).all():
            at = int(np.flatnonzero(~np.isfinite(squares))[0])
            raise InputError(f"row {at} of X holds NaN or infinity, or numbers too large to square")
        return math.sqrt(squares.max(initial=0.0))

    def _begin(self, width: int, sparse: bool, longest: float | None) -> None:
        """Before the first round: settle the settings and make room for the weights."""
        if self._state is not None:
            return
        problem = self._problem._replace(n_features=width)
        settings = self._settings
        if settings is None:
            if longest == 0.0:
                raise InputError("X holds nothing but zeros, so no norm can be measured: give norm=...")
            if longest is not None:
                problem = problem._replace(norm=longest)
            settings = self._file.recommend(problem, **self._given)
        _check_memory(problem)
        state = self._file.init(settings, problem, sparse)
        self._problem, self._settings, self._sparse, self._state = problem, settings, sparse, state
        self._make_room()

    def _make_room(self) -> None:
        """A round and a scratch of this learner's own."""
        self._round = self._new_round()
        self._work = self._file.scratch(self._settings, self._problem, self._sparse)
        self._fresh = 0

    def _new_round(self) -> Round:
        K = self._problem.n_classes
        heard = K if self._file.CARD.advice else 0
        return Round(np.zeros(K), np.zeros(K), np.zeros(len(self._file.NOTES)), np.zeros(heard))


@functools.cache
def _loop() -> ModuleType:
    """The compiled loop, imported at first use so that `import gaptron` stays quick."""
    return importlib.import_module("gaptron.kernels.play")


def _direct(verb: Any, *arguments: Any) -> Any:
    """The verb as compiled for these types of arguments, to be called with no others.

    The verb itself looks at every field of every tuple to find that out, at each call; for one round that takes longer
    than the round. Interpreted there is nothing to find.
    """
    return verb.compile(tuple(map(verb.typeof_pyval, arguments))) if hasattr(verb, "typeof_pyval") else verb


def _check_memory(problem: Problem) -> None:
    """Refuse weights that cannot fit: asking for them would end the process, or the machine."""
    size = 8 * problem.n_classes * problem.n_features
    if hasattr(os, "sysconf") and size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise InputError(
            f"{problem.n_classes} classes × {problem.n_features} features are {size / 1e9:.0f} GB of weights, more than "
            "this machine's memory: is a column number wrong? Otherwise hash the features into fewer columns"
        )


def _sqnorm(row: Row) -> float:
    values: Vector = row.values if isinstance(row, SparseRow) else row
    return float(np.vdot(values, values))  # the one product that says nothing of an overflow: whoever asks finds it


def _matrix(rows: Rows, width: int) -> Any:
    if not isinstance(rows, Sparse):
        return rows.astype(np.float64, copy=False)
    from scipy.sparse import csr_matrix  # noqa: PLC0415

    return csr_matrix((rows.values, rows.indices, rows.indptr), shape=(n_rows(rows), width))
