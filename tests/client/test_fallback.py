"""What a client does without the service: it plays the fallback, unless the service has refused the request."""

import json

import httpx
import pytest

from gaptron.client import Client, ServiceError
from gaptron.errors import InputError


class Service(httpx.BaseTransport):
    """Answers each decision with this status, or not at all, and keeps the paths of all requests."""

    def __init__(self, status: int | None) -> None:
        self.status, self.paths = status, list[str]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        if self.status is None:
            raise httpx.ConnectError("unreachable", request=request)
        event = json.loads(request.content).get("event_id", "")
        decision = {"event_id": event, "label": "chat", "propensity": 0.5, "model": "triage"}
        outcome = {"event_id": event, "status": "recorded"}
        return httpx.Response(self.status, json=outcome if request.method == "PUT" else decision)


def test_a_request_that_the_service_refuses_has_no_fallback() -> None:
    service = Service(422)
    with Client("http://localhost", "triage", fallback="mail", transport=service) as client:
        with pytest.raises(ServiceError):
            client.decide([0.3, 1.0], event_id="e")
    assert service.paths == ["/v1/models/triage/decisions"]


def test_the_outcome_of_a_fallback_is_not_sent() -> None:
    service = Service(None)
    with Client("http://localhost", "triage", fallback="mail", timeout=0.2, transport=service) as client:
        decision = client.decide([0.3, 1.0], event_id="e")
        assert (decision.label, decision.propensity, decision.is_fallback) == ("mail", None, True)
        service.status = 200
        client.send_outcome(decision, correct=True)
        other = client.decide([0.3, 1.0], event_id="f")
        assert (other.label, other.propensity, other.is_fallback) == ("chat", 0.5, False)
        client.send_outcome(other, correct=False)
        client.flush()
    assert [path for path in service.paths if path.endswith("/outcome")] == ["/v1/models/triage/decisions/f/outcome"]


ARTICLES = {"a7": {"topic": "sport"}, "a9": {"topic": "news"}, "b2": {}}


def test_the_fallback_of_actions_is_one_that_may_be_played() -> None:
    service = Service(None)
    with Client("http://localhost", "news", fallback="a9", timeout=0.2, transport=service) as client:
        assert client.decide(actions=ARTICLES).action == "a9"
        decision = client.decide({"user": "student"}, actions=list(ARTICLES.items()), fallback="b2")
        assert (decision.action, decision.propensity, decision.ranking, decision.is_fallback) == (
            "b2",
            None,
            None,
            True,
        )
        with pytest.raises(ServiceError):
            client.decide(actions=ARTICLES, excluded=["a9"])
        sent = len(service.paths)
        for fallback, excluded in (("a7", ["a7"]), ("article-1", [])):
            with pytest.raises(InputError, match="not the id of an action"):
                client.decide(actions=ARTICLES, excluded=excluded, fallback=fallback)
        assert len(service.paths) == sent
        client.send_outcome(decision, reward=1.0)
        client.flush()
    assert not any(path.endswith("/outcome") for path in service.paths)


def test_a_label_may_have_its_own_fallback() -> None:
    with Client("http://localhost", "triage", fallback="mail", timeout=0.2, transport=Service(None)) as client:
        assert client.decide([0.3], fallback="phone").label == "phone"
