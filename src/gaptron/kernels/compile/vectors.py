"""Operations on short vectors and on blocks of 16 × 16 numbers, written as vector instructions.

For a loop over ten labels, or over the 16 numbers of a row, the compiler checks first whether memory overlaps, takes
what it can four at a time and the remainder one by one. The arguments here must not overlap, and nothing is checked
(measured: both operations on a block take 36 ns instead of 58; adding 44 non-zeros to three labels 38 instead of 54, to
nine 57 instead of 64).

The plain functions say what each operation does, and run where nothing is compiled.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from gaptron.kernels.compile.jit import FLAGS
from gaptron.types import Matrix, Vector

BLOCK = 16
Blocks = NDArray[np.float64]  # q × 16 × 16

WIDE = 8  # numbers in a vector, in loops over many
_DOUBLE, _INT64, _INT32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_FUSED = ("contract",)  # a product and the sum that it goes into are rounded once


def add_scaled(w: Any, r: Vector, v: float) -> None:
    """Update w_k ← w_k + r_k·v for every k of r; w may be in single precision."""
    for k in range(r.shape[0]):
        w[k] += r[k] * v


def multiply(P: Matrix, x: Vector, g: Vector) -> float:
    """Write g = Px for a symmetric block P, and return ⟨x, g⟩."""
    g[:] = x @ P
    return float(x @ g)


def lower(P: Matrix, g: Vector, c: float) -> None:
    """Update P ← P - c·ggᵀ for a block P; it stays symmetric to the last bit."""
    P -= c * np.multiply.outer(g, g)


# --- vector instructions ------------------------------------------------------------------------------------------


class _Memory:
    """A contiguous array, read and written one vector at a time."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any) -> None:
        if kind.layout != "C":
            raise TypeError(f"{kind} is not contiguous")
        self.builder, self.element = builder, ir.DoubleType() if kind.dtype == types.float64 else ir.FloatType()
        self.array = context.make_array(kind)(context, builder, array)

    @property
    def size(self) -> Any:
        return self.builder.extract_value(self.array.shape, 0)

    def load_one(self, index: int) -> Any:
        return self.builder.load(self.builder.gep(self.array.data, [ir.Constant(_INT64, index)]))

    def load(self, index: Any, size: int = BLOCK) -> Any:
        """Load `size` numbers from an index on, in double precision."""
        vector = self.builder.load(self._pointer(index, size), align=self._bytes)
        return vector if self.element == _DOUBLE else self.builder.fpext(vector, ir.VectorType(_DOUBLE, size))

    def store(self, vector: Any, index: Any, size: int = BLOCK) -> None:
        if self.element != _DOUBLE:
            vector = self.builder.fptrunc(vector, ir.VectorType(self.element, size))
        self.builder.store(vector, self._pointer(index, size), align=self._bytes)

    @property
    def _bytes(self) -> int:
        return 8 if self.element == _DOUBLE else 4

    def _pointer(self, index: Any, size: int) -> Any:
        offset = ir.Constant(_INT64, index) if isinstance(index, int) else index
        first = self.builder.gep(self.array.data, [offset])
        return self.builder.bitcast(first, ir.VectorType(self.element, size).as_pointer())


def _repeat(builder: Any, number: Any, size: int = BLOCK) -> Any:
    """Return a vector with the same number in every element."""
    undefined = ir.Constant(ir.VectorType(_DOUBLE, size), ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_INT32, size), [0] * size))


def _sum(builder: Any, vector: Any) -> Any:
    """Sum a vector by adding its halves, recursively: the order is the same on every processor."""
    size = BLOCK
    while size > 1:
        size //= 2
        halves = [ir.Constant(ir.VectorType(_INT32, size), list(range(first, first + size))) for first in (0, size)]
        vector = builder.fadd(*(builder.shuffle_vector(vector, vector, half) for half in halves))
    return builder.extract_element(vector, ir.Constant(_INT32, 0))


@intrinsic  # type: ignore[untyped-decorator]
def _add_scaled(context: Any, w: Any, r: Any, v: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, source = (_Memory(context, builder, kind, array) for kind, array in zip(signature.args[:2], arguments))

        def add(index: Any, size: int) -> None:
            change = builder.fmul(source.load(index, size), _repeat(builder, arguments[2], size))
            target.store(builder.fadd(target.load(index, size), change), index, size)

        count = source.size

        def whole(size: int) -> Any:  # the largest multiple of a power of two up to count
            return builder.and_(count, ir.Constant(_INT64, -size))

        with cgutils.for_range_slice(builder, ir.Constant(_INT64, 0), whole(WIDE), ir.Constant(_INT64, WIDE)) as loop:
            add(loop[0], WIDE)
        for size in (4, 2, 1):  # the remainder, by its binary digits
            digit = builder.and_(count, ir.Constant(_INT64, size))
            with builder.if_then(builder.icmp_unsigned("!=", digit, ir.Constant(_INT64, 0))):
                add(whole(2 * size), size)
        return context.get_dummy_value()

    return types.void(w, r, types.float64), write


@intrinsic  # type: ignore[untyped-decorator]
def _multiply(context: Any, P: Any, x: Any, g: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block, row, product = (_Memory(context, builder, *pair) for pair in zip(signature.args, arguments))
        # Two sums, so that one addition need not wait for the other.
        sums = [ir.Constant(ir.VectorType(_DOUBLE, BLOCK), [0.0] * BLOCK)] * 2
        for j in range(BLOCK):
            times = builder.fmul(_repeat(builder, row.load_one(j)), block.load(j * BLOCK), flags=_FUSED)
            sums[j % 2] = builder.fadd(sums[j % 2], times, flags=_FUSED)
        whole = builder.fadd(*sums)
        product.store(whole, 0)
        return _sum(builder, builder.fmul(whole, row.load(0)))

    return types.float64(P, x, g), write


@intrinsic  # type: ignore[untyped-decorator]
def _lower(context: Any, P: Any, g: Any, c: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block, vector = (_Memory(context, builder, kind, array) for kind, array in zip(signature.args[:2], arguments))
        whole, scale = vector.load(0), _repeat(builder, arguments[2])
        for i in range(BLOCK):
            one = _repeat(builder, builder.extract_element(whole, ir.Constant(_INT32, i)))
            change = builder.fmul(scale, builder.fmul(one, whole))
            block.store(builder.fsub(block.load(i * BLOCK), change), i * BLOCK)
        return context.get_dummy_value()

    return types.void(P, g, types.float64), write


_INLINED = {**FLAGS, "forceinline": True}
overload(add_scaled, jit_options=_INLINED)(lambda w, r, v: lambda w, r, v: _add_scaled(w, r, v))
overload(multiply, jit_options=_INLINED)(lambda P, x, g: lambda P, x, g: _multiply(P, x, g))
overload(lower, jit_options=_INLINED)(lambda P, g, c: lambda P, g, c: _lower(P, g, c))
