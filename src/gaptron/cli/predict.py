"""`gaptron predict`: predict the labels of a table with a saved model."""

from typing import Annotated, Any

import typer

from gaptron.cli import options, reading
from gaptron.cli.columns import differences
from gaptron.cli.predictions import writer
from gaptron.errors import SettingError

DATA, SHOW = map(options.panel, ("Reading the table", "Output"))


def predict(
    rows: Annotated[str, typer.Argument(help="A table, or - for standard input; labels are not needed.")],
    load: Annotated[str, typer.Option(metavar="MODEL", help="The model, from `gaptron play --save MODEL`.")],
    output: Annotated[
        str,
        SHOW(
            "--output", "-o", metavar="FILE", help="Write to this file: .csv, .jsonl or .parquet; - is standard output."
        ),
    ] = "-",
    probabilities: Annotated[
        bool,
        SHOW(
            "--probabilities",
            help="Add the probability with which the learner would draw each label. It is not calibrated, is often 0 "
            "or 1, and may be largest for another label than the one predicted.",
        ),
    ] = False,
    scores: Annotated[bool, SHOW("--scores", help="Add the score of each label.")] = False,
    keep: Annotated[
        str, SHOW(metavar="A,B", help="Copy these columns of the table, by name or number, before the label.")
    ] = "",
    format_: Annotated[str, DATA("--format", help="csv, tsv or parquet; by default the extension determines it.")] = "",
    header: Annotated[
        bool | None,
        DATA(
            "--header/--no-header",
            help="Whether the first line is a header; by default it is if none of its cells is a number.",
        ),
    ] = None,
    separator: Annotated[str, options.separator(DATA)] = "",
    decimal: Annotated[str, options.decimal(DATA)] = "",
    dates: Annotated[str, options.dates(DATA)] = "",
    encoding: Annotated[str, options.encoding(DATA)] = "",
    chunk: Annotated[int, DATA(min=1, help="Number of rows to read at a time.")] = 65_536,
) -> None:
    """Predict the labels of a table with a saved model: those of the largest score. The model is not changed.

    gaptron predict new.csv --load model.gaptron

    gaptron predict new.csv --load model.gaptron --keep id,date -o labels.csv

    gaptron predict new.parquet --load model.gaptron --probabilities -o labels.parquet
    """
    from gaptron.learner import Learner  # noqa: PLC0415
    from gaptron.streams.columns import Columns  # noqa: PLC0415
    from gaptron.streams.tables import is_table, read_unlabelled  # noqa: PLC0415

    learner = Learner.load(load)
    if learner.features is None:
        raise SettingError(f"{load} needs numeric features, but this command reads named columns: predict in Python")
    roles = Columns(*map(learner.reading.get, Columns._fields))  # as in the files that it learned from
    if rows != "-" and not is_table(rows, format_ or None, roles.available):
        raise SettingError(f"{rows} is not a CSV, TSV or Parquet file: give its format with --format")
    given = options.read_text_options(separator, decimal, dates, encoding)
    chunks = read_unlabelled(
        rows,
        roles=roles,
        classes=learner.classes,
        format=format_ or None,
        chunk=chunk,
        header=header,
        copied=[options.read_column(name.strip()) or "" for name in keep.split(",")] if keep else [],
        **reading.text_options(rows, format_ or None, given, learner),
    )
    with writer(output) as write:
        for number, (table, available, copied) in enumerate(chunks):
            if number == 0:
                for remark in differences(learner, list(table.columns)):
                    typer.echo(f"gaptron: {remark}", err=True)
            columns: dict[str, Any] = {"label": learner.predict(table, available=available).tolist()}
            if probabilities:
                columns |= _by_label("probability", learner, learner.distribution(table, available=available))
            if scores:
                columns |= _by_label("score", learner, learner.scores(table, available=available))
            if twice := copied.keys() & columns.keys():
                raise SettingError(f"--keep {twice.pop()}: the predictions have a column of this name: rename yours")
            write(copied | columns)


def _by_label(what: str, learner: Any, numbers: Any) -> dict[str, Any]:
    return {f"{what} {label}": numbers[:, code].tolist() for code, label in enumerate(learner.classes)}
