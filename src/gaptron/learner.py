"""Learner: an algorithm, its settings, its state and its randomness, as one object a user holds."""

import functools
import importlib
import inspect
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gaptron import comparator as compare
from gaptron import model_file, snapshot
from gaptron.algorithms import load
from gaptron.errors import DecisionError, InputError, ModelFileError, NoBoundError, SettingError
from gaptron.feedback import as_graph
from gaptron.growth import grown
from gaptron.pending import Pending
from gaptron.seeds import generator
from gaptron.trace import Trace
from gaptron.types import (
    UNKNOWN,
    Advice,
    Certificate,
    Comparator,
    Feedback,
    Integers,
    Loss,
    Matrix,
    Problem,
    Round,
    Row,
    Rows,
    Sparse,
    SparseRow,
    Vector,
)
from gaptron.validation import Classes, Labels, as_advice, as_row, as_rows, block, n_rows, row_like

DEFAULT = "advised-gaptron"  # the algorithm, where none is named
FIRST_BLOCK, BLOCK = 1_024, 65_536  # rounds between two looks at the outside world (progress, Ctrl-C): first, most
ROUNDING = 1e-6  # rows scaled to unit norm in float32 may be this much longer than 1
DENSE_BLOCK = 1 << 24  # numbers at most in a block of sparse rows that must be written out


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Decision:
    """One label drawn, and all that is needed to learn from its answer later."""

    label: Any
    probability: float
    round: int
    _code: int = field(repr=False)
    _x: Row = field(repr=False)
    _sheet: Round = field(repr=False)
    _owner: "Learner" = field(repr=False)

    @property
    def distribution(self) -> NDArray[np.float64]:
        """The chance of every label, in the order of the learner's classes."""
        return self._sheet.p.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of an open decision is the copied learner's own; one that was answered is a record."""
        if self in self._owner._open:
            return _decision_of, (self._owner, self.round)
        return Decision, tuple(getattr(self, part.name) for part in fields(self))


def _decision_of(learner: "Learner", round: int) -> Decision:
    return learner.pending[round]


class Bound(NamedTuple):
    """A proved number beside a run."""

    value: float  # mistakes, in expectation over the learner's draws
    regret: float  # the part that is not the comparator's own loss
    comparator: Comparator
    U: Matrix
    theorem: str


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
        self._classes = Classes(range(_whole("n_classes", n_classes)) if classes is None else classes)
        if len(self._classes) < 2:
            raise SettingError(f"there must be at least two classes, not {len(self._classes)}")
        graph = as_graph(feedback, len(self._classes))
        self._problem = Problem(
            len(self._classes),
            0 if n_features is None else _whole("n_features", n_features),
            _choose("feedback", feedback if graph is None else "graph", self._file.CARD.feedback, algorithm),
            _choose("loss", loss, self._file.CARD.losses, algorithm),
            _positive("norm", norm),
            _positive("radius", radius),
            None if horizon is None else _whole("horizon", horizon),
            graph,
        )
        known = dict(list(inspect.signature(self._file.recommend).parameters.items())[1:])
        for name, value in settings.items():
            if name not in known:
                raise SettingError(f"{algorithm} has no setting {name!r}; it has: {', '.join(known) or 'none'}")
            if not isinstance(known[name].default, (str, bool)) and value is not None:
                if isinstance(value, str):
                    raise SettingError(f"{name}={value!r} must be a number")
                _number(name, value)
        self._given = settings
        self._shown: Any = int(self._problem.feedback) if graph is None else graph
        self._settings: Any = None
        self._state: Any = None
        self._sparse = False
        self._rng = generator(seed)
        self._decide_once: Any = None  # the loop's verbs, compiled for this learner's types
        self._learn_once: Any = None
        self._open = Pending()
        self._decided = self._learned = 0
        self._grew: int | None = None  # the round after which labels were added
        self._taught = False  # by decisions that were not its own
        self._late = 0  # most answers missing when a decision was made, or decisions made without an answer
        self._longest = 0.0
        self._promised = norm is not None
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
        return self._learned

    @property
    def pending(self) -> dict[int, Decision]:
        """The decisions that may still be answered, by round: those somebody holds, and those of the file."""
        return self._open.by_round()

    @property
    def weights(self) -> Matrix:
        """The weights, K × d. Those of `advised-gaptron` are its certified part's; the advisers have their own."""
        if self._state is None:
            return np.zeros((self._problem.n_classes, self._problem.n_features))
        return np.array(self._file.weights(self._state, self._sparse))

    def __repr__(self) -> str:
        return (
            f"Learner({self.algorithm!r}, n_classes={len(self._classes)}, "
            f"n_features={self._problem.n_features or None}, feedback={self._problem.feedback.word!r}, "
            f"loss={self._problem.loss.word!r}, rounds={self.rounds})"
        )

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
        if classes is not None:
            self._grow_labels(Classes(classes))
        else:
            self._grow_features(_whole("n_features", n_features))

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
        places = np.array([wanted.code(label) for label in self.classes])
        self._enlarge(self._problem._replace(n_classes=len(wanted)), places, len(wanted), labels=True)
        self._classes = wanted
        if self._decided:
            self._grew = self._decided
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
        state = self._state
        if state is not None:
            fresh = self._file.init(settings, problem, self._sparse)
            state = grown(self.algorithm, state, fresh, places, room, labels=labels, sparse=self._sparse)
        self._problem, self._state = problem, state
        self._settings = settings if settled else None

    # --- one round at a time --------------------------------------------------------------------------------

    def decide(self, x: Any, *, advice: Any = None) -> Decision:
        """Draw a label for the row x (a 1-D array or a 1 × d sparse matrix).

        `advice`, where the algorithm takes it, is what your own model says of x: a probability for each label, or a
        label. It may know anything but the draw to come.
        """
        row, width = as_row(x)
        square = math.sqrt(_sqnorm(row))
        if not math.isfinite(square):
            raise InputError("x holds NaN or infinity, or numbers too large to square")
        self._check(width, square, "x")
        said = None if advice is None else self._advice(advice if getattr(advice, "ndim", 1) == 2 else [advice], 1)
        self._begin(width, isinstance(row, SparseRow), None)
        row = row_like(row, self._sparse, width)
        sheet = self._sheet()
        if said is not None:
            sheet.advice[:] = said[0]
        if self._decide_once is None:
            self._decide_once = _direct(_loop().decide_once, self._settings, self._state, row, sheet, 0.5)
        code = int(self._decide_once(self._settings, self._state, row, sheet, self._rng.random()))
        self._longest = max(self._longest, square)
        self._late = max(self._late, self._decided - self._learned)
        self._decided += 1
        decision = Decision(self._classes.labels[code], sheet.p.item(code), self._decided, code, row, sheet, self)
        self._open.add(decision)
        return decision

    def learn(self, decision: Decision, *, label: Any = None, correct: bool | None = None) -> None:
        """Answer a decision: with the right `label` (full information), or whether it was `correct` (bandit).

        With a graph: with the `label` if the graph showed it, with nothing if it did not.

        Answers may come late and in any order: each is learned from with the scores and probabilities of its
        own decision. Most theorems assume no delay, and then a late answer ends `bound`.
        """
        self._check_open(decision)
        truth = self._answer(decision, label, correct)
        x, sheet, code = self._row_of(decision), decision._sheet, decision._code
        if self._learn_once is None:
            self._learn_once = _direct(_loop().learn_once, self._settings, self._state, x, sheet, code, truth)
        self._learn_once(self._settings, self._state, x, sheet, code, truth)
        self._open.close(decision)
        self._learned += 1
        self._late = max(self._late, self._decided - decision.round)

    def forget(self, decision: Decision) -> None:
        """Give up a decision whose answer will never come: it is pending no longer and cannot be answered."""
        self._check_open(decision)
        self._open.close(decision)

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

    def _answer(self, decision: Decision, label: Any, correct: bool | None) -> int:
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
            if not self._problem.graph[decision._code, truth]:
                raise DecisionError(f"playing {decision.label!r} does not show {label!r} in this graph")
            return truth
        if label is not None or correct is None:
            raise DecisionError("bandit feedback: answer with learn(decision, correct=True or False)")
        if not isinstance(correct, (bool, np.bool_)):
            raise DecisionError(f"correct={correct!r} must be True or False")
        return decision._code if correct else UNKNOWN

    # --- many rounds ----------------------------------------------------------------------------------------

    def play(self, X: Any, y: Labels, *, advice: Any = None, progress: Callable[[int], None] | None = None) -> Trace:
        """Predict, then learn, round by round, compiled. Call again to go on.

        Under bandit feedback the labels y only answer whether each guess was right.
        `advice`, where the algorithm takes it, is your own model's: T × K probabilities, or T labels.
        `progress` is called with the number of rounds just played, now and then.
        """
        rows, width = as_rows(X)
        truth = self._classes.codes(y)
        T = n_rows(rows)
        if T != len(truth):
            raise InputError(f"X has {T} rows but y has {len(truth)} labels")
        longest = self._longest_row(rows)
        self._check(width, longest, "X")
        said = self._advice(advice, T)
        if T == 0:
            names = self._file.NOTES
            return Trace(self._classes, truth, truth, truth, np.zeros(0), names, np.zeros((0, len(names))))
        self._begin(width, isinstance(rows, Sparse), longest)
        loop = _loop()
        self._late = max(self._late, self._decided - self._learned)
        sheet, names = self._sheet(), self._file.NOTES
        codes, top = np.empty(T, dtype=np.int64), np.empty(T, dtype=np.int64)
        chances, notes = np.empty(T), np.empty((T, len(names)))
        start, step, most = 0, FIRST_BLOCK, BLOCK
        if isinstance(rows, Sparse) and not self._sparse:
            most = max(1, min(BLOCK, DENSE_BLOCK // max(1, width)))
        while start < T:
            clock = time.perf_counter()
            part = slice(start, min(start + min(step, most), T))
            size = part.stop - start
            out = loop.Record(codes[part], top[part], chances[part], notes[part])
            Xs = block(rows, start, part.stop, self._sparse, width)
            u = self._rng.random(size)
            loop.play(self._settings, self._state, Xs, truth[part], u, self._shown, said[part], sheet, out)
            self._decided += size
            self._learned += size
            start = part.stop
            if progress is not None:
                progress(size)
            if time.perf_counter() - clock < 0.1:
                step *= 2
        self._longest = max(self._longest, longest)
        return Trace(self._classes, codes, top, truth, chances, tuple(names), notes)

    def predict(self, X: Any, *, advice: Any = None) -> NDArray[Any]:
        """The label of the largest score for each row. Changes nothing. `advice` as in `play`."""
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
        said = self._advice(advice, T)
        Z, P = np.zeros((T, K)), np.full((T, K), 1.0 / K)
        if self._settings is None:
            return Z, P  # before the first round every score is zero and nothing speaks for any label
        state, problem = self._state, self._problem._replace(n_features=width)
        if state is None:
            state = self._file.init(self._settings, problem, False)
        loop, sheet = _loop(), self._sheet(problem)
        step = max(1, min(BLOCK, DENSE_BLOCK // max(1, width)))
        for start in range(0, T, step):
            stop = min(start + step, T)
            Xs = block(rows, start, stop, self._sparse, width)
            loop.look(self._settings, state, Xs, said[start:stop], sheet, Z[start:stop], P[start:stop])
        return Z, P

    # --- to keep --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file: weights, settings, generator, pending decisions. The old file or the new one.

        Labels must be texts, numbers, True, False, None or tuples of them.
        """
        model_file.write(path, self.__getstate__())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The learner in a file. It goes on as the one that was saved would have; `pending` has its decisions."""
        tree = model_file.read(path)
        learner = cls.__new__(cls)
        try:
            learner.__setstate__(tree)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as problem:
            # The checksum is right, so it is another version's or somebody's own work: no telling how it is wrong.
            raise ModelFileError(path, f"it holds no learner of this version: {problem}") from None
        return learner

    def __getstate__(self) -> dict[str, Any]:
        problem = self._problem
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
            "decided": self._decided,
            "learned": self._learned,
            "late": self._late,
            "longest": self._longest,
            "grew": self._grew,
            "taught": self._taught,
            "pending": [
                {
                    "round": d.round,
                    "code": d._code,
                    "row": snapshot.spread(self._row_of(d)),
                    "sheet": snapshot.spread(d._sheet),
                }
                for d in self.pending.values()
            ],
        }

    def __setstate__(self, tree: dict[str, Any]) -> None:
        if type(tree["classes"]) is not list or (tree["settings"] is None and tree["state"] is not None):
            raise ValueError("classes or settings are missing")
        self.__init__(  # type: ignore[misc]  # through the same door as everybody
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
        self._problem = self._problem._replace(norm=_positive("norm", tree["norm"]))
        K, d, sparse = self._problem.n_classes, self._problem.n_features, bool(tree["sparse"])
        if tree["settings"] is not None:
            fresh = self._file.recommend(self._problem, **self._given)
            self._settings = snapshot.fill(fresh, tree["settings"], "settings")
        if tree["state"] is not None:
            snapshot.check_room(K, d, tree["state"])
            self._state = snapshot.fill(self._file.init(self._settings, self._problem, sparse), tree["state"], "state")
            snapshot.check_places(self._state, K, d)
        self._sparse = sparse
        self._rng.bit_generator.state = tree["generator"]
        self._decided, self._learned, self._late = (_count(name, tree[name]) for name in ("decided", "learned", "late"))
        self._longest = _number("longest", tree["longest"])
        self._grew = None if tree["grew"] is None else _count("grew", tree["grew"])
        self._taught = bool(tree["taught"])
        if self._learned > self._decided:
            raise ValueError("more rounds were learned from than decided")
        for saved in tree["pending"]:
            self._open.hold(self._pending_decision(saved))

    def _pending_decision(self, saved: dict[str, Any]) -> Decision:
        at, code = _count("round", saved["round"]), _count("code", saved["code"])
        if not 1 <= at <= self._decided or at in self.pending:
            raise ValueError(f"a decision of round {at} cannot be pending")
        row = snapshot.row_of(saved["row"], self._sparse, self._problem.n_features, "row")
        sheet = snapshot.fill(self._sheet(), saved["sheet"], "sheet")
        return Decision(self._classes.labels[code], sheet.p.item(code), at, code, row, sheet, self)

    # --- theory ---------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> Certificate | None:
        """The bound the run carries with it so far; None where the algorithm has none. Refused after late answers."""
        if self._state is None or not hasattr(self._file, "certificate"):
            return None
        self._check_covered()
        found: Certificate = self._file.certificate(self._settings, self._state)
        return found

    @property
    def advice(self) -> Advice | None:
        """How the learner and its advisers got on so far; None where the algorithm has no advisers."""
        if self._state is None or not hasattr(self._file, "advice"):
            return None
        found: Advice = self._file.advice(self._settings, self._state)
        return found

    def bound(self, X: Any, y: Labels, trace: Trace | None = None) -> Bound:
        """The tightest bound the theorem gives on the stream that was played.

        The best comparator in hindsight is found on (X, y), all rounds this learner has played. `trace`, where
        the loss is the truncated hinge, lets rounds the learner was sure and right about count nothing.
        """
        rows, width = as_rows(X)
        truth = self._classes.codes(y)
        if self._settings is None or not len(truth):
            raise NoBoundError("nothing was played yet")
        if len(truth) != self.rounds:
            raise NoBoundError(f"the learner has played {self.rounds} rounds, but this stream has {len(truth)}")
        if self._decided != self._learned:
            raise NoBoundError(f"{self._decided - self._learned} decisions have not been answered")
        self._check_covered()
        if width != self._problem.n_features:
            raise InputError(f"X has {width} columns; the learner knows {self._problem.n_features} features")
        problem = self._problem
        if problem.norm is None:
            problem = problem._replace(norm=self._longest)
        silent = None
        if trace is not None and trace.rounds != len(truth):
            raise InputError(f"the trace has {trace.rounds} rounds, the stream {len(truth)}")
        # Under bandit feedback the mask depends on the draws and may not be looked at when U is chosen.
        if trace is not None and problem.feedback is Feedback.FULL and hasattr(self._file, "excused"):
            silent = self._file.excused(problem, trace.notes, trace.top == trace.truth)

        certificate = self.certificate
        # A certificate may choose U only if it does not itself depend on the draws.
        choose = certificate is not None and not certificate.in_expectation

        def number(comparator: Comparator) -> float:
            if choose and certificate is not None:
                return certificate.bound(comparator)
            return float(self._file.bound(problem, self._settings, comparator))

        radius = problem.radius or math.inf
        if math.isfinite(number(Comparator(0.0, 2 * (problem.radius or 1.0), len(truth)))):
            radius = math.inf  # the theorem is not only for ‖U‖ ≤ D
        found = compare.best(
            _matrix(rows, width), truth, problem.n_classes, problem.loss, number, radius=radius, excused=silent
        )
        value = found.bound if certificate is None else certificate.bound(found.comparator)
        theorem = self._file.theorem(problem, self._settings)
        return Bound(value, value - found.comparator.loss, found.comparator, found.U, theorem)

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

    # --- at the door ----------------------------------------------------------------------------------------

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

    def _advice(self, advice: Any, rounds: int) -> Matrix:
        """A caller's advice as probabilities, one row a round; no columns if there is none."""
        if advice is None:
            return np.zeros((rounds, 0))
        if not self._file.CARD.advice:
            raise InputError(f"{self.algorithm} takes no advice; advised-gaptron does")
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
        self._state = self._file.init(settings, problem, sparse)
        self._problem, self._settings, self._sparse = problem, settings, sparse

    def _sheet(self, problem: Problem | None = None) -> Round:
        problem = problem or self._problem
        K, size = problem.n_classes, self._file.memo(self._settings, problem)
        heard = K if self._file.CARD.advice else 0
        return Round(np.zeros(K), np.zeros(K), np.zeros(size), np.zeros(len(self._file.NOTES)), np.zeros(heard))


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


def _sqnorm(row: Row) -> float:
    values: Vector = row.values if isinstance(row, SparseRow) else row
    return float(np.vdot(values, values))  # the one product that says nothing of an overflow: whoever asks finds it


def _matrix(rows: Rows, width: int) -> Any:
    if not isinstance(rows, Sparse):
        return rows.astype(np.float64, copy=False)
    from scipy.sparse import csr_matrix  # noqa: PLC0415

    return csr_matrix((rows.values, rows.indices, rows.indptr), shape=(n_rows(rows), width))


def _choose(name: str, word: str | None, allowed: tuple[Any, ...], algorithm: str) -> Any:
    if word is None:
        return allowed[0]
    kind: type[Loss] | type[Feedback] = type(allowed[0])
    words = {member.word: member for member in kind}
    if word not in words:
        raise SettingError(f"unknown {name} {word!r}; there are: {', '.join(words)}")
    if words[word] not in allowed:
        raise SettingError(f"{algorithm} takes {name} {' or '.join(a.word for a in allowed)}, not {word}")
    return words[word]


def _whole(name: str, number: Any) -> int:
    value = _number(name, number)
    if isinstance(number, bool) or value < 1 or not value.is_integer():
        raise SettingError(f"{name}={number!r} must be a whole number of at least 1")
    return int(number)


def _count(name: str, number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{name}={number!r} is not a count")
    return number


def _positive(name: str, number: Any) -> float | None:
    if number is None:
        return None
    value = _number(name, number)
    if not (value > 0.0 and math.isfinite(value)):
        raise SettingError(f"{name}={number!r} must be a positive number")
    return value


def _number(name: str, number: Any) -> float:
    try:
        return float(number)
    except (TypeError, ValueError, OverflowError):
        raise SettingError(f"{name}={number!r} must be a number") from None
