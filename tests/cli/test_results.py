"""The list of `gaptron results`."""

from gaptron.cli.results import _rows
from tests.results import failure, result


def test_failures_are_counted_and_left_out_of_the_rates():
    runs = [result("soba", seed=seed, rate=0.1 + 0.05 * seed) for seed in range(3)]
    runs += [failure("soba", seed=3), failure("arow", seed=0)]
    head, arow, soba = _rows(runs)
    assert head[5:] == ("runs", "seeds", "failed", "error, min to max")
    assert arow[2] == "arow" and arow[5:] == ("0", "1", "1", "–")
    assert soba[5:] == ("3", "4", "1", "10.00% to 20.00%")
