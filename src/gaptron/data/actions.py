"""Actions with features: the border where a caller's actions become checked rows of numbers, or one clear error.

    rounds = ActionExamples.of(rows, counts)     many rounds: the rows of all actions, and how many each round has
    rounds = checked_actions([Phi, ...])         the same from one matrix per round
    offer = checked_offer(Phi, available)        one round, without the actions that are not available

Each action is one row. A round may also have a context: one sparse row of what its actions share, in columns that no
action uses. The rules for numbers and norms are those of `gaptron.data.examples`.
"""

import functools
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, Self, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gaptron.data.examples import (
    LARGEST_NORM,
    SMALLEST_NORM,
    as_table,
    measured,
    parts_of,
    sealed,
    within_range,
)
from gaptron.data.feedback import as_rewards
from gaptron.errors import InputError
from gaptron.types import (
    MOST_ACTIONS,
    ActionRound,
    ActionRounds,
    Integers,
    Matrix,
    Rows,
    Sparse,
    SparseRow,
    Vector,
)

NO_CONTEXT = SparseRow(sealed(np.zeros(0, dtype=np.int32)), sealed(np.zeros(0)))
MOST_COLUMNS = 2**31 - 1  # of matrices whose indices take 32 bits


class Offer(NamedTuple):
    """The checked actions of one round that may be played."""

    rows: Rows  # dense rows in float64, or sparse ones
    context: SparseRow  # of the round, read-only
    width: int
    norm: float  # the largest of an action
    places: Integers  # the row of each action in what the caller gave
    given: int  # how many actions the caller gave

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return isinstance(self.rows, Sparse)

    def as_examples(self) -> "ActionExamples":
        """Return the round as the only one of many."""
        K, ends = len(self.places), sealed(np.array([0, len(self.context.indices)], dtype=np.int32))
        first, norms = sealed(np.array([0, K])), np.full(K, self.norm)
        return ActionExamples(self.rows, self.width, first, norms, Sparse(ends, *self.context))

    def in_layout(self, sparse: bool) -> ActionRound:
        """Return the rows in the layout of the learner's weights, and the context."""
        return ActionRound(_in_layout(self.rows, self.width, sparse), self.context)


@dataclass(frozen=True, eq=False, slots=True)
class ActionExamples:
    """The checked actions of many rounds: nothing past the border checks them again.

    Args:
        rows: one row per action, of all rounds in order, read-only.
        width: the number of columns.
        first: T + 1 numbers: the actions of round t are the rows from first[t] to first[t+1].
        norms: the norm of each row.
        contexts: one row per round, sparse, in float64.
    """

    rows: Rows
    width: int
    first: Integers
    norms: Vector
    contexts: Sparse

    @classmethod
    def of(cls, rows: Any, counts: Any, contexts: Any = None) -> Self:
        """Check the actions of many rounds.

        Args:
            rows: one row per action, of all rounds in order: an array or a SciPy sparse matrix.
            counts: how many actions each round has: T whole numbers from 1 to 200.
            contexts: one row per round of features that its actions share, as wide as `rows`: an array or a SciPy
                sparse matrix. Its columns should be 0 in every action. Left out: there are none.

        Returns:
            The checked actions, without a copy where type and order are right.

        Raises:
            InputError: the rows are not finite numbers, or the counts or the contexts do not fit them.
        """
        found = within_range(measured(rows, "actions"), "actions")
        given = np.asarray(counts)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise InputError("counts must hold the number of actions of each round, as whole numbers")
        wrong = np.flatnonzero((given < 1) | (given > MOST_ACTIONS))
        if wrong.size:
            raise InputError(f"round {wrong[0]}: {wrong_count(int(given[wrong[0]]))}")
        first = np.concatenate([[0], np.cumsum(given, dtype=np.int64)])
        if first[-1] != len(found):
            raise InputError(f"counts sum to {first[-1]}, but there are {len(found)} rows of actions")
        return cls(found.rows, found.width, sealed(first), found.norms, _contexts(contexts, len(given), found.width))

    def __len__(self) -> int:
        return len(self.first) - 1

    @overload
    def __getitem__(self, at: int) -> Offer: ...
    @overload
    def __getitem__(self, at: slice) -> "ActionExamples": ...
    def __getitem__(self, at: int | slice) -> "Offer | ActionExamples":
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:
                raise InputError("take consecutive rounds: the step must be 1")
            stop = max(start, stop)
            contexts = self.contexts._replace(indptr=self.contexts.indptr[start : stop + 1])
            return ActionExamples(self.rows, self.width, self.first[start : stop + 1], self.norms, contexts)
        at = range(len(self))[at]
        rows = np.arange(self.first[at], self.first[at + 1])
        inside = slice(self.contexts.indptr.item(at), self.contexts.indptr.item(at + 1))
        context = SparseRow(*(sealed(part[inside].copy()) for part in self.contexts[1:]))
        own = _taken(self.rows, self.width, rows)
        return Offer(own, context, self.width, float(self.norms[rows].max()), rows - rows[0], len(rows))

    @property
    def counts(self) -> Integers:
        """How many actions each round has."""
        return np.diff(self.first)

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return isinstance(self.rows, Sparse)

    @property
    def longest(self) -> float:
        """The largest norm of an action; 0 if there are no rounds."""
        return float(self.norms[self.first[0] : self.first[-1]].max(initial=0.0))

    def in_layout(self, sparse: bool) -> ActionRounds:
        """Return the rows in the layout of the learner's weights.

        Args:
            sparse: whether the weights are for sparse rows.

        Returns:
            The actions as compiled code reads them.
        """
        if self.sparse == sparse:
            return ActionRounds(self.first, self.rows, self.contexts)
        start, stop = self.first[[0, -1]]
        rows = _in_layout(_taken(self.rows, self.width, np.arange(start, stop)), self.width, sparse)
        return ActionRounds(sealed(self.first - start), rows, self.contexts)

    def only(self, allowed: NDArray[np.bool_]) -> "ActionExamples":
        """Leave out actions.

        Args:
            allowed: a boolean per row; True for at least one in each round.

        Returns:
            The same rounds with the allowed rows.
        """
        kept = np.add.reduceat(allowed, self.first[:-1] - self.first[0], dtype=np.int64)
        at = np.flatnonzero(allowed) + self.first[0]
        first = np.concatenate([[0], np.cumsum(kept)])
        rows = _taken(self.rows, self.width, at)
        return ActionExamples(rows, self.width, sealed(first), self.norms[at], self.contexts)

    def as_matrix(self) -> Any:
        """Return the rows of these rounds as a float64 array or a SciPy matrix."""
        rows = _table(self.rows, self.width)[self.first[0] : self.first[-1]]
        return rows.astype(np.float64, copy=False)


# --- what a caller gives ------------------------------------------------------------------------------------------


def checked_actions(actions: Any) -> ActionExamples:
    """Check the actions of many rounds.

    Args:
        actions: `ActionExamples`, or a list with one matrix per round (all arrays, or all sparse).

    Returns:
        The checked actions.

    Raises:
        InputError: a round is not a matrix of finite numbers, or has no action or too many.
    """
    if isinstance(actions, ActionExamples):
        return actions
    if not isinstance(actions, list | tuple):
        raise InputError("give the actions as ActionExamples.of(rows, counts), or as a list with one matrix per round")
    names = [f"round {t} of actions" for t in range(len(actions))]
    tables: list[Any] = [as_table(_one_matrix(each, name), name) for each, name in zip(actions, names)]
    if not tables:
        raise InputError("there are no rounds: their actions cannot be checked")
    if len({sp.issparse(table) for table in tables}) > 1 or len({table.shape[1] for table in tables}) > 1:
        raise InputError("the rounds of actions differ in width, or some are sparse and others are not")
    whole = sp.vstack(tables, format="csr") if sp.issparse(tables[0]) else np.concatenate(tables)
    return ActionExamples.of(whole, [table.shape[0] for table in tables])


def checked_offer(actions: Any, available: Any) -> Offer:
    """Check the actions of one round.

    Args:
        actions: one row per action: an array, a SciPy sparse matrix, or an `Offer`.
        available: K booleans, or the rows that may be played; None: all.

    Returns:
        The actions that may be played.

    Raises:
        InputError: the actions are not a matrix of finite numbers, are too many, or none may be played.
    """
    if isinstance(actions, Offer):
        if available is None:
            return actions
        rows = available_rows(available, len(actions.places))
        kept = _taken(actions.rows, actions.width, rows)
        return actions._replace(rows=kept, places=actions.places[rows])
    matrix = _one_matrix(actions, "actions")
    usual = _usual_round(matrix) if available is None else None
    if usual is not None:
        return usual
    found = within_range(measured(matrix, "actions"), "actions")
    K = len(found)
    rows = np.arange(K) if available is None else available_rows(available, K)
    own = _taken(found.rows, found.width, rows)
    return Offer(own, NO_CONTEXT, found.width, float(found.norms[rows].max()), rows, K)


def _usual_round(matrix: Any) -> Offer | None:
    """The round of a matrix of the usual kinds, in a quarter of the time; None: it is of another kind, or wrong."""
    K, width = matrix.shape
    rows: Rows
    if type(matrix) is np.ndarray:
        if matrix.dtype != np.float64:
            return None
        rows = matrix.copy()  # a decision may outlive the caller's array
        with np.errstate(over="ignore"):  # too long: `within_range` says so
            squares: Vector = np.vecdot(rows, rows)
        rows = sealed(rows)
    else:
        if not sp.issparse(matrix) or getattr(matrix, "format", "") != "csr":
            return None
        table: Any = matrix
        ends, indices, values = table.indptr, table.indices, table.data
        if values.dtype != np.float64 or len(ends) != K + 1 or width > MOST_COLUMNS or not len(values):
            return None
        if indices.min() < 0 or indices.max() >= width:
            return None
        if ends[0] != 0 or not ends[-1] == len(indices) == len(values) or (ends[1:] < ends[:-1]).any():
            return None
        rows = Sparse(sealed(ends.astype(np.int32)), sealed(indices.astype(np.int32)), sealed(values.copy()))
        squares = np.empty(K)
        if not csr_module().inspect(*rows, width, squares):
            return None
    least, most = squares.min(), squares.max()
    if not SMALLEST_NORM**2 <= least <= most <= LARGEST_NORM**2:  # also if one is NaN
        return None
    return Offer(rows, NO_CONTEXT, width, math.sqrt(most), np.arange(K), K)


@functools.cache
def csr_module() -> ModuleType:
    """The compiled checks of sparse rows, imported at first use to keep `import gaptron` fast."""
    return importlib.import_module("gaptron.kernels.csr")


def available_rows(available: Any, K: int) -> Integers:
    """Check which of K actions may be played, and return their rows in order.

    Args:
        available: K booleans, or rows.
        K: the number of actions.

    Returns:
        The rows, at least one.
    """
    try:
        given = np.asarray(available)
    except ValueError:
        raise InputError(f"available must hold {K} booleans, or rows of actions") from None
    if given.dtype.kind == "b":
        if given.shape != (K,):
            raise InputError(f"available has shape {given.shape}, but there are {K} actions: give {K} booleans")
        rows = np.flatnonzero(given)
    else:
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise InputError(f"available must hold {K} booleans, or rows of actions from 0 to {K - 1}")
        wrong = given[(given < 0) | (given >= K)] if given.size else given
        if wrong.size:
            raise InputError(f"available holds {wrong[0]}, but the actions are the rows 0 to {K - 1}")
        rows = np.unique(given).astype(np.int64)
    if not rows.size:
        raise InputError("available is empty: at least one action must be available")
    return rows


def all_available(available: Any, rounds: ActionExamples) -> NDArray[np.bool_]:
    """Check which actions may be played in many rounds: one boolean per row, or one list per round."""
    rows = rounds.first[-1] - rounds.first[0]
    flat = available if isinstance(available, np.ndarray) else None
    if flat is None:
        if not isinstance(available, list | tuple) or len(available) != len(rounds):
            raise InputError(
                f"available must hold {rows} booleans, one per row, or a list for each of {len(rounds)} rounds"
            )
        flags = np.zeros(rows, dtype=np.bool_)
        for t, (one, K, start) in enumerate(zip(available, rounds.counts, rounds.first - rounds.first[0])):
            try:
                flags[start + available_rows(one, int(K))] = True
            except InputError as problem:
                raise InputError(f"round {t}: {problem}") from None
        return flags
    if flat.dtype.kind != "b" or flat.shape != (rows,):
        raise InputError(
            f"available must hold {rows} booleans, one per row of actions; it is {flat.dtype} {flat.shape}"
        )
    empty = np.flatnonzero(~np.logical_or.reduceat(flat, rounds.first[:-1] - rounds.first[0]))
    if empty.size:
        raise InputError(f"round {empty[0]}: no action is available")
    return flat


def rewards_of_rows(rewards: Any, rounds: ActionExamples) -> Matrix:
    """Check the rewards of many rounds, one number per row or one list per round. Returns one column."""
    rows = int(rounds.first[-1] - rounds.first[0])
    if isinstance(rewards, list | tuple) and len(rewards) == len(rounds) and any(map(np.ndim, rewards)):
        lengths = [np.size(one) for one in rewards]
        wrong = np.flatnonzero(np.asarray(lengths) != rounds.counts)
        if wrong.size:
            t = wrong[0]
            raise InputError(f"round {t} has {rounds.counts[t]} actions, but {lengths[t]} rewards")
        rewards = np.concatenate([np.ravel(one) for one in rewards])
    return as_rewards(rewards, rows, 1)


def as_action(action: Any, places: Sequence[int] | Integers, count: int) -> int:
    """Check a row number that a caller gave, and return its index among the actions that could be played."""
    if isinstance(action, bool | np.bool_) or not isinstance(action, int | np.integer) or not 0 <= action < count:
        raise InputError(f"action={action!r} must be the row of one of the {count} actions, 0 to {count - 1}")
    at = np.flatnonzero(np.asarray(places) == action)
    if not at.size:
        raise InputError(f"action {action} cannot be the right one: it was not available in this round")
    return int(at[0])


# --- rows ---------------------------------------------------------------------------------------------------------


def _one_matrix(actions: Any, name: str) -> Any:
    """A matrix with a possible number of rows; its numbers are not checked."""
    if getattr(actions, "ndim", None) is None:
        try:
            actions = np.asarray(actions)
        except ValueError as problem:
            raise InputError(f"{name} must be a matrix with one row per action: {problem}") from None
    if actions.ndim != 2:
        raise InputError(f"{name} must be a matrix with one row per action; it has {actions.ndim} dimensions")
    if not 1 <= actions.shape[0] <= MOST_ACTIONS:
        raise InputError(f"{name}: {wrong_count(actions.shape[0])}")
    return actions


def _contexts(contexts: Any, rounds: int, width: int) -> Sparse:
    """Check the contexts of many rounds; None: all of them are empty."""
    if contexts is None:
        return Sparse(sealed(np.zeros(rounds + 1, dtype=np.int32)), *NO_CONTEXT)
    found = within_range(measured(contexts, "contexts"), "contexts")
    if len(found) != rounds or found.width != width:
        raise InputError(
            f"contexts has {len(found)} rows and {found.width} columns; give one row for each of {rounds} rounds, and "
            f"as many columns as the actions have, {width}"
        )
    indptr, indices, values = parts_of(as_table(sp.csr_array(_table(found.rows, width).astype(np.float64))))
    return Sparse(indptr, indices, values)


def wrong_count(count: int) -> str:
    """Say what is wrong with a number of actions."""
    if count < 1:
        return "there is no action, and a round needs at least one"
    return f"there are {count} actions, and a round may have at most {MOST_ACTIONS}: choose candidates first"


def _table(rows: Rows, width: int) -> Any:
    """Rows as an array or a SciPy matrix, without a copy."""
    if not isinstance(rows, Sparse):
        return rows
    return sp.csr_array((rows.values, rows.indices, rows.indptr), shape=(len(rows.indptr) - 1, width))


def _taken(rows: Rows, width: int, at: Integers) -> Rows:
    """A copy of some rows, dense ones in double precision."""
    if isinstance(rows, Sparse):
        return parts_of(as_table(_table(rows, width)[at].astype(np.float64)))
    return sealed(np.array(rows[at], dtype=np.float64))


def _in_layout(rows: Rows, width: int, sparse: bool) -> Rows:
    if isinstance(rows, Sparse) == sparse:
        return rows
    table = _table(rows, width)
    return parts_of(as_table(sp.csr_array(table) if sparse else table.toarray()))
