"""Numbers, dates and codes as people write them in tables, and the plain text that each of them means.

    1,234.5   1'234.5   1 234.5   12 %     1234.5, three times, and 12e-2
    31/01/2026 9:05   31.01.2026           2026-01-31 09:05 and 2026-01-31
    01067                                  a category, not the number 1067

A column has a form if every value among the first lines of a file has it. Its cells are then rewritten, so that no code
past the reader knows other forms than those of `data/text_numbers.py` and ISO dates.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from gaptron.data.text_numbers import are_numbers, as_number
from gaptron.errors import SettingError
from gaptron.features.cells import MISSING, time_of

TEXT = "text"
NUMBER = "number"  # every value is a plain number, perhaps with a decimal comma
MARKED = "marked"  # numbers with thousands separators or per cent signs
CODE = "code"  # digits with leading zeros
DAY_FIRST, MONTH_FIRST, YEAR_FIRST = "day-first", "month-first", "year-first"
DATE = "date"  # the values do not show whether the day or the month comes first
DECIMAL_COMMA = "decimal comma"  # numbers, if a comma were the decimal separator

DATES = (DAY_FIRST, MONTH_FIRST)
_MARKED = {".": re.compile(r"[^0-9.eE+-]"), ",": re.compile(r"[^0-9,eE+-]")}
_GROUP = "'\u2019 \u00a0\u202f"  # between groups of three digits, besides the one that is not the decimal separator
_CLOCK = r"(?:[ T]+(?P<hour>[0-9]{1,2})(?P<rest>:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?))?"
_LAST_YEAR = r"(?P<a>[0-9]{1,2})[/.-](?P<b>[0-9]{1,2})[/.-](?P<year>[0-9]{4})" + _CLOCK
_FIRST_YEAR = r"(?P<year>[0-9]{4})[/.-](?P<a>[0-9]{1,2})[/.-](?P<b>[0-9]{1,2})" + _CLOCK
_DATE = re.compile(_LAST_YEAR)
_YEAR = re.compile(_FIRST_YEAR)
_DIGITS = re.compile(r"[0-9]+")
_LEADING_ZERO = re.compile(r"0[0-9]")
_MISSING = frozenset(MISSING)


def check_forms(separator: str | None, decimal: str, dates: str | None) -> None:
    """Check the options of a caller that say how cells are written."""
    if separator is not None and (len(separator) != 1 or separator in '"\r\n' or not separator.isascii()):
        raise SettingError(f"separator={separator!r} must be one character, such as ';', '|' or a tab")
    if decimal not in (".", ","):
        raise SettingError(f"decimal={decimal!r} must be '.' or ','")
    if dates not in (None, *DATES):
        raise SettingError(f"dates={dates!r} must be {' or '.join(map(repr, DATES))}")


def column_form(cells: Iterable[str], decimal: str) -> str:
    """Return the form of a column with these cells."""
    values = [value for value in map(str.strip, cells) if value not in _MISSING]
    if not values:
        return TEXT
    if any(map(_LEADING_ZERO.match, values)) and all(map(_DIGITS.fullmatch, values)):
        return CODE
    if decimal == "." and are_numbers(values):
        return NUMBER
    if all(plain_number(value, decimal) is not None for value in values):
        return MARKED if any(_MARKED[decimal].search(value) for value in values) else NUMBER
    if all(map(_DATE.fullmatch, values)):
        return _date_form(values)
    if all(map(_YEAR.fullmatch, values)) and any(time_of(value) is None for value in values):
        return YEAR_FIRST
    if decimal == "." and all(plain_number(value, ",") is not None for value in values):
        return DECIMAL_COMMA
    return TEXT


def _date_form(values: list[str]) -> str:
    dates = [match for match in map(_DATE.fullmatch, values) if match]
    first, second = (max(int(date[part]) for date in dates) for part in ("a", "b"))
    if first <= 12 < second:
        return MONTH_FIRST
    if second <= 12 < first or all(date[0].count(".") >= 2 for date in dates):  # dots are written with the day first
        return DAY_FIRST
    return DATE if max(first, second) <= 12 else TEXT


def order_of_dates(forms: Iterable[str], chosen: str | None) -> str | None:
    """Return whether day or month comes first: as chosen, otherwise as all columns that show it agree."""
    found = {form for form in forms if form in DATES}
    return chosen or (found.pop() if len(found) == 1 else None)


def plain_number(text: str, decimal: str) -> float | None:
    """Return the number in a text, perhaps with thousands separators or a per cent sign; None if it is not one."""
    text = text.strip()
    if _number(decimal).fullmatch(text) is None:
        return as_number(text) if decimal == "." else None
    return as_number(_marks(decimal).sub("", text).replace(decimal, ".").replace("%", "e-2"))


def with_point(text: str) -> str:
    """Return a number with a decimal comma as one with a decimal point; another text as it is."""
    number = plain_number(text, ",")
    return text if number is None else repr(number)


def rewritten(column: Any, form: str, decimal: str) -> Any:
    """Return an Arrow array of text with its numbers and dates as plain text; codes become a dictionary of words."""
    from pyarrow import compute  # noqa: PLC0415

    if form == CODE:
        return column.dictionary_encode()
    if form in (DAY_FIRST, MONTH_FIRST, YEAR_FIRST):
        return _iso_dates(column, form)
    text = compute.utf8_trim_whitespace(column)
    is_number = compute.match_substring_regex(text, f"^(?:{_number(decimal).pattern})$")
    text = compute.replace_substring_regex(text, _marks(decimal).pattern, "")
    text = compute.replace_substring(compute.replace_substring(text, decimal, "."), "%", "e-2")
    return compute.if_else(is_number, text, column)


def has_marks(column: Any) -> bool:
    """Does an Arrow array of text contain a comma or a per cent sign?"""
    from pyarrow import compute  # noqa: PLC0415

    return any(compute.any(compute.match_substring(column, mark)).as_py() for mark in ",%")


def _iso_dates(column: Any, form: str) -> Any:
    from pyarrow import compute  # noqa: PLC0415

    pattern = _FIRST_YEAR if form == YEAR_FIRST else _LAST_YEAR
    parts = compute.extract_regex(column, rf"^\s*{pattern}\s*$")
    day, month = ("a", "b") if form == DAY_FIRST else ("b", "a")
    year, month, day, hour, rest = (compute.struct_field(parts, name) for name in ("year", month, day, "hour", "rest"))
    month, day, hour = (compute.utf8_lpad(number, 2, "0") for number in (month, day, hour))
    dates = compute.binary_join_element_wise(year, month, day, "-")
    times = compute.binary_join_element_wise(dates, compute.binary_join_element_wise(hour, rest, ""), " ")
    return compute.coalesce(compute.if_else(compute.equal(rest, ""), dates, times), column)


@cache
def _number(decimal: str) -> re.Pattern[str]:
    group, decimal = _marks(decimal).pattern, re.escape(decimal)
    grouped = rf"[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+(?:{decimal}[0-9]+)?"
    plain = rf"[0-9]+(?:{decimal}[0-9]*)?|{decimal}[0-9]+"
    return re.compile(rf"[+-]?(?:{grouped}|{plain})(?:[{_GROUP}]?%|[eE][+-]?[0-9]+)?")


@cache
def _marks(decimal: str) -> re.Pattern[str]:
    """Characters between groups of digits."""
    return re.compile(rf"[{'.' if decimal == ',' else ','}{_GROUP}]")
