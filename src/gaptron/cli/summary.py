"""The summary of a run: mistakes, bound and certificate as plain values, and as text."""

import contextlib
import textwrap
from typing import TYPE_CHECKING, Any

import typer

from gaptron.cli import settings
from gaptron.cli.run_statistics import RunStatistics, frequencies
from gaptron.cli.running import whole_stream

if TYPE_CHECKING:
    from gaptron import Features, Learner
    from gaptron.cli.opening import AnyStream, Opened
    from gaptron.learner.playing import Run

MAX_SECONDS = 2.0  # of playing, up to which other certificates are tried
DELTA = 0.05


def summarize(opened: "Opened", run: "Run", statistics: RunStatistics, bound: bool | None) -> dict[str, Any]:
    """Return everything about a run as plain values.

    Args:
        opened: the learner and its stream, after the run.
        run: the result of playing.
        statistics: the counts of the run.
        bound: did the user ask for the bound? None: neither for nor against it.
    """
    from gaptron.learner import describe  # noqa: PLC0415
    from gaptron.learner.playing import best_reward  # noqa: PLC0415
    from gaptron.streams import Stream  # noqa: PLC0415
    from gaptron.streams.tables import TableStream  # noqa: PLC0415
    from gaptron.theory.high_probability import any_time  # noqa: PLC0415
    from gaptron.types import Feedback  # noqa: PLC0415

    learner, stream = opened.learner, opened.stream
    problem, tally = learner.problem, run.tally
    proved, no_bound = _bound(learner, stream, run, bound)
    observed, not_observed = describe.observed_by(learner)
    high_probability = None
    if problem.feedback is Feedback.FULL:
        mistakes = any_time(tally.expected_mistakes, tally.variance, DELTA)
        high_probability = {"mistakes": mistakes, "delta": DELTA}
    return {
        "stream": stream.name,
        "prepared": list(stream.prepared),
        "notes": list(stream.notes),
        "algorithm": learner.algorithm,
        "feedback": problem.feedback.word,
        "loss": problem.loss.word,
        "n_classes": problem.n_classes,
        "n_features": problem.n_features if learner.features is None else len(stream.columns or learner.features),
        "norm": problem.norm,
        "radius": problem.radius,
        "horizon": problem.horizon,
        "settings": describe.settings(learner),
        "rounds": tally.rounds,
        "mistakes": tally.mistakes,
        "expected_mistakes": tally.expected_mistakes,
        "top_mistakes": tally.top_mistakes,
        "reward": tally.reward if opened.has_rewards else None,
        "best_reward": best_reward(stream.rewards, stream.y) if isinstance(stream, Stream) else None,
        "rounds_per_second": tally.rounds / run.seconds if run.seconds else None,
        "high_probability_bound": high_probability,
        "certificate": describe.certificate(learner, tally, run.notes),
        "observed": observed,
        "why_not_observed": not_observed,
        "advice": None if learner.advice is None else learner.advice._asdict(),
        "bound": proved,
        "why_no_bound": no_bound,
        **statistics.as_values(),
        "label": stream.roles.label if isinstance(stream, TableStream) else None,
        "columns": None if learner.features is None else [column._asdict() for column in learner.features],
    }


def _bound(
    learner: "Learner", stream: "AnyStream", run: "Run", requested: bool | None
) -> tuple[dict[str, Any] | None, str | None]:
    from gaptron.learner import describe  # noqa: PLC0415
    from gaptron.learner.playing import labels_of  # noqa: PLC0415

    whole = whole_stream(stream)
    if requested is False:
        return None, "not computed (--no-bound)"
    if run.trace is None or whole is None:
        return None, "it needs the whole stream in memory, but the stream was read in chunks: use --bound (no --chunk)"
    return describe.bound(learner, whole.X, labels_of(learner, whole.y), run.trace)


def find_certificate(
    opened: "Opened", run: "Run", bound: dict[str, Any] | None, features: "Features", *, quiet: bool
) -> dict[str, Any] | None:
    """Find an algorithm with an informative bound where the bound of the run is not.

    Returns:
        The algorithm, its loss and bound; {} if none is informative; None if it was not searched for.
    """
    whole = whole_stream(opened.stream)
    if bound is None or bound["value"] < run.tally.rounds or whole is None or run.seconds > MAX_SECONDS:
        return None
    from rich.console import Console  # noqa: PLC0415

    from gaptron.experiments.best_certificate import best_certificate  # noqa: PLC0415

    declared = features if opened.encoded else None
    with contextlib.nullcontext() if quiet else Console(stderr=True).status("searching for an informative bound"):
        return best_certificate(opened.learner.problem, whole.X, whole.y, declared, whole.available) or {}


def show(summary: dict[str, Any], columns: list[str], verbose: bool) -> None:
    """Print the summary.

    Args:
        summary: the values of `summarize` and, under "informative_bound", of `find_certificate`.
        columns: lines about the columns of a table.
        verbose: show settings, certificate and advice too?
    """
    T, full = summary["rounds"], summary["feedback"] == "full"

    def line(name: str, number: float, remark: str = "", digits: int = 0) -> None:
        typer.echo(f"{name:<27}{number:>14,.{digits}f}  {number / T:>8.2%}  {remark}".rstrip())

    typer.echo(f"{summary['stream']}: {T:,} rounds, {summary['n_features']:,} features, {summary['n_classes']} classes")
    for remark in [*summary["prepared"], *summary["notes"], *columns]:
        typer.echo(f"  {remark}")
    name = "" if summary["label"] is None else f" {summary['label']}"
    labels = f"  label{name}: {frequencies(summary['classes'], T)}"
    typer.echo(textwrap.fill(labels, 80, subsequent_indent="    ", break_long_words=False))
    typer.echo(f"{summary['algorithm']}, {summary['loss']} loss, {'full information' if full else 'bandit feedback'}\n")
    line("mistakes", summary["mistakes"])
    if summary["last_quarter"] is not None:
        late = summary["last_quarter"]
        typer.echo(f"{'  in the last quarter':<27}{late['mistakes']:>14,}  {late['mistakes'] / late['rounds']:>8.2%}")
    majority = max(summary["classes"], key=lambda each: each["rounds"])
    line("mistakes of majority label", T - majority["rounds"], f"{majority['label']}, known only in hindsight")
    exact = "exact: not affected by the random draws" if full else "an unbiased estimate of the mean"
    line("expected mistakes", summary["expected_mistakes"], exact, 1)
    if summary["high_probability_bound"]:
        proved = summary["high_probability_bound"]
        line("mistakes stay below", proved["mistakes"], f"in all rounds with probability {1 - proved['delta']:.0%}", 1)
    line("mistakes of the top label", summary["top_mistakes"])
    if summary["reward"] is not None:
        best = summary["best_reward"]
        line("reward earned", summary["reward"], "" if not best else f"{summary['reward'] / best:.1%} of the best", 1)
    for pair in summary["confused"]:
        typer.echo(f"  {pair['truth']} predicted as {pair['top']}: {pair['rounds']:,} times")
    _show_bound(summary, line)
    observed = summary["observed"]
    if summary["why_not_observed"]:
        typer.echo(f"observed: nothing; {summary['why_not_observed']}")
    if observed is not None:
        typer.echo(f"observed: {observed['sentence']}")
        typer.echo("  assuming that each confirmed label was the only correct one; about log loss, not mistakes")
    if verbose:
        _show_details(summary)
    if summary["rounds_per_second"]:
        typer.echo(f"speed: {summary['rounds_per_second']:,.0f} rounds/s")


def _show_bound(summary: dict[str, Any], line: Any) -> None:
    bound = summary["bound"]
    if bound is None:
        typer.echo(f"bound: none; {summary['why_no_bound']}")
        return
    line("bound on expected mistakes", bound["value"], f"{bound['used']:.1%} of it used", 1)
    line("  loss of the best U", bound["comparator_loss"], f"‖U‖ = {bound['comparator_norm']:.4g}", 1)
    line("  regret", bound["regret"], bound["theorem"], 1)
    if summary["feedback"] != "full":
        typer.echo("  on the mean over the random draws, for a U fixed before them")
    if summary["columns"] is not None:
        typer.echo("  compared with linear rules on the encoded columns, which are fixed before each draw")
    if bound["value"] >= summary["rounds"]:
        typer.echo("  larger than the number of rounds, so it is not informative yet")
        typer.echo(_certificate_hint(summary["informative_bound"]))


def _certificate_hint(found: dict[str, Any] | None) -> str:
    if found is None:
        return (
            "  another loss may have an informative bound: try --algorithm, --loss, or gaptron compare --bounds first"
        )
    if not found:
        return "  no other algorithm has an informative bound: this stream is too hard, or too short"
    return (
        f"  --algorithm {found['algorithm']} --loss {found['loss']} has an informative bound here: at most "
        f"{found['value']:,.0f} expected mistakes"
    )


def _show_details(summary: dict[str, Any]) -> None:
    """Print certificate, advice and settings."""
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
            typer.echo(f"cost of the certificate compared with the advice: {advice['cost']:.1f} mistakes")
        else:
            typer.echo(f"cost of the rounds without exploration: {advice['cost']:.1f}")
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in advice["weights"].items())
        typer.echo(f"weights of the advice: {weights}")
    typer.echo(settings.line(summary["settings"]))
