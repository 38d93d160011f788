"""The client with a real service. tests/client has what it does when the service misbehaves."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from gaptron.client import AsyncClient, Client, ServiceError, UndeliveredError
from gaptron.errors import InputError
from tests.serve.news import NEWS
from tests.serve.process import Process, make_triage, running

ROW = [0.3, 1.0]
pytestmark = pytest.mark.slow  # it starts a process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder: Path = tmp_path_factory.mktemp("client")
    with running(str(folder / "store"), folder) as process:
        process.wait_ready()
        make_triage(process.url)
        yield process


def shown(server: Process, event: str) -> Any:
    return httpx.get(f"{server.url}/v1/models/triage/decisions/{event}").json()


def test_it_decides_and_sends_outcomes(server: Process) -> None:
    with Client(server.url, "triage") as client:
        decisions = [client.decide(ROW) for _ in range(20)]
        for decision in decisions:
            client.send_outcome(decision, correct=decision.label == "chat")
        client.flush()
        for decision in decisions:
            assert not decision.is_fallback and decision.distribution is not None
            assert shown(server, decision.event_id)["outcome"] == {"correct": decision.label == "chat"}
    assert len({decision.event_id for decision in decisions}) == 20


def test_asyncio_too(server: Process) -> None:
    async def work() -> list[Any]:
        async with AsyncClient(server.url, "triage") as client:
            decisions = await asyncio.gather(*(client.decide(ROW) for _ in range(20)))
            for decision in decisions:
                await client.send_outcome(decision, correct=True)
        return decisions

    for decision in asyncio.run(work()):
        assert shown(server, decision.event_id)["outcome"] == {"correct": True}


def test_what_the_service_refuses_is_raised_and_not_hidden_by_a_fallback(server: Process) -> None:
    client = Client(server.url, "triage", fallback="mail")
    client.decide(ROW)  # sets the number of features
    with pytest.raises(ServiceError, match="422") as caught:
        client.decide([1.0])
    assert caught.value.status == 422
    with pytest.raises(InputError, match="correct="):
        client.send_outcome("some-event")
    client.send_outcome("nobody", correct=True)
    with pytest.raises(UndeliveredError, match="404") as undelivered:
        client.close()
    assert undelivered.value.undelivered[0].event_id == "nobody"
    client.close()


def test_a_request_whose_response_was_lost_is_sent_again_with_the_same_id(server: Process) -> None:
    lost: list[bytes] = []

    class Lossy(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if len(lost) < 2:
                response.read()
                lost.append(request.content)
                raise httpx.ReadError("the line broke")
            return response

    with Client(server.url, "triage", transport=Lossy()) as client:
        decision = client.decide(ROW)
    assert len(lost) == 2 and lost[0] == lost[1]
    assert shown(server, decision.event_id)["label"] == decision.label


def test_it_chooses_among_actions(server: Process) -> None:
    httpx.post(f"{server.url}/v1/models", json=NEWS, timeout=120.0)
    actions = {"a7": {"topic": "sport", "age_h": np.float32(3)}, "a9": {"topic": None}, "b2": {}}
    with Client(server.url, "news") as client:
        decision = client.decide({"user": "student"}, actions=actions, excluded=["b2"], event_id="visit-1")
        assert decision == client.decide({"user": "student"}, actions=actions, excluded=["b2"], event_id="visit-1")
        assert decision.ranking is not None and decision.ranking[0] == (decision.action, decision.propensity)
        assert decision.distribution == dict(decision.ranking) and set(decision.distribution) == {"a7", "a9"}
        client.send_outcome(decision, reward=0.5)
        with pytest.raises(ServiceError, match="article-1"):
            client.decide(actions=actions, excluded=["article-1"])

    async def work() -> Any:
        async with AsyncClient(server.url, "news") as client:
            return await client.decide({"user": "student"}, actions=list(actions.items()), event_id="visit-2")

    assert len(asyncio.run(work()).ranking) == 3
    shown = httpx.get(f"{server.url}/v1/models/news/decisions/visit-1").json()
    assert shown["action"] == decision.action and shown["outcome"] == {"reward": 0.5}
