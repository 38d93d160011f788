"""The service under load: compared with a bare echo of the same framework, at a constant rate, and after restarts.

    python benchmarks/serve.py [--seconds 10] [--connections 16 64] [--store postgresql://...]
    python benchmarks/serve.py --hold 600 --rate 1000 [--challengers 2] [--console] [--store postgresql://...]
    python benchmarks/serve.py --actions 10 50 [--seconds 10] [--connections 16 64]
    python benchmarks/serve.py --vw [--seconds 10]

The callers run in this process with asyncio and compete with the process of the service for the processors. Half of the
requests are decisions, half are their outcomes. Compare ratios within one run, not absolute numbers of different runs.
With --hold, requests are sent at fixed times, whether or not earlier ones got a response, and a latency counts from the
time a request was due; the model may have challengers, and a browser may show the console. In PostgreSQL, a new schema
is created and dropped. With --actions, the requests for decisions between labels (100 numbers) are compared with those
among so many actions of 20 named features and a context of 5, at the service's own paths and at those of Azure
Personalizer (Rank and Reward of the same requests).
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
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
paths += ["/m/m/personalizer/v1.0/rank", "/m/m/personalizer/v1.0/events/{{event}}/reward"]
app = Starlette(routes=[Route(path, echo, methods=["POST", "PUT"]) for path in paths])
uvicorn.run(app, port={PORT}, log_level="error")
"""
NO_LOG = f"""
import sys
from gaptron.serve.run import run
from gaptron.serve.service import Options
from gaptron.serve.store.sqlite import SqliteStore

SqliteStore.append = lambda *args: None
run(SqliteStore(sys.argv[1]), "127.0.0.1", {PORT}, Options())
"""
VW = f"""
from vowpalwabbit import Workspace
Workspace("--oaa 10 --daemon --foreground --port {PORT} --quiet").run_parser()
"""
ROWS = [
    f'"x":{json.dumps(row)}' for row in (np.random.default_rng(0).normal(size=(1000, 100)) / 10.0).tolist()
]  # what a request has beside its event id
SPEC = {"name": "m", "labels": [f"label-{k}" for k in range(10)], "features": 100}
ACTIONS_SPEC = {"name": "m", "actions": True}
CHALLENGERS = ["frugal-gaptron", "squarecb", "epsilon-greedy"]
DECISIONS = "/v1/models/m/decisions"
PERSONALIZER = "/m/m/personalizer/v1.0"


# --- callers --------------------------------------------------------------------------------------------------------


class Connection:
    """A connection that sends one request at a time; httpx would need more time than the service."""

    def __init__(self, rows: list[str]) -> None:
        self._rows = rows

    async def open(self) -> "Connection":
        """Connect."""
        self._read, self._write = await asyncio.open_connection("127.0.0.1", PORT)
        return self

    async def call(self, method: str, path: str, text: str) -> bytes:
        """Send a request and return the body of the response."""
        data = text.encode()
        request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._write.write(f"{request}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        head = await self._read.readuntil(b"\r\n\r\n")
        _, named, rest = head.lower().partition(b"content-length:")
        length = int(rest.split(b"\r\n")[0]) if named else 0  # 204 has none
        body = await self._read.readexactly(length)
        assert head[9:10] == b"2", body
        return body

    async def decide(self, event: str, row: int) -> bytes:
        """Make a decision."""
        return await self.call("POST", DECISIONS, f'{{"event_id":"{event}",{self._rows[row % len(self._rows)]}}}')

    async def send_outcome(self, event: str, correct: bool) -> bytes:
        """Send its outcome."""
        return await self.call("PUT", f"{DECISIONS}/{event}/outcome", f'{{"correct":{str(correct).lower()}}}')

    def close(self) -> None:
        """Close the connection."""
        self._write.close()


class PersonalizerConnection(Connection):
    """A connection that sends Rank and Reward."""

    async def decide(self, event: str, row: int) -> bytes:
        """Send Rank."""
        body = f'{{"eventId":"{event}",{self._rows[row % len(self._rows)]}}}'
        return await self.call("POST", f"{PERSONALIZER}/rank", body)

    async def send_outcome(self, event: str, correct: bool) -> bytes:
        """Send Reward."""
        return await self.call("POST", f"{PERSONALIZER}/events/{event}/reward", f'{{"value":{int(correct)}}}')


async def opened(count: int, rows: list[str] = ROWS, kind: type[Connection] = Connection) -> list[Connection]:
    return [await kind(rows).open() for _ in range(count)]


def action_rows(n_actions: int) -> list[str]:
    """Requests with actions of 20 features, half of them numbers, and a context of 5."""
    rng = np.random.default_rng(0)

    def features(numbers: int, words: int) -> dict[str, float | str]:
        named = {f"n{i}": round(value, 4) for i, value in enumerate(rng.normal(size=numbers).tolist())}
        return named | {f"w{i}": f"word-{rng.integers(10)}" for i in range(words)}

    catalogue = [{"id": f"action-{k}", "features": features(10, 10)} for k in range(4 * n_actions)]
    rows = []
    for _ in range(200):
        chosen = rng.choice(len(catalogue), n_actions, replace=False)
        body = {"context": features(3, 2), "actions": [catalogue[k] for k in chosen]}
        rows.append(json.dumps(body, separators=(",", ":"))[1:-1])
    return rows


def ranked(row: str) -> str:
    """The request of `action_rows` as Personalizer's Rank has it."""
    given = json.loads(f"{{{row}}}")
    actions = [{"id": one["id"], "features": [one["features"]]} for one in given["actions"]]
    return json.dumps({"contextFeatures": [given["context"]], "actions": actions}, separators=(",", ":"))[1:-1]


async def as_fast_as_it_goes(
    connections: int, seconds: float, run: str, rows: list[str] = ROWS, kind: type[Connection] = Connection
) -> np.ndarray:
    """Decide and send outcomes; return the latency of each request in ms."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    callers = await opened(connections, rows, kind)

    async def one(number: int, connection: Connection) -> None:
        count = 0
        while time.perf_counter() < end:
            event, count = f"{run}-{number}-{count}", count + 1
            start = time.perf_counter()
            await connection.decide(event, count + number)
            middle = time.perf_counter()
            await connection.send_outcome(event, count % 3 == 0)
            took.extend((1000.0 * (middle - start), 1000.0 * (time.perf_counter() - middle)))

    await asyncio.gather(*(one(number, connection) for number, connection in enumerate(callers)))
    for connection in callers:
        connection.close()
    return np.array(took)


async def at_a_rate(rate: float, seconds: float, connections: int) -> tuple[np.ndarray, float]:
    """Make `rate` decisions per second, with outcomes a second later; return latencies in ms, and the total seconds."""
    took: list[float] = []
    callers = await opened(connections)
    started = time.perf_counter()
    todo = deque((started + number / rate, number) for number in range(int(rate * seconds)))
    outcomes: deque[tuple[float, int]] = deque()

    async def one(connection: Connection) -> None:
        while todo or outcomes:
            queue = outcomes if outcomes and (not todo or outcomes[0][0] <= todo[0][0]) else todo
            due, number = queue.popleft()
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if queue is todo:
                await connection.decide(f"held-{number}", number)
                outcomes.append((due + 1.0, number))
            else:
                await connection.send_outcome(f"held-{number}", number % 3 == 0)
            took.append(1000.0 * (time.perf_counter() - due))

    await asyncio.gather(*map(one, callers))
    for connection in callers:
        connection.close()
    return np.array(took), time.perf_counter() - started


async def batches(seconds: float, run: str) -> float:
    """Return the decisions per second in batches of 100."""
    connection, done, start = await Connection(ROWS).open(), 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        rows = ",".join(f'{{"event_id":"{run}-{done + i}",{ROWS[i]}}}' for i in range(100))
        await connection.call("POST", f"{DECISIONS}/batch", f'{{"decisions":[{rows}]}}')
        done += 100
    connection.close()
    return done / (time.perf_counter() - start)


# --- servers --------------------------------------------------------------------------------------------------------


def wait(process: subprocess.Popen) -> float:
    """Wait until the server is ready; return the seconds."""
    start = time.perf_counter()
    while True:
        assert process.poll() is None
        try:
            if httpx.get(f"http://127.0.0.1:{PORT}/readyz").status_code < 500:
                return time.perf_counter() - start
        except httpx.HTTPError:
            pass
        time.sleep(0.02)


@contextmanager
def server(*command: str, model: bool = True, spec: dict = SPEC, rows: list[str] = ROWS) -> Iterator[subprocess.Popen]:
    """Run a server with a model that is compiled."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    try:
        wait(process)
        if model:
            assert httpx.post(f"http://127.0.0.1:{PORT}/v1/models", json=spec, timeout=600).status_code == 201
            asyncio.run(as_fast_as_it_goes(4, 1.0, "warm", rows))
        yield process
    finally:
        process.kill()
        process.wait()


def serve(store: str) -> list[str]:
    return ["-m", "gaptron", "serve", "--store", store, "--port", str(PORT)]


@contextmanager
def fresh_store(url: str) -> Iterator[str]:
    """The location of a new store: a folder, or a new schema in this database."""
    if not url:
        folder = tempfile.mkdtemp(prefix="gaptron-bench-", dir=os.environ.get("GAPTRON_BENCH_FOLDER"))
        yield f"{folder}/store"
        shutil.rmtree(folder)
        return
    import psycopg  # noqa: PLC0415

    name = f"bench_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'create schema "{name}"')
        yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
        connection.execute(f'drop schema "{name}" cascade')


def processor(process: subprocess.Popen) -> float:
    """Seconds of processor time, which depend little on other load."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- what is measured -----------------------------------------------------------------------------------------------


def measured(
    name: str,
    process: subprocess.Popen,
    connections: int,
    seconds: float,
    other: float = 0.0,
    *,
    of: str = "the echo",
    rows: list[str] = ROWS,
    kind: type[Connection] = Connection,
) -> float:
    """Print the results; return the requests per second."""
    before = processor(process)
    run = f"{name}-{connections}".replace(" ", "-")  # no event twice
    took = asyncio.run(as_fast_as_it_goes(connections, seconds, run, rows, kind))
    rate, cost = len(took) / seconds, 1e6 * (processor(process) - before) / len(took)
    p50, p99 = np.percentile(took, [50, 99])
    share = f"  {rate / other:.2f} of {of}" if other else ""
    print(
        f"{name:20} {connections:3} connections {rate:7.0f} requests/s  p50 {p50:6.1f} ms  p99 {p99:6.1f} ms"
        f"  {cost:5.0f} µs of processor{share}",
        flush=True,
    )
    return rate


def compared_with_echo(options: argparse.Namespace) -> None:
    echoed: dict[int, float] = {}
    with server("-c", ECHO, model=False) as process:
        for connections in options.connections:
            echoed[connections] = measured("echo", process, connections, options.seconds)
    with fresh_store("") as store, server("-c", NO_LOG, store) as process:
        for connections in options.connections:
            measured("without the log", process, connections, options.seconds, echoed[connections])
    with fresh_store(options.store) as store:
        with server(*serve(store)) as process:
            for connections in options.connections:
                measured("with the log", process, connections, options.seconds, echoed[connections])
            before = processor(process)
            rate = asyncio.run(batches(options.seconds, "batch"))
            cost = 1e6 * (processor(process) - before) / (rate * options.seconds)
            print(f"batches of 100: {rate:.0f} decisions/s, {cost:.0f} µs of processor each")
            events = httpx.get(f"http://127.0.0.1:{PORT}/v1/models/m/report").json()["seq"]
        restarts(store, events)


def with_actions(options: argparse.Namespace) -> None:
    labels: dict[int, float] = {}
    with fresh_store(options.store) as store, server(*serve(store)) as process:
        for connections in options.connections:
            labels[connections] = measured("labels", process, connections, options.seconds)
    for n_actions in options.actions:
        rows = action_rows(n_actions)
        surfaces = {"": (rows, Connection), "rank ": ([ranked(row) for row in rows], PersonalizerConnection)}
        with server("-c", ECHO, model=False) as process:
            for what, (texts, kind) in surfaces.items():
                name = f"{what}echo of {len(texts[0]) / 1000:.1f} kB"
                for connections in options.connections:
                    measured(name, process, connections, options.seconds, rows=texts, kind=kind)
        with fresh_store(options.store) as store, server(*serve(store), spec=ACTIONS_SPEC, rows=rows) as process:
            for what, (texts, kind) in surfaces.items():
                name = f"{what}{n_actions} actions"
                for connections in options.connections:
                    compared = labels[connections]
                    measured(name, process, connections, options.seconds, compared, of="labels", rows=texts, kind=kind)


def restarts(store: str, events: int) -> None:
    """Measure a start after kill -9, and after a regular end."""
    for after in ("kill -9", "a regular end with a snapshot"):
        process = subprocess.Popen([sys.executable, *serve(store)], stdout=subprocess.DEVNULL)
        took = wait(process)
        print(f"restart after {after}: {took:.1f} s, {processor(process):.1f} s of processor; {events} events")
        process.terminate()
        process.wait()


@contextmanager
def console(is_open: bool) -> Iterator[None]:
    """A browser that shows the model."""
    if not is_open:
        yield
        return
    chromium = shutil.which("chromium") or sys.exit("--console needs chromium")
    profile = tempfile.mkdtemp(prefix="gaptron-bench-")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    browser = subprocess.Popen([chromium, *flags, f"http://127.0.0.1:{PORT}/#/m/overview"], stderr=subprocess.DEVNULL)
    try:
        time.sleep(5.0)
        assert browser.poll() is None
        yield
    finally:
        browser.terminate()
        browser.wait()
        shutil.rmtree(profile, ignore_errors=True)


def held(options: argparse.Namespace) -> None:
    with fresh_store(options.store) as store:
        with server(*serve(store)) as process, console(options.console):
            for algorithm in CHALLENGERS[: options.challengers]:
                path = f"http://127.0.0.1:{PORT}/v1/models/m/challengers/{algorithm}"
                made = httpx.put(path, json={"algorithm": algorithm, "settings": {"norm": 2.0}}, timeout=600)
                assert made.status_code == 201, made.text
            before = processor(process)
            took, seconds = asyncio.run(at_a_rate(options.rate, options.hold, options.connections[-1]))
            cost = 1e6 * (processor(process) - before) / len(took)
        p50, p99, most = np.percentile(took, [50, 99, 100])
        print(
            f"{options.rate:.0f} decisions/s and as many outcomes for {options.hold:.0f} s: it took {seconds:.1f} s; "
            f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {most:.0f} ms; {cost:.0f} µs of processor a request"
        )
        for start in range(0, len(took), max(1, len(took) // 10)):
            part = took[start : start + len(took) // 10]
            if len(part) > 100:
                print(f"  p99 from request {start}: {np.percentile(part, 99):.1f} ms")
        print(f"acknowledged and not in the log after kill -9: {lost(store, len(took) // 2)}")


def vw_daemon(seconds: float) -> None:
    """Vowpal Wabbit's daemon on the same examples: each line is an example and its label, the response a prediction.

    It serves one connection at a time and has no ids, no log and no probabilities, so this only shows the scale.
    """
    process = subprocess.Popen([sys.executable, "-c", VW], start_new_session=True)  # it has child processes
    try:
        lines = [
            f"{at % 10 + 1} | " + " ".join(f"f{i}:{value:.6g}" for i, value in enumerate(json.loads(row))) + "\n"
            for at, row in enumerate(ROWS)
        ]
        took = asyncio.run(line_by_line([line.encode() for line in lines], seconds))
        p50, p99 = np.percentile(took, [50, 99])
        print(
            f"Vowpal Wabbit's daemon, one connection: {len(took) / seconds:.0f} lines/s, each predicted and learned; "
            f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"
        )
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def line_by_line(lines: list[bytes], seconds: float) -> np.ndarray:
    for _ in range(100):
        try:
            read, write = await asyncio.open_connection("127.0.0.1", PORT)
            break
        except OSError:
            await asyncio.sleep(0.1)
    took, end = [], time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        write.write(lines[len(took) % len(lines)])
        await read.readline()
        took.append(1000.0 * (time.perf_counter() - start))
    write.close()
    return np.array(took)


def lost(store: str, pairs: int) -> int:
    """The number of acknowledged decisions and outcomes that are not in the log."""
    from gaptron.serve.store import open_store  # noqa: PLC0415

    opened_store = open_store(store)
    logged = {(row.kind, row.event_id) for row, _ in opened_store.read()}
    opened_store.close()
    wanted = [(kind, f"held-{number}") for number in range(pairs) for kind in ("decided", "outcome")]
    return sum(one not in logged for one in wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--store", default="", help="postgresql://...; by default a folder (SQLite)")
    parser.add_argument("--hold", type=float, default=0.0, help="hold a rate for this many seconds instead")
    parser.add_argument("--rate", type=float, default=1000.0, help="--hold: decisions per second, and as many outcomes")
    parser.add_argument("--challengers", type=int, default=0, choices=range(4), help="--hold: of the model")
    parser.add_argument("--console", action="store_true", help="--hold: a browser shows the console meanwhile")
    parser.add_argument("--actions", type=int, nargs="+", help="compare decisions among so many actions with labels")
    parser.add_argument(
        "--vw", action="store_true", help="measure Vowpal Wabbit's daemon instead: pip install vowpalwabbit"
    )
    options = parser.parse_args()
    if options.vw:
        vw_daemon(options.seconds)
    elif options.actions:
        with_actions(options)
    elif options.hold:
        held(options)
    else:
        compared_with_echo(options)


if __name__ == "__main__":
    main()
