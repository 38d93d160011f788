"""More random numbers from the one a round is given.

`decide` gets a single uniform number u and must write nothing but its sheet. An algorithm that needs many draws
(sampling a posterior, flipping coins while learning) spreads u into as many as it likes: the same u gives the same
draws, compiled or not, and looking at a row twice changes nothing.

Marsaglia's xorshift128 on four words of 32 bits (J. Stat. Soft. 2003), held in 64 so that nothing overflows.
"""

import math

import numpy as np
from numpy.typing import NDArray

from gaptron.kernels.jit import jit

MASK = 0xFFFFFFFF
Dice = NDArray[np.int64]


def new_dice() -> Dice:
    """Room for the four words."""
    return np.zeros(4, dtype=np.int64)


@jit
def shake(dice: Dice, u: float, purpose: int) -> None:
    """Start afresh from u ∈ [0, 1); another purpose (0, 1, 2, ...) gives other draws from the same u."""
    high = u * 4294967296.0
    dice[0] = int(high) ^ 123456789
    dice[1] = int((high - math.floor(high)) * 2097152.0) ^ 362436069
    dice[2] = 521288629 + purpose
    dice[3] = 88675123
    for _ in range(20):  # until every bit of u has touched every word
        throw(dice)


@jit
def throw(dice: Dice) -> int:
    """32 random bits."""
    t = dice[0] ^ ((dice[0] << 11) & MASK)
    dice[0], dice[1], dice[2] = dice[1], dice[2], dice[3]
    dice[3] = dice[3] ^ (dice[3] >> 19) ^ t ^ (t >> 8)
    return int(dice[3])


@jit
def uniform(dice: Dice) -> float:
    """A number in (0, 1)."""
    return ((throw(dice) >> 5) * 67108864.0 + (throw(dice) >> 6) + 0.5) / 9007199254740992.0


@jit
def normal(dice: Dice) -> float:
    """A standard normal number (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(uniform(dice)))
    return radius * math.cos(2.0 * math.pi * uniform(dice))
