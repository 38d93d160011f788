"""`gaptron evaluate` on the logs that people have: a table with one row per decision, and VW's text."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from gaptron.cli import app
from gaptron.errors import GaptronError, StreamError
from gaptron.offpolicy import Log, evaluate_policy, open_log, save_log
from gaptron.streams import open_stream

ARMS = ("chat", "mail", "phone")
ROLES = ("--action", "shown", "--propensity", "p", "--reward", "clicked")


def decisions(rounds=400):
    """Decisions drawn uniformly: each country has an arm that is mostly right, and ages are sometimes missing."""
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        country, arm = int(rng.integers(3)), int(rng.integers(3))
        age = "" if rng.random() < 0.1 else str(rng.integers(18, 80))
        yield ("FR", "DE", "US")[country], age, arm, int(rng.random() < (0.9 if arm == country else 0.1))


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "log.csv"
    lines = [f"{country},{age},{ARMS[arm]},{1 / 3},{clicked}" for country, age, arm, clicked in decisions()]
    file.write_text("\n".join(["country,age,shown,p,clicked", *lines]) + "\n")
    return file


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "log.vw"
    lines = [f"{arm + 1}:{1 - clicked}:{1 / 3} |u country={c}" for c, _, arm, clicked in decisions()]
    file.write_text("\n".join(lines) + "\n")
    return file


def run(*words):
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*words):
    error = CliRunner().invoke(app, list(map(str, words))).exception
    assert isinstance(error, GaptronError)
    return str(error)


def test_a_table_of_decisions_is_evaluated_with_three_columns_named(table):
    shown = run("evaluate", table, *ROLES)
    assert "400 rounds" in shown and "advised-gaptron: learns from every round" in shown
    assert "conclusion: better than the log" in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80
    said = json.loads(run("evaluate", table, *ROLES, "-a", "squarecb", "--json"))
    log = open_log(table, action="shown", propensity="p", reward="clicked")
    assert log.classes == ARMS and said["logged"]["mistakes"] == pytest.approx(log.mistakes.mean())
    assert set(log.feature_dicts[0]) == {"country", "age"}


def test_the_usual_names_of_columns_need_no_option(table):
    table.write_text(table.read_text().replace("shown,p,clicked", "action,probability,reward"))
    assert open_log(table).classes == ARMS


def test_tsv_parquet_and_packed_tables_are_the_same_log(table, tmp_path):
    log = open_log(table, action="shown", propensity="p", reward="clicked")
    (tmp_path / "log.tsv").write_text(table.read_text().replace(",", "\t"))
    columns = {name: [x[name] for x in log.feature_dicts] for name in ("country", "age")}
    whole = columns | {"shown": [ARMS[code] for code in log.codes], "p": log.propensity, "clicked": log.reward}
    parquet.write_table(pa.table(whole), tmp_path / "log.parquet")
    for name in ("log.tsv", "log.parquet"):
        other = open_log(tmp_path / name, action="shown", propensity="p", reward="clicked")
        assert (other.codes == log.codes).all() and other.feature_dicts == log.feature_dicts


def test_whole_numbers_are_labels_of_their_own_kind(table):
    table.write_text(table.read_text().replace("chat", "10").replace("mail", "9").replace("phone", "8"))
    assert open_log(table, action="shown", propensity="p", reward="clicked").classes == (8, 9, 10)


def test_your_own_policy_is_a_column_of_the_table(table):
    lines = table.read_text().splitlines()
    best = {"FR": "chat", "DE": "mail", "US": "phone"}
    mine = ["mine", *(str(int(best[line.split(",")[0]] == line.split(",")[2])) for line in lines[1:])]
    table.write_text("".join(f"{line},{p}\n" for line, p in zip(lines, mine)))
    log = open_log(table, action="shown", propensity="p", reward="clicked", column="mine")
    said = json.loads(run("evaluate", table, *ROLES, "--probabilities", "mine", "--json"))
    assert said["estimates"]["inverse propensity"]["mistakes"] == evaluate_policy(log).estimates[0].mistakes < 0.2


@pytest.mark.parametrize(
    ("old", "new", "words", "message"),
    [
        ("", "", (), "give --action ..., the column with the label that was played; columns: country, age"),
        ("", "", ("--action", "shown", "--propensity", "p"), "give --reward ..., the column with its reward"),
        ("", "", (*ROLES[:5], "p"), "must be different columns"),
        ("", "", ("--action", "nosuch", *ROLES[2:]), "nosuch"),
        (",1\n", ",2\n", ROLES, "reward 2"),
        (",1\n", ",\n", ROLES, "column clicked is missing"),
        (",1\n", ",yes\n", ROLES, "column clicked has 'yes', which is not a number"),
        ("0.3333333333333333", "0", ROLES, "propensity"),
        ("chat", "", ROLES, "there is no label"),
    ],
    ids=["no action", "no reward", "one column twice", "no such column", "range", "gap", "word", "zero", "no label"],
)
def test_a_table_that_is_not_a_log_says_what_is_wrong(old, new, words, message, table):
    lines = table.read_text()
    at = lines.find(old, lines.find("\n"))
    table.write_text(lines if not old else lines[:at] + lines[at:].replace(old, new, 1))
    assert message in refused("evaluate", table, *words)


def test_the_line_of_a_wrong_cell_is_named(table):
    lines = table.read_text().splitlines()
    lines[7] = lines[7].replace("0.3333333333333333", "1.5")
    table.write_text("\n".join(lines) + "\n")
    assert "log.csv, line 8: " in refused("evaluate", table, *ROLES)


def test_text_of_vw_is_evaluated_and_not_played(text):
    said = json.loads(run("evaluate", text, "-a", "squarecb", "--features", "64", "--json"))
    log = open_log(text, n_features=64)
    assert log.classes == (1, 2, 3) and said["n_rounds"] == 400 and said["n_features"] == 64
    assert said["estimates"]["doubly robust"]["high"] < said["logged"]["low"]
    assert [reward for *_, reward in decisions()] == log.reward.tolist()
    message = refused("play", text)
    assert "line 1" in message and "a logged decision and not a label" in message and "gaptron evaluate" in message
    with pytest.raises(StreamError, match="gaptron evaluate"):
        open_stream(text)


def test_costs_are_rewards_in_their_range(tmp_path):
    file = tmp_path / "log.vw"
    file.write_text("1:-0.5:0.5 | a\n2:-1:0.5 'tag| b\n")
    assert open_log(file).reward.tolist() == [0.5, 1.0]
    file.write_text("1:2:0.5 | a\n2:6:0.5 | b\n")
    assert "give --costs LOW..HIGH" in refused("evaluate", file, "-a", "squarecb").replace("'", "")
    assert open_log(file, costs="2..6").reward.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1:0:0.5 a", "no | before the features"),
        ("| a b", "there is no action:cost:probability before the |"),
        ("2:1 | a", "'2:1' is not action:cost:probability"),
        ("0:1:0.5 | a", "action 0 is not a number from 1"),
        ("shared | a", "this file has a line for each action (--cb_adf): add --actions"),
        ("1:1:0 | a", "propensity"),
        ("1:1:0.5 | a:x", "'x' is not a number"),
    ],
)
def test_a_line_that_is_no_decision_is_named(line, message, tmp_path):
    file = tmp_path / "log.vw"
    file.write_text(f"1:1:0.5 | a\n2:0:0.5 | b\n{line}\n")
    assert f"line 3: {message}" in refused("evaluate", file, "-a", "squarecb")


def test_lines_without_a_decision_are_skipped_on_request(tmp_path):
    file = tmp_path / "log.vw"
    file.write_text("1:1:0.5 | a\n| a\n2:0:0.5 | b\n" * 20)
    said = json.loads(
        run("evaluate", file, "-a", "squarecb", "--features", "8", "--skip-damaged", "--json").splitlines()[-1]
    )
    assert said["n_rounds"] == 40 and "20 lines skipped" in said["warnings"][0]


def test_a_model_that_learned_from_the_log_is_warned_about(table, tmp_path):
    lines = table.read_text().splitlines()
    right = [line for line in lines[1:] if line.endswith(",1")]
    clicked = tmp_path / "clicked.csv"
    clicked.write_text("\n".join([lines[0], *right]) + "\n")
    model = tmp_path / "model"
    ignored = ("--column", "p=ignore", "--column", "clicked=ignore")
    run("play", clicked, "--label", "shown", "-a", "softmax", *ignored, "--save", model)
    warned = "so that its mistakes elsewhere are underestimated"
    assert (
        warned
        in json.loads(run("evaluate", clicked, *ROLES, "--load", model, "--json").splitlines()[-1])["warnings"][0]
    )
    assert warned not in run("evaluate", table, *ROLES, "--load", model)


def test_options_for_other_formats_and_writing_tables_are_refused(table, text, tmp_path):
    log = open_log(table, action="shown", propensity="p", reward="clicked")
    assert isinstance(log, Log)
    with pytest.raises(StreamError, match="cannot be written as csv"):
        save_log(log, tmp_path / "other.csv")
    assert "--action ... is only for tables" in refused("evaluate", text, "--action", "a")
    assert "--costs ... is only for vw" in refused("evaluate", table, *ROLES, "--costs", "0..1")
    assert "vw files have no field" in refused("evaluate", text, "--probabilities", "mine")
