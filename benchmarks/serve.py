"""The service under load, beside a bare echo of the same framework: requests a second, latencies, and a restart.

    python benchmarks/serve.py [--seconds 10] [--connections 16 64] [--store postgresql://...]

Each load runs in this process with asyncio; the service is a process of its own. Half of the requests are decisions,
half are their answers. Ratios of one run count, not its absolute numbers.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

PORT = 8747
ECHO = f"""
import msgspec, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def echo(request):
    return Response(msgspec.json.encode(msgspec.json.decode(await request.body())), media_type="application/json")

paths = ["/v1/models/m/decisions", "/v1/models/m/decisions/{{event}}/outcome", "/readyz"]
app = Starlette(routes=[Route(path, echo, methods=["POST", "PUT"]) for path in paths])
uvicorn.run(app, port={PORT}, log_level="error")
"""
ROWS = (np.random.default_rng(0).normal(size=(1000, 100)) / 10.0).tolist()
LABELS = [f"label-{k}" for k in range(10)]


class Connection:
    """One connection that sends a request and waits for its answer; httpx alone would cost more than the service."""

    async def open(self) -> "Connection":
        """Connect."""
        self._read, self._write = await asyncio.open_connection("127.0.0.1", PORT)
        return self

    async def call(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        """Status and body of the answer."""
        data = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._write.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        status = int((await self._read.readline()).split()[1])
        length = 0
        while (line := await self._read.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, await self._read.readexactly(length)

    def close(self) -> None:
        """Hang up."""
        self._write.close()


async def load(connections: int, seconds: float, run: str) -> np.ndarray:
    """Decide and answer; the latency of each request in ms."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    opened = [await Connection().open() for _ in range(connections)]

    async def one(number: int, connection: Connection) -> None:
        count = 0
        while time.perf_counter() < end:
            event, count = f"{run}-{number}-{count}", count + 1
            for method, path, body in (
                ("POST", "/v1/models/m/decisions", {"event_id": event, "x": ROWS[(count + number) % 1000]}),
                ("PUT", f"/v1/models/m/decisions/{event}/outcome", {"correct": count % 3 == 0}),
            ):
                start = time.perf_counter()
                status, text = await connection.call(method, path, body)
                took.append(1000.0 * (time.perf_counter() - start))
                assert status < 300, text

    await asyncio.gather(*(one(number, connection) for number, connection in enumerate(opened)))
    for connection in opened:
        connection.close()
    return np.array(took)


async def batches(seconds: float, run: str) -> float:
    """Decisions a second in batches of 100."""
    connection, done, start = await Connection().open(), 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        rows = [{"event_id": f"{run}-{done + i}", "x": ROWS[i]} for i in range(100)]
        status, text = await connection.call("POST", "/v1/models/m/decisions/batch", {"decisions": rows})
        assert status == 200, text
        done += 100
    connection.close()
    return done / (time.perf_counter() - start)


def wait(process: subprocess.Popen, path: str) -> float:
    start = time.perf_counter()
    while True:
        assert process.poll() is None
        try:
            if httpx.get(f"http://127.0.0.1:{PORT}{path}").status_code < 500:
                return time.perf_counter() - start
        except httpx.HTTPError:
            pass
        time.sleep(0.05)


def processor(process: subprocess.Popen) -> float:
    """Seconds of processor time it has used: what does not depend on who else is at work."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(name: str, process: subprocess.Popen, connections: int, seconds: float) -> float:
    before = processor(process)
    took = asyncio.run(load(connections, seconds, name.replace(" ", "-").replace(",", "")))
    rate, cost = len(took) / seconds, 1e6 * (processor(process) - before) / len(took)
    p50, p99 = np.percentile(took, [50, 99])
    print(
        f"{name:28} {rate:7.0f} requests/s  p50 {p50:6.1f} ms  p99 {p99:6.1f} ms  {cost:5.0f} µs of processor",
        flush=True,
    )
    return rate


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--connections", type=int, nargs="+", default=[16, 64])
    options.add_argument("--store", default="")
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gaptron-bench-"))
    store = given.store or str(folder / "store")
    echoed = {}
    echo = subprocess.Popen([sys.executable, "-c", ECHO])
    wait(echo, "/readyz")
    for connections in given.connections:
        echoed[connections] = measured(f"echo, {connections} connections", echo, connections, given.seconds)
    echo.kill()
    echo.wait()
    command = [sys.executable, "-m", "gaptron", "serve", "--store", store, "--port", str(PORT)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait(server, "/readyz")
    spec = {"name": "m", "labels": LABELS, "features": 100}
    assert httpx.post(f"http://127.0.0.1:{PORT}/v1/models", json=spec, timeout=300).status_code == 201
    asyncio.run(load(4, 1.0, "warm"))
    for connections in given.connections:
        rate = measured(f"service, {connections} connections", server, connections, given.seconds)
        print(f"{'':28} {rate / echoed[connections]:7.2f} of the echo")
    print(f"batches of 100: {asyncio.run(batches(given.seconds, 'batch')):.0f} decisions/s")
    entries = httpx.get(f"http://127.0.0.1:{PORT}/v1/models/m/report").json()["seq"]
    server.kill()
    server.wait()
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    print(f"restart after kill -9 with {entries} entries and no snapshot: {wait(server, '/readyz'):.1f} s")
    server.terminate()
    server.wait()
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    print(f"restart from a snapshot: {wait(server, '/readyz'):.1f} s")
    server.terminate()
    server.wait()


if __name__ == "__main__":
    main()
