"""`gaptron predict`: the labels that a saved model gives to the rows of a file."""

from typing import Annotated, Any

import typer

from gaptron.cli import rows_by_name
from gaptron.errors import SettingError

DATA, SHOW = "Reading the rows", "Output"


def predict(
    rows: Annotated[str, typer.Argument(help="A file of rows, or - for standard input; labels are not needed.")],
    load: Annotated[str, typer.Option(metavar="MODEL", help="The model, from `gaptron play --save MODEL`.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write: .csv, .jsonl or .parquet; - is the screen.",
            rich_help_panel=SHOW,
        ),
    ] = "-",
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="What the learner would draw the label from, too.", rich_help_panel=SHOW),
    ] = False,
    scores: Annotated[
        bool, typer.Option("--scores", help="The score of each label, too.", rich_help_panel=SHOW)
    ] = False,
    format_: Annotated[
        str, typer.Option("--format", help="csv, tsv or parquet; else by extension.", rich_help_panel=DATA)
    ] = "",
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Is the first line a header? By default it is if none of its cells is a number.",
            rich_help_panel=DATA,
        ),
    ] = None,
    chunk: Annotated[int, typer.Option(min=1, help="Rows to read at a time.", rich_help_panel=DATA)] = 65_536,
) -> None:
    """Predict the labels of rows with a saved model. Nothing is learned, and the model stays as it is.

    gaptron predict new.csv --load model.gaptron

    gaptron predict new.parquet --load model.gaptron --probabilities -o labels.parquet
    """
    from gaptron.learner import Learner  # noqa: PLC0415
    from gaptron.streams.rows_by_name import is_table, open_unlabelled  # noqa: PLC0415
    from gaptron.streams.table import Columns  # noqa: PLC0415

    learner = Learner.load(load)
    if learner.features is None:
        raise SettingError(f"{load} takes rows as numbers, and this command reads rows by name: predict in Python")
    without = Columns(*map(learner.reading.get, Columns._fields))  # as in the files it learned from
    if rows != "-" and not is_table(rows, format_ or None, without.available):
        raise SettingError(f"{rows}: rows by name are CSV, TSV or Parquet files: say which with --format")
    reading: Any = {"format": format_ or None, "chunk": chunk, "header": header}
    told = False
    with rows_by_name.writer(output) as write:
        for table, among in open_unlabelled(rows, without=without, classes=learner.classes, **reading):
            if not told:
                for remark in rows_by_name.remarks(learner, list(table.columns)):
                    typer.echo(f"gaptron: {remark}", err=True)
                told = True
            columns: dict[str, Any] = {"label": learner.predict(table, among=among).tolist()}
            if probabilities:
                columns |= _by_label("probability", learner, learner.distribution(table, among=among))
            if scores:
                columns |= _by_label("score", learner, learner.scores(table, among=among))
            write(columns)


def _by_label(what: str, learner: Any, numbers: Any) -> dict[str, Any]:
    return {f"{what} {label}": numbers[:, code].tolist() for code, label in enumerate(learner.classes)}
