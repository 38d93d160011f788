"""Measure the speed of the encoder: a table of numbers and words, and one dict at a time.

python benchmarks/features.py [ROWS]
"""

import sys
import time

import numpy as np
import pyarrow as pa

from gaptron.features import Encoder, Features

NUMBERS, WORDS = 15, (3, 20, 200, 2_000, 20_000)


def table(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    columns = {f"n{i}": rng.normal(size=rows) * 10.0**i for i in range(NUMBERS)}
    for many in WORDS:
        names = np.array([f"word {i}" for i in range(many)])
        columns[f"w{many}"] = names[np.minimum(rng.zipf(1.3, rows) - 1, many - 1)]
    return pa.table(columns)


def whole(data: pa.Table) -> float:
    encoder = Encoder(Features())
    clock = time.perf_counter()
    read = encoder.read(data)
    step = encoder.block_rows(read)
    for start in range(0, data.num_rows, step):
        encoder.encode(read, start, min(start + step, data.num_rows), learn=True)
    return time.perf_counter() - clock


def one_by_one(rows: list[dict[str, object]]) -> float:
    encoder = Encoder(Features())
    encoder.encode_row(encoder.read_row(rows[0]), learn=True)
    clock = time.perf_counter()
    for x in rows:
        encoder.encode_row(encoder.read_row(x), learn=True)
    return time.perf_counter() - clock


def main() -> None:
    data = table(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    whole(data.slice(0, 10))  # compiles
    for _ in range(3):
        seconds = whole(data)
        print(f"{data.num_rows:,} rows × {data.num_columns} columns: {data.num_rows / seconds:,.0f} rows/s")
    rows = data.slice(0, 20_000).to_pylist()
    for _ in range(3):
        print(f"one dict of {data.num_columns} columns: {one_by_one(rows) / len(rows) * 1e6:.1f} µs")


if __name__ == "__main__":
    main()
