"""Is the first line of a table a header or a round?

Most headers have a name over a column of numbers. Where the names of the features are numbers (pandas writes 0,1,2,y),
the lines below decide. Where they do not decide either, the user is asked: a round read as a header is lost, and a
header read as a round adds a wrong round with its own class.
"""

import re
from collections.abc import Sequence

from gaptron.data.text_numbers import as_number
from gaptron.streams.columns import USUAL_LABELS

_WHOLE = re.compile(r"[+-]?[0-9]+")
_ENOUGH = 4  # columns: a round that is 0,1,2,3 by chance is rare enough to ask

Cells = Sequence[str]


def is_header(first: Cells, quoted: Sequence[bool], below: Sequence[Cells], label: int) -> bool | None:
    """Is this line of a numeric table a header? None: the lines do not show it.

    Args:
        first: the cells of the line.
        quoted: which of them are in quotation marks, while the cells below are not.
        below: the cells of some lines below it; lines with another number of cells are ignored.
        label: the label's column.
    """
    rows = [row for row in below if len(row) == len(first)]
    features = [at for at in range(len(first)) if at != label]
    if any(first[at].strip() and (as_number(first[at]) is None or quoted[at]) for at in features):
        return True
    labels, name = [row[label].strip() for row in rows], first[label].strip()
    if name and as_number(name) is None:
        if labels and all(as_number(each) is not None for each in labels):
            return True
        if name.lower() in USUAL_LABELS and name not in labels:
            return True
    if not _are_column_numbers(first, label):
        return False
    if any(rows and not any(_WHOLE.fullmatch(row[at].strip()) for row in rows) for at in features):
        return True  # whole numbers above, none below
    if name in labels and len(first) < _ENOUGH:
        return False
    return None


def has_column_names(first: Cells, below: Sequence[Cells]) -> bool | None:
    """Is this line of a table with text a header? It is if no cell is a number. None: the lines do not show it."""
    numbers = [as_number(cell) is not None for cell in first]
    if all(numbers):
        return is_header(first, [False] * len(first), below, len(first) - 1)
    return not any(numbers)


def _are_column_numbers(cells: Cells, label: int) -> bool:
    """Do the cells count 0, 1, 2, ...? A label's name and an unnamed first column of row numbers do not count."""
    start = 0 if cells[0].strip() else 1
    numbered = [at for at in range(start, len(cells)) if at != label or as_number(cells[at]) is not None]
    return len(numbered) >= 2 and all(cells[at].strip() == str(count) for count, at in enumerate(numbered))
