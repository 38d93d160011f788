"""A small HTTP server that behaves as badly as a test asks."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


Respond = Callable[[str, Any], Reply | None]  # event id and JSON body → response; None closes the connection
HTML = Reply(200, b"<html>Please log in</html>", (("Content-Type", "text/html"),))
RECORDED = Reply(200, b'{"event_id": "e", "status": "recorded"}')


def decided(event_id: str) -> Reply:
    body = {"event_id": event_id, "label": "mail", "propensity": 0.5, "distribution": {"mail": 0.5, "chat": 0.5}}
    return Reply(200, json.dumps(body).encode())


class FakeServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.requests: list[tuple[str, Any]] = []  # event id and JSON body, in the order of arrival
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        event_id = body["event_id"] if "event_id" in body else self.path.split("/")[-2]
        self.server.requests.append((event_id, body))
        reply = self.server.respond(event_id, body)
        if reply is None:
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def do_PUT(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(respond: Respond) -> Iterator[FakeServer]:
    server = FakeServer(respond)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
