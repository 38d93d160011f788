"""The numbers of a model's report."""

from types import SimpleNamespace
from typing import Any

import pytest

from gaptron.serve.metrics import Metrics
from gaptron.serve.report import MIN_PLAYED, _warnings


@pytest.mark.parametrize(
    ("counts", "warns"),
    [
        ([(100, 90, 0.0), (100, 70, 0.0)], True),
        ([(100, 90, 0.0), (100, 85, 0.0)], False),
        ([(100, 90, 0.0), (MIN_PLAYED - 1, 1, 0.0)], False),
        ([(0, 0, 0.0), (1000, 700, 0.0)], False),
    ],
)
def test_a_label_with_fewer_outcomes_leads_to_a_warning_once_it_was_played_often(
    counts: list[tuple[int, int, float]], warns: bool
) -> None:
    facts: Any = SimpleNamespace(labels=("mail", "chat"), label_counts=counts)
    said = _warnings(facts)
    assert bool(said) == warns
    assert not said or said[0].startswith(
        "90 % of the decisions for mail have an outcome, but only 70 % of those for chat"
    )


def test_quantiles_are_of_decisions_and_outcomes_alone() -> None:
    metrics = Metrics(lambda: None, lambda: True)
    decisions = metrics.requests.labels("/v1/models/{model}/decisions", "200")
    outcomes = metrics.requests.labels("/v1/models/{model}/decisions/{event_id}/outcome", "200")
    assert metrics._quantile_ms(0.5) is None
    for seconds in (0.0005, 0.0015, 0.04):
        decisions.observe(seconds)
    outcomes.observe(0.009)
    for _ in range(100):
        metrics.requests.labels("/v1/models/{model}/log", "200").observe(4.0)
    assert [metrics._quantile_ms(share) for share in (0.25, 0.5, 0.75, 1.0)] == [1.0, 2.0, 10.0, 50.0]
    decisions.observe(60.0)
    assert metrics._quantile_ms(1.0) is None  # beyond the last bucket
