"""What to try after a run: one sentence, which begins with a command where there is one."""

import shlex
from typing import Any

import typer

from gaptron.cli.options import DEFAULT_ALGORITHM

TWO = 2  # labels
# Options of `play` that `compare` takes in the same form, so that both read the same rounds.
SHARED = ("format_", "label", "classes", "features", "index_base", "header", "raw", "constant", "log1p", "standardize")


def next_step(summary: dict[str, Any], context: typer.Context, *, encoded: bool) -> str:
    """Return what to try next.

    Args:
        summary: the values of the run.
        context: the command.
        encoded: were the columns of a table encoded?
    """
    label, mistakes = summary["majority"]["label"], summary["majority"]["mistakes"]
    if summary["mistakes"] >= mistakes and summary["algorithm"] != DEFAULT_ALGORITHM and not context.params["load"]:
        return f"the learner is not better than always {label}: try -a {DEFAULT_ALGORITHM}, which needs no settings"
    if summary["mistakes"] >= mistakes:
        columns = "; an identifier among the columns misleads: --column NAME=ignore leaves it out" if encoded else ""
        return f"the learner is not better than always {label}: check that --label is the column you mean{columns}"
    if summary["last_quarter"] is not None and summary["last_quarter"]["change"] == "rise":
        return f"the error rises: {_compare(context)} --in-order ranks algorithms on the rounds in this order"
    if summary["feedback"] == "bandit" and summary["n_classes"] == TWO and summary["reward"] is None:
        return (
            "of two labels, right or wrong reveals the true one: if exactly one is right in every round, "
            "--feedback full learns from this"
        )
    if summary["feedback"] == "bandit":
        return (
            "--feedback full makes fewer mistakes, if the true label becomes known after each round; else "
            f"{_compare(context)} --feedback bandit tells whether another algorithm is better"
        )
    if encoded and context.params["save"]:
        return f"gaptron predict FILE --load {shlex.quote(context.params['save'])} predicts the labels of new rows"
    return f"{_compare(context)} tells whether another algorithm makes fewer mistakes"


def _compare(context: typer.Context) -> str:
    """Return the command that compares algorithms on the same rounds."""
    stream = context.params["stream"]
    words = ["gaptron", "compare", "FILE" if stream == "-" else stream]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in SHARED or source is None or source.name == "DEFAULT":
            continue
        if isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            words += [parameter.opts[0], str(value)]
    return shlex.join(words)
