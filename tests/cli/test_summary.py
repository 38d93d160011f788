"""The summary of `gaptron play`: four lines about the mistakes, and the theory behind --verbose."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from gaptron.cli.summary_text import show
from tests.cli.test_cli import account, flat, run

FAST = ("--label", "sold", "-a", "perceptron")


def write(path: Path, labels: list[str], noise: int = 0) -> Path:
    """A table with one column that tells the label, and one that does not."""
    rng = np.random.default_rng(noise)
    lines = [f"{label[0] if rng.integers(100) >= noise else 'x'},{rng.integers(9)}" for label in labels]
    path.write_text("size,weekday,sold\n" + "".join(f"{x},{y}\n" for x, y in zip(lines, labels)))
    return path


def test_the_summary_is_four_lines_about_the_mistakes(tmp_path):
    labels = np.random.default_rng(1).choice(["large", "small"], 400, p=[0.6, 0.4]).tolist()
    given = (str(write(tmp_path / "sales.csv", labels, 20)), "--label", "sold")
    text, said = run("play", *given), account(*given)
    head, _, body = text.partition("\n\n")
    assert [line.split("  ")[0].partition(" /")[0] for line in body.splitlines() if line[0] != " "] == [
        "error",
        "majority label",
        "last quarter",
        "next: gaptron compare",
    ]
    assert f"next: gaptron compare {given[0]} --label sold tells" in flat(text)
    assert "advised-gaptron, logistic loss, full information" in head
    assert said["error"]["low"] < said["error"]["rate"] == said["mistakes"] / 400 < said["error"]["high"]
    assert f"{said['error']['low']:.2%} to {said['error']['high']:.2%} (95%)" in text
    fewer = 1 - said["mistakes"] / said["majority"]["mistakes"]
    assert said["majority"]["label"] == "large" and f"makes {fewer:.0%} fewer mistakes" in flat(text)
    assert "tells whether another algorithm makes fewer mistakes" in flat(text)
    assert "bound" not in text and "‖U‖" not in text
    assert "bound" in run("play", *given, "--verbose")


def test_a_learner_that_does_not_beat_the_majority_label_is_told_so(tmp_path):
    labels = np.random.default_rng(2).choice(["large", "small"], 400, p=[0.7, 0.3]).tolist()
    file = write(tmp_path / "sales.csv", labels, 100)
    text = flat(run("play", str(file), *FAST))
    assert "not better than always large: try -a advised-gaptron" in text and "more mistakes" in text


def test_labels_that_are_all_the_same_make_no_share_of_nothing(tmp_path):
    text = flat(run("play", str(write(tmp_path / "sales.csv", ["large"] * 40)), *FAST, "--classes", "large,small"))
    assert "always large, the only label" in text


def test_an_error_that_rises_asks_for_the_order_of_the_file(tmp_path):
    labels = np.random.default_rng(3).choice(["large", "small"], 400).tolist()
    file = write(tmp_path / "sales.csv", labels)
    lines = file.read_text().splitlines()
    late = ["x,1," + line.rpartition(",")[2] for line in lines[301:]]  # the column stops being filled in
    file.write_text("\n".join([*lines[:301], *late]) + "\n")
    text = flat(run("play", str(file), *FAST))
    assert "higher than before" in text
    assert f"next: the error rises: gaptron compare {file} --label sold --in-order" in text


def test_bandit_feedback_on_two_labels_says_that_it_reveals_both(tmp_path):
    given = (str(write(tmp_path / "sales.csv", ["large", "small"] * 50)), "--label", "sold", "-a", "squarecb")
    text = flat(run("play", *given))
    assert (
        "next: of two labels, right or wrong reveals the true one" in text
        and "--feedback full learns from this" in text
    )
    three = str(write(tmp_path / "three.csv", ["large", "small", "medium"] * 50))
    assert "of two labels" not in run("play", three, *given[1:])


def test_after_saving_the_next_step_is_to_predict(tmp_path):
    file, model = write(tmp_path / "sales.csv", ["large", "small"] * 50), tmp_path / "sales.gaptron"
    text = flat(run("play", str(file), *FAST, "--save", str(model)))
    assert f"gaptron predict FILE --load {model} predicts the labels of new rows" in text


def test_the_next_command_reads_the_file_in_the_same_way(tmp_path):
    file = write(tmp_path / "sales.txt", ["large", "small"] * 50)
    text = flat(run("play", str(file), *FAST, "--format", "csv", "--header"))
    assert f"next: gaptron compare {file} --format csv --label sold --header tells" in text


def test_the_next_command_reads_a_table_with_decimal_commas_in_the_same_way(tmp_path):
    file, out = tmp_path / "sales.csv", tmp_path / "out"
    rows = "".join(f"{t % 7},5;0{t % 9 + 1}/0{t % 5 + 1}/2026;{('large', 'small')[t % 7 > 3]}\n" for t in range(60))
    file.write_text("size;day;sold\n" + rows)
    given = (str(file), "--label", "sold", "--separator", ";", "--decimal", ",", "--dates", "month-first")
    text = flat(run("play", *given))
    words = f"{file} --label sold --separator ';' --decimal , --dates month-first"
    assert f"next: gaptron compare {words} tells" in text
    more = ("-a", "perceptron", "--feedback", "full", "--seeds", "1", "--no-grid", "--jobs", "1", "--no-report")
    assert f"gaptron: {file} has times (day)" in flat(run("compare", *given, *more, "-o", str(out)))
    result = json.loads((out / "results.jsonl").read_text().splitlines()[-1])
    assert account(*shlex.split(result["command"])[2:])["mistakes"] == result["mistakes"]
    assert result["mistakes"] == account(*given, "-a", "perceptron")["mistakes"]


def test_a_comparison_that_would_read_other_rounds_is_not_suggested(tmp_path):
    given = (str(write(tmp_path / "sales.csv", ["large", "small"] * 50)), "--label", "sold", "--column", "size=word")
    text = flat(run("play", *given))
    assert "gaptron compare" not in text
    assert "next: --save MODEL keeps the learner, and gaptron predict FILE --load MODEL predicts" in text


def test_rewards_are_not_told_to_become_full_information(tmp_path):
    file = tmp_path / "sales.csv"
    file.write_text("size,pay,sold\n" + "a,0.9,large\nb,0.8,small\nc,1,medium\n" * 50)
    text = flat(run("play", str(file), "--label", "sold", "--reward", "pay", "--feedback", "bandit"))
    assert "next:" in text and "--feedback full" not in text and "gaptron compare" not in text


@pytest.mark.parametrize("words", [(), ("--verbose",)])
def test_no_line_is_wider_than_80_columns_and_no_word_is_broken(words, tmp_path):
    labels = np.random.default_rng(4).choice(["a" * 30, "b" * 30, "c" * 30], 100).tolist()
    lines = run("play", str(write(tmp_path / "sales.csv", labels, 50)), "--label", "sold", *words).splitlines()
    long = [line for line in lines if len(line) > 80 and " " in line.strip() and str(tmp_path) not in line]
    assert not long
    assert "a" * 30 in "\n".join(lines)


def test_a_negative_regret_is_explained(capsys):
    said = account("synsep:rounds=300", "-a", "softmax")
    said["bound"] |= {"regret": -3.0, "value": 200.0}
    show(said, [], verbose=True)
    assert "negative: proven to make fewer mistakes than the loss of the best U" in capsys.readouterr().out
