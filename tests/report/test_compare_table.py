"""The ranking on the terminal."""

import io

import pytest
from rich.console import Console

from gaptron.experiments.summary import Slope, summarize
from gaptron.report.compare import table
from gaptron.report.compare.formatting import headline, percent, slope
from tests.results import failure, grid, many, result


def printed(results, width):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(table(results))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits(width):
    names = ["second-order-perceptron", "randomized-decoding", "banditron"]
    results = [
        run
        for word in ("full", "bandit")
        for run in many(["s", "r"], names, seeds=3, tuned=("banditron",), feedback=word)
    ]
    text = printed(results, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "Full information" in text and "Bandit feedback" in text
    assert "…" not in text
    (tuned,) = [line for line in lines if line.startswith("banditron tuned") and "8." in line][:1]
    assert "±" in tuned and tuned.split()[-2] == "0/2"
    assert sum(line.startswith("banditron ") for line in lines) == 4  # tuned and not, twice


def test_the_order_is_that_of_the_errors():
    lines = printed([result("b", rate=0.2), result("a", rate=0.1), result("c", rate=0.3)], 80).splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["a", "b", "c"]
    assert lines[2].split() == ["a", "10.00", "1/1", "2"]
    assert lines[3].split() == ["b", "20.00", "+10.00", "0/1", "2"]


def test_missing_runs_are_named():
    text = printed([result("a", seed=0), result("a", seed=1), result("b", seed=0, rate=0.3), failure("b", seed=1)], 80)
    assert "b (1 run missing)" in text and "1 failed" in text
    assert "no results" in printed([], 80)
    assert "2 failed" in printed([failure("a"), failure("b")], 80)


def headline_of(results):
    (summary,) = summarize(results)
    return headline(summary)


def test_headlines_are_honest():
    assert headline_of([result("a")]) == "a is the only algorithm: error 10.00%."
    assert headline_of([result("a"), result("b", rate=0.2)]) == (
        "a makes the fewest mistakes on s, with an error of 10.00%; the next, b, is 10.00 points behind "
        "(one seed: no interval)."
    )
    close = [result("a", seed=s, rate=r) for s, r in enumerate((0.1, 0.2))]
    close += [result("b", seed=s, rate=r) for s, r in enumerate((0.2, 0.11))]
    assert headline_of(close).endswith("(95%, 2 seeds), which is not significant.")


def test_a_winner_by_hindsight_is_named_as_such():
    words = headline_of([grid("b", 0.1, rate=0.1), result("b", rate=0.3), result("a", rate=0.4)])
    assert words.startswith("b tuned makes the fewest mistakes")
    assert "the next, a, is 30.00 points behind" in words  # not b again
    assert "chosen in hindsight" in words
    assert words.endswith("The best algorithm without tuning, b, is 20.00 points behind (one seed: no interval).")
    three = headline_of([grid("b", 0.1, rate=0.1), grid("c", 0.1, rate=0.15), result("a", rate=0.4)])
    assert "The best algorithm without tuning, a, is 30.00 points behind" in three


def test_a_leader_without_a_first_place():
    rates = {"a": (0.11, 0.11), "b": (0.1, 0.5), "c": (0.5, 0.1)}
    words = headline_of([result(n, stream, 0, r) for n, pair in rates.items() for stream, r in zip("sr", pair)])
    assert words.startswith("a has the smallest error over all streams, 11.00%, although it is first on none of them;")


def test_small_errors_keep_their_digits():
    assert [percent(x) for x in (0.5, 0.0123, 0.0, 0.00012)] == ["50.00", "1.23", "0.00", "0.012"]


def test_a_slope_is_never_minus_nothing():
    assert slope(Slope(-0.001, None, 1)) == "0.00"
    assert slope(Slope(0.514, 0.02, 3)) == "0.51 ± 0.02"
