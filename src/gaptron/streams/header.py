"""Is the first line of a table a header or a round?

Most headers have a name over a column of numbers. Where the features' names are themselves numbers (pandas writes
0,1,2,y) it takes the lines below to tell, and where these do not tell either, the user is asked: a round taken for a
header is lost, and a header taken for a round is a wrong round with a class of its own.
"""

import re
from collections.abc import Sequence

from gaptron.streams.table import USUAL_LABELS
from gaptron.text_numbers import as_number

_WHOLE = re.compile(r"[+-]?[0-9]+")
_ENOUGH = 4  # columns: a round that is 0,1,2,3 by chance is rare enough to ask

Cells = Sequence[str]


def is_header(first: Cells, quoted: Sequence[bool], below: Sequence[Cells], label: int) -> bool | None:
    """Is this line a header? None: it cannot be told.

    Args:
        first: the cells of the line.
        quoted: which of them stood in quotation marks, while the cells below did not.
        below: the cells of some lines after it; those with another number of cells say nothing.
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


def _are_column_numbers(cells: Cells, label: int) -> bool:
    """Do the cells count 0, 1, 2, ...? A label's name and a nameless first column, of row numbers, are not counted."""
    start = 0 if cells[0].strip() else 1
    numbered = [at for at in range(start, len(cells)) if at != label or as_number(cells[at]) is not None]
    return len(numbered) >= 2 and all(cells[at].strip() == str(count) for count, at in enumerate(numbered))
