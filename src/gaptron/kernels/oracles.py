"""Online regressions that learn f_k(x) ≈ P(y = k | x) from bandit feedback, without importance weights.

With z the scores, a the label played and b = 1 if it was correct, else 0. b may also be a reward in between; then
f_k(x) ≈ E[b | x, k], and the two losses below have the weights b and 1 - b:

    squared     f_k = z_k clipped to [0, 1]        ½(f_a - b)²                              row a:  f_a - b
    logistic    f_k = 1/(1 + exp(-z_k))            -ln f_a if b, else -ln(1 - f_a)          row a:  f_a - b
    softmax     f = softmax z                      -ln f_a if b, else -ln(1 - f_a)          right:  f - e_a
                                                                            wrong:  f_a/(1 - f_a)·(e_a - f)

The last column is the derivative of the loss in z, the coefficients r of the gradient r ⊗ x. In the last line 1 - f_a
counts as at least 1e-3. The first two change only the row of the played label, O(nnz); the softmax changes all rows,
O(nnz·K). Learning rates are constant, or AdaGrad's.
"""

import math
from typing import Any

from gaptron.kernels.adagrad import descend
from gaptron.kernels.compile.jit import by_rows, jit
from gaptron.kernels.likelihood import reward_gradient
from gaptron.kernels.rows import add, add_one
from gaptron.kernels.simplex import softmax
from gaptron.types import Matrix, Vector

ORACLES = ("squared", "logistic", "softmax")
SQUARED, LOGISTIC_ONE, SOFTMAX = 0, 1, 2
STEPS = ("constant", "adagrad")
CONSTANT, ADAGRAD = 0, 1
FLOOR = 1e-8  # AdaGrad adds it under the square root


def step_for(oracle: str, steps: str, norm: float) -> float:
    """Return a learning rate that does well on examples of norm 1, divided by X² (AdaGrad: by X) for norms up to X."""
    X = norm or 1.0  # with norm 0 all examples are zero, and no step is ever taken
    return (0.5 if oracle == "squared" else 1.0) / (X if steps == "adagrad" else X * X)


@jit
def sigmoid(z: float) -> float:
    """Return 1/(1 + exp(-z)), without overflow."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@jit
def predict(oracle: int, z: Vector, top: int, f: Vector) -> None:
    """Write the probabilities f for the scores z; top is the label of the largest score."""
    if oracle == SOFTMAX:
        softmax(z, top, f)
        return
    for k in range(z.shape[0]):
        f[k] = sigmoid(z[k]) if oracle == LOGISTIC_ONE else min(max(z[k], 0.0), 1.0)


def _fit(
    W: Matrix, N: Matrix, x: Any, oracle: int, steps: int, step: float, f: Vector, label: int, reward: float, r: Vector
) -> None:
    if oracle == SOFTMAX:
        reward_gradient(f, label, reward, r)
    else:
        v = f[label] - reward
        if steps == CONSTANT:
            add_one(W, x, label, -step * v)
            return
        for k in range(r.shape[0]):
            r[k] = 0.0
        r[label] = v
    if steps == ADAGRAD:
        descend(W, N, x, r, step, FLOOR)
        return
    for k in range(r.shape[0]):
        r[k] *= -step
    add(W, x, r)


def _fit_actions(
    W: Matrix, N: Matrix, x: Any, oracle: int, steps: int, step: float, f: Vector, label: int, reward: float, r: Vector
) -> None:
    if oracle != SOFTMAX:
        add_one(W, x, label, -step * (f[label] - reward))
        return
    reward_gradient(f, label, reward, r)
    for k in range(r.shape[0]):
        r[k] *= -step
    add(W, x, r)


fit = by_rows(_fit, _fit, _fit_actions)
fit.__doc__ = """Take one gradient step on the reward of `label`, from the probabilities f that it was played with.

The reward is 1 if the label was correct, 0 if not, or in between. N holds AdaGrad's sums, in the layout of W; r is a
buffer. Actions have constant steps only.
"""
