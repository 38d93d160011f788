"""Prepare the rounds of a stream before they are played. Each step is named in `prepared`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gaptron.data.examples import MeasuredExamples, norms
from gaptron.errors import InputError
from gaptron.streams.rows import Rows, csr, divided
from gaptron.streams.stream import Chunks, Stream

_StreamType = TypeVar("_StreamType", bound=Stream | Chunks)

CLIP = 5.0


class _Step(NamedTuple):
    name: str
    apply: Callable[[MeasuredExamples], MeasuredExamples]


def prepare(
    stream: _StreamType,
    *,
    unit_norm: bool = False,
    constant: bool = False,
    shuffle: int | None = None,
    standardize: bool = False,
    log1p: bool = False,
    limit: int | None = None,
) -> _StreamType:
    """Return a prepared copy of a stream. The steps are applied in the order of this list.

    Args:
        stream: not changed.
        limit: keep only this many rounds, the first ones.
        log1p: x ← sign(x)·log(1 + |x|).
        standardize: scale every column to mean 0 and standard deviation 1, clipped to ±5. Dense examples only. This
            uses the whole stream, which an online learner cannot do.
        constant: append a column of ones.
        unit_norm: x ← x/‖x‖; examples of zeros are not changed.
        shuffle: the seed of a permutation of the rounds.

    Returns:
        The prepared stream, of the same type.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, not {limit}")
    if shuffle is not None and shuffle < 0:
        raise InputError(f"shuffle is a seed and must not be negative, but is {shuffle}")
    steps = []
    if log1p:
        steps.append(_Step("log1p", _log1p))
    if standardize:
        steps.append(_Step("standardized (uses the whole stream)", _standardized))
    if constant:
        steps.append(_Step("constant feature", _with_constant))
    if unit_norm:
        steps.append(_Step("unit norm", _unit_norm))
    if isinstance(stream, Chunks):
        if standardize or shuffle is not None:
            raise InputError("standardize and shuffle need the whole stream in memory: open it without chunk")
        return cast(_StreamType, _in_chunks(stream, steps, limit))  # neither class has subclasses
    return cast(_StreamType, _in_memory(stream, steps, limit, shuffle))


def _in_memory(stream: Stream, steps: list[_Step], limit: int | None, shuffle: int | None) -> Stream:
    names = [*_limited(limit), *(step.name for step in steps)]
    if limit is not None and limit < stream.n_rounds:
        stream = stream.take(slice(limit))
    for step in steps:
        stream = replace(stream, rows=step.apply(stream.rows))
    if shuffle is not None:
        stream = stream.take(np.random.default_rng(shuffle).permutation(stream.n_rounds))
        names.append(f"shuffled (seed {shuffle})")
    return replace(stream, prepared=(*stream.prepared, *names))


def _in_chunks(stream: Chunks, steps: list[_Step], limit: int | None) -> Chunks:
    def streams() -> Iterator[Stream]:
        left = limit
        for chunk in stream.streams():
            yield _in_memory(chunk, steps, left, None)
            if left is not None:
                left -= chunk.n_rounds
                if left <= 0:
                    return

    known = [n for n in (stream.n_rounds, limit) if n is not None]
    n_rounds = min(known) if stream.n_rounds is not None else None
    names = [*_limited(limit), *(step.name for step in steps)]
    extra = sum(step.apply is _with_constant for step in steps)
    return replace(
        stream,
        n_features=stream.n_features + extra,
        streams=streams,
        n_rounds=n_rounds,
        norm=_norm_after(stream, steps, limit),
        prepared=(*stream.prepared, *names),
    )


def _norm_after(stream: Chunks, steps: list[_Step], limit: int | None) -> float | None:
    """Return the largest norm of the prepared examples, where it is known without reading them."""
    if steps and steps[-1].apply is _unit_norm:
        return 1.0
    return stream.norm if not steps and limit is None else None


def _limited(limit: int | None) -> list[str]:
    return [] if limit is None else [f"first {limit} rounds"]


def _measured(X: Rows) -> MeasuredExamples:
    return MeasuredExamples(X, norms(X))


def _log1p_values(x: NDArray[Any]) -> NDArray[Any]:
    y: NDArray[Any] = np.copysign(np.log1p(np.abs(x)), x)
    return y


def _log1p(rows: MeasuredExamples) -> MeasuredExamples:
    X = rows.X
    if sparse.issparse(X):
        return _measured(csr(_log1p_values(X.data), X.indices, X.indptr, X.shape[1]))
    return _measured(_log1p_values(X))


def _standardized(rows: MeasuredExamples) -> MeasuredExamples:
    X = rows.X
    if sparse.issparse(X):
        raise InputError(
            "standardize would make sparse examples dense: use Stream.from_arrays(X.toarray(), y), or log1p"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    if not np.isfinite(deviation).all():
        raise InputError(f"column {np.argmin(np.isfinite(deviation))} is too large to standardize: scale it first")
    deviation[X.min(axis=0) == X.max(axis=0)] = 1.0  # rounding may give such a column a tiny deviation
    Z: NDArray[Any] = (X - mean) / np.where(deviation > 0.0, deviation, 1.0)  # squares of tiny values may underflow
    return _measured(np.clip(Z, -CLIP, CLIP, out=Z).astype(X.dtype, copy=False))


def _with_constant(rows: MeasuredExamples) -> MeasuredExamples:
    X = rows.X
    one = np.ones((X.shape[0], 1), dtype=X.dtype)
    if sparse.issparse(X):
        joined = sparse.hstack([X, sparse.csr_array(one)], format="csr")
        return _measured(csr(joined.data, joined.indices, joined.indptr, joined.shape[1]))
    return _measured(np.hstack([X, one]))


def _unit_norm(rows: MeasuredExamples) -> MeasuredExamples:
    return _measured(divided(rows.X, np.where(rows.norms > 0, rows.norms, 1.0)))
