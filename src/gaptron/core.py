"""Core: the tuples of one algorithm (settings, state, scratch), their count and draws, and the compiled loop over them.

What comes in here was checked: rows are rows, labels are codes.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gaptron import growth, memory, snapshot
from gaptron.algorithm import HasCheck, HasMemory
from gaptron.algorithms import load
from gaptron.blocks import MOST, blocks
from gaptron.decision import Kept
from gaptron.errors import InputError, SettingError
from gaptron.given_values import positive
from gaptron.seeds import generator
from gaptron.trace import Trace
from gaptron.types import (
    Feedback,
    Flags,
    Growth,
    Integers,
    Matrix,
    Nothing,
    Problem,
    Round,
    Rounding,
    Row,
    Rows,
    RowsToCome,
    Sparse,
    Vector,
    named,
    new_round,
)
from gaptron.validation import block, n_rows, only_row, sealed_row

DECIDED, LEARNED = 0, 1  # places in `count`
SILENT: Matrix = np.zeros((1, 0))  # of one row: nobody advises
ANY: NDArray[np.bool_] = np.ones((1, 0), dtype=np.bool_)  # every label may be played
UNSEEN: Matrix = np.zeros((1, 0))  # no room for scores: they are read from the round
DENSE_BLOCK = 1 << 24  # numbers at most in a block of sparse rows that must be written out


class Core:
    """An algorithm at work on one problem."""

    def __init__(
        self,
        algorithm: str,
        problem: Problem,
        given: Mapping[str, Any],
        seed: int | None,
        observe: bool,
        control: float = 0.0,
        single: bool = False,
    ) -> None:
        self.algorithm = algorithm
        self.file = load(algorithm)
        self.problem = problem
        self.given = given  # settings of the caller's own
        self.settings: Any = None  # None while they wait for the norm of the first rows
        self.state: Any = None  # None before the first round
        self.sparse = False
        self.round: Any = None  # room for one round, and the algorithm's scratch for it
        self.scratch: Any = None
        self._rooms: list[tuple[Round, Any]] = []  # the same for those who look, as many as looked at once
        self.observes = observe and problem.feedback is Feedback.BANDIT
        self.seen: Any = Nothing()  # what the answers prove, kept beside the learner; Nothing: not kept
        self.seen_room: Vector = np.zeros(0)
        self.fresh = 0  # the decision that `round` and `scratch` still describe as it was made; 0: none
        self.count = named(decided=0, learned=0, trail=0)  # written by the compiled loop
        self._counted: Integers = plain(self.count).view(np.int64)  # the same numbers
        self._reward: Any = None  # and those of `round.answer`
        self._chance: Any = None
        self.mark: Any = None  # and of `round.mark`
        self.rng = generator(seed)
        self.single = single  # are the tables that the card names in single precision?
        self.control = control  # the share of decisions that is drawn uniformly
        self.remembered: tuple[str, ...] = ()  # the fields of its scratch that a decision keeps with its scores
        self._shown: Any = int(problem.feedback) if problem.graph is None else problem.graph
        self._look: Any = None  # the loop's verbs, compiled for these tuples' types
        self._commit_once: Any = None
        self._learn_once: Any = None
        try:
            self.settings = self.file.recommend(problem, **given)
        except SettingError:
            if problem.norm is not None:
                raise
            self.file.recommend(problem._replace(norm=1.0), **given)  # raises unless only the norm is missing

    @property
    def decided(self) -> int:
        """How many decisions were made."""
        return self._counted.item(DECIDED)

    @property
    def learned(self) -> int:
        """How many rounds were learned from."""
        return self._counted.item(LEARNED)

    @property
    def weights(self) -> Matrix:
        """W, K × d."""
        if self.state is None:
            return np.zeros((self.problem.n_classes, self.problem.n_features))
        return np.array(self.file.weights(self.state, self.sparse), dtype=np.float64)

    @property
    def rounding(self) -> Rounding | None:
        """What rounding the weights to single precision has done to the run, nothing in double; None: not counted."""
        return memory.rounding(self.state) if self.single else Rounding()

    # --- room -----------------------------------------------------------------------------------------------

    def begin(self, width: int, sparse: bool, longest: float | None) -> None:
        """Before the first round: settle the settings and make room for the weights."""
        if self.state is not None:
            return
        problem, settings = self.problem._replace(n_features=width), self.settings
        if settings is None:
            if longest == 0.0:
                raise InputError("X holds nothing but zeros, so no norm can be measured: give norm=...")
            if longest is not None:
                problem = problem._replace(norm=longest)
            settings = self.file.recommend(problem, **self.given)
        state = self._new_state(settings, problem, sparse)
        self._make_room(settings, problem, sparse)
        self._make_seen(problem, sparse)
        # The state last: whoever is interrupted before it begins anew.
        self.problem, self.settings, self.sparse, self.state = problem, settings, sparse, state

    def enlarge(self, problem: Problem, places: Integers, room: int, *, labels: bool) -> None:
        """Make room for more labels or features; `places`: where each old one stands among the `room` new ones."""
        settled = self.settings is not None
        settings = self.file.recommend(problem if settled else problem._replace(norm=1.0), **self.given)
        state = self.state
        if state is not None:
            growth.check_can_grow(self.algorithm, self.file, labels=labels)
            state = self._new_state(settings, problem, self.sparse)
            if memory.rounding(self.state) is None:
                state = memory.uncounted(state)
            growth.grow(self.file, settings, self.state, state, places, room, labels=labels, sparse=self.sparse)
            self._make_room(settings, problem, self.sparse)
            self._enlarge_seen(problem, places, room, labels=labels)
        self.problem, self.state, self.settings = problem, state, settings if settled else None

    def _new_state(self, settings: Any, problem: Problem, sparse: bool) -> Any:
        """Nothing learned yet, in the precision that was asked for; refused if it cannot fit."""
        tables = self.file.CARD.single if self.single else ()
        weights = problem.n_classes * problem.n_features
        seen = 16 * weights if self.observes else 0  # two sums in double precision
        way_out = ', or give precision="single"' if self.file.CARD.single and not self.single else ""
        way_out += ", or observe=False" if seen else ""
        memory.check_fits(problem, (4 if tables else 8) * weights + seen, way_out)  # at the least
        state = self.file.init(settings, problem, sparse)
        memory.check_fits(problem, memory.size(state, tables) + seen, way_out)
        return memory.in_single(state, tables) if tables else state

    def _make_seen(self, problem: Problem, sparse: bool) -> None:
        """Room for what the answers prove, where that is kept."""
        if self.observes:
            self.seen = observer().new_watch(problem.n_classes, problem.n_features, sparse)
            self.seen_room = np.zeros(problem.n_classes)

    def _enlarge_seen(self, problem: Problem, places: Integers, room: int, *, labels: bool) -> None:
        """More features are zeros that were always there. More labels end it: it is about rules for the old ones."""
        before = self.seen
        if isinstance(before, Nothing):
            return
        if labels and self.decided:
            self.observes, self.seen, self._learn_once = False, Nothing(), None
            return
        self._make_seen(problem, self.sparse)
        if not labels:
            growth.move(Growth(), before, self.seen, places, room, labels=False, sparse=self.sparse)

    def _make_room(self, settings: Any, problem: Problem, sparse: bool) -> None:
        self.round = self._new_round(problem.n_classes)
        answer, self.mark = plain(self.round.answer), plain(self.round.mark)
        self._reward, self._chance = answer["reward"], answer["chance"]
        self.scratch = self.file.scratch(settings, problem, sparse)
        self.remembered = self.file.remembers(settings) if isinstance(self.file, HasMemory) else ()
        self.fresh, self._rooms = 0, []

    def _new_round(self, K: int) -> Round:
        return new_round(K, len(self.file.NOTES), advice=self.file.CARD.advice)

    # --- one round ------------------------------------------------------------------------------------------

    def decide(self, x: Row, opinion: Vector, among: Flags) -> tuple[int, float]:
        """Draw a label, and count the decision. Returns the label, and the number it was drawn with."""
        self.fresh = 0
        u = self.rng.random()
        code = self._look_at(x, u, opinion, among, take=not self.control)
        if self.control:
            p = self.round.p
            p[:] = with_control(p, self.control, self.round.among)
            code = int(compiled_draw()(p, int(p.argmax()), u))
            self.commit(code)
        self.fresh = self.decided
        return code, u

    def commit(self, code: int) -> None:
        """The decision in `round` and `scratch` is taken, for this label, and counted."""
        self.round.answer[0].label = code
        if self._commit_once is None:
            taken = self.settings, self.state, self.round, self.scratch, self.count
            self._commit_once = _direct(compiled_loop().commit_once, *taken)
        self._commit_once(self.settings, self.state, self.round, self.scratch, self.count)

    def look_again(
        self, x: Row, code: int, probability: float, u: float, opinion: Vector, among: Flags, mark: Any = None
    ) -> None:
        """Fill the round as if the row were seen today; the label's probability is that of the draw.

        Not where the truth is told whatever was played: there the chance of the label weighs nothing, and two
        distributions would be mixed.
        """
        self._look_at(x, u, opinion, among)
        if mark is not None:
            self.round.mark[0] = mark[0]
        elif probability < 1.0:  # of another's log: whoever drew it did explore
            self.round.mark[0].free = 0
        if self.problem.feedback is not Feedback.FULL:
            self.round.p[code] = probability

    def learn(
        self,
        x: Row,
        code: int,
        truth: int,
        reward: float,
        chance: float,
        answered: Flags,
    ) -> None:
        """Learn from the round in `round` and `scratch`, and count it.

        `chance` is the probability that the draw gave the label shown or, where none is, the label played.
        """
        self.fresh = 0
        self._reward[0], self._chance[0] = reward, chance
        if self._learn_once is None:
            self._compile(x)
        given = code, truth, self.count, answered, self.seen, self.seen_room
        self._learn_once(self.settings, self.state, x, self.round, self.scratch, *given)

    def kept(self) -> Kept | None:
        """What a decision must keep of its own round, where a proof needs it."""
        if not self.remembered:
            return None
        return Kept(self.round.z.copy(), tuple(getattr(self.scratch, name).copy() for name in self.remembered))

    def recall(self, kept: Kept) -> None:
        """Put back what a decision kept, over what was seen when its row was looked at again."""
        self.round.z[:] = kept.scores
        for name, part in zip(self.remembered, kept.parts):
            getattr(self.scratch, name)[...] = part

    def _look_at(self, x: Row, u: float, opinion: Vector, among: Flags, *, take: bool = False) -> int:
        if self._look is None:
            self._compile(x)
        advice, allowed = opinion[None] if len(opinion) else SILENT, among[None] if len(among) else ANY
        tuples, room = (self.settings, self.state), (self.round, self.scratch)
        label: int = self._look(*tuples, only_row(x), u, advice, allowed, *room, self.count, take, UNSEEN, UNSEEN)
        return label

    def _compile(self, x: Row) -> None:
        """The loop's verbs as compiled for these tuples' types, to be called with no others.

        A verb itself looks at every field of every tuple to find its types, at each call; for one round that takes
        longer than the round. The row is given as `play` gives it, not for writing: so that what `play` has compiled
        is not compiled again.
        """
        x = sealed_row(x)
        loop, answered = compiled_loop(), np.zeros(1, dtype=np.bool_)
        tuples, room = (self.settings, self.state), (self.round, self.scratch)
        given: tuple[Any, ...] = only_row(x), 0.5, SILENT, ANY
        self._look = _direct(loop.look, *tuples, *given, *room, self.count, True, UNSEEN, UNSEEN)
        given = 0, 0, self.count, answered, self.seen, self.seen_room
        self._learn_once = _direct(loop.learn_once, *tuples, x, *room, *given)

    # --- many rounds ----------------------------------------------------------------------------------------

    def play(
        self,
        rows: Rows,
        truth: Integers,
        opinions: Matrix,
        among: NDArray[np.bool_],
        trace: Trace,
        progress: Callable[[int], None] | None,
    ) -> None:
        """Decide and learn round by round, and fill the trace. Whatever interrupts it finds count and state in step."""
        loop, width, most = compiled_loop(), self.problem.n_features, MOST
        if isinstance(rows, Sparse) and not self.sparse:
            most = max(1, min(MOST, DENSE_BLOCK // max(1, width)))
        if isinstance(rows, RowsToCome):
            most = min(MOST, rows.most)
        self.fresh = 0
        self.round.among[:] = True
        if len(self.round.advice):
            self.round.advice[:] = 0.0
        for part in blocks(n_rows(rows), most, progress):
            out = loop.Played(trace.codes[part], trace.top[part], trace.truth_probability[part], trace.notes[part])
            X = block(rows, part.start, part.stop, self.sparse, width)  # rows to come may widen the state
            draws, before = self.rng.bit_generator.state, self.learned
            try:
                u = self.rng.random(part.stop - part.start)
                tuples, room = (self.settings, self.state), (self.round, self.scratch)
                worth = np.array(trace.worth[part], order="C")  # a mapped file or a table's columns are of another type
                extra = opinions[part], among[part], worth
                left = self.count, out, self.seen, self.seen_room
                loop.play(*tuples, X, truth[part], u, self._shown, *extra, *room, *left)
            except BaseException:
                if self.learned == before:  # interrupted before the block: its draws are still to come
                    self.rng.bit_generator.state = draws
                raise

    def look(self, rows: Rows, width: int, opinions: Matrix, among: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
        """Scores and distributions. Uses no room but its own, so that many threads may look at once."""
        T, K = n_rows(rows), self.problem.n_classes
        Z, P = np.zeros((T, K)), np.full((T, K), 1.0 / K)
        if self.settings is None:  # before the first round every score is zero and nothing speaks for any label
            if among.shape[1]:
                Z, P = np.where(among, 0.0, -np.inf), among / among.sum(axis=1, keepdims=True)
            return Z, P
        state, problem = self.state, self.problem._replace(n_features=width)
        if state is None:
            state = self._new_state(self.settings, problem, False)
        loop, rooms = compiled_loop(), self._rooms if self.state is not None else []
        try:
            rd, work = rooms.pop()  # making one takes longer than looking at a row
        except IndexError:
            rd, work = self._new_round(K), self.file.scratch(self.settings, problem, self.sparse)
        step = max(1, min(MOST, DENSE_BLOCK // max(1, width)))
        if isinstance(rows, RowsToCome):
            step = min(step, rows.most)
        for start in range(0, T, step):
            part = slice(start, min(start + step, T))
            X = block(rows, part.start, part.stop, self.sparse, width)
            given, seen = (X, 0.5, opinions[part], among[part]), (Z[part], P[part])
            verb = self._look if self._look is not None and _like_one_row(X) else loop.look
            verb(self.settings, state, *given, rd, work, self.count, False, *seen)
        rooms.append((rd, work))
        return Z, with_control(P, self.control, among if among.shape[1] else np.ones(K, bool)) if self.control else P

    def check_own_trace(self, trace: Trace, truth: Integers) -> None:
        """Refuse a trace of another run, or of other labels: a bound would trust it."""
        if trace.rounds != len(truth):
            raise InputError(f"the trace has {trace.rounds} rounds, the stream {len(truth)}")
        if compiled_loop().trail_of(*trace.as_played, 0) != self.count[0].trail:
            raise InputError("this trace is of another run: give what this learner's own play returned, all of it")
        if not np.array_equal(trace.truth, truth):
            raise InputError("the labels of this trace are not those of y")

    # --- in a file ------------------------------------------------------------------------------------------

    def as_tree(self) -> dict[str, Any]:
        """Settings, state, count and draws as plain values."""
        return {
            "norm": self.problem.norm,
            "given": dict(self.given),
            "control": self.control,
            "single": self.single,
            "settings": snapshot.spread(self.settings),
            "sparse": self.sparse,
            "state": snapshot.spread(self.state),
            "generator": self.rng.bit_generator.state,
            "count": snapshot.spread(self.count),
            "observed": snapshot.spread(self.seen) if self.observes and self.state is not None else None,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        """Take up what `as_tree` made of another core for the same problem. Every number is checked."""
        if tree["settings"] is None and tree["state"] is not None:
            raise ValueError("settings are missing")
        problem = self.problem._replace(norm=positive("norm", tree["norm"]))
        self.problem, self.sparse = problem, bool(tree["sparse"])
        if tree["settings"] is not None:
            self.settings = snapshot.same_settings(self.file.recommend(problem, **self.given), tree["settings"])
        if tree["state"] is not None:
            snapshot.check_room(problem.n_classes, problem.n_features, tree["state"])
            fresh = self._new_state(self.settings, problem, self.sparse)
            if "rounding" not in tree["state"]:  # in double, or of a version that did not count it
                fresh = memory.uncounted(fresh)
            self.state = snapshot.fill(fresh, tree["state"], "state")
            if isinstance(self.file, HasCheck):
                self.file.check_state(self.settings, problem, self.state)
            self._make_room(self.settings, problem, self.sparse)
        self.rng.bit_generator.state = tree["generator"]
        self.count = snapshot.fill(self.count, tree["count"], "count")
        self._counted = plain(self.count).view(np.int64)
        if self.learned > self.decided:
            raise ValueError("more rounds were learned from than decided")
        self._restore_seen(tree)

    def _restore_seen(self, tree: dict[str, Any]) -> None:
        if (tree["observed"] is not None) != (self.observes and self.state is not None):
            raise ValueError("what was observed is missing, or should not be there")
        if tree["observed"] is not None:
            self._make_seen(self.problem, self.sparse)
            self.seen = snapshot.fill(self.seen, tree["observed"], "observed")
            observer().check(self.seen, self.learned)


@functools.cache
def compiled_loop() -> ModuleType:
    """The compiled loop, imported at first use so that `import gaptron` stays quick."""
    return importlib.import_module("gaptron.kernels.play")


@functools.cache
def observer() -> ModuleType:
    """What is kept beside a bandit learner, compiled; imported at first use like the loop."""
    return importlib.import_module("gaptron.kernels.observed")


def compiled_draw() -> Callable[[Vector, int, float], int]:
    """The verb that draws a label from a distribution."""
    verb: Callable[[Vector, int, float], int] = importlib.import_module("gaptron.kernels.simplex").draw
    return verb


def with_control(p: Vector, share: float, among: NDArray[np.bool_]) -> Vector:
    """Distributions over labels, a share of which is drawn uniformly over the labels available."""
    mixed: Vector = (1.0 - share) * p + share * among / among.sum(axis=-1, keepdims=True)
    return mixed


def plain(record: Any) -> NDArray[Any]:
    """A record array's numbers without its own way of reading them, which takes longer than half a round."""
    return record.view(np.ndarray)  # type: ignore[no-any-return]


def _like_one_row(X: Any) -> bool:
    """Are these rows of the types that one row has, for which a verb may have been compiled already?"""
    if isinstance(X, Sparse):
        return X.indptr.dtype == X.indices.dtype == np.int32 and X.values.dtype == np.float64
    return bool(X.dtype == np.float64)


def _direct(verb: Any, *arguments: Any) -> Any:
    """The verb as compiled for these types of arguments. Interpreted there is nothing to find."""
    return verb.compile(tuple(map(verb.typeof_pyval, arguments))) if hasattr(verb, "typeof_pyval") else verb
