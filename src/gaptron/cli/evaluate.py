"""`gaptron evaluate`: what logged decisions say of a learner that did not make them."""

import json
import os
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaptron.cli import options, settings
from gaptron.cli.serve import without_password
from gaptron.cli.table import show
from gaptron.errors import InputError, SettingError, StreamError

if TYPE_CHECKING:
    from gaptron import Learner
    from gaptron.logged import Estimate, Log, Verdict

WAYS = {
    "as-is": "as it is: judged on every round, learning nothing",
    "taught": "taught by the log: judged on every round, then given its answer",
    "frozen": "taught by the first part of the log, frozen, and judged on the rest",
    "replay": "from scratch, deciding for itself, on the rounds the log can answer",
}
DATA, LEARN, SHOW = "Reading the log", "Learning", "Output"
SEARCHED = 10_000_000  # numbers in the log, times labels, up to which the best rule is looked for
NAMED = 8  # labels in an error
SHORT = 100  # rounds of a replay that are too few to recommend one


def evaluate(
    log: Annotated[
        str, typer.Argument(help="A file of logged decisions, - for standard input, or the store of a service.")
    ],
    algorithm: Annotated[
        str, typer.Option("--algorithm", "-a", help="Judge a new learner.", rich_help_panel=LEARN)
    ] = "",
    load: Annotated[
        str, typer.Option(metavar="MODEL", help="Judge a saved model, that did not learn here.", rich_help_panel=LEARN)
    ] = "",
    probabilities: Annotated[
        str,
        typer.Option(
            metavar="FIELD",
            help="Judge a policy of your own: the field of the log (.npz: array) with its probabilities.",
            rich_help_panel=LEARN,
        ),
    ] = "",
    way: Annotated[
        str,
        typer.Option(
            help="How it learns from the log: taught (from every line; with -a the default), frozen (from the first "
            "part), replay or, with --load, as-is.",
            rich_help_panel=LEARN,
        ),
    ] = "",
    split: Annotated[
        float, typer.Option(help="frozen: the share of the log, from its start, that teaches.", rich_help_panel=LEARN)
    ] = 0.5,
    loss: Annotated[str, options.loss(LEARN)] = "",
    norm: Annotated[float | None, options.norm(LEARN)] = None,
    radius: Annotated[float | None, options.radius(LEARN)] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Number of rounds; by default those it learns from.", rich_help_panel=LEARN)
    ] = None,
    set_: Annotated[list[str] | None, options.setting(LEARN)] = None,
    seed: Annotated[int, options.seed(LEARN)] = 0,
    format_: Annotated[
        str, typer.Option("--format", help="jsonl, dsjson or obp; by default from the extension.", rich_help_panel=DATA)
    ] = "",
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features (dsjson).", rich_help_panel=DATA)
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="Of a service's store: whose decisions, if it has several.", rich_help_panel=DATA),
    ] = "",
    skip_damaged: Annotated[
        bool,
        typer.Option("--skip-damaged", help="Pass over lines that cannot be read; name them.", rich_help_panel=DATA),
    ] = False,
    observed: Annotated[
        bool,
        typer.Option(
            "--observed/--no-observed",
            help="Say what the log's answers prove of every linear rule.",
            rich_help_panel=SHOW,
        ),
    ] = True,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.", rich_help_panel=SHOW)] = 0.95,
    json_: Annotated[bool, options.as_json(SHOW)] = False,
) -> None:
    """Estimate from logged decisions how often another learner would have been wrong.

    gaptron evaluate decisions.jsonl.gz -a squarecb

    gaptron evaluate decisions.dsjson -a frugal-gaptron --way frozen --split 0.7

    gaptron evaluate uniform.npz -a banditron --set gamma=0.1 --way replay

    gaptron evaluate gaptron-serve --model triage -a squarecb

    gaptron evaluate decisions.jsonl --load model.gaptron

    gaptron evaluate decisions.jsonl --probabilities mine
    """
    way = way or ("taught" if algorithm else "as-is")
    for_new = {"--loss": loss, "--norm": norm, "--radius": radius, "--horizon": horizon, "--set": set_}
    _check_asked(algorithm, load, probabilities, way, [option for option, value in for_new.items() if value])
    if not 0.0 < split < 1.0:
        raise SettingError(f"--split {split:g} must lie between 0 and 1")
    is_store = bool(model) or os.path.isdir(log) or "://" in log
    if is_store and probabilities:
        raise SettingError("--probabilities: a service's store has no field of your own; export its log and add one")
    if is_store:
        logged, damage = _open_store(log, model)
    else:
        logged, damage = _open(log, format_ or None, features, skip_damaged, probabilities or None)
    first = int(split * logged.n_rounds)
    if way == "frozen" and not 0 < first < logged.n_rounds:
        raise SettingError(f"--split {split:g} leaves no round on one side of {logged.n_rounds}")
    replayed = max(1, round(logged.least * logged.n_rounds))  # about so many rounds a replay would keep
    learner = None
    if load:
        learner = _loaded(load, logged)
    elif algorithm:
        learner = _learner(
            algorithm,
            logged,
            loss=loss or None,
            norm=norm or logged.norm or None,
            radius=radius,
            horizon=horizon or {"taught": logged.n_rounds, "frozen": first, "replay": replayed}[way],
            seed=seed,
            **settings.read(set_ or []),
        )
    verdict = _verdict(learner, logged, way, first, level, seed)
    judged = load or (f"probabilities in {probabilities!r}" if probabilities else algorithm)
    report = _report(learner, judged, logged, way, verdict, replayed, damage) | _observed(logged, observed)
    if json_:
        for warning in report["warnings"]:
            typer.echo(f"gaptron: warning: {warning}", err=True)
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        _summary(report)


def _check_asked(algorithm: str, load: str, probabilities: str, way: str, for_new: list[str]) -> None:
    """Refuse to judge nothing, two things at once, or what does not learn by how it learns."""
    if (bool(algorithm), bool(load), bool(probabilities)).count(True) != 1:
        raise SettingError(
            "say what to judge: a new learner with --algorithm, a saved model with --load, or a policy of your own "
            "with --probabilities; one of them"
        )
    if way not in WAYS:
        raise SettingError(f"--way {way!r} must be one of {', '.join(WAYS)}")
    if algorithm and way == "as-is":
        raise SettingError("--way as-is is for a model that has learned: give one with --load")
    if probabilities and way != "as-is":
        raise SettingError(f"--way {way}: probabilities of your own learn nothing here, they are judged as they are")
    if not algorithm and for_new:
        raise SettingError(f"{for_new[0]} is for a new learner (--algorithm): what is judged here is as it is")


def _open_store(place: str, model: str) -> "tuple[Log, list[str]]":
    """The answered decisions of one model of a service, of which nothing is left out."""
    from gaptron.logged import open_log  # noqa: PLC0415
    from gaptron.serve.export import lines  # noqa: PLC0415
    from gaptron.serve.store import open_store  # noqa: PLC0415

    store = open_store(place)
    try:
        known = [name for name, _ in store.models()]
        if not model and len(known) == 1:
            model = known[0]
        if model not in known:
            said = f"--model {model}: {place} has no such model" if model else "say --model NAME: which of the models"
            raise SettingError(f"{said}; it has: {', '.join(known) or 'none'}")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"{model}.jsonl")
            with open(path, "wb") as file:
                file.writelines(lines(store, model, "jsonl", store.last()[0]))
            return replace(open_log(path), name=f"{without_password(place)}: {model}"), []
    finally:
        store.close()


def _open(
    path: str, form: str | None, features: int | None, skip_damaged: bool, column: str | None
) -> "tuple[Log, list[str]]":
    """The log, and what was left out of it."""
    from gaptron.logged import DamagedLogWarning, open_log  # noqa: PLC0415
    from gaptron.logged.lines import DamagedLineError  # noqa: PLC0415

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DamagedLogWarning)
        try:
            damaged = "skip" if skip_damaged else "refuse"
            log = open_log(path, format=form, n_features=features, damaged=damaged, column=column)
        except DamagedLineError as problem:
            hint = "" if skip_damaged else "; --skip-damaged passes over lines that cannot be read"
            raise StreamError(problem.source, f"{problem.problem}{hint}", problem.line) from None
    return log, [str(warning.message) for warning in caught if issubclass(warning.category, DamagedLogWarning)]


def _learner(algorithm: str, log: "Log", **options: Any) -> "Learner":
    from gaptron.learner import Learner  # noqa: PLC0415

    return Learner(algorithm, classes=log.classes, n_features=log.n_features, feedback="bandit", **options)


def _loaded(path: str, log: "Log") -> "Learner":
    from gaptron.learner import Learner  # noqa: PLC0415

    learner = Learner.load(path)
    if learner.features is not None and log.names is None:
        raise SettingError(f"{path} takes rows by name, and those of {log.name} are numbers: they cannot judge it")
    if learner.features is None and log.names is not None:
        raise SettingError(f"{path} takes rows of numbers, and those of {log.name} have names: they cannot judge it")
    if set(learner.classes) != set(log.classes):
        raise SettingError(
            f"{path} knows the labels {_few(learner.classes)}, {log.name} was logged with {_few(log.classes)}"
        )
    if learner.classes != log.classes:
        raise SettingError(f"{path} has the labels of {log.name} in another order: {_few(learner.classes)}")
    return learner


def _few(labels: Sequence[Any]) -> str:
    return ", ".join(map(str, labels[:NAMED])) + (f" and {len(labels) - NAMED} more" if len(labels) > NAMED else "")


def _verdict(learner: "Learner | None", log: "Log", way: str, first: int, level: float, seed: int) -> "Verdict":
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from gaptron.logged import judge, judge_policy, replay, teach  # noqa: PLC0415

    if learner is None:
        return judge_policy(log, level=level)
    if way == "as-is":
        return judge(learner, log, level=level)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("learning", total=first if way == "frozen" else log.n_rounds)
        step = partial(bar.advance, task)
        if way == "replay":
            return replay(learner, log, level=level, seed=seed, progress=step)
        if way == "taught":
            return teach(learner, log, level=level, progress=step)
        teach(learner, log[:first], level=level, progress=step)
        return judge(learner, log[first:], level=level)


def _report(
    learner: "Learner | None", judged: str, log: "Log", way: str, verdict: "Verdict", replayed: int, damage: list[str]
) -> dict[str, Any]:
    """Everything the summary says, as one object."""

    def plain(estimate: "Estimate") -> dict[str, float]:
        return {"mistakes": estimate.mistakes, "low": estimate.low, "high": estimate.high}

    return {
        "log": log.name,
        "n_rounds": log.n_rounds,
        "n_features": log.n_features,
        "n_classes": log.n_classes,
        "of": judged,
        "algorithm": learner.algorithm if learner else None,
        "way": way,
        "settings": settings.account(learner) if learner else None,
        "judged": verdict.rounds,
        "used": verdict.used,
        "level": verdict.level,
        "logged": plain(verdict.logged),
        "estimates": {estimate.name: plain(estimate) for estimate in verdict.estimates},
        "sure": plain(verdict.sure),
        "effective": verdict.effective,
        "mean_weight": float(verdict.weights.mean()),
        "heaviest_weight": float(verdict.weights.max()),
        "least_probability": log.least,
        "out_of_reach": verdict.out_of_reach,
        "replay_would_use": replayed,
        "conclusion": verdict.conclusion,
        "warnings": [*damage, *verdict.warnings],
    }


def _observed(log: "Log", asked: bool) -> dict[str, Any]:
    """What the log's own answers prove; the best rule is looked for where that takes seconds."""
    from gaptron.experiments import account  # noqa: PLC0415
    from gaptron.logged import observe  # noqa: PLC0415

    if not asked:
        return {"observed": None, "why_not_observed": None}
    small = log.n_classes * max(getattr(log.X, "nnz", log.X.size), log.n_features) <= SEARCHED
    try:
        return {"observed": account.observed(observe(log, search=small)), "why_not_observed": None}
    except InputError as problem:
        return {"observed": None, "why_not_observed": str(problem)}


def _summary(report: dict[str, Any]) -> None:
    T, way = report["judged"], report["way"]
    typer.echo(
        f"{report['log']}: {report['n_rounds']:,} rounds, {report['n_features']:,} features, "
        f"{report['n_classes']} classes"
    )
    typer.echo(f"{report['of']}, {WAYS[way]}\n")
    named = {"the log itself": report["logged"], **report["estimates"], "sure": report["sure"]}
    remarks = {
        "the log itself": "what was logged" if way == "replay" else f"on the same {T:,} rounds",
        "replay": f"{report['used']:,} rounds of {T:,} kept",
        "sure": "proved; the others approximate",
    }
    rows = [("", "mistakes", f"{100 * report['level']:g}% interval", "")]
    for name, estimate in named.items():
        interval = f"{estimate['low']:.2%} to {estimate['high']:.2%}"
        rows.append((name, "" if name == "sure" else f"{estimate['mistakes']:.2%}", interval, remarks.get(name, "")))
    show(rows)
    typer.echo()
    _explain_sure(report)
    if way != "replay":  # whose weights are all 1
        typer.echo(
            f"weights: mean {report['mean_weight']:.3f} (1 if all is well), heaviest {report['heaviest_weight']:.4g}; "
            f"worth {report['effective']:,.0f} rounds of its own"
        )
        if way != "as-is":
            _suggest_replay(report["replay_would_use"])
    if report["why_not_observed"]:
        typer.echo(f"observed in the log: nothing; {report['why_not_observed']}")
    elif report["observed"]:
        typer.echo(f"observed in the log: {report['observed']['sentence']}")
        typer.echo("  if each label that was confirmed was the only right one; of log loss, not of mistakes")
    if report["settings"]:
        typer.echo(settings.line(report["settings"]))
    for warning in report["warnings"]:
        typer.echo(f"warning: {warning}")
    typer.echo(f"verdict: {report['conclusion']}")


def _explain_sure(report: dict[str, Any]) -> None:
    sure = report["sure"]
    if not sure["low"] <= sure["mistakes"] <= sure["high"]:
        typer.echo(
            "the sure interval does not contain the first estimate: it is made of a bound from mistakes and one from "
            "rewards, which disagree where the weights do not average 1"
        )


def _suggest_replay(rounds: int) -> None:
    why_not = "not how it would have done deciding for itself: "
    if rounds < SHORT:
        typer.echo(f"{why_not}this log is too sure of its labels for --way replay (about {rounds:,} rounds)")
    else:
        typer.echo(f"{why_not}--way replay, about {rounds:,} rounds")
