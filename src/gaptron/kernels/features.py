"""Encode tables as sparse examples of norm 1: running standardisation, values of categories, normalisation.

An example is encoded from tracks. A value track has a number per row, NaN if it is missing. A word track has the column
of the row's category, or `NOTHING`. The statistics are of earlier rows only: a cell is encoded before it updates them.
"""

import math
from typing import Any

from gaptron.kernels.compile.jit import jit

NUMBER, LOG, SINE, COSINE = (
    0,
    1,
    2,
    3,
)  # kinds of value tracks: a number, one of many magnitudes, the hour of the day twice
NOTHING, NEW_WORD, NEW_FLAG = (
    -1,
    -2,
    -3,
)  # in a word track: no entry; entries without a column yet, which count in the norm only
FLAG = -1  # the count of a column whose value is always 1, such as that of a missing number

CLIP = 4.0  # standard deviations: values beyond are clipped
FLAT = 1e-13  # a smaller deviation, relative to the mean, is a rounding error
SETTLED = 10  # values after which an outlier is clipped before it updates mean and deviation
FIRST_EPOCH, LONGEST_EPOCH = 16.0, 4096.0  # values per epoch: earlier ones are then dropped; it doubles up to the last
MAX_WORD_VALUE = 2.0  # of a rare category
CIRCLE = 2.0 * math.pi / 24.0
ROOT2 = math.sqrt(2.0)  # gives sine and cosine the standard deviation 1
N, MEAN, VARIANCE, SINCE, NEW_MEAN, NEW_VARIANCE, GOAL = range(7)  # columns of `stats`
IN_BOUNDS = [N, VARIANCE, SINCE, NEW_VARIANCE, GOAL]  # those that are never negative


@jit
def standardised(stats: Any, i: int, x: float, learn: bool) -> float:
    """Return x standardised by the mean and deviation of the values before it; then, with `learn`, update them by x."""
    n, m, v = stats[i, N], stats[i, MEAN], stats[i, VARIANCE]
    deviation = math.sqrt(v)
    z, clipped = 0.0, x
    if deviation > FLAT * abs(m):
        z = min(max((x - m) / deviation, -CLIP), CLIP)
        if n >= SETTLED:
            clipped = min(max(x, m - CLIP * deviation), m + CLIP * deviation)
    elif n > 0.0 and x != m:
        z = 1.0 if x > m else -1.0
        if learn:  # the constant values so far count as one
            n = 1.0
            stats[i, SINCE], stats[i, NEW_MEAN], stats[i, NEW_VARIANCE], stats[i, GOAL] = 0.0, 0.0, 0.0, FIRST_EPOCH
    if learn:
        a, gap = 1.0 / (n + 1.0), clipped - m
        stats[i, N] = n + 1.0
        stats[i, MEAN] = m + a * gap
        stats[i, VARIANCE] = (1.0 - a) * (v + a * gap * gap)
        k, f, g = stats[i, SINCE] + 1.0, stats[i, NEW_MEAN], stats[i, NEW_VARIANCE]
        a, gap = 1.0 / k, clipped - f
        f += a * gap
        g = (1.0 - a) * (g + a * gap * gap)
        if k >= stats[i, GOAL]:
            if math.sqrt(g) > FLAT * abs(f):  # skip an epoch of constant values
                stats[i, N], stats[i, MEAN], stats[i, VARIANCE] = k, f, g
                stats[i, GOAL] = min(2.0 * stats[i, GOAL], LONGEST_EPOCH)
            k, f, g = 0.0, 0.0, 0.0
        stats[i, SINCE], stats[i, NEW_MEAN], stats[i, NEW_VARIANCE] = k, f, g
    return z


@jit
def word_value(count: int, total: int) -> float:
    """Return the value of a category, larger for rarer ones; both counts include the present row."""
    return min(math.sqrt((total + 1) / count), MAX_WORD_VALUE)


@jit
def row_entries(
    x: Any,
    values: Any,
    kinds: Any,
    columns: Any,
    stats: Any,
    s: Any,
    words: Any,
    totals: Any,
    counts: Any,
    learn: bool,
    indices: Any,
    entries: Any,
    e: int,
) -> int:
    """Append an entry for each cell of one row, unless it is missing. `finish` removes those that are not stored.

    Args:
        x: numbers, one per value track in use; NaN where they are missing.
        values: as in `encode`.
        kinds: as in `encode`.
        columns: as in `encode`.
        stats: as in `encode`.
        s: columns of categories, one per word track in use.
        words: as in `encode`.
        totals: as in `encode`.
        counts: as in `encode`.
        learn: as in `encode`.
        indices: receives the columns; `NEW_WORD` or `NEW_FLAG` where there is none yet.
        entries: receives the values.
        e: the number of entries so far.

    Returns:
        The number of entries.
    """
    for j in range(values.shape[0]):
        v = x[j]
        if math.isnan(v):
            continue
        i = values[j]
        if kinds[i] == SINE:
            v = ROOT2 * math.sin(CIRCLE * v)
        elif kinds[i] == COSINE:
            v = ROOT2 * math.cos(CIRCLE * v)
        else:
            if kinds[i] == LOG:
                v = math.copysign(math.log1p(abs(v)), v)
            v = standardised(stats, i, v, learn)
        indices[e], entries[e] = columns[i], v
        e += 1
    for j in range(words.shape[0]):
        c = s[j]
        if c == NOTHING:
            continue
        w, v = words[j], 1.0
        if c == NEW_WORD:
            v = word_value(1, totals[w] + 1)
        elif c != NEW_FLAG and counts[c] != FLAG:
            v = word_value(counts[c] + 1, totals[w] + 1)
            if learn:
                counts[c] += 1
                totals[w] += 1
        indices[e], entries[e] = c, v
        e += 1
    return e


@jit
def finish(indices: Any, entries: Any, start: int, e: int) -> int:
    """Sort the entries of a row by column, add those of one column, and divide by their norm; return their end.

    Zeros are removed. An entry without a column counts in the norm only.
    """
    unplaced, stop = 0.0, start
    for a in range(start, e):
        if indices[a] < 0:
            unplaced += entries[a] * entries[a]
        elif entries[a] != 0.0:
            indices[stop], entries[stop] = indices[a], entries[a]
            stop += 1
    step = 1
    while step < (stop - start) // 9:
        step = 3 * step + 1
    while step > 0:  # Shell's sort; of few entries it is insertion
        for a in range(start + step, stop):
            c, v = indices[a], entries[a]
            b = a
            while b >= start + step and indices[b - step] > c:
                indices[b], entries[b] = indices[b - step], entries[b - step]
                b -= step
            indices[b], entries[b] = c, v
        step //= 3
    e, square = start, unplaced
    for a in range(start, stop):
        if e > start and indices[e - 1] == indices[a]:  # shared by several
            entries[e - 1] += entries[a]
        else:
            indices[e], entries[e] = indices[a], entries[a]
            e += 1
    for a in range(start, e):
        square += entries[a] * entries[a]
    if square > 0.0:
        length = math.sqrt(square)
        for a in range(start, e):
            entries[a] /= length
    return e


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
    """Write examples of norm 1 in CSR form, and return the number of their entries.

    Args:
        X: numbers, value tracks in use × rows.
        values: the value tracks in use, as indices into `kinds`, `columns` and `stats`.
        kinds: per value track, NUMBER, LOG, SINE or COSINE.
        columns: per value track, its column.
        stats: per value track, its running statistics.
        S: columns of categories, word tracks in use × rows.
        words: the word tracks in use, as indices into `totals`.
        totals: per word track, the number of its categories so far, with repetitions.
        counts: per column, how often its category occurred, or FLAG.
        learn: whether to update statistics and counts.
        ends: output, the end of each row in `indices` and `entries`.
        indices: output, the columns of each row in increasing order.
        entries: output, the values.
    """
    e = 0
    for t in range(ends.shape[0] - 1):
        start = e
        indices[e], entries[e] = 0, 1.0  # the constant
        cells = X[:, t], values, kinds, columns, stats, S[:, t], words, totals, counts
        e = finish(indices, entries, start, row_entries(*cells, learn, indices, entries, e + 1))
        ends[t + 1] = e
    return e
