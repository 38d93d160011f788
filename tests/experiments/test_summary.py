"""The statistics of a comparison, against numbers worked out by hand and against SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from gaptron.errors import InputError
from gaptron.experiments.grouping import Variant, error
from gaptron.experiments.ranks import friedman, holm, nemenyi, ranks
from gaptron.experiments.summary import exponent, interval, summarize
from tests.results import failure, grid, many, result


def only(results):
    (summary,) = summarize(results)
    return summary


def variant(summary, name):
    return next(e for e in summary.variants if summary.names[e] == name)


# --- numbers ---


def test_an_interval_is_students():
    found = interval([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5 and found.n == 4
    assert found.half_width == pytest.approx(
        3.182446 * math.sqrt(5 / 3) / 2, rel=1e-6
    )  # t(0.975, 3 df) from a printed table
    low, high = stats.t.interval(0.95, 3, loc=2.5, scale=stats.sem([1, 2, 3, 4]))
    assert (2.5 - found.half_width, 2.5 + found.half_width) == pytest.approx((low, high))


def test_one_value_has_no_interval_and_none_is_refused():
    assert interval([0.3]) == (0.3, None, 1)
    assert not interval([0.3]).excludes_zero
    with pytest.raises(InputError, match="at least one"):
        interval([])


def test_an_interval_may_exclude_zero():
    assert interval([1.0, 1.1, 0.9]).excludes_zero and not interval([1.0, -1.0, 0.2]).excludes_zero


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_exponent_of_a_power_law(power):
    rounds = [10**k for k in np.arange(0, 5.01, 0.1)]
    assert exponent(rounds, [3 * t**power for t in rounds]) == pytest.approx(power)


def test_the_exponent_is_of_the_later_rounds_alone():
    rounds = [float(t) for t in (1, 2, 5, 10, 20, 50, 100)]
    counts = [t if t < 10 else 10.0 for t in rounds]  # all mistakes in the first ten rounds
    assert exponent(rounds, counts) == pytest.approx(0.0)


def test_the_later_rounds_begin_at_a_tenth_and_include_it():
    """Three points are enough for an exponent, and the first of them is at exactly a tenth of the rounds."""
    assert exponent([9, 10, 50, 100], [5, 10, 50, 100]) == pytest.approx(1.0)
    assert exponent([9, 11, 100], [9, 11, 100]) is None


def test_too_few_mistakes_have_no_exponent():
    assert exponent([1, 10, 100, 1000], [0, 0, 0, 0]) is None
    assert exponent([1, 10, 100], [0, 0, 2]) is None


# --- pairs ---


def test_full_information_counts_expected_mistakes_and_bandit_feedback_those_made():
    assert error(result("a", feedback="full", rate=0.1)) == pytest.approx(0.1005)
    assert error(result("a", feedback="bandit", rate=0.1)) == pytest.approx(0.1)
    assert error(result("a", feedback="apple-tasting", rate=0.1)) == pytest.approx(0.1)


def test_differences_are_taken_seed_by_seed():
    # Seeds differ wildly, but b is always 2 points behind a, give or take 0.1: only pairs show it.
    a, b = (0.10, 0.30, 0.50), (0.121, 0.319, 0.520)
    summary = only(
        [result("a", seed=s, rate=r) for s, r in enumerate(a)] + [result("b", seed=s, rate=r) for s, r in enumerate(b)]
    )
    found = summary.difference(variant(summary, "b"), variant(summary, "a"), summary.streams[0])
    assert found.mean == pytest.approx(0.02)
    assert found.half_width == pytest.approx(4.302653 * 0.001 / math.sqrt(3), rel=1e-5)
    test = stats.ttest_rel(b, a)
    assert found.mean + found.half_width == pytest.approx(test.confidence_interval(0.95).high)


def test_only_seeds_that_both_played_are_paired():
    summary = only(
        [
            result("a", seed=0, rate=0.1),
            result("a", seed=1, rate=0.9),
            result("b", seed=0, rate=0.2),
            result("b", seed=2, rate=0.0),
        ]
    )
    a, b = variant(summary, "a"), variant(summary, "b")
    assert summary.difference(b, a, summary.streams[0]) == (pytest.approx(0.1), None, 1)
    assert summary.over_streams(b, a) == (pytest.approx(0.1), None, 1)


def test_over_streams_the_mean_is_taken_within_a_seed():
    rates = {("a", "s"): (0.1, 0.1), ("b", "s"): (0.2, 0.3), ("a", "r"): (0.5, 0.5), ("b", "r"): (0.6, 0.7)}
    summary = only([result(n, stream, seed, r) for (n, stream), pair in rates.items() for seed, r in enumerate(pair)])
    found = summary.over_streams(variant(summary, "b"), variant(summary, "a"))
    # seed 0: (0.1 + 0.1)/2, seed 1: (0.2 + 0.2)/2
    assert found.mean == pytest.approx(0.15)
    assert found.half_width == pytest.approx(12.7062 * 0.05, rel=1e-4)


def test_streams_on_other_seeds_give_a_mean_without_an_interval():
    summary = only(
        [result(n, "s", seed, r) for n, r in (("a", 0.1), ("b", 0.2)) for seed in (0, 1)]
        + [result(n, "r", seed, r) for n, r in (("a", 0.1), ("b", 0.4)) for seed in (2, 3)]
    )
    assert summary.over_streams(variant(summary, "b"), variant(summary, "a")) == (pytest.approx(0.2), None, 1)


def test_runs_on_other_data_are_never_compared():
    old, new = result("a", rate=0.1), result("b", rate=0.2, data="something else")
    summary = only([old, new])
    assert len(summary.streams) == 2
    assert sorted(summary.stream_names.values()) == ["s (hash of )", "s (somethin)"]
    assert summary.over_streams(variant(summary, "a"), variant(summary, "b")) is None


def test_streams_of_one_name_are_distinguished_by_what_differs():
    summary = only([result("a", rounds=100, data="x"), result("a", rounds=1000, data="y"), result("a", stream="alone")])
    assert sorted(summary.stream_names.values()) == ["alone", "s (T=1,000)", "s (T=100)"]


# --- variants ---


def test_names_are_as_short_as_keeps_variants_distinct():
    summary = only(
        [
            result("plain"),
            result("gaptron", loss="hinge"),
            result("gaptron", loss="logistic"),
            result("soba"),
            result("soba", settings={"gamma": 0.25}),
            grid("banditron", 0.1),
            result("banditron"),
        ]
    )
    assert set(summary.names.values()) == {
        "plain",
        "gaptron hinge",
        "gaptron logistic",
        "soba as published",
        "soba gamma=0.25",
        "banditron",
        "banditron tuned",
    }


def test_tuned_is_the_best_mean_over_seeds_not_the_best_seed():
    results = [result("b", seed=s, rate=0.5) for s in (0, 1)]
    results += [grid("b", 0.1, seed=s, rate=r) for s, r in enumerate((0.01, 0.61))]  # luckiest seed, mean 0.31
    results += [grid("b", 0.2, seed=s, rate=0.30) for s in (0, 1)]
    summary = only(results)
    (stream,) = summary.streams
    assert summary.grids[variant(summary, "b tuned"), stream].best.value == (0.2,)
    assert summary.error(variant(summary, "b tuned"), stream).mean == pytest.approx(0.30)
    assert summary.error(variant(summary, "b"), stream).mean == pytest.approx(0.5)


def test_each_stream_is_tuned_by_itself_and_the_published_setting_may_win():
    results = [grid("b", g, stream="s", rate=r) for g, r in ((0.1, 0.2), (0.2, 0.3))]
    results += [grid("b", g, stream="r", rate=r) for g, r in ((0.1, 0.5), (0.2, 0.4))]
    results += [result("b", stream="s", rate=0.15), result("b", stream="r", rate=0.6)]
    summary = only(results)
    chosen = {a.name: summary.grids[variant(summary, "b tuned"), a].best for a in summary.streams}
    assert chosen["s"].published and chosen["r"].value == (0.2,)


def test_a_setting_that_lacks_seeds_cannot_be_the_best():
    results = [grid("b", 0.1, seed=0, rate=0.01), *(grid("b", 0.2, seed=s, rate=0.3) for s in (0, 1))]
    summary = only(results)
    assert summary.grids[variant(summary, "b tuned"), summary.streams[0]].best.value == (0.2,)


def test_a_grid_result_must_name_its_parameter():
    with pytest.raises(InputError, match="does not name the setting"):
        summarize([result("b", role="grid", settings={"gamma": 1.0})])


def test_two_grids_of_one_algorithm_and_grids_of_several_parameters():
    both = result("b", role="grid", tuned="eta,gamma", settings={"eta": 1.0, "gamma": 0.1})
    summary = only([grid("b", 0.1), grid("b", 3.0, "eta"), both, result("b")])
    assert set(summary.names.values()) == {"b", "b tuned (gamma)", "b tuned (eta)", "b tuned (eta,gamma)"}
    assert [c.value for c in summary.grids[variant(summary, "b tuned (eta,gamma)"), summary.streams[0]].candidates][
        -1
    ] == (
        1.0,
        0.1,
    )


def test_the_ranking_is_by_mean_error_and_counts_first_places():
    rates = {"a": (0.1, 0.5), "b": (0.2, 0.2), "c": (0.1, 0.9)}
    summary = only([result(n, stream, 0, r) for n, pair in rates.items() for stream, r in zip("sr", pair)])
    assert [(summary.names[s.variant], s.wins) for s in summary.ranking] == [("b", 1), ("a", 1), ("c", 1)]
    assert [s.error for s in summary.ranking] == pytest.approx([0.2, 0.3, 0.5])
    assert summary.ranking[1].behind == (pytest.approx(0.1), None, 1)
    assert summary.ranking[0].microseconds == pytest.approx(2.0)


def test_a_variant_with_a_missing_stream_is_last():
    summary = only([result("a", "s", rate=0.01), result("b", "s", rate=0.5), result("b", "r", rate=0.5)])
    assert [(summary.names[s.variant], s.streams, s.missing) for s in summary.ranking] == [("b", 2, 0), ("a", 1, 1)]
    assert summary.ranking[1].behind.mean == pytest.approx(-0.49)


def test_a_failure_is_no_result_and_is_dropped_once_the_task_succeeds():
    lost = failure("a", key="1")
    summary = only([result("b"), lost])
    assert summary.failed == (lost,) and [e.algorithm for e in summary.variants] == ["b"]
    mended = only([result("b"), lost, result("a", key="1")])
    assert not mended.failed and len(mended.variants) == 2
    assert not only([result("a", key="1"), lost]).failed  # whichever line came first


def test_feedbacks_are_apart_and_in_order():
    results = [result("a", feedback=word) for word in ("apple-tasting", "bandit", "full")]
    assert [summary.feedback for summary in summarize(results)] == ["full", "bandit", "apple-tasting"]


def test_best_variants_hold_an_algorithm_once():
    summary = only([result("b", rate=0.3), grid("b", 0.1, rate=0.2), result("a", rate=0.1)])
    assert [summary.names[e] for e in summary.best_variants] == ["a", "b tuned"]


def test_slopes_are_fitted_seed_by_seed():
    def run(seed, power):
        t = [100.0 * k for k in range(1, 11)]
        return result("a", seed=seed, curve={"rounds": t, "mistakes": [x**power for x in t], "expected": t})

    summary = only([run(0, 0.4), run(1, 0.6)])
    slope = summary.slope(Variant("a", "logistic", ()), summary.streams[0])
    assert slope == (pytest.approx(0.5), pytest.approx(0.1), 2)  # sd 0.1·√2 over √2
    alone = only([run(0, 0.4)])
    assert alone.slope(alone.variants[0], alone.streams[0]) == (pytest.approx(0.4), None, 1)


def test_the_bound_is_the_mean_over_the_seeds_that_have_one():
    summary = only([result("a", seed=0, rate=0.1, bound={"value": 400.0}), result("a", seed=1, rate=0.9)])
    assert summary.bound(summary.variants[0], summary.streams[0]) == (100.5, 400.0)
    none = only([result("a")])
    assert none.bound(none.variants[0], none.streams[0]) is None


# --- ranks ---

DEMSAR = np.array(  # Demšar 2006, Table 6: AUC of C4.5 and its variants on 14 data sets
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_ranks_of_a_published_example():
    found = ranks(-DEMSAR)
    assert found.average == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=6e-4)  # as printed there
    assert found.critical == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 14)), rel=1e-3)  # its q, its formula
    assert found.p < 0.05


def test_friedman_is_scipys_turned_into_an_f():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 5, (9, 5)).astype(float)  # with ties
    places = np.apply_along_axis(stats.rankdata, 1, table)
    chi = stats.friedmanchisquare(*table.T).statistic
    F = 8 * chi / (9 * 4 - chi)
    assert friedman(places) == pytest.approx(stats.f.sf(F, 4, 32))


def test_friedman_at_its_ends():
    same = np.tile([1.0, 2.0, 3.0], (8, 1))
    assert friedman(same) == 0.0
    assert friedman(np.full((8, 3), 2.0)) == 1.0


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_nemenyi_has_the_printed_quantiles(k, q):
    assert nemenyi(k, 1) / math.sqrt(k * (k + 1) / 6) == pytest.approx(q, abs=1e-3)  # Demšar's Table 5(a)


def test_holm_by_hand():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])


def test_wilcoxon_against_the_best():
    table = np.column_stack([np.arange(8.0), np.arange(8.0) + np.arange(1, 9), np.arange(8.0)])
    found = ranks(table)
    assert math.isnan(found.versus_best[0])
    assert found.versus_best[1] == pytest.approx(2 * 2 / 2**8)  # all eight differ one way; Holm doubles it
    assert found.versus_best[2] == 1.0


def test_under_six_streams_no_test_is_made():
    found = ranks(np.arange(15.0).reshape(5, 3))
    assert found.average == pytest.approx([1, 2, 3]) and found.streams == 5
    assert found.p is None and found.critical is None and found.versus_best is None and found.groups == []
    assert ranks(np.arange(18.0).reshape(6, 3)).critical is not None


def test_groups_are_the_longest_runs_within_the_critical_difference():
    found = ranks(-DEMSAR)._replace(average=np.array([3.0, 1.0, 1.5, 2.2]), critical=0.8)
    assert found.groups == [(0, 1), (1, 2), (2, 3)]
    assert found._replace(critical=0.1).groups == []
    assert found._replace(critical=9.0).groups == [(0, 3)]


def test_the_table_of_errors_has_one_row_per_stream():
    summary = only(many(["s", "r"], ["a", "b", "c"], seeds=2))
    table = summary.table(summary.best_variants)
    assert table.shape == (2, 3)
    assert (np.diff(table, axis=1) > 0).all()  # in the order of rank
