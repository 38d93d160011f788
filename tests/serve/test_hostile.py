"""Malformed and malicious requests: each is refused with a problem, none causes a 500."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import sampled_from

from gaptron.serve import openapi
from gaptron.serve.keys import new_key
from gaptron.serve.routes import OPERATIONS
from gaptron.serve.schemas import MAX_BODY_BYTES
from tests.serve.news import make_news
from tests.serve.served import Served

DECISIONS = "/v1/models/triage/decisions"
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"null", 422),
        (b"[]", 422),
        (b'{"x":[NaN,1]}', 400),
        (b'{"x":[Infinity,1]}', 400),
        (b'{"x":[1e400,1]}', 422),
        (b'{"x":[0.1,0.2],"event_id":"\xff"}', 400),
        (b'{"x":[0.1,0.2],"event_id":"\\ud800"}', 400),
        (b'{"x":' + b"[" * 100_000, 422),
        (b"[" * 500_000, 422),
        (b'{"features":' + b'{"a":' * 100_000, 422),
        (b'{"x":[' + b"1," * 20_000 + b"1]}", 422),
        (b'{"x":{"indices":[99999999999],"values":[1]}}', 422),
        (b'{"x":[0.1,0.2],"event_id":"a\\u0000"}', 422),
        (b" " * (MAX_BODY_BYTES + 1), 413),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_hostile_body_is_refused(served: Served, body: bytes, status: int) -> None:
    response = served.call("POST", DECISIONS, content=body, headers=JSON)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert served.service.coordinator._seq == 1


def test_of_a_doubled_key_the_last_counts(served: Served) -> None:
    """As in nearly every JSON parser; the response and the log have the value that was used."""
    response = served.call("POST", DECISIONS, content=b'{"event_id":"a","event_id":"b","x":[0.1,0.2]}', headers=JSON)
    assert response.json()["event_id"] == "b"


def test_a_body_of_another_kind_is_refused(served: Served) -> None:
    """A web page of another origin can make a browser send a form, but not this header without a preflight request."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        response = served.call("POST", DECISIONS, content=b'{"x":[0.1,0.2]}', headers={"Content-Type": kind})
        assert response.status_code == 415


def test_what_is_not_there_is_a_problem_too(served: Served) -> None:
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("DELETE", "/v1/models", 405),
        ("GET", "/v1/models/../../etc/passwd", 404),
        ("GET", "/v1/models/%2e%2e%2fetc/report", 404),
        ("GET", "/v1/models/triage/decisions/a%00b", 422),
    ):
        response = served.call(method, path)
        assert response.status_code == status, path
        assert response.headers["content-type"] == "application/problem+json"


def test_a_method_that_is_not_served_gets_those_that_are(served: Served) -> None:
    for path, methods in (
        ("/v1/models", "GET, HEAD, POST"),
        ("/v1/models/triage", "DELETE, GET, HEAD, PATCH, PUT"),
        ("/v1/keys", "GET, HEAD, POST"),
        (DECISIONS, "GET, HEAD, POST"),
    ):
        response = served.call("OPTIONS", path)
        assert (response.status_code, response.headers["allow"]) == (405, methods), path


def test_without_keys_another_host_is_refused(served: Served) -> None:
    """A host name that somebody else points at this machine (DNS rebinding)."""
    assert served.call("GET", "/v1/models", headers={"Host": "evil.example"}).status_code == 403
    for host in ("localhost", "127.0.0.1:8717", "[::1]:8717"):
        assert served.call("GET", "/v1/models", headers={"Host": host}).status_code == 200


def test_every_response_is_safe_for_browsers(served: Served) -> None:
    for path in ("/", "/api", "/v1/models", "/nothing", "/metrics"):
        headers = served.call("GET", path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and "access-control-allow-origin" not in headers


def test_with_keys_each_path_needs_its_role(tmp_path: Path) -> None:
    from gaptron.serve.store import open_store  # noqa: PLC0415

    store, texts = open_store(str(tmp_path / "store")), {}
    store.acquire_lease()
    for role in ("decide", "feedback", "read", "admin"):
        key, texts[role] = new_key([role], None)
        store.add_key(key)
    store.close()
    served = Served(str(tmp_path / "store"))
    for path in OPERATIONS:
        where = path.path.replace("{model}", "m").replace("{event_id}", "e").replace("{file}", "main.js")
        if path.path.endswith("/events"):
            continue
        for role, text in [*texts.items(), (None, "gap_x_y")]:
            response = served.call(path.method, where, headers={"Authorization": f"Bearer {text}"})
            if path.role is None:
                assert response.status_code == 200
            elif role is None:
                assert response.status_code == 401
            else:
                assert (response.status_code == 403) == (role != path.role), (where, role, response.text)
    assert served.call("GET", "/v1/models").headers["www-authenticate"] == "Bearer"
    served.close()


def test_requests_are_refused_while_too_many_rows_are_not_on_disk(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gaptron.serve.coordinator.MAX_UNCOMMITTED_ROWS", -1)
    response = served.decide("a")
    assert response.status_code == 503 and response.headers["retry-after"] == "1"
    assert response.json()["title"] == "Service Unavailable"
    monkeypatch.undo()
    assert served.decide("a").status_code == 201


def test_a_sender_that_never_ends_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gaptron.serve.middleware.BODY_TIMEOUT", 0.05)

    async def drops() -> Any:
        yield b"{"
        await asyncio.sleep(30)

    response = served.run(served.client.post(DECISIONS, content=drops(), headers=JSON))
    assert response.status_code == 408


def test_the_document_describes_what_is_there() -> None:
    document = json.loads(json.dumps(openapi.document(OPERATIONS)))
    assert document["openapi"] == "3.1.0"
    decide = document["paths"]["/v1/models/{model}/decisions"]["post"]
    assert decide["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/DecisionRequest")
    names = set(document["components"]["schemas"])
    assert {"DecisionRequest", "Decision", "Outcome", "Problem", "NewModel"} <= names
    text = json.dumps(document)
    assert set(re.findall(r'"#/components/schemas/(\w+)"', text)) <= names


@pytest.mark.slow
def test_requests_made_from_the_document_get_what_it_says(served: Served) -> None:
    """Valid and invalid requests: no 500, and only documented statuses, types of content and bodies."""
    schemathesis = pytest.importorskip("schemathesis")
    served.make(name="named", features="auto", settings={"radius": 1.0, "horizon": 1000})
    served.make(name="shadow", mode="shadow")
    make_news(served)
    for model, more in (("triage", {}), ("shadow", {"played": {"label": "mail"}})):
        served.decide("e1", model=model, **more)
    schema = schemathesis.openapi.from_dict(served.call("GET", "/openapi.json").json())
    operations = [found.ok() for found in schema.get_all_operations()]
    # A stream does not end, and after the first key everything else is refused without one.
    operations = [one for one in operations if not one.path.endswith("/events")]
    operations.sort(key=lambda one: one.path.startswith("/v1/keys"))
    reached = set()
    for operation in operations:
        for mode in schemathesis.GenerationMode:
            reached |= _ask_as_documented(served, operation, mode)
    assert {200, 201, 400, 404, 422} <= reached
    assert served.failure is None and not served.service.coordinator.quarantined


def _ask_as_documented(served: Served, operation: Any, mode: Any) -> set[int]:
    """The statuses of the responses."""
    import requests  # noqa: PLC0415
    from schemathesis.checks import CHECKS  # noqa: PLC0415

    names = "not_a_server_error status_code_conformance content_type_conformance response_schema_conformance".split()
    checks, statuses = CHECKS.get_by_names(names), set()

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode), model=sampled_from(["triage", "named", "shadow", "news"]))
    def ask(case: Any, model: str) -> None:
        if "model" in case.path_parameters:
            case.path_parameters["model"] = model
        sent = requests.Request(**case.as_transport_kwargs(base_url="http://localhost")).prepare()
        headers = {"Content-Type": sent.headers["Content-Type"]} if sent.body else {}
        response = served.run(served.client.request(sent.method, sent.url, content=sent.body, headers=headers))
        case.validate_response(response, checks=checks)
        statuses.add(response.status_code)

    try:
        ask()
    except Unsatisfiable:  # there is no invalid request
        pass
    return statuses
