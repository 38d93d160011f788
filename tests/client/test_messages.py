"""Requests are checked and converted in the caller's thread, with one clear error."""

import json
from collections import OrderedDict
from typing import Any

import httpx
import numpy as np
import pytest

from gaptron.client import AsyncClient, Client, Decision
from gaptron.client.messages import MAX_RETRY_AFTER, decision_request, outcome_message, retry_after
from gaptron.errors import InputError


@pytest.mark.parametrize(
    ("outcome", "sent"),
    [
        ({"correct": np.bool_(True)}, {"correct": True}),
        ({"correct": np.array([1, 2])[0] == 1}, {"correct": True}),
        ({"reward": np.float32(0.5)}, {"reward": 0.5}),
        ({"reward": np.longdouble(0.5)}, {"reward": 0.5}),
        ({"reward": np.int64(1)}, {"reward": 1}),
        ({"label": np.str_("mail"), "played": "chat"}, {"label": "mail", "played": "chat"}),
        ({"void": True}, {"void": True}),
    ],
)
def test_numpy_scalars_become_plain_values(outcome: dict[str, Any], sent: dict[str, Any]) -> None:
    message = outcome_message("event-1", outcome)
    assert json.loads(message.content) == message.outcome == sent
    assert [type(value) for value in message.outcome.values()] == [type(value) for value in sent.values()]


BAD_OUTCOMES = [
    ({}, "exactly one of correct="),
    ({"played": "mail"}, "exactly one of correct="),
    ({"correct": True, "reward": 1.0}, "exactly one of correct="),
    ({"corect": True}, "corect= is not part"),
    ({"correct": 1}, "True or False"),
    ({"correct": None}, "True or False"),
    ({"reward": float("nan")}, "reward has nan"),
    ({"reward": np.float32("inf")}, "reward has inf"),
    ({"reward": 1.5}, "from 0 to 1"),
    ({"reward": True}, "from 0 to 1"),
    ({"reward": 10**400}, "64 bits"),
    ({"label": "\ud800"}, "lone surrogate"),
    ({"label": 3}, "text of a label"),
    ({"label": ""}, "text of a label"),
    ({"label": b"mail"}, "type bytes"),
    ({"label": object()}, "type object"),
    ({"void": False}, "must be True"),
]


@pytest.mark.parametrize(("outcome", "says"), BAD_OUTCOMES, ids=[str(number) for number in range(len(BAD_OUTCOMES))])
def test_an_outcome_that_cannot_be_sent_is_refused_at_once(outcome: dict[str, Any], says: str) -> None:
    with Client("http://nowhere", "triage") as client:
        with pytest.raises(InputError, match=says):
            client.send_outcome("event-1", **outcome)
        with pytest.raises(
            InputError, match=says
        ):  # that of a fallback too: the mistake shows before the service is away
            client.send_outcome(Decision("event-1", "mail", None, None, True), **outcome)
        assert not client._outbox.waiting


@pytest.mark.parametrize("event", [None, 3, "", "\udfff", b"event"])
def test_an_event_id_is_text(event: Any) -> None:
    with pytest.raises(InputError, match="event_id"):
        outcome_message(event, {"correct": True})


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("x", "fields", "says"),
    [
        ([1.0, float("nan")], {}, "x has nan"),
        (np.array([1.0, np.inf], np.float32), {}, "x has inf"),
        (["1.0"], {}, "x must be numbers"),
        ("123", {}, "x must be numbers"),
        (3.0, {}, "x must be numbers"),
        (None, {}, "x must be numbers"),
        (np.ones((2, 2)), {}, "x must be numbers"),
        (np.ones(2, complex), {}, "type complex"),
        ({"age": float("nan")}, {}, r"features\['age'\] has nan"),
        ({3: 1.0}, {}, "not text: 3"),
        ({"\ud800": 1.0}, {}, "lone surrogate"),
        ({"when": np.datetime64("2026-01-01")}, {}, "type date"),
        (cyclic(), {}, "nested too deeply"),
        ([1.0], {"available": ["\ud800"]}, "lone surrogate"),
        ([1.0], {"advice": {"mail": np.nan}}, "has nan"),
    ],
)
def test_a_request_that_cannot_be_sent_is_refused_at_once(x: Any, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        decision_request(x, None, fields)


def test_requests_are_converted() -> None:
    _, content = decision_request(np.array([1, 2], np.int32), "e", {"available": ("mail", np.str_("chat"))})
    assert json.loads(content) == {"event_id": "e", "x": [1.0, 2.0], "available": ["mail", "chat"]}
    features = OrderedDict(age=np.int64(3), size=np.float32(0.5), on=np.bool_(False), name="é", gap=None)
    _, content = decision_request(features, "e", {"advice": {"mail": np.float64(0.1)}})
    assert json.loads(content) == {
        "event_id": "e",
        "features": {"age": 3, "size": 0.5, "on": False, "name": "é", "gap": None},
        "advice": {"mail": 0.1},
    }


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "30"}, 30.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "9" * 5000}, MAX_RETRY_AFTER),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "²"}, None),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:20 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 20.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:20 -0000", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 20.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:20 GMT"}, 0.0),
        ({"Retry-After": "Wed, 21 Oct 1926 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "Wed, 21 Oct 9999 07:28:00 GMT"}, MAX_RETRY_AFTER),
        ({"Retry-After": "Wed, 99 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"url": "nowhere"}, "http://"),
        ({"url": "ftp://nowhere"}, "http://"),
        ({"url": "http://a:b"}, "not an address"),
        ({"key": "a\nb"}, "HTTP header"),
        ({"key": "ä"}, "HTTP header"),
        ({"timeout": 0.0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"max_pending": 0}, "max_pending"),
        ({"when_full": "drop"}, "when_full"),
        ({"model": "\ud800"}, "model"),
    ],
)
def test_arguments_are_checked(client: Any, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        client(**{"url": "http://nowhere", "model": "triage", **arguments})


def test_names_are_quoted_in_the_url() -> None:
    seen: list[bytes] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path)
        return httpx.Response(200, json={"status": "recorded"})

    with Client("http://nowhere/gaptron", "a/b", transport=httpx.MockTransport(respond)) as client:
        client.send_outcome("1?x=#/é", correct=True)
    assert seen == [b"/gaptron/v1/models/a%2Fb/decisions/1%3Fx%3D%23%2F%C3%A9/outcome"]


def test_actions_are_sent_with_their_context() -> None:
    actions = {"a7": {"topic": "sport", "age_h": np.float32(0.5)}, "a9": np.array([1, 2])}
    event, content = decision_request({"user": "student"}, "e", {"actions": actions, "excluded": ["a9"]})
    sent = {
        "event_id": "e",
        "context": {"user": "student"},
        "actions": [{"id": "a7", "features": {"topic": "sport", "age_h": 0.5}}, {"id": "a9", "x": [1.0, 2.0]}],
        "excluded": ["a9"],
    }
    assert event == "e" and json.loads(content) == sent
    _, pairs = decision_request({"user": "student"}, "e", {"actions": list(actions.items()), "excluded": ["a9"]})
    assert pairs == content
    assert json.loads(decision_request(None, "e", {"actions": {"a": {}}})[1]) == {
        "event_id": "e",
        "actions": [{"id": "a", "features": {}}],
    }


@pytest.mark.parametrize(
    ("x", "actions", "words"),
    [
        ([1.0], {"a": {}}, "context of actions must be a mapping"),
        (None, {}, "mapping of ids"),
        (None, [], "mapping of ids"),
        (None, ["a", "b"], "mapping of ids"),
        (None, [("a", {}, 1)], "mapping of ids"),
        (None, "ab", "mapping of ids"),
        (None, {7: {}}, "id of an action is 7"),
        (None, {"": {}}, "id of an action"),
        (None, {"a": "sport"}, "features of action 'a'"),
        (None, {"a": {"n": float("nan")}}, "features of action 'a'"),
    ],
)
def test_actions_that_cannot_be_sent_are_refused(x: Any, actions: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        decision_request(x, "e", {"actions": actions})
