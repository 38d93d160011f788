"""Numbers for Prometheus. Those of the models are read when they are asked for."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gaptron.serve.desk import Desk

MOST_LABELS = 50  # of a model, each a series of its own
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
SUMS = ("decisions", "answered", "late", "void", "overridden", "defaulted")
HERE = ("duplicates", "conflicts", "refused", "retries")


class Metrics:
    """The registry of one service."""

    def __init__(self, desk: Callable[[], Desk | None], ready: Callable[[], bool]) -> None:
        self._registry = CollectorRegistry()
        self.requests = Histogram(
            "gaptron_request_seconds",
            "Time from a request to its answer, which is behind the commit.",
            ("route", "status"),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._registry.register(_OfDesk(desk, ready))

    def speed(self, desk: Desk) -> dict[str, Any]:
        """How quick the service is, since its start."""
        committer = desk.committer
        return {
            "seconds": time.monotonic(),
            "entries": committer.committed,
            "commits": committer.commits,
            "commit_ms": 1000.0 * committer.seconds / committer.commits if committer.commits else None,
            "batch": committer.rows / committer.commits if committer.commits else None,
            "waiting": committer.waiting,
            "p50_ms": self._at_most_ms(0.5),
            "p99_ms": self._at_most_ms(0.99),
        }

    def _at_most_ms(self, share: float) -> float | None:
        """The end of the column below which this share of decisions and answers took."""
        below: dict[float, float] = {}
        for sample in next(iter(self.requests.collect())).samples:
            if sample.name.endswith("_bucket") and sample.labels["route"].endswith(("/decisions", "/outcome")):
                end = float(sample.labels["le"])
                below[end] = below.get(end, 0.0) + sample.value
        total = max(below.values(), default=0.0)
        ends = [end for end, count in sorted(below.items()) if count >= share * total]
        return 1000.0 * ends[0] if total and ends[0] < float("inf") else None

    def text(self) -> bytes:
        """As Prometheus reads it."""
        text: bytes = generate_latest(self._registry)
        return text


class _OfDesk(Collector):  # type: ignore[misc]  # without types
    def __init__(self, desk: Callable[[], Desk | None], ready: Callable[[], bool]) -> None:
        self._desk, self._ready = desk, ready

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        desk = self._desk()
        yield GaugeMetricFamily("gaptron_ready", "1 when requests are answered.", value=float(self._ready()))
        if desk is None:
            return
        committer = desk.committer
        yield CounterMetricFamily("gaptron_commits", "Commits of the log.", value=committer.commits)
        yield CounterMetricFamily("gaptron_commit_seconds", "Time spent in commits.", value=committer.seconds)
        yield GaugeMetricFamily("gaptron_uncommitted_rows", "Rows that wait for the disk.", value=committer.waiting)
        yield GaugeMetricFamily("gaptron_log_entries", "The number of the last entry.", value=committer.committed)
        events = CounterMetricFamily("gaptron_events", "What happened to decisions.", labels=("model", "what"))
        played = CounterMetricFamily("gaptron_played", "Decisions by label.", labels=("model", "label"))
        learned = CounterMetricFamily("gaptron_learned", "Answers learned from.", labels=("model",))
        waiting = GaugeMetricFamily("gaptron_waiting", "Decisions whose wait is not over.", labels=("model",))
        wrong = GaugeMetricFamily("gaptron_recent_wrong", "Mistakes of the last answered.", labels=("model",))
        for name, model in desk.models.items():
            for word in SUMS:
                events.add_metric((name, word), getattr(model.tally, word))
            for word in HERE:
                events.add_metric((name, word), getattr(desk.counts[name], word))
            for label, one in list(zip(model.adapter.labels, model.tally.labels))[:MOST_LABELS]:
                played.add_metric((name, label), one.played)
            learned.add_metric((name,), model.version)
            waiting.add_metric((name,), len(model.waiting))
            recent = model.tally.recent
            if recent:
                wrong.add_metric((name,), sum(seen.wrong for seen in recent) / len(recent))
        yield from (events, played, learned, waiting, wrong)
