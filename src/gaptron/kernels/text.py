"""Numbers and pairs out of bytes, in one pass.

A number of at most 15 digits whose power of ten is at most 22 is the quotient or product of two numbers that float64
holds exactly, and so comes out as `float` reads it. Any other is left to the caller, by its place in the bytes.
"""

from typing import Any

import numpy as np

from gaptron.kernels.jit import jit

EXACT_DIGITS, EXACT_POWER = 15, 22
POWERS = 10.0 ** np.arange(EXACT_POWER + 1)
READ, LEFT, WRONG = 0, 1, 2  # a number was read; it is left to the caller; it is none


@jit
def ends_word(c: int) -> bool:
    """Does this byte end a word: white space, or the # that begins a comment?"""
    return c == 32 or (9 <= c <= 13) or c == 35


@jit
def number(data: Any, at: int, size: int) -> tuple[float, int, int]:
    """The number that begins here, the place after its word, and READ, LEFT or WRONG."""
    start = at
    negative = False
    if at < size and (data[at] == 43 or data[at] == 45):
        negative = data[at] == 45
        at += 1
    mantissa, digits, power, seen = 0, 0, 0, 0
    point = False
    while at < size:
        c = int(data[at])
        if 48 <= c <= 57:
            seen += 1
            if digits > 0 or c != 48:
                digits += 1
            if digits <= EXACT_DIGITS:
                mantissa = mantissa * 10 + (c - 48)
            if point:
                power -= 1
        elif c == 46 and not point:
            point = True
        else:
            break
        at += 1
    plain = seen > 0
    if plain and at < size and (data[at] == 101 or data[at] == 69):
        at += 1
        down = False
        if at < size and (data[at] == 43 or data[at] == 45):
            down = data[at] == 45
            at += 1
        exponent, count = 0, 0
        while at < size and 48 <= data[at] <= 57:
            exponent = min(exponent * 10 + int(data[at]) - 48, 100_000)
            count += 1
            at += 1
        plain = count > 0
        power += -exponent if down else exponent
    ended = at >= size or ends_word(int(data[at]))
    while at < size and not ends_word(int(data[at])):
        at += 1
    if not (plain and ended):
        # NaN and infinity are words of letters, and few: the caller knows them.
        return 0.0, at, LEFT if 0 < at - start <= 9 and not plain else WRONG
    if digits > EXACT_DIGITS or power > EXACT_POWER or power < -EXACT_POWER:
        return 0.0, at, LEFT
    value = float(mantissa)
    value = value * POWERS[power] if power >= 0 else value / POWERS[-power]
    return (-value if negative else value), at, READ


@jit
def svmlight(
    data: Any, labels: Any, ends: Any, indices: Any, values: Any, left: Any, largest: int
) -> tuple[int, int, int]:
    """Read lines `label index:value ...` into the arrays: how many rows, how many numbers left, and the row at fault.

    A row of `left` is (slot, start, stop): where a number left to the caller belongs, and its bytes. The slot is that
    of its value, or -1 - row for the label of a row. The row at fault is -1 if there is none.
    """
    size = data.shape[0]
    at, rows, entries, many = 0, 0, 0, 0
    while at < size:
        while at < size and data[at] != 35 and data[at] != 10 and ends_word(int(data[at])):
            at += 1
        if at < size and data[at] != 35 and data[at] != 10:
            start = at
            value, at, kind = number(data, at, size)
            if kind == WRONG:
                return rows, many, rows
            if kind == LEFT:
                left[many, 0], left[many, 1], left[many, 2] = -1 - rows, start, at
                many += 1
            labels[rows] = value
            last, pairs = -1, 0
            while True:
                while at < size and data[at] != 35 and data[at] != 10 and ends_word(int(data[at])):
                    at += 1
                if at >= size or data[at] == 35 or data[at] == 10:
                    break
                start = at
                if pairs == 0 and at + 3 < size and data[at] == 113 and data[at + 1] == 105:
                    if data[at + 2] != 100 or data[at + 3] != 58:
                        return rows, many, rows
                    while at < size and not ends_word(int(data[at])):
                        at += 1
                    pairs += 1
                    continue
                pairs += 1
                index = 0
                while at < size and 48 <= data[at] <= 57:
                    index = min(index * 10 + int(data[at]) - 48, largest + 1)
                    at += 1
                if at == start or at >= size or data[at] != 58 or index <= last or index > largest:
                    return rows, many, rows
                start = at + 1
                value, at, kind = number(data, start, size)
                if kind == WRONG or at == start:
                    return rows, many, rows
                if kind == LEFT:
                    left[many, 0], left[many, 1], left[many, 2] = entries, start, at
                    many += 1
                indices[entries], values[entries], last = index, value, index
                entries += 1
            rows += 1
            ends[rows] = entries
        while at < size and data[at] != 10:  # the rest of the line is blank or a comment
            at += 1
        at += 1
    return rows, many, -1
