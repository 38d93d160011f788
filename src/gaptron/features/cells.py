"""Cells: what a single value is (missing, a number, a word or a time), and how a column of each kind takes it."""

import datetime
import decimal
import math
import re
from fractions import Fraction
from typing import Any, NamedTuple

from gaptron.data.text_numbers import as_number
from gaptron.errors import InputError

LARGEST = 1e100  # numbers are clipped there, so that no square overflows
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "NaT", "<NA>")
_SPECIAL: dict[str, str | None] = {word: None for word in MISSING}
_SPECIAL |= {word: word.lower() for word in ("True", "TRUE", "False", "FALSE")}
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
_EXACT = 2.0**53
_HOUR = 3_600_000_000  # microseconds
_EPOCH = datetime.datetime(1970, 1, 1)

NUMBER, LOG, WORD, TIME, IGNORE, AUTO = "number", "log", "word", "time", "ignore", "auto"
KINDS = (NUMBER, LOG, WORD, TIME, IGNORE, AUTO)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Time(NamedTuple):
    """A date, a time of day, or both."""

    stamp: float  # seconds since 1970-01-01 (UTC if the value has an offset); NaN for a time of day without a date
    hour: float  # of the day, with its fraction; -1 for a date without a time, and for midnight to the microsecond
    weekday: int  # Monday is 0; -1 for a time of day without a date
    month: int  # January is 1; -1 for a time of day without a date
    text: str


Cell = float | str | Time | None


# --- values ---------------------------------------------------------------------------------------------------


def cell(name: str, value: Any) -> Cell:
    """Convert a value of the column `name`."""
    kind = type(value)
    if kind is float:
        return number(value)
    if kind is str:
        return word(value)
    if value is None:
        return None
    if kind is int:
        return whole(value)
    if kind is bool:
        return "true" if value else "false"
    return _rarer(name, value)


def number(value: float) -> float | None:
    """Clip a number; one that is not finite is missing."""
    if -LARGEST <= value <= LARGEST:
        return value
    return math.copysign(LARGEST, value) if math.isfinite(value) else None


def whole(value: int) -> float | None:
    """Convert a whole number of any size."""
    return float(value) if -(2**62) < value < 2**62 else number(float(max(min(value, 10**101), -(10**101))))


def word(text: str) -> str | None:
    """Strip a text; None if it means that the value is missing."""
    text = text.strip()
    return _SPECIAL[text] if text in _SPECIAL else text


def _rarer(name: str, value: Any) -> Cell:
    if isinstance(value, datetime.datetime):
        plain = getattr(value, "to_pydatetime", None)  # pandas.Timestamp; its nanoseconds are not used
        try:
            return None if value != value else of_datetime(value if plain is None else plain(warn=False))
        except (OverflowError, ValueError):
            raise InputError(f"column {name} holds {value!r}, which is out of range for a date") from None
    if isinstance(value, datetime.date):
        return of_datetime(datetime.datetime(value.year, value.month, value.day), value.isoformat())
    if isinstance(value, datetime.time):
        microseconds = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return Time(math.nan, microseconds / _HOUR, -1, -1, value.isoformat())
    if isinstance(value, datetime.timedelta):
        return number(value.total_seconds())
    if isinstance(value, bool | int | float | str):
        base = next(kind for kind in (bool, int, float, str) if isinstance(value, kind))
        return cell(name, base(value))
    if isinstance(value, decimal.Decimal | Fraction):
        try:
            return number(float(value))
        except (OverflowError, ValueError):
            return LARGEST if value > 0 else -LARGEST
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas has its own missing values
        return None
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        inside = value.item() if value.dtype.kind != "M" else value.astype("M8[us]").item()
        if inside is not value and not hasattr(inside, "dtype"):
            return cell(name, inside)
    raise InputError(
        f"column {name} holds {_shown(value)}, which is not a number, text, boolean, time or missing value: "
        "put its parts into separate columns"
    )


def _shown(value: Any) -> str:
    return f"a {type(value).__name__}" if len(text := repr(value)) > 40 else text


def of_datetime(value: datetime.datetime, text: str | None = None) -> Time:
    """Convert a date with its time of day. Hour, weekday and month are local."""
    local = value.replace(tzinfo=None)
    since = local - _EPOCH
    day = since.seconds * 1_000_000 + since.microseconds
    offset = value.utcoffset()
    utc = since if offset is None else since - offset
    seconds, rest = utc.days * 86_400 + utc.seconds, utc.microseconds
    return Time(
        float(seconds) + rest / 1e6,
        day / _HOUR if day else -1.0,
        local.weekday(),
        local.month,
        value.isoformat() if text is None else text,
    )


def time_of(text: str) -> Time | None:
    """Read a time such as 2026-01-31 or 2026-01-31 23:59; None if the text is not a time."""
    if len(text) > 40 or _TIME.fullmatch(text) is None:
        return None
    try:
        return of_datetime(datetime.datetime.fromisoformat(text), text)
    except (OverflowError, ValueError):  # February 31, or an offset past the last date
        return None


# --- values in columns ------------------------------------------------------------------------------------------


def kind_of(value: float | str | Time, text: bool) -> str:
    """The kind of a column whose first value this is; `text`: it is from a file that writes numbers as text."""
    if isinstance(value, float):
        return NUMBER
    if isinstance(value, Time) or time_of(value) is not None:
        return TIME
    return NUMBER if text and as_number(value) is not None else WORD


def fitted(kind: str, value: float | str | Time) -> Cell:
    """Convert a value to the kind of its column; what cannot be converted is a word."""
    if kind == WORD:
        return word_of(value)
    if kind == TIME:
        time = time_of(value) if isinstance(value, str) else value
        return time if isinstance(time, Time) else word_of(value)
    if isinstance(value, str):
        found = as_number(value)
        return value if found is None else number(found)
    return word_of(value) if isinstance(value, Time) else value


def word_of(value: float | str | Time) -> str:
    """Convert a value to a word. Whole numbers have no decimal point."""
    if isinstance(value, str):
        return value
    if isinstance(value, Time):
        return value.text
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)


def parts_of(value: Time) -> dict[str, str]:
    """The words of a time: hour, weekday and month."""
    words = {}
    if value.hour >= 0.0:
        words["hour"] = str(int(value.hour))
    if value.month > 0:
        words["weekday"] = WEEKDAYS[value.weekday]
        words["month"] = str(value.month)
    return words


def is_strange(kind: str, value: float | str | Time, as_fitted: Cell) -> bool:
    """Whether the value was of another kind than the column's."""
    return not isinstance(value, str) if kind == WORD else isinstance(as_fitted, str)


def part_or_word(kind: str, part: str, value: float | str | Time) -> str | None:
    """The word that a value contributes to a cross: itself, or a part of a time; None if it is missing."""
    found = fitted(kind, value)
    if found is None or not part:
        return None if found is None else word_of(found)
    return parts_of(found).get(part) if isinstance(found, Time) else None
