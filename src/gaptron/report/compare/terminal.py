"""The ranking on the terminal."""

from collections.abc import Iterable

from rich.console import Group
from rich.table import Table
from rich.text import Text

from gaptron.experiments.summary import Field, fields
from gaptron.experiments.task import Result
from gaptron.report.compare.wording import feedback, headline, percent, points, several


def table(results: Iterable[Result]) -> Group:
    """What to print of a comparison: a ranking for each feedback, and what failed."""
    summary = fields(results)
    parts: list[Table | Text] = []
    for field in summary:
        if field.ranking:
            parts += [_ranking(field), Text(headline(field)), Text()]
    failed = sum(len(field.failed) for field in summary)
    if failed:
        parts.append(Text(f"{failed} failed: what is shown lacks them", style="bold red"))
    if not summary:
        parts.append(Text("no results: nothing to compare"))
    return Group(*parts)


def _ranking(field: Field) -> Table:
    total = len(field.arenas)
    table = Table(title=feedback(field.feedback), title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("algorithm", no_wrap=True, overflow="ellipsis", max_width=36)
    for word in ("error %", "behind", "first on", "µs/round"):
        table.add_column(word, justify="right", no_wrap=True)
    for standing in field.ranking:
        name = Text(field.names[standing.variant])
        name.stylize("italic" if standing.variant.tuned else "")
        if standing.missing:
            name.append(f" ({several(standing.missing, 'run')} missing)", style="red")
        leader = standing is field.ranking[0]
        table.add_row(
            name,
            percent(standing.error),
            "" if leader else points(standing.behind),
            f"{standing.wins}/{total}",
            "" if standing.microseconds is None else f"{standing.microseconds:.3g}",
        )
    return table
