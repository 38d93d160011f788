"""AdaGrad: each weight has its own learning rate, which decreases with the gradients of that weight.

Duchi, Hazan & Singer, "Adaptive Subgradient Methods", JMLR 2011, diagonal version. N, the sums of squared gradients,
has the layout of W.
"""

import math
from typing import Any

from gaptron.kernels.compile.jit import by_rows, jit
from gaptron.types import Matrix, Vector


@jit
def scaled(g: float, n: float, floor: float) -> float:
    """Return g/√(n + floor), the scaled gradient of a weight whose squared gradients sum to n."""
    return g / math.sqrt(n + floor)


def _descend_dense(W: Matrix, N: Matrix, x: Any, r: Vector, step: float, floor: float) -> None:
    for k in range(W.shape[0]):
        if r[k] != 0.0:
            for i in range(W.shape[1]):
                g = r[k] * x[i]
                N[k, i] += g * g
                W[k, i] -= step * scaled(g, N[k, i], floor)


def _descend_sparse(W: Matrix, N: Matrix, x: Any, r: Vector, step: float, floor: float) -> None:
    for j in range(x.indices.shape[0]):
        w, n = W[x.indices[j]], N[x.indices[j]]
        v = x.values[j]
        for k in range(r.shape[0]):
            g = r[k] * v
            n[k] += g * g
            w[k] -= step * scaled(g, n[k], floor)


descend = by_rows(_descend_dense, _descend_sparse)
descend.__doc__ = (
    "Update, with G = r ⊗ x,  N ← N + G²;  W ← W - step·G/√(N + floor), entry by entry; floor > 0. O(nnz·K)."
)
