"""Preparation: what is done to the rounds before they are played, each step named in `prepared`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gaptron.errors import InputError
from gaptron.streams.rows import Rows, csr, divided
from gaptron.streams.stream import Chunks, Stream
from gaptron.validation import MeasuredRows, norms

_Any = TypeVar("_Any", Stream, Chunks)

CLIP = 5.0


class _Step(NamedTuple):
    word: str
    change: Callable[[MeasuredRows], MeasuredRows]


def prepare(
    stream: _Any,
    *,
    unit_norm: bool = False,
    constant: bool = False,
    shuffle: int | None = None,
    standardize: bool = False,
    log1p: bool = False,
    limit: int | None = None,
) -> _Any:
    """A new stream, prepared in this order whatever the order of the words.

    Args:
        stream: left as it is.
        limit: only the first so many rounds.
        log1p: x ← sign(x)·log(1 + |x|).
        standardize: every column to mean 0 and deviation 1, clipped to ±5. Looks at the whole stream, which an online
            learner could not; dense rows only.
        constant: one more column, of ones.
        unit_norm: x ← x/‖x‖; rows of zeros stay.
        shuffle: the seed of a permutation of the rounds.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, not {limit}")
    if shuffle is not None and shuffle < 0:
        raise InputError(f"shuffle is a seed and must not be negative, like {shuffle}")
    steps = []
    if log1p:
        steps.append(_Step("log1p", _log1p))
    if standardize:
        steps.append(_Step("standardized (looks at the whole stream)", _standardized))
    if constant:
        steps.append(_Step("constant feature", _with_constant))
    if unit_norm:
        steps.append(_Step("unit norm", _unit_norm))
    if isinstance(stream, Chunks):
        if standardize or shuffle is not None:
            raise InputError("standardize and shuffle look ahead: the stream must be in memory, opened without chunk")
        return _on_the_way(stream, steps, limit)
    return _in_memory(stream, steps, limit, shuffle)


def _in_memory(stream: Stream, steps: list[_Step], limit: int | None, shuffle: int | None) -> Stream:
    words = [*_limited(limit), *(step.word for step in steps)]
    if limit is not None and limit < stream.n_rounds:
        stream = stream.part(slice(limit))
    for step in steps:
        stream = replace(stream, rows=step.change(stream.rows))
    if shuffle is not None:
        stream = stream.part(np.random.default_rng(shuffle).permutation(stream.n_rounds))
        words.append(f"shuffled (seed {shuffle})")
    return replace(stream, prepared=(*stream.prepared, *words))


def _on_the_way(stream: Chunks, steps: list[_Step], limit: int | None) -> Chunks:
    def parts() -> Iterator[Stream]:
        left = limit
        for part in stream.parts():
            yield _in_memory(part, steps, left, None)
            if left is not None:
                left -= part.n_rounds
                if left <= 0:
                    return

    known = [n for n in (stream.n_rounds, limit) if n is not None]
    n_rounds = min(known) if stream.n_rounds is not None else None
    words = [*_limited(limit), *(step.word for step in steps)]
    wider = sum(step.change is _with_constant for step in steps)
    return replace(
        stream,
        n_features=stream.n_features + wider,
        parts=parts,
        n_rounds=n_rounds,
        norm=_norm_after(stream, steps, limit),
        prepared=(*stream.prepared, *words),
    )


def _norm_after(stream: Chunks, steps: list[_Step], limit: int | None) -> float | None:
    """The largest norm of the prepared rows, where that is known without reading them."""
    if steps and steps[-1].change is _unit_norm:
        return 1.0
    return stream.norm if not steps and limit is None else None


def _limited(limit: int | None) -> list[str]:
    return [] if limit is None else [f"first {limit} rounds"]


def _measured(X: Rows) -> MeasuredRows:
    return MeasuredRows(X, norms(X))


def _log1p_values(x: NDArray[Any]) -> NDArray[Any]:
    y: NDArray[Any] = np.copysign(np.log1p(np.abs(x)), x)
    return y


def _log1p(rows: MeasuredRows) -> MeasuredRows:
    X = rows.X
    if sparse.issparse(X):
        return _measured(csr(_log1p_values(X.data), X.indices, X.indptr, X.shape[1]))
    return _measured(_log1p_values(X))


def _standardized(rows: MeasuredRows) -> MeasuredRows:
    X = rows.X
    if sparse.issparse(X):
        raise InputError("standardize would fill sparse rows: use Stream.from_arrays(X.toarray(), y), or log1p")
    with np.errstate(over="ignore", invalid="ignore"):
        middle, spread = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    if not np.isfinite(spread).all():
        raise InputError(f"column {np.argmin(np.isfinite(spread))} is too large to standardize: scale it first")
    spread[X.min(axis=0) == X.max(axis=0)] = 1.0  # rounding may leave such a column a tiny deviation
    Z: NDArray[Any] = (X - middle) / np.where(spread > 0.0, spread, 1.0)  # squares of tiny values may be lost
    return _measured(np.clip(Z, -CLIP, CLIP, out=Z).astype(X.dtype, copy=False))


def _with_constant(rows: MeasuredRows) -> MeasuredRows:
    X = rows.X
    one = np.ones((X.shape[0], 1), dtype=X.dtype)
    if sparse.issparse(X):
        joined = sparse.hstack([X, sparse.csr_array(one)], format="csr")
        return _measured(csr(joined.data, joined.indices, joined.indptr, joined.shape[1]))
    return _measured(np.hstack([X, one]))


def _unit_norm(rows: MeasuredRows) -> MeasuredRows:
    return _measured(divided(rows.X, np.where(rows.norms > 0, rows.norms, 1.0)))
