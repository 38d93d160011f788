"""A pseudo-random number generator that is seeded by the one uniform number of a round.

`decide` gets a single uniform number u and may write nothing but its scratch. An algorithm that needs many draws
(posterior sampling, random choices while learning) expands u into as many as it needs: the same u gives the same draws,
compiled or not, and scoring an example twice changes nothing.

Marsaglia's xorshift128 on four words of 32 bits (J. Stat. Soft. 2003), stored in 64 bits so that nothing overflows.
"""

import math

import numpy as np
from numpy.typing import NDArray

from gaptron.kernels.compile.jit import jit

MASK = 0xFFFFFFFF
PrngState = NDArray[np.int64]


def new_prng() -> PrngState:
    """Return an unseeded state of four words."""
    return np.zeros(4, dtype=np.int64)


@jit
def seed_prng(prng: PrngState, u: float, purpose: int) -> None:
    """Seed the generator by u ∈ [0, 1); different purposes (0, 1, 2, ...) give different draws from the same u."""
    high = u * 4294967296.0
    prng[0] = int(high) ^ 123456789
    prng[1] = int((high - math.floor(high)) * 2097152.0) ^ 362436069
    prng[2] = 521288629 + purpose
    prng[3] = 88675123
    for _ in range(20):  # until every bit of u has affected every word
        next_bits(prng)


@jit
def mixed(bits: int) -> int:
    """Mix 32 bits, so that every bit affects every other (the last step of MurmurHash3, by A. Appleby)."""
    h = bits & MASK
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & MASK
    return int(h ^ (h >> 16))


@jit
def hashed(counter: int, purpose: int) -> float:
    """Return a number in (0, 1) that depends on the counter and the purpose alone.

    The numbers of neighbouring counters look independent, which those of a generator seeded by the counter do not.
    """
    return (mixed(mixed(mixed(counter >> 32) ^ (counter & MASK)) ^ (purpose & MASK)) + 0.5) / 4294967296.0


@jit
def next_bits(prng: PrngState) -> int:
    """Return 32 random bits."""
    t = prng[0] ^ ((prng[0] << 11) & MASK)
    prng[0], prng[1], prng[2] = prng[1], prng[2], prng[3]
    prng[3] = prng[3] ^ (prng[3] >> 19) ^ t ^ (t >> 8)
    return int(prng[3])


@jit
def uniform(prng: PrngState) -> float:
    """Return a number that is uniform on (0, 1)."""
    return ((next_bits(prng) >> 5) * 67108864.0 + (next_bits(prng) >> 6) + 0.5) / 9007199254740992.0


@jit
def normal(prng: PrngState) -> float:
    """Return a standard normal number (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(uniform(prng)))
    return radius * math.cos(2.0 * math.pi * uniform(prng))
