"""The counts of a model."""

from typing import Any

import pytest

from gaptron.offpolicy.sums import MistakeSums
from gaptron.serve.events import Decided
from gaptron.serve.performance import Performance
from gaptron.serve.schemas import DecisionRequest
from gaptron.serve.tally import MAX_CHANGES, WINDOW, LabelCounts, Tally


def decision(propensity: float, **more: Any) -> Decided:
    return Decided(DecisionRequest(), 0, "mail", propensity, **more)


@pytest.mark.parametrize(
    ("seconds", "column"),
    [
        (0, 0),
        (0.999999, 0),
        (1, 1),
        (9.999999, 1),
        (10, 2),
        (60, 3),
        (600, 4),
        (3600, 5),
        (86_399, 5),
        (86_400, 6),
        (1e9, 6),
    ],
)
def test_a_delay_at_the_upper_end_of_a_column_is_in_the_next_one(seconds: float, column: int) -> None:
    tally = Tally(labels=[LabelCounts()])
    tally.learned(0, decision(0.5), 0, 0.0, delay=round(1_000_000 * seconds), n_available=2)
    assert tally.delays == [int(at == column) for at in range(7)]


def test_a_timeout_is_no_outcome() -> None:
    tally = Tally(labels=[LabelCounts(), LabelCounts()])
    tally.learned(1, decision(0.5), 0, 0.25, delay=3, n_available=2)
    tally.learned(1, decision(0.125), 0, 1.0, delay=None, n_available=2)
    assert (tally.outcomes, tally.timed_out, sum(tally.delays)) == (1, 1, 1)
    counts = tally.labels[1]
    assert tally.labels[0] == LabelCounts() and (counts.outcomes, counts.errors, counts.timed_out) == (1, 0.25, 1)
    assert tally.total == Performance(0, MistakeSums(2, 1.25, 1.0625))
    assert [(one.code, one.error, one.propensity) for one in tally.recent] == [(1, 0.25, 0.5), (1, 1.0, 0.125)]


def test_only_recent_values_are_kept() -> None:
    tally = Tally(labels=[LabelCounts()])
    for at in range(5 * WINDOW // 2):
        tally.decided(0, decision(0.5, distribution=(float(at), -1.0)), 0)
        tally.changed(at, "mode: live")
    last = 5 * WINDOW // 2
    assert len(tally.top_probabilities) < 2 * WINDOW
    assert tally.top_probabilities[-WINDOW:] == [float(at) for at in range(last - WINDOW, last)]
    assert tally.changes == [(at, "mode: live") for at in range(last - MAX_CHANGES, last)]
    assert (tally.decisions, tally.labels[0].played, tally.shadow) == (last, last, 0)
