"""`gaptron abstain` on the command line."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from gaptron import Abstainer
from gaptron.cli import app
from gaptron.errors import GaptronError
from tests.abstention.streams import one_good
from tests.cli.test_cli import fail, run

X, Y = one_good(200, 3)
COSTS = np.round(np.random.default_rng(0).uniform(0.0, 0.7, 200), 3)
NAMES = ["coin", "sage", "dice"]


def table(**more):
    return pa.table({**dict(zip(NAMES, X.T)), **more})


@pytest.fixture
def advice(tmp_path: Path) -> str:
    path = tmp_path / "advice.csv"
    csv.write_csv(table(label=Y), path)
    return str(path)


@pytest.fixture
def priced(tmp_path: Path) -> str:
    path = tmp_path / "priced.parquet"
    parquet.write_table(table(truth=np.where(Y > 0, "yes", "no"), price=COSTS), path)
    return str(path)


PRICED = ("--label", "truth", "--classes", "no,yes", "--cost-column", "price")


def refused(*words: str) -> str:
    """The error a call ends with. How it is printed is tested once, with standard input."""
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, GaptronError), result.output
    assert not result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def account(*words: str):
    return json.loads(run("abstain", *words, "--json"))


@pytest.mark.parametrize("algorithm", ["adahedge", "exponential-weights"])
def test_it_prints_what_the_abstainer_reports(advice, algorithm):
    abstainer = Abstainer(3, algorithm, cost=0.2, seed=5)
    trace = abstainer.play(X, Y)
    bound = abstainer.bound(trace)
    said = account(advice, "--cost", "0.2", "--seed", "5", "-a", algorithm)
    assert said["experts"] == NAMES and said["best_expert"] == "sage"
    assert (said["mistakes"], said["abstentions"]) == (trace.mistakes, trace.abstentions)
    assert said["expected_loss"] == abstainer.expected_loss and said["loss"] == trace.loss
    assert said["certificate"] == abstainer.certificate and said["regret"] == bound.measured
    assert said["bound"]["value"] == bound.value and said["bound"]["theorem"] == bound.theorem
    assert said["expert_losses"]["coin"] == abstainer.expert_losses[0]
    assert said["cost"] == [0.2, 0.2]


def test_costs_from_a_column_and_labels_in_words(priced):
    abstainer = Abstainer(3, seed=0)
    trace = abstainer.play(X, Y, COSTS)
    said = account(priced, *PRICED)
    assert said["experts"] == NAMES and said["rounds_above_half"] == np.sum(COSTS > 0.5)
    assert said["expected_loss"] == abstainer.expected_loss
    assert said["bound"]["regret"] == abstainer.bound(trace).regret
    late = account(priced, *PRICED, "--late")
    assert late["bound"] is None and "after its prediction" in late["why_no_bound"]
    assert late["expected_loss"] > said["expected_loss"]


def test_a_column_called_cost_is_the_cost(tmp_path):
    path = tmp_path / "advice.csv"
    csv.write_csv(table(Cost=COSTS, y=Y), path)
    assert account(str(path))["cost"] == [COSTS.min(), COSTS.max()]
    assert "leave out --cost" in refused("abstain", str(path), "--cost", "0.1")
    assert account(str(path), "--cost", "0.4", "-a", "exponential-weights")["cost"][1] == COSTS.max()


def test_columns_without_names_are_numbered(tmp_path):
    path = tmp_path / "advice.tsv"
    np.savetxt(path, np.column_stack([X, COSTS, Y]), fmt="%g", delimiter="\t")
    said = account(str(path), "--cost-column", "3")
    assert said["experts"] == ["expert 0", "expert 1", "expert 2"] and said["cost"][1] == COSTS.max()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_chunks_and_the_whole_leave_the_same_trace(priced, tmp_path, suffix):
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    whole = account(priced, *PRICED, "--trace", str(one))
    parts = account(priced, *PRICED, "--trace", str(two), "--chunk", "37")
    for name in ("expected_loss", "mistakes", "abstentions", "certificate", "weights"):
        assert whole[name] == parts[name]
    assert parts["bound"]["regret"] >= whole["bound"]["regret"]
    read = csv.read_csv if suffix == ".csv" else parquet.read_table
    assert read(one).equals(read(two))
    trace = Abstainer(3, seed=0).play(X, Y, COSTS)
    np.testing.assert_array_equal(read(one)["prediction"].to_numpy(), trace.predictions)
    np.testing.assert_array_equal(read(one)["expected_loss"].to_numpy(), trace.expected_losses)
    assert read(one).column_names == ["prediction", "vote", "label", "cost", "expected_loss"]


def test_the_summary_names_every_number(advice, priced):
    text = run("abstain", advice, "--cost", "0.2")
    for word in (
        "200 rounds, 3 experts",
        "costs 0.2",
        "mistakes",
        "abstentions",
        "expected loss",
        "sage",
        "certificate",
    ):
        assert word in text
    for word in ("van der Hoeven 2020", "of it used", "weights: sage", "rounds/s"):
        assert word in text
    text = run("abstain", priced, *PRICED)
    assert "replaced by a fair coin, which is cheaper" in text and "varying costs" in text
    text = run("abstain", priced, *PRICED, "--late")
    assert "bound: none" in text and "too late to toss a fair coin" in text


def test_standard_input_is_a_csv():
    assert "row 1: a is 2" in fail("abstain", "-", "--cost", "0.1", stdin="a,b,y\n2,0,1\n")
    assert "leave out --chunk" in refused("abstain", "-", "--cost", "0.1", "--chunk", "5")


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("a,b,y\n1,0,1\n", [], "give --cost"),
        ("a,b,y\n1,0,1\n", ["--cost", "-1"], "--cost -1.0"),
        ("a,b,y\n1,0,1\n", ["--cost", "0.6", "-a", "exponential-weights"], "below 1/2"),
        ("a,b,y\n1,0,1\n", ["--cost", "0.1", "-a", "magic"], "adahedge, exponential-weights"),
        ("a,b,y\n1,0,1\n", ["--cost-column", "price"], "no column price (--cost-column); the columns are a, b"),
        ("a,b,y\n1,0,1\n", ["--cost", "0.1", "--trace", "x.txt"], ".csv or .parquet"),
        ("a,b,y\n1,0,1\n", ["--cost", "0.1", "--trace", "no/such/folder.csv"], "cannot write the trace"),
        ("a,b,y\n1,0,1\n", ["--cost", "0.1", "--classes", "1"], "two labels"),
        ("a,b,y\n1,0,1\n1,0,0\n", ["--cost", "0.1"], "line 3: label 0 is not one of the classes -1, 1"),
        ("a,b,y\n1,0,1\n1,nan,1\n", ["--cost", "0.1"], "line 3: a feature is NaN"),
        ("a,b,y\n1,0,1\n1,-1.5,1\n", ["--cost", "0.1", "--chunk", "1"], "row 2: b is -1.5"),
        ("a,cost,y\n1,0.1,1\n1,-0.2,1\n", [], "row 2: cost -0.2 is negative"),
        ("cost,y\n0.1,1\n", [], "no experts"),
        ("a,a,y\n1,0,1\n", ["--cost", "0.1"], "two columns are"),
    ],
)
def test_an_error_is_one_clear_line(tmp_path, text, words, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert message in refused("abstain", str(path), *words)


def test_experts_may_name_labels(tmp_path, advice):
    votes = np.where(X > 0, "spam", "ham")
    columns = {**dict(zip(NAMES, votes.T)), "label": np.where(Y > 0, "spam", "ham")}
    numbers = pa.table({**dict(zip(NAMES, np.where(X > 0, 1, -1).T)), "label": Y})
    csv.write_csv(numbers, tmp_path / "numbers.csv")
    expected = account(str(tmp_path / "numbers.csv"), "--cost", "0.2")
    csv.write_csv(pa.table(columns), tmp_path / "votes.csv")
    parquet.write_table(pa.table(columns), tmp_path / "votes.parquet")
    for name in ("votes.csv", "votes.parquet"):
        words = (str(tmp_path / name), "--classes=ham,spam", "--cost", "0.2")
        said = account(*words)
        assert said["experts"] == NAMES and said["bound"] == expected["bound"]
        assert said["expected_loss"] == expected["expected_loss"]
        assert account(*words, "--chunk", "60")["expected_loss"] == expected["expected_loss"]
    columns["coin"] = np.where(np.arange(200) == 70, "eggs", columns["coin"])
    csv.write_csv(pa.table(columns), tmp_path / "votes.csv")
    for more in ((), ("--chunk", "60")):
        wrong = refused("abstain", str(tmp_path / "votes.csv"), "--classes=ham,spam", "--cost", "0.2", *more)
        assert "row 71: coin is 'eggs', neither a label nor a number" in wrong


def test_probabilities_are_suspected_and_accepted_with_the_option(tmp_path, advice):
    csv.write_csv(pa.table({**dict(zip(NAMES, ((X + 1) / 2).T)), "label": Y}), tmp_path / "chances.csv")
    words = ["abstain", str(tmp_path / "chances.csv"), "--cost", "0.2", "--json"]
    assert "warning: no prediction is below 0: for probabilities" in CliRunner().invoke(app, words).stderr
    named = CliRunner().invoke(app, [*words, "--probabilities"])
    assert not named.stderr
    expected = account(advice, "--cost", "0.2")["expected_loss"]
    assert json.loads(named.stdout)["expected_loss"] == pytest.approx(expected)
    assert "coin is -" in refused("abstain", advice, "--cost", "0.2", "--probabilities")
    assert not CliRunner().invoke(app, ["abstain", advice, "--cost", "0.2"]).stderr
