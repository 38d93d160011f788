"""What separates the cells of a text table: the separator of its format, a semicolon, a tab or a vertical bar.

The first line shows it, and the lines below confirm it: they have as many cells. A forced separator is not looked for.
"""

import csv
from collections.abc import Sequence

from gaptron.errors import StreamError

SEPARATORS = {"csv": ",", "tsv": "\t"}  # of the formats
CANDIDATES = ",;\t|"


def find_separator(source: str, lines: Sequence[tuple[int, bytes]], usual: str, decimal: str) -> str:
    """Find the separator of a table.

    Args:
        source: its name in errors.
        lines: the first lines, with their numbers.
        usual: the separator of its format.
        decimal: the decimal separator.
    """
    first = lines[0][1].decode(errors="replace")
    order = [usual, *(each for each in CANDIDATES if each != usual)]
    if usual == decimal:
        order = [*order[1:], usual]
    present = [each for each in order if each in first]
    if present in ([], [usual]):
        return usual
    texts = [first, *(line.decode(errors="replace") for _, line in lines[1:])]
    counts = {each: [len(_cells(text, each)) for text in texts] for each in present}
    confirmed = [each for each in present if min(counts[each]) == max(counts[each]) > 1]
    if not confirmed:
        return usual if usual in present else max(present, key=lambda each: counts[each][0])
    best = max(confirmed, key=lambda each: counts[each][0])
    chosen = confirmed[0] if confirmed[0] == order[0] else best
    others = (each for each in confirmed if each not in (chosen, decimal))
    rival = next((each for each in others if counts[each][0] >= counts[chosen][0]), None)
    if rival is not None:
        raise StreamError(
            source,
            f"its cells may be separated by {chosen!r} or by {rival!r}: choose separator={chosen!r} or "
            f"separator={rival!r}",
            lines[0][0],
        )
    return chosen


def _cells(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([text.rstrip("\r\n")], delimiter=separator))
    except csv.Error:  # reported when the line is parsed
        return []
