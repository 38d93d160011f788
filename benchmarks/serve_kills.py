"""Kill the decision service and its database under load, at random moments.

    PYTHONPATH=. python benchmarks/serve_kills.py [--servers 100] [--leaders 100] [--databases 20] [--redacting 50]

Eight callers decide and send outcomes, and repeat what was not acknowledged. Afterwards every acknowledged decision is
in the log with its label and propensity, and so is every acknowledged outcome; the log replays to the bit; a repeated
request got the first response; every request got a response; and every process that was started became ready. A check
that fails stops the benchmark. Prints one line for each kind of kill.

    servers     the only server, on SQLite and on PostgreSQL, half of the kills each
    leaders     the leader of two on PostgreSQL, in one of four cases the standby too, while it takes over
    databases   PostgreSQL below two servers
    redacting   the only server, on both, while it takes the features of old decisions out of its log
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.serve.kills import Killed, kill_databases, kill_leaders, kill_servers
from tests.serve.postgres import Cluster, with_schema


def report(kind: str, run: Callable[[], Killed]) -> None:
    """Run one kind, and print its line."""
    started = time.monotonic()
    killed = run()
    acknowledged = f"{killed.decisions:,} decisions and {killed.outcomes:,} outcomes acknowledged"
    redacted = f", {killed.redacted:,} decisions redacted" if killed.redacted else ""
    ready = f"ready again after at most {killed.slowest:.1f} s"
    seconds = time.monotonic() - started
    counts = f"{killed.kills} kills, {killed.events:,} events, {acknowledged}{redacted}"
    print(f"{kind}: {counts}: 0 lost, 0 hangs, 0 failed starts; {ready} ({seconds:.0f} s)", flush=True)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=100)
    parser.add_argument("--leaders", type=int, default=100)
    parser.add_argument("--databases", type=int, default=20)
    parser.add_argument("--redacting", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder, cluster = Path(temporary), Cluster()
        try:
            for kind, kills, redact in (("servers", given.servers, False), ("redacting", given.redacting, True)):
                places = {"SQLite": str(folder / kind), "PostgreSQL": with_schema(cluster.url, kind)}
                for number, (store, place) in enumerate(places.items()):
                    half = (kills + number) // 2
                    if half:
                        name = f"{kind}, {store}"
                        report(name, lambda: kill_servers(place, folder, half, given.seed, redact=redact))  # noqa: B023
            place = with_schema(cluster.url, "leaders")
            if given.leaders:
                report("leaders", lambda: kill_leaders(place, folder, given.leaders, given.seed))
            below = with_schema(cluster.url, "databases")
            if given.databases:
                report("databases", lambda: kill_databases(cluster, below, folder, given.databases, given.seed))
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
