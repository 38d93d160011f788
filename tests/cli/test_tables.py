"""A day's work on the command line, on files as people have them."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gaptron import Learner, StreamError
from gaptron.streams.tables import open_table
from tests.cli.test_cli import account, fail, flat, run
from tests.features.test_learner import clicks

COLUMNS = ["", "age", "device", "clicked", "member", "when"]
SMALL = ("-a", "gaptron", "--no-bound")


def write(path: Path, rounds: int, seed: int = 0, columns: list[str] = COLUMNS, header: bool = True) -> Path:
    """A log of clicks as R or pandas writes it: a nameless column of row numbers, the label in the middle, gaps."""
    rows, labels = clicks(rounds, seed)
    with open(path, "w", newline="") as file:
        lines = csv.writer(file)
        if header:
            lines.writerow(columns)
        for at, (x, label) in enumerate(zip(rows, labels)):
            cells = {"": at, "clicked": label, **{name: "NA" if value is None else value for name, value in x.items()}}
            lines.writerow([cells[name] for name in columns])
    return path


@pytest.fixture
def monday(tmp_path: Path) -> Path:
    return write(tmp_path / "monday.csv", 400)


def test_a_file_of_words_and_missing_values_plays_with_nothing_but_its_label(monday):
    text = run("play", str(monday), "--label", "clicked", *SMALL)
    for words in (
        "400 rounds, 4 features, 3 classes",
        "contains row numbers and is ignored",
        "columns: 1 of numbers, 2 of words, 1 of times",
        "with missing values: age (",
        "label clicked: no ",
        "error  ",
        "majority label  ",
        "last quarter  ",
        "next: gaptron compare",
    ):
        assert words in text
    assert "eta=" not in text
    assert "compared with linear rules on the encoded columns" in run(
        "play", str(monday), "--label", "clicked", "-a", "frugal-gaptron", "--loss", "hinge", "--bound"
    )
    said = account(str(monday), "--label", "clicked", *SMALL)
    rows, labels = clicks(400)
    learner = Learner("gaptron", classes=["no", "perhaps", "yes"], features="auto", seed=0, horizon=400)
    trace = learner.play([{name: x[name] for name in ("age", "device", "member", "when")} for x in rows], labels)
    assert said["mistakes"] == trace.mistakes
    assert sum(each["rounds"] for each in said["classes"]) == 400
    assert said["last_quarter"] == {"rounds": 100, "mistakes": int(trace.wrong[300:].sum()), "change": "fall"}
    worst = said["confused"][0]
    pairs = [(a, b) for a, b in zip(labels, trace.classes.decode(trace.top)) if a != b]
    assert pairs.count((worst["truth"], worst["top"])) == worst["rounds"] == max(map(pairs.count, pairs))
    assert [column["name"] for column in said["columns"]] == ["age", "device", "member", "when"]


def test_chunks_and_the_whole_are_the_same_run(monday):
    whole = account(str(monday), "--label", "clicked", *SMALL)
    for more in (
        ("--chunk", "37"),
        ("--chunk", "1000"),
        ("--chunk", "5", "--classes", "no,perhaps,yes", "--horizon", "400"),
    ):
        part = account(str(monday), "--label", "clicked", *SMALL, *more)
        for key in ("mistakes", "top_mistakes", "columns", "confused"):
            assert part[key] == whole[key]
        assert part["expected_mistakes"] == pytest.approx(whole["expected_mistakes"])


def test_parquet_says_what_its_columns_are(monday, tmp_path):
    rows, labels = clicks(400)
    table = pa.Table.from_pylist([{**x, "clicked": label} for x, label in zip(rows, labels)])
    parquet.write_table(table, tmp_path / "monday.parquet")
    text, typed = (account(str(path), "--label", "clicked", *SMALL) for path in (monday, tmp_path / "monday.parquet"))
    assert text["mistakes"] == typed["mistakes"]
    assert text["columns"] == typed["columns"]


def test_mondays_model_goes_on_on_tuesday_whatever_the_order_of_columns(monday, tmp_path):
    model = str(tmp_path / "model.gaptron")
    run("play", str(monday), "--label", "clicked", *SMALL, "--save", model)
    tuesday = write(tmp_path / "tuesday.csv", 200, seed=1)
    turned = write(tmp_path / "turned.csv", 200, seed=1, columns=["when", "clicked", "member", "device", "age"])
    said = [account(str(file), "--load", model, "--no-bound") for file in (tuesday, turned)]  # the label is known
    assert said[0]["mistakes"] == said[1]["mistakes"]
    assert "seed" in fail("play", str(tuesday), "--load", model, "--seed", "3")
    assert "--unit-norm" in fail("play", str(tuesday), "--load", model, "--unit-norm")
    assert "--column" in fail("play", str(tuesday), "--load", model, "--column", "age=word")
    assert "is not a table" in fail("play", "synsep", "--load", model)
    fewer = write(tmp_path / "fewer.csv", 50, seed=2, columns=["device", "clicked", "when"])
    text = flat(run("play", str(fewer), "--load", model, "--no-bound"))
    assert "not in the file (treated as missing): age, member" in text


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_predicting_is_what_the_model_says_and_leaves_it_as_it_is(monday, tmp_path, suffix):
    model, out = tmp_path / "model.gaptron", tmp_path / f"labels{suffix}"
    run("play", str(monday), "--label", "clicked", *SMALL, "--save", str(model))
    before = model.read_bytes()
    new = write(tmp_path / "new.csv", 100, seed=5)
    bare = write(tmp_path / "bare.csv", 100, seed=5, columns=["age", "device", "member", "when"])
    learner = Learner.load(model)
    rows, _ = clicks(100, 5)
    expected = learner.predict(rows).tolist()
    P = learner.distribution(rows)
    for file, more in ((new, ()), (bare, ("--chunk", "7"))):
        run("predict", str(file), "--load", str(model), "--probabilities", "--scores", "-o", str(out), *more)
        if suffix == ".parquet":
            found = parquet.read_table(out).to_pylist()
        elif suffix == ".jsonl":
            found = [json.loads(line) for line in out.read_text().splitlines()]
        else:
            with open(out, newline="") as lines:
                found = list(csv.DictReader(lines))
        assert [row["label"] for row in found] == expected
        assert np.array_equal([[float(row[f"probability {label}"]) for label in learner.classes] for row in found], P)
        assert {"score no", "score yes"} <= found[0].keys()
    assert model.read_bytes() == before
    assert run("predict", str(bare), "--load", str(model)).splitlines()[:2] == ["label", expected[0]]


def test_every_round_can_be_written(monday, tmp_path):
    out = tmp_path / "rounds.csv"
    said = account(str(monday), "--label", "clicked", *SMALL, "--predictions", str(out))
    with open(out, newline="") as lines:
        rounds = list(csv.DictReader(lines))
    assert len(rounds) == 400
    assert sum(each["truth"] != each["label"] for each in rounds) == said["mistakes"]
    assert "no such folder" in fail(
        "play", str(monday), "--label", "clicked", "--predictions", str(tmp_path / "no/x.csv")
    )


def test_columns_are_declared_and_crossed(monday):
    said = account(
        str(monday),
        "--label",
        "clicked",
        *SMALL,
        "--column",
        "member=ignore",
        "--column",
        "age=log",
        "--cross",
        "device,when.hour",
    )
    kinds = {column["name"]: column["kind"] for column in said["columns"]}
    assert kinds == {"age": "log", "member": "ignore", "device": "word", "when": "time"}
    assert "NAME=KIND" in fail("play", str(monday), "--label", "clicked", "--column", "age")
    assert "cannot be" in fail("play", str(monday), "--label", "clicked", "--column", "age=numeric")


def test_the_label_is_found_asked_for_or_the_last_of_a_file_without_names(monday, tmp_path):
    wrong = fail("play", str(monday))
    assert "no column is named like a label: choose one with --label" in wrong
    assert "age, device, clicked, member, when" in wrong
    assert "did you mean clicked?" in fail("play", str(monday), "--label", "cliked")
    usual = write(tmp_path / "usual.csv", 50)
    usual.write_text(usual.read_text().replace("clicked", "Target", 1))
    assert account(str(usual), *SMALL)["label"] == "Target"
    bare = write(tmp_path / "bare.csv", 50, columns=["age", "device", "clicked"], header=False)
    text = run("play", str(bare), *SMALL)
    assert "no header: the last column is used as the label" in text
    assert "50 rounds, 2 features" in text


def test_raw_numbers_can_be_used(tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "numbers.csv"
    file.write_text("a,b,y\n" + "".join(f"{a:.3f},{1000 * b:.3f},{int(a > 0)}\n" for a, b in rng.normal(size=(60, 2))))
    assert account(str(file), *SMALL)["columns"] is not None
    for more in (("--raw",), ("--unit-norm",), ("--constant",)):
        assert account(str(file), *SMALL, *more)["columns"] is None


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,y\n1,x,0\n2,y\n", "line 3: 2 cells where 3 are expected"),
        ("a,a,y\n1,x,0\n2,y,1\n", "two columns are named a"),
        ("a,b,y\n1,x,\n2,y,\n", "none of its 2 rows has a label"),
        ("a,b,y\n1,x,0\n2,y,0\n", "every round has label 0"),
        ("a,b,y\n", "contains no rounds"),
        ("", "contains no rounds"),
        ("a,b,y\n1,\xff,0\n", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(tmp_path, text, words):
    file = tmp_path / "bad.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(StreamError, match=words):
        open_table(file)
    assert words in fail("play", str(file))


def test_a_longer_row_on_tuesday_is_no_broken_promise(tmp_path):
    days = {"monday": 1.0, "tuesday": 50.0}
    for day, scale in days.items():
        rng = np.random.default_rng(0)
        lines = (f"{scale * a:.4f},{scale * b:.4f},{int(a > 0)}\n" for a, b in rng.normal(size=(40, 2)))
        (tmp_path / f"{day}.csv").write_text("a,b,y\n" + "".join(lines))
    model = str(tmp_path / "model.gaptron")
    run("play", str(tmp_path / "monday.csv"), "--raw", "-a", "perceptron", "--no-bound", "--save", model)
    said = account(str(tmp_path / "tuesday.csv"), "--load", model, "--no-bound")
    assert said["rounds"] == 40 and said["norm"] is None


def test_warm_compiles_every_kind_of_rows():
    text = run("warm", "-a", "perceptron")
    for kind in ("named", "dense", "sparse"):
        assert f"perceptron, full feedback, {kind} features" in text
    assert "bandit" in fail("warm", "-a", "perceptron", "--feedback", "bandit")


def test_a_bound_that_is_not_informative_names_one_that_is(tmp_path):
    rng = np.random.default_rng(1)
    device = rng.integers(0, 4, 1500)
    clicked = np.where(rng.random(1500) < 0.3, rng.integers(0, 4, 1500), device)
    file = tmp_path / "noisy.csv"
    file.write_text("device,clicked\n" + "".join(f"w{a},{'abcd'[b]}\n" for a, b in zip(device, clicked)))
    said = account(str(file), "--label", "clicked")
    found = said["informative_bound"]
    assert said["bound"]["value"] > 1500 > found["value"]
    words = ["--label", "clicked", "-a", found["algorithm"], "--loss", found["loss"]]
    assert account(str(file), *words)["bound"]["value"] == pytest.approx(found["value"], rel=0.02)
    assert f"--algorithm {found['algorithm']} --loss {found['loss']} has an informative bound" in run(
        "play", str(file), "--label", "clicked", "--verbose"
    )
    assert account(str(file), *words)["informative_bound"] is None  # its own bound says something
