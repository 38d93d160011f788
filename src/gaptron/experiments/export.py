"""Export results as a CSV or Parquet table: one row per task, one column per field."""

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from gaptron.errors import InputError, SettingError
from gaptron.experiments.task import Result

FLATTENED = {  # fields that are objects, and their keys; each key becomes a column
    "certificate": ("level", "step", "norm", "apart", "exploiting", "explored", "solved"),
    "observed": ("least_loss", "cost", "radius", "norm"),
    "bound": ("value", "regret", "theorem", "comparator_norm", "comparator_loss", "used"),
    "error": ("type", "message"),
}
AS_JSON = ("settings", "used", "curve", "prepared")  # written as JSON, because their keys differ between algorithms


def export(results: Iterable[Result], path: Path) -> None:
    """Write the results to a .csv or .parquet file; the extension decides the format."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv, parquet  # noqa: PLC0415

    if path.suffix not in (".csv", ".parquet"):
        raise SettingError(f"{path}: unknown extension; use .csv or .parquet")
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
    """Return one result as a flat dict."""
    flat: dict[str, Any] = {}
    for name in (f.name for f in fields(result)):
        value = getattr(result, name)
        if name in FLATTENED:
            flat |= {f"{name}_{key}": (value or {}).get(key) for key in FLATTENED[name]}
        else:
            flat[name] = json.dumps(value, ensure_ascii=False) if name in AS_JSON and value is not None else value
    return flat
