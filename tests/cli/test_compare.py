"""`gaptron compare` and `gaptron results`, as a user types them."""

import csv
import json

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from gaptron.cli import app
from gaptron.errors import GaptronError
from tests.experiments.small import write

QUICK = ("-a", "frugal-gaptron,banditron", "--seeds", "2", "--no-grid", "--bounds", "none", "-j", "1", "--no-report")


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return str(write(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def out(data, tmp_path_factory):
    """A folder with a small comparison in it."""
    folder = tmp_path_factory.mktemp("compare")
    said = run("compare", data, *QUICK, "-o", str(folder))
    assert "frugal-gaptron" in said and "banditron" in said and f"results: {folder}" in said
    return folder


def lines(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_data_needs_no_plan(out):
    records = lines(out)
    assert len(records) == 2 * (2 + 1) and {record["status"] for record in records} == {"ok"}
    assert {(r["algorithm"], r["feedback"]) for r in records} == {
        ("frugal-gaptron", "full"),
        ("frugal-gaptron", "bandit"),
        ("banditron", "bandit"),
    }
    assert all("unit norm" in record["prepared"] for record in records)


def test_the_same_command_again_runs_nothing(data, out):
    before = (out / "results.jsonl").read_bytes()
    run("compare", data, *QUICK, "-o", str(out))
    assert (out / "results.jsonl").read_bytes() == before


def test_a_report_is_written_unless_refused(data, out, tmp_path):
    assert not (out / "report.html").exists()
    said = run("compare", data, *QUICK[:-1], "--feedback", "full", "-a", "frugal-gaptron", "-o", str(tmp_path))
    assert (tmp_path / "report.html").exists() and "report.html" in said


def test_a_dry_run_counts_what_is_left_and_runs_nothing(data, out, tmp_path):
    said = run("compare", data, *QUICK, "-o", str(out), "--dry-run")
    assert "6 tasks, 0 of them without a result yet" in said
    said = run("compare", data, *QUICK[:2], "--seeds", "1", "-n", "-o", str(tmp_path / "new"))
    assert "8 tasks, 8 of them" in said  # the built-in plan's grid of five, and three published settings
    assert not (tmp_path / "new").exists()


def test_options_turn_a_plan(data, tmp_path):
    plan = tmp_path / "p.toml"
    plan.write_text(f'streams = [{data!r}]\nalgorithms = ["gaptron", "banditron", "perceptron"]\n')
    said = run("compare", str(plan), "-n", "--feedback", "bandit", "--seeds", "3,9,27", "--no-grid", "--limit", "50")
    assert "6 tasks" in said and " 50 " in said
    assert "3 tasks" in run("compare", str(plan), "-n", "--seeds", "3", "-a", "perceptron", "--radius", "2")


def test_a_failure_is_told_and_exits_with_1(data, tmp_path):
    said = run(
        "compare", "none.svm", data, *QUICK, "--feedback", "full", "-a", "frugal-gaptron", "-o", str(tmp_path), code=1
    )
    assert "gaptron: StreamError: none.svm: there is no such file" in said and "(2 tasks)" in said
    assert "2 of 4 tasks failed" in said
    assert [record["status"] for record in lines(tmp_path)] == ["failed"] * 2 + ["ok"] * 2


def test_nothing_but_failures_still_says_where_the_results_are(tmp_path):
    said = run("compare", "none.svm", *QUICK, "-o", str(tmp_path), code=1)
    assert "6 of 6 tasks failed" in said and "results.jsonl" in said


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--algorithms", "magic"), "unknown algorithm 'magic'"),
        (("-a", "banditron", "--feedback", "full"), "banditron knows bandit feedback"),
        (("--feedback", "some"), "unknown feedback 'some'"),
        (("--seeds", "many"), "--seeds many"),
        (("--seeds", "0"), "--seeds 0"),
        (("--bounds", "some"), "unknown bounds 'some'"),
        (("--radius", "-1"), "must be positive"),
        (("--engine", "magic"), "unknown engine 'magic'"),
        (("--engine", "dask"), "needs --address"),
        (("plan.toml", "iris"), "a plan is run by itself"),
        (("none.toml",), "cannot be read"),
        (("none.toml", "--constant"), "these options are for DATA"),
        (("--log1p",), "these options are for DATA"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(words, problem, tmp_path):
    with pytest.raises(GaptronError) as caught:
        CliRunner().invoke(app, ["compare", *words, "-o", str(tmp_path / "out")], catch_exceptions=False)
    assert problem in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_results_are_listed_merged_and_exported(out, tmp_path):
    broken = tmp_path / "half.jsonl"
    text = (out / "results.jsonl").read_text()
    broken.write_text(text + text.splitlines()[0][:50])
    merged, table, columns = (tmp_path / name for name in ("all.jsonl", "all.csv", "all.parquet"))
    said = run("results", str(out), str(broken), "--merge", str(merged), "--export", str(table))
    assert "6 tasks, 0 of them failed" in said and "line 7: passed over" in said
    assert merged.read_text() == text
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["mistakes"]) for row in rows] == [record["mistakes"] for record in lines(out)]
    run("results", str(merged), "--export", str(columns))
    assert pq.read_table(columns)["key"].to_pylist() == [record["key"] for record in lines(out)]


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("none.jsonl",), "cannot be read"), (("{out}", "--export", "a.xlsx"), ".csv or a .parquet")],
)
def test_results_that_cannot_be_had(words, problem, out):
    with pytest.raises(GaptronError, match=problem):
        CliRunner().invoke(app, ["results", *(w.format(out=out) for w in words)], catch_exceptions=False)
