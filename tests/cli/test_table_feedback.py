"""Tables by name with a column of rewards and one of available labels, from the file to the model and back."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from gaptron import Learner
from gaptron.cli import app
from gaptron.learner.describe import RADIUS
from gaptron.streams.tables import encode_table, open_table
from tests.cli.test_cli import account, fail, run
from tests.features.test_learner import LABELS, clicks

ROUNDS = 120
COLUMNS = ["age", "paid", "device", "clicked", "open", "member", "when"]
WORDS = ("--label", "clicked", "-a", "squarecb")
FEEDBACK = ("--reward", "paid", "--available", "open")


def world(seed: int = 0) -> tuple[list[dict], list[str], list[float], list[list[str]]]:
    """Return examples, labels, rewards, and available labels, which mostly include the true one."""
    rows, labels = clicks(ROUNDS, seed)
    rng = np.random.default_rng(seed)
    paid = rng.choice([0.25, 0.5, 1.0], ROUNDS).tolist()
    some = [[name for name in LABELS if rng.random() < (0.9 if name == label else 0.5)] or LABELS for label in labels]
    return rows, labels, paid, some


def write(path: Path, seed: int = 0, lists: bool = False) -> Path:
    rows, labels, paid, some = world(seed)
    table = [
        {**x, "clicked": label, "paid": rewards, "open": available if lists else " | ".join(available)}
        for x, label, rewards, available in zip(rows, labels, paid, some)
    ]
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(table).select(COLUMNS), path, row_group_size=50)
        return path
    with open(path, "w", newline="") as file:
        lines = csv.DictWriter(file, COLUMNS, delimiter="\t" if path.suffix == ".tsv" else ",")
        lines.writeheader()
        lines.writerows({name: "NA" if cell is None else cell for name, cell in row.items()} for row in table)
    return path


def features(rows: list[dict]) -> list[dict]:
    """The rows in the order of the file's columns."""
    return [{name: x[name] for name in COLUMNS if name in x} for x in rows]


def learner(**more) -> Learner:
    known = {"classes": sorted(LABELS), "features": "auto", "feedback": "bandit", "seed": 0, "horizon": ROUNDS}
    return Learner("squarecb", **known | more)


def taken(order, *lists):
    return [[values[at] for at in order] for values in lists]


@pytest.mark.parametrize(
    "name, lists",
    [("a.csv", False), ("a.tsv", False), ("a.parquet", False), ("a.parquet", True)],
    ids=["CSV", "TSV", "Parquet", "Parquet with lists"],
)
def test_the_columns_are_passed_to_the_learner(tmp_path, name, lists):
    file = str(write(tmp_path / name, lists=lists))
    rows, labels, paid, some = world()
    trace = learner().play(features(rows), labels, available=some, rewards=paid)
    for more in ((), ("--chunk", "7"), ("--chunk", "7", "--classes", ",".join(sorted(LABELS)), "--horizon", "120")):
        said = account(file, *WORDS, *FEEDBACK, *more)
        assert [column["name"] for column in said["columns"]] == ["age", "device", "member", "when"]
        assert said["label"] == "clicked" and said["n_features"] == 4
        assert said["mistakes"] == trace.mistakes and said["reward"] == pytest.approx(trace.reward.sum())
    text = run("play", file, *WORDS, *FEEDBACK, "--verbose")
    assert "\nreward   " in text and "some rewards were fractions" in text


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_first_rounds_in_another_order_keep_their_feedback(tmp_path, kind):
    file = str(write(tmp_path / f"a.{kind}"))
    said = account(file, *WORDS, *FEEDBACK, "--limit", "50", "--shuffle", "3")
    order = np.random.default_rng(3).permutation(50)
    rows, labels, paid, some = taken(order, *world())
    trace = learner(horizon=50).play(features(rows), labels, available=some, rewards=paid)
    assert said["rounds"] == 50 and said["mistakes"] == trace.mistakes
    assert said["reward"] == pytest.approx(trace.reward.sum())
    limited = account(file, *WORDS, *FEEDBACK, "--limit", "50", "--chunk", "7")
    rows, labels, paid, some = taken(range(50), *world())
    assert limited["reward"] == pytest.approx(
        learner(horizon=50).play(features(rows), labels, available=some, rewards=paid).reward.sum()
    )


def test_each_column_by_itself_and_what_the_feedback_proves(tmp_path):
    file = str(write(tmp_path / "a.csv"))
    rows, labels, _, some = world()
    for kept, more in ((True, ()), (False, ("--no-observed",))):
        said = account(file, *WORDS, "--available", "open", "--column", "paid=ignore", *more)
        mine = learner(observe=kept)
        trace = mine.play(features(rows), labels, available=some)
        assert said["mistakes"] == trace.mistakes and said["reward"] is None
        assert (said["observed"] is not None) == kept == (mine.observed is not None)
        if kept:
            assert said["observed"]["sentence"] == mine.observed.sentence(RADIUS)
    said = account(file, *WORDS, "--reward", "paid", "--column", "open=ignore")
    assert said["reward"] > 0 and "neither right nor wrong" in said["why_not_observed"]
    assert said["mistakes"] == learner().play(features(rows), labels, rewards=world()[2]).mistakes


def test_a_model_saves_which_columns_are_not_features(tmp_path):
    monday, tuesday = write(tmp_path / "monday.csv"), write(tmp_path / "tuesday.parquet", seed=1, lists=True)
    model = tmp_path / "model.gaptron"
    run("play", str(monday), *WORDS, *FEEDBACK, "--save", str(model))
    mine = learner()
    rows, labels, paid, some = world()
    mine.play(features(rows), labels, available=some, rewards=paid)
    rows, labels, paid, some = world(1)
    expected = mine.predict(features(rows), available=some).tolist()
    for file, form in ((tuesday, ()), (write(tmp_path / "tuesday.csv", seed=1), ("--chunk", "7"))):
        before = model.read_bytes()
        text = run("predict", str(file), "--load", str(model), "--probabilities", "--scores", *form)
        found = list(csv.DictReader(io.StringIO(text)))
        assert [row["label"] for row in found] == expected
        for row, available in zip(found, some):
            assert {name for name in LABELS if float(row[f"probability {name}"]) == 0.0} >= set(LABELS) - set(available)
        assert model.read_bytes() == before
    trace = mine.play(features(rows), labels, available=some, rewards=paid)
    said = account(str(tuesday), "--load", str(model), "--no-bound")
    assert said["mistakes"] == trace.mistakes and said["reward"] == pytest.approx(trace.reward.sum())
    bare = tmp_path / "bare.csv"
    bare.write_text("device,age,member,when\nphone,20000,True,2026-01-01\n")
    assert run("predict", str(bare), "--load", str(model)).splitlines()[0] == "label"  # all labels are available
    assert "--reward paid is not one of the columns" in fail(
        "play", str(bare), "--load", str(model), "--label", "device"
    )


def test_what_standard_input_was_called_is_known_once_it_was_read(tmp_path):
    text, model = write(tmp_path / "a.csv").read_text(), tmp_path / "model.gaptron"
    words = ("play", "-", "--format", "csv", *WORDS, *FEEDBACK, "--classes", "no,perhaps,yes", "--horizon", "9")
    result = CliRunner().invoke(app, [*words, "--save", str(model), "--chunk", "7"], input=text, catch_exceptions=False)
    assert result.exit_code == 0
    assert Learner.load(model).reading == {"label": "clicked", "reward": "paid", "available": "open"}


SMALL = """who,paid,y,open
old,0.3,mail,mail|chat
young,1,chat,chat|phone
any,0.5,phone,phone| mail |chat
"""


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "text, words, problem",
    [
        (SMALL.replace("0.3", "1.3"), (), "line 2: reward 1.3 is not in [0, 1]"),
        (SMALL.replace("0.5", "nan"), (), "line 4: reward nan is not in [0, 1]"),
        (SMALL.replace("0.3", ""), (), "line 2: column paid: '' is not a number"),
        (SMALL.replace("0.3", "much"), (), "line 2: column paid: 'much' is not a number"),
        (SMALL.replace("mail|chat\n", "\n"), (), "line 2: no label is available"),
        (SMALL.replace("chat|phone", "chat|fax"), ("--classes", "mail,chat,phone"), "line 3: available label fax"),
        (SMALL, ("--reward", "price"), "--reward price is not one of the columns"),
        (SMALL, ("--reward", "y"), "must be three different columns"),
        (SMALL.replace("who,", ",").replace("old", "0").replace("young", "1").replace("any", "2"), (), "a feature"),
        (SMALL, ("--feedback", "full", "-a", "softmax"), "--feedback bandit"),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_line(tmp_path, text, words, problem):
    file = tmp_path / "a.csv"
    file.write_text(text)
    assert problem in fail("play", str(file), "-a", "squarecb", *FEEDBACK, *words)


@pytest.mark.slow
def test_missing_cells_of_parquet_are_refused_by_row(tmp_path):
    rows = {"who": ["a", "b"], "y": ["x", "z"], "paid": [0.5, 1.0], "open": [["x"], ["x", "z"]]}
    for column, cells, problem in (
        ("open", [["x"], None], "row 2: the available labels are missing"),
        ("open", [["x"], []], "row 2: no label is available"),
        ("paid", [0.5, None], "row 2: column paid has no value"),
        ("paid", ["0.5", "1"], "column paid contains string, not numbers"),
    ):
        parquet.write_table(pa.table({**rows, column: cells}), tmp_path / "a.parquet")
        assert problem in fail("play", str(tmp_path / "a.parquet"), "-a", "squarecb", *FEEDBACK)
    parquet.write_table(pa.table({**rows, "other": [[1], [2]]}), tmp_path / "a.parquet")
    wrong = fail("play", str(tmp_path / "a.parquet"), "-a", "squarecb", *FEEDBACK)
    assert "column who contains string, not numbers" in wrong  # lists that are features: not by name, as before


def test_labels_that_are_only_ever_available_are_classes(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(SMALL.replace("phone,phone", "chat,phone"))
    for more in ((), ("--chunk", "1")):
        said = account(str(file), "-a", "squarecb", *FEEDBACK, *more)
        assert [each["label"] for each in said["classes"]] == ["chat", "mail", "phone"]


def test_columns_by_number_without_a_header(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(SMALL.partition("\n")[2])
    words = ("-a", "squarecb", "--label", "2", "--reward", "1", "--available", "3")
    said, named = account(str(file), *words), tmp_path / "b.csv"
    named.write_text(SMALL)
    assert said["reward"] == account(str(named), "-a", "squarecb", *FEEDBACK)["reward"]
    assert "three different columns" in fail("play", str(file), "-a", "squarecb", "--available", "3")


def test_full_information_with_available_labels_still_proves_something(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(SMALL + "".join(SMALL.partition("\n")[2] for _ in range(40)))
    said = account(str(file), "-a", "frugal-gaptron", "--available", "open", "--column", "paid=ignore")
    assert said["bound"] is not None and said["expected_mistakes"] <= said["bound"]["value"]


# --- encoded, and compared ----------------------------------------------------------------------------------------


def test_an_encoded_table_keeps_its_feedback(tmp_path):
    file = write(tmp_path / "a.csv")
    rows, labels, paid, some = taken(np.random.default_rng(2).permutation(ROUNDS), *world())
    stream = encode_table(open_table(file, label="clicked", reward="paid", available="open", shuffle=2))
    np.testing.assert_array_equal(stream.rewards[:, 0], paid)
    assert [{stream.classes[k] for k in np.flatnonzero(row)} for row in stream.available] == list(map(set, some))
    by_name, numbers = learner(), learner(features=None, norm=1.0)
    played = by_name.play(features(rows), labels, available=some, rewards=paid)
    np.testing.assert_array_equal(numbers.play(stream).codes, played.codes)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_plan_has_both_columns_and_its_commands_repeat_its_runs(tmp_path, by_name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path / "a.parquet", lists=True)
    if not by_name:  # numbers alone
        numbers = parquet.read_table(table)
        bare = numbers.drop_columns(["when", "device", "member"])
        age = pa.array([0.0 if age is None else age / 1e5 for age in numbers["age"].to_pylist()])
        parquet.write_table(bare.set_column(0, "age", age), table)
    plan = tmp_path / "p.toml"
    plan.write_text(
        'feedback = "bandit"\nseeds = 2\nalgorithms = ["squarecb"]\nbounds = "none"\ngrids = false\n[[streams]]\n'
        'data = "a.parquet"\nlabel = "clicked"\nreward = "paid"\navailable = "open"\n'
        f"by_name = {str(by_name).lower()}\n"
    )
    run("compare", str(plan), "-j", "1", "--no-report", "-o", str(tmp_path / "out"))
    results = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert len(results) == 2
    for result in results:
        assert ("--raw" in result["command"]) == (not by_name)
        said = account(*result["command"].split()[2:])
        assert said["mistakes"] == result["mistakes"] and said["reward"] == pytest.approx(result["reward"])
