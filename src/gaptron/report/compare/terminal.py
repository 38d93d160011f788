"""The ranking as a table for the terminal."""

from collections.abc import Iterable

from rich.console import Group
from rich.table import Table
from rich.text import Text

from gaptron.experiments.summary import Summary, summarize
from gaptron.experiments.task import Result
from gaptron.report.compare.formatting import feedback_title, headline, percent, plural, points


def table(results: Iterable[Result]) -> Group:
    """Return what to print of a comparison: a ranking for each feedback, and the number of failures."""
    summaries = summarize(results)
    parts: list[Table | Text] = []
    for summary in summaries:
        if summary.ranking:
            parts += [_ranking(summary), Text(headline(summary)), Text()]
    failed = sum(len(summary.failed) for summary in summaries)
    if failed:
        parts.append(Text(f"{failed} failed and are not included", style="bold red"))
    if not summaries:
        parts.append(Text("no results: nothing to compare"))
    return Group(*parts)


def _ranking(summary: Summary) -> Table:
    total = len(summary.streams)
    table = Table(
        title=feedback_title(summary.feedback), title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    table.add_column("algorithm", no_wrap=True, overflow="ellipsis", max_width=36)
    for word in ("error %", "behind", "first on", "µs/round"):
        table.add_column(word, justify="right", no_wrap=True)
    for standing in summary.ranking:
        name = Text(summary.names[standing.variant])
        name.stylize("italic" if standing.variant.tuned else "")
        if standing.missing:
            name.append(f" ({plural(standing.missing, 'run')} missing)", style="red")
        leader = standing is summary.ranking[0]
        table.add_row(
            name,
            percent(standing.error),
            "" if leader else points(standing.behind),
            f"{standing.wins}/{total}",
            "" if standing.microseconds is None else f"{standing.microseconds:.3g}",
        )
    return table
