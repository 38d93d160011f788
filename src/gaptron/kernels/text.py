"""Parse the svmlight and the Vowpal Wabbit text format in one pass over the bytes.

The bytes must end with a line feed, so that no loop has to check for the end. Positions are unsigned: for signed ones
the compiled code would check whether each of them counts from the end, which takes a third of the time.

A number of at most 15 digits with a small power of ten is the quotient or product of two numbers that float64
represents exactly, so the result equals that of `float`. A number of up to 19 digits is corrected by the error of the
first rounding, and parsed if that decides the last bit. Any other number is deferred: the caller gets its position.
"""

import zlib
from typing import Any

import numpy as np

from gaptron.kernels.compile.jit import inner, jit

EXACT_DIGITS, MOST_DIGITS, EXACT_POWER = 15, 19, 22
POWERS = 10.0 ** np.arange(EXACT_POWER + 1)
PARSED, DEFERRED, INVALID = 0, 1, 2  # outcomes of parsing a number; a deferred one is parsed by the caller
MAX_SPECIAL = 9  # bytes of the longest special number, +infinity
SPLIT = 2.0**27 + 1.0  # splits a float64 into two halves (Dekker)
SLACK = 2.0**-40  # far above the relative error of a correction
EXACT = np.uint64(2**53)

# Typed bytes: for plain integers the compiler would compile a function for every value.
LINE, SPACE, COMMENT, COLON, BAR, QUOTE = (np.uint8(byte) for byte in b"\n #:|'")
ZERO, ONE, TEN = np.uint64(0), np.uint64(1), np.uint64(10)

CRC = np.empty(256, dtype=np.uint64)  # the table of zlib's crc32
for _byte in range(256):
    CRC[_byte ^ 255] = zlib.crc32(bytes([_byte])) ^ 0xFF000000
CRC_START, CRC_END, CRC_SHIFT, LOW_BYTE = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF), np.uint64(8), np.uint64(255)
CARET = np.uint64(94)  # between a namespace and a feature's name
PROBES = 32  # positions of the hash table that are searched for a label
POSITION_BITS = 9  # of a key, for the position of an entry in its row
LONG_ROW = 1 << POSITION_BITS  # entries; longer rows are sorted by the caller
NARROW = 1 << 31 - POSITION_BITS  # columns; their numbers fit into 32 bits with a position
LANES = 16  # keys that are compared at a time


# --- numbers ----------------------------------------------------------------------------------------------------


@inner
def is_space(c: int) -> bool:
    """Return whether this byte is white space, including line ends."""
    return c == 32 or 9 <= c <= 13


@inner
def number(data: Any, at: Any, end: Any) -> tuple[float, Any, int]:
    """Return the number at a position, the position after it, and PARSED, DEFERRED or INVALID.

    It ends at white space or at the byte `end`.
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
        return (-value if negative else value), at, PARSED
    return any_number(data, start, end)


@jit
def any_number(data: Any, at: Any, end: Any) -> tuple[float, Any, int]:
    """Do the same for a number in any notation."""
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
        # NaN and infinity are rare: the caller parses them.
        return 0.0, at, DEFERRED if start < at <= start + np.uint64(MAX_SPECIAL) and not plain else INVALID
    if digits > MOST_DIGITS or power > EXACT_POWER or power < -EXACT_POWER:
        return 0.0, at, DEFERRED
    value, exact = scaled(mantissa, power)
    return (-value if negative else value), at, PARSED if exact else DEFERRED


@jit
def scaled(mantissa: Any, power: int) -> tuple[float, bool]:
    """Return the float64 nearest to mantissa · 10^power, and whether it is certain to be the nearest."""
    ten = POWERS[abs(power)]
    rounded = float(mantissa)
    near = rounded * ten if power >= 0 else rounded / ten
    if mantissa <= EXACT:
        return near, True
    if rounded >= 2.0**63:
        return 0.0, False
    lost = float(np.int64(mantissa) - np.int64(rounded))
    # The exact product of two numbers is the sum of a float64 and a remainder, computed from halves (Dekker).
    one = rounded if power >= 0 else near
    product = one * ten
    one_high, ten_high = SPLIT * one - (SPLIT * one - one), SPLIT * ten - (SPLIT * ten - ten)
    one_low, ten_low = one - one_high, ten - ten_high
    error = ((one_high * ten_high - product) + one_high * ten_low + one_low * ten_high) + one_low * ten_low
    if power >= 0:
        lost *= ten
        more, slack = error + lost, SLACK * (abs(error) + abs(lost))
    else:
        error = (rounded - product) - error
        more, slack = (error + lost) / ten, SLACK * (abs(error) + abs(lost)) / ten
    least, most = near + (more - slack), near + (more + slack)
    return least, least == most


# --- svmlight ---------------------------------------------------------------------------------------------------


@jit
def svmlight(
    data: Any, labels: Any, ends: Any, indices: Any, values: Any, deferred: Any, largest: int
) -> tuple[int, int, int, int, int]:
    """Parse lines `label index:value ...` into the arrays.

    A row of `deferred` is (slot, start, stop): where a deferred number belongs, and its bytes. The slot is the index of
    its value, or -1 - row for the label of a row. If `deferred` is too short, further numbers are only counted.

    Returns:
        The number of rows, the number of deferred numbers, the smallest and the largest index (`largest` and -1 if
        there are none), and the invalid row, or -1.
    """
    size = np.uint64(data.shape[0])
    at, entries = ZERO, ZERO
    rows, n_deferred, lowest, highest = 0, 0, largest, -1
    while at < size:
        c = data[at]
        while is_space(c) and c != LINE:
            at += ONE
            c = data[at]
        if c != COMMENT and c != LINE:
            start = at
            value, at, kind = any_number(data, at, COMMENT)
            if kind == INVALID:
                return rows, n_deferred, lowest, highest, rows
            if kind == DEFERRED:
                if n_deferred < deferred.shape[0]:
                    deferred[n_deferred, 0], deferred[n_deferred, 1], deferred[n_deferred, 2] = -1 - rows, start, at
                n_deferred += 1
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
                        return rows, n_deferred, lowest, highest, rows
                    while not is_space(data[at]) and data[at] != COMMENT:
                        at += ONE
                    pairs = True
                    continue
                at += ONE
                start = at
                value, at, kind = number(data, at, COMMENT)
                if kind == INVALID or at == start:
                    return rows, n_deferred, lowest, highest, rows
                if kind == DEFERRED:
                    if n_deferred < deferred.shape[0]:
                        deferred[n_deferred, 0], deferred[n_deferred, 1], deferred[n_deferred, 2] = entries, start, at
                    n_deferred += 1
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
        while data[at] != LINE:  # skip a comment
            at += ONE
        at += ONE
    return rows, n_deferred, lowest, highest, -1


@jit
def svmlight_outline(data: Any, ends: Any, out: Any) -> Any:
    """Copy the first three words and the last one of every line: label, query, smallest and largest index.

    `ends` has the positions of the line feeds. Returns the number of bytes written to `out`.
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
    """Return the code of a label: `known` if it is new and was added, -1 if the hash table has no position for it.

    `spans` has the bytes (start, stop) of every label; the size of `table`, the hash table, is a power of two.
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
def sort_row(indices: Any, values: Any, first: Any, last: Any, keys: Any, ranked: Any, spare: Any) -> Any:
    """Sort a row's entries, from `first` to before `last`, by index, and add up those with equal indices.

    Returns the position after the last remaining entry. `keys`, `ranked` and `spare` are buffers for `LONG_ROW`
    entries; keys of 32 bits suffice for a width of up to `NARROW`. The rank of an entry is the number of smaller keys.
    This takes quadratic time but has no branches to mispredict: it is six times as fast as sorting by comparisons for
    44 entries, and not slower up to some hundreds. Not `inner`, because the loop would not be vectorised then.
    """
    count, largest = np.int64(last - first), np.int64(0)
    for j in range(count):
        key = np.int64(indices[first + np.uint64(j)]) << POSITION_BITS | j  # keys are distinct, so sums have one order
        keys[j], spare[j], largest = key, values[first + np.uint64(j)], max(largest, key)
    padded = count + -count % LANES  # whole vectors: a remainder would take as long as all the others
    for j in range(count, padded):
        keys[j] = largest
    for j in range(count):
        own, rank = keys[j], np.int32(0)
        for other in range(padded):
            rank = np.int32(rank + np.int32(keys[other] < own))
        ranked[rank] = own
    before = -1
    for j in range(count):
        index, value = ranked[j] >> POSITION_BITS, spare[ranked[j] & (LONG_ROW - 1)]
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
    codes: Any,
    table: Any,
    spans: Any,
    ends: Any,
    indices: Any,
    values: Any,
    keys: Any,
    ranked: Any,
    spare: Any,
    deferred: Any,
) -> tuple[int, int, int, bool, int]:
    """Parse lines `label [importance] ['tag] |namespace[:weight] feature[:value] ...` into the arrays.

    A row of `deferred` is (slot, start, stop). It is a number, to be multiplied with the value in its slot, or, with
    slot -1 - row, everything before the first bar of a line.

    Returns:
        The number of rows, labels and deferred items, whether there are unsorted rows, and the invalid row, or -1.
    """
    size = np.uint64(data.shape[0])
    power_of_two = width & (width - ONE) == ZERO
    at, entries = ZERO, ZERO
    rows, n_deferred = 0, 0
    known: Any = np.int64(0)
    unsorted = False
    while at < size:
        c = data[at]
        while is_space(c) and c != LINE:
            at += ONE
            c = data[at]
        if c == LINE:
            at += ONE
            continue
        # --- before the first bar
        head, label, label_end, second, last_word = at, at, at, at, at
        words, code, plain, apart = 0, -1, True, True
        while c != BAR:
            if c == LINE:
                return rows, known, n_deferred, unsorted, rows
            if is_space(c):
                apart = True
            else:
                if c > 127 or 28 <= c <= 31:  # possibly white space of Unicode
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
                return rows, known, n_deferred, unsorted, rows
            if words == 2:
                weight, _, kind = any_number(data, second, BAR)
                if kind != PARSED or weight != 1.0:
                    return rows, known, n_deferred, unsorted, rows
            code = label_of(data, label, label_end, table, spans, known)
        if code < 0:
            if n_deferred < deferred.shape[0]:
                deferred[n_deferred, 0], deferred[n_deferred, 1], deferred[n_deferred, 2] = -1 - rows, head, at
            n_deferred += 1
        elif code == known:
            known += 1
        codes[rows] = code
        # --- the features
        first, incomplete = entries, False
        before: Any = -1
        increasing: Any = True
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
                        if kind != PARSED:
                            return rows, known, n_deferred, unsorted, rows
                        c = data[at]
            elif is_space(c):
                at += ONE
                c = data[at]
            elif c == COLON:
                return rows, known, n_deferred, unsorted, rows
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
                    if kind == INVALID or at == start:
                        return rows, known, n_deferred, unsorted, rows
                    if kind == DEFERRED:
                        if n_deferred < deferred.shape[0]:
                            deferred[n_deferred, 0], deferred[n_deferred, 1], deferred[n_deferred, 2] = (
                                entries,
                                start,
                                at,
                            )
                        n_deferred += 1
                        incomplete, value = True, 1.0
                    c = data[at]
                indices[entries] = index
                values[entries] = factor * value
                increasing = increasing and index > before
                before = index
                entries += ONE
        if incomplete or (not increasing and np.int64(entries - first) > keys.shape[0]):
            unsorted = True  # a value is missing, or the row is too long to be sorted here
        elif not increasing:
            entries = sort_row(indices, values, first, entries, keys, ranked, spare)
        rows += 1
        ends[rows] = entries
        at += ONE
    return rows, known, n_deferred, unsorted, -1


@jit
def vw_outline(data: Any, ends: Any, out: Any) -> Any:
    """Copy every line up to its first bar; otherwise like `svmlight_outline`."""
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
