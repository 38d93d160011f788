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
MAX_DEPTH = 5  # of a request: the deepest field is a feature of an action
Plain = Any  # None, bool, int, float, str, or a list or dict of them


class Decision(NamedTuple):
    """A label or an action to play."""

    event_id: str
    label: str  # of actions the id of the one to play
    propensity: float | None  # the probability with which the label was drawn; None for a fallback
    distribution: dict[str, float] | None  # None for a fallback, and in shadow mode
    is_fallback: bool  # the service could not be reached; it knows nothing of this decision
    ranking: list[tuple[str, float]] | None = None  # of actions: the one to play, then the others by score

    @property
    def action(self) -> str:
        """The id of the action to play."""
        return self.label


class OutcomeMessage(NamedTuple):
    """An outcome, ready to be sent."""

    event_id: str
    outcome: dict[str, Any]
    content: bytes  # its JSON text


# --- requests -----------------------------------------------------------------------------------------------


def decision_request(x: Any, event_id: str | None, fields: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the event id and the JSON text of a request for a decision."""
    body: dict[str, Any] = {"event_id": new_event_id() if event_id is None else checked_event_id(event_id)}
    rest = {name: plain(name, value) for name, value in fields.items() if name != "actions"}
    if fields.get("actions") is not None:
        if x is not None and not isinstance(x, Mapping):
            raise InputError("the context of actions must be a mapping of names to values")
        if x is not None:
            body["context"] = plain("context", x)
        body["actions"] = [_action(*pair) for pair in _pairs(fields["actions"])]
    elif isinstance(x, Mapping):
        body["features"] = plain("features", x)
    else:
        body["x"] = _numbers(x)
    return body["event_id"], _encode(body | rest)


def offered(fields: Mapping[str, Any]) -> set[str]:
    """Return the ids of the actions of a request that may be played."""
    excluded = fields.get("excluded") or ()
    if not isinstance(excluded, list | tuple | set | frozenset):
        raise InputError("excluded must be a list of ids")
    names = [action for action, _ in _pairs(fields["actions"]) if isinstance(action, str)]
    return {action for action in names if action not in list(excluded)}


def _pairs(actions: Any) -> list[tuple[Any, Any]]:
    pairs = list(actions.items() if isinstance(actions, Mapping) else actions if isinstance(actions, list) else ())
    if not pairs or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise InputError("actions must be a mapping of ids to features, or a list of (id, features), and not empty")
    return pairs


def _action(name: Any, features: Any) -> dict[str, Any]:
    what = f"the features of action {name!r}"
    if not isinstance(name, str) or not name:
        raise InputError(f"the id of an action is {name!r}: give text")
    if isinstance(features, Mapping):
        return {"id": plain("the id of an action", name), "features": plain(what, features)}
    return {"id": plain("the id of an action", name), "x": _numbers(features, what)}


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
    "action": (_is_text, "the id of an action"),
    "void": (lambda value: value is True, "True"),
    "played": (_is_text, "the text of a label, or the id of an action"),
}
_ONE_OF = "correct=, reward=, label=, action= or void="


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


def _numbers(x: Any, name: str = "x") -> list[float]:
    values = None if isinstance(x, str) else plain(name, x)
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        raise InputError(f"{name} must be numbers, or a mapping of names to values")
    return [float(value) for value in values]


def _encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


# --- responses ----------------------------------------------------------------------------------------------


def decision_of(body: Mapping[str, Any], event_id: str) -> Decision:
    """Read the response to a request for a decision."""
    played = body.get("label", body.get("action"))
    if body.get("event_id") != event_id or not isinstance(played, str) or "propensity" not in body:
        raise ServiceError(f"the response is not a decision for event {event_id}; is there a proxy in between?")
    if "ranking" not in body:
        return Decision(event_id, played, body["propensity"], body.get("distribution"), False)
    ranking = [(one["id"], one["propensity"]) for one in body["ranking"]]
    return Decision(event_id, played, body["propensity"], dict(ranking), False, ranking)


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
