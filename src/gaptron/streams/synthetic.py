"""SynSep and SynNonSep, the artificial documents of Kakade, Shalev-Shwartz and Tewari (ICML 2008).

d = 400 words, of which 1..120 are keywords and 121..400 common; K = 9 topics. Once, each topic c draws
n_c ~ U{20..40} keywords, its prototype. Each document then draws its topic uniformly, takes the prototype, turns
off 5 of its keywords and turns on 20 common words. So x ∈ {0,1}⁴⁰⁰ and ‖x‖² = n_c + 15.
"""

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import InputError
from gaptron.streams.rows import CSR, csr
from gaptron.streams.stream import Stream
from gaptron.types import Integers

KEYWORDS, COMMON, TOPICS = 120, 280, 9
OFF, ON = 5, 20  # keywords turned off and common words turned on in each document


def synsep(n_rounds: int = 100_000, seed: int = 0, topics: int = TOPICS) -> Stream:
    """Documents that a linear rule can tell apart. The paper has 9 topics."""
    X, y = _documents(n_rounds, topics, _generator(seed))
    return Stream(X, y, tuple(range(topics)), "synsep", notes=(f"seed {seed}",))


def synnonsep(n_rounds: int = 100_000, seed: int = 0, noise: float = 0.05, topics: int = TOPICS) -> Stream:
    """The rows of `synsep` with the same seed, their labels disturbed.

    With probability `noise`, independently in each round, the label becomes one uniform among the *others*. Ports
    differ here: some draw from all 9, which leaves 8/9 of the noise, and some disturb exactly that share of rounds.
    """
    if not 0.0 <= noise <= 1.0:
        raise InputError(f"noise is a probability, not {noise}")
    rng = _generator(seed)
    X, y = _documents(n_rounds, topics, rng)
    struck = rng.random(n_rounds) < noise
    y[struck] = (y[struck] + rng.integers(1, topics, struck.sum())) % topics
    word = f"label noise {noise:g}: one of the other {topics - 1}"
    return Stream(X, y, tuple(range(topics)), "synnonsep", notes=(f"seed {seed}", word))


def _generator(seed: int) -> np.random.Generator:
    if seed < 0:
        raise InputError(f"seed must not be negative, like {seed}")
    return np.random.default_rng(seed)


def _documents(n_rounds: int, topics: int, rng: np.random.Generator) -> tuple[CSR, Integers]:
    if n_rounds < 1:
        raise InputError(f"a stream needs at least one round, not {n_rounds}")
    if topics < 2:
        raise InputError(f"there must be at least two topics, not {topics}")
    prototypes = [np.sort(rng.choice(KEYWORDS, n, replace=False)) for n in rng.integers(20, 41, topics)]
    lengths = np.array([len(prototype) for prototype in prototypes])
    y = rng.integers(0, topics, n_rounds)
    off = _subsets(lengths[y], OFF, rng)
    on = np.sort(_subsets(np.full(n_rounds, COMMON), ON, rng), axis=1) + KEYWORDS
    ends = np.concatenate([[0], np.cumsum(lengths[y] - OFF + ON)])
    indices = np.empty(ends[-1], dtype=np.int32)
    indices[ends[1:, None] + np.arange(-ON, 0)] = on
    for topic, prototype in enumerate(prototypes):
        rows = np.flatnonzero(y == topic)
        kept = np.ones((len(rows), len(prototype)), dtype=bool)
        np.put_along_axis(kept, off[rows].astype(np.intp), False, axis=1)
        words = np.broadcast_to(prototype, kept.shape)[kept].reshape(len(rows), len(prototype) - OFF)
        indices[ends[rows, None] + np.arange(len(prototype) - OFF)] = words
    return csr(np.ones(len(indices)), indices, ends, KEYWORDS + COMMON), y


def _subsets(sizes: Integers, k: int, rng: np.random.Generator) -> NDArray[np.int16]:
    """For each n in sizes, k different numbers of 0..n-1, every subset as likely (Floyd's algorithm)."""
    chosen = np.empty((k, len(sizes)), dtype=np.int16)
    for i in range(k):
        last = sizes - k + i
        drawn = (rng.random(len(sizes)) * (last + 1)).astype(np.int16)
        taken = np.zeros(len(sizes), dtype=bool)
        for earlier in chosen[:i]:
            taken |= earlier == drawn
        chosen[i] = np.where(taken, last, drawn)
    return np.ascontiguousarray(chosen.T)
