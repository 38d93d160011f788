"""The counts of a model."""

import pytest

from gaptron.serve.tally import MAX_CHANGES, WINDOW, LabelCounts, Tally


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
    tally.learned(0, 0.0, 0.5, round(1_000_000 * seconds))
    assert tally.delays == [int(at == column) for at in range(7)]


def test_a_timeout_is_no_outcome() -> None:
    tally = Tally(labels=[LabelCounts(), LabelCounts()])
    tally.learned(1, 0.25, 0.5, 3)
    tally.learned(1, 1.0, 0.125, None)
    assert (tally.outcomes, tally.timed_out, sum(tally.delays)) == (1, 1, 1)
    assert tally.labels == [LabelCounts(), LabelCounts(0, 1, 0.25)]
    assert [(one.code, one.error, one.propensity) for one in tally.recent] == [(1, 0.25, 0.5), (1, 1.0, 0.125)]


def test_only_recent_values_are_kept() -> None:
    tally = Tally(labels=[LabelCounts()])
    for at in range(5 * WINDOW // 2):
        tally.decided(0, float(at), None)
        tally.changed(at, "mode: live")
    last = 5 * WINDOW // 2
    assert len(tally.top_probabilities) < 2 * WINDOW
    assert tally.top_probabilities[-WINDOW:] == [float(at) for at in range(last - WINDOW, last)]
    assert tally.changes == [(at, "mode: live") for at in range(last - MAX_CHANGES, last)]
    assert (tally.decisions, tally.labels[0].played, tally.shadow) == (last, last, 0)
