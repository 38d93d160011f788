"""What a learner's state takes of the machine's memory, and how it takes half of that.

In single precision the tables that an algorithm names on its card (`Card.single`: weights, and what is kept for each of
them) hold float32. Every sum over them, and every other number, stays in double precision. Where the state has room for
it (`rounding`), what the rounding does to the algorithm's proof is counted.
"""

import os
from typing import Any

import numpy as np

from gaptron.errors import InputError
from gaptron.types import UNCOUNTED, Problem, Rounding, named

PRECISIONS = ("double", "single")


def in_single(state: Any, names: tuple[str, ...]) -> Any:
    """The state with these tables in float32, its rounding counted from now on."""
    from gaptron.kernels.rows import lined_up  # noqa: PLC0415

    tables = {name: lined_up(getattr(state, name).shape, np.float32) for name in names}
    for name, table in tables.items():
        table[...] = getattr(state, name)
    counted = {"rounding": named(**Rounding()._asdict())} if "rounding" in state._fields else {}
    return state._replace(**tables, **counted)


def rounding(state: Any) -> Rounding | None:
    """What rounding has done to a run in single precision; None: it was not counted."""
    counted = getattr(state, "rounding", UNCOUNTED)
    return Rounding(*map(float, counted[0])) if len(counted) else None


def uncounted(state: Any) -> Any:
    """The state, its rounding not counted."""
    return state._replace(rounding=UNCOUNTED) if "rounding" in state._fields else state


def size(state: Any, single: tuple[str, ...] = ()) -> int:
    """How many bytes the arrays of a state take, these tables in single precision."""
    return sum(part.nbytes // 2 if name in single else part.nbytes for name, part in zip(state._fields, state))


def of_machine() -> int | None:
    """How many bytes of memory the machine has; None where it does not say."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_fits(problem: Problem, taken: int, way_out: str = "") -> None:
    """Refuse what cannot fit: asking for it would end the process, or the machine."""
    room = of_machine()
    if room is not None and taken > room:
        raise InputError(
            f"{problem.n_classes} classes × {problem.n_features} features take {taken / 1e9:.3g} GB, more than the "
            f"{room / 1e9:.3g} GB of this machine's memory: is a column number wrong? Otherwise hash the features into "
            f"fewer columns{way_out}"
        )
