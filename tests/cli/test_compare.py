"""`gaptron compare` and `gaptron results`, as a user types them."""

import csv
import errno
import html
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
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
    output = run("compare", data, *QUICK, "-o", str(folder))
    assert "frugal-gaptron" in output and "banditron" in output and f"results: {folder}" in output
    return folder


def lines(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_data_needs_no_plan(out):
    results = lines(out)
    assert len(results) == 2 * (2 + 1) and {result["status"] for result in results} == {"ok"}
    assert {(r["algorithm"], r["feedback"]) for r in results} == {
        ("frugal-gaptron", "full"),
        ("frugal-gaptron", "bandit"),
        ("banditron", "bandit"),
    }
    assert all("unit norm" in result["prepared"] for result in results)


def test_the_same_command_again_runs_nothing(data, out):
    before = (out / "results.jsonl").read_bytes()
    run("compare", data, *QUICK, "-o", str(out))
    assert (out / "results.jsonl").read_bytes() == before


def test_a_report_is_written_unless_refused(data, out, tmp_path):
    assert not (out / "report.html").exists()
    output = run("compare", data, *QUICK[:-1], "--feedback", "full", "-a", "frugal-gaptron", "-o", str(tmp_path))
    assert (tmp_path / "report.html").exists() and "report.html" in output


def test_a_dry_run_counts_what_is_left_and_runs_nothing(data, out, tmp_path):
    output = run("compare", data, *QUICK, "-o", str(out), "--dry-run")
    assert "6 tasks, 0 of them without a result;" in output
    output = run("compare", data, *QUICK[:2], "--seeds", "1", "-n", "-o", str(tmp_path / "new"))
    assert "8 tasks, 8 of them" in output  # the built-in plan's grid of five, and three published settings
    assert not (tmp_path / "new").exists()


def test_options_change_a_plan(data, tmp_path):
    plan = tmp_path / "p.toml"
    plan.write_text(f'streams = [{data!r}]\nalgorithms = ["gaptron", "banditron", "perceptron"]\n')
    output = run("compare", str(plan), "-n", "--feedback", "bandit", "--seeds", "3,9,27", "--no-grid", "--limit", "50")
    assert "6 tasks" in output and " 50 " in output
    assert "3 tasks" in run("compare", str(plan), "-n", "--seeds", "3", "-a", "perceptron", "--radius", "2")


@pytest.mark.slow
def test_an_external_model_is_compared_by_its_name(data, tmp_path):
    name = "sklearn:linear_model.SGDClassifier"
    words = ("--seeds", "1", "-j", "1", "--bounds", "none", "--limit", "60", "-o", str(tmp_path))
    output = run("compare", data, "-a", f"{name},frugal-gaptron", *words)
    assert name in output and "one run: gaptron play" in output and "--algorithm frugal-gaptron" in output
    assert {(r["algorithm"], r["feedback"]) for r in lines(tmp_path)} == {
        (name, "full"),
        ("frugal-gaptron", "full"),
        ("frugal-gaptron", "bandit"),
    }
    before = (tmp_path / "results.jsonl").read_bytes()
    output = run("compare", data, "-a", name, *words)
    assert "one run" not in output and (tmp_path / "results.jsonl").read_bytes() == before
    assert "1 tasks, 1 of them" in run("compare", data, "-a", name, "--seeds", "9,", "-n", "-o", str(tmp_path))


def test_the_settings_of_a_planned_model_are_kept(data, tmp_path):
    plan = tmp_path / "p.toml"
    entry = '{ name = "sklearn:linear_model.SGDClassifier", settings = { alpha = 0.01 } }'
    plan.write_text(f'streams = [{data!r}]\nalgorithms = ["perceptron", {entry}]\n')
    words = ("--seeds", "1", "-j", "1", "--no-report", "--limit", "60", "-o", str(tmp_path))
    run("compare", str(plan), "-a", "sklearn:linear_model.SGDClassifier", *words)
    assert [result["settings"] for result in lines(tmp_path)] == [{"alpha": 0.01}]


def test_a_failure_is_reported_and_exits_with_1(data, tmp_path):
    output = run(
        "compare", "none.svm", data, *QUICK, "--feedback", "full", "-a", "frugal-gaptron", "-o", str(tmp_path), code=1
    )
    assert "gaptron: StreamError: none.svm: there is no such file" in output and "(2 tasks)" in output
    assert "2 of 4 tasks failed" in output
    assert [result["status"] for result in lines(tmp_path)] == ["failed"] * 2 + ["ok"] * 2


def test_a_stream_that_cannot_be_read_is_one_line_and_nothing_is_written(tmp_path):
    bad = tmp_path / "unreadable.csv"
    bad.write_bytes(b"a,b\n1,2,3\n\xff\xfe\n")
    done = subprocess.run(
        [sys.executable, "-m", "gaptron", "compare", str(bad), "-o", str(tmp_path / "out")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("gaptron: ") and "unreadable.csv" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_one_line_and_what_is_finished_stays(data, tmp_path, monkeypatch):
    write_all, lines_written = os.write, []

    def full(descriptor, data):
        if bytes(data).startswith(b'{"key"'):
            lines_written.append(bytes(data))
            if len(lines_written) > 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_all(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        text = run("compare", data, *QUICK, "-o", str(tmp_path), code=1)
    assert "cannot be written: No space left on device; finished results are kept" in text
    assert [line["status"] for line in lines(tmp_path)] == ["ok", "ok"]
    run("compare", data, *QUICK, "-o", str(tmp_path))
    assert len(lines(tmp_path)) == 6


def test_a_full_disk_while_streams_are_prepared_is_one_line_too(data, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "save", full)
    assert "No space left on device" in run("compare", data, *QUICK, "-o", str(tmp_path), code=1)
    assert not lines(tmp_path)


PLAN = """
seeds = [0, 3]
feedback = ["full", "bandit"]
[[streams]]
data = "{npz}"
name = "small"
standardize = true
constant = true
unit_norm = true
limit = 150
[[streams]]
data = "{csv}"
name = "words"
label = "kind"
classes = ["no", "yes"]
header = true
shuffle = false
[[streams]]
data = "{svm}"
name = "counted"
index_base = 0
n_features = 4
[[algorithms]]
name = "frugal-gaptron"
[[algorithms]]
name = "gaptron"
loss = "hinge"
[[algorithms]]
name = "banditron"
grid = {{ gamma = [0.1, 0.3] }}
[[algorithms]]
name = "perceptron"
settings = {{ update = "uniform" }}
"""


@pytest.mark.slow
def test_the_command_of_a_result_repeats_it_exactly(data, tmp_path):
    table = tmp_path / "two words.csv"
    table.write_text("kind,a,b\n" + "yes,1,0\nno,0.5,1\nyes,0,0.25\n" * 20)
    plan, out = tmp_path / "p.toml", tmp_path / "out"
    counted = tmp_path / "counted.svm"
    counted.write_text("1 1:1 3:0.5\n2 2:1\n1 1:0.25\n" * 20)
    plan.write_text(PLAN.format(npz=data, csv=table, svm=counted))
    text = run("compare", str(plan), "-j", "1", "-o", str(out), "--bounds", "none")
    results = lines(out)
    assert f"one run: {results[0]['command']}" in text
    page = html.unescape((out / "report.html").read_text())
    assert len(results) == 3 * 2 * (3 + 2 + 3)
    for result in results:
        assert result["command"] in page
        name, *words = shlex.split(result["command"])
        again = json.loads(run(*words, "--json"))
        assert name == "gaptron"
        for field in ("mistakes", "expected_mistakes", "top_mistakes", "rounds", "certificate"):
            assert again[field] == result.get(field), result["command"]
        assert again["settings"] == result["used"]
    assert {"--header" in r["command"] for r in results if r["stream"] == "words"} == {True}
    assert {"--index-base 0" in r["command"] for r in results if r["stream"] == "counted"} == {True}
    assert {r["used"]["update"] for r in results if r["algorithm"] == "perceptron"} == {"uniform"}
    assert all(result["processor"] for result in results)


def words_csv(path):
    """A table as people have them: words, gaps, numbers of any scale."""
    rng = np.random.default_rng(7)
    incomes = rng.normal(size=120)
    rows = [
        f"{rng.choice(['tablet', 'phone', ''])},{'' if t % 9 == 0 else round(1e4 * a, 1)},{'yes' if a > 0 else 'no'}"
        for t, a in enumerate(incomes)
    ]
    path.write_text("device,income,clicked\n" + "\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize("order", [(), ("--in-order",)])
def test_a_table_with_text_is_compared_as_it_is_played(tmp_path, order):
    table, out = words_csv(tmp_path / "clicks.csv"), tmp_path / "out"
    output = run("compare", table, "--label", "clicked", *QUICK, *order, "-o", str(out))
    assert "1/1" in output  # one stream, although each seed encodes it differently
    results = lines(out)
    assert len(results) == 6 and all("columns encoded" in result["prepared"] for result in results)
    for result in results:
        again = json.loads(run(*shlex.split(result["command"])[1:], "--json"))
        for field in ("mistakes", "expected_mistakes", "top_mistakes", "rounds", "certificate"):
            assert again[field] == result.get(field), result["command"]
    before = (out / "results.jsonl").read_bytes()
    run("compare", table, "--label", "clicked", *QUICK, *order, "-o", str(out))
    assert (out / "results.jsonl").read_bytes() == before


def test_a_plan_names_its_tables_with_text(tmp_path):
    table, plan = words_csv(tmp_path / "clicks.csv"), tmp_path / "p.toml"
    text = f'algorithms = ["frugal-gaptron"]\nseeds = 1\n[[streams]]\ndata = "{table}"\nlabel = "clicked"\n'
    text += "by_name = true\n"
    plan.write_text(text)
    out = tmp_path / "out"
    run("compare", str(plan), "-j", "1", "--no-report", "--limit", "50", "-o", str(out))
    assert {(r["rounds"], r["prepared"][-2]) for r in lines(out)} == {(50, "columns encoded")}
    plan.write_text(text + "standardize = true\n")
    result = CliRunner().invoke(app, ["compare", str(plan)])
    assert "p.toml, line 7: standardize does not apply with by_name" in str(result.exception)


def test_options_of_reading_are_for_the_files_alone(tmp_path, monkeypatch):
    table, out = words_csv(tmp_path / "clicks.csv"), tmp_path / "out"
    (tmp_path / "META.json").write_text(json.dumps({"known": {"file": write(tmp_path).name, "d": 6, "kind": "dense"}}))
    monkeypatch.setenv("GAPTRON_DATA", str(tmp_path))
    options = ("--label", "clicked", "--classes", "no,yes", "--header")
    words = ("compare", "synsep:rounds=60", table, "known", *options, "-a", "frugal-gaptron", *QUICK[2:])
    run(*words, "--feedback", "full", "--seeds", "1", "-o", str(out))
    assert {(r["stream"], "--label" in r["command"]) for r in lines(out)} == {
        ("synsep:rounds=60", False),
        (table, True),
        ("known", False),
    }
    for stream in ("synsep", "known", "openml:iris"):
        result = CliRunner().invoke(app, ["compare", stream, *options])
        assert "--label ... applies to none of these DATA: remove it" in str(result.exception)


def test_each_file_gets_the_options_its_format_has(tmp_path):
    table, out = words_csv(tmp_path / "clicks.csv"), tmp_path / "out"
    svmlight = tmp_path / "counts.svm"
    svmlight.write_text("1 0:1 2:1\n0 1:1\n" * 40)
    words = (
        "compare",
        table,
        str(svmlight),
        "--label",
        "clicked",
        "--index-base",
        "0",
        "-a",
        "frugal-gaptron",
        *QUICK[2:],
    )
    run(*words, "--feedback", "full", "--seeds", "1", "-o", str(out))
    commands = {r["stream"]: r["command"] for r in lines(out)}
    assert "--label clicked" in commands[table] and "--index-base" not in commands[table]
    assert "--index-base 0" in commands[str(svmlight)] and "--label" not in commands[str(svmlight)]
    result = CliRunner().invoke(app, ["compare", str(svmlight), "--label", "clicked"])
    assert "--label ... applies to none of these DATA: remove it" in str(result.exception)


def test_without_a_label_nothing_is_compared(tmp_path):
    table, out = words_csv(tmp_path / "clicks.csv"), tmp_path / "out"
    result = CliRunner().invoke(app, ["compare", table, "-o", str(out)])
    assert isinstance(result.exception, GaptronError) and not out.exists()
    assert "no column is named like a label: choose one with --label ... from device, income, clicked" in str(
        result.exception
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--algorithms", "magic"), "unknown algorithm 'magic'"),
        (("-a", "banditron", "--feedback", "full"), "banditron supports bandit feedback"),
        (("-a", "sklearn:linear_model.SGD"), "does not exist; classifiers in sklearn.linear_model"),
        (("-a", "sklearn:linear_model.SGDClassifier", "--feedback", "bandit"), "supports full feedback, but the plan"),
        (("--feedback", "some"), "unknown feedback 'some'"),
        (("--seeds", "many"), "--seeds many"),
        (("--seeds", "0"), "--seeds 0"),
        (("iris", "-a", ""), "--algorithms is empty"),
        (("iris", "--algorithms", " , "), "--algorithms is empty"),
        (("iris", "--feedback", ""), "--feedback is empty"),
        (("iris", "--seeds", ""), "--seeds is empty"),
        (("iris", "--bounds", ""), "unknown bounds ''"),
        (("--bounds", "some"), "unknown bounds 'some'"),
        (("--radius", "-1"), "must be positive"),
        (("--backend", "magic"), "unknown backend 'magic'"),
        (("--backend", "dask"), "needs --address"),
        (("plan.toml", "iris"), "cannot be combined with other DATA"),
        (("none.toml",), "cannot be read"),
        (("none.toml", "--constant"), "not to a plan"),
        (("--log1p",), "not to a plan"),
    ],
)
def test_invalid_arguments_are_one_error_message(words, problem, tmp_path):
    with pytest.raises(GaptronError) as caught:
        CliRunner().invoke(app, ["compare", *words, "-o", str(tmp_path / "out")], catch_exceptions=False)
    assert problem in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_results_are_listed_merged_and_exported(out, tmp_path):
    broken = tmp_path / "half.jsonl"
    text = (out / "results.jsonl").read_text()
    broken.write_text(text + text.splitlines()[0][:50])
    merged, table, columns = (tmp_path / name for name in ("all.jsonl", "all.csv", "all.parquet"))
    output = run("results", str(out), str(broken), "--merge", str(merged), "--export", str(table))
    assert "6 tasks, 0 of them failed" in output and "line 7: skipped" in output
    assert merged.read_text() == text
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["mistakes"]) for row in rows] == [result["mistakes"] for result in lines(out)]
    run("results", str(merged), "--export", str(columns))
    assert pq.read_table(columns)["key"].to_pylist() == [result["key"] for result in lines(out)]


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("none.jsonl",), "cannot be read"), (("{out}", "--export", "a.xlsx"), "use .csv or .parquet")],
)
def test_results_that_cannot_be_read_or_written(words, problem, out):
    with pytest.raises(GaptronError, match=problem):
        CliRunner().invoke(app, ["results", *(w.format(out=out) for w in words)], catch_exceptions=False)


# --- order and intervals ------------------------------------------------------------------------------------


def days(path: Path, column: str = "day") -> Path:
    lines = [f"2026-03-{1 + t // 4:02d},{t % 3},{'ab'[t * t % 3 == 0]}" for t in range(100)]
    path.write_text(f"{column},x,label\n" + "\n".join(lines) + "\n")
    return path


def test_a_table_with_times_is_compared_in_its_order_and_equal_runs_have_no_interval(tmp_path: Path):
    words = ["-a", "perceptron,arow", "--feedback", "full", "--seeds", "3", "--no-grid", "--jobs", "1", "--no-report"]
    file = str(days(tmp_path / "days.csv"))
    result = CliRunner().invoke(app, ["compare", file, *words, "-o", str(tmp_path / "kept")], catch_exceptions=False)
    said = f"{file} has times (day): its rounds are played in their order; --shuffle shuffles them"
    assert said in " ".join(result.output.split())
    assert "6 tasks, about" in result.output
    assert "±" not in result.output and "(3 equal runs: no interval)" in " ".join(result.output.split())
    for more in (["--shuffle"], ["--in-order"]):
        shown = CliRunner().invoke(
            app, ["compare", file, *words, *more, "-o", str(tmp_path / more[0])], catch_exceptions=False
        )
        assert "has times" not in shown.output and ("±" in shown.output) == (more == ["--shuffle"])
