"""The summary of a run as text: four lines about the mistakes, and with --verbose what the theory says."""

from typing import Any

import typer

from gaptron.cli import settings
from gaptron.cli.lines import print_line
from gaptron.cli.run_statistics import frequencies

NEARLY_ALL = -0.99  # change of the number of mistakes from which rounding would claim that none is left
CHANGE = {"none": "about the same as before", "rise": "higher than before", "fall": "lower than before"}


def show(summary: dict[str, Any], columns: list[str], verbose: bool) -> None:
    """Print the summary.

    Args:
        summary: the values of `summarize` and, under "next", of `next_step`; with `verbose` also, under
            "informative_bound", of `find_certificate`.
        columns: lines about the columns of a table.
        verbose: show also theory, settings and speed?
    """
    T = summary["rounds"]
    print_line(f"{summary['stream']}: {T:,} rounds, {summary['n_features']:,} features, {summary['n_classes']} classes")
    for remark in [*summary["prepared"], *summary["notes"], *columns]:
        print_line(f"  {remark}")
    name = "" if summary["label"] is None else f" {summary['label']}"
    print_line(f"  label{name}: {frequencies(summary['classes'], T)}")
    full = summary["feedback"] == "full"
    print_line(f"{summary['algorithm']}, {summary['loss']} loss, {'full information' if full else 'bandit feedback'}")
    typer.echo()
    _show_mistakes(summary)
    if verbose:
        typer.echo()
        _show_theory(summary)


# --- four lines ---------------------------------------------------------------------------------------------


def _show_mistakes(summary: dict[str, Any]) -> None:
    T, mistakes, error = summary["rounds"], summary["mistakes"], summary["error"]

    def line(name: str, value: str, remark: str) -> None:
        print_line(f"{name:<16}{value:>7}  {remark}", 25)

    line("error", _percent(mistakes / T), f"{_interval(error)}; {mistakes:,} mistakes in {T:,} rounds")
    majority = summary["majority"]
    line("majority label", _percent(majority["mistakes"] / T), _against(majority, mistakes))
    late = summary["last_quarter"]
    if late is not None:
        line("last quarter", _percent(late["mistakes"] / late["rounds"]), CHANGE[late["change"]])
    if summary["reward"] is not None:
        best = summary["best_reward"]
        line("reward", f"{summary['reward']:,.1f}", "" if not best else f"{summary['reward'] / best:.1%} of the best")
    print_line(f"next: {summary['next']}", 6)


def _interval(error: dict[str, float]) -> str:
    return f"{_percent(error['low'])} to {_percent(error['high'])} ({error['level']:.0%})"


def _against(majority: dict[str, Any], mistakes: int) -> str:
    """Compare the mistakes with those of always playing the most frequent label."""
    always = f"always {majority['label']}"
    if not majority["mistakes"]:
        return f"{always}, the only label"
    share = mistakes / majority["mistakes"] - 1.0
    amount = "over 99%" if -1.0 < share < NEARLY_ALL else f"{abs(share):.0%}"
    return f"{always}: the learner makes {amount} {'more' if share > 0.0 else 'fewer'} mistakes"


# --- theory -------------------------------------------------------------------------------------------------


def _show_theory(summary: dict[str, Any]) -> None:
    T, full = summary["rounds"], summary["feedback"] == "full"

    def line(name: str, number: float, remark: str = "", digits: int = 0) -> None:
        print_line(f"{name:<26}{number:>12,.{digits}f} {number / T:>8.2%}  {remark}", 49)

    line(
        "expected mistakes",
        summary["expected_mistakes"],
        "exact: without the random draws" if full else "an unbiased estimate of the mean",
        1,
    )
    if summary["high_probability_bound"]:
        proved = summary["high_probability_bound"]
        line("mistakes stay below", proved["mistakes"], f"always, with probability {1 - proved['delta']:.0%}", 1)
    line("mistakes of the top label", summary["top_mistakes"])
    for pair in summary["confused"]:
        print_line(f"  {pair['truth']} predicted as {pair['top']}: {pair['rounds']:,}×")
    _show_bound(summary, line)
    observed = summary["observed"]
    if summary["why_not_observed"]:
        print_line(f"observed: nothing; {summary['why_not_observed']}")
    if observed is not None:
        print_line(f"observed: {observed['sentence']}")
        print_line("  assuming that each confirmed label was the only correct one; about log loss, not mistakes")
    _show_details(summary)
    if summary["rounds_per_second"]:
        print_line(f"speed: {summary['rounds_per_second']:,.0f} rounds/s")


def _show_bound(summary: dict[str, Any], line: Any) -> None:
    bound = summary["bound"]
    if bound is None:
        print_line(f"bound: none; {summary['why_no_bound']}")
        return
    if bound["value"] >= summary["rounds"]:
        print_line(
            f"bound: not informative yet; {bound['theorem']} allows more mistakes than there are rounds, as it does "
            "on short or hard streams"
        )
        print_line(_certificate_hint(summary["informative_bound"]))
        return
    line("bound on expected mistakes", bound["value"], f"{bound['used']:.1%} of it used", 1)
    line("  loss of the best U", bound["comparator_loss"], f"‖U‖ = {bound['comparator_norm']:.4g}", 1)
    line("  regret", bound["regret"], bound["theorem"], 1)
    if bound["regret"] < 0.0:
        print_line("  negative: proven to make fewer mistakes than the loss of the best U")
    if summary["feedback"] != "full":
        print_line("  on the mean over the random draws, for a U fixed before them")
    if summary["columns"] is not None:
        print_line("  compared with linear rules on the encoded columns, which are fixed before each draw")


def _certificate_hint(found: dict[str, Any] | None) -> str:
    if found is None:
        return "  another loss may have one: try --algorithm, --loss, or gaptron compare --bounds first"
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
        print_line(text.format(**certificate))
    advice = summary["advice"]
    if advice is not None:
        if summary["feedback"] == "full":
            verb = "costs" if advice["cost"] >= 0.0 else "saves"
            print_line(f"the certificate {verb} {abs(advice['cost']):.1f} mistakes compared with the advice alone")
        else:
            print_line(f"cost of the rounds without exploration: {advice['cost']:.1f}")
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in advice["weights"].items())
        print_line(f"weights of the advice: {weights}")
    print_line(settings.line(summary["settings"]))


def _percent(share: float) -> str:
    return f"{share:.2%}"
