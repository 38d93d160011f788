"""Synthetic streams.

SynSep and SynNonSep are the artificial documents of Kakade, Shalev-Shwartz and Tewari (ICML 2008): d = 400
words, of which 1..120 are keywords and 121..400 common; K = 9 topics. Once, each topic c draws n_c ~ U{20..40}
keywords, its prototype. Each document then draws its topic uniformly, takes the prototype, turns off 5 of its keywords
and turns on 20 common words. Therefore x ∈ {0,1}⁴⁰⁰ and ‖x‖² = n_c + 15.

The others are adversarial, each against another property of learners: `synswitch` and `alternating` change the meaning
of the labels, `twolabels` has contexts with a good label and one nearly as good, and on `xor` no linear score is
correlated with a label.
"""

import numpy as np
from numpy.typing import NDArray

from gaptron.data.examples import measured
from gaptron.errors import InputError
from gaptron.streams.rows import CSR, csr
from gaptron.streams.stream import Stream
from gaptron.types import Integers

KEYWORDS, COMMON, TOPICS = 120, 280, 9
OFF, ON = 5, 20  # keywords turned off and common words turned on in each document


def synsep(n_rounds: int = 100_000, seed: int = 0, topics: int = TOPICS) -> Stream:
    """Generate documents that a linear rule separates.

    Args:
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.
        topics: the number of topics; 9 in the paper.

    Returns:
        The stream.
    """
    X, y = _documents(n_rounds, topics, _generator(seed))
    return Stream(measured(X), y, tuple(range(topics)), "synsep", notes=(f"seed {seed}",))


def synnonsep(n_rounds: int = 100_000, seed: int = 0, noise: float = 0.05, topics: int = TOPICS) -> Stream:
    """Generate the examples of `synsep` with the same seed and noisy labels.

    With probability `noise`, independently in each round, the label is replaced by a uniform draw from the *other*
    labels. Other implementations differ: some draw from all 9, which leaves 8/9 of the noise, and some replace exactly
    that share of labels.

    Args:
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.
        noise: the probability that a label is replaced.
        topics: the number of topics; 9 in the paper.

    Returns:
        The stream.
    """
    if not 0.0 <= noise <= 1.0:
        raise InputError(f"noise must be a probability, not {noise}")
    rng = _generator(seed)
    X, y = _documents(n_rounds, topics, rng)
    replaced = rng.random(n_rounds) < noise
    y[replaced] = (y[replaced] + rng.integers(1, topics, replaced.sum())) % topics
    note = f"label noise {noise:g}: one of the other {topics - 1}"
    return Stream(measured(X), y, tuple(range(topics)), "synnonsep", notes=(f"seed {seed}", note))


def synswitch(n_rounds: int = 100_000, seed: int = 0, switches: int = 2) -> Stream:
    """Generate the examples of `synsep`; all topics change their labels at once, `switches` times at equal distances.

    Args:
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.
        switches: the number of changes.

    Returns:
        The stream.
    """
    _whole("switches", switches, 0)
    rng = _generator(seed)
    X, y = _documents(n_rounds, TOPICS, rng)
    segment = np.arange(n_rounds) * (switches + 1) // n_rounds
    labels = np.stack([rng.permutation(TOPICS) for _ in range(switches + 1)])
    return Stream(
        measured(X),
        labels[segment, y],
        tuple(range(TOPICS)),
        "synswitch",
        notes=(f"seed {seed}", f"{switches} switches"),
    )


def alternating(n_rounds: int = 20_000, seed: int = 0, period: int = 50, labels: int = 5, features: int = 20) -> Stream:
    """Alternate two independent linear rules: y = argmax⟨A_k, x⟩ for `period` rounds, then argmax⟨B_k, x⟩.

    Args:
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.
        period: the number of rounds between changes of the rule.
        labels: the number of labels.
        features: the number of features.

    Returns:
        The stream.
    """
    for name, number, least in (("period", period, 1), ("labels", labels, 2), ("features", features, 1)):
        _whole(name, number, least)
    rng = _generator(seed)
    X = rng.normal(size=(_rounds(n_rounds), features))
    rules = rng.normal(size=(2, features, labels))
    turn = np.arange(n_rounds) // period % 2
    y = np.stack([X @ rule for rule in rules])[turn, np.arange(n_rounds)].argmax(axis=1)
    return Stream(
        measured(X), y, tuple(range(labels)), "alternating", notes=(f"seed {seed}", f"rules change every {period}")
    )


def twolabels(
    n_rounds: int = 50_000,
    seed: int = 0,
    contexts: int = 20,
    labels: int = 10,
    first: float = 0.5,
    second: float = 0.35,
) -> Stream:
    """Generate contexts (unit vectors, drawn uniformly) with two frequent labels each.

    The remaining probability is uniform over all labels. Playing the second label costs `first - second` per round, and
    a learner that stops exploring too early does not discover it.

    Args:
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.
        contexts: the number of contexts.
        labels: the number of labels.
        first: the probability of the most frequent label of a context.
        second: the probability of its second label.

    Returns:
        The stream.
    """
    _whole("contexts", contexts, 1)
    _whole("labels", labels, 2)
    if not (0.0 <= second <= first and first + second <= 1.0):
        raise InputError(f"probabilities must obey 0 ≤ second ≤ first and first + second ≤ 1, not {first}, {second}")
    rng = _generator(seed)
    context = rng.integers(0, contexts, _rounds(n_rounds))
    pairs = np.stack([rng.permutation(labels)[:2] for _ in range(contexts)])
    u, y = rng.random(n_rounds), rng.integers(0, labels, n_rounds)
    y = np.where(u < first, pairs[context, 0], np.where(u < first + second, pairs[context, 1], y))
    X = csr(np.ones(n_rounds), context.astype(np.int32), np.arange(n_rounds + 1), contexts)
    note = f"{contexts} contexts, two labels of probability {first:g} and {second:g}"
    return Stream(measured(X), y.astype(np.int64), tuple(range(labels)), "twolabels", notes=(f"seed {seed}", note))


def xor(n_rounds: int = 50_000, seed: int = 0, noise: int = 6) -> Stream:
    """Generate four signs and `noise` further ones, all ±1; y = 2·[s₁ ≠ s₂] + [s₃ ≠ s₄].

    Every linear score is uncorrelated with every label, so a linear model of P(y|x) learns nothing and is correct one
    time in four. The argmax of scores f_a(s₁, s₂) + f_b(s₃, s₄), f_0 = s + s' and f_1 = 1, is correct 9 times in 16.

    Args:
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.
        noise: the number of further features.

    Returns:
        The stream.
    """
    _whole("noise", noise, 0)
    rng = _generator(seed)
    X = rng.choice([-1.0, 1.0], size=(_rounds(n_rounds), 4 + noise))
    y = 2 * (X[:, 0] != X[:, 1]) + (X[:, 2] != X[:, 3])
    return Stream(measured(X), y.astype(np.int64), (0, 1, 2, 3), "xor", notes=(f"seed {seed}",))


def _whole(name: str, number: int, least: int) -> None:
    if number < least:
        raise InputError(f"{name} must be at least {least}, not {number}")


def _rounds(n_rounds: int) -> int:
    if n_rounds < 1:
        raise InputError(f"a stream needs at least one round, not {n_rounds}")
    return n_rounds


def _generator(seed: int) -> np.random.Generator:
    if seed < 0:
        raise InputError(f"seed must not be negative, but is {seed}")
    return np.random.default_rng(seed)


def _documents(n_rounds: int, topics: int, rng: np.random.Generator) -> tuple[CSR, Integers]:
    _rounds(n_rounds)
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
        used = np.ones((len(rows), len(prototype)), dtype=bool)
        np.put_along_axis(used, off[rows].astype(np.intp), False, axis=1)
        words = np.broadcast_to(prototype, used.shape)[used].reshape(len(rows), len(prototype) - OFF)
        indices[ends[rows, None] + np.arange(len(prototype) - OFF)] = words
    return csr(np.ones(len(indices)), indices, ends, KEYWORDS + COMMON), y


def _subsets(sizes: Integers, k: int, rng: np.random.Generator) -> NDArray[np.int16]:
    """Draw for each n in sizes a uniform subset of k numbers of 0..n-1 (Floyd's algorithm)."""
    chosen = np.empty((k, len(sizes)), dtype=np.int16)
    for i in range(k):
        last = sizes - k + i
        drawn = (rng.random(len(sizes)) * (last + 1)).astype(np.int16)
        taken = np.zeros(len(sizes), dtype=bool)
        for earlier in chosen[:i]:
            taken |= earlier == drawn
        chosen[i] = np.where(taken, last, drawn)
    return np.ascontiguousarray(chosen.T)
