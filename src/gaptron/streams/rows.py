"""Examples in memory, dense or sparse, under the rules of `gaptron.data.examples`."""

from typing import TypeAlias

import numpy as np

from gaptron.data import examples
from gaptron.data.examples import CSR as CSR
from gaptron.data.examples import Table
from gaptron.data.examples import as_table as tidy_rows
from gaptron.data.examples import csr as csr
from gaptron.data.examples import divided as divided
from gaptron.data.examples import norms as norms

Rows: TypeAlias = Table

__all__ = ["CSR", "Rows", "csr", "divided", "first_not_finite", "norms", "row_of", "tidy_rows"]


def row_of(X: CSR, position: int) -> int:
    """Return the row of the stored value number `position`."""
    return int(np.searchsorted(X.indptr, position, side="right")) - 1


def first_not_finite(X: Rows) -> int | None:
    """Return the first row with NaN or ±∞, None if there is none."""
    return examples.first_not_finite(norms(X))
