"""Decisions between actions with features: what a pending one keeps, and how a model file stores it."""

from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gaptron.data import state_tree
from gaptron.data.examples import sealed, sealed_row
from gaptron.learner.decision import ALL_AVAILABLE, NO_ADVICE, Decision, all_saved, decision_of, scratch_tree
from gaptron.types import MOST_ACTIONS, ActionRound, Integers, Row, Rows, Sparse, SparseRow, Vector

if TYPE_CHECKING:
    from gaptron.learner import Learner
    from gaptron.learner.engine import Engine


@dataclass(frozen=True, eq=False, slots=True)
class ActionDecision(Decision):
    """An action that `Learner.decide` drew, and the rows of all actions that could be played.

    Attributes:
        label: the action drawn: its id, or its row in what the caller gave.
        propensity: the probability with which it was drawn.
        round: the number of the decision, from 1.
    """

    _z: Vector = field(repr=False, kw_only=True)  # the scores
    _places: Integers = field(repr=False, kw_only=True)  # the row, in what the caller gave, of each action
    _count: int = field(repr=False, kw_only=True)  # how many actions the caller gave
    _ids: tuple[str | int, ...] | None = field(repr=False, kw_only=True)  # of the actions; None: they are rows

    @property
    def action(self) -> Any:
        """The action drawn: its id, or its row in what the caller gave."""
        return self.label

    @property
    def distribution(self) -> Any:
        """The probability of every action that the caller gave; 0 for those that were not available.

        With named features a dict id → probability, without the excluded actions.
        """
        if self._ids is not None:
            return dict(zip(self._ids, self._p.tolist()))
        p = np.zeros(self._count)
        p[self._places] = self._p
        return p

    @property
    def ranking(self) -> list[tuple[Any, float]]:
        """The available actions with their probabilities of being drawn: the one drawn, then the rest by score."""
        order = np.argsort(-self._z, kind="stable")
        order = np.concatenate([[self._code], order[order != self._code]])
        names = self._places.tolist() if self._ids is None else self._ids
        return [(names[k], self._p.item(k)) for k in order]

    def __reduce__(self) -> tuple[Any, ...]:
        """As `Decision.__reduce__`."""
        if self in self._owner._open:
            return decision_of, (self._owner, self.round)
        return _record, ({each.name: getattr(self, each.name) for each in fields(self)},)


class ActionPreview(NamedTuple):
    """What `Learner.decide` would draw from.

    Attributes:
        actions: the ids, or the rows, of the actions that may be played.
        scores: their scores.
        distribution: their propensities.
    """

    actions: tuple[Any, ...]
    scores: Vector
    distribution: Vector

    @property
    def order(self) -> list[int]:
        """The places of the actions by score, best first."""
        return np.argsort(-self.scores, kind="stable").tolist()  # type: ignore[no-any-return]


def _record(values: dict[str, Any]) -> ActionDecision:
    return ActionDecision(**values)


def at_width(actions: ActionRound, width: int) -> ActionRound:
    """The actions with as many columns; new ones are 0."""
    rows = actions.rows
    if isinstance(rows, Sparse) or rows.shape[1] == width:
        return actions
    return actions._replace(rows=sealed(np.pad(rows, ((0, 0), (0, width - rows.shape[1])))))


# --- in a file ------------------------------------------------------------------------------------------------

PER_DECISION = ("round", "code", "drawn_with", "offered", "given")
PER_ACTION = ("places", "scores", "drawn_from")


def as_tree(waiting: list[ActionDecision], actions: list[ActionRound], late_fields: tuple[str, ...]) -> dict[str, Any]:
    """Decisions, and their actions, as columns of plain values: one number per decision or per action.

    `late_fields` are the names of what each has saved.
    """
    rows: list[Row] = []
    for own, _ in actions:
        if isinstance(own, Sparse):
            rows += [SparseRow(own.indices[a:b], own.values[a:b]) for a, b in pairwise(own.indptr)]
        else:
            rows += list(own)
    nothing = [np.zeros(0)]
    return {
        "round": np.array([d.round for d in waiting], dtype=np.int64),
        "code": np.array([d._code for d in waiting], dtype=np.int64),
        "drawn_with": np.array([d._u for d in waiting], dtype=np.float64),
        "offered": np.array([len(d._places) for d in waiting], dtype=np.int64),
        "given": np.array([d._count for d in waiting], dtype=np.int64),
        "places": np.concatenate([*nothing, *(d._places for d in waiting)]).astype(np.int64),
        "scores": np.concatenate([*nothing, *(d._z for d in waiting)]),
        "drawn_from": np.concatenate([*nothing, *(d._p for d in waiting)]),
        "rows": state_tree.rows_of(rows),
        "contexts": state_tree.rows_of([each.context for each in actions]),
        "ids": [list(d._ids) for d in waiting if d._ids is not None],
        "saved_scratch": [scratch_tree(d._saved_scratch, late_fields) for d in waiting if d._saved_scratch is not None],
    }


def from_tree(tree: dict[str, Any], learner: "Learner", engine: "Engine") -> list[ActionDecision]:
    """The decisions of `as_tree`. Raises `ValueError` for impossible values."""
    state_tree.check_words(tree, (*PER_DECISION, *PER_ACTION, "rows", "contexts", "ids", "saved_scratch"), "pending")
    n = len(state_tree.array_of(tree["round"], "pending.round"))
    total = len(state_tree.array_of(tree["places"], "pending.places"))
    whole, real = np.int64, np.float64
    rounds, codes, u, offered, given = (
        state_tree.fill(np.zeros(n, kind), tree[name], f"pending.{name}")
        for name, kind in zip(PER_DECISION, (whole, whole, real, whole, whole))
    )
    places, z, p = (
        state_tree.fill(np.zeros(total, kind), tree[name], f"pending.{name}")
        for name, kind in zip(PER_ACTION, (whole, real, real))
    )
    if n and not (rounds.min() >= 1 and rounds.max() <= learner.decided and len(np.unique(rounds)) == n):
        raise ValueError("a pending decision has a round that was never decided, or that another one has")
    if not ((offered >= 1).all() and (given >= offered).all() and (given <= MOST_ACTIONS).all()):
        raise ValueError("a pending decision has an impossible number of actions")
    if offered.sum() != total or not ((codes >= 0) & (codes < offered)).all():
        raise ValueError("a pending decision has actions that do not fit their number")
    starts = np.concatenate([[0], np.cumsum(offered)])
    inside = np.repeat(given, offered)
    if not ((places >= 0).all() and (places < inside).all()):
        raise ValueError("a pending decision has an action outside those given")
    if not ((p >= 0.0).all() and (p <= 1.0).all() and (p[starts[:-1] + codes] > 0.0).all()):
        raise ValueError("a pending decision has probabilities outside [0, 1], or an action of probability 0")
    if not ((u >= 0.0).all() and (u < 1.0).all()):
        raise ValueError("a pending decision has a draw outside [0, 1)")
    width = learner.problem.n_features
    rows = state_tree.rows_from(tree["rows"], total, engine.sparse, width)
    contexts: list[Any] = state_tree.rows_from(tree["contexts"], n, True, width, "pending.contexts")
    ids = _ids_from(tree["ids"], offered, named=learner.features is not None)
    saved = all_saved(tree["saved_scratch"], engine, np.ones((n, 0), dtype=np.bool_))
    decisions = []
    for i, (start, stop) in enumerate(pairwise(starts)):
        own = places[start:stop].copy()
        if (np.diff(own) <= 0).any():
            raise ValueError("a pending decision has an action twice")
        decisions.append(
            ActionDecision(
                label=own.item(codes[i]) if ids is None else ids[i][codes[i]],
                propensity=float(p[start + codes[i]]),
                round=int(rounds[i]),
                _code=int(codes[i]),
                _x=ActionRound(_stacked(rows[start:stop]), sealed_row(contexts[i])),  # type: ignore[arg-type]
                _p=p[start:stop].copy(),
                _u=float(u[i]),
                _advice=NO_ADVICE,
                _available=ALL_AVAILABLE,
                _learned=np.zeros(1, dtype=np.bool_),
                _owner=learner,
                _saved_scratch=saved[i],
                _z=z[start:stop].copy(),
                _places=own,
                _count=int(given[i]),
                _ids=None if ids is None else ids[i],
            )
        )
    return decisions


def _ids_from(tree: Any, offered: Integers, *, named: bool) -> list[tuple[str | int, ...]] | None:
    """The ids of the actions of each decision; None if actions are rows."""
    if type(tree) is not list or len(tree) != (len(offered) if named else 0):
        raise ValueError("pending.ids does not have the ids of each decision")
    for one, count in zip(tree, offered.tolist()):
        if type(one) is not list or len(one) != count or not all(type(name) in (str, int) for name in one):
            raise ValueError("a pending decision has ids that do not fit its actions")
        if len(set(map(str, one))) < count:
            raise ValueError("a pending decision has an id twice")
    return list(map(tuple, tree)) if named else None


def without_columns(actions: ActionRound, retired: Integers) -> ActionRound:
    """The actions without what they have in some columns, which other actions have by now."""
    rows: Any = actions.rows
    stale = np.isin(rows.indices, retired)
    return (
        actions._replace(rows=rows._replace(values=sealed(np.where(stale, 0.0, rows.values))))
        if stale.any()
        else actions
    )


def _stacked(rows: list[Row]) -> Rows:
    """The rows of one decision as a read-only matrix."""
    if not isinstance(rows[0], SparseRow):
        return sealed(np.array(rows))
    sparse: list[Any] = rows
    ends = np.cumsum([0, *(len(row.indices) for row in sparse)]).astype(sparse[0].indices.dtype)
    parts = (np.concatenate([getattr(row, name) for row in sparse]) for name in ("indices", "values"))
    return Sparse(sealed(ends), *map(sealed, parts))
