"""`gaptron play`: run one learner over one stream and say what happened."""

import copy
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaptron.cli import settings
from gaptron.errors import NoBoundError, SettingError

if TYPE_CHECKING:
    from gaptron import Learner
    from gaptron.streams import Chunks, Stream
    from gaptron.trace import Tally, Trace

Piece = tuple[Any, Any]
DELTA = 0.05
DATA, LEARN, SHOW = "Reading and preparing the stream", "Learning", "Output"
FIXED = ("algorithm", "feedback", "loss", "norm", "radius", "horizon", "set_", "seed", "classes", "features")


def play(
    context: typer.Context,
    stream: Annotated[str, typer.Argument(help="A file, - for standard input, or a name: synsep, digits, ...")],
    algorithm: Annotated[str, typer.Option("--algorithm", "-a", rich_help_panel=LEARN)] = "advised-gaptron",
    feedback: Annotated[str, typer.Option(help="full or bandit.", rich_help_panel=LEARN)] = "",
    loss: Annotated[str, typer.Option(help="logistic, hinge or smooth-hinge.", rich_help_panel=LEARN)] = "",
    norm: Annotated[float | None, typer.Option(help="X ≥ ‖x‖; measured in memory.", rich_help_panel=LEARN)] = None,
    radius: Annotated[float | None, typer.Option(help="D ≥ ‖U‖, for bandit.", rich_help_panel=LEARN)] = None,
    horizon: Annotated[int | None, typer.Option(help="T; counted in memory.", rich_help_panel=LEARN)] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the algorithm.", rich_help_panel=LEARN),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For the learner's draws.", rich_help_panel=LEARN)] = 0,
    load: Annotated[str, typer.Option(metavar="MODEL", help="Go on with this file.", rich_help_panel=LEARN)] = "",
    save: Annotated[str, typer.Option(metavar="MODEL", help="Write the learner here.", rich_help_panel=LEARN)] = "",
    format_: Annotated[
        str,
        typer.Option(
            "--format", help="svmlight, csv, tsv, parquet, npz or vw; else by extension.", rich_help_panel=DATA
        ),
    ] = "",
    label: Annotated[str, typer.Option(help="The label's column, by name or number.", rich_help_panel=DATA)] = "",
    classes: Annotated[str, typer.Option(help="All labels, separated by commas.", rich_help_panel=DATA)] = "",
    features: Annotated[int | None, typer.Option(min=1, help="Number of features.", rich_help_panel=DATA)] = None,
    chunk: Annotated[
        int | None, typer.Option(min=1, help="Read this many rounds at a time, never all.", rich_help_panel=DATA)
    ] = None,
    unit_norm: Annotated[
        bool, typer.Option("--unit-norm", help="Scale rows to ‖x‖ = 1.", rich_help_panel=DATA)
    ] = False,
    constant: Annotated[bool, typer.Option("--constant", help="Append a feature of 1.", rich_help_panel=DATA)] = False,
    log1p: Annotated[bool, typer.Option("--log1p", help="x → sign(x)·ln(1+|x|).", rich_help_panel=DATA)] = False,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Columns to mean 0, deviation 1.", rich_help_panel=DATA)
    ] = False,
    shuffle: Annotated[int | None, typer.Option(metavar="SEED", min=0, help="Shuffle.", rich_help_panel=DATA)] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rounds.", rich_help_panel=DATA)] = None,
    progress: Annotated[
        bool, typer.Option("--progress", "-P", help="A line at every doubling of the rounds.", rich_help_panel=SHOW)
    ] = False,
    no_bound: Annotated[bool, typer.Option("--no-bound", help="Do not look for U.", rich_help_panel=SHOW)] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.", rich_help_panel=SHOW)] = False,
) -> None:
    """Play a stream: predict, then learn, round by round; close with mistakes and what theory promised.

    gaptron play synsep

    gaptron play train.svm.gz -a gaptron --feedback bandit --radius 10 --loss hinge

    zcat log.vw.gz | gaptron play - --format vw --classes a,b,c --chunk 10000 --unit-norm

    gaptron play monday.csv --save model.gaptron && gaptron play tuesday.csv --load model.gaptron
    """
    from gaptron.learner import Learner  # noqa: PLC0415
    from gaptron.streams import Stream, open_stream, prepare  # noqa: PLC0415
    from gaptron.streams.named import NAMED  # noqa: PLC0415

    loaded = Learner.load(load) if load else None
    if loaded is not None:
        _refuse_beside_load(context)
    if save and not Path(save).absolute().parent.is_dir():
        raise SettingError(f"--save {save}: there is no such folder")  # said now, not after an hour of playing
    told = None if stream.partition(":")[0] in NAMED else loaded  # a stream made here has classes of its own
    source: Any = open_stream(
        stream,
        format=format_ or None,
        label=int(label) if label.isdigit() else label or None,
        classes=_labels(classes) if told is None else told.classes,
        n_features=features if told is None else told.problem.n_features - constant or None,
        chunk=chunk,
    )
    source = prepare(
        source,
        unit_norm=unit_norm,
        constant=constant,
        log1p=log1p,
        standardize=standardize,
        shuffle=shuffle,
        limit=limit,
    )
    whole = isinstance(source, Stream)
    if norm is None and (whole or unit_norm):
        norm = source.norm if isinstance(source, Stream) else 1.0
    learner = loaded or Learner(
        algorithm,
        # A file is for other streams too, and keeps their words; without one the codes will do, and are quicker.
        classes=source.classes if save else range(source.n_classes),
        n_features=source.n_features,
        feedback=feedback or _only_feedback(algorithm),
        loss=loss or None,
        norm=norm or None,
        radius=radius,
        horizon=horizon or source.n_rounds,
        seed=seed,
        **settings.read(set_ or []),
    )
    if learner.settings is None:
        raise SettingError("a stream read in chunks needs --norm X, or --unit-norm")
    if told is None and loaded is not None and loaded.classes != source.classes:
        raise SettingError(f"the classes of {load} are not those of {source.name}")
    tally, trace, seconds = _run(learner, source, progress)
    if save:
        learner.save(save)
    said = _account(learner, source, tally, trace, seconds, no_bound)
    if json_:
        typer.echo(json.dumps(said, ensure_ascii=False))
    else:
        _summary(said)


def _run(learner: "Learner", source: "Stream | Chunks", table: bool) -> tuple["Tally", "Trace | None", float]:
    """Play it all. Returns sums, the trace when the stream is in memory, and seconds of playing alone."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from gaptron.streams import Stream  # noqa: PLC0415
    from gaptron.trace import Tally  # noqa: PLC0415

    tally, trace, seconds, mark = Tally(), None, 0.0, 1
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=table or not console.is_terminal) as bar:
        task = bar.add_task("compiling", total=source.n_rounds)
        if table:
            typer.echo(f"{'rounds':>12} {'average':>9} {'recent':>9} {'expected':>9} {'top':>9}")
        recent = Tally()
        for X, y in _pieces(source, table):
            if not tally.rounds:
                copy.copy(learner).play(X[:1], _words(learner, y[:1]))  # so that compiling is not counted
                bar.update(task, description="playing")
            words = _words(learner, y)
            start = time.perf_counter()
            part = learner.play(X, words, progress=lambda n: bar.advance(task, n))
            seconds += time.perf_counter() - start
            tally.add(part)
            recent.add(part)
            if isinstance(source, Stream):
                trace = part if trace is None else trace + part
            if table and tally.rounds >= mark:
                _line(tally, recent)
                recent, mark = Tally(), 2 * tally.rounds
        if table and recent.rounds:
            _line(tally, recent)
    return tally, trace, seconds


def _words(learner: "Learner", y: Any) -> Any:
    """The stream's codes in the learner's words."""
    classes = learner.classes
    return y if classes == tuple(range(len(classes))) else [classes[code] for code in y]


def _refuse_beside_load(context: typer.Context) -> None:
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "")
        if parameter.name in FIXED and given is not None and given.name != "DEFAULT":
            raise SettingError(f"--load goes on with a learner as it is: leave out {parameter.opts[0]}")


def _pieces(source: "Stream | Chunks", table: bool) -> Iterator[Piece]:
    """The stream as it comes, cut at 1, 2, 4, ... rounds when every doubling gets a line."""
    from gaptron.streams import Stream  # noqa: PLC0415

    done, mark = 0, 1
    for X, y in [(source.X, source.y)] if isinstance(source, Stream) else source:
        start = 0
        while table and start < len(y) and mark - done < len(y) - start:
            stop = start + mark - done
            yield X[start:stop], y[start:stop]
            done, start, mark = mark, stop, 2 * mark
        if start < len(y):
            yield X[start:], y[start:]
            done += len(y) - start


def _line(tally: "Tally", recent: "Tally") -> None:
    numbers = (
        tally.mistakes / tally.rounds,
        recent.mistakes / recent.rounds,
        tally.expected_mistakes / tally.rounds,
        tally.top_mistakes / tally.rounds,
    )
    typer.echo(f"{tally.rounds:>12,} " + " ".join(f"{number:>9.5f}" for number in numbers))


def _account(
    learner: "Learner",
    source: "Stream | Chunks",
    tally: "Tally",
    trace: "Trace | None",
    seconds: float,
    no_bound: bool,
) -> dict[str, Any]:
    """Everything the summary says, as one object."""
    from gaptron.high_probability import any_time  # noqa: PLC0415
    from gaptron.types import Feedback  # noqa: PLC0415

    problem = learner.problem
    said: dict[str, Any] = {
        "stream": source.name,
        "prepared": list(source.prepared),
        "notes": list(source.notes),
        "algorithm": learner.algorithm,
        "feedback": problem.feedback.word,
        "loss": problem.loss.word,
        "n_classes": problem.n_classes,
        "n_features": problem.n_features,
        "norm": problem.norm,
        "radius": problem.radius,
        "horizon": problem.horizon,
        "settings": settings.account(learner),
        "rounds": tally.rounds,
        "mistakes": tally.mistakes,
        "expected_mistakes": tally.expected_mistakes,
        "top_mistakes": tally.top_mistakes,
        "rounds_per_second": tally.rounds / seconds if seconds else None,
        "sure_below": None,
        "certificate": None,
        "advice": None,
        "bound": None,
        "why_no_bound": None,
    }
    if trace is not None and problem.feedback is Feedback.FULL:
        said["sure_below"] = {"mistakes": any_time(trace.expected_mistakes, trace.variance, DELTA), "delta": DELTA}
    try:
        certificate = learner.certificate
    except NoBoundError:
        certificate = None  # the bound's line says why
    if certificate is not None:
        said["certificate"] = {
            "level": certificate.level,
            "step": certificate.step,
            "norm": certificate.norm,
            "apart": certificate.apart,
        }
        if trace is not None:
            said["certificate"]["explored"] = float((trace.codes != trace.top).mean())
            said["certificate"]["solved"] = float(trace.note("solved").mean())
    if learner.advice is not None:
        said["advice"] = learner.advice._asdict()
    if no_bound:
        said["why_no_bound"] = "not asked for (--no-bound)"
    elif trace is None:
        said["why_no_bound"] = "the best comparator needs the whole stream in memory: leave out --chunk"
    else:
        try:
            bound = learner.bound(source.X, _words(learner, source.y), trace)  # type: ignore[union-attr]
        except NoBoundError as reason:
            said["why_no_bound"] = str(reason)
        else:
            said["bound"] = {
                "value": bound.value,
                "comparator_loss": bound.comparator.loss,
                "comparator_norm": bound.comparator.norm,
                "regret": bound.regret,
                "used": tally.expected_mistakes / bound.value if bound.value else None,
                "theorem": bound.theorem,
            }
    return said


def _summary(said: dict[str, Any]) -> None:
    T, full = said["rounds"], said["feedback"] == "full"

    def line(name: str, number: float, remark: str = "", digits: int = 0) -> None:
        typer.echo(f"{name:<27}{number:>14,.{digits}f}  {number / T:>8.2%}  {remark}".rstrip())

    typer.echo(f"{said['stream']}: {T:,} rounds, {said['n_features']:,} features, {said['n_classes']} classes")
    for remark in [*said["prepared"], *said["notes"]]:
        typer.echo(f"  {remark}")
    typer.echo(f"{said['algorithm']}, {said['loss']} loss, {'full information' if full else 'bandit feedback'}\n")
    line("mistakes", said["mistakes"])
    exact = "exact: free of the luck of the draws" if full else "an unbiased estimate of the mean"
    line("expected mistakes", said["expected_mistakes"], exact, 1)
    if said["sure_below"]:
        remark = f"with probability {1 - said['sure_below']['delta']:.0%}, at every round, whatever the data did"
        line("mistakes stay below", said["sure_below"]["mistakes"], remark, 1)
    line("mistakes of the top label", said["top_mistakes"])
    bound = said["bound"]
    if bound is None:
        typer.echo(f"bound: none; {said['why_no_bound']}")
    else:
        line("bound on expected mistakes", bound["value"], f"{bound['used']:.1%} of it used", 1)
        line("  loss of the best U", bound["comparator_loss"], f"‖U‖ = {bound['comparator_norm']:.4g}", 1)
        line("  regret", bound["regret"], bound["theorem"], 1)
        if not full:
            typer.echo("  on the mean over the draws, for a U fixed before them")
        if bound["value"] >= T:
            typer.echo("  larger than the number of rounds: it says nothing yet")
    certificate = said["certificate"]
    if certificate is not None:
        text = "certificate: Λ = {level:.4g}, ηX² = {step:.4g}, X = {norm:.4g}"
        if "explored" in certificate:
            text += "; {explored:.2%} of rounds explored, {solved:.2%} solved for λ"
        typer.echo(text.format(**certificate))
    advice = said["advice"]
    if advice is not None:
        remark = " (an estimate that errs low, no bound)" if advice["estimated"] else ""
        typer.echo(f"what the certificate cost against the advice: {advice['cost']:.1f} mistakes{remark}")
        heard = ", ".join(f"{name} {weight:.2f}" for name, weight in advice["heard"].items())
        typer.echo(f"weights of the advice: {heard}")
    typer.echo(settings.line(said["settings"]))
    if said["rounds_per_second"]:
        typer.echo(f"speed: {said['rounds_per_second']:,.0f} rounds/s")


def _only_feedback(algorithm: str) -> str:
    """Full information, unless the algorithm knows bandit feedback alone."""
    from gaptron.algorithms import load  # noqa: PLC0415

    first: str = load(algorithm).CARD.feedback[0].word
    return first


def _labels(words: str) -> list[Any] | None:
    if not words:
        return None
    labels = [word.strip() for word in words.split(",")]
    return [int(word) for word in labels] if all(word.lstrip("-").isdigit() for word in labels) else labels
