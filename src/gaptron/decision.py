"""A label that was drawn and waits for its answer, and all that wait."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from gaptron import snapshot
from gaptron.types import UNKNOWN, Flags, Row, Vector, named

if TYPE_CHECKING:
    from gaptron.core import Core
    from gaptron.learner import Learner

FIRST_SWEEP = 1_024
SILENCE: Vector = np.zeros(0)  # no advice
EVERY: Flags = np.zeros(0, dtype=np.bool_)  # every label may be played


class Kept(NamedTuple):
    """What a proof needs of a decision's own round when the answer comes late."""

    scores: Vector
    parts: tuple[Any, ...]  # the fields of the scratch that the algorithm `remembers`


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Decision:
    """One label drawn, and all that is needed to learn from its answer later.

    It holds plain values: the row, the label and what it was drawn from. Its scores are not kept; an answer that comes
    late is learned from as if the row were seen today.
    """

    label: Any
    probability: float
    round: int
    _code: int = field(repr=False)
    _x: Row = field(repr=False)
    _p: Vector = field(repr=False)  # what the label was drawn from
    _u: float = field(repr=False)  # the number it was drawn with
    _advice: Vector = field(repr=False)  # what the caller's model said of the row; empty: nothing
    _among: Flags = field(repr=False)  # which labels could be played; empty: all
    _mark: Any = field(repr=False)  # what a late answer needs as it was then: `Round.mark`
    _answered: Flags = field(repr=False)  # set by the compiled code that learns: no interruption comes between
    _owner: "Learner" = field(repr=False)
    _kept: "Kept | None" = field(repr=False, default=None)  # where a proof needs its own scores

    @property
    def distribution(self) -> NDArray[np.float64]:
        """The chance of every label, in the order of the learner's classes."""
        return self._p.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of an open decision is the copied learner's own; one that was answered is a record."""
        if self in self._owner._open:
            return _decision_of, (self._owner, self.round)
        return Decision, tuple(getattr(self, name) for name in self.__slots__ if name != "__weakref__")


def _decision_of(learner: "Learner", round: int) -> Decision:
    return learner.pending[round]


class Pending:
    """The decisions one learner has made and not been told about, by round.

    They are held weakly: nobody can answer a decision that its caller has dropped, so dropping one frees it, and a
    learner whose answers never come does not grow. Decisions that come from a file are held until they are answered or
    forgotten, for nobody else holds them.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, ref[Decision]] = {}
        self._held: dict[int, Decision] = {}
        self._sweep = FIRST_SWEEP  # how many there may be before dropped ones are looked for

    def add(self, decision: Decision) -> None:
        """Watch a decision."""
        self._waiting[decision.round] = ref(decision)
        if len(self._waiting) > self._sweep:
            self._waiting = {round: seen for round, seen in self._waiting.items() if seen() is not None}
            self._sweep = max(FIRST_SWEEP, 2 * len(self._waiting))

    def hold(self, decision: Decision) -> None:
        """Watch a decision, and keep it."""
        self.add(decision)
        self._held[decision.round] = decision

    def close(self, decision: Decision) -> None:
        """It was answered, or never will be."""
        self._waiting.pop(decision.round, None)
        self._held.pop(decision.round, None)

    def __contains__(self, decision: Decision) -> bool:
        seen = self._waiting.get(decision.round)
        return seen is not None and seen() is decision and not decision._answered[0]

    def by_round(self) -> dict[int, Decision]:
        """All of them that somebody still holds, the oldest first."""
        waiting = {round: seen() for round, seen in sorted(self._waiting.items())}
        return {
            round: decision for round, decision in waiting.items() if decision is not None and not decision._answered[0]
        }


# --- in a file ------------------------------------------------------------------------------------------------

COLUMNS = ("round", "code", "drawn_from", "drawn_with", "advice", "among", "last", "free", "apart")


def as_tree(waiting: list[Decision], rows: list[Row], n_classes: int, remembered: tuple[str, ...]) -> dict[str, Any]:
    """Decisions as plain columns, one entry a decision; `remembered` names what each has kept."""
    shape = (len(waiting), n_classes)
    silent, every = np.zeros(n_classes), np.ones(n_classes, dtype=np.bool_)
    return {
        "round": np.array([d.round for d in waiting], dtype=np.int64),
        "code": np.array([d._code for d in waiting], dtype=np.int64),
        "drawn_from": np.array([d._p for d in waiting], dtype=np.float64).reshape(shape),
        "drawn_with": np.array([d._u for d in waiting], dtype=np.float64),
        "advice": np.array([d._advice if len(d._advice) else silent for d in waiting], dtype=np.float64).reshape(shape),
        "among": np.array([d._among if len(d._among) else every for d in waiting], dtype=np.bool_).reshape(shape),
        "last": np.array([d._mark[0].last for d in waiting], dtype=np.int64),
        "free": np.array([d._mark[0].free for d in waiting], dtype=np.int64),
        "apart": np.array([d._mark[0].apart for d in waiting], dtype=np.int64),
        "rows": snapshot.rows_of(rows),
        "kept": [_kept_tree(d._kept, remembered) for d in waiting if d._kept is not None],
    }


def from_tree(tree: dict[str, Any], learner: "Learner", core: "Core") -> list[Decision]:
    """The decisions of `as_tree`, every number checked."""
    kept, remembered = core.kept(), core.remembered  # what each must have kept: types and shapes
    snapshot.check_words(tree, (*COLUMNS, "rows", "kept"), "pending")
    K, n = learner.problem.n_classes, len(snapshot.array_of(tree["round"], "pending.round"))
    fresh = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, K)), np.zeros(n), np.zeros((n, K))
    more = np.zeros((n, K), np.bool_), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    rounds, codes, P, u, advice, among, last, free, apart = (
        snapshot.fill(empty, tree[name], f"pending.{name}") for name, empty in zip(COLUMNS, (*fresh, *more))
    )
    if n and not (rounds.min() >= 1 and rounds.max() <= learner.decided and len(np.unique(rounds)) == n):
        raise ValueError("a decision is pending that was never made, or twice")
    if n and not (codes.min() >= 0 and codes.max() < K):
        raise ValueError("a pending decision has a label that is none")
    if not ((P >= 0.0).all() and (P <= 1.0).all() and (P[np.arange(n), codes] > 0.0).all()):
        raise ValueError("a pending decision was drawn from no distribution")
    if not among[np.arange(n), codes].all():
        raise ValueError("a pending decision has a label that was not available")
    if not (
        (last >= UNKNOWN).all() and (last < K).all() and np.isin(free, (0, 1)).all() and np.isin(apart, (0, 1)).all()
    ):
        raise ValueError("a pending decision holds a mark out of its range")
    if not ((u >= 0.0).all() and (u < 1.0).all() and (advice >= 0.0).all()):
        raise ValueError("a pending decision holds a number out of its range")
    if advice.any() and not core.file.CARD.advice:  # there would be no room for it
        raise ValueError("a pending decision was advised, and this algorithm takes no advice")
    rows = snapshot.rows_from(tree["rows"], n, core.sparse, learner.problem.n_features)
    sheets: list[Kept | None] = [None] * n
    if type(tree["kept"]) is not list or len(tree["kept"]) != (0 if kept is None else n):
        raise ValueError("pending.kept does not fit the decisions")
    if kept is not None:
        sheets = [_kept_from(sheet, kept, remembered, allowed) for sheet, allowed in zip(tree["kept"], among)]
    return [
        Decision(
            learner.classes[code],
            float(p[code]),
            int(number),
            int(code),
            row,
            p.copy(),
            float(draw),
            opinion.copy() if opinion.any() else SILENCE,
            EVERY if allowed.all() else allowed.copy(),
            named(last=int(before), free=int(paid), apart=int(other)),
            np.zeros(1, dtype=np.bool_),
            learner,
            sheet,
        )
        for number, code, p, draw, opinion, allowed, before, paid, other, row, sheet in zip(
            rounds, codes, P, u, advice, among, last, free, apart, rows, sheets
        )
    ]


def _kept_tree(kept: Kept, remembered: tuple[str, ...]) -> dict[str, Any]:
    """Minus infinity stands where a label was not available: its scores are put back, its other parts not looked at."""
    named_parts = {"scores": kept.scores, **dict(zip(remembered, map(snapshot.spread, kept.parts)))}
    return {
        name: np.where(np.isneginf(part), 0.0, part) if isinstance(part, np.ndarray) else part
        for name, part in named_parts.items()
    }


def _kept_from(tree: Any, like: Kept, remembered: tuple[str, ...], among: Flags) -> Kept:
    snapshot.check_words(tree, ("scores", *remembered), "pending.kept")
    scores = snapshot.fill(like.scores.copy(), tree["scores"], "pending.kept.scores")
    scores[~among] = -np.inf
    parts = zip(remembered, like.parts)
    return Kept(scores, tuple(snapshot.fill(part.copy(), tree[name], f"pending.kept.{name}") for name, part in parts))
