"""`gaptron evaluate`: off-policy evaluation of a learner or a policy on logged decisions."""

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from gaptron.cli import action_options, options, settings
from gaptron.cli.learned_from import has_learned_from
from gaptron.cli.lines import print_line
from gaptron.cli.serve import without_password
from gaptron.cli.table import show
from gaptron.errors import InputError, SettingError, StreamError

if TYPE_CHECKING:
    from gaptron import Learner
    from gaptron.offpolicy import ActionLog, Estimate, Log, OffPolicyEstimate

    AnyLog = Log | ActionLog
    OneLog = TypeVar("OneLog", Log, ActionLog)

METHODS = {
    "frozen": "evaluated on every round, without learning",
    "learning": "learns from every round, evaluated just before each",
    "holdout": "learns from the first part of the log, evaluated on the rest without learning",
    "replay": "learns from its own decisions, in the rounds where they agree with the log",
}
DATA, LEARN, SHOW = map(options.panel, ("Reading the log", "Learning", "Output"))
APPLICABLE = (  # with --actions
    *(
        "log",
        "model",
        "algorithm",
        "load",
        "method",
        "split",
        "horizon",
        "set_",
        "seed",
        "format_",
        "skip_damaged",
        "reward",
    ),
    *("observed", "level", "json_"),
)
SEARCHED = 10_000_000  # search for the best rule if numbers in the log × labels do not exceed this
LISTED = 8  # labels in an error message
SHORT = 100  # do not recommend a replay of fewer rounds


def evaluate(
    context: typer.Context,
    log: Annotated[
        str, typer.Argument(help="A file of logged decisions, - for standard input, or the store of a service.")
    ],
    algorithm: Annotated[
        str, LEARN("--algorithm", "-a", help=f"Evaluate a new learner; default: {options.DEFAULT_ALGORITHM}.")
    ] = "",
    load: Annotated[
        str, LEARN(metavar="MODEL", help="Evaluate a saved model that has not learned from this log.")
    ] = "",
    probabilities: Annotated[
        str,
        LEARN(
            metavar="FIELD", help="Evaluate your own policy: the field of the log (.npz: array) with its probabilities."
        ),
    ] = "",
    method: Annotated[
        str,
        LEARN(
            help="learning (from every round; the default with -a), holdout (from the first part of the log), replay "
            "(its own decisions), or frozen (no learning; the default with --load and --probabilities)."
        ),
    ] = "",
    split: Annotated[float, LEARN(help="holdout: share of the log, from its start, to learn from.")] = 0.5,
    loss: Annotated[str, options.loss(LEARN)] = "",
    norm: Annotated[float | None, options.norm(LEARN)] = None,
    radius: Annotated[float | None, options.radius(LEARN)] = None,
    horizon: Annotated[int | None, LEARN(help="Number of rounds; by default those learned from.")] = None,
    set_: Annotated[list[str] | None, options.setting(LEARN)] = None,
    seed: Annotated[int, options.seed(LEARN)] = 0,
    format_: Annotated[
        str, DATA("--format", help="csv, tsv, parquet, jsonl, dsjson, vw or obp; by default from the extension.")
    ] = "",
    features: Annotated[int | None, DATA(min=1, help="Number of features (dsjson, vw).")] = None,
    actions: Annotated[bool, action_options.flag()] = False,
    reward: Annotated[
        str, action_options.ACTIONS(metavar="COLUMN", help="Tables: the column with the reward. Default: reward.")
    ] = "",
    costs: Annotated[str, action_options.role("costs")] = "",
    id_: Annotated[str, action_options.role("id_")] = "",
    round_: Annotated[str, action_options.role("round_")] = "",
    action: Annotated[str, action_options.role("action")] = "",
    propensity: Annotated[str, action_options.role("propensity")] = "",
    played: Annotated[str, action_options.role("played")] = "",
    right: Annotated[str, action_options.role("right")] = "",
    in_context: Annotated[str, action_options.role("in_context")] = "",
    model: Annotated[str, DATA(help="The model in a service's store, if it has several.")] = "",
    skip_damaged: Annotated[bool, options.skip_damaged(DATA)] = False,
    observed: Annotated[
        bool, SHOW("--observed/--no-observed", help="Show what the feedback in the log proves about every linear rule.")
    ] = True,
    level: Annotated[float, SHOW(help="Confidence level of the intervals.")] = 0.95,
    json_: Annotated[bool, options.as_json(SHOW)] = False,
) -> None:
    """Estimate from logged decisions how often another policy would have been wrong.

    gaptron evaluate log.csv --action shown --propensity p --reward clicked

    gaptron evaluate decisions.jsonl.gz -a squarecb

    gaptron evaluate decisions.dsjson -a frugal-gaptron --method holdout --split 0.7

    gaptron evaluate uniform.npz -a banditron --set gamma=0.1 --method replay

    gaptron evaluate gaptron-serve --model triage -a squarecb

    gaptron evaluate decisions.jsonl --load model.gaptron

    gaptron evaluate decisions.jsonl --probabilities mine

    gaptron evaluate clicks.dsjson --actions -a squarecb
    """
    action_options.check_applicable(context, actions, APPLICABLE, of_logs=("action", "propensity", "costs"))
    if not (algorithm or load or probabilities):
        algorithm = options.DEFAULT_ALGORITHM
    method = method or ("learning" if algorithm else "frozen")
    for_new = {"--loss": loss, "--norm": norm, "--radius": radius, "--horizon": horizon, "--set": set_}
    _check_options(algorithm, load, probabilities, method, [option for option, value in for_new.items() if value])
    if not 0.0 < split < 1.0:
        raise SettingError(f"--split {split:g} must lie between 0 and 1")
    is_store = bool(model) or os.path.isdir(log) or "://" in log
    if is_store and probabilities:
        raise SettingError("--probabilities: a service's store has no such field; export its log and add the field")
    saved = _load(load) if load else None
    logged: Log | ActionLog
    if is_store:
        logged, damage = _open_store(log, model, actions)
    elif actions:
        roles = {name: context.params[name] for name in action_options.ROLES}
        damaged = "skip" if skip_damaged else "refuse"
        logged, damage = _open_actions(action_options.ActionFile(log, format_, reward, None, damaged, roles), saved)
    else:
        reading: dict[str, Any] = {
            "format": format_ or None,
            "n_features": features,
            "column": probabilities or None,
            "costs": costs or None,
            "classes": None if saved is None else saved.classes,
        }
        roles = {"action": action, "propensity": propensity, "reward": reward}
        logged, damage = _open(log, skip_damaged, reading | {k: options.read_column(v) for k, v in roles.items()})
    first = int(split * logged.n_rounds)
    if method == "holdout" and not 0 < first < logged.n_rounds:
        raise SettingError(f"--split {split:g} leaves one part of the {logged.n_rounds} rounds empty")
    replayed = max(1, round(logged.smallest_propensity * logged.n_rounds))  # expected rounds of a replay
    learner = saved
    if saved is not None:
        _check_loaded(saved, load, logged)
        if has_learned_from(saved, log):
            damage = [*damage, f"{load} learned from {logged.name}, so that its mistakes elsewhere are underestimated"]
    elif algorithm:
        learner = _learner(
            algorithm,
            logged,
            loss=loss or None,
            norm=norm,
            radius=radius,
            horizon=horizon or {"learning": logged.n_rounds, "holdout": first, "replay": replayed}[method],
            seed=seed,
            **settings.read(set_ or []),
        )
    result = _evaluate(learner, logged, method, first, level, seed)
    policy = load or (f"probabilities in {probabilities!r}" if probabilities else algorithm)
    report = _report(learner, policy, logged, method, result, replayed, damage) | _observed(logged, observed)
    if json_:
        for warning in report["warnings"]:
            typer.echo(f"gaptron: warning: {warning}", err=True)
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        _summary(report)


def _check_options(algorithm: str, load: str, probabilities: str, method: str, for_new: list[str]) -> None:
    """Refuse options that do not fit together."""
    if (bool(algorithm), bool(load), bool(probabilities)).count(True) > 1:
        raise SettingError(
            "give only one of --algorithm (a new learner), --load (a saved model) and --probabilities (your own policy)"
        )
    if method not in METHODS:
        raise SettingError(f"--method {method!r} must be one of {', '.join(METHODS)}")
    if algorithm and method == "frozen":
        raise SettingError("--method frozen is for a model that has already learned: give one with --load")
    if probabilities and method != "frozen":
        raise SettingError(f"--method {method}: your own policy does not learn here; leave out --method")
    if not algorithm and for_new:
        raise SettingError(f"{for_new[0]} is only for a new learner (--algorithm)")


def _open_store(place: str, model: str, actions: bool) -> "tuple[AnyLog, list[str]]":
    """Read the decisions with feedback of one model of a service; `actions`: it must be one with actions."""
    from gaptron.offpolicy import ActionLog, open_log  # noqa: PLC0415
    from gaptron.serve.export import has_actions, lines  # noqa: PLC0415
    from gaptron.serve.store import living, open_store  # noqa: PLC0415
    from gaptron.streams.actions import open_actions  # noqa: PLC0415

    store = open_store(place)
    try:
        known = list(living(store))
        if not model and len(known) == 1:
            model = known[0]
        if model not in known:
            problem = f"--model {model}: not found in {place}" if model else "give --model NAME"
            raise SettingError(f"{problem}; available models: {', '.join(known) or 'none'}")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"{model}.jsonl")
            with open(path, "wb") as file:
                file.writelines(lines(store, model, "jsonl", store.last()[0]))
            name = f"{without_password(place)}: {model}"
            if has_actions(store, model):
                return ActionLog(replace(open_actions(path), name=name)), []
            if actions:
                raise SettingError(f"--actions: {model} chooses between labels")
            return replace(open_log(path), name=name), []
    finally:
        store.close()


def _open(path: str, skip_damaged: bool, reading: dict[str, Any]) -> "tuple[Log, list[str]]":
    """Read a log file; also return warnings about damaged lines."""
    from gaptron.offpolicy import open_log  # noqa: PLC0415

    damaged = "skip" if skip_damaged else "refuse"
    return _with_damage(lambda: open_log(path, damaged=damaged, **reading), skip_damaged)


def _open_actions(file: action_options.ActionFile, model: "Learner | None") -> "tuple[ActionLog, list[str]]":
    """Read a log of decisions between named actions; also return warnings about damaged lines."""
    from gaptron.offpolicy import ActionLog  # noqa: PLC0415

    return _with_damage(lambda: ActionLog(file.open(model)), file.damaged == "skip")


def _with_damage(read: "Callable[[], OneLog]", skip_damaged: bool) -> "tuple[OneLog, list[str]]":
    from gaptron.streams.json_lines import DamagedLineError, DamagedLogWarning  # noqa: PLC0415

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DamagedLogWarning)
        try:
            log = read()
        except DamagedLineError as problem:
            hint = "" if skip_damaged else "; --skip-damaged skips lines that cannot be read"
            raise StreamError(problem.source, f"{problem.problem}{hint}", problem.line) from None
    return log, [str(warning.message) for warning in caught if issubclass(warning.category, DamagedLogWarning)]


def _learner(algorithm: str, log: "AnyLog", *, norm: float | None, **options: Any) -> "Learner":
    from gaptron.learner import Learner  # noqa: PLC0415
    from gaptron.offpolicy import Log  # noqa: PLC0415

    inputs: dict[str, Any]
    if isinstance(log, Log):
        inputs = {"classes": log.classes, "n_features": log.n_features, "norm": norm or log.norm or None}
    else:
        inputs = {"actions": True, "features": action_options.declared(log.stream)}
    return Learner(algorithm, feedback="bandit", **inputs, **options)


def _load(path: str) -> "Learner":
    from gaptron.learner import Learner  # noqa: PLC0415

    return Learner.load(path)


def _check_loaded(learner: "Learner", path: str, log: "AnyLog") -> None:
    """Refuse a model that cannot be evaluated on this log."""
    from gaptron.offpolicy import Log  # noqa: PLC0415

    if not isinstance(log, Log):
        log.examples_for(learner)
        return
    if learner.problem.actions:
        raise SettingError(f"{path} chooses between actions with features: add --actions")
    if learner.features is not None and log.feature_dicts is None:
        raise SettingError(
            f"{path} takes features by name, but {log.name} has numbers, so it cannot evaluate this model"
        )
    if learner.features is None and log.feature_dicts is not None:
        raise SettingError(
            f"{path} takes numbers, but {log.name} has features by name, so it cannot evaluate this model"
        )
    if set(learner.classes) != set(log.classes):
        raise SettingError(f"{path} has the labels {_some(learner.classes)}, but {log.name} has {_some(log.classes)}")
    if learner.classes != log.classes:
        raise SettingError(f"{path} has the labels of {log.name} in another order: {_some(learner.classes)}")


def _some(labels: Sequence[Any]) -> str:
    return ", ".join(map(str, labels[:LISTED])) + (f" and {len(labels) - LISTED} more" if len(labels) > LISTED else "")


def _evaluate(
    learner: "Learner | None", log: "AnyLog", method: str, first: int, level: float, seed: int
) -> "OffPolicyEstimate":
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from gaptron.offpolicy import evaluate_frozen, evaluate_learning, evaluate_policy, replay  # noqa: PLC0415

    if learner is None:
        return evaluate_policy(log, level=level)  # type: ignore[arg-type]  # --probabilities is for labels
    if method == "frozen":
        return evaluate_frozen(learner, log, level=level)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("learning", total=first if method == "holdout" else log.n_rounds)
        step = partial(bar.advance, task)
        if method == "replay":
            return replay(learner, log, level=level, seed=seed, progress=step)
        if method == "learning":
            return evaluate_learning(learner, log, level=level, progress=step)
        evaluate_learning(learner, log[:first], level=level, progress=step)
        return evaluate_frozen(learner, log[first:], level=level)


def _report(
    learner: "Learner | None",
    policy: str,
    log: "AnyLog",
    method: str,
    result: "OffPolicyEstimate",
    replayed: int,
    damage: list[str],
) -> dict[str, Any]:
    """Return everything that the summary shows, as one JSON object."""

    def plain(estimate: "Estimate") -> dict[str, float]:
        return {"mistakes": estimate.mistakes, "low": estimate.low, "high": estimate.high}

    return {
        "log": log.name,
        "n_rounds": log.n_rounds,
        **_size(log),
        "policy": policy,
        "algorithm": learner.algorithm if learner else None,
        "method": method,
        "settings": settings.account(learner) if learner else None,
        "evaluated_rounds": result.rounds,
        "used_rounds": result.used,
        "level": result.level,
        "logged": plain(result.logged),
        "estimates": {estimate.name: plain(estimate) for estimate in result.estimates},
        "proven": plain(result.proven),
        "effective_rounds": result.effective_rounds,
        "mean_weight": float(result.weights.mean()),
        "largest_weight": float(result.weights.max()),
        "smallest_propensity": log.smallest_propensity,
        "unsupported": result.unsupported,
        "expected_replay_rounds": replayed,
        "conclusion": result.conclusion,
        "warnings": [*damage, *result.warnings],
    }


def _size(log: "AnyLog") -> dict[str, Any]:
    from gaptron.offpolicy import Log  # noqa: PLC0415

    if isinstance(log, Log):
        return {"n_features": log.n_features, "n_classes": log.n_classes}
    return {"n_actions": log.n_actions, "notes": list(log.stream.notes)}


def _observed(log: "AnyLog", wanted: bool) -> dict[str, Any]:
    """What the feedback proves about linear rules; the best rule is searched for where that takes seconds."""
    from gaptron.learner import describe  # noqa: PLC0415
    from gaptron.offpolicy import Log, observe  # noqa: PLC0415

    if not wanted or not isinstance(log, Log):
        return {"observed": None, "observed_unavailable": None}
    small = log.n_classes * max(getattr(log.X, "nnz", log.X.size), log.n_features) <= SEARCHED
    try:
        return {"observed": describe.observed(observe(log, search=small)), "observed_unavailable": None}
    except InputError as problem:
        return {"observed": None, "observed_unavailable": str(problem)}


def _summary(report: dict[str, Any]) -> None:
    T, method = report["evaluated_rounds"], report["method"]
    if "n_actions" in report:
        size = f"{report['n_actions']:,} actions in all; a mistake is 1 - reward"
    else:
        size = f"{report['n_features']:,} features, {report['n_classes']} classes"
    print_line(f"{report['log']}: {report['n_rounds']:,} rounds, {size}")
    for note in report.get("notes", []):
        print_line(f"  {note}")
    print_line(f"{report['policy']}: {METHODS[method]}")
    typer.echo()
    named = {"logged policy": report["logged"], **report["estimates"], "proven interval": report["proven"]}
    remarks = {
        "logged policy": f"all {T:,} rounds" if method == "replay" else f"on the same {T:,} rounds",
        "replay": f"{report['used_rounds']:,} of {T:,} rounds kept",
        "proven interval": "the others are approximate",
    }
    rows = [("", "mistakes", f"{100 * report['level']:g}% interval", "")]
    for name, estimate in named.items():
        interval = f"{estimate['low']:.2%} to {estimate['high']:.2%}"
        rows.append(
            (name, "" if name == "proven interval" else f"{estimate['mistakes']:.2%}", interval, remarks.get(name, ""))
        )
    show(rows)
    typer.echo()
    _explain_proven(report)
    if method != "replay":  # whose weights are all 1
        print_line(
            f"weights: mean {report['mean_weight']:.3f} (expected: 1), largest {report['largest_weight']:.4g}; "
            f"effective rounds: {report['effective_rounds']:,.0f}"
        )
        if method != "frozen":
            _suggest_replay(report["expected_replay_rounds"])
    if report["observed_unavailable"]:
        print_line(f"observed in the log: not available; {report['observed_unavailable']}")
    elif report["observed"]:
        print_line(f"observed in the log: {report['observed']['sentence']}")
        print_line(
            "  if each label confirmed as correct was the only correct one; a bound on log loss, not on mistakes"
        )
    if report["settings"]:
        print_line(settings.line(report["settings"]))
    for warning in report["warnings"]:
        print_line(f"warning: {warning}")
    print_line(f"conclusion: {report['conclusion']}")


def _explain_proven(report: dict[str, Any]) -> None:
    proven = report["proven"]
    if not proven["low"] <= proven["mistakes"] <= proven["high"]:
        print_line(
            "the proven interval does not contain the first estimate: it combines a bound from mistakes and one from "
            "rewards, which disagree where the weights do not average 1"
        )


def _suggest_replay(rounds: int) -> None:
    simulation = "to simulate its own decisions, use --method replay"
    if rounds < SHORT:
        print_line(f"{simulation}; this log explores too little for it (about {rounds:,} rounds)")
    else:
        print_line(f"{simulation} (about {rounds:,} rounds)")
