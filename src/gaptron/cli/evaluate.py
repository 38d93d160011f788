"""`gaptron evaluate`: what logged decisions say of a learner that did not make them."""

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaptron.cli import settings
from gaptron.cli.table import show
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Learner
    from gaptron.logged import Estimate, Log, Verdict

WAYS = {
    "taught": "taught by the log: judged on every round, then told its answer",
    "frozen": "taught by the first part of the log, frozen, and judged on the rest",
    "replay": "from scratch, deciding for itself, on the rounds the log can answer",
}
DATA, LEARN, SHOW = "Reading the log", "Learning", "Output"


def evaluate(
    log: Annotated[str, typer.Argument(help="A file of logged decisions, or - for standard input.")],
    algorithm: Annotated[str, typer.Option("--algorithm", "-a", help="The learner to judge.", rich_help_panel=LEARN)],
    way: Annotated[str, typer.Option(help="taught, frozen or replay.", rich_help_panel=LEARN)] = "taught",
    split: Annotated[float, typer.Option(help="frozen: which part of the log teaches.", rich_help_panel=LEARN)] = 0.5,
    loss: Annotated[str, typer.Option(help="logistic, hinge or smooth-hinge.", rich_help_panel=LEARN)] = "",
    norm: Annotated[float | None, typer.Option(help="X ≥ ‖x‖; else measured.", rich_help_panel=LEARN)] = None,
    radius: Annotated[float | None, typer.Option(help="D ≥ ‖U‖.", rich_help_panel=LEARN)] = None,
    horizon: Annotated[int | None, typer.Option(help="T; else the rounds it learns.", rich_help_panel=LEARN)] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the algorithm.", rich_help_panel=LEARN),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For all draws.", rich_help_panel=LEARN)] = 0,
    format_: Annotated[
        str, typer.Option("--format", help="jsonl, dsjson or obp; else by extension.", rich_help_panel=DATA)
    ] = "",
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features (dsjson).", rich_help_panel=DATA)
    ] = None,
    level: Annotated[float, typer.Option(help="Of confidence of the intervals.", rich_help_panel=SHOW)] = 0.95,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.", rich_help_panel=SHOW)] = False,
) -> None:
    """Estimate from logged decisions how often another learner would have been wrong.

    gaptron evaluate decisions.jsonl.gz -a squarecb

    gaptron evaluate decisions.dsjson -a frugal-gaptron --way frozen --split 0.7

    gaptron evaluate uniform.npz -a banditron --set gamma=0.1 --way replay
    """
    from gaptron.logged import open_log  # noqa: PLC0415

    if way not in WAYS:
        raise SettingError(f"--way {way!r} must be one of {', '.join(WAYS)}")
    if not 0.0 < split < 1.0:
        raise SettingError(f"--split {split:g} must lie between 0 and 1")
    found = open_log(log, format=format_ or None, n_features=features)
    first = int(split * found.n_rounds)
    if way == "frozen" and not 0 < first < found.n_rounds:
        raise SettingError(f"--split {split:g} leaves no round on one side of {found.n_rounds}")
    own = max(1, round(found.least * found.n_rounds))  # about so many rounds a replay would keep
    learner = _learner(
        algorithm,
        found,
        loss=loss or None,
        norm=norm or found.norm or None,
        radius=radius,
        horizon=horizon or {"taught": found.n_rounds, "frozen": first, "replay": own}[way],
        seed=seed,
        **settings.read(set_ or []),
    )
    verdict = _verdict(learner, found, way, first, level, seed)
    said = _account(learner, found, way, verdict, own)
    if json_:
        typer.echo(json.dumps(said, ensure_ascii=False))
    else:
        _summary(said)


def _learner(algorithm: str, log: "Log", **options: Any) -> "Learner":
    from gaptron.learner import Learner  # noqa: PLC0415

    return Learner(algorithm, classes=log.classes, n_features=log.n_features, feedback="bandit", **options)


def _verdict(learner: "Learner", log: "Log", way: str, first: int, level: float, seed: int) -> "Verdict":
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from gaptron.logged import judge, replay, teach  # noqa: PLC0415

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


def _account(learner: "Learner", log: "Log", way: str, verdict: "Verdict", own: int) -> dict[str, Any]:
    """Everything the summary says, as one object."""

    def plain(estimate: "Estimate") -> dict[str, float]:
        return {"mistakes": estimate.mistakes, "low": estimate.low, "high": estimate.high}

    return {
        "log": log.name,
        "n_rounds": log.n_rounds,
        "n_features": log.n_features,
        "n_classes": log.n_classes,
        "algorithm": learner.algorithm,
        "way": way,
        "settings": settings.account(learner),
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
        "replay_would_use": own,
        "warnings": list(verdict.warnings),
    }


def _summary(said: dict[str, Any]) -> None:
    T, way = said["judged"], said["way"]
    typer.echo(
        f"{said['log']}: {said['n_rounds']:,} rounds, {said['n_features']:,} features, {said['n_classes']} classes"
    )
    typer.echo(f"{said['algorithm']}, {WAYS[way]}\n")
    named = {"the log itself": said["logged"], **said["estimates"], "sure": said["sure"]}
    remarks = {
        "the log itself": "what was logged" if way == "replay" else f"on the same {T:,} rounds",
        "replay": f"{said['used']:,} rounds of {T:,} kept",
        "sure": "proved; the others approximate",
    }
    rows = [("", "mistakes", f"{100 * said['level']:g}% interval", "")]
    for name, found in named.items():
        interval = f"{found['low']:.2%} to {found['high']:.2%}"
        rows.append((name, "" if name == "sure" else f"{found['mistakes']:.2%}", interval, remarks.get(name, "")))
    show(rows)
    typer.echo()
    if way == "replay":
        typer.echo(f"a run of {said['used']:,} rounds: to be compared with runs of that length")
    else:
        typer.echo(
            f"weights: mean {said['mean_weight']:.3f} (1 if all is well), heaviest {said['heaviest_weight']:.4g}; "
            f"worth {said['effective']:,.0f} rounds of its own"
        )
        typer.echo(
            f"not how it would have done deciding for itself: --way replay, about {said['replay_would_use']:,} rounds"
        )
    for warning in said["warnings"]:
        typer.echo(f"warning: {warning}")
    typer.echo(settings.line(said["settings"]))
