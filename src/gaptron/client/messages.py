"""Requests and responses. Requests are checked and encoded in the caller's thread, so that sending them cannot fail."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import numpy as np

from gaptron.client.errors import ServiceError
from gaptron.errors import InputError
from gaptron.event_id import new_event_id

MAX_RETRY_AFTER = 300.0  # seconds; a longer time is shortened, so that one wrong header does not stop deliveries
MAX_DEPTH = 4  # of a request: the deepest field is played.label
Plain = Any  # None, bool, int, float, str, or a list or dict of them


class Decision(NamedTuple):
    """A label to play."""

    event_id: str
    label: str
    propensity: float | None  # the probability with which the label was drawn; None for a fallback
    distribution: dict[str, float] | None  # None for a fallback, and in shadow mode
    is_fallback: bool  # the service could not be reached; it knows nothing of this decision


class OutcomeMessage(NamedTuple):
    """An outcome, ready to be sent."""

    event_id: str
    outcome: dict[str, Any]
    content: bytes  # its JSON text


# --- requests -----------------------------------------------------------------------------------------------


def decision_request(x: Any, event_id: str | None, fields: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the event id and the JSON text of a request for a decision."""
    body: dict[str, Any] = {"event_id": new_event_id() if event_id is None else checked_event_id(event_id)}
    if isinstance(x, Mapping):
        body["features"] = plain("features", x)
    else:
        body["x"] = _numbers(x)
    return body["event_id"], _encode(body | {name: plain(name, value) for name, value in fields.items()})


def outcome_message(event_id: Any, outcome: Mapping[str, Any]) -> OutcomeMessage:
    """Check an outcome and encode it."""
    checked: dict[str, Any] = {}
    for name, value in outcome.items():
        if name not in OUTCOMES:
            raise InputError(f"{name}= is not part of an outcome; give {_ONE_OF}, and optionally played=")
        checked[name] = plain(name, value)
        is_valid, requirement = OUTCOMES[name]
        if not is_valid(checked[name]):
            raise InputError(f"{name}={value!r} must be {requirement}")
    if len(checked.keys() - {"played"}) != 1:
        raise InputError(f"an outcome is exactly one of {_ONE_OF}, not {', '.join(checked) or 'nothing'}")
    return OutcomeMessage(checked_event_id(event_id), checked, _encode(checked))


def _is_text(value: Plain) -> bool:
    return isinstance(value, str) and value != ""


def _is_reward(value: Plain) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0


OUTCOMES: dict[str, tuple[Callable[[Plain], bool], str]] = {
    "correct": (lambda value: isinstance(value, bool), "True or False"),
    "reward": (_is_reward, "a number from 0 to 1"),
    "label": (_is_text, "the text of a label"),
    "void": (lambda value: value is True, "True"),
    "played": (_is_text, "the text of a label"),
}
_ONE_OF = "correct=, reward=, label= or void="


def checked_event_id(event_id: Any) -> str:
    """Check that an event id is text that a URL can hold."""
    if not isinstance(event_id, str) or not event_id:
        raise InputError(f"event_id={event_id!r} must be text")
    return str(plain("event_id", event_id))


def url_part(text: str) -> str:
    """Quote a name for the path of a URL."""
    return quote(text, safe="")


def plain(name: str, value: Any, depth: int = 0) -> Plain:
    """Convert a value to what JSON can hold; NumPy's scalars and arrays become Python's."""
    if isinstance(value, np.generic | np.ndarray):
        value = float(value) if isinstance(value, np.floating) else value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) >= 1 << 63:
            raise InputError(f"{name} has an integer outside of 64 bits; give a float or text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{name} has {float(value)}; replace it, or give None where a named feature is missing")
        return float(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name} has text that is not valid Unicode: {value[:50]!r} (a lone surrogate)") from None
        return str(value)
    if depth == MAX_DEPTH:
        raise InputError(f"{name} is nested too deeply")
    if isinstance(value, Mapping):
        return {_key(name, key): plain(f"{name}[{key!r}]", item, depth + 1) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain(name, item, depth + 1) for item in value]
    raise InputError(f"{name} has a value of type {type(value).__name__}; give numbers, text, True, False or None")


def _key(name: str, key: Any) -> str:
    if not isinstance(key, str):
        raise InputError(f"{name} has a name that is not text: {key!r}")
    return str(plain(name, key))


def _numbers(x: Any) -> list[float]:
    values = None if isinstance(x, str) else plain("x", x)
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        raise InputError("x must be numbers, or a mapping of names to values")
    return [float(value) for value in values]


def _encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


# --- responses ----------------------------------------------------------------------------------------------


def decision_of(body: Mapping[str, Any], event_id: str) -> Decision:
    """Read the response to a request for a decision."""
    if body.get("event_id") != event_id or not isinstance(body.get("label"), str) or "propensity" not in body:
        raise ServiceError(f"the response is not a decision for event {event_id}; is there a proxy in between?")
    return Decision(event_id, body["label"], body["propensity"], body.get("distribution"), False)


def check_recorded(body: Mapping[str, Any]) -> None:
    """Check that a response says what became of an outcome."""
    if "status" not in body:
        raise ServiceError("the response does not say that the outcome was recorded; is there a proxy in between?")


def body_of(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of a response; raise what it says if it is an error."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    if response.is_success:
        if isinstance(body, dict):
            return body
        raise ServiceError(
            f"the service cannot be reached: another server responded {_summary(response)}",
            retry_after=retry_after(response.headers),
        )
    detail = body.get("detail") if isinstance(body, dict) else None
    message = f"{response.status_code}: {detail}" if isinstance(detail, str) else _summary(response)
    raise ServiceError(message, response.status_code, retry_after(response.headers))


def _summary(response: httpx.Response) -> str:
    return f"{response.status_code}: {response.text[:200]}".rstrip()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a response asks to wait: its Retry-After is a number of seconds or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(min(float(value), MAX_RETRY_AFTER))
    if (date := _date(value)) is None:
        return None
    sent = _date(headers.get("Date", "")) or datetime.now(UTC)  # the server's clock, in case ours differs
    return min(max((date - sent).total_seconds(), 0.0), MAX_RETRY_AFTER)


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
