"""`gaptron abstain`: follow experts whose predictions are in a file, abstain where they disagree, say what happened."""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaptron.cli import options, votes
from gaptron.errors import NoBoundError, SettingError, StreamError

if TYPE_CHECKING:
    from gaptron.abstention import Abstainer, AbstainerTrace
    from gaptron.streams import Chunks, Stream
    from gaptron.types import Matrix, Vector

DATA, LEARN, SHOW = "Reading the file", "Learning", "Output"
USUAL = "cost"  # what a column of costs is called
SHOWN, NOTABLE = 5, 0.0005  # how many experts the summary names, and from what weight


def abstain(
    file: Annotated[str, typer.Argument(help="A table of expert predictions and labels; - for standard input.")],
    algorithm: Annotated[
        str, typer.Option("--algorithm", "-a", help="adahedge or exponential-weights.", rich_help_panel=LEARN)
    ] = "adahedge",
    cost: Annotated[
        float | None, typer.Option(help="What abstaining costs, if always the same.", rich_help_panel=LEARN)
    ] = None,
    late: Annotated[
        bool, typer.Option("--late", help="Costs are told with the label, not before.", rich_help_panel=LEARN)
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random draws.", rich_help_panel=LEARN)] = 0,
    format_: Annotated[
        str, typer.Option("--format", help="csv, tsv, parquet or npz; else by extension.", rich_help_panel=DATA)
    ] = "",
    label: Annotated[str, options.label(DATA)] = "",
    classes: Annotated[
        str, typer.Option(help="The two labels, that of +1 last; write --classes=a,b.", rich_help_panel=DATA)
    ] = "-1,1",
    cost_column: Annotated[
        str, typer.Option(help="The costs' column, by name, or by number without the label.", rich_help_panel=DATA)
    ] = "",
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Advice is the probability of the label of +1, from 0 to 1; 2p - 1 is used.",
            rich_help_panel=DATA,
        ),
    ] = False,
    chunk: Annotated[
        int | None,
        typer.Option(min=1, help="Read so many rounds at a time instead of all at once.", rich_help_panel=DATA),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write every round to this file (.csv or .parquet).", rich_help_panel=SHOW)
    ] = None,
    json_: Annotated[bool, options.as_json(SHOW)] = False,
) -> None:
    """Predict -1 or +1 from the advice of experts, or abstain at a cost; close with the loss and what theory promised.

    The file has a row a round: a column for each expert with numbers in [-1, 1], or with one of the --classes, the
    label, and perhaps the cost.

    gaptron abstain advice.csv --cost 0.2

    gaptron abstain advice.parquet --label truth --cost-column price --trace rounds.csv

    gaptron abstain votes.csv --label truth --classes=ham,spam --cost 0.2
    """
    from gaptron.abstention import Abstainer  # noqa: PLC0415
    from gaptron.streams import open_stream  # noqa: PLC0415

    if file == "-" and chunk is not None:
        raise SettingError("standard input is read at once: leave out --chunk, or save it to a file")
    names = [word.strip() for word in classes.split(",")]
    if len(names) != 2:
        raise SettingError(f"--classes={classes} must name two labels, that of -1 and that of +1")
    form = format_ or ("csv" if file == "-" else None)
    spot = options.read_column(label)
    if votes.in_words(file, form, spot, names):
        source = votes.read(file, form, spot, names, chunk)
    else:
        source = open_stream(file, format=form, label=spot, classes=names, chunk=chunk)
    table = _table(source, cost_column, cost, algorithm, probabilities)
    made: dict[str, Any] = {"algorithm": algorithm, "cost": cost, "seed": seed}
    abstainer = Abstainer(len(table.experts), **made)
    scout = Abstainer(len(table.experts), **made)
    sums, whole = _run(abstainer, scout, table, not late, trace)
    if table.looks_like_probabilities:
        words = "no advice is below 0: if it is probabilities, or votes of 0 and 1, say --probabilities"
        typer.echo(f"gaptron: warning: {words}", err=True)
    account = _account(abstainer, table, sums, whole, late)
    if json_:
        typer.echo(json.dumps(account, ensure_ascii=False))
    else:
        _summary(account)


# --- the file -----------------------------------------------------------------------------------------------


@dataclass
class _Table:
    """A stream read as advice: which columns are experts, and which is the cost."""

    source: "Stream | Chunks"
    experts: list[str]
    at: list[int]  # the experts' columns
    cost: int | None  # the costs' column
    constant: float | None
    probabilities: bool = False  # of +1; else advice is in [-1, 1]
    below: bool = False  # has any advice been negative?

    @property
    def looks_like_probabilities(self) -> bool:
        """Chances of +1, or votes of 0 and 1: nothing is below 0."""
        return not self.below and not self.probabilities

    def pieces(self) -> Iterator[tuple["Matrix", Any, Any]]:
        """Predictions, labels and costs, as they come."""
        import numpy as np  # noqa: PLC0415

        from gaptron.streams import Stream  # noqa: PLC0415

        done = 0
        for X, codes in [(self.source.X, self.source.y)] if isinstance(self.source, Stream) else self.source:
            rows = X.toarray() if hasattr(X, "toarray") else X
            costs = self.constant if self.cost is None else rows[:, self.cost]
            advice = rows if self.cost is None else rows[:, self.at]
            self._check(advice, costs, done)
            self.below |= bool((advice < 0.0).any())
            yield 2.0 * advice - 1.0 if self.probabilities else advice, np.where(codes == 1, 1, -1), costs
            done += len(codes)

    def _check(self, advice: "Matrix", costs: Any, done: int) -> None:
        """As the abstainer will, but here an error can name the row of the file and the column."""
        import numpy as np  # noqa: PLC0415

        least, what = (0.0, "a probability") if self.probabilities else (-1.0, "advice")
        bad = np.argwhere((advice > 1.0) | (advice < least))
        if bad.size:
            t, i = bad[0]
            problem = f"row {done + t + 1}: {self.experts[i]} is {advice[t, i]:g}, and {what} must be in [{least:g}, 1]"
            raise StreamError(self.source.name, problem)
        if self.cost is not None and costs.min() < 0.0:
            t = int(np.argmax(costs < 0.0))
            raise StreamError(self.source.name, f"row {done + t + 1}: cost {costs[t]:g} is negative")


def _table(source: "Stream | Chunks", asked: str, cost: float | None, algorithm: str, probabilities: bool) -> _Table:
    columns = list(source.columns) or [f"expert {at}" for at in range(source.n_features)]
    at = _cost_at(source, asked)
    if at is None and cost is None:
        raise SettingError("what does abstaining cost? Say --cost 0.2, or name a column with --cost-column")
    if at is not None and cost is not None and algorithm == "adahedge":
        raise SettingError(f"the file says what abstaining costs, in its column {columns[at]}: leave out --cost")
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise StreamError(source.name, f"two columns are called {twice}")
    experts = [i for i in range(source.n_features) if i != at]
    if not experts:
        raise StreamError(source.name, "there is no expert: no column beside label and cost")
    return _Table(source, [columns[i] for i in experts], experts, at, cost, probabilities)


def _cost_at(source: "Stream | Chunks", asked: str) -> int | None:
    if not asked:
        return next((at for at, name in enumerate(source.columns) if name.lower() == USUAL), None)
    if asked in source.columns:
        return source.columns.index(asked)
    if asked.isdigit() and int(asked) < source.n_features:
        return int(asked)
    known = ", ".join(source.columns) or f"the {source.n_features} beside the label, 0 to {source.n_features - 1}"
    raise StreamError(source.name, f"--cost-column {asked} is none of the columns {known}")


# --- the run ------------------------------------------------------------------------------------------------


@dataclass
class _Sums:
    """Sums over traces, in memory that does not grow with the rounds."""

    rounds: int = 0
    loss: float = 0.0
    mistakes: int = 0
    abstentions: int = 0
    dear: int = 0  # rounds that cost more than ½
    least: float = float("inf")
    most: float = 0.0
    seconds: float = 0.0


def _run(
    abstainer: "Abstainer", scout: "Abstainer", table: _Table, known: bool, path: Path | None
) -> tuple[_Sums, "AbstainerTrace | None"]:
    """Play it all. Returns sums, and the trace when the stream is in memory."""
    import numpy as np  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from gaptron.streams import Stream  # noqa: PLC0415

    sums, part = _Sums(), None
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
        _writer(path) as write,
    ):
        task = bar.add_task("compiling", total=table.source.n_rounds)
        for advice, labels, costs in table.pieces():
            if not sums.rounds:
                scout.play(advice[:1], labels[:1], 0.0)  # so that compiling is not counted
                bar.update(task, description="playing")
            start = time.perf_counter()
            part = abstainer.play(advice, labels, costs, known=known, progress=lambda n: bar.advance(task, n))
            sums.seconds += time.perf_counter() - start
            sums.rounds += part.rounds
            sums.loss += part.loss
            sums.mistakes += part.mistakes
            sums.abstentions += part.abstentions
            sums.dear += int(np.count_nonzero(np.broadcast_to(costs, part.rounds) > 0.5))
            sums.least = min(sums.least, float(np.min(costs)))
            sums.most = max(sums.most, float(np.max(costs)))
            write(part)
    return sums, part if isinstance(table.source, Stream) else None


@contextlib.contextmanager
def _writer(path: Path | None) -> Iterator[Any]:
    """A function that appends a trace's rounds to the file."""
    if path is None:
        yield lambda trace: None
        return
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv, parquet  # noqa: PLC0415

    kinds = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter}
    if path.suffix.lower() not in kinds:
        raise SettingError(f"--trace {path}: the name must end in {' or '.join(kinds)}")
    whole, real = pa.int64(), pa.float64()
    schema = pa.schema(
        [("prediction", whole), ("vote", real), ("label", whole), ("cost", real), ("expected_loss", real)]
    )

    def rows(trace: "AbstainerTrace") -> Any:
        parts = (trace.predictions, trace.votes, trace.labels, trace.costs, trace.expected_losses)
        return pa.table(dict(zip(schema.names, parts, strict=True)), schema=schema)

    try:
        with kinds[path.suffix.lower()](str(path), schema) as file:
            yield lambda trace: file.write_table(rows(trace))
    except OSError as problem:
        raise SettingError(f"cannot write the trace: {problem}") from None


# --- what is printed -------------------------------------------------------------------------------------------


def _account(
    abstainer: "Abstainer", table: _Table, sums: _Sums, trace: "AbstainerTrace | None", late: bool
) -> dict[str, Any]:
    """Everything the summary says, as one object."""
    losses: Vector = abstainer.expert_losses
    best = int(losses.argmin())
    account: dict[str, Any] = {
        "file": table.source.name,
        "notes": list(table.source.notes),
        "algorithm": abstainer.algorithm,
        "experts": table.experts,
        "cost": [sums.least, sums.most],
        "late": late,
        "dear_rounds": sums.dear,
        "rounds": sums.rounds,
        "loss": sums.loss,
        "expected_loss": abstainer.expected_loss,
        "mistakes": sums.mistakes,
        "abstentions": sums.abstentions,
        "best_expert": table.experts[best],
        "expert_losses": dict(zip(table.experts, losses.tolist(), strict=True)),
        "weights": dict(zip(table.experts, abstainer.weights.tolist(), strict=True)),
        "regret": abstainer.expected_loss - float(losses[best]),
        "certificate": abstainer.certificate,
        "bound": None,
        "why_no_bound": None,
        "rounds_per_second": sums.rounds / sums.seconds if sums.seconds else None,
    }
    try:
        bound = abstainer.bound(trace)
    except NoBoundError as reason:
        account["why_no_bound"] = str(reason)
    else:
        account["bound"] = {
            "value": bound.value,
            "regret": bound.regret,
            "used": abstainer.expected_loss / bound.value if bound.value else None,
            "theorem": bound.theorem,
        }
    return account


def _summary(account: dict[str, Any]) -> None:
    T = account["rounds"]

    def line(name: str, number: float, remark: str = "", digits: int = 0) -> None:
        typer.echo(f"{name:<27}{number:>14,.{digits}f}  {number / T:>8.2%}  {remark}".rstrip())

    typer.echo(f"{account['file']}: {T:,} rounds, {len(account['experts'])} experts")
    for remark in account["notes"]:
        typer.echo(f"  {remark}")
    least, most = account["cost"]
    price = f"{most:g}" if least == most else f"{least:.4g} to {most:.4g}"
    typer.echo(f"{account['algorithm']}, abstaining costs {price}")
    if account["dear_rounds"]:
        coin = (
            "told too late for the coin that is cheaper"
            if account["late"]
            else "a fair coin, which is cheaper, stood in"
        )
        typer.echo(f"  above ½ in {account['dear_rounds']:,} rounds: {coin}")
    typer.echo()
    line(
        "mistakes",
        account["mistakes"],
        f"{account['mistakes'] / max(1, T - account['abstentions']):.2%} of the answers given",
    )
    line("abstentions", account["abstentions"])
    line("loss", account["loss"], "mistakes and costs", 1)
    line("expected loss", account["expected_loss"], "exact: free of the luck of the draws", 1)
    line("loss of the best expert", min(account["expert_losses"].values()), account["best_expert"], 1)
    line("regret", account["regret"], "expected loss above the best expert's", 1)
    line("  proved by this run", account["certificate"], "certificate, against every expert", 1)
    bound = account["bound"]
    if bound is None:
        typer.echo(f"bound: none; {account['why_no_bound']}")
    else:
        line("  proved by the theorem", bound["regret"], bound["theorem"], 1)
        line("bound on expected loss", bound["value"], f"{bound['used'] or 0.0:.1%} of it used", 1)
    ranked = sorted(account["weights"].items(), key=lambda pair: -pair[1])
    heavy = [f"{name} {weight:.1%}" for name, weight in ranked[:SHOWN] if weight >= min(NOTABLE, ranked[0][1])]
    others = (
        f", others {1.0 - sum(weight for _, weight in ranked[: len(heavy)]):.1%}" if len(ranked) > len(heavy) else ""
    )
    typer.echo(f"weights: {', '.join(heavy)}{others}")
    if account["rounds_per_second"]:
        typer.echo(f"speed: {account['rounds_per_second']:,.0f} rounds/s")
