"""The first hour of a new user: tables as spreadsheets, databases and people write them."""

import csv
import datetime
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from gaptron import Learner
from gaptron.cli import app
from gaptron.streams.tables import open_table
from tests.cli.test_cli import account, fail, run

SMALL = ("-a", "gaptron", "--no-bound")
CITIES = ["Aachen", "Berlin", "Chur", "Dover"]


def shop(rounds: int = 60, start: int = 0) -> list[dict[str, str]]:
    """Orders as a database has them: a date, a price, a share, a ZIP code and whether the order came back."""
    return [
        {
            "id": f"A{at:05}",
            "date": f"2026-{1 + at // 28 % 12:02}-{1 + at % 28:02}",
            "city": CITIES[at % 4],
            "price": f"{900.5 + 30 * (at % 40):.2f}",
            "share": f"{at % 7 * 10}",
            "zip": f"{1067 + 997 * (at % 9):05}",
            "back": "yes" if at % 4 == 1 else "no",
        }
        for at in range(start, start + rounds)
    ]


def write(path: Path, rows: list[dict[str, str]], separator: str = ",", end: str = "\n") -> Path:
    file = io.StringIO()
    lines = csv.DictWriter(file, rows[0], delimiter=separator, lineterminator=end)
    lines.writeheader()
    lines.writerows(rows)
    path.write_bytes(file.getvalue().encode())
    return path


def summary(*words: str) -> str:
    """Return what a command prints, without its line ends, which depend on the width of a terminal."""
    return " ".join(run(*words).split())


def kinds(path: Path, *more: str) -> dict[str, str]:
    return {
        column["name"]: column["kind"] for column in account(str(path), "--label", "back", *SMALL, *more)["columns"]
    }


def european(row: dict[str, str]) -> dict[str, str]:
    """The same order as a German spreadsheet writes it."""
    year, month, day = row["date"].split("-")
    whole, cents = row["price"].split(".")
    price = f"{int(whole):,}".replace(",", ".") + "," + cents
    return row | {"date": f"{day}.{month}.{year}", "price": price, "share": row["share"] + " %"}


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_is_found(tmp_path, separator):
    comma = write(tmp_path / "comma.csv", shop())
    other = write(tmp_path / "other.csv", shop(), separator)
    expected, found = (account(str(path), "--label", "back", *SMALL) for path in (comma, other))
    assert (found["columns"], found["mistakes"]) == (expected["columns"], expected["mistakes"])
    assert f"cells are separated by {separator!r}" in found["notes"]
    forced = account(str(other), "--label", "back", *SMALL, "--separator", "tab" if separator == "\t" else separator)
    assert forced["mistakes"] == expected["mistakes"]
    tsv = write(tmp_path / "other.tsv", shop(), separator)
    assert account(str(tsv), "--label", "back", *SMALL)["mistakes"] == expected["mistakes"]


def test_a_separator_is_confirmed_below_the_header(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("name;price, net;back\n" + "a;1;yes\nb;2;no\n" * 20)
    assert open_table(path, label="back").columns == ("name", "price, net")
    path.write_text("tags,price,back\n" + "a;b;c,1,yes\nb;c;d,2,no\n" * 20)
    assert open_table(path, label="back").columns == ("tags", "price")
    assert "--separator ';' or --separator ','" in fail_on(tmp_path, "1,5;2,5;no\n2,5;1,5;yes\n").replace(
        "--separator , or --separator ;", "--separator ';' or --separator ','"
    )


def fail_on(folder: Path, text: str, *more: str) -> str:
    path = folder / "bad.csv"
    path.write_text(text)
    return fail("play", str(path), *more)


def test_a_german_spreadsheet_is_the_same_table(tmp_path):
    plain = write(tmp_path / "plain.csv", shop())
    german = write(tmp_path / "german.csv", [european(row) for row in shop()], ";", "\r\n")
    german.write_bytes(b"\xef\xbb\xbf" + german.read_bytes())
    expected = account(str(plain), "--label", "back", *SMALL)
    found = account(str(german), "--label", "back", *SMALL, "--decimal", ",")
    assert found["columns"] == expected["columns"] and found["mistakes"] == expected["mistakes"]
    assert kinds(german, "--decimal", ",") == {
        "id": "word",
        "date": "time",
        "city": "word",
        "price": "number",
        "share": "number",
        "zip": "word",
    }
    assert "categories, because of leading zeros: zip" in found["notes"]
    assert "dates with the day first: date" in found["notes"]
    text = summary("play", str(german), "--label", "back", *SMALL)
    assert "numbers with decimal commas, used as words: price (choose --decimal ,)" in text
    in_chunks = account(str(german), "--label", "back", *SMALL, "--decimal", ",", "--chunk", "7")
    assert in_chunks["columns"] == expected["columns"] and in_chunks["mistakes"] == expected["mistakes"]


def test_the_model_remembers_how_the_files_are_written(tmp_path):
    rows = [european(row) for row in shop()]
    model, day = str(tmp_path / "model.gaptron"), rows[30:40]  # days 3 to 12: the order of day and month is not shown
    for row in day:
        row["date"] = row["date"].replace(".", "/")
    monday = write(tmp_path / "monday.csv", [{**row, "date": row["date"].replace(".", "/")} for row in rows], ";")
    tuesday = write(tmp_path / "tuesday.csv", day, ";")
    run("play", str(monday), "--label", "back", "--decimal", ",", *SMALL, "--save", model)
    assert {"label": "back", "decimal": ",", "dates": "day-first"}.items() <= Learner.load(model).reading.items()
    found = account(str(tuesday), "--load", model)
    assert not any(column["other_kind"] for column in found["columns"])
    assert len(run("predict", str(tuesday), "--load", model).splitlines()) == 11


@pytest.mark.parametrize(
    ("dates", "order", "more"),
    [
        (["31/01/2026", "01/02/2026"], "day-first", ()),
        (["01/31/2026 9:05", "02/01/2026 10:15:30"], "month-first", ()),
        (["03.04.2026", "05.06.2026"], "day-first", ()),
        (["03/04/2026", "05/06/2026"], "month-first", ("--dates", "month-first")),
        (["2026/01/31", "2026/02/01"], None, ()),
    ],
)
def test_dates_are_recognised_where_they_are_unambiguous(tmp_path, dates, order, more):
    path = write(tmp_path / "a.csv", [{"when": dates[at % 2], "back": "yn"[at % 2]} for at in range(30)])
    (column,) = account(str(path), "--label", "back", *SMALL, *more)["columns"]
    assert column["kind"] == "time" and column["other_kind"] == 0
    stream = open_table(path, label="back", dates=more[1] if more else None)
    assert stream.dates == order
    cells, codes = stream.whole.X.block(0, 2)["when"].distinct()
    assert {"31/01/2026": "2026-01-31", "01/31/2026 9:05": "2026-01-31 09:05"}.get(dates[0], cells[0]) == cells[0]
    assert (
        cells[codes[1]]
        == {
            "day-first": {"01/02/2026": "2026-02-01", "05.06.2026": "2026-06-05"},
            "month-first": {"02/01/2026 10:15:30": "2026-02-01 10:15:30", "05/06/2026": "2026-05-06"},
            None: {"2026/02/01": "2026-02-01"},
        }[order][dates[1]]
    )


def test_dates_that_are_ambiguous_stay_words_and_the_summary_names_the_remedy(tmp_path):
    rows = [{"when": f"0{1 + at % 9}/0{1 + at % 7}/2026", "back": "yn"[at % 2]} for at in range(300)]
    path = write(tmp_path / "a.csv", rows)
    text = summary("play", str(path), "--label", "back", *SMALL)
    assert "used as words: when (choose --dates day-first)" in text
    rows[250]["when"] = "13/01/2026"  # below the first lines
    write(path, rows)
    for more in ((), ("--chunk", "9")):
        (column,) = account(str(path), "--label", "back", *SMALL, *more)["columns"]
        assert (column["kind"], column["other_kind"]) == ("time", 0)


def test_thousands_separators_and_per_cent_signs_may_come_late(tmp_path):
    prices = ["12.5", "900", "", "NA", "1,234", "1,234,567.25", "-2,000", "12%", "7.5 %"]
    rows = [{"price": prices[at % 4] if at < 200 else prices[at % 9], "back": "yn"[at % 2]} for at in range(400)]
    path = write(tmp_path / "a.csv", rows)
    (column,) = account(str(path), "--label", "back", *SMALL)["columns"]
    assert column["kind"] == "number" and column["other_kind"] == 0
    table = open_table(path, label="back").whole.X
    cells, codes = table.block(0, 400)["price"].distinct()
    found = dict(zip([row["price"] for row in rows], [cells[code] for code in codes]))
    assert [float(found[price]) for price in prices[4:]] == [1234.0, 1234567.25, -2000.0, 0.12, 0.075]
    mixed = [{"size": ["1,234", "large"][at % 2], "back": "yn"[at % 2]} for at in range(30)]
    (column,) = account(str(write(path, mixed)), "--label", "back", *SMALL)["columns"]
    assert column["kind"] == "word"  # not every value of the column is a number


def test_raw_numbers_are_read_in_the_same_forms(tmp_path):
    rows = [{"a": f"{1000 + at:,}", "b": f"{at % 9}%", "back": "yn"[at % 2]} for at in range(60)]
    path = write(tmp_path / "a.csv", rows)
    said = account(str(path), "--label", "back", "--raw", "--unit-norm")
    assert said["rounds"] == 60 and "numbers with thousands separators or per cent signs: a, b" in said["notes"]
    commas = tmp_path / "b.csv"
    commas.write_text("a;b;back\n" + "1,5;2;y\n2,25;1.000,5;n\n" * 300)
    assert account(str(commas), "--label", "back", "--raw", "--unit-norm", "--decimal", ",")["rounds"] == 600
    assert "choose --decimal ," in fail("play", str(commas), "--label", "back", "--raw", "--unit-norm")


def test_cells_may_contain_line_ends(tmp_path):
    rows = [row | {"city": f'{row["city"]},\r\nthe "old" town\n\nnorth'} for row in shop(300)]
    path = write(tmp_path / "a.csv", rows)
    expected = account(str(path), "--label", "back", *SMALL)
    assert expected["rounds"] == 300
    for more in (("--chunk", "1"), ("--chunk", "17")):
        assert account(str(path), "--label", "back", *SMALL, *more)["mistakes"] == expected["mistakes"]
    rows[7]["back"] = ""
    said = fail("play", str(write(path, rows)), "--label", "back", "--unlabelled", "error")
    assert "line 30: the label is missing" in said  # after the header and seven rows of four lines
    column = next(iter(open_table(path, label="back", chunk=10))).X.block(0, 9)["city"]
    assert column.distinct()[0][0] == 'Aachen,\r\nthe "old" town\n\nnorth'


def test_rows_without_a_label_are_skipped_and_counted(tmp_path):
    rows = shop(120)
    labelled = [dict(row) for at, row in enumerate(rows) if at % 6]
    for row in rows[::6]:
        row["back"] = ""
    whole, path = write(tmp_path / "whole.csv", labelled), write(tmp_path / "a.csv", rows)
    note = "20 of 120 rows have no label and were skipped"
    expected = account(str(whole), "--label", "back", *SMALL)
    for more in ((), ("--chunk", "25"), ("--chunk", "25", "--classes", "no,yes", "--horizon", "100")):
        said = account(str(path), "--label", "back", *SMALL, *more)
        assert note in said["notes"] and said["rounds"] == 100 and said["mistakes"] == expected["mistakes"]
    assert note in summary("play", str(path), "--label", "back", *SMALL)
    assert "line 2: the label is missing" in fail("play", str(path), "--label", "back", "--unlabelled", "error")
    assert "--unlabelled no must be" in fail("play", str(path), "--label", "back", "--unlabelled", "no")
    numbers = tmp_path / "n.csv"
    numbers.write_text("a,b,y\n1,2,0\n2,1,\n3,1,1\n")
    assert "1 of 3 rows have no label and were skipped" in account(str(numbers), "--raw", "--unit-norm")["notes"]
    table = pa.table({"a": [1.0, 2.0, 3.0], "y": [1, None, 0]})
    parquet.write_table(table, tmp_path / "n.parquet")
    for more in ((), ("--raw", "--unit-norm")):
        said = account(str(tmp_path / "n.parquet"), *more)
        assert said["rounds"] == 2 and [each["label"] for each in said["classes"]] == [0, 1]


@pytest.mark.parametrize("more", [(), ("--raw", "--unit-norm")])
def test_a_new_label_on_day_two(tmp_path, more):
    monday = write(tmp_path / "monday.csv", [{"a": str(at % 7), "y": "bc"[at % 2]} for at in range(40)])
    tuesday = write(tmp_path / "tuesday.csv", [{"a": str(at % 7), "y": "dcba"[at % 4]} for at in range(40)])
    model = tmp_path / "model.gaptron"
    run("play", str(monday), "--label", "y", *SMALL, *more, "--save", str(model))
    again = ("--label", "y", "--load", str(model)) + (("--unit-norm",) if more else ())
    said = fail("play", str(tuesday), *again)
    assert "line 2: label d is not one of the classes b, c; --grow adds it" in said
    for chunk in ((), ("--chunk", "6")):
        said = account(str(tuesday), *again, "--grow", *chunk, "--save", str(tmp_path / "grown.gaptron"))
        assert "labels that are new to the model: a, d" in said["notes"]
        assert [each["label"] for each in said["classes"]] == ["b", "c", "a", "d"]
    grown = Learner.load(tmp_path / "grown.gaptron")
    assert grown.classes == ("b", "c", "a", "d") and grown.rounds == 80
    assert not any("new to the model" in note for note in account(str(monday), *again, "--grow")["notes"])


def test_predictions_keep_columns(tmp_path):
    model, path = str(tmp_path / "model.gaptron"), write(tmp_path / "a.csv", [european(row) for row in shop()], ";")
    run("play", str(path), "--label", "back", "--decimal", ",", "--column", "id=ignore", *SMALL, "--save", model)
    out = tmp_path / "out.csv"
    run("predict", str(path), "--load", model, "--keep", "id, date,2,back", "-o", str(out), "--chunk", "13")
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [list(row)[:5] for row in rows] == [["id", "date", "city", "back", "label"]] * 60
    kept = [{name: european(row)[name] for name in ("id", "date", "city", "back")} for row in shop()]
    assert [{name: row[name] for name in kept[0]} for row in rows] == kept
    bare = run("predict", str(path), "--load", model).split()
    assert [row["label"] for row in rows] == bare[1:]
    assert "did you mean date?" in fail("predict", str(path), "--load", model, "--keep", "dat")
    path = write(tmp_path / "b.csv", [row | {"label": "x"} for row in shop()])
    assert "--keep label" in fail("predict", str(path), "--load", model, "--keep", "label")
    for name in ("out.xlsx", "out"):
        assert ".csv, .jsonl or .parquet" in fail("predict", str(path), "--load", model, "-o", str(tmp_path / name))
    assert not (tmp_path / "out.xlsx").exists()


def test_kept_columns_of_parquet_have_their_types(tmp_path):
    table = pa.table({"n": [1, 2, 3] * 8, "when": [datetime.date(1970, 1, 1)] * 24, "y": ["u", "v", "u"] * 8})
    parquet.write_table(table, tmp_path / "a.parquet")
    model = str(tmp_path / "model.gaptron")
    run("play", str(tmp_path / "a.parquet"), *SMALL, "--save", model)
    run("predict", str(tmp_path / "a.parquet"), "--load", model, "--keep", "n,when", "-o", str(tmp_path / "o.parquet"))
    assert parquet.read_table(tmp_path / "o.parquet").select(["n", "when"]).equals(table.select(["n", "when"]))
    run("predict", str(tmp_path / "a.parquet"), "--load", model, "--keep", "n,when", "-o", str(tmp_path / "o.jsonl"))
    first = json.loads((tmp_path / "o.jsonl").read_text().splitlines()[0])
    assert (first["n"], first["when"]) == (1, "1970-01-01")


def test_counts_after_loading_are_those_of_the_file(tmp_path):
    rows = shop(40)
    for row in rows[:10]:
        row["price"] = ""
    monday, model = write(tmp_path / "monday.csv", rows), str(tmp_path / "model.gaptron")
    run("play", str(monday), "--label", "back", *SMALL, "--save", model)
    rows = shop(40, start=40)
    rows[3]["price"], rows[4]["city"], rows[5]["city"] = "", "Essen", "Essen"
    tuesday = write(tmp_path / "tuesday.csv", [row | {"new": "1"} for row in rows])
    columns = {column["name"]: column for column in account(str(tuesday), "--load", model)["columns"]}
    assert (columns["price"]["missing"], columns["city"]["words"], columns["id"]["words"]) == (1, 1, 40)
    text = summary("play", str(tuesday), "--load", model)
    assert "with missing values: price (1) with words that are new to the model: id (40), " in text
    assert "city (1)" in text
    assert "first seen after" not in text and "warning" not in text
    assert "columns that are new to the model: new" in text


def test_a_column_of_nearly_all_different_words_gets_a_warning(tmp_path):
    path = write(tmp_path / "a.csv", shop())
    remedy = (
        "warning: nearly all values of id are different: an id or free text, of which nothing can be learned word for "
        "word; leave it out with --column id="
    )
    assert remedy + "ignore" in summary("play", str(path), "--label", "back", *SMALL)
    assert "warning" not in summary("play", str(path), "--label", "back", *SMALL, "--column", "id=ignore")
    assert "warning" not in summary("play", str(write(path, shop(10))), "--label", "back", *SMALL)


def test_standard_input_and_packed_files_are_read_alike(tmp_path):
    path = write(tmp_path / "a.csv", shop(), ";")
    expected = account(str(path), "--label", "back", *SMALL)["mistakes"]
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert account(str(packed), "--label", "back", *SMALL)["mistakes"] == expected

    words = ["play", "-", "--format", "csv", "--label", "back", *SMALL, "--json"]
    path.write_bytes(packed.read_bytes())
    assert "is compressed, but its name does not end in .gz" in fail("play", str(path), "--label", "back")
    spreadsheet = tmp_path / "a.xlsx"
    spreadsheet.write_bytes(b"PK")
    assert "save the sheet as CSV" in fail("play", str(spreadsheet), "--label", "back")
    piped = CliRunner().invoke(app, words, input=packed.read_bytes())
    assert json.loads(piped.output)["mistakes"] == expected


def test_an_empty_column_is_reported_and_a_header_alone_is_an_error(tmp_path):
    path = write(tmp_path / "a.csv", [row | {"empty": "", "": ""} for row in shop()])
    assert "2 of missing values only" in summary("play", str(path), "--label", "back", *SMALL)
    assert "contains no rounds" in fail_on(tmp_path, "a;b;y\n")


def test_encodings_of_spreadsheets(tmp_path):
    rows = [row | {"city": ["Zürich", "Genève"][at % 2]} for at, row in enumerate(shop())]
    path = write(tmp_path / "a.csv", rows, ";")
    expected = account(str(path), "--label", "back", *SMALL)
    text = path.read_text(encoding="utf-8")
    for encoding, more in (("utf-16", ()), ("cp1252", ("--encoding", "cp1252")), ("utf-8-sig", ())):
        path.write_bytes(text.encode(encoding))
        for chunk in ((), ("--chunk", "7")):
            said = account(str(path), "--label", "back", *SMALL, *more, *chunk)
            assert said["columns"] == expected["columns"] and said["mistakes"] == expected["mistakes"]
    path.write_bytes(text.encode("cp1252"))
    assert "line 2: the line is not UTF-8 text" in (said := fail("play", str(path), "--label", "back"))
    assert "--encoding cp1252" in said
    model = str(tmp_path / "model.gaptron")
    run("play", str(path), "--label", "back", *SMALL, "--encoding", "cp1252", "--save", model)
    predicted = CliRunner().invoke(app, ["predict", str(path), "--load", model, "--keep", "city"])
    assert "Zürich," in predicted.output
    assert "is not utf-16 text" in fail("play", str(path), "--label", "back", "--encoding", "utf-16")
    assert "--encoding latin9000 is not" in fail("play", str(path), "--encoding", "latin9000")
