"""The client with a real service, with one that cannot be reached, and with one that comes back."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gaptron.client import AsyncClient, Client, ServiceError
from gaptron.errors import InputError
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
    with pytest.raises(ServiceError, match="404"):
        client.close()
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


class Away(httpx.BaseTransport):
    def __init__(self) -> None:
        self.away = True
        self.seen: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            raise httpx.ConnectError("nobody there")
        self.seen.append(request.url.path)
        return httpx.Response(200, json={"event_id": "e", "status": "recorded"})


def test_an_unreachable_service_gives_a_fallback_and_loses_no_outcome() -> None:
    line = Away()
    client = Client("http://nowhere", "triage", fallback="mail", transport=line)
    decision = client.decide(ROW)
    assert (decision.label, decision.is_fallback, decision.propensity) == ("mail", True, None)
    client.send_outcome(decision, correct=True)  # ignored
    for number in range(5):
        client.send_outcome(f"event-{number}", correct=True)
    time.sleep(0.3)
    assert line.seen == []
    line.away = False
    client.close()
    assert line.seen == [f"/v1/models/triage/decisions/event-{number}/outcome" for number in range(5)]
    with pytest.raises(ServiceError, match="cannot be reached"):
        Client("http://nowhere", "triage", transport=Away()).decide(ROW)


def test_a_full_queue_raises_or_waits_and_never_drops() -> None:
    line = Away()
    client = Client("http://nowhere", "triage", max_pending=2, when_full="raise", transport=line)
    client.send_outcome("event-0", correct=True)
    while client._outcomes.qsize():  # until the thread tries to send it
        time.sleep(0.01)
    for number in (1, 2):
        client.send_outcome(f"event-{number}", correct=True)
    with pytest.raises(ServiceError, match="2 outcomes are waiting"):
        client.send_outcome("event-3", correct=True)
    line.away = False
    client.close()
    assert len(line.seen) == 3, "one in progress, two in the queue"

    line = Away()
    waiting = Client("http://nowhere", "triage", max_pending=2, transport=line)
    back = threading.Timer(0.3, lambda: setattr(line, "away", False))
    back.start()
    for number in range(10):
        waiting.send_outcome(f"event-{number}", correct=True)
    waiting.close()
    assert len(line.seen) == 10
    back.join()
