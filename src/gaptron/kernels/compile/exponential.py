"""The exponential function of many numbers at once, bit-identical on every processor.

    n = x/ln 2, rounded;   r = x - n ln 2, |r| ≤ ln 2/2, with ln 2 in two parts;   e^x = 2ⁿ Σ rᵏ/k!, k ≤ 13

There are no branches and no calls, so the loop over the numbers is vectorised. 2ⁿ is made by writing n into the bits of
the exponent, in two factors, so that subnormal results and overflow are right. The error is below 1 unit in the last
place.
"""

import math
import struct
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from gaptron.kernels.compile.jit import FLAGS, jit
from gaptron.types import Vector

MIN_VECTORISED = 8  # numbers; for fewer, math.exp is faster
LOG2_E = 1.0 / math.log(2.0)
LN2_HIGH = math.ldexp(math.floor(math.ldexp(math.log(2.0), 32)), -32)  # 32 bits: its product with n is exact
LN2_LOW = 1.90821492927058770002e-10  # ln 2 - LN2_HIGH, to 53 bits
ROUND = 1.5 * 2.0**52  # x + ROUND - ROUND is x rounded to an integer, which is in the last bits of x + ROUND
BIASED = ROUND + 1023.0
LIMIT = 800.0  # e^800 is infinite, e^-800 is 0
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(k) for k in range(2, 14))


def power_of_two(n: float) -> float:
    """Return 2ⁿ for an integer n, -1022 ≤ n ≤ 1023."""
    bits: int = struct.unpack("<q", struct.pack("<d", n + BIASED))[0]
    power: float = struct.unpack("<d", struct.pack("<Q", bits << 52 & 0xFFFFFFFFFFFFFFFF))[0]
    return power


@intrinsic  # type: ignore[untyped-decorator]
def _shift_into_exponent(context: Any, n: Any) -> Any:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], ir.IntType(64))
        return builder.bitcast(builder.shl(bits, ir.Constant(ir.IntType(64), 52)), ir.DoubleType())

    return types.float64(types.float64), write


@overload(power_of_two, jit_options={**FLAGS, "forceinline": True}, strict=False)  # type: ignore[untyped-decorator]
def _power_of_two(n: Any) -> Any:
    return lambda n: _shift_into_exponent(n + BIASED)


@jit
def exponential(x: float) -> float:
    """Return e^x."""
    x = -LIMIT if x < -LIMIT else LIMIT if x > LIMIT else x  # NaN stays NaN
    n = (x * LOG2_E + ROUND) - ROUND
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    half = (0.5 * n + ROUND) - ROUND
    s = r * r
    q = s * s
    low, middle = (C2 + r * C3) + s * (C4 + r * C5), (C6 + r * C7) + s * (C8 + r * C9)
    high = (C10 + r * C11) + s * (C12 + r * C13)
    series = 1.0 + (r + s * (low + q * (middle + q * high)))
    return series * power_of_two(half) * power_of_two(n - half)


@jit
def exponentials(z: Vector, shift: float, p: Vector) -> None:
    """Write p_k = exp(z_k - shift); p may be z."""
    if z.shape[0] < MIN_VECTORISED:
        for k in range(z.shape[0]):
            p[k] = math.exp(z[k] - shift)
    else:
        for k in range(z.shape[0]):
            p[k] = exponential(float(z[k] - shift))
