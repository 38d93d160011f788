"""Rows in memory, dense or sparse, under the rules of `gaptron.validation`."""

from typing import TypeAlias

import numpy as np

from gaptron import validation
from gaptron.validation import CSR as CSR
from gaptron.validation import Table
from gaptron.validation import as_table as tidy_rows
from gaptron.validation import csr as csr
from gaptron.validation import divided as divided
from gaptron.validation import norms as norms

Rows: TypeAlias = Table

__all__ = ["CSR", "Rows", "csr", "divided", "first_not_finite", "norms", "row_of", "tidy_rows"]


def row_of(X: CSR, position: int) -> int:
    """The row that holds the stored value number `position`."""
    return int(np.searchsorted(X.indptr, position, side="right")) - 1


def first_not_finite(X: Rows) -> int | None:
    """The first row with NaN or ±∞, None if there is none."""
    return validation.first_not_finite(norms(X))
