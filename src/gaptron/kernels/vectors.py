"""Verbs on short vectors, and on blocks of 16 × 16 numbers, each written as instructions for whole vectors.

Given a loop over ten labels, or over the 16 numbers of a line, the compiler asks before each whether memory overlaps,
takes what it can four at a time and the rest one by one (measured: both verbs on a block 58 ns, 36 so; 44 non-zeros
added to three labels 54 ns, 38 so, to nine 64 and 57). Here nothing may overlap, and nobody asks.

The functions say what each verb does, and do it where nothing is compiled.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from gaptron.kernels.jit import FLAGS
from gaptron.types import Matrix, Vector

BLOCK = 16
Blocks = NDArray[np.float64]  # q × 16 × 16

WIDE = 8  # numbers to a vector where there are many
_NUMBER, _COUNT, _PLACE = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_ONE_ROUNDING = ("contract",)  # of a product and the sum it goes into


def add_scaled(w: Any, r: Vector, v: float) -> None:
    """w_k ← w_k + r_k·v for every k of r; w may be in single precision."""
    for k in range(r.shape[0]):
        w[k] += r[k] * v


def multiply(P: Matrix, x: Vector, g: Vector) -> float:
    """g = Px for a symmetric block P. Returns ⟨x, g⟩."""
    g[:] = x @ P
    return float(x @ g)


def lower(P: Matrix, g: Vector, c: float) -> None:
    """P ← P - c·gg' for a block P, symmetric to the bit."""
    P -= c * np.multiply.outer(g, g)


# --- as instructions ------------------------------------------------------------------------------------------


class _Memory:
    """An array of neighbouring numbers, read and written a vector at a time."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any) -> None:
        if kind.layout != "C":
            raise TypeError(f"the numbers of {kind} do not lie side by side")
        self.builder, self.number = builder, ir.DoubleType() if kind.dtype == types.float64 else ir.FloatType()
        self.array = context.make_array(kind)(context, builder, array)

    @property
    def size(self) -> Any:
        return self.builder.extract_value(self.array.shape, 0)

    def one(self, place: int) -> Any:
        return self.builder.load(self.builder.gep(self.array.data, [ir.Constant(_COUNT, place)]))

    def load(self, place: Any, size: int = BLOCK) -> Any:
        """Numbers from a place on, in double precision."""
        vector = self.builder.load(self._at(place, size), align=self._bytes)
        return vector if self.number == _NUMBER else self.builder.fpext(vector, ir.VectorType(_NUMBER, size))

    def store(self, vector: Any, place: Any, size: int = BLOCK) -> None:
        if self.number != _NUMBER:
            vector = self.builder.fptrunc(vector, ir.VectorType(self.number, size))
        self.builder.store(vector, self._at(place, size), align=self._bytes)

    @property
    def _bytes(self) -> int:
        return 8 if self.number == _NUMBER else 4

    def _at(self, place: Any, size: int) -> Any:
        number = ir.Constant(_COUNT, place) if isinstance(place, int) else place
        first = self.builder.gep(self.array.data, [number])
        return self.builder.bitcast(first, ir.VectorType(self.number, size).as_pointer())


def _repeat(builder: Any, number: Any, size: int = BLOCK) -> Any:
    """A vector of one number."""
    nothing = ir.Constant(ir.VectorType(_NUMBER, size), ir.Undefined)
    one = builder.insert_element(nothing, number, ir.Constant(_PLACE, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_PLACE, size), [0] * size))


def _sum(builder: Any, vector: Any) -> Any:
    """The halves are added, and so on: in an order that no processor changes."""
    size = BLOCK
    while size > 1:
        size //= 2
        places = [ir.Constant(ir.VectorType(_PLACE, size), list(range(first, first + size))) for first in (0, size)]
        vector = builder.fadd(*(builder.shuffle_vector(vector, vector, half) for half in places))
    return builder.extract_element(vector, ir.Constant(_PLACE, 0))


@intrinsic  # type: ignore[untyped-decorator]
def _add_scaled(context: Any, w: Any, r: Any, v: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, what = (_Memory(context, builder, kind, array) for kind, array in zip(signature.args[:2], arguments))

        def add(place: Any, size: int) -> None:
            change = builder.fmul(what.load(place, size), _repeat(builder, arguments[2], size))
            to.store(builder.fadd(to.load(place, size), change), place, size)

        count = what.size

        def behind(size: int) -> Any:
            return builder.and_(count, ir.Constant(_COUNT, -size))

        with cgutils.for_range_slice(builder, ir.Constant(_COUNT, 0), behind(WIDE), ir.Constant(_COUNT, WIDE)) as loop:
            add(loop[0], WIDE)
        for size in (4, 2, 1):  # the rest: as its binary digits say
            digit = builder.and_(count, ir.Constant(_COUNT, size))
            with builder.if_then(builder.icmp_unsigned("!=", digit, ir.Constant(_COUNT, 0))):
                add(behind(2 * size), size)
        return context.get_dummy_value()

    return types.void(w, r, types.float64), write


@intrinsic  # type: ignore[untyped-decorator]
def _multiply(context: Any, P: Any, x: Any, g: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block, row, product = (_Memory(context, builder, *pair) for pair in zip(signature.args, arguments))
        sums = [
            ir.Constant(ir.VectorType(_NUMBER, BLOCK), [0.0] * BLOCK)
        ] * 2  # so that one need not wait for the other
        for j in range(BLOCK):
            times = builder.fmul(_repeat(builder, row.one(j)), block.load(j * BLOCK), flags=_ONE_ROUNDING)
            sums[j % 2] = builder.fadd(sums[j % 2], times, flags=_ONE_ROUNDING)
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
            one = _repeat(builder, builder.extract_element(whole, ir.Constant(_PLACE, i)))
            change = builder.fmul(scale, builder.fmul(one, whole))
            block.store(builder.fsub(block.load(i * BLOCK), change), i * BLOCK)
        return context.get_dummy_value()

    return types.void(P, g, types.float64), write


_INLINED = {**FLAGS, "forceinline": True}
overload(add_scaled, jit_options=_INLINED)(lambda w, r, v: lambda w, r, v: _add_scaled(w, r, v))
overload(multiply, jit_options=_INLINED)(lambda P, x, g: lambda P, x, g: _multiply(P, x, g))
overload(lower, jit_options=_INLINED)(lambda P, g, c: lambda P, g, c: _lower(P, g, c))
