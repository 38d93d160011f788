"""AdaGrad: each weight has its own step, shrinking with the gradients that weight has seen.

Duchi, Hazan & Singer, "Adaptive Subgradient Methods", JMLR 2011, diagonal version. Scores are those of the weights
themselves, so `rows.scores` serves; N, the sums of squares, has the layout of W.
"""

import math
from typing import Any

from gaptron.kernels.jit import by_rows, jit
from gaptron.types import Matrix, Vector


@jit
def pace(g: float, n: float, floor: float) -> float:
    """g/√(n + floor): what a gradient is worth to a weight that has seen n of squares."""
    return g / math.sqrt(n + floor)


def _descend_dense(W: Matrix, N: Matrix, x: Any, r: Vector, step: float, floor: float) -> None:
    for k in range(W.shape[0]):
        if r[k] != 0.0:
            for i in range(W.shape[1]):
                g = r[k] * x[i]
                N[k, i] += g * g
                W[k, i] -= step * pace(g, N[k, i], floor)


def _descend_sparse(W: Matrix, N: Matrix, x: Any, r: Vector, step: float, floor: float) -> None:
    for j in range(x.indices.shape[0]):
        w, n = W[x.indices[j]], N[x.indices[j]]
        v = x.values[j]
        for k in range(r.shape[0]):
            g = r[k] * v
            n[k] += g * g
            w[k] -= step * pace(g, n[k], floor)


descend = by_rows(_descend_dense, _descend_sparse)
descend.__doc__ = "G = r ⊗ x;  N ← N + G²;  W ← W - step·G/√(N + floor), entry by entry; floor > 0. O(nnz·K)."
