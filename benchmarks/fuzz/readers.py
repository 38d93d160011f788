"""Fuzz the stream readers: valid files, mutated at random, must be read or refused in one clear error.

    python benchmarks/fuzz/readers.py                       # 100,000 inputs for every reader
    python benchmarks/fuzz/readers.py --inputs 2000 csv vw  # fewer, of some readers

A failure is an error that is no GaptronError, a reading that takes more than a second for less than 100 kB, memory far
above the size of the file, or rounds that differ between the whole file and its chunks, measured before or not. Each
failing input is kept in the folder that --keep names. Inputs are numbered: `--first N --inputs 1` repeats the one
called N.
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

SLOW, SMALL = 1.0, 100_000  # seconds that no file of fewer bytes may take
MEMORY_FACTOR, MEMORY_BASE = 100, 16_000_000  # bytes: so many times the file, and what unpacking takes
EVERY = 25  # one reading in so many is watched for memory, which makes it slow

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
    """A small valid file of every format that is text."""
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
    """A small valid file of every format that is not."""
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
    """The file with some pieces cut out, doubled, overwritten or put in."""
    for _ in range(rng.choice([0, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(data) + 1)
        stop = min(len(data), at + rng.choice([0, 1, 1, 2, 10]))
        piece = rng.choice([b"", rng.choice(tokens), bytes([rng.randrange(256)]), data[at:stop] * 2, data[: at // 2]])
        data = data[:at] + piece + data[stop:]
    return data


def packed(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Now and then compressed, and then sometimes damaged."""
    import bz2  # noqa: PLC0415
    import gzip  # noqa: PLC0415
    import lzma  # noqa: PLC0415

    suffix, pack = rng.choice([(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
    data = pack(data)
    if rng.random() < 0.7:
        data = mutated(data, rng, TOKENS)
    return suffix, data


def options(name: str, rng: random.Random) -> dict[str, object]:
    """Sometimes the user says more."""
    said: dict[str, object] = {"format": name}
    if rng.random() < 0.3:
        said["classes"] = rng.choice([[0, 1, 2], ["0", "1", "2"], ["a", 1], [0.5, 1]])
    if rng.random() < 0.3:
        said["n_features"] = rng.choice([1, 3, 8, 1000])
    if name == "svmlight" and rng.random() < 0.3:
        said["index_base"] = rng.choice([0, 1, "auto"])
    if name in ("csv", "tsv") and rng.random() < 0.3:
        said["header"] = rng.choice([True, False])
    if name in ("csv", "tsv", "parquet") and rng.random() < 0.3:
        said["label"] = rng.choice(["y", 0, -1, "a", "0"])
    return said


def reading(path: Path, said: dict[str, object], chunk: int | None) -> object:
    """What a reading gives: rows and labels, or the error."""
    try:
        stream = open_stream(path, chunk=chunk, **said)  # type: ignore[arg-type]
        if isinstance(stream, Stream):
            parts = [(stream.X, stream.y)]
        else:
            assert isinstance(stream, Chunks)
            parts = list(stream)
    except GaptronError as error:
        return error
    rows = [tuple(_pairs(X, t)) for X, _ in parts for t in range(X.shape[0])]
    return stream.classes, rows, [code for _, y in parts for code in y.tolist()]


def _pairs(X: object, t: int) -> list[tuple[int, float]]:
    if isinstance(X, np.ndarray):
        return list(enumerate(X[t].tolist()))
    part = slice(*X.indptr[t : t + 2])  # type: ignore[attr-defined]
    return list(zip(X.indices[part].tolist(), X.data[part].tolist()))  # type: ignore[attr-defined]


def failure(path: Path, said: dict[str, object], watch: bool) -> tuple[str, str]:
    """What happened ("read", "refused"), and what is wrong with that ("": nothing)."""
    size = path.stat().st_size
    if watch:
        tracemalloc.start()
    start = time.perf_counter()
    try:
        whole = reading(path, said, None)
        seconds = time.perf_counter() - start
        peak = tracemalloc.get_traced_memory()[1] if watch else 0
        ways = [] if said["format"] == "npz" else [{"measure": True}, {"measure": False}]
        readings = [reading(path, {**said, **way}, 2) for way in ways]
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    finally:
        tracemalloc.stop()
    if seconds > SLOW and size < SMALL and not watch:
        return "failed", f"{seconds:.1f} s for {size} bytes"
    if peak > MEMORY_BASE + MEMORY_FACTOR * size:
        return "failed", f"{peak} bytes of memory for {size}"
    refused = isinstance(whole, GaptronError)
    for chunked in readings:
        if isinstance(chunked, GaptronError) != refused or not (refused or whole == chunked):
            return "failed", f"the whole file and its chunks differ: {whole!r:.200} {chunked!r:.200}"
    return ("refused" if refused else "read"), ""


def fuzz(name: str, first: int, inputs: int, keep: Path | None, show: Callable[[str], None]) -> Counter[str]:
    """Run these inputs of one reader, and count what happened."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warm = Path(folder) / "valid"
        warm.write_bytes((binary_files if name in ("npz", "parquet") else text_files)(random.Random(0))[name])
        csv_text.FEW = 0
        reading(warm, {"format": name}, None)  # whatever reading imports, before the clock runs
        for at in range(first, first + inputs):
            rng = random.Random(f"{name} {at}")
            files = binary_files(rng) if name in ("npz", "parquet") else text_files(rng)
            tokens = [bytes([rng.randrange(256)]) * 4 for _ in range(3)] if name in ("npz", "parquet") else TOKENS
            data, suffix = mutated(files[name], rng, tokens), ""
            if name not in ("npz", "parquet") and rng.random() < 0.05:
                suffix, data = packed(data, rng)
            path = Path(folder) / f"input.{name}{suffix}"
            path.write_bytes(data)
            csv_text.FEW = rng.choice([0, 10**9])  # by Arrow's parser, or cell by cell
            happened, problem = failure(path, options(name, rng), at % EVERY == 0)
            counts[happened] += 1
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
    parser.add_argument("--keep", type=Path, help="folder for the inputs that failed")
    said = parser.parse_args()
    failed = 0
    for name in said.readers:
        start = time.perf_counter()
        counts = fuzz(name, said.first, said.inputs, said.keep, lambda line: print(line, flush=True))
        failed += counts["failed"]
        words = ", ".join(f"{counts[word]:,} {word}" for word in ("read", "refused", "failed"))
        print(f"{name}: {said.inputs:,} inputs: {words}; {time.perf_counter() - start:.0f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
