"""Engine: settings, state and scratch of one algorithm, its counts and random draws, and the compiled loop over them.

Arguments are checked before they arrive here: examples are arrays of numbers, labels are codes.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron.algorithms import load
from gaptron.algorithms.protocol import HasCheck, HasLateFields, HasLoggedDecisions
from gaptron.data import state_tree
from gaptron.data.examples import Examples, only_row, sealed_row
from gaptron.data.values import positive
from gaptron.errors import InputError, SettingError
from gaptron.kernels.compile.specialize import specialize
from gaptron.learner import growth, memory
from gaptron.learner.chunks import MOST
from gaptron.learner.seeds import generator
from gaptron.learner.settings import recommended
from gaptron.learner.trace import Trace
from gaptron.types import (
    Feedback,
    Flags,
    Growth,
    Integers,
    Matrix,
    Nothing,
    Problem,
    Round,
    Row,
    Sparse,
    Vector,
    named,
    new_round,
)

DECIDED, LEARNED = 0, 1  # indices of `count`
NO_ADVICE: Matrix = np.zeros((1, 0))  # for one example
ALL_AVAILABLE: NDArray[np.bool_] = np.ones((1, 0), dtype=np.bool_)
NO_OUTPUT: Matrix = np.zeros((1, 0))  # scores and distribution are read from the round
Saved = tuple[Any, ...]  # copies of the fields `late_fields`
DENSE_BLOCK = 1 << 24  # the most numbers of a chunk of sparse examples that is converted to dense ones


class Engine:
    """One algorithm on one problem."""

    def __init__(
        self,
        name: str,
        problem: Problem,
        overrides: Mapping[str, Any],
        seed: int | None,
        observe: bool,
        epsilon: float = 0.0,
        single: bool = False,
    ) -> None:
        self.name = name
        self.algorithm = load(name)
        self.problem = problem
        self.overrides = overrides  # the settings that the caller gave
        self.settings: Any = None  # None until the norm of the first examples is known
        self.state: Any = None  # None before the first round
        self.sparse = False
        self.round: Any = None  # the buffers of one round, and the algorithm's scratch
        self.scratch: Any = None
        self._buffers: list[tuple[Round, Any]] = []  # the same for `score`: one per thread that scores at the same time
        self.observes = observe and problem.feedback is Feedback.BANDIT
        self.evidence: Any = Nothing()  # what the feedback proves about any linear rule; Nothing: not kept
        self.evidence_buffer: Vector = np.zeros(0)
        self.last_scored_round = 0  # the decision that `round` and `scratch` describe as it was made; 0: none
        self.count = named(decided=0, learned=0, trail=0)  # written by the compiled loop
        self._counted: Integers = plain(self.count).view(np.int64)  # views, which are faster to read and write
        self._reward: Any = None  # of `round.feedback`
        self._propensity: Any = None
        self._late_parts: tuple[Any, ...] = ()  # of `late_fields`
        self.rng = generator(seed)
        self.single = single  # are the tables of `Card.single` in single precision?
        self.epsilon = epsilon  # the share of decisions that are drawn uniformly
        self.late_fields: tuple[str, ...] = ()  # the fields of scratch or round that a decision saves
        self._adopt_logged = self.algorithm.adopt_logged if isinstance(self.algorithm, HasLoggedDecisions) else None
        self._feedback: Any = int(problem.feedback) if problem.graph is None else problem.graph
        self._score: Any = None  # functions of the loop, compiled for the types of these tuples
        self._commit_once: Any = None
        self._learn_once: Any = None
        try:
            self.settings = recommended(self.algorithm, problem, overrides)
        except SettingError:
            if problem.norm is not None:
                raise
            recommended(self.algorithm, problem._replace(norm=1.0), overrides)  # raises unless only the norm is missing

    @property
    def decided(self) -> int:
        """The number of decisions."""
        return self._counted.item(DECIDED)

    @property
    def learned(self) -> int:
        """The number of rounds whose feedback was learned from."""
        return self._counted.item(LEARNED)

    @property
    def weights(self) -> Matrix:
        """W, K × d."""
        if self.state is None:
            return np.zeros((self.problem.n_classes, self.problem.n_features))
        return np.array(self.algorithm.weights(self.state, self.sparse), dtype=np.float64)

    @property
    def own_epsilon(self) -> float:
        """The algorithm's own setting epsilon."""
        settings = self.settings
        if settings is None:  # the norm is not known, and epsilon does not depend on it
            settings = recommended(self.algorithm, self.problem._replace(norm=1.0), self.overrides)
        return float(settings.epsilon)

    def change_own_epsilon(self, epsilon: float) -> None:
        """Change the algorithm's own setting epsilon, from the next decision on."""
        overrides, problem = {**self.overrides, "epsilon": epsilon}, self.problem
        recommended(self.algorithm, problem if problem.norm is not None else problem._replace(norm=1.0), overrides)
        self.overrides = overrides
        if self.settings is not None:
            self.settings = self.settings._replace(epsilon=epsilon)

    # --- buffers --------------------------------------------------------------------------------------------

    def begin(self, width: int, sparse: bool, longest: float | None) -> None:
        """Before the first round: choose the settings and make the state."""
        if self.state is not None:
            return
        problem, settings = self.problem._replace(n_features=width), self.settings
        if settings is None:
            if longest == 0.0:
                raise InputError("every example in X is zero, so the norm cannot be measured: give norm=...")
            if longest is not None:
                problem = problem._replace(norm=longest)
            settings = recommended(self.algorithm, problem, self.overrides)
        state = self._new_state(settings, problem, sparse)
        self._make_buffers(settings, problem, sparse)
        self._new_evidence(problem, sparse)
        # The state comes last: an interruption before it leaves an engine that has not begun.
        self.problem, self.settings, self.sparse, self.state = problem, settings, sparse, state

    def enlarge(self, problem: Problem, places: Integers, size: int, *, labels: bool) -> None:
        """Add labels or features; `places` has the index of each old one among the `size` new ones."""
        settled = self.settings is not None
        settings = recommended(self.algorithm, problem if settled else problem._replace(norm=1.0), self.overrides)
        state = self.state
        if state is not None:
            growth.check_can_grow(self.name, self.algorithm, labels=labels)
            state = self._new_state(settings, problem, self.sparse)
            growth.grow(self.algorithm, settings, self.state, state, places, size, labels=labels, sparse=self.sparse)
            self._make_buffers(settings, problem, self.sparse)
            self._enlarge_evidence(problem, places, size, labels=labels)
        self.problem, self.state, self.settings = problem, state, settings if settled else None

    def reset_features(self, features: Integers) -> None:
        """Set what was learned about some features back to the first round: they mean something else from now on."""
        if self.state is None or not len(features):
            return
        d = self.problem.n_features
        fresh, wider = (
            self._new_state(self.settings, self.problem._replace(n_features=n), self.sparse) for n in (d, d + 1)
        )
        growth.reset(self.algorithm.CARD.growth, self.state, fresh, wider, features, d, sparse=self.sparse)

    def _new_state(self, settings: Any, problem: Problem, sparse: bool) -> Any:
        """A state before the first round, in the chosen precision. Raises `InputError` if memory does not suffice."""
        tables = self.algorithm.CARD.single if self.single else ()
        weights = problem.n_classes * problem.n_features
        evidence = 16 * weights if self.observes else 0  # two sums in double precision
        remedy = ', or give precision="single"' if self.algorithm.CARD.single and not self.single else ""
        remedy += ", or observe=False" if evidence else ""
        memory.check_fits(problem, (4 if tables else 8) * weights + evidence, remedy)  # a lower bound
        state = self.algorithm.init(settings, problem, sparse)
        memory.check_fits(problem, memory.size(state, tables) + evidence, remedy)
        return memory.in_single(state, tables) if tables else state

    def _new_evidence(self, problem: Problem, sparse: bool) -> None:
        if self.observes:
            self.evidence = evidence_module().new_evidence(problem.n_classes, problem.n_features, sparse)
            self.evidence_buffer = np.zeros(problem.n_classes)

    def _enlarge_evidence(self, problem: Problem, places: Integers, size: int, *, labels: bool) -> None:
        """Add features, which were zero so far. New labels end the evidence, which is about rules for the old ones."""
        before = self.evidence
        if isinstance(before, Nothing):
            return
        if labels and self.decided:
            self.observes, self.evidence, self._learn_once = False, Nothing(), None
            return
        self._new_evidence(problem, self.sparse)
        if not labels:
            growth.move(Growth(), before, self.evidence, places, size, labels=False, sparse=self.sparse)

    def _make_buffers(self, settings: Any, problem: Problem, sparse: bool) -> None:
        self.round = self._new_round(problem.n_classes)
        feedback = plain(self.round.feedback)
        self._reward, self._propensity = feedback["reward"], feedback["propensity"]
        self.scratch = self.algorithm.scratch(settings, problem, sparse)
        self.late_fields = self.algorithm.late_fields(settings) if isinstance(self.algorithm, HasLateFields) else ()
        holders = [self.scratch if name in self.scratch._fields else self.round for name in self.late_fields]
        self._late_parts = tuple(plain(getattr(holder, name)) for holder, name in zip(holders, self.late_fields))
        self.last_scored_round, self._buffers = 0, []

    def _new_round(self, K: int) -> Round:
        return new_round(K, len(self.algorithm.NOTES), advice=self.algorithm.CARD.advice)

    # --- one round ------------------------------------------------------------------------------------------

    def decide(self, x: Row, advice_row: Vector, available: Flags) -> tuple[int, float]:
        """Draw a label, and count the decision. Returns the label's code and the number u it was drawn with."""
        u = self.rng.random()
        code = self._score_one(x, u, advice_row, available, take=not self.epsilon)
        if self.epsilon:
            p = self.round.p
            p[:] = with_epsilon(p, self.epsilon, self.round.available)
            code = int(compiled_draw()(p, int(p.argmax()), u))
            self.commit(code)
        self.last_scored_round = self.decided
        return code, u

    def commit(self, code: int) -> None:
        """Take the decision in `round` and `scratch` for this label, and count it."""
        self.round.feedback[0].label = code
        if self._commit_once is None:
            arguments = self.settings, self.state, self.round, self.scratch, self.count
            self._commit_once = specialize(loop_module().commit_once, *arguments)
        self._commit_once(self.settings, self.state, self.round, self.scratch, self.count)

    def rescore(
        self, x: Row, code: int, propensity: float, u: float, advice_row: Vector, available: Flags, saved: Saved | None
    ) -> None:
        """Score an example again with today's weights, and restore what its decision saved.

        The label's probability becomes the propensity of the draw. With full information it stays: there `learn` does
        not use it, and two distributions would be mixed.
        """
        self._score_one(x, u, advice_row, available)
        if self.problem.feedback is not Feedback.FULL:
            self.round.p[code] = propensity
        if saved is not None:
            for part, was in zip(self._late_parts, saved):
                part[...] = was

    def score_logged(
        self, x: Row, code: int, propensity: float, u: float, advice_row: Vector, available: Flags
    ) -> None:
        """Score an example with today's weights, for a decision that another policy made."""
        self.rescore(x, code, propensity, u, advice_row, available, None)
        if self._adopt_logged is not None:
            self._adopt_logged(self.settings, self.scratch, propensity)

    def learn(
        self,
        x: Row,
        code: int,
        truth: int,
        reward: float,
        propensity: float,
        learned: Flags,
    ) -> None:
        """Learn from the round in `round` and `scratch`, and count it.

        `propensity` is the probability of the revealed label or, where none is revealed, of the label played.
        """
        self._reward[0], self._propensity[0] = reward, propensity
        if self._learn_once is None:
            self._compile(x)
        rest = code, truth, self.count, learned, self.evidence, self.evidence_buffer
        self._learn_once(self.settings, self.state, x, self.round, self.scratch, *rest)

    def saved_scratch(self) -> Saved | None:
        """Copy the fields `late_fields`, which a decision saves until its feedback arrives; None: there are none."""
        return tuple([part.copy() for part in self._late_parts]) if self._late_parts else None

    def _score_one(self, x: Row, u: float, advice_row: Vector, available: Flags, *, take: bool = False) -> int:
        if self._score is None:
            self._compile(x)
        self.last_scored_round = 0  # before the buffers change, in case of an interruption
        advice = advice_row[None] if len(advice_row) else NO_ADVICE
        allowed = available[None] if len(available) else ALL_AVAILABLE
        tuples, buffer = (self.settings, self.state), (self.round, self.scratch)
        output = self.count, take, NO_OUTPUT, NO_OUTPUT
        label: int = self._score(*tuples, only_row(x), u, advice, allowed, *buffer, *output)
        return label

    def _compile(self, x: Row) -> None:
        """Compile the functions of the loop for the types of these tuples.

        The example is read-only, as in `play`, so that what `play` has compiled is not compiled again.
        """
        x = sealed_row(x)
        loop, learned = loop_module(), np.zeros(1, dtype=np.bool_)
        tuples, buffer = (self.settings, self.state), (self.round, self.scratch)
        example = only_row(x), 0.5, NO_ADVICE, ALL_AVAILABLE
        self._score = specialize(loop.score, *tuples, *example, *buffer, self.count, True, NO_OUTPUT, NO_OUTPUT)
        rest = 0, 0, self.count, learned, self.evidence, self.evidence_buffer
        self._learn_once = specialize(loop.learn_once, *tuples, x, *buffer, *rest)

    # --- many rounds ----------------------------------------------------------------------------------------

    def chunk_size(self, examples: Examples) -> int:
        """How many examples to play at a time: fewer where sparse rows must be converted to dense ones."""
        if not isinstance(examples.rows, Sparse) or self.sparse:
            return MOST
        return max(1, min(MOST, DENSE_BLOCK // max(1, examples.width)))

    def play(
        self, examples: Examples, advice_rows: Matrix, available: NDArray[np.bool_], trace: Trace, part: slice
    ) -> None:
        """Play one chunk: decide and learn round by round, and fill the rounds `part` of the trace.

        An interruption finds count, state and generator as they were before the chunk, or as they are after it.
        """
        loop = loop_module()
        self.last_scored_round = 0
        self.round.available[:] = True
        if len(self.round.advice):
            self.round.advice[:] = 0.0
        out = loop.Played(trace.codes[part], trace.top[part], trace.truth_probability[part], trace.notes[part])
        X = examples.in_layout(self.sparse)
        draws, before = self.rng.bit_generator.state, self.learned
        try:
            u = self.rng.random(len(examples))
            tuples, buffer = (self.settings, self.state), (self.round, self.scratch)
            rewards = np.array(trace.rewards[part], order="C")  # a mapped file or a table's columns are of another type
            extra = advice_rows[part], available[part], rewards
            left = self.count, out, self.evidence, self.evidence_buffer
            loop.play(*tuples, X, trace.truth[part], u, self._feedback, *extra, *buffer, *left)
        except BaseException:
            if self.learned == before:  # interrupted before the chunk: its draws are still to come
                self.rng.bit_generator.state = draws
            raise

    def score(self, examples: Examples, advice_rows: Matrix, available: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
        """Scores and distributions. Uses its own buffers, so that several threads may score at the same time."""
        T, K, width = len(examples), self.problem.n_classes, examples.width
        Z, P = np.zeros((T, K)), np.full((T, K), 1.0 / K)
        if self.settings is None:  # the first examples set the norm: until then every score is zero
            if available.shape[1]:
                Z, P = np.where(available, 0.0, -np.inf), available / available.sum(axis=1, keepdims=True)
            return Z, P
        state, problem = self.state, self.problem._replace(n_features=width)
        if state is None:
            state = self._new_state(self.settings, problem, False)
        loop, buffers = loop_module(), self._buffers if self.state is not None else []
        try:
            rd, work = buffers.pop()  # making one takes longer than looking at a row
        except IndexError:
            rd, work = self._new_round(K), self.algorithm.scratch(self.settings, problem, self.sparse)
        step = max(1, min(MOST, DENSE_BLOCK // max(1, width)))
        for start in range(0, T, step):
            part = slice(start, min(start + step, T))
            X = (examples if T <= step else examples[part]).in_layout(self.sparse)
            chunk, out = (X, 0.5, advice_rows[part], available[part]), (Z[part], P[part])
            score = self._score if self._score is not None and _like_one_example(X) else loop.score
            score(self.settings, state, *chunk, rd, work, self.count, False, *out)
        buffers.append((rd, work))
        if self.epsilon:
            P = with_epsilon(P, self.epsilon, available if available.shape[1] else np.ones(K, bool))
        return Z, P

    def check_own_trace(self, trace: Trace, truth: Integers) -> None:
        """Raise `InputError` for a trace of another run or of other labels, on which a bound would be wrong."""
        if trace.rounds != len(truth):
            raise InputError(f"the trace has {trace.rounds} rounds, the stream {len(truth)}")
        if loop_module().trail_of(*trace.as_played, 0) != self.count[0].trail:
            raise InputError("this trace is of another run: give the whole trace that this learner's play returned")
        if not np.array_equal(trace.truth, truth):
            raise InputError("the labels of this trace are not those of y")

    # --- in a file ------------------------------------------------------------------------------------------

    def as_tree(self) -> dict[str, Any]:
        """Settings, state, counts and generator as plain values."""
        return {
            "norm": self.problem.norm,
            "overrides": dict(self.overrides),
            "epsilon": self.epsilon,
            "single": self.single,
            "settings": state_tree.spread(self.settings),
            "sparse": self.sparse,
            "state": state_tree.spread(self.state),
            "generator": self.rng.bit_generator.state,
            "count": state_tree.spread(self.count),
            "observed": state_tree.spread(self.evidence) if self.observes and self.state is not None else None,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        """Restore what `as_tree` returned for the same problem. Raises `ValueError` for impossible numbers."""
        if tree["settings"] is None and tree["state"] is not None:
            raise ValueError("settings are missing")
        problem = self.problem._replace(norm=positive("norm", tree["norm"]))
        self.problem, self.sparse = problem, bool(tree["sparse"])
        if tree["settings"] is not None:
            self.settings = state_tree.same_settings(
                recommended(self.algorithm, problem, self.overrides), tree["settings"]
            )
        if tree["state"] is not None:
            state_tree.check_size(problem.n_classes, problem.n_features, tree["state"])
            empty = self._new_state(self.settings, problem, self.sparse)
            self.state = state_tree.fill(empty, tree["state"], "state")
            if isinstance(self.algorithm, HasCheck):
                self.algorithm.check_state(self.settings, problem, self.state)
            self._make_buffers(self.settings, problem, self.sparse)
        self.rng.bit_generator.state = tree["generator"]
        self.count = state_tree.fill(self.count, tree["count"], "count")
        self._counted = plain(self.count).view(np.int64)
        if self.learned > self.decided:
            raise ValueError("the file has more learned rounds than decisions")
        self._restore_evidence(tree)

    def _restore_evidence(self, tree: dict[str, Any]) -> None:
        if (tree["observed"] is not None) != (self.observes and self.state is not None):
            raise ValueError("`observed` is missing, or is there without observe=True")
        if tree["observed"] is not None:
            self._new_evidence(self.problem, self.sparse)
            self.evidence = state_tree.fill(self.evidence, tree["observed"], "observed")
            evidence_module().check(self.evidence, self.learned)


@functools.cache
def loop_module() -> ModuleType:
    """The compiled loop, imported at first use to keep `import gaptron` fast."""
    return importlib.import_module("gaptron.kernels.play")


@functools.cache
def evidence_module() -> ModuleType:
    """The compiled evidence of a bandit learner, imported at first use to keep `import gaptron` fast."""
    return importlib.import_module("gaptron.kernels.observed")


def compiled_draw() -> Callable[[Vector, int, float], int]:
    """The function that draws a label from a distribution."""
    draw: Callable[[Vector, int, float], int] = importlib.import_module("gaptron.kernels.simplex").draw
    return draw


def with_epsilon(p: Vector, share: float, available: NDArray[np.bool_]) -> Vector:
    """Mix distributions with the uniform distribution over the available labels, with weight `share`."""
    mixed: Vector = (1.0 - share) * p + share * available / available.sum(axis=-1, keepdims=True)
    return mixed


def plain(record: Any) -> NDArray[Any]:
    """A view of a record array without numpy's record access, which takes longer than half a round."""
    return record.view(np.ndarray)  # type: ignore[no-any-return]


def _like_one_example(X: Any) -> bool:
    """Whether these examples have the types of one example, for which `score` may be compiled already."""
    if isinstance(X, Sparse):
        return X.indptr.dtype == X.indices.dtype == np.int32 and X.values.dtype == np.float64
    return bool(X.dtype == np.float64)
