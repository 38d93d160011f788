"""`gaptron play --actions`: run a learner over rounds of named actions, or let it learn from a log of them."""

import json
import time
from typing import TYPE_CHECKING, Any

import typer

from gaptron.cli import settings
from gaptron.cli.action_options import ActionFile, declared, describe, remember
from gaptron.cli.columns import Before, before_file, columns_of_file, describe_columns
from gaptron.cli.learned_from import remember_file
from gaptron.cli.opening import LearnerOptions
from gaptron.cli.progress import progress_bar
from gaptron.cli.table import show as show_table
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Learner
    from gaptron.streams.actions import NamedRounds

APPLICABLE = (
    *("stream", "algorithm", "feedback", "set_", "seed", "load", "save", "format_", "reward", "column", "cross"),
    *("limit", "bound", "verbose", "json_"),
)
LEVEL = 0.95
BOUND_SOUGHT = 2_000_000  # search for the best rule if rounds × actions do not exceed this


def play_actions(
    file: ActionFile,
    options: LearnerOptions,
    model: "Learner | None",
    *,
    save: str,
    bound: bool | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Play the rounds of a file, and show how the learner did."""
    stream = file.open(model)
    learner = model or _create(options, stream)
    before = before_file(model)
    _check_feedback(learner, stream)
    with progress_bar(stream.name, enabled=not as_json) as bar, bar.compiling():
        bar.start_playing(stream.n_rounds, in_memory=True)
        found = _from_log(learner, stream, bar) if stream.kind == "played" else _play(learner, stream, bound, bar)
    if save:
        remember(learner, stream)
        remember_file(learner, file.path)
        learner.save(save)
    summary = _summary(learner, stream, before) | found
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        _show(summary, learner, stream, before, verbose)


def _create(options: LearnerOptions, stream: "NamedRounds") -> "Learner":
    from gaptron.learner import Learner  # noqa: PLC0415

    return Learner(
        options.algorithm,
        actions=True,
        features=declared(stream, options.features),
        feedback=options.feedback or ("full" if stream.kind == "right" else "bandit"),
        horizon=options.horizon or stream.n_rounds,
        seed=options.seed,
        **options.settings,
    )


def _check_feedback(learner: "Learner", stream: "NamedRounds") -> None:
    from gaptron.types import Feedback  # noqa: PLC0415

    if not learner.problem.actions or learner.features is None:
        raise SettingError("the model chooses between labels, or between actions in arrays: it cannot play this file")
    if learner.problem.feedback is Feedback.FULL and stream.kind != "right":
        raise SettingError(f"{stream.name} does not say which action is right: use --feedback bandit")


def _play(learner: "Learner", stream: "NamedRounds", bound: bool | None, bar: Any) -> dict[str, Any]:
    """Play rounds whose feedback is known for every action."""
    import numpy as np  # noqa: PLC0415

    from gaptron.experiments.run_task import MANY_RIGHT  # noqa: PLC0415
    from gaptron.learner import describe as described  # noqa: PLC0415

    rounds, right, rewards = stream.records, None, None
    starts, counts = stream.first[:-1], stream.counts
    if stream.kind == "right":
        right = [stream.action(t) for t in range(stream.n_rounds)]
        uniform, best = float((1.0 / counts).mean()), 1.0
    else:
        rewards = stream.reward
        uniform = float((np.add.reduceat(rewards, starts) / counts).mean())
        best = float(np.maximum.reduceat(rewards if stream.expected is None else stream.expected, starts).mean())
    learner.warm_up(rounds[:1], one_by_one=False)
    start = time.perf_counter()
    trace = learner.play(rounds, right, rewards=rewards, progress=bar.played)
    seconds = time.perf_counter() - start
    proved: dict[str, Any] | None = None
    why: str | None = "not computed (--no-bound)"
    if right is None:
        why = MANY_RIGHT
    elif bound or (bound is None and int(counts.sum()) <= BOUND_SOUGHT):
        proved, why = described.bound(learner, rounds, right, trace)
    earned = trace.reward if stream.expected is None else stream.expected[starts + trace.codes]
    late = trace.reward[stream.n_rounds - stream.n_rounds // 4 :]
    return {
        "reward": float(trace.reward.mean()),
        "last_quarter": float(late.mean()) if len(late) else None,
        "uniform": uniform,
        "best": best,
        "expected": stream.expected is not None,
        "share_of_best": float(earned.mean()) / best if best else None,
        "mistakes": trace.mistakes if right is not None else None,
        "bound": proved,
        "why_no_bound": why,
        "rounds_per_second": stream.n_rounds / seconds if seconds else None,
    }


def _from_log(learner: "Learner", stream: "NamedRounds", bar: Any) -> dict[str, Any]:
    """Learn from every decision of a log, and estimate what the learner would have earned just before each."""
    from gaptron.offpolicy import ActionLog, evaluate_learning, evaluate_uniform  # noqa: PLC0415

    log = ActionLog(stream)
    learner.warm_up(log.records[:1], play=False)
    start = time.perf_counter()
    result = evaluate_learning(learner, log, level=LEVEL, progress=bar.played)
    seconds = time.perf_counter() - start

    def plain(estimate: Any) -> dict[str, float]:
        return {"reward": 1.0 - estimate.mistakes, "low": 1.0 - estimate.high, "high": 1.0 - estimate.low}

    return {
        "estimated": {
            "logged policy": plain(result.logged),
            "uniform play": plain(evaluate_uniform(log, level=LEVEL).estimates[-1]),
            "the learner": plain(result.estimates[-1]),
        },
        "proven": plain(result.proven),
        "level": LEVEL,
        "conclusion": result.conclusion,
        "warnings": list(result.warnings),
        "rounds_per_second": stream.n_rounds / seconds if seconds else None,
    }


def _summary(learner: "Learner", stream: "NamedRounds", before: Before) -> dict[str, Any]:
    return {
        "stream": stream.name,
        "notes": list(stream.notes),
        "kind": stream.kind,
        "algorithm": learner.algorithm,
        "feedback": learner.problem.feedback.word,
        "settings": settings.account(learner),
        "rounds": stream.n_rounds,
        "actions": int(stream.counts.sum()),
        "columns": [column._asdict() for column in columns_of_file(learner, before)],
    }


def _show(summary: dict[str, Any], learner: "Learner", stream: "NamedRounds", before: Before, verbose: bool) -> None:
    typer.echo(describe(stream))
    columns = describe_columns(columns_of_file(learner, before), stream.n_rounds, before)
    for remark in [*summary["notes"], *columns]:
        typer.echo(f"  {remark}")
    full = summary["feedback"] == "full"
    typer.echo(f"{summary['algorithm']}, {'full information' if full else 'bandit feedback'}\n")
    if stream.kind == "played":
        _show_estimates(summary)
    else:
        _show_rewards(summary)
    if verbose:
        typer.echo(settings.line(summary["settings"]))
    if summary["rounds_per_second"]:
        typer.echo(f"speed: {summary['rounds_per_second']:,.0f} rounds/s")


def _show_rewards(summary: dict[str, Any]) -> None:
    def line(name: str, value: float | None, remark: str = "") -> None:
        if value is not None:
            typer.echo(f"{name:<27}{value:>9.4f}  {remark}".rstrip())

    share = summary["share_of_best"]
    line("mean reward", summary["reward"], "" if share is None else f"{share:.1%} of the best")
    line("  in the last quarter", summary["last_quarter"])
    line("uniform play", summary["uniform"])
    line("the best of each round", summary["best"], "on average" if summary["expected"] else "known only in hindsight")
    if summary["mistakes"] is not None:
        typer.echo(f"{'mistakes':<27}{summary['mistakes']:>9,}")
    bound = summary["bound"]
    if bound is not None:
        typer.echo(
            f"{'bound on expected mistakes':<27}{bound['value']:>9,.0f}  {bound['theorem']}; loss of the best rule "
            f"{bound['comparator_loss']:,.0f}, regret {bound['regret']:,.0f}"
        )
    else:
        typer.echo(f"bound: none; {summary['why_no_bound']}")


def _show_estimates(summary: dict[str, Any]) -> None:
    remarks = {"the learner": "while it learned from the log: doubly robust", "uniform play": "doubly robust"}
    rows = [("", "mean reward", f"{100 * summary['level']:g}% interval", "")]
    for name, found in summary["estimated"].items():
        interval = f"{found['low']:.4f} to {found['high']:.4f}"
        rows.append((name, f"{found['reward']:.4f}", interval, remarks.get(name, "")))
    proven = summary["proven"]
    rows.append(("  proven interval", "", f"{proven['low']:.4f} to {proven['high']:.4f}", "the others are approximate"))
    show_table(rows)
    typer.echo()
    for warning in summary["warnings"]:
        typer.echo(f"warning: {warning}")
    typer.echo(f"conclusion: {summary['conclusion']}")
