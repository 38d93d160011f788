"""Outcomes arrive or are reported, whatever the service or a proxy does; no call hangs."""

import asyncio
import os
import random
import subprocess
import sys
import threading
from typing import Any

import httpx
import pytest

from gaptron.client import AsyncClient, Client, ClientClosedError, ServiceError, UndeliveredError
from gaptron.client.base import MAX_PAUSE, Backoff
from tests.client.fake_server import HTML, RECORDED, Reply, Respond, decided, serving

BUSY = Reply(429, b'{"detail": "too many requests"}', (("Retry-After", "30"),))


class Impatient(Client):
    """It notes the pauses between attempts and does not wait."""

    def _open(self) -> None:
        super()._open()
        self.pauses: list[float] = []

    def _rest(self, seconds: float) -> None:
        if seconds:
            self.pauses.append(seconds)
        super()._rest(0.0)


class ImpatientAsync(AsyncClient):
    """The same for asyncio."""

    def _open(self) -> None:
        super()._open()
        self.pauses: list[float] = []

    async def _rest(self, seconds: float) -> None:
        if seconds:
            self.pauses.append(seconds)
        await super()._rest(0.0)


def first(count: int, bad: Reply | None) -> Respond:
    """Respond badly to the first requests, then well."""
    left = [bad] * count

    def respond(event_id: str, body: Any) -> Reply | None:
        if left:
            return left.pop()
        return decided(event_id) if "x" in body else RECORDED

    return respond


BAD = {
    "html": HTML,
    "empty": Reply(200, b""),
    "another JSON": Reply(200, b"[1, 2]"),
    "deep JSON": Reply(200, b"[" * 100_000),
    "not the body": Reply(200, b'{"ok": true}'),
    "wrong encoding": Reply(200, b"\xff\xfe", (("Content-Type", "application/json; charset=utf-8"),)),
    "damaged gzip": Reply(200, b"not gzip", (("Content-Encoding", "gzip"),)),
    "busy": BUSY,
    "bad gateway": Reply(502, b"<html>bad gateway</html>"),
    "closed": None,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_response_delays_an_outcome_and_loses_none(bad: Reply | None) -> None:
    with serving(first(3, bad)) as server, Impatient(server.url, "triage", timeout=60.0) as client:
        for number in range(3):
            client.send_outcome(f"event-{number}", correct=True)
        client.flush()
        assert [event for event, _ in server.requests] == ["event-0"] * 4 + ["event-1", "event-2"]
        assert len(client.pauses) == 3


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_asyncio_a_bad_response_delays_an_outcome_and_loses_none(bad: Reply | None) -> None:
    async def work(url: str) -> int:
        async with ImpatientAsync(url, "triage", timeout=60.0) as client:
            for number in range(3):
                await client.send_outcome(f"event-{number}", correct=True)
            await client.flush()
            return len(client.pauses)

    with serving(first(3, bad)) as server:
        assert asyncio.run(work(server.url)) == 3
        assert [event for event, _ in server.requests] == ["event-0"] * 4 + ["event-1", "event-2"]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_response_to_a_decision_gives_the_fallback(bad: Reply | None) -> None:
    with serving(first(99, bad)) as server:
        with Impatient(server.url, "triage", fallback="mail") as client:
            assert client.decide([1.0]).is_fallback
        with Impatient(server.url, "triage") as client, pytest.raises(ServiceError):
            client.decide([1.0])

        async def work() -> bool:
            async with ImpatientAsync(server.url, "triage", fallback="mail") as client:
                return (await client.decide([1.0])).is_fallback

        assert asyncio.run(work())


def test_a_service_that_never_responds_is_given_up_in_time() -> None:
    awake = threading.Event()

    def respond(event_id: str, body: Any) -> Reply | None:
        awake.wait(60.0)
        return None

    with serving(respond) as server:
        client = Client(server.url, "triage", fallback="mail", timeout=0.05)
        assert client.decide([1.0]).is_fallback
        client.send_outcome("event-0", reward=0.5)
        with pytest.raises(UndeliveredError, match="event-0"):
            client.close(timeout=0.01)
        awake.set()


def test_retry_after_is_honoured() -> None:
    with serving(first(4, BUSY)) as server, Impatient(server.url, "triage", timeout=60.0) as client:
        client.send_outcome("event-0", correct=True)
        client.flush()
        assert len(client.pauses) == 4 and all(30.0 < pause <= 30.0 + MAX_PAUSE for pause in client.pauses)
        assert len(server.requests) == 5


def test_a_decision_does_not_wait_longer_than_its_timeout() -> None:
    with serving(first(99, BUSY)) as server, Impatient(server.url, "triage", timeout=20.0) as client:
        with pytest.raises(ServiceError, match="too many requests") as caught:
            client.decide([1.0])
        assert caught.value.retry_after == 30.0
        assert client.pauses == [] and len(server.requests) == 1


def test_pauses_grow_and_are_jittered() -> None:
    backoff, away = Backoff(random.Random(7)), ServiceError("away")
    for failures, longest in [(0, 0.05), (1, 0.1), (3, 0.4), (6, 3.2), (7, MAX_PAUSE), (10**6, MAX_PAUSE)]:
        pauses = [backoff.pause(failures, away) for _ in range(200)]
        assert longest / 2 <= min(pauses) < 0.6 * longest and 0.9 * longest < max(pauses) <= longest
    assert backoff.pause(0, ServiceError("busy", 429, 30.0)) >= 30.0


class Away(httpx.BaseTransport):
    """Nobody is there until `away` is False."""

    def __init__(self) -> None:
        self.away = True
        self.seen: list[str] = []
        self.attempted = threading.Event()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.attempted.set()
        if self.away:
            raise httpx.ConnectError("nobody there")
        self.seen.append(request.url.path)
        return httpx.Response(200, json={"event_id": "e", "status": "recorded"})


def paths(count: int) -> list[str]:
    return [f"/v1/models/triage/decisions/event-{number}/outcome" for number in range(count)]


def test_an_unreachable_service_gives_a_fallback_and_loses_no_outcome() -> None:
    line = Away()
    client = Client("http://nowhere", "triage", fallback="mail", transport=line)
    decision = client.decide([0.3, 1.0])
    assert (decision.label, decision.is_fallback, decision.propensity) == ("mail", True, None)
    client.send_outcome(decision, correct=True)  # ignored
    line.attempted.clear()
    for number in range(5):
        client.send_outcome(f"event-{number}", correct=True)
    assert line.attempted.wait(60.0)
    assert line.seen == []
    line.away = False
    client.close()
    assert line.seen == paths(5)
    with pytest.raises(ServiceError, match="cannot be reached"):
        Client("http://nowhere", "triage", transport=Away()).decide([0.3, 1.0])


def test_flush_and_close_report_what_was_not_delivered() -> None:
    line = Away()
    client = Client("http://nowhere", "triage", transport=line)
    for number in range(5):
        client.send_outcome(f"event-{number}", reward=0.25)
    assert line.attempted.wait(60.0)
    with pytest.raises(UndeliveredError, match=r"5 outcomes were not delivered yet: event event-0: .*; and 2 more"):
        client.flush(timeout=0.01)
    with pytest.raises(UndeliveredError, match="5 outcomes were not delivered: ") as caught:
        client.close(timeout=0.01)
    undelivered = caught.value.undelivered
    assert [(event, outcome) for event, outcome, _ in undelivered] == [
        (f"event-{n}", {"reward": 0.25}) for n in range(5)
    ]
    assert "nobody there" in str(undelivered[0].problem) and undelivered[1].problem is None
    client.close()  # harmless


def test_asyncio_flush_and_close_report_what_was_not_delivered() -> None:
    async def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody there")

    async def work() -> None:
        client = AsyncClient("http://nowhere", "triage", transport=httpx.MockTransport(away))
        for number in range(5):
            await client.send_outcome(f"event-{number}", reward=0.25)
        for end in (client.flush, client.close):
            with pytest.raises(UndeliveredError) as caught:
                await end(timeout=0.01)
            assert [event for event, _, _ in caught.value.undelivered] == [f"event-{n}" for n in range(5)]
        await client.close()

    asyncio.run(work())


REFUSAL = Reply(422, b'{"detail": "unknown label"}')


def refuse(event_id: str, body: Any) -> Reply | None:
    return REFUSAL if event_id.startswith("bad") else RECORDED


def test_a_refused_outcome_is_reported_once_and_does_not_stop_the_others() -> None:
    queued = threading.Event()

    def refuse_later(event_id: str, body: Any) -> Reply | None:
        assert queued.wait(60.0)  # otherwise `send_outcome` would report the first refusal
        return refuse(event_id, body)

    with serving(refuse_later) as server:
        client = Client(server.url, "triage", timeout=60.0)
        for event in ("bad-1", "good-1", "bad-2"):
            client.send_outcome(event, label="mail")
        queued.set()
        with pytest.raises(UndeliveredError, match=r"2 outcomes were not .* 422: unknown label") as caught:
            client.flush()
        assert [event for event, _, _ in caught.value.undelivered] == ["bad-1", "bad-2"]
        assert caught.value.status == 422 and not caught.value.is_retryable
        client.flush()
        client.send_outcome("bad-3", label="mail")
        with client._changed:
            assert client._changed.wait_for(lambda: not client._outbox.waiting, 60.0)
        with pytest.raises(UndeliveredError, match="bad-3"):
            client.send_outcome("good-2", label="mail")
        client.send_outcome("good-2", label="mail")
        client.close()
        assert [event for event, _ in server.requests] == ["bad-1", "good-1", "bad-2", "bad-3", "good-2"]


def test_asyncio_a_refused_outcome_is_reported_once_and_does_not_stop_the_others() -> None:
    queued = threading.Event()

    def refuse_later(event_id: str, body: Any) -> Reply | None:
        assert queued.wait(60.0)
        return refuse(event_id, body)

    async def work(url: str) -> None:
        client = AsyncClient(url, "triage", timeout=60.0)
        for event in ("bad-1", "good-1", "bad-2"):
            await client.send_outcome(event, label="mail")
        queued.set()
        with pytest.raises(UndeliveredError) as caught:
            await client.flush()
        assert [event for event, _, _ in caught.value.undelivered] == ["bad-1", "bad-2"]
        await client.close()

    with serving(refuse_later) as server:
        asyncio.run(work(server.url))
        assert [event for event, _ in server.requests] == ["bad-1", "good-1", "bad-2"]


def test_an_error_in_the_with_block_is_not_hidden() -> None:
    with pytest.raises(KeyError) as caught, serving(refuse) as server, Client(server.url, "triage") as client:
        client.send_outcome("bad-1", correct=True)
        raise KeyError("mine")
    assert "bad-1" in caught.value.__notes__[0]


def test_calls_after_close_raise() -> None:
    client = Client("http://nowhere", "triage", fallback="mail", transport=Away())
    client.close()
    for call in (lambda: client.decide([1.0]), lambda: client.send_outcome("e", correct=True), client.flush):
        with pytest.raises(ClientClosedError, match="closed"):
            call()

    async def work() -> None:
        client = AsyncClient("http://nowhere", "triage", fallback="mail")
        await client.close()
        for call in (client.decide([1.0]), client.send_outcome("e", correct=True), client.flush()):
            with pytest.raises(ClientClosedError, match="closed"):
                await call

    asyncio.run(work())


def test_a_transport_that_fails_in_its_own_way_does_not_end_the_thread() -> None:
    class Odd(Away):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if self.away:
                self.away = False
                raise ZeroDivisionError("a bug of the transport")
            return super().handle_request(request)

    line = Odd()
    with Impatient("http://nowhere", "triage", transport=line) as client:
        client.send_outcome("event-0", correct=True)
        client.send_outcome("event-1", correct=True)
    assert line.seen == paths(2)


def test_a_full_queue_raises_or_waits_and_never_drops() -> None:
    line = Away()
    client = Client("http://nowhere", "triage", max_pending=2, when_full="raise", transport=line)
    for number in range(2):
        client.send_outcome(f"event-{number}", correct=True)
    with pytest.raises(ServiceError, match="2 outcomes are waiting"):
        client.send_outcome("event-2", correct=True)
    line.away = False
    client.close()
    assert line.seen == paths(2)

    line = Away()
    waiting = Client("http://nowhere", "triage", max_pending=2, transport=line)
    back = threading.Thread(target=lambda: line.attempted.wait(60.0) and setattr(line, "away", False))
    back.start()
    for number in range(10):
        waiting.send_outcome(f"event-{number}", correct=True)
    waiting.close()
    assert line.seen == paths(10)
    back.join()


def test_closing_wakes_a_thread_that_waits_for_room() -> None:
    client = Client("http://nowhere", "triage", max_pending=1, transport=Away())
    client.send_outcome("event-0", correct=True)
    caught: list[BaseException] = []

    def send() -> None:
        try:
            client.send_outcome("event-1", correct=True)
        except ClientClosedError as problem:
            caught.append(problem)

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(UndeliveredError, match="event-0"):
        client.close(timeout=0.05)
    sender.join(60.0)
    assert len(caught) == 1


FORK = """
import os, sys, time, warnings
from gaptron.client import Client, UndeliveredError

warnings.simplefilter("ignore")  # of forking a process with threads, which is the point
client = Client(sys.argv[1], "triage", timeout=60.0)
client.send_outcome("parent-0", correct=True)
try:
    client.flush(timeout=0.2)
    raise AssertionError("the server is not away")
except UndeliveredError:
    pass  # the thread runs, and an outcome is waiting
if (child := os.fork()) == 0:
    try:
        client.flush()  # nothing is waiting in the child
        client.send_outcome("child-0", correct=True)
        client.close()
        os._exit(0)
    finally:
        os._exit(1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
client.send_outcome("parent-1", correct=True)
client.close()
sys.exit(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_sends_its_own_outcomes_and_not_the_parents() -> None:
    def respond(event_id: str, body: Any) -> Reply | None:
        """The parent's first outcome arrives only after the child's."""
        events = [event for event, _ in server.requests]
        return RECORDED if event_id.startswith("child") or "child-0" in events else HTML

    with serving(respond) as server:
        subprocess.run([sys.executable, "-c", FORK, server.url], check=True, timeout=120)
        events = [event for event, _ in server.requests]
    assert events.count("child-0") == 1 and events.count("parent-1") == 1
    assert events[events.index("child-0") :].count("parent-0") <= 1  # the parent's; a child that has it could not flush
