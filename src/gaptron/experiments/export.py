"""Results as a table for other programs: a row a task, a column a field, CSV or Parquet."""

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from gaptron.errors import InputError, SettingError
from gaptron.experiments.task import Result

SPREAD = {  # fields that are objects, and their parts; each part is a column of its own
    "certificate": ("level", "step", "norm", "apart", "free", "explored", "solved"),
    "observed": ("least_loss", "cost", "radius", "norm"),
    "bound": ("value", "regret", "theorem", "comparator_norm", "comparator_loss", "used"),
    "error": ("type", "message"),
}
WRITTEN = ("settings", "used", "curve", "prepared")  # as JSON: no two algorithms have the same


def export(results: Iterable[Result], path: Path) -> None:
    """Write the table; the extension says how."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv, parquet  # noqa: PLC0415

    if path.suffix not in (".csv", ".parquet"):
        raise SettingError(f"{path}: a table is exported to a .csv or a .parquet file")
    rows = [row(result) for result in results]
    if not rows:
        raise SettingError("there are no results to export")
    try:
        table = pa.Table.from_pylist(rows)
        if path.suffix == ".csv":
            csv.write_csv(table, path)
        else:
            parquet.write_table(table, path)
    except OSError as problem:
        raise SettingError(f"{path}: cannot be written ({problem})") from None
    except (pa.ArrowException, OverflowError) as problem:
        raise InputError(f"the results do not fit into one table ({problem})") from None


def row(result: Result) -> dict[str, Any]:
    """One result, flat."""
    flat: dict[str, Any] = {}
    for name in (f.name for f in fields(result)):
        value = getattr(result, name)
        if name in SPREAD:
            flat |= {f"{name}_{part}": (value or {}).get(part) for part in SPREAD[name]}
        else:
            flat[name] = json.dumps(value, ensure_ascii=False) if name in WRITTEN and value is not None else value
    return flat
