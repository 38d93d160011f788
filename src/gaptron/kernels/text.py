"""Rounds out of bytes, in one pass: the svmlight and the Vowpal Wabbit text format.

The bytes must end with a line feed, so that no loop asks where they end. Places in them are unsigned: the compiler
would otherwise look at each for a count from the end, which takes a third of the time.

A number of at most 15 digits with a small power of ten is the quotient or product of two numbers that float64 holds
exactly, and so comes out as `float` reads it; one of up to 19 digits is corrected by what the first rounding left, and
read if that settles the last bit. Any other is left to the caller, by its place in the bytes.
"""

import zlib
from typing import Any

import numpy as np

from gaptron.kernels.jit import inner, jit

EXACT_DIGITS, MOST_DIGITS, EXACT_POWER = 15, 19, 22
POWERS = 10.0 ** np.arange(EXACT_POWER + 1)
READ, LEFT, WRONG = 0, 1, 2  # a number was read; it is left to the caller; it is none
NO_NUMBER = 9  # bytes of the longest word that is no plain number and may yet be one: +infinity
SPLIT = 2.0**27 + 1.0  # cuts a float64 in two halves
SURE = 2.0**-40  # far above the relative error of what a correction is made of
EXACT = np.uint64(2**53)

# Bytes, and not plain numbers: the compiler would make a function anew for every number it is given.
LINE, SPACE, COMMENT, COLON, BAR, QUOTE = (np.uint8(byte) for byte in b"\n #:|'")
ZERO, ONE, TEN = np.uint64(0), np.uint64(1), np.uint64(10)

CRC = np.empty(256, dtype=np.uint64)  # the steps of zlib's crc32
for _byte in range(256):
    CRC[_byte ^ 255] = zlib.crc32(bytes([_byte])) ^ 0xFF000000
CRC_START, CRC_END, CRC_SHIFT, LOW_BYTE = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF), np.uint64(8), np.uint64(255)
CARET = np.uint64(94)  # stands between a namespace and a feature's name
PROBES = 32  # places of a table that are looked at for a label
PLACE_BITS = 9  # of a key that says where in its row an entry stands
LONG_ROW = 1 << PLACE_BITS  # entries past which the caller puts a row in order
NARROW = 1 << 31 - PLACE_BITS  # columns whose numbers leave room for a place in 32 bits
LANES = 16


# --- numbers ----------------------------------------------------------------------------------------------------


@inner
def is_space(c: int) -> bool:
    """Is this byte white space, ends of lines among it?"""
    return c == 32 or 9 <= c <= 13


@inner
def number(data: Any, at: Any, end: Any) -> tuple[float, Any, int]:
    """The number that begins here, the place after its word, and READ, LEFT or WRONG.

    A word ends at white space or at the byte `end`.
    """
    start = at
    c = data[at]
    negative = c == 45
    if negative:
        at += ONE
        c = data[at]
    mantissa, first = 0, at
    while 48 <= c <= 57:
        mantissa = mantissa * 10 + int(c) - 48
        at += ONE
        c = data[at]
    digits = np.int64(at - first)
    value = float(mantissa)
    if c == 46:
        at += ONE
        first = at
        c = data[at]
        while 48 <= c <= 57:
            mantissa = mantissa * 10 + int(c) - 48
            at += ONE
            c = data[at]
        digits += np.int64(at - first)
        if digits <= EXACT_DIGITS:
            value = float(mantissa) / POWERS[at - first]
    if 0 < digits <= EXACT_DIGITS and (is_space(c) or c == end):
        return (-value if negative else value), at, READ
    return any_number(data, start, end)


@jit
def any_number(data: Any, at: Any, end: Any) -> tuple[float, Any, int]:
    """The same for a number of any form."""
    start = at
    negative = data[at] == 45
    if negative or data[at] == 43:
        at += ONE
    mantissa, digits, power, seen = ZERO, 0, 0, 0
    point = False
    while True:
        c = data[at]
        if 48 <= c <= 57:
            seen += 1
            if digits > 0 or c != 48:
                digits += 1
            if digits <= MOST_DIGITS:
                mantissa = mantissa * TEN + np.uint64(c - 48)
            if point:
                power -= 1
        elif c == 46 and not point:
            point = True
        else:
            break
        at += ONE
    plain = seen > 0
    if plain and (data[at] == 101 or data[at] == 69):
        at += ONE
        down = data[at] == 45
        if down or data[at] == 43:
            at += ONE
        exponent, first = 0, at
        while 48 <= data[at] <= 57:
            exponent = min(exponent * 10 + int(data[at]) - 48, 100_000)
            at += ONE
        plain = at > first
        power += -exponent if down else exponent
    ended = is_space(data[at]) or data[at] == end
    while not (is_space(data[at]) or data[at] == end):
        at += ONE
    if not (plain and ended):
        # NaN and infinity are words of letters, and few: the caller knows them.
        return 0.0, at, LEFT if start < at <= start + np.uint64(NO_NUMBER) and not plain else WRONG
    if digits > MOST_DIGITS or power > EXACT_POWER or power < -EXACT_POWER:
        return 0.0, at, LEFT
    value, sure = scaled(mantissa, power)
    return (-value if negative else value), at, READ if sure else LEFT


@jit
def scaled(mantissa: Any, power: int) -> tuple[float, bool]:
    """The float64 nearest to mantissa · 10^power, and whether that is sure."""
    ten = POWERS[abs(power)]
    rounded = float(mantissa)
    near = rounded * ten if power >= 0 else rounded / ten
    if mantissa <= EXACT:
        return near, True
    if rounded >= 2.0**63:
        return 0.0, False
    lost = float(np.int64(mantissa) - np.int64(rounded))
    # The product of two numbers is another number and a rest, both exact, by the halves of each (Dekker).
    one = rounded if power >= 0 else near
    product = one * ten
    one_high, ten_high = SPLIT * one - (SPLIT * one - one), SPLIT * ten - (SPLIT * ten - ten)
    one_low, ten_low = one - one_high, ten - ten_high
    rest = ((one_high * ten_high - product) + one_high * ten_low + one_low * ten_high) + one_low * ten_low
    if power >= 0:
        lost *= ten
        more, slack = rest + lost, SURE * (abs(rest) + abs(lost))
    else:
        rest = (rounded - product) - rest
        more, slack = (rest + lost) / ten, SURE * (abs(rest) + abs(lost)) / ten
    least, most = near + (more - slack), near + (more + slack)
    return least, least == most


# --- svmlight ---------------------------------------------------------------------------------------------------


@jit
def svmlight(
    data: Any, labels: Any, ends: Any, indices: Any, values: Any, left: Any, largest: int
) -> tuple[int, int, int, int, int]:
    """Read lines `label index:value ...` into the arrays.

    Gives how many rows there are, how many numbers are left, the smallest and the largest index (`largest` and -1 if
    there are none), and the row at fault, -1 if none is. A row of `left` is (slot, start, stop): where a number left
    to the caller belongs, and its bytes. The slot is that of its value, or -1 - row for the label of a row. Where
    `left` is too short the rest of them is only counted.
    """
    size = np.uint64(data.shape[0])
    at, entries = ZERO, ZERO
    rows, many, lowest, highest = 0, 0, largest, -1
    while at < size:
        c = data[at]
        while is_space(c) and c != LINE:
            at += ONE
            c = data[at]
        if c != COMMENT and c != LINE:
            start = at
            value, at, kind = any_number(data, at, COMMENT)
            if kind == WRONG:
                return rows, many, lowest, highest, rows
            if kind == LEFT:
                if many < left.shape[0]:
                    left[many, 0], left[many, 1], left[many, 2] = -1 - rows, start, at
                many += 1
            labels[rows] = value
            last = -1
            pairs = False
            while True:
                c = data[at]
                while is_space(c) and c != LINE:
                    at += ONE
                    c = data[at]
                if c == LINE or c == COMMENT:
                    break
                start = at
                index = 0
                while 48 <= c <= 57:
                    index = index * 10 + int(c) - 48
                    if index > largest:
                        index = largest + 1
                    at += ONE
                    c = data[at]
                if c != COLON or at == start or index <= last or index > largest:
                    query = at == start and not pairs and c == 113 and data[at + ONE] == 105
                    if not (query and data[at + ONE + ONE] == 100 and data[at + ONE + ONE + ONE] == COLON):
                        return rows, many, lowest, highest, rows
                    while not is_space(data[at]) and data[at] != COMMENT:
                        at += ONE
                    pairs = True
                    continue
                at += ONE
                start = at
                value, at, kind = number(data, at, COMMENT)
                if kind == WRONG or at == start:
                    return rows, many, lowest, highest, rows
                if kind == LEFT:
                    if many < left.shape[0]:
                        left[many, 0], left[many, 1], left[many, 2] = entries, start, at
                    many += 1
                indices[entries] = index
                values[entries] = value
                entries += ONE
                if last < 0:
                    lowest = min(lowest, index)
                last = index
                pairs = True
            highest = max(highest, last)
            rows += 1
            ends[rows] = entries
        while data[at] != LINE:  # the rest of the line is a comment
            at += ONE
        at += ONE
    return rows, many, lowest, highest, -1


@jit
def svmlight_outline(data: Any, ends: Any, out: Any) -> Any:
    """Of every line the first three words and the last one: its label, a query, its smallest and its largest index.

    `ends` has the places of the line feeds. Gives how many bytes of `out` were written.
    """
    size, start = ZERO, ZERO
    for line in range(ends.shape[0]):
        end = np.uint64(ends[line])
        at, words, apart = start, 0, True
        while at < end:
            c = data[at]
            if is_space(c):
                if words == 3:
                    break
                apart = True
            elif apart:
                words, apart = words + 1, False
            out[size] = c
            size += ONE
            at += ONE
        stop = end
        while stop > at and is_space(data[stop - ONE]):
            stop -= ONE
        first = stop
        while first > at and not is_space(data[first - ONE]):
            first -= ONE
        if first < stop:
            out[size] = SPACE
            size += ONE
            for place in range(first, stop):
                out[size] = data[place]
                size += ONE
        out[size] = LINE
        size += ONE
        start = end + ONE
    return size


# --- Vowpal Wabbit ----------------------------------------------------------------------------------------------


@jit
def label_of(data: Any, start: Any, stop: Any, table: Any, spans: Any, known: Any) -> Any:
    """The number of this label among those of `spans`: `known` if it is new and has been added, -1 if it has no place.

    `spans` has the bytes (start, stop) of every label; `table`, of a power of two places, finds them by a hash.
    """
    place = CRC_START
    for at in range(start, stop):
        place = CRC[(place ^ np.uint64(data[at])) & LOW_BYTE] ^ (place >> CRC_SHIFT)
    mask = np.uint64(table.shape[0] - 1)
    for _ in range(PROBES):
        place &= mask
        found = table[place]
        if found < 0:
            table[place] = known
            spans[known, 0], spans[known, 1] = start, stop
            return known
        first = np.uint64(spans[found, 0])
        same = np.uint64(spans[found, 1]) - first == stop - start
        byte = ZERO
        while same and byte < stop - start:
            same = data[first + byte] == data[start + byte]
            byte += ONE
        if same:
            return int(found)
        place += ONE
    return -1


@jit
def in_order(indices: Any, values: Any, first: Any, last: Any, keys: Any, ranked: Any, spare: Any) -> Any:
    """Put a row's entries, from `first` to before `last`, in the order of their indices; those that meet are added.

    Gives the place after the last one that remains. `keys`, `ranked` and `spare` are work space for `LONG_ROW` entries;
    keys of 32 bits do for a width of up to `NARROW`. To count the smaller ones of each takes quadratic time, but no
    branch that the processor could guess wrong: six times as fast as sorting by comparisons for 44 entries, and not
    slower up to some hundreds. Not `inner`, which would end the vector loop.
    """
    count, largest = np.int64(last - first), np.int64(0)
    for j in range(count):
        key = np.int64(indices[first + np.uint64(j)]) << PLACE_BITS | j  # no two are alike: sums have one order
        keys[j], spare[j], largest = key, values[first + np.uint64(j)], max(largest, key)
    padded = count + -count % LANES  # whole vectors: a rest of some keys would take as long as all the others
    for j in range(count, padded):
        keys[j] = largest
    for j in range(count):
        own, rank = keys[j], np.int32(0)
        for other in range(padded):
            rank = np.int32(rank + np.int32(keys[other] < own))
        ranked[rank] = own
    before = -1
    for j in range(count):
        index, value = ranked[j] >> PLACE_BITS, spare[ranked[j] & (LONG_ROW - 1)]
        if index == before:
            values[first - ONE] += value
        else:
            indices[first], values[first], before = index, value, index
            first += ONE
    return first


@jit
def vw(
    data: Any,
    width: Any,
    marks: Any,
    table: Any,
    spans: Any,
    ends: Any,
    indices: Any,
    values: Any,
    keys: Any,
    ranked: Any,
    spare: Any,
    left: Any,
) -> tuple[int, int, int, bool, int]:
    """Read lines `label [importance] ['tag] |namespace[:weight] feature[:value] ...` into the arrays.

    Gives how many rows there are, how many labels, how many places are left to the caller, whether rows are as yet
    out of order, and the row at fault, -1 if none is. A row of `left` is (slot, start, stop): of a number, whose slot
    holds what to multiply it with, or, with slot -1 - row, all of a line before its first bar.
    """
    size = np.uint64(data.shape[0])
    power_of_two = width & (width - ONE) == ZERO
    at, entries = ZERO, ZERO
    rows, many = 0, 0
    known: Any = np.int64(0)
    untidy = False
    while at < size:
        c = data[at]
        while is_space(c) and c != LINE:
            at += ONE
            c = data[at]
        if c == LINE:
            at += ONE
            continue
        # --- what stands before the first bar
        head, label, label_end, second, last_word = at, at, at, at, at
        words, mark, plain, apart = 0, -1, True, True
        while c != BAR:
            if c == LINE:
                return rows, known, many, untidy, rows
            if is_space(c):
                apart = True
            else:
                if c > 127 or 28 <= c <= 31:  # white space of other alphabets, perhaps
                    plain = False
                if apart:
                    words += 1
                    last_word = at
                    if words == 2:
                        second = at
                apart = False
                if words == 1:
                    label_end = at + ONE
            at += ONE
            c = data[at]
        if plain:
            if words > 0 and (not apart or data[last_word] == QUOTE):
                words -= 1
            if words == 0 or words > 2:
                return rows, known, many, untidy, rows
            if words == 2:
                weight, _, kind = any_number(data, second, BAR)
                if kind != READ or weight != 1.0:
                    return rows, known, many, untidy, rows
            mark = label_of(data, label, label_end, table, spans, known)
        if mark < 0:
            if many < left.shape[0]:
                left[many, 0], left[many, 1], left[many, 2] = -1 - rows, head, at
            many += 1
        elif mark == known:
            known += 1
        marks[rows] = mark
        # --- the features
        first, waits = entries, False
        before: Any = -1
        tidy: Any = True
        factor, prefix = 1.0, CRC_START
        while c != LINE:
            if c == BAR:  # a namespace
                at += ONE
                c = data[at]
                state = CRC_START
                while not is_space(c) and c != COLON and c != BAR:
                    state = CRC[(state ^ np.uint64(c)) & LOW_BYTE] ^ (state >> CRC_SHIFT)
                    at += ONE
                    c = data[at]
                prefix = CRC[(state ^ CARET) & LOW_BYTE] ^ (state >> CRC_SHIFT)
                factor = 1.0
                if c == COLON:
                    at += ONE
                    c = data[at]
                    if not is_space(c) and c != BAR:
                        factor, at, kind = any_number(data, at, BAR)
                        if kind != READ:
                            return rows, known, many, untidy, rows
                        c = data[at]
            elif is_space(c):
                at += ONE
                c = data[at]
            elif c == COLON:
                return rows, known, many, untidy, rows
            else:
                state = prefix
                while not is_space(c) and c != COLON and c != BAR:
                    state = CRC[(state ^ np.uint64(c)) & LOW_BYTE] ^ (state >> CRC_SHIFT)
                    at += ONE
                    c = data[at]
                state ^= CRC_END
                index = np.int64(state & (width - ONE)) if power_of_two else np.int64(state % width)
                value = 1.0
                if c == COLON:
                    at += ONE
                    start = at
                    value, at, kind = number(data, at, BAR)
                    if kind == WRONG or at == start:
                        return rows, known, many, untidy, rows
                    if kind == LEFT:
                        if many < left.shape[0]:
                            left[many, 0], left[many, 1], left[many, 2] = entries, start, at
                        many += 1
                        waits, value = True, 1.0
                    c = data[at]
                indices[entries] = index
                values[entries] = factor * value
                tidy = tidy and index > before
                before = index
                entries += ONE
        if waits or (not tidy and np.int64(entries - first) > keys.shape[0]):
            untidy = True  # until all values are known; or the row is too long to be put in order here
        elif not tidy:
            entries = in_order(indices, values, first, entries, keys, ranked, spare)
        rows += 1
        ends[rows] = entries
        at += ONE
    return rows, known, many, untidy, -1


@jit
def vw_outline(data: Any, ends: Any, out: Any) -> Any:
    """Of every line what stands before its features, and the first bar. The rest as in `svmlight_outline`."""
    size, start = ZERO, ZERO
    for line in range(ends.shape[0]):
        end = np.uint64(ends[line])
        for at in range(start, end):
            out[size] = data[at]
            size += ONE
            if data[at] == BAR:
                break
        out[size] = LINE
        size += ONE
        start = end + ONE
    return size
