"""Cells become rows of numbers: running scale, values of words, unit length. One body for one row and for many.

A row is made of tracks. A value track holds a number a row, NaN for none; a word track the column of the row's word,
or `NOTHING`. What is counted and measured here is of the past alone: a cell is encoded first and learned from after.
"""

import math
from typing import Any

from gaptron.kernels.jit import jit

NUMBER, LOG, SINE, COSINE = 0, 1, 2, 3  # kinds of value tracks: a number, one of many sizes, an hour of the day twice
NOTHING, NEW_WORD, NEW_FLAG = -1, -2, -3  # in a word track: no entry; one that has no column yet, in its length alone
FLAG = -1  # the count of a column that is always 1, such as that of a missing number

CLIP = 4.0  # deviations: farther values are cut
FLAT = 1e-13  # a deviation of less, beside the mean, is rounding
SETTLED = 10  # values after which one that is far out moves mean and deviation only as far as the cut
FIRST_EPOCH, LONGEST_EPOCH = 16.0, 4096.0  # values after which those before them are forgotten: doubled up to the last
MOST = 2.0  # a rare word's value
CIRCLE = 2.0 * math.pi / 24.0
ROOT2 = math.sqrt(2.0)  # so that sine and cosine have the deviation of a number
N, MEAN, VARIANCE, SINCE, NEW_MEAN, NEW_VARIANCE, GOAL = range(7)  # what is kept of a number
IN_BOUNDS = [N, VARIANCE, SINCE, NEW_VARIANCE, GOAL]  # of these none is negative


@jit
def standardised(stats: Any, i: int, x: float, learn: bool) -> float:
    """How many deviations x lies from the mean of the values before it, which then learn of it."""
    n, m, v = stats[i, N], stats[i, MEAN], stats[i, VARIANCE]
    deviation = math.sqrt(v)
    z, kept = 0.0, x
    if deviation > FLAT * abs(m):
        z = min(max((x - m) / deviation, -CLIP), CLIP)
        if n >= SETTLED:
            kept = min(max(x, m - CLIP * deviation), m + CLIP * deviation)
    elif n > 0.0 and x != m:
        z = 1.0 if x > m else -1.0
        if learn:  # a constant stretch counts as one value
            n = 1.0
            stats[i, SINCE], stats[i, NEW_MEAN], stats[i, NEW_VARIANCE], stats[i, GOAL] = 0.0, 0.0, 0.0, FIRST_EPOCH
    if learn:
        a, gap = 1.0 / (n + 1.0), kept - m
        stats[i, N] = n + 1.0
        stats[i, MEAN] = m + a * gap
        stats[i, VARIANCE] = (1.0 - a) * (v + a * gap * gap)
        k, f, g = stats[i, SINCE] + 1.0, stats[i, NEW_MEAN], stats[i, NEW_VARIANCE]
        a, gap = 1.0 / k, kept - f
        f += a * gap
        g = (1.0 - a) * (g + a * gap * gap)
        if k >= stats[i, GOAL]:
            if math.sqrt(g) > FLAT * abs(f):  # not of an epoch that was constant
                stats[i, N], stats[i, MEAN], stats[i, VARIANCE] = k, f, g
                stats[i, GOAL] = min(2.0 * stats[i, GOAL], LONGEST_EPOCH)
            k, f, g = 0.0, 0.0, 0.0
        stats[i, SINCE], stats[i, NEW_MEAN], stats[i, NEW_VARIANCE] = k, f, g
    return z


@jit
def word_value(seen: int, all_seen: int) -> float:
    """The value of a word: larger the rarer it is among its column's words, both counts with this one."""
    return min(math.sqrt((all_seen + 1) / seen), MOST)


@jit
def encode(
    X: Any,
    values: Any,
    kinds: Any,
    columns: Any,
    stats: Any,
    S: Any,
    words: Any,
    totals: Any,
    counts: Any,
    learn: bool,
    ends: Any,
    indices: Any,
    entries: Any,
) -> int:
    """Rows of length 1 in compressed form; how many entries they have.

    Args:
        X: a number for each value track in use and each row.
        values: the value tracks in use; `kinds`, `columns` and `stats` are about all of them.
        kinds: NUMBER, LOG, SINE or COSINE.
        columns: where a track's number stands in a row.
        stats: what is known of a track's numbers.
        S: a column for each word track in use and each row.
        words: the word tracks in use.
        totals: how many words each word track has seen.
        counts: how often each column's word was seen, or FLAG.
        learn: learn from the rows, or only look.
        ends: written: where each row ends.
        indices: written: columns, in their order.
        entries: written: values.
    """
    e = 0
    for t in range(ends.shape[0] - 1):
        start = e
        indices[e], entries[e] = 0, 1.0  # the constant
        e += 1
        beside = 0.0
        for j in range(values.shape[0]):
            x = X[j, t]
            if math.isnan(x):
                continue
            i = values[j]
            if kinds[i] == SINE:
                x = ROOT2 * math.sin(CIRCLE * x)
            elif kinds[i] == COSINE:
                x = ROOT2 * math.cos(CIRCLE * x)
            else:
                if kinds[i] == LOG:
                    x = math.copysign(math.log1p(abs(x)), x)
                x = standardised(stats, i, x, learn)
            if x != 0.0:
                indices[e], entries[e] = columns[i], x
                e += 1
        for j in range(words.shape[0]):
            c = S[j, t]
            if c == NOTHING:
                continue
            w = words[j]
            if c == NEW_FLAG:
                beside += 1.0
            elif c == NEW_WORD:
                beside += word_value(1, totals[w] + 1) ** 2
            else:
                value = 1.0
                if counts[c] != FLAG:
                    value = word_value(counts[c] + 1, totals[w] + 1)
                    if learn:
                        counts[c] += 1
                        totals[w] += 1
                indices[e], entries[e] = c, value
                e += 1
        square = beside
        for a in range(start, e):  # by column: few, and nearly in order
            c, value = indices[a], entries[a]
            b = a
            while b > start and indices[b - 1] > c:
                indices[b], entries[b] = indices[b - 1], entries[b - 1]
                b -= 1
            indices[b], entries[b] = c, value
        for a in range(start, e):
            square += entries[a] * entries[a]
        length = math.sqrt(square)
        for a in range(start, e):
            entries[a] /= length
        ends[t + 1] = e
    return e
