"""Prometheus metrics. Those of the models are read when Prometheus scrapes them."""

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gaptron.serve.clock import elapsed
from gaptron.serve.coordinator import Coordinator

MAX_LABELS = 50  # of each model; every label is a time series
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # seconds
TALLY_KINDS = ("decisions", "outcomes", "late", "void", "overridden", "timed_out", "unusable")
COUNTER_KINDS = ("duplicates", "conflicts", "refused", "retries")


class Metrics:
    """The metrics of one service, which starts now.

    Args:
        coordinator: the coordinator, once there is one.
        ready: are requests served?
        elapsed: the monotonic clock, in µs.
    """

    def __init__(
        self,
        coordinator: Callable[[], Coordinator | None],
        ready: Callable[[], bool],
        elapsed: Callable[[], int] = elapsed,
    ) -> None:
        self._elapsed, self._began = elapsed, elapsed()
        self._registry = CollectorRegistry()
        self.requests = Histogram(
            "gaptron_request_seconds",
            "Time until the response starts, which is after the commit.",
            ("route", "status"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._registry.register(_CoordinatorCollector(coordinator, ready))

    def speed(self, coordinator: Coordinator) -> dict[str, Any]:
        """The performance of the service since its start, for the report."""
        committer = coordinator.committer
        return {
            "seconds": (self._elapsed() - self._began) / 1e6,
            "events": committer.committed,
            "commits": committer.commits,
            "commit_ms": 1000.0 * committer.seconds / committer.commits if committer.commits else None,
            "events_per_commit": committer.rows / committer.commits if committer.commits else None,
            "uncommitted": committer.uncommitted,
            "p50_ms": self._quantile_ms(0.5),
            "p99_ms": self._quantile_ms(0.99),
        }

    def _quantile_ms(self, share: float) -> float | None:
        """An upper bound on this quantile for decisions and outcomes: the end of its bucket."""
        counts: dict[float, float] = {}
        for sample in next(iter(self.requests.collect())).samples:
            if sample.name.endswith("_bucket") and sample.labels["route"].endswith(
                ("/decisions", "/outcome", "/rank", "/reward")
            ):
                end = float(sample.labels["le"])
                counts[end] = counts.get(end, 0.0) + sample.value
        total = max(counts.values(), default=0.0)
        ends = [end for end, count in sorted(counts.items()) if count >= share * total]
        return 1000.0 * ends[0] if total and ends[0] < float("inf") else None

    def text(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        text: bytes = generate_latest(self._registry)
        return text


class _CoordinatorCollector(Collector):  # type: ignore[misc]  # prometheus_client has no types
    def __init__(self, coordinator: Callable[[], Coordinator | None], ready: Callable[[], bool]) -> None:
        self._coordinator, self._ready = coordinator, ready

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        coordinator = self._coordinator()
        yield GaugeMetricFamily("gaptron_ready", "1 if requests are served.", value=float(self._ready()))
        if coordinator is None:
            return
        committer = coordinator.committer
        yield CounterMetricFamily("gaptron_commits", "Commits of the log.", value=committer.commits)
        yield CounterMetricFamily("gaptron_commit_seconds", "Time spent in commits.", value=committer.seconds)
        yield GaugeMetricFamily("gaptron_uncommitted_rows", "Rows not on disk yet.", value=committer.uncommitted)
        quarantined = float(len(coordinator.quarantined))
        yield GaugeMetricFamily("gaptron_quarantined_models", "Models that cannot be used.", value=quarantined)
        yield GaugeMetricFamily("gaptron_log_events", "The number of the last event.", value=committer.committed)
        events = CounterMetricFamily("gaptron_events", "Decisions and outcomes by kind.", labels=("model", "kind"))
        played = CounterMetricFamily("gaptron_played", "Decisions by label.", labels=("model", "label"))
        learned = CounterMetricFamily("gaptron_learned", "Outcomes learned from.", labels=("model",))
        pending = GaugeMetricFamily("gaptron_pending", "Decisions that wait for their timeout.", labels=("model",))
        errors = GaugeMetricFamily("gaptron_recent_error_rate", "Error rate of recent outcomes.", labels=("model",))
        rewards = GaugeMetricFamily("gaptron_recent_mean_reward", "Mean reward of recent outcomes.", labels=("model",))
        for name, model in coordinator.models.items():
            for kind in TALLY_KINDS:
                events.add_metric((name, kind), getattr(model.tally, kind))
            for kind in COUNTER_KINDS:
                events.add_metric((name, kind), getattr(coordinator.counters[name], kind))
            for label, counts in list(zip(model.adapter.labels, model.tally.labels))[:MAX_LABELS]:
                played.add_metric((name, label), counts.played)
            learned.add_metric((name,), model.version)
            pending.add_metric((name,), len(model.pending))
            recent = model.tally.recent
            if recent:
                error_rate = sum(outcome.error for outcome in recent) / len(recent)
                errors.add_metric((name,), error_rate)
                rewards.add_metric((name,), 1.0 - error_rate)
        yield from (events, played, learned, pending, errors, rewards)
