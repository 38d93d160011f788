"""`gaptron abstain`: predict from the experts in a file, abstain where they disagree, and print a summary."""

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

DATA, LEARN, SHOW = map(options.panel, ("Reading the file", "Learning", "Output"))
DEFAULT_COST_COLUMN = "cost"
SHOWN, MIN_WEIGHT = 5, 0.0005  # the summary lists at most so many experts, of at least this weight


def abstain(
    file: Annotated[str, typer.Argument(help="A table of expert predictions and labels; - for standard input.")],
    algorithm: Annotated[str, LEARN("--algorithm", "-a", help="adahedge or exponential-weights.")] = "adahedge",
    cost: Annotated[float | None, LEARN(help="Cost of abstaining, if it is the same in every round.")] = None,
    late: Annotated[bool, LEARN("--late", help="Costs become known with the label, not before the decision.")] = False,
    seed: Annotated[int, LEARN(min=0, help="Seed of the random draws.")] = 0,
    format_: Annotated[str, DATA("--format", help="csv, tsv, parquet or npz; by default from the extension.")] = "",
    label: Annotated[str, options.label(DATA)] = "",
    classes: Annotated[
        str, DATA(help="The two labels, first that of -1, then that of +1; write --classes=a,b.")
    ] = "-1,1",
    cost_column: Annotated[
        str, DATA(help="Column of the costs: its name, or its number without the label column.")
    ] = "",
    probabilities: Annotated[
        bool,
        DATA("--probabilities", help="Predictions are probabilities p of the +1 label; they are converted to 2p - 1."),
    ] = False,
    chunk: Annotated[int | None, DATA(min=1, help="Read this many rounds at a time instead of the whole file.")] = None,
    trace: Annotated[Path | None, SHOW(help="Write every round to this file (.csv or .parquet).")] = None,
    json_: Annotated[bool, options.as_json(SHOW)] = False,
) -> None:
    """Predict -1 or +1 from the predictions of experts, or abstain at a cost; print the loss and the proven bounds.

    The file has one row per round. Each expert has a column with numbers in
    [-1, 1], or with one of the --classes. One column is the label; another may
    be the cost.

    gaptron abstain advice.csv --cost 0.2

    gaptron abstain advice.parquet --label truth --cost-column price --trace rounds.csv

    gaptron abstain votes.csv --label truth --classes=ham,spam --cost 0.2
    """
    from gaptron.abstention import Abstainer  # noqa: PLC0415
    from gaptron.streams import open_stream  # noqa: PLC0415

    if file == "-" and chunk is not None:
        raise SettingError("standard input is read as a whole: leave out --chunk, or save the input to a file")
    names = [name.strip() for name in classes.split(",")]
    if len(names) != 2:
        raise SettingError(f"--classes={classes} must name two labels, first that of -1, then that of +1")
    format_name = format_ or ("csv" if file == "-" else None)
    label_column = options.read_column(label)
    if votes.has_named_votes(file, format_name, label_column, names):
        source = votes.read(file, format_name, label_column, names, chunk)
    else:
        source = open_stream(file, format=format_name, label=label_column, classes=names, chunk=chunk)
    table = _table(source, cost_column, cost, algorithm, probabilities)
    arguments: dict[str, Any] = {"algorithm": algorithm, "cost": cost, "seed": seed}
    abstainer = Abstainer(len(table.experts), **arguments)
    warm_up = Abstainer(len(table.experts), **arguments)
    sums, whole_trace = _run(abstainer, warm_up, table, not late, trace)
    if table.looks_like_probabilities:
        message = "no prediction is below 0: for probabilities, or votes of 0 and 1, use --probabilities"
        typer.echo(f"gaptron: warning: {message}", err=True)
    account = _account(abstainer, table, sums, whole_trace, late)
    if json_:
        typer.echo(json.dumps(account, ensure_ascii=False))
    else:
        _summary(account)


# --- the file -----------------------------------------------------------------------------------------------


@dataclass
class _Table:
    """A stream of predictions: which columns are experts, and which is the cost."""

    source: "Stream | Chunks"
    experts: list[str]
    columns: list[int]  # of the experts
    cost_column: int | None
    constant_cost: float | None
    probabilities: bool = False  # of +1; otherwise predictions are in [-1, 1]
    any_negative: bool = False  # whether a prediction was negative so far

    @property
    def looks_like_probabilities(self) -> bool:
        """Whether no prediction is negative, as with probabilities of +1 or votes of 0 and 1."""
        return not self.any_negative and not self.probabilities

    def chunks(self) -> Iterator[tuple["Matrix", Any, Any]]:
        """Yield predictions, labels and costs."""
        import numpy as np  # noqa: PLC0415

        from gaptron.streams import Stream  # noqa: PLC0415

        done = 0
        for X, codes in [(self.source.X, self.source.y)] if isinstance(self.source, Stream) else self.source:
            rows = X.toarray() if hasattr(X, "toarray") else X
            costs = self.constant_cost if self.cost_column is None else rows[:, self.cost_column]
            advice = rows if self.cost_column is None else rows[:, self.columns]
            self._check(advice, costs, done)
            self.any_negative |= bool((advice < 0.0).any())
            yield 2.0 * advice - 1.0 if self.probabilities else advice, np.where(codes == 1, 1, -1), costs
            done += len(codes)

    def _check(self, advice: "Matrix", costs: Any, done: int) -> None:
        """Check what the abstainer checks too, because here the error can name the row of the file and the column."""
        import numpy as np  # noqa: PLC0415

        least, what = (0.0, "a probability") if self.probabilities else (-1.0, "a prediction")
        bad = np.argwhere((advice > 1.0) | (advice < least))
        if bad.size:
            t, i = bad[0]
            problem = f"row {done + t + 1}: {self.experts[i]} is {advice[t, i]:g}, but {what} must be in [{least:g}, 1]"
            raise StreamError(self.source.name, problem)
        if self.cost_column is not None and costs.min() < 0.0:
            t = int(np.argmax(costs < 0.0))
            raise StreamError(self.source.name, f"row {done + t + 1}: cost {costs[t]:g} is negative")


def _table(
    source: "Stream | Chunks", cost_column: str, cost: float | None, algorithm: str, probabilities: bool
) -> _Table:
    columns = list(source.columns) or [f"expert {at}" for at in range(source.n_features)]
    at = _cost_at(source, cost_column)
    if at is None and cost is None:
        raise SettingError("the cost of abstaining is missing: give --cost 0.2, or name a column with --cost-column")
    if at is not None and cost is not None and algorithm == "adahedge":
        raise SettingError(f"the costs of abstaining are in the column {columns[at]}: leave out --cost")
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise StreamError(source.name, f"two columns are named {twice}")
    experts = [i for i in range(source.n_features) if i != at]
    if not experts:
        raise StreamError(source.name, "there are no experts: the file has only the label and the cost")
    return _Table(source, [columns[i] for i in experts], experts, at, cost, probabilities)


def _cost_at(source: "Stream | Chunks", cost_column: str) -> int | None:
    if not cost_column:
        return next((at for at, name in enumerate(source.columns) if name.lower() == DEFAULT_COST_COLUMN), None)
    if cost_column in source.columns:
        return source.columns.index(cost_column)
    if cost_column.isdigit() and int(cost_column) < source.n_features:
        return int(cost_column)
    known = ", ".join(source.columns) or f"0 to {source.n_features - 1}, not counting the label"
    raise StreamError(source.name, f"there is no column {cost_column} (--cost-column); the columns are {known}")


# --- the run ------------------------------------------------------------------------------------------------


@dataclass
class _Sums:
    """Sums over traces; their memory does not grow with the rounds."""

    rounds: int = 0
    loss: float = 0.0
    mistakes: int = 0
    abstentions: int = 0
    above_half: int = 0  # rounds with a cost above ½
    min_cost: float = float("inf")
    max_cost: float = 0.0
    seconds: float = 0.0


def _run(
    abstainer: "Abstainer", warm_up: "Abstainer", table: _Table, known: bool, path: Path | None
) -> tuple[_Sums, "AbstainerTrace | None"]:
    """Play all rounds. Returns the sums, and the trace if the stream is in memory."""
    import numpy as np  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from gaptron.streams import Stream  # noqa: PLC0415

    sums, chunk = _Sums(), None
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
        _writer(path) as write,
    ):
        task = bar.add_task("compiling", total=table.source.n_rounds)
        for advice, labels, costs in table.chunks():
            if not sums.rounds:
                warm_up.play(advice[:1], labels[:1], 0.0)  # so that the speed does not include compiling
                bar.update(task, description="playing")
            start = time.perf_counter()
            chunk = abstainer.play(advice, labels, costs, known=known, progress=lambda n: bar.advance(task, n))
            sums.seconds += time.perf_counter() - start
            sums.rounds += chunk.rounds
            sums.loss += chunk.loss
            sums.mistakes += chunk.mistakes
            sums.abstentions += chunk.abstentions
            sums.above_half += int(np.count_nonzero(np.broadcast_to(costs, chunk.rounds) > 0.5))
            sums.min_cost = min(sums.min_cost, float(np.min(costs)))
            sums.max_cost = max(sums.max_cost, float(np.max(costs)))
            write(chunk)
    return sums, chunk if isinstance(table.source, Stream) else None


@contextlib.contextmanager
def _writer(path: Path | None) -> Iterator[Any]:
    """Yield a function that appends the rounds of a trace to the file."""
    if path is None:
        yield lambda trace: None
        return
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv, parquet  # noqa: PLC0415

    kinds = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter}
    if path.suffix.lower() not in kinds:
        raise SettingError(f"--trace {path}: the file name must end in {' or '.join(kinds)}")
    integer, real = pa.int64(), pa.float64()
    schema = pa.schema(
        [("prediction", integer), ("vote", real), ("label", integer), ("cost", real), ("expected_loss", real)]
    )

    def rows(trace: "AbstainerTrace") -> Any:
        columns = (trace.predictions, trace.votes, trace.labels, trace.costs, trace.expected_losses)
        return pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)

    try:
        with kinds[path.suffix.lower()](str(path), schema) as file:
            yield lambda trace: file.write_table(rows(trace))
    except OSError as problem:
        raise SettingError(f"cannot write the trace: {problem}") from None


# --- the summary -------------------------------------------------------------------------------------------


def _account(
    abstainer: "Abstainer", table: _Table, sums: _Sums, trace: "AbstainerTrace | None", late: bool
) -> dict[str, Any]:
    """Return all results as one JSON object."""
    losses: Vector = abstainer.expert_losses
    best = int(losses.argmin())
    account: dict[str, Any] = {
        "file": table.source.name,
        "notes": list(table.source.notes),
        "algorithm": abstainer.algorithm,
        "experts": table.experts,
        "cost": [sums.min_cost, sums.max_cost],
        "late": late,
        "rounds_above_half": sums.above_half,
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
    low, high = account["cost"]
    cost = f"{high:g}" if low == high else f"{low:.4g} to {high:.4g}"
    typer.echo(f"{account['algorithm']}, abstaining costs {cost}")
    if account["rounds_above_half"]:
        coin = (
            "known too late to toss a fair coin, which is cheaper"
            if account["late"]
            else "replaced by a fair coin, which is cheaper"
        )
        typer.echo(f"  above ½ in {account['rounds_above_half']:,} rounds: {coin}")
    typer.echo()
    line(
        "mistakes",
        account["mistakes"],
        f"{account['mistakes'] / max(1, T - account['abstentions']):.2%} of the predictions made",
    )
    line("abstentions", account["abstentions"])
    line("loss", account["loss"], "mistakes and costs", 1)
    line("expected loss", account["expected_loss"], "exact expectation over the draws", 1)
    line("loss of the best expert", min(account["expert_losses"].values()), account["best_expert"], 1)
    line("regret", account["regret"], "expected loss minus that of the best expert", 1)
    line("  proven by this run", account["certificate"], "certificate, holds against every expert", 1)
    bound = account["bound"]
    if bound is None:
        typer.echo(f"bound: none; {account['why_no_bound']}")
    else:
        line("  proven by the theorem", bound["regret"], bound["theorem"], 1)
        line("bound on expected loss", bound["value"], f"{bound['used'] or 0.0:.1%} of it used", 1)
    ranked = sorted(account["weights"].items(), key=lambda pair: -pair[1])
    largest = [f"{name} {weight:.1%}" for name, weight in ranked[:SHOWN] if weight >= min(MIN_WEIGHT, ranked[0][1])]
    others = (
        f", others {1.0 - sum(weight for _, weight in ranked[: len(largest)]):.1%}"
        if len(ranked) > len(largest)
        else ""
    )
    typer.echo(f"weights: {', '.join(largest)}{others}")
    if account["rounds_per_second"]:
        typer.echo(f"speed: {account['rounds_per_second']:,.0f} rounds/s")
