"""The memory that a learner's state takes, and `precision="single"`, which halves it.

In single precision the tables that an algorithm names on its card (`Card.single`: the weights, and tables of the same
shape) are float32. Sums over them, and all other numbers, stay in double precision.
"""

import os
from typing import Any

import numpy as np

from gaptron.errors import InputError
from gaptron.types import Problem

PRECISIONS = ("double", "single")


def in_single(state: Any, names: tuple[str, ...]) -> Any:
    """Convert these tables to float32; for actions, a state has only some of them."""
    from gaptron.kernels.rows import aligned_zeros  # noqa: PLC0415

    tables = {name: aligned_zeros(getattr(state, name).shape, np.float32) for name in names if name in state._fields}
    for name, table in tables.items():
        table[...] = getattr(state, name)
    return state._replace(**tables)


def size(state: Any, single: tuple[str, ...] = ()) -> int:
    """The bytes that the arrays of a state take with these tables in single precision."""
    return sum(part.nbytes // 2 if name in single else part.nbytes for name, part in zip(state._fields, state))


def of_machine() -> int | None:
    """The bytes of memory of the machine; None where the operating system does not report it."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_fits(problem: Problem, needed: int, remedy: str = "") -> None:
    """Raise `InputError` if a state of this many bytes is larger than the machine's memory."""
    available = of_machine()
    if available is not None and needed > available:
        raise InputError(
            f"{problem.n_classes} classes × {problem.n_features} features take {needed / 1e9:.3g} GB, more than the "
            f"{available / 1e9:.3g} GB of this machine's memory: check that no column number is wrong, hash the "
            f"features into fewer columns{remedy}"
        )
