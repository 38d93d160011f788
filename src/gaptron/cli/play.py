"""`gaptron play`: run one learner over one stream and summarise the run."""

import contextlib
import functools
import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaptron.cli import options, reading, rows_by_name, settings
from gaptron.cli.seen import Seen, shares
from gaptron.cli.waiting import Waiting, waiting
from gaptron.errors import GaptronError, SettingError

if TYPE_CHECKING:
    from gaptron import Learner
    from gaptron.experiments.run import Run
    from gaptron.streams.rounds import Rounds
    from gaptron.streams.rows_by_name import RowsByName
    from gaptron.trace import Trace

QUICK = 2.0  # seconds of playing, up to which other certificates are looked for
DELTA = 0.05
DATA, LEARN, SHOW = "Reading and preparing the stream", "Learning", "Output"
FIXED = (
    "algorithm",
    "feedback",
    "loss",
    "norm",
    "radius",
    "horizon",
    "set_",
    "seed",
    "observed",
    "classes",
    "features",
)
# Options that speak of a table's numbers as they are.
RAW = ("unit_norm", "constant", "log1p", "standardize", "norm", "features", "raw")
ENCODED = ("column", "cross")  # as little beside --load: the model knows its columns


def play(
    context: typer.Context,
    stream: Annotated[
        str, typer.Argument(help="A file, - for standard input, or the name of a data set: synsep, digits, ...")
    ],
    algorithm: Annotated[str, options.algorithm(LEARN)] = "advised-gaptron",
    feedback: Annotated[
        str,
        typer.Option(help="What a round shows: full (the label) or bandit (right or wrong).", rich_help_panel=LEARN),
    ] = "",
    loss: Annotated[str, options.loss(LEARN)] = "",
    norm: Annotated[float | None, options.norm(LEARN)] = None,
    radius: Annotated[float | None, options.radius(LEARN)] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Number of rounds; by default counted.", rich_help_panel=LEARN)
    ] = None,
    set_: Annotated[list[str] | None, options.setting(LEARN)] = None,
    seed: Annotated[int, options.seed(LEARN)] = 0,
    observed: Annotated[
        bool,
        typer.Option(
            "--observed/--no-observed",
            help="Bandit feedback: keep what the answers prove of every linear rule.",
            rich_help_panel=LEARN,
        ),
    ] = True,
    load: Annotated[
        str, typer.Option(metavar="MODEL", help="Continue with the learner in this file.", rich_help_panel=LEARN)
    ] = "",
    save: Annotated[
        str, typer.Option(metavar="MODEL", help="Write the learner to this file.", rich_help_panel=LEARN)
    ] = "",
    format_: Annotated[
        str,
        typer.Option(
            "--format", help="svmlight, csv, tsv, parquet, npz or vw; else by extension.", rich_help_panel=DATA
        ),
    ] = "",
    label: Annotated[str, options.label(DATA)] = "",
    reward: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="The column that says what the right label is worth, from 0 to 1; bandit feedback.",
            rich_help_panel=DATA,
        ),
    ] = "",
    available: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="The column that says which labels are available, separated by |, as in mail|chat.",
            rich_help_panel=DATA,
        ),
    ] = "",
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="A table's numbers as they are; by default its columns are encoded.", rich_help_panel=DATA
        ),
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND",
            help="A column is number, log, word, time or ignore; may be repeated. Else its first value tells.",
            rich_help_panel=DATA,
        ),
    ] = None,
    cross: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="Columns whose values matter together; may be repeated.", rich_help_panel=DATA
        ),
    ] = None,
    classes: Annotated[str, options.classes(DATA)] = "",
    features: Annotated[int | None, options.features(DATA)] = None,
    index_base: Annotated[
        str,
        typer.Option(
            metavar="0|1|auto",
            help="What svmlight features count from; by default as the file shows. Models remember it.",
            rich_help_panel=DATA,
        ),
    ] = "auto",
    header: Annotated[bool | None, options.header(DATA)] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            min=1, help="Read so many rounds at a time, of a small file too; else as it needs.", rich_help_panel=DATA
        ),
    ] = None,
    unit_norm: Annotated[
        bool, typer.Option("--unit-norm", help="Scale rows to ‖x‖ = 1.", rich_help_panel=DATA)
    ] = False,
    constant: Annotated[bool, options.constant(DATA)] = False,
    log1p: Annotated[bool, options.log1p(DATA)] = False,
    standardize: Annotated[bool, options.standardize(DATA)] = False,
    shuffle: Annotated[
        int | None, typer.Option(metavar="SEED", min=0, help="Shuffle the rounds with this seed.", rich_help_panel=DATA)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only so many rounds, the first ones.", rich_help_panel=DATA)
    ] = None,
    progress: Annotated[
        bool,
        typer.Option("--progress", "-P", help="Print a line at every doubling of the rounds.", rich_help_panel=SHOW),
    ] = False,
    bound: Annotated[
        bool | None,
        typer.Option(
            "--bound/--no-bound",
            help="Compute the bound, which takes time and the whole stream in memory? By default for small streams.",
            rich_help_panel=SHOW,
        ),
    ] = None,
    predictions: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Write every round's labels to this file: .csv, .jsonl or .parquet.",
            rich_help_panel=SHOW,
        ),
    ] = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say more: settings, certificate, advice.", rich_help_panel=SHOW)
    ] = False,
    json_: Annotated[bool, options.as_json(SHOW)] = False,
) -> None:
    """Play a stream: predict, then learn, round by round; close with mistakes and what theory promised.

    gaptron play clicks.csv --label clicked

    gaptron play synsep

    gaptron play train.svm.gz -a gaptron --feedback bandit --radius 10 --loss hinge

    zcat log.vw.gz | gaptron play - --format vw --classes a,b,c --unit-norm

    gaptron play monday.csv --save model.gaptron && gaptron play tuesday.csv --load model.gaptron
    """
    from gaptron.learner import Learner  # noqa: PLC0415
    from gaptron.streams import Stream, open_stream, prepare  # noqa: PLC0415
    from gaptron.streams.named import NAMED  # noqa: PLC0415

    loaded = Learner.load(load) if load else None
    if loaded is not None:
        _refuse_beside_load(context)
    if save and not Path(save).absolute().parent.is_dir():
        raise SettingError(f"--save {save}: there is no such folder")  # now, not after an hour of playing
    columns = _columns(loaded, label=label, reward=reward, available=available)
    by_name = _is_by_name(context, stream, format_, columns["available"], loaded)
    model = None if stream.partition(":")[0] in NAMED else loaded  # a stream made here has classes of its own
    listed = options.read_classes(classes) if model is None else model.classes
    measured = not by_name and model is None  # what is not given of width and norm the whole stream shows
    wide = not measured or features is not None
    known = listed is not None and (not measured or norm is not None or unit_norm)
    whole = reading.why_whole(bound, shuffle, standardize)
    chunk = reading.at_a_time(chunk, whole, stream, format_ or None, known, wide)
    if chunk is not None:
        reading.keep_memory()
    source: Any

    def new(names: Sequence[Any], width: int, longest: float | None, rounds: int | None) -> Learner:
        return Learner(
            algorithm,
            classes=names,
            n_features=width,
            feedback=feedback or _only_feedback(algorithm),
            loss=loss or None,
            norm=longest,
            radius=radius,
            horizon=horizon or rounds,
            seed=seed,
            observe=observed,
            **settings.read(set_ or []),
        )

    with waiting(stream, shown=not (json_ or progress)) as shows:
        if by_name:
            learner, source = _by_name(
                loaded,
                stream,
                {
                    "format": format_ or None,
                    **columns,
                    "classes": listed,
                    "chunk": chunk,
                    "header": header,
                    "limit": limit,
                    "shuffle": shuffle,
                    "watch": shows.read,
                },
                lambda source: Learner(
                    algorithm,
                    classes=source.classes if save else range(source.n_classes),
                    features=rows_by_name.declared(column, cross),
                    feedback=feedback or _only_feedback(algorithm),
                    loss=loss or None,
                    radius=radius,
                    horizon=horizon or source.n_rounds,
                    seed=seed,
                    observe=observed,
                    **settings.read(set_ or []),
                ),
            )
        else:
            source = open_stream(
                stream,
                format=format_ or None,
                **columns,
                classes=listed,
                n_features=features if model is None else model.problem.n_features - constant or None,
                chunk=chunk,
                index_base=_index_base(index_base, model),
                header=header,
                measure=loaded is None and norm is None and not unit_norm and _needs_norm(new),
                watch=shows.read,
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
            for measured in (False, True):  # what is measured is promised only where the algorithm cannot do without
                # A file is for other streams too, and keeps their words; without one the codes do, and are quicker.
                names = source.classes if save else range(source.n_classes)
                longest = _norm(source) if measured and norm is None else norm
                learner = loaded or new(names, source.n_features, longest, source.n_rounds)
                if learner.settings is not None:
                    break
            if learner.settings is None:
                raise SettingError(f"{source.name} is read once, as it is played: say --norm X, or --unit-norm")
            if model is None and loaded is not None and loaded.classes != source.classes:
                raise SettingError(f"the classes of {load} are not those of {source.name}")
        seen = Seen(source.classes, None if source.n_rounds is None else source.n_rounds - source.n_rounds // 4)
        with rows_by_name.writer(predictions) if predictions else contextlib.nullcontext() as write:
            done = _run(learner, source, progress, _each(seen, write), shows, keep=bound is not False)
    if save:
        if getattr(source, "index_base", None) is not None:
            learner.reading["index_base"] = source.index_base
        if by_name:
            called = source.called._asdict()
            learner.reading |= {role: name for role, name in called.items() if name is not None}
        learner.save(save)
    rewarded = columns["reward"] is not None or (isinstance(source, Stream) and source.worth is not None)
    summary = _account(learner, source, done, bound, rewarded)
    summary |= seen.account() | {"label": source.called.label if by_name else None}
    summary["would_prove"] = _provable(
        learner, source, done, summary["bound"], by_name and (column, cross), quiet=json_ or progress
    )
    summary["columns"] = None if learner.features is None else [column._asdict() for column in learner.features]
    if json_:
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        _show(summary, rows_by_name.found(learner) if by_name else [], verbose)


def _needs_norm(new: "Callable[[Sequence[Any], int, float | None, int | None], Learner]") -> bool:
    """Must the largest norm of a row be known before the first? Asked of a learner for two labels."""
    try:
        return new(range(2), 1, None, 1).settings is None
    except GaptronError:
        return True  # whatever is wrong is said once the stream is known


def _norm(source: Any) -> float | None:
    """The largest norm of a row; None if all are zero, or if it cannot be known before."""
    return (source.measured_norm() if hasattr(source, "measured_norm") else source.norm) or None


def _is_by_name(
    context: typer.Context, stream: str, format_: str, available: str | int | None, model: "Learner | None"
) -> bool:
    """Are the columns of this file to be encoded? As the model's were, else for tables unless their numbers are raw."""
    from gaptron.streams.rows_by_name import has_names  # noqa: PLC0415

    prepared = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in RAW and context.params[parameter.name]
    ]
    table = has_names(stream, format_ or None, available)
    if model is not None and model.features is not None:
        if prepared:
            raise SettingError(f"the model encodes rows by name, and knows how: leave out {prepared[0]}")
        if not table:
            raise SettingError(f"the model takes rows by name, and {stream} is no table with names")
        return True
    return table and not prepared and model is None


def _columns(model: "Learner | None", **given: str) -> dict[str, Any]:
    """The columns that are no features: as given, by name or number, else as the model's own files had them."""
    kept = {} if model is None else model.reading
    return {role: options.read_column(word) if word else kept.get(role) for role, word in given.items()}


def _by_name(
    model: "Learner | None", stream: str, given: dict[str, Any], make: Callable[[Any], "Learner"]
) -> "tuple[Learner, RowsByName]":
    """A table and a learner for it, with a word about columns that are not those the model knows."""
    from gaptron.streams.rows_by_name import open_by_name  # noqa: PLC0415

    source = open_by_name(stream, **given)
    if model is not None and source.columns:
        source = replace(source, notes=(*source.notes, *rows_by_name.remarks(model, source.columns)))
    return model or make(source), source


def _each(seen: Seen, write: rows_by_name.Write | None) -> "Callable[[Trace], None]":
    """What is done with every piece of the trace."""

    def take(part: "Trace") -> None:
        seen.add(part)
        if write is not None:
            names = [seen.classes[code] for code in range(len(seen.classes))]
            columns = {"truth": part.truth, "label": part.codes, "top": part.top}
            labels: dict[str, Any] = {what: [names[code] for code in codes] for what, codes in columns.items()}
            write(labels | {"probability of the truth": part.truth_probability.tolist()})

    return take


def _run(
    learner: "Learner", source: Any, table: bool, each: "Callable[[Trace], None]", shows: Waiting, keep: bool
) -> "Run":
    """Play it all, with a line at every doubling if they are asked for."""
    from gaptron.experiments.run import run  # noqa: PLC0415

    def played(part: "Trace") -> None:
        each(part)
        if doublings:
            doublings.add(part)

    doublings = _Doublings() if table else None
    in_memory = _in_memory(source) is not None
    shows.plays(source.n_rounds, in_memory)
    with shows.compiling():
        done = run(learner, _pieces(source, table), keep=keep and in_memory, progress=shows.played, played=played)
    if doublings:
        doublings.close()
    return done


def _in_memory(source: Any) -> "Rounds | None":
    """All rounds of a stream; None if it is read in pieces."""
    from gaptron.streams import Stream  # noqa: PLC0415
    from gaptron.streams.rounds import Rounds  # noqa: PLC0415

    if isinstance(source, Stream):
        return Rounds(source.X, source.y, source.among, source.worth)
    whole: Rounds | None = getattr(source, "whole", None)
    return whole


class _Doublings:
    """Prints a line when the number of rounds has doubled."""

    def __init__(self) -> None:
        from gaptron.trace import Tally  # noqa: PLC0415

        self.all, self.recent, self.mark = Tally(), Tally(), 1
        typer.echo(f"{'rounds':>12} {'average':>9} {'recent':>9} {'expected':>9} {'top':>9}")

    def add(self, part: "Trace") -> None:
        self.all.add(part)
        self.recent.add(part)
        if self.all.rounds >= self.mark:
            self._line()
            self.mark = 2 * self.all.rounds

    def close(self) -> None:
        if self.recent.rounds:
            self._line()

    def _line(self) -> None:
        numbers = (
            self.all.mistakes / self.all.rounds,
            self.recent.mistakes / self.recent.rounds,
            self.all.expected_mistakes / self.all.rounds,
            self.all.top_mistakes / self.all.rounds,
        )
        typer.echo(f"{self.all.rounds:>12,} " + " ".join(f"{number:>9.5f}" for number in numbers))
        self.recent = type(self.recent)()


def _index_base(given: str, model: "Learner | None") -> str | int:
    """What features count from: as given, else as the model's own files did."""
    kept = None if model is None else model.reading.get("index_base")
    if kept is None:
        return given
    if given not in ("auto", str(kept)):
        raise SettingError(f"the model learned from files that count features from {kept}: leave out --index-base")
    return int(kept)


def _refuse_beside_load(context: typer.Context) -> None:
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "")
        if parameter.name in FIXED + ENCODED and given is not None and given.name != "DEFAULT":
            raise SettingError(f"--load goes on with a learner as it is: leave out {parameter.opts[0]}")


def _pieces(source: Any, table: bool) -> "Iterator[Rounds]":
    """The stream as it comes, cut at 1, 2, 4, ... rounds when every doubling gets a line."""
    done, mark = 0, 1
    for rounds, cut in _parts(source):
        start = 0
        while table and start < rounds and mark - done < rounds - start:
            stop = start + mark - done
            yield cut(slice(start, stop))
            done, start, mark = mark, stop, 2 * mark
        if start < rounds:
            yield cut(slice(start, None))
            done += rounds - start


def _parts(source: Any) -> "Iterator[tuple[int, Callable[[slice], Rounds]]]":
    """The parts that a stream is read in: how many rounds, and a function that cuts some of them out."""
    from gaptron.streams import Stream  # noqa: PLC0415
    from gaptron.streams.rounds import Rounds  # noqa: PLC0415
    from gaptron.streams.rows_by_name import RowsByName  # noqa: PLC0415

    if isinstance(source, RowsByName):
        for piece in source:
            yield len(piece.y), lambda rounds, piece=piece: piece.part(piece.X[rounds], rounds)  # type: ignore[misc]
        return

    def cut(part: Stream, rounds: slice) -> Rounds:
        part = part if rounds == slice(0, None) else part.part(rounds)
        return Rounds(part.checked, part.y, part.among, part.worth)

    for part in [source] if isinstance(source, Stream) else source.parts():
        yield part.n_rounds, functools.partial(cut, part)


def _account(learner: "Learner", source: Any, done: "Run", bound_asked: bool | None, rewarded: bool) -> dict[str, Any]:
    """Everything the summary shows, as one object."""
    from gaptron.experiments import account  # noqa: PLC0415
    from gaptron.experiments.run import best_reward, labels  # noqa: PLC0415
    from gaptron.high_probability import any_time  # noqa: PLC0415
    from gaptron.streams import Stream  # noqa: PLC0415
    from gaptron.types import Feedback  # noqa: PLC0415

    problem, (tally, trace, notes, seconds) = learner.problem, done
    bound, reason, sure, whole = None, None, None, _in_memory(source)
    if bound_asked is False:
        reason = "not asked for (--no-bound)"
    elif trace is None or whole is None:
        reason = "it needs the whole stream in memory, and this one was read as it was played: say --bound (no --chunk)"
    else:
        bound, reason = account.bound(learner, whole.X, labels(learner, whole.y), trace)
    said, unsaid = account.observed_by(learner)
    if problem.feedback is Feedback.FULL:
        sure = {"mistakes": any_time(tally.expected_mistakes, tally.variance, DELTA), "delta": DELTA}
    return {
        "stream": source.name,
        "prepared": list(source.prepared),
        "notes": list(source.notes),
        "algorithm": learner.algorithm,
        "feedback": problem.feedback.word,
        "loss": problem.loss.word,
        "n_classes": problem.n_classes,
        "n_features": problem.n_features if learner.features is None else len(source.columns or learner.features),
        "norm": problem.norm,
        "radius": problem.radius,
        "horizon": problem.horizon,
        "settings": account.settings(learner),
        "rounds": tally.rounds,
        "mistakes": tally.mistakes,
        "expected_mistakes": tally.expected_mistakes,
        "top_mistakes": tally.top_mistakes,
        "reward": tally.reward if rewarded else None,
        "best_reward": best_reward(source.worth, source.y) if isinstance(source, Stream) else None,
        "rounds_per_second": tally.rounds / seconds if seconds else None,
        "sure_below": sure,
        "certificate": account.certificate(learner, tally, notes),
        "observed": said,
        "why_not_observed": unsaid,
        "advice": None if learner.advice is None else learner.advice._asdict(),
        "bound": bound,
        "why_no_bound": reason,
    }


def _show(summary: dict[str, Any], found: list[str], verbose: bool) -> None:
    T, full = summary["rounds"], summary["feedback"] == "full"

    def line(name: str, number: float, remark: str = "", digits: int = 0) -> None:
        typer.echo(f"{name:<27}{number:>14,.{digits}f}  {number / T:>8.2%}  {remark}".rstrip())

    typer.echo(f"{summary['stream']}: {T:,} rounds, {summary['n_features']:,} features, {summary['n_classes']} classes")
    for remark in [*summary["prepared"], *summary["notes"], *found]:
        typer.echo(f"  {remark}")
    called = "" if summary["label"] is None else f" {summary['label']}"
    spread = f"  label{called}: {shares(summary['classes'], T)}"
    typer.echo(textwrap.fill(spread, 80, subsequent_indent="    ", break_long_words=False))
    typer.echo(f"{summary['algorithm']}, {summary['loss']} loss, {'full information' if full else 'bandit feedback'}\n")
    line("mistakes", summary["mistakes"])
    if summary["last_quarter"] is not None:
        late = summary["last_quarter"]
        typer.echo(f"{'  in the last quarter':<27}{late['mistakes']:>14,}  {late['mistakes'] / late['rounds']:>8.2%}")
    commonest = max(summary["classes"], key=lambda each: each["rounds"])
    line("always the commonest label", T - commonest["rounds"], f"{commonest['label']}, known only in hindsight")
    exact = "exact: free of the luck of the draws" if full else "an unbiased estimate of the mean"
    line("expected mistakes", summary["expected_mistakes"], exact, 1)
    if summary["sure_below"]:
        remark = f"with probability {1 - summary['sure_below']['delta']:.0%}, at every round, whatever the data did"
        line("mistakes stay below", summary["sure_below"]["mistakes"], remark, 1)
    line("mistakes of the top label", summary["top_mistakes"])
    if summary["reward"] is not None:
        best = summary["best_reward"]
        line("reward earned", summary["reward"], "" if not best else f"{summary['reward'] / best:.1%} of the best", 1)
    for pair in summary["confused"]:
        typer.echo(f"  {pair['truth']} taken for {pair['top']}: {pair['rounds']:,} times")
    bound = summary["bound"]
    if bound is None:
        typer.echo(f"bound: none; {summary['why_no_bound']}")
    else:
        line("bound on expected mistakes", bound["value"], f"{bound['used']:.1%} of it used", 1)
        line("  loss of the best U", bound["comparator_loss"], f"‖U‖ = {bound['comparator_norm']:.4g}", 1)
        line("  regret", bound["regret"], bound["theorem"], 1)
        if not full:
            typer.echo("  on the mean over the draws, for a U fixed before them")
        if summary["columns"] is not None:
            typer.echo("  against linear rules on the encoded columns, which are fixed before each draw")
        if bound["value"] >= T:
            typer.echo("  larger than the number of rounds: it says nothing yet")
            typer.echo(_what_would_prove(summary["would_prove"]))
    said = summary["observed"]
    if summary["why_not_observed"]:
        typer.echo(f"observed: nothing; {summary['why_not_observed']}")
    if said is not None:
        typer.echo(f"observed: {said['sentence']}")
        typer.echo("  if each label that was confirmed was the only right one; of log loss, not of mistakes")
    if verbose:
        _show_more(summary)
    if summary["rounds_per_second"]:
        typer.echo(f"speed: {summary['rounds_per_second']:,.0f} rounds/s")


def _provable(
    learner: "Learner", source: Any, done: "Run", bound: dict[str, Any] | None, declared: Any, *, quiet: bool
) -> Any:
    """Which certificate says something where the bound says nothing; None: not looked for, {}: none does."""
    whole = _in_memory(source)
    if bound is None or bound["value"] < done.tally.rounds or whole is None or done.seconds > QUICK:
        return None
    from rich.console import Console  # noqa: PLC0415

    from gaptron.experiments.provable import what_would_prove  # noqa: PLC0415

    features = rows_by_name.declared(*declared) if declared else None
    said = "looking for a certificate that says something"
    with contextlib.nullcontext() if quiet else Console(stderr=True).status(said):
        return what_would_prove(learner.problem, whole.X, whole.y, features, whole.among) or {}


def _what_would_prove(found: dict[str, Any] | None) -> str:
    if found is None:
        return "  another loss may say something: try --algorithm and --loss, or gaptron compare --bounds first"
    if not found:
        return "  nor does that of any other certificate: this stream is too hard, or too short, for a proof"
    return (
        f"  --algorithm {found['algorithm']} --loss {found['loss']} would prove something here: at most "
        f"{found['value']:,.0f} expected mistakes"
    )


def _show_more(summary: dict[str, Any]) -> None:
    """What a user of the theory wants to know."""
    certificate = summary["certificate"]
    if certificate is not None:
        text = "certificate: Λ = {level:.4g}, ηX² = {step:.4g}, X = {norm:.4g}"
        if "explored" in certificate:
            text += "; {explored:.2%} of rounds explored"
        if "solved" in certificate:
            text += ", {solved:.2%} solved for λ"
        typer.echo(text.format(**certificate))
    advice = summary["advice"]
    if advice is not None:
        if summary["feedback"] == "full":
            typer.echo(f"what the certificate cost against the advice: {advice['cost']:.1f} mistakes")
        else:
            typer.echo(f"cost of the rounds without exploration: {advice['cost']:.1f}")
        heard = ", ".join(f"{name} {weight:.2f}" for name, weight in advice["heard"].items())
        typer.echo(f"weights of the advice: {heard}")
    typer.echo(settings.line(summary["settings"]))


def _only_feedback(algorithm: str) -> str:
    """Full information, unless the algorithm knows bandit feedback alone."""
    from gaptron.algorithms import load  # noqa: PLC0415

    first: str = load(algorithm).CARD.feedback[0].word
    return first
