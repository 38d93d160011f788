"""Learner: the object a user holds. It checks what callers give, and answers in their own labels."""

import copy
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gaptron import bounds, growth, model_file
from gaptron.algorithm import HasAdvice, HasCertificate
from gaptron.algorithms import able, load
from gaptron.arguments import Arguments, is_stream
from gaptron.bounds import Bound
from gaptron.by_name import ByName
from gaptron.conditions import Conditions, counted
from gaptron.core import Core, observer
from gaptron.decision import EVERY, Decision, Pending, as_tree, from_tree
from gaptron.errors import DecisionError, InputError, ModelFileError, NoBoundError, SettingError
from gaptron.features import Account, Encoder, in_file
from gaptron.features.declaration import as_features
from gaptron.feedback import as_graph
from gaptron.given_values import choice, flag, number, plain_dict, positive, whole
from gaptron.in_use import InUse
from gaptron.memory import PRECISIONS
from gaptron.seeds import generator
from gaptron.trace import Trace
from gaptron.types import (
    UNKNOWN,
    Advice,
    Certificate,
    Feedback,
    Matrix,
    Nothing,
    Observed,
    Problem,
    Rounding,
    Row,
    RowsToCome,
    Sparse,
    SparseRow,
)
from gaptron.validation import Classes, Labels, as_matrix, as_rows, n_rows, row_like

DEFAULT = "advised-gaptron"  # the algorithm, where none is named


class Learner:
    """An online multiclass learner.

    Args:
        algorithm: a name from `gaptron.algorithms.NAMES`.
        n_classes: number of labels, which are then 0..K-1; or give `classes`.
        classes: the labels themselves, of any kind.
        n_features: width of the rows; settled by the first ones seen if left out.
        features: "auto" or `Features(...)`: rows are given by name, with words, gaps and times as they are; see
            `gaptron.features`. Left out, rows are arrays of numbers.
        feedback: "full" (the right label is told), "bandit" (only whether ours was right), or a graph: a boolean K × K
            matrix, or "apple-tasting" or "label-efficient" (playing the row's label shows the column's).
        loss: "logistic", "hinge" or "smooth-hinge", where the algorithm has a choice.
        norm: a promise that ‖x‖ ≤ norm; the first `play` measures it if left out.
        radius: D, the norm of the rules U we compare with, where the algorithm needs it.
        horizon: T, the number of rounds, where the algorithm needs it.
        seed: for the learner's draws; None takes a fresh one from the system.
        observe: bandit feedback: keep beside it what its answers prove of every linear rule; see `observed`.
        control: a share of decisions drawn uniformly, such as 0.02, so that other learners can be judged by the log;
            every probability counts it. It ends `bound` and `certificate`.
        precision: "single" keeps weights and what is kept for each of them in float32, half the memory; every sum stays
            in double. `bound` and `certificate` count the rounding, where the algorithm can.
        settings: the algorithm's own settings, in place of the theorem's.
    """

    def __init__(
        self,
        algorithm: str = DEFAULT,
        *,
        n_classes: int | None = None,
        classes: Iterable[Any] | None = None,
        n_features: int | None = None,
        features: Any = None,
        feedback: Any = "full",
        loss: str | None = None,
        norm: float | None = None,
        radius: float | None = None,
        horizon: int | None = None,
        seed: int | None = None,
        observe: bool = True,
        control: float = 0.0,
        precision: str = "double",
        **settings: Any,
    ) -> None:
        file = load(algorithm)
        if (n_classes is None) == (classes is None):
            raise SettingError("give either n_classes=K or classes=[...]")
        self._classes = Classes(range(whole("n_classes", n_classes)) if classes is None else classes)
        K, most = len(self._classes), file.CARD.most_classes
        if K < 2:
            raise SettingError(f"there must be at least two classes, not {K}")
        if most is not None and K > most:
            raise SettingError(f"{algorithm} is for at most {most} classes, not {K}: use another algorithm")
        by_name = None if features is None else self._by_name(features, algorithm, n_features, norm)
        graph = as_graph(feedback, K)
        problem = Problem(
            K,
            0 if n_features is None else whole("n_features", n_features),
            choice("feedback", feedback if graph is None else "graph", file.CARD.feedback, algorithm),
            choice("loss", loss, file.CARD.losses, algorithm),
            positive("norm", norm) if by_name is None else 1.0,
            positive("radius", radius),
            None if horizon is None else whole("horizon", horizon),
            graph,
        )
        known = dict(list(inspect.signature(file.recommend).parameters.items())[1:])
        for name, value in settings.items():
            if name not in known:
                raise SettingError(f"{algorithm} has no setting {name!r}; it has: {', '.join(known) or 'none'}")
            if not isinstance(known[name].default, (str, bool)) and value is not None:
                if isinstance(value, str):
                    raise SettingError(f"{name}={value!r} must be a number")
                number(name, value)
        if not 0.0 <= number("control", control) < 1.0:
            raise SettingError(f"control={control!r} must be a share of at least 0 and below 1, such as 0.02")
        if control and file.CARD.own_coin:
            raise SettingError(f"{algorithm} learns from how it drew its label: it has no room for control={control!r}")
        if precision not in PRECISIONS:
            raise SettingError(f"precision={precision!r} must be {' or '.join(map(repr, PRECISIONS))}")
        single = precision == "single"
        if single and not file.CARD.single:
            raise SettingError(f"{algorithm} has no precision='single'; algorithms that have: {able('single')}")
        self._core = Core(algorithm, problem, settings, seed, flag("observe", observe), float(control), single)
        self._names = by_name
        self._given = Arguments(self._core, self._classes, by_name, norm is not None)
        self._open = Pending()
        self._conditions = Conditions()
        self._use = InUse()
        self._interrupted: Trace | None = None
        self.reading: dict[str, Any] = {}
        """How the files it learns from are read, for whoever reads the next one. Kept in the model file."""

    def _by_name(self, features: Any, algorithm: str, n_features: Any, norm: Any) -> ByName:
        if n_features is not None or norm is not None:
            raise SettingError("features=... settles width and length of rows: leave out n_features=... and norm=...")
        if not load(algorithm).CARD.growth.possible:
            raise SettingError(f"{algorithm} cannot grow, and rows by name bring new words: use another algorithm")
        return ByName(Encoder(as_features(features)), self._grow_features)

    # --- what it is ---------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> str:
        """The name of the algorithm."""
        return self._core.algorithm

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in the order of the weights' rows."""
        return self._classes.labels

    @property
    def problem(self) -> Problem:
        """What is known about the problem."""
        return self._core.problem

    @property
    def settings(self) -> Any:
        """The settings in use; None while they wait for the norm of the first rows."""
        return self._core.settings

    @property
    def features(self) -> list[Account] | None:
        """What was made of each column so far; None if rows are given as numbers."""
        return None if self._names is None else self._names.encoder.columns

    @property
    def decided(self) -> int:
        """How many decisions were made."""
        return self._core.decided

    @property
    def rounds(self) -> int:
        """How many rounds were learned from."""
        return self._core.learned

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
        """The weights, K × d. Those of `advised-gaptron` are its certified part's; the advisers have their own.

        Under bandit feedback they are zero as long as no round had to be certified.
        """
        with self._use.reading:
            return self._core.weights

    def __repr__(self) -> str:
        return (
            f"Learner({self.algorithm!r}, n_classes={len(self._classes)}, "
            f"n_features={self.problem.n_features or None}, feedback={self.problem.feedback.word!r}, "
            f"loss={self.problem.loss.word!r}, rounds={self.rounds})"
        )

    # --- one round at a time --------------------------------------------------------------------------------

    def decide(self, x: Any, *, among: Any = None, advice: Any = None) -> Decision:
        """Draw a label for the row x (a 1-D array or a 1 × d sparse matrix; with `features`, a dict).

        `among`, where the algorithm takes it, are the labels that are available, at least one; others are not played,
        and probabilities are over these. Left out, all are.
        `advice`, where the algorithm takes it, is what your own model says of x: a probability for each label, or a
        label. It may know anything but the draw to come.
        """
        given, opinion, allowed = self._given.row(x), self._given.opinion(advice), self._given.available(among)
        core, conditions = self._core, self._conditions
        with self._use.writing:
            row = self._begin(given)
            conditions.late = max(conditions.late, core.decided - core.learned)
            conditions.left_out |= allowed is not EVERY and not allowed.all()
            code, u = core.decide(row, opinion, allowed)
            p = core.round.p.copy()
            decision = Decision(
                label=self._classes.labels[code],
                probability=p.item(code),
                round=core.decided,
                _code=code,
                _x=row,
                _p=p,
                _u=u,
                _advice=opinion,
                _among=allowed,
                _mark=core.mark.copy(),
                _answered=np.zeros(1, dtype=np.bool_),
                _owner=self,
                _kept=core.kept(),
            )
            self._open.add(decision)
        return decision

    def learn(
        self, decision: Decision, *, label: Any = None, correct: bool | None = None, reward: float | None = None
    ) -> None:
        """Answer a decision: with the right `label` (full information), or whether it was `correct` (bandit).

        Or with a `reward` from 0 to 1 (bandit), what the label played was worth: 1 is `correct=True`, 0 is
        `correct=False`, and some algorithms learn from what lies in between. Give the number; do not flip a coin.
        With a graph: with the `label` if the graph showed it, with nothing if it did not.

        Answers may come late, in any order, or never. If anything was decided or learned in between, the row is scored
        again with the weights of today; only the label and its probability are those of the draw. Most theorems assume
        no delay, and then a late answer ends `bound`.
        """
        with self._use.writing:
            self._check_open(decision)
            truth, worth = self._given.answer(decision._code, decision._among, label, correct, reward)
            x, core, conditions = self._row_of(decision), self._core, self._conditions
            conditions.late = max(conditions.late, core.decided - decision.round)
            conditions.fractions |= 0.0 < worth < 1.0
            if decision.round != core.fresh:
                seen = decision._u, decision._advice, decision._among, decision._mark
                core.look_again(x, decision._code, decision.probability, *seen)
                if decision._kept is not None:
                    core.recall(decision._kept)
            chance = float(decision._p[decision._code if truth == UNKNOWN else truth])
            core.learn(x, decision._code, truth, worth, chance, decision._answered)
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
        reward: float | None = None,
        truth: Any = None,
        among: Any = None,
        advice: Any = None,
    ) -> None:
        """Learn from a decision that another made: for the row x it played `label`, drawn with `probability`.

        The answer is `correct` or a `reward` (bandit) or `truth`, the right label, as for `learn`; `among` are the
        labels that were available. The row is scored with the weights of today; `bound` and `certificate` end, for the
        theorems are about the learner's own draws. The round counts as decided and answered, once each: what this
        learner decided itself is answered by `learn`.
        """
        core = self._core
        if core.file.CARD.own_coin:
            raise SettingError(
                f"{self.algorithm} learns from how it drew its label, which the log of others cannot say"
            )
        given, opinion = self._given.row(x), self._given.opinion(advice)
        code, chance = self._classes.code(label), number("probability", probability)
        if not 0.0 < chance <= 1.0:
            raise InputError(f"probability={probability!r} must lie in (0, 1]")
        allowed = self._given.available(among)
        if len(allowed) and not allowed[code]:
            raise InputError(f"label {label!r} was played, but among says that it was not available")
        shown, worth = self._given.answer(code, allowed, truth, correct, reward)
        with self._use.writing:
            row = self._begin(given)
            self._conditions.taught = True
            core.look_again(row, code, chance, core.rng.random(), opinion, allowed)
            core.commit(code)
            core.learn(row, code, shown, worth, chance, np.zeros(1, dtype=np.bool_))

    def _begin(self, given: Any) -> Row:
        """Make room if there is none yet; the row in the layout of the weights."""
        row, width, norm = given if self._names is None else self._names.encoded(given)
        self._core.begin(width, isinstance(row, SparseRow), None)
        self._conditions.longest = max(self._conditions.longest, norm)
        return row_like(row, self._core.sparse, width)

    def _check_open(self, decision: Decision) -> None:
        if not isinstance(decision, Decision):
            raise DecisionError(f"{decision!r} is no decision: give what decide(x) returned")
        if decision._owner is not self:
            raise DecisionError("this decision was made by another learner")
        if decision not in self._open:
            grew = self._conditions.grew
            if grew is not None and decision.round <= grew:
                raise DecisionError(f"labels were added after round {decision.round}: its decision can teach no more")
            raise DecisionError(f"the decision of round {decision.round} has been answered already, or given up")

    def _row_of(self, decision: Decision) -> Row:
        """The decision's row, as wide as rows are now."""
        missing = 0 if isinstance(decision._x, SparseRow) else self.problem.n_features - len(decision._x)
        return np.append(decision._x, np.zeros(missing)) if missing else decision._x

    # --- many rounds ----------------------------------------------------------------------------------------

    def play(
        self,
        X: Any,
        y: Labels | None = None,
        *,
        among: Any = None,
        reward: Any = None,
        advice: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> Trace:
        """Predict, then learn, round by round, compiled. Call again to go on.

        X is an array or a SciPy sparse matrix and y its labels; or X is a `Stream`, which has both and was checked, and
        may also have what follows.
        With `features`, X is a table (pandas, polars, Arrow), a list of dicts or an array.

        Under bandit feedback the labels y only answer whether each guess was right.
        `among`, where the algorithm takes it, says which labels are available: T × K booleans, or T lists of labels.
        `reward` (bandit) says what labels are worth, from 0 to 1: T numbers for the right ones, or T × K numbers for
        all, where several or none may be right and y is not needed. Not all algorithms take numbers between 0 and 1.
        `advice`, where the algorithm takes it, is your own model's: T × K probabilities, or T labels.
        `progress` is called with the number of rounds just played, now and then.

        An interruption (Ctrl-C) ends it between two blocks of rounds: `rounds` says how many were learned from in all,
        `interrupted` has their trace, and playing on from there is as if nothing had happened.
        """
        self._interrupted = None
        if self._core.control:
            raise SettingError(f"with control={self._core.control:g} decide and learn one by one: play draws no share")
        given, core, conditions = self._given, self._core, self._conditions
        checked = given.rows(X, learn=True)
        rows, T, stream = checked.rows, n_rows(checked.rows), is_stream(X)
        worth = given.worth(X.worth if stream and reward is None else reward, T)
        truth = given.truth(X, y, T if worth.shape[1] > 1 else None)
        if T != len(truth):
            raise InputError(f"X has {T} rows but y has {len(truth)} labels")
        allowed = given.all_available(X.among if stream and among is None else among, T)
        given.check_truth_available(truth, allowed)
        given.check_norm(checked.longest, "X")
        given.warn_of_outlier(checked, conditions.longest)
        opinions = given.opinions(advice, T)
        trace, before = Trace.of(self._classes, truth, core.file.NOTES, worth), None
        try:
            with self._use.writing:
                if T == 0:
                    return trace
                core.begin(checked.width, isinstance(rows, Sparse | RowsToCome), checked.longest)
                # Before the first round: an interruption may not skip it.
                conditions.longest = max(conditions.longest, checked.longest)
                conditions.late = max(conditions.late, core.decided - core.learned)
                conditions.left_out |= not allowed.all()
                conditions.fractions |= worth.shape[1] > 1 or bool((worth < 1.0).any())  # of the right labels
                before = core.learned
                core.play(rows, truth, opinions, allowed, trace, progress)
        except BaseException:
            if before is not None:
                if self._names is not None:
                    self._names.back(core.decided)
                self._interrupted = trace.first(core.learned - before)
            raise
        return trace

    def predict(self, X: Any, *, among: Any = None, advice: Any = None) -> NDArray[Any]:
        """The label of the largest score for each row. Changes nothing. `among` and `advice` as in `play`.

        Many threads may look (predict, scores, distribution) at once; while one teaches, the others are refused.
        """
        return self._classes.decode(self.scores(X, among=among, advice=advice).argmax(axis=1))

    def scores(self, X: Any, *, among: Any = None, advice: Any = None) -> Matrix:
        """One score per row and label, -inf where it is not available. Changes nothing. The rest as in `play`."""
        return self._look(X, among, advice)[0]

    def distribution(self, X: Any, *, among: Any = None, advice: Any = None) -> Matrix:
        """What labels would be drawn from, per row. Changes nothing. `among` and `advice` as in `play`."""
        return self._look(X, among, advice)[1]

    def _look(self, X: Any, among: Any, advice: Any) -> tuple[Matrix, Matrix]:
        rows, width, *_ = self._given.rows(X)
        opinions = self._given.opinions(advice, n_rows(rows))
        allowed = self._given.all_available(among, n_rows(rows))
        with self._use.reading:
            return self._core.look(rows, width, opinions, allowed)

    # --- growing, another seed --------------------------------------------------------------------------------

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
        places = growth.new_places_of_labels(self.algorithm, self._core.file, self.problem, self._classes, wanted)
        if places is None:
            return
        self._core.enlarge(self.problem._replace(n_classes=len(wanted)), places, len(wanted), labels=True)
        self._classes = self._given.classes = wanted
        if self.decided:
            self._conditions.grew = self.decided
            self._open = Pending()

    def _grow_features(self, width: int) -> None:
        d = self.problem.n_features
        if width < d:
            raise InputError(f"a learner only gains features: it has {d}, and n_features={width} is fewer")
        if width > d:
            self._core.enlarge(self.problem._replace(n_features=width), np.arange(d), width, labels=False)

    def reseed(self, seed: int | None = None) -> None:
        """Draw from another seed from now on: learners loaded from one file would else all draw the same numbers."""
        with self._use.writing:
            self._core.rng = generator(seed)

    def warm(self, *, sparse: bool = False) -> None:
        """Compile now what deciding, learning, playing and looking need, so that no request waits for it.

        Changes nothing: a copy plays a round. What is compiled is kept on disk, for other processes and images too.
        `sparse`: for sparse rows, where none was seen yet.
        """
        other, width, label = copy.deepcopy(self), self.problem.n_features or 1, self.classes[0]
        rows: Any = sp.csr_array((1, width)) if sparse else np.zeros((1, width))
        if self._names is not None:
            rows = [{}]
        decision = other.decide(rows[0])
        if self.problem.feedback is Feedback.BANDIT:
            other.learn(decision, correct=True)
        else:
            shown = self.problem.graph is None or self.problem.graph[decision._code, 0]
            other.learn(decision, **({"label": label} if shown else {}))
        other.play(rows, [label])
        other.scores(rows)

    # --- to keep --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file: weights, settings, generator, pending decisions. The old file or the new one.

        Labels must be texts, numbers, True, False or tuples of them.
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
            problem, waiting = self.problem, list(self.pending.values())
            return {
                "algorithm": self.algorithm,
                "classes": list(self.classes),
                "n_features": problem.n_features,
                "feedback": problem.feedback.word if problem.graph is None else problem.graph,
                "loss": problem.loss.word,
                "norm_promised": self._given.promised,
                "radius": problem.radius,
                "horizon": problem.horizon,
                "observe": self._core.observes,
                "core": self._core.as_tree(),
                **self._conditions.as_tree(),
                "reading": self.reading,
                "features": None if self._names is None else in_file.as_tree(self._names.encoder),
                "pending": as_tree(
                    waiting,
                    [self._row_of(d) for d in waiting],
                    problem.n_classes,
                    self._core.remembered,
                ),
            }

    def __setstate__(self, tree: dict[str, Any]) -> None:
        core = tree["core"]
        if type(tree["classes"]) is not list:
            raise ValueError("classes are missing")
        self.__init__(  # type: ignore[misc]  # through the same checks as everybody
            tree["algorithm"],
            classes=tree["classes"],
            n_features=tree["n_features"] or None,
            feedback=tree["feedback"],
            loss=tree["loss"],
            norm=core["norm"] if tree["norm_promised"] else None,
            radius=tree["radius"],
            horizon=tree["horizon"],
            observe=tree["observe"],
            control=core.get("control", 0.0),
            precision="single" if core.get("single", False) else "double",
            **core["given"],
        )
        self._core.restore(core)
        self._conditions = Conditions.from_tree(tree)
        self.reading = plain_dict("reading", tree["reading"])
        if tree.get("features") is not None:
            encoder = in_file.from_tree(tree["features"], self.problem.n_features)
            self._names = self._given.names = ByName(encoder, self._grow_features)
        for decision in from_tree(tree["pending"], self, self._core):
            self._open.hold(decision)

    # --- theory ---------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> Certificate | None:
        """The bound the run carries with it so far; None where the algorithm has none.

        Late answers end it, unless the algorithm was built for them (`delay`) or, with full information, keeps count of
        what they cost; then it is about the rounds answered so far. With `among` it is about rounds whose right label
        was available, U's loss being counted over the available labels, or over all, which is no less.
        """
        core = self._core
        if core.state is None or not isinstance(core.file, HasCertificate):
            return None
        rounding = self._rounding_of_own_draws()
        return core.file.certificate(core.settings, core.state)._replace(rounding=rounding)

    def _rounding_of_own_draws(self) -> Rounding:
        """Refuse where the run was not the one the theorem is about; what rounding did to it."""
        core = self._core
        self._conditions.check_own_draws(core.file, core.settings, core.control)
        return counted(core.rounding, core.settings)

    @property
    def observed(self) -> Observed | None:
        """What the answers so far prove of every linear rule; None without bandit feedback, or if not observed.

        For any algorithm, any data, and answers in any order; it is about the decisions that were answered, those of a
        log too. Refused once labels were added, or an answer was worth more than nothing and less than all.
        """
        core = self._core
        with self._use.reading:
            grew = self._conditions.grew
            if grew is not None and self.problem.feedback is Feedback.BANDIT:
                raise NoBoundError(f"labels were added after round {grew}: what was observed is of the old ones")
            if isinstance(core.seen, Nothing):
                return None
            if core.seen.count[0].partial:
                raise NoBoundError("an answer was neither right nor wrong: what is observed is for those alone")
            return cast(Observed, observer().proved(core.seen, core.decided - core.learned))

    @property
    def advice(self) -> Advice | None:
        """How the learner and its advisers got on so far; None where the algorithm has no advisers."""
        core = self._core
        if core.state is None or not isinstance(core.file, HasAdvice):
            return None
        return core.file.advice(core.settings, core.state)

    def bound(self, X: Any, y: Labels, trace: Trace | None = None, *, U: Any = None) -> Bound:
        """The tightest bound the theorem gives on the stream that was played.

        The best comparator in hindsight is found on (X, y), all rounds this learner has played; or give your own rule
        U, K × d. `trace`, where the loss is the truncated hinge, lets rounds the learner was sure and right about
        count nothing.
        """
        truth = self._classes.codes(y)
        if self.settings is None or not len(truth):
            raise NoBoundError("nothing was played yet")
        if len(truth) != self.rounds:
            raise NoBoundError(f"the learner has played {self.rounds} rounds, but this stream has {len(truth)}")
        if self.decided != self.rounds:
            raise NoBoundError(f"{self.decided - self.rounds} decisions have not been answered")
        core, problem = self._core, self.problem
        rounding = self._rounding_of_own_draws()
        self._conditions.check_loss_known(core.file, problem)
        rows, width = as_rows(X) if self._names is None else self._names.replayed(X, problem.n_features)[:2]
        if width != problem.n_features:
            raise InputError(f"X has {width} columns; the learner knows {problem.n_features} features")
        if problem.norm is None:
            problem = problem._replace(norm=self._conditions.longest)
        if trace is not None:
            core.check_own_trace(trace, truth)
        run = core.file, problem, self.settings, self.certificate, rounding, as_matrix(rows, width), truth, trace
        return bounds.tightest(*run) if U is None else bounds.for_rule(*run, U)

    def check(self, X: Any) -> None:
        """Refuse rows that this learner could not play: too wide, too long, not numbers. Changes nothing."""
        self._given.check_norm(self._given.rows(X).longest, "X")
