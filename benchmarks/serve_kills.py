"""Kill the decision service and its database under load, at random moments, and let its disk fail.

    PYTHONPATH=. python benchmarks/serve_kills.py                 # everything
    PYTHONPATH=. python benchmarks/serve_kills.py disks --kills 9 # one kind, nine times

Eight callers decide and send outcomes, and repeat what was not acknowledged. Afterwards every acknowledged decision is
in the log with its label and propensity, and so is every acknowledged outcome; the log replays to the bit; a repeated
request got the first response; every request got a response; and every process that was started became ready. A check
that fails stops the benchmark. Prints one line for each kind of kill.

    servers     the only server, on SQLite and on PostgreSQL, half of the kills each
    redacting   the only server, on both, while it takes the features of old decisions out of its log
    leaders     the leader of two on PostgreSQL, in one of four cases the standby too, while it takes over
    databases   PostgreSQL below two servers
    disks       not killed: a write or a synchronisation of SQLite's files fails, by strace
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.serve.kills import Killed, fail_disks, kill_databases, kill_leaders, kill_servers
from tests.serve.postgres import Cluster, with_schema

TIMES = {"servers": 100, "redacting": 50, "leaders": 100, "databases": 20, "disks": 30}


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
    parser.add_argument("kinds", nargs="*", choices=TIMES, help="left out: all")
    parser.add_argument("--kills", type=int, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder, cluster = Path(temporary), Cluster()
        try:
            for kind in given.kinds or TIMES:
                run(kind, cluster, folder, given.kills or TIMES[kind], given.seed)
        finally:
            cluster.stop()


def run(kind: str, cluster: Cluster, folder: Path, kills: int, seed: int) -> None:
    """Run one kind."""
    sqlite, postgres = str(folder / kind), with_schema(cluster.url, kind)
    if kind in ("servers", "redacting"):
        redact, half = kind == "redacting", kills // 2
        report(f"{kind}, SQLite", lambda: kill_servers(sqlite, folder, kills - half, seed, redact=redact))
        if half:
            report(f"{kind}, PostgreSQL", lambda: kill_servers(postgres, folder, half, seed, redact=redact))
    elif kind == "leaders":
        report(kind, lambda: kill_leaders(postgres, folder, kills, seed))
    elif kind == "databases":
        report(kind, lambda: kill_databases(cluster, postgres, folder, kills, seed))
    else:
        report(kind, lambda: fail_disks(sqlite, folder, kills, seed))


if __name__ == "__main__":
    main()
