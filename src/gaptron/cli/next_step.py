"""What to try after a run: one sentence, which begins with a command where there is one."""

import shlex
from typing import Any

import typer

from gaptron.cli.options import DEFAULT_ALGORITHM

TWO = 2  # labels
# Options of `play` that `compare` takes in the same form, so that both read the same rounds.
SHARED = (
    *("format_", "label", "classes", "features", "index_base", "header", "separator", "decimal", "dates", "encoding"),
    *("raw", "constant", "log1p", "standardize", "limit"),
)
# Options of `play` with which `compare` would read other rounds. A loaded model says itself how its files are read.
ALONE = ("load", "reward", "available", "column", "cross", "unlabelled")


def next_step(summary: dict[str, Any], context: typer.Context, *, encoded: bool) -> str:
    """Return what to try next.

    Args:
        summary: the values of the run.
        context: the command.
        encoded: were the columns of a table encoded?
    """
    label, mistakes = summary["majority"]["label"], summary["majority"]["mistakes"]
    comparable = not any(_is_given(context, name) for name in ALONE)
    if summary["mistakes"] >= mistakes and summary["algorithm"] != DEFAULT_ALGORITHM and not context.params["load"]:
        return f"the learner is not better than always {label}: try -a {DEFAULT_ALGORITHM}, which needs no settings"
    if summary["mistakes"] >= mistakes:
        columns = "; an identifier among the columns misleads: --column NAME=ignore leaves it out" if encoded else ""
        return f"the learner is not better than always {label}: check that --label is the column you mean{columns}"
    if summary["last_quarter"] is not None and summary["last_quarter"]["change"] == "rise":
        if not comparable:
            return "the error rises: --shuffle 0 tells whether the order of the rounds is the reason"
        return f"the error rises: {_compare(context)} --in-order ranks algorithms on the rounds in this order"
    right_or_wrong = summary["feedback"] == "bandit" and summary["reward"] is None
    if right_or_wrong and summary["n_classes"] == TWO:
        return (
            "of two labels, right or wrong reveals the true one: if exactly one is right in every round, "
            "--feedback full learns from this"
        )
    if right_or_wrong:
        full = "--feedback full makes fewer mistakes, if the true label becomes known after each round"
        other = f"{_compare(context)} --feedback bandit tells whether another algorithm is better"
        return f"{full}; else {other}" if comparable else full
    if encoded and context.params["save"]:
        return f"gaptron predict FILE --load {shlex.quote(context.params['save'])} predicts the labels of new rows"
    if comparable:
        return f"{_compare(context)} tells whether another algorithm makes fewer mistakes"
    if encoded:
        return "--save MODEL keeps the learner, and gaptron predict FILE --load MODEL predicts the labels of new rows"
    return "--verbose adds what theory says about these mistakes"


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _compare(context: typer.Context) -> str:
    """Return the command that compares algorithms on the same rounds."""
    stream = context.params["stream"]
    words = ["gaptron", "compare", "FILE" if stream == "-" else stream]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name not in SHARED or not _is_given(context, parameter.name):
            continue
        if isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            words += [parameter.opts[0], str(value)]
    return shlex.join(words)
