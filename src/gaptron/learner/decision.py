"""Decisions: a label that was drawn and waits for its feedback, and the open decisions of a learner."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from gaptron.data import state_tree
from gaptron.types import Flags, Row, Vector

if TYPE_CHECKING:
    from gaptron.learner import Learner
    from gaptron.learner.engine import Engine

FIRST_SWEEP = 1_024
NO_ADVICE: Vector = np.zeros(0)
ALL_AVAILABLE: Flags = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Decision:
    """A label that `Learner.decide` drew, with everything that `Learner.learn` needs when its feedback arrives.

    Scores are not kept: late feedback is learned from as if the example were scored today.

    Attributes:
        label: the label drawn.
        propensity: the probability with which it was drawn.
        round: the number of the decision, from 1.
        distribution: the probability of every label, in the order of the learner's classes.
    """

    label: Any
    propensity: float
    round: int
    _code: int = field(repr=False)
    _x: Row = field(repr=False)
    _p: Vector = field(repr=False)  # the distribution
    _u: float = field(repr=False)  # the number in [0, 1) that the label was drawn with
    _advice: Vector = field(repr=False)  # the caller's advice; empty: none
    _available: Flags = field(repr=False)  # which labels were available; empty: all
    _learned: Flags = field(repr=False)  # set by the compiled code that learns, so that no interruption separates them
    _owner: "Learner" = field(repr=False)
    _saved_scratch: tuple[Any, ...] | None = field(repr=False, default=None)  # what the algorithm's `late_fields` name

    @property
    def distribution(self) -> NDArray[np.float64]:
        """The probability of every label, in the order of the learner's classes."""
        return self._p.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy an open decision as a decision of the copied learner, and any other as a record."""
        if self in self._owner._open:
            return decision_of, (self._owner, self.round)
        return Decision, tuple(getattr(self, name) for name in self.__slots__ if name != "__weakref__")


def decision_of(learner: "Learner", round: int) -> Decision:
    """The open decision of a round."""
    return learner.pending[round]


class Pending:
    """The open decisions of a learner, by round.

    They are held by weak references: a decision that its caller has dropped can never get feedback, so it is freed, and
    a learner without feedback does not grow. Decisions that come from a file have no other holder and are kept until
    they get feedback or are forgotten.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, ref[Decision]] = {}
        self._held: dict[int, Decision] = {}
        self._sweep = FIRST_SWEEP  # the number of entries at which dropped decisions are removed

    def add(self, decision: Decision) -> None:
        """Add a decision that its caller holds."""
        self._waiting[decision.round] = ref(decision)
        if len(self._waiting) > self._sweep:
            self._waiting = {round: held for round, held in self._waiting.items() if held() is not None}
            self._sweep = max(FIRST_SWEEP, 2 * len(self._waiting))

    def hold(self, decision: Decision) -> None:
        """Add a decision, and keep it."""
        self.add(decision)
        self._held[decision.round] = decision

    def close(self, decision: Decision) -> None:
        """Remove a decision."""
        self._waiting.pop(decision.round, None)
        self._held.pop(decision.round, None)

    def __contains__(self, decision: Decision) -> bool:
        held = self._waiting.get(decision.round)
        return held is not None and held() is decision and not decision._learned[0]

    def by_round(self) -> dict[int, Decision]:
        """All open decisions that somebody holds, the oldest first."""
        waiting = {round: held() for round, held in sorted(self._waiting.items())}
        return {
            round: decision for round, decision in waiting.items() if decision is not None and not decision._learned[0]
        }


# --- in a file ------------------------------------------------------------------------------------------------

COLUMNS = ("round", "code", "drawn_from", "drawn_with", "advice", "available")


def as_tree(waiting: list[Decision], rows: list[Row], n_classes: int, late_fields: tuple[str, ...]) -> dict[str, Any]:
    """Decisions as columns of plain values; `late_fields` are the names of what each has saved."""
    shape = (len(waiting), n_classes)
    no_advice, all_available = np.zeros(n_classes), np.ones(n_classes, dtype=np.bool_)
    advice = [d._advice if len(d._advice) else no_advice for d in waiting]
    available = [d._available if len(d._available) else all_available for d in waiting]
    return {
        "round": np.array([d.round for d in waiting], dtype=np.int64),
        "code": np.array([d._code for d in waiting], dtype=np.int64),
        "drawn_from": np.array([d._p for d in waiting], dtype=np.float64).reshape(shape),
        "drawn_with": np.array([d._u for d in waiting], dtype=np.float64),
        "advice": np.array(advice, dtype=np.float64).reshape(shape),
        "available": np.array(available, dtype=np.bool_).reshape(shape),
        "rows": state_tree.rows_of(rows),
        "saved_scratch": [scratch_tree(d._saved_scratch, late_fields) for d in waiting if d._saved_scratch is not None],
    }


def from_tree(tree: dict[str, Any], learner: "Learner", engine: "Engine") -> list[Decision]:
    """The decisions of `as_tree`. Raises `ValueError` for impossible values."""
    state_tree.check_words(tree, (*COLUMNS, "rows", "saved_scratch"), "pending")
    K, n = learner.problem.n_classes, len(state_tree.array_of(tree["round"], "pending.round"))
    shapes = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, K)), np.zeros(n), np.zeros((n, K))
    rounds, codes, P, u, advice, available = (
        state_tree.fill(empty, tree[name], f"pending.{name}")
        for name, empty in zip(COLUMNS, (*shapes, np.zeros((n, K), np.bool_)))
    )
    if n and not (rounds.min() >= 1 and rounds.max() <= learner.decided and len(np.unique(rounds)) == n):
        raise ValueError("a pending decision has a round that was never decided, or that another one has")
    if n and not (codes.min() >= 0 and codes.max() < K):
        raise ValueError(f"a pending decision has a label code outside 0..{K - 1}")
    if not ((P >= 0.0).all() and (P <= 1.0).all() and (P[np.arange(n), codes] > 0.0).all()):
        raise ValueError("a pending decision has probabilities outside [0, 1], or a label of probability 0")
    if not available[np.arange(n), codes].all():
        raise ValueError("a pending decision has a label that was not available")
    if not ((u >= 0.0).all() and (u < 1.0).all() and (advice >= 0.0).all()):
        raise ValueError("a pending decision has a draw outside [0, 1), or negative advice")
    if advice.any() and not engine.algorithm.CARD.advice:  # its round has no buffer for it
        raise ValueError("a pending decision has advice, and this algorithm takes none")
    rows = state_tree.rows_from(tree["rows"], n, engine.sparse, learner.problem.n_features)
    saved, classes = all_saved(tree["saved_scratch"], engine, available), learner.classes
    return [
        Decision(
            label=classes[codes[i]],
            propensity=float(P[i, codes[i]]),
            round=int(rounds[i]),
            _code=int(codes[i]),
            _x=rows[i],
            _p=P[i].copy(),
            _u=float(u[i]),
            _advice=advice[i].copy() if advice[i].any() else NO_ADVICE,
            _available=ALL_AVAILABLE if available[i].all() else available[i].copy(),
            _learned=np.zeros(1, dtype=np.bool_),
            _owner=learner,
            _saved_scratch=saved[i],
        )
        for i in range(n)
    ]


def scratch_tree(saved: tuple[Any, ...], late_fields: tuple[str, ...]) -> dict[str, Any]:
    """What a decision has saved, by name. A file has no -∞, which unavailable labels have: 0 stands for it."""
    return {
        name: state_tree.spread(part.view(np.recarray)) if part.dtype.names else np.where(np.isneginf(part), 0.0, part)
        for name, part in zip(late_fields, saved)
    }


def all_saved(trees: Any, engine: "Engine", available: NDArray[np.bool_]) -> list[tuple[Any, ...] | None]:
    """What decisions have saved, from `scratch_tree`; `available` has the available labels of each."""
    like, names = engine.saved_scratch(), engine.late_fields
    if type(trees) is not list or len(trees) != (0 if like is None else len(available)):
        raise ValueError("pending.saved_scratch does not have one entry per decision")
    if like is None:
        return [None] * len(available)
    return [_saved_from(tree, like, names, allowed) for tree, allowed in zip(trees, available)]


def _saved_from(tree: Any, like: tuple[Any, ...], names: tuple[str, ...], available: Flags) -> tuple[Any, ...]:
    state_tree.check_words(tree, names, "pending.saved_scratch")
    saved = []
    for name, part in zip(names, like):
        fresh = part.copy().view(np.recarray) if part.dtype.names else part.copy()
        filled = state_tree.fill(fresh, tree[name], f"pending.saved_scratch.{name}").view(np.ndarray)
        if name == "z":  # scores are compared: those of unavailable labels must be -∞ again
            filled[~available] = -np.inf
        saved.append(filled)
    return tuple(saved)
