"""Fuzz the stream readers: valid files, mutated at random, must be read or refused with a GaptronError.

    python benchmarks/fuzz/readers.py                       # 100,000 inputs for every reader
    python benchmarks/fuzz/readers.py --inputs 2000 csv vw  # fewer inputs, for some readers

A failure is an error that is not a GaptronError, a file of less than 100 kB that takes more than a second of the
processor to read, memory far above the size of the file, or rounds that differ between the whole file and its chunks,
with and without measuring. Failing inputs are saved in the folder given by --keep. Inputs are numbered: `--first N
--inputs 1` repeats number N.
"""

import argparse
import io
import random
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gaptron.errors import GaptronError
from gaptron.streams import Chunks, Stream, csv_text, open_stream

SLOW, SMALL = 1.0, 100_000  # a smaller file (bytes) must not take longer (seconds of the processor)
MEMORY_FACTOR, MEMORY_BASE = 100, 16_000_000  # bytes allowed: a multiple of the file, plus a constant for decompression
EVERY = 25  # memory is traced for one input in this many, because it is slow

TOKENS = [
    *(b"0 1 -1 +1 01 1_0 1e5 1e400 1e-400 .5 5. nan -inf inf infinity 0x10 2147483646 2147483648 1d5 -0".split()),
    *(
        b': | , " \' # \t \n \r \r\n \r\r \0 \xff \xef\xbb\xbf \xef\xbc\x91 qid:1 y label \\ ; ,, "" "a,b" 1:1'.split(
            b" "
        )
    ),
    b"9" * 5000,
    b"1," * 500,
    b" a" * 500,
    b"\r" * 300,
    b"\n" * 300,
    b'"' * 301,
]


def text_files(rng: random.Random) -> dict[str, bytes]:
    """Return a small valid file of every text format."""
    rounds = [(rng.choice("012"), sorted(rng.sample(range(1, 9), 3))) for _ in range(rng.randint(2, 12))]
    values = [rng.choice(["1", "-2.5", "0.125", "3e-2", "7", "1.0000000000000002"]) for _ in range(3)]
    rows = [(label, list(zip(columns, values))) for label, columns in rounds]
    table = [[*(value for _, value in pairs), label] for label, pairs in rows]
    header = rng.choice([["a", "b", "c", "y"], ["0", "1", "2", "y"], None])
    lines = [header, *table] if header else table
    return {
        "svmlight": b"".join(f"{k} {' '.join(f'{i}:{v}' for i, v in pairs)}\n".encode() for k, pairs in rows),
        "csv": b"".join((",".join(line) + "\n").encode() for line in lines),
        "tsv": b"".join(("\t".join(line) + "\n").encode() for line in lines),
        "vw": b"".join(f"{k} |n {' '.join(f'f{i}:{v}' for i, v in pairs)} |m g\n".encode() for k, pairs in rows),
    }


def binary_files(rng: random.Random) -> dict[str, bytes]:
    """Return a small valid file of every binary format."""
    T = rng.randint(2, 12)
    X, y = np.array([[rng.random() for _ in range(3)] for _ in range(T)]), np.arange(T) % 3
    plain, sparse, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(plain, X=X.astype(rng.choice(["f4", "f8", "i2"])), y=y)
    ends = np.arange(T + 1)
    np.savez(sparse, data=np.ones(T), indices=y, indptr=ends, shape=np.array([T, 3]), format=b"csr", y=y)
    columns = {"y": y, **{f"f{i}": X[:, i] for i in range(3)}}
    if rng.random() < 0.5:
        columns = {"y": y, "idx": [[0, 2]] * T, "val": [[1.0, 2.0]] * T}
    pq.write_table(pa.table(columns), parquet, compression=rng.choice(["none", "snappy"]))
    return {"npz": rng.choice([plain, sparse]).getvalue(), "parquet": parquet.getvalue()}


def mutated(data: bytes, rng: random.Random, tokens: list[bytes]) -> bytes:
    """Return the data with some bytes removed, repeated, overwritten or inserted."""
    for _ in range(rng.choice([0, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(data) + 1)
        stop = min(len(data), at + rng.choice([0, 1, 1, 2, 10]))
        inserted = rng.choice(
            [b"", rng.choice(tokens), bytes([rng.randrange(256)]), data[at:stop] * 2, data[: at // 2]]
        )
        data = data[:at] + inserted + data[stop:]
    return data


def packed(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Compress the data, and sometimes damage the result."""
    import bz2  # noqa: PLC0415
    import gzip  # noqa: PLC0415
    import lzma  # noqa: PLC0415

    suffix, pack = rng.choice([(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
    data = pack(data)
    if rng.random() < 0.7:
        data = mutated(data, rng, TOKENS)
    return suffix, data


def options(name: str, rng: random.Random) -> dict[str, object]:
    """Return random options for the reader."""
    chosen: dict[str, object] = {"format": name}
    if rng.random() < 0.3:
        chosen["classes"] = rng.choice([[0, 1, 2], ["0", "1", "2"], ["a", 1], [0.5, 1]])
    if rng.random() < 0.3:
        chosen["n_features"] = rng.choice([1, 3, 8, 1000])
    if name == "svmlight" and rng.random() < 0.3:
        chosen["index_base"] = rng.choice([0, 1, "auto"])
    if name in ("csv", "tsv") and rng.random() < 0.3:
        chosen["header"] = rng.choice([True, False])
    if name in ("csv", "tsv", "parquet") and rng.random() < 0.3:
        chosen["label"] = rng.choice(["y", 0, -1, "a", "0"])
    return chosen


def reading(path: Path, chosen: dict[str, object], chunk: int | None) -> object:
    """Return the classes, examples and labels of a file, or the error."""
    try:
        stream = open_stream(path, chunk=chunk, **chosen)  # type: ignore[arg-type]
        if isinstance(stream, Stream):
            chunks = [(stream.X, stream.y)]
        else:
            assert isinstance(stream, Chunks)
            chunks = list(stream)
    except GaptronError as error:
        return error
    rows = [tuple(_pairs(X, t)) for X, _ in chunks for t in range(X.shape[0])]
    return stream.classes, rows, [code for _, y in chunks for code in y.tolist()]


def _pairs(X: object, t: int) -> list[tuple[int, float]]:
    if isinstance(X, np.ndarray):
        return list(enumerate(X[t].tolist()))
    row = slice(*X.indptr[t : t + 2])  # type: ignore[attr-defined]
    return list(zip(X.indices[row].tolist(), X.data[row].tolist()))  # type: ignore[attr-defined]


def failure(path: Path, chosen: dict[str, object], trace_memory: bool) -> tuple[str, str]:
    """Return the outcome ("read", "refused" or "failed") and the description of a failure."""
    size = path.stat().st_size
    if trace_memory:
        tracemalloc.start()
    start = time.process_time()
    try:
        whole = reading(path, chosen, None)
        seconds = time.process_time() - start
        peak = tracemalloc.get_traced_memory()[1] if trace_memory else 0
        ways = [] if chosen["format"] == "npz" else [{"measure": True}, {"measure": False}]
        readings = [reading(path, {**chosen, **way}, 2) for way in ways]
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    finally:
        tracemalloc.stop()
    if seconds > SLOW and size < SMALL and not trace_memory:
        return "failed", f"{seconds:.1f} s for {size} bytes"
    if peak > MEMORY_BASE + MEMORY_FACTOR * size:
        return "failed", f"{peak} bytes of memory for {size}"
    refused = isinstance(whole, GaptronError)
    for chunked in readings:
        if isinstance(chunked, GaptronError) != refused or not (refused or whole == chunked):
            return "failed", f"the whole file and its chunks differ: {whole!r:.200} {chunked!r:.200}"
    return ("refused" if refused else "read"), ""


def fuzz(name: str, first: int, inputs: int, keep: Path | None, show: Callable[[str], None]) -> Counter[str]:
    """Try these inputs on one reader, and count the outcomes."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        valid = Path(folder) / "valid"
        valid.write_bytes((binary_files if name in ("npz", "parquet") else text_files)(random.Random(0))[name])
        csv_text.MIN_BYTES = 0
        reading(valid, {"format": name}, None)  # imports happen before timing starts
        for at in range(first, first + inputs):
            rng = random.Random(f"{name} {at}")
            files = binary_files(rng) if name in ("npz", "parquet") else text_files(rng)
            tokens = [bytes([rng.randrange(256)]) * 4 for _ in range(3)] if name in ("npz", "parquet") else TOKENS
            data, suffix = mutated(files[name], rng, tokens), ""
            if name not in ("npz", "parquet") and rng.random() < 0.05:
                suffix, data = packed(data, rng)
            path = Path(folder) / f"input.{name}{suffix}"
            path.write_bytes(data)
            csv_text.MIN_BYTES = rng.choice([0, 10**9])  # parsed by Arrow, or cell by cell
            outcome, problem = failure(path, options(name, rng), at % EVERY == 0)
            counts[outcome] += 1
            if problem:
                show(f"{name} {at}: {problem}")
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{at}.{name}{suffix}").write_bytes(data)
            path.unlink()
    return counts


READERS = ("csv", "npz", "parquet", "svmlight", "tsv", "vw")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("readers", nargs="*", default=READERS, help=f"of {', '.join(READERS)}")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for failing inputs")
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.readers:
        start = time.perf_counter()
        counts = fuzz(name, arguments.first, arguments.inputs, arguments.keep, lambda line: print(line, flush=True))
        failed += counts["failed"]
        words = ", ".join(f"{counts[word]:,} {word}" for word in ("read", "refused", "failed"))
        print(f"{name}: {arguments.inputs:,} inputs: {words}; {time.perf_counter() - start:.0f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
