"""Encode the actions of a round as sparse rows of norm 1: their own features, and crosses with those of the context.

A cross is the product of an entry of the context and an entry of an action, or the constant of its features. Each
pair of columns has its own column, found in a hash table with open addressing: from the slot that the hash of the pair
gives on, `table` has its number in `pairs` and `places`. Pairs past `most` share the columns of earlier ones.
"""

from typing import Any, NamedTuple

import numpy as np

from gaptron.kernels.compile.jit import jit
from gaptron.kernels.features import FLAG, NEW_FLAG, NEW_WORD, finish, row_entries
from gaptron.types import Flags, Integers, Vector

FULL = -1  # no cross can be added: enlarge the arrays, and encode again
TAKEN, PAIRS = 0, 1  # indices of `used`
NOT_CROSSED = 0  # the group of tracks that no cross has
CONSTANT = 1  # the column of the actions' constant; the one of the context is 0
_LOW = 0xFFFFFFFF


class Cells(NamedTuple):
    """The cells of some rows: numbers and columns of categories, with the tracks that they belong to."""

    x: Vector
    values: Integers
    s: Integers
    words: Integers


class Known(NamedTuple):
    """What the encoder has learned; see `features.encode`."""

    kinds: Any
    columns: Integers
    stats: Any
    totals: Integers
    counts: Integers
    value_groups: Integers  # per track, its row or column of `Crosses.allowed`
    word_groups: Integers


class Crosses(NamedTuple):
    """The columns of crosses."""

    table: Integers  # slot → number of the pair, or -1; its length is a power of 2
    pairs: Integers  # column of the context · 2³² + column of the action, in the order in which they occurred
    places: Integers  # the column of each pair
    allowed: Flags  # group of the context × group of the action: is there a cross?
    constant: int  # the group of the actions' constant


@jit
def hash_of(pair: int) -> int:
    """Return a hash of two columns, the same on every machine, with all numbers below 2⁶³."""
    h = ((pair >> 32) * 2654435769) ^ ((pair & _LOW) * 2246822519)
    h = (h ^ (h >> 31)) & _LOW
    h = (h * 739982445) & _LOW
    return h ^ (h >> 15)


@jit
def slot_of(table: Integers, pairs: Integers, pair: int) -> int:
    """Return the slot of a pair: the one that has it, or the one where it belongs."""
    mask = table.shape[0] - 1
    slot: int = hash_of(pair) & mask
    while table[slot] >= 0 and pairs[table[slot]] != pair:
        slot = (slot + 1) & mask
    return slot


@jit
def fill_table(table: Integers, pairs: Integers, n: int) -> None:
    """Enter the first n pairs into an empty table."""
    for number in range(n):
        table[slot_of(table, pairs, pairs[number])] = number


@jit
def encode_round(
    context: Cells,
    actions: Cells,
    x_ends: Integers,
    s_ends: Integers,
    constants: Integers,
    known: Known,
    crosses: Crosses,
    most: int,
    used: Integers,
    learn: bool,
    raw_places: Integers,
    raw_values: Vector,
    ends: Any,
    indices: Any,
    entries: Any,
) -> int:
    """Write the rows of a round, first that of the context. All are encoded by the rounds before, then learned from.

    Args:
        context: the cells of the context.
        actions: the cells of all actions.
        x_ends: where the numbers of each action end; starts with 0.
        s_ends: where the categories of each action end; starts with 0.
        constants: 1 for each action with features, which has a constant, and 0 for those without.
        known: what the encoder has learned.
        crosses: the columns of crosses.
        most: the largest number of crosses.
        used: the columns in use, and the number of crosses; both are counted on.
        learn: whether to learn from the round.
        raw_places: buffer, one number per cell of the context.
        raw_values: buffer, the same.
        ends: output, the end of each row; starts with 0.
        indices: output, the columns.
        entries: output, the values.

    Returns:
        The number of entries, or `FULL`; then nothing but crosses was learned.
    """
    kinds, columns, stats, totals, counts, value_groups, word_groups = known
    x, values, s, words = context
    at = row_entries(x, values, kinds, columns, stats, s, words, totals, counts, False, raw_places, raw_values, 0)
    indices[0], entries[0] = 0, 1.0  # the constant
    for i in range(at):
        indices[1 + i], entries[1 + i] = raw_places[i], raw_values[i]
    e = finish(indices, entries, 0, 1 + at)
    ends[1] = e
    for k in range(x_ends.shape[0] - 1):
        x, values = actions.x[x_ends[k] : x_ends[k + 1]], actions.values[x_ends[k] : x_ends[k + 1]]
        s, words = actions.s[s_ends[k] : s_ends[k + 1]], actions.words[s_ends[k] : s_ends[k + 1]]
        start, first = e, e + constants[k]
        words_from = first + x.shape[0]
        indices[e], entries[e] = CONSTANT, 1.0
        e = row_entries(x, values, kinds, columns, stats, s, words, totals, counts, False, indices, entries, first)
        for j in range(start, e):  # crosses come after these
            a = np.int64(indices[j])
            if j < first:
                group = crosses.constant
            elif j < words_from:
                group = value_groups[values[j - first]]
            else:
                group = word_groups[words[j - words_from]]
            if group == NOT_CROSSED or a == NEW_FLAG or (a >= 0 and counts[a] == FLAG):
                continue
            for i in range(at):
                c, n = raw_places[i], context.x.shape[0]
                other = value_groups[context.values[i]] if i < n else word_groups[context.words[i - n]]
                if not crosses.allowed[other, group] or c == NEW_FLAG or (c >= 0 and counts[c] == FLAG):
                    continue
                place = NEW_WORD
                if a >= 0 and c >= 0:
                    pair = (c << 32) | a
                    slot = slot_of(crosses.table, crosses.pairs, pair)
                    number = crosses.table[slot]
                    if number < 0 and used[PAIRS] >= most:
                        number = hash_of(pair) % most
                    elif number < 0 and learn:
                        number = used[PAIRS]
                        if used[TAKEN] >= counts.shape[0] or number >= crosses.pairs.shape[0]:
                            return FULL
                        crosses.table[slot] = number
                        crosses.pairs[number], crosses.places[number] = pair, used[TAKEN]
                        counts[used[TAKEN]] = FLAG
                        used[TAKEN] += 1
                        used[PAIRS] += 1
                    if number >= 0:
                        place = crosses.places[number]
                indices[e], entries[e] = place, raw_values[i] * entries[j]
                e += 1
        e = finish(indices, entries, start, e)
        ends[k + 2] = e
    if learn:  # what is written past the end is not used
        x, values, s, words = context
        row_entries(x, values, kinds, columns, stats, s, words, totals, counts, True, indices, entries, e)
        for k in range(x_ends.shape[0] - 1):
            x, values = actions.x[x_ends[k] : x_ends[k + 1]], actions.values[x_ends[k] : x_ends[k + 1]]
            s, words = actions.s[s_ends[k] : s_ends[k + 1]], actions.words[s_ends[k] : s_ends[k + 1]]
            row_entries(x, values, kinds, columns, stats, s, words, totals, counts, True, indices, entries, e)
    return e
