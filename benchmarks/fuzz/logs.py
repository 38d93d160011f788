"""Fuzz every reader of logged decisions: logs.py [inputs per reader] [seed] [reader ...]

Valid files are damaged at random: bytes flipped, removed, repeated and inserted, fields replaced by invalid values,
headers of arrays rewritten. A reader may return a log or raise a GaptronError that names the file. Anything else
(another exception, a log that violates its invariants) is printed and counted.
"""

import copy
import io
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gaptron.errors import GaptronError
from gaptron.offpolicy import DamagedLogWarning, Log, open_log, save_log

NASTY: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**400), 0.5, -0.0, 1e308, 1e-320, float("nan"), float("inf"),
    "", "0", "1", "01", "é", "\0", "\ud800", "x" * 300, [], {}, [[]], {"": {}}, {"0": 1}, [0.5, 0.5], [None],
    [[1, 2], [3]],
]  # fmt: skip
RAW = [
    b"", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"[" * 2000, b'{"a":' * 2000, b"1" * 5000, b"NaN", b"1e999",
    b'"', b"\\u0000", b"\\ud800", b"{}", b"[]", b",", b"-", b"1_0", b'"x":1,"x":2',
]  # fmt: skip


def good_files(rng: np.random.Generator) -> dict[str, bytes]:
    """Return a small log in every format."""
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for classes in (("a", "b", "c"), (1, 2, 3)):
            T, K = 6, 3
            p = rng.dirichlet(np.ones(K), T)
            codes = rng.integers(0, K, T)
            X = rng.integers(0, 3, (T, 4)) + np.eye(1, 4, 3)
            labels = [classes[code] for code in codes]
            log = Log.from_arrays(X, labels, codes % 2, p[np.arange(T), codes], classes=classes, distribution=p)
            for name in ("log.jsonl", "log.dsjson", "log.npz", "log.jsonl.gz"):
                save_log(log, Path(folder) / name)
                files[f"{type(classes[0]).__name__}-{name}"] = (Path(folder) / name).read_bytes()
    return files


def damage_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip, remove, repeat and insert bytes."""
    parts = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, len(parts) + 1))
        kind = rng.integers(0, 5)
        if kind == 0 and parts:
            parts[at % len(parts)] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            del parts[at:]
        elif kind == 2:
            parts[at:at] = RAW[rng.integers(0, len(RAW))]
        elif kind == 3:
            parts[at:at] = parts[: int(rng.integers(0, len(parts) + 1))]
        else:
            del parts[at : at + int(rng.integers(1, 40))]
    return bytes(parts)


def nasty(rng: np.random.Generator) -> Any:
    """Return a copy of one of the values, because it may be damaged further."""
    return copy.deepcopy(NASTY[rng.integers(0, len(NASTY))])


def damage_fields(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace, remove or add values that JSON allows."""
    lines = [json.loads(line) for line in data.splitlines()]
    for _ in range(rng.integers(1, 4)):
        node: Any = lines
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = keys[rng.integers(0, len(keys))]
            inside = node[key]
            if isinstance(inside, (dict, list)) and inside and rng.random() < 0.8:
                node = inside
                continue
            kind = rng.integers(0, 4)
            if kind == 0 and node is not lines:
                del node[key]
            elif kind == 1 and isinstance(node, dict):
                node[str(nasty(rng))[:50]] = nasty(rng)
            else:
                node[key] = nasty(rng)
            break
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def damage_arrays(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the shapes, types and values of arrays."""
    with np.load(io.BytesIO(data)) as archive:
        arrays: dict[str, Any] = dict(archive)
    for _ in range(rng.integers(1, 4)):
        if not arrays:
            break
        key = list(arrays)[rng.integers(0, len(arrays))]
        array, kind = arrays[key], rng.integers(0, 6)
        if kind == 0:
            del arrays[key]
        elif kind == 1:
            try:
                arrays[key] = np.asarray(array).astype(["i1", "u8", "f4", "c8", "U5", "M8[s]"][rng.integers(0, 6)])
            except (ValueError, RuntimeError):
                arrays[key] = np.array(0)
        elif kind == 2:
            arrays[key] = np.asarray(array)[None] if rng.random() < 0.5 else np.asarray(array).reshape(-1)[:1]
        elif kind == 3 and np.asarray(array).dtype.kind in "iuf" and np.asarray(array).size:
            values = np.array(array)
            big = [-1, 0, 2**31, 2**62] if values.dtype.kind in "iu" else [np.nan, np.inf, -1.0, 1e300, 0.0]
            odd = np.array(big)[rng.integers(0, len(big))].astype(values.dtype)
            values.reshape(-1)[rng.integers(0, values.size)] = odd
            arrays[key] = values
        elif kind == 4:
            arrays[key] = np.array(["a", "b"]) if rng.random() < 0.5 else np.zeros((0,))
        else:
            arrays[key] = np.asarray(array).T
    file = io.BytesIO()
    try:
        np.savez(file, **arrays)
    except (ValueError, TypeError):
        return data
    return file.getvalue()


def check(log: Log) -> None:
    """Assert the invariants of a log."""
    assert np.isfinite(log.X.data if hasattr(log.X, "indptr") else log.X).all()
    assert ((log.propensity > 0) & (log.propensity <= 1)).all() and ((log.reward >= 0) & (log.reward <= 1)).all()
    assert log.n_rounds >= 1 and log.n_classes >= 2 and 0 <= log.codes.min() and log.codes.max() < log.n_classes
    assert len({type(label) for label in log.classes}) == 1 and len(set(log.classes)) == log.n_classes


def fuzz(reader: str, inputs: int, seed: int, complain: Callable[[str], None] = print) -> Counter[str]:
    """Try this many inputs on one reader, and count the outcomes."""
    rng = np.random.default_rng([seed, len(reader)])
    outcomes: Counter[str] = Counter()
    files = {name: data for name, data in good_files(rng).items() if name.endswith(reader)}
    names = list(files)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DamagedLogWarning)
        path = Path(folder) / reader
        for number in range(inputs):
            data = files[names[number % len(names)]]
            by_field = damage_arrays if reader.endswith("npz") else damage_fields
            with warnings.catch_warnings(action="ignore"):  # from numpy, for numbers out of range
                damaged = by_field(data, rng) if rng.random() < 0.5 and not reader.endswith("gz") else data
            if damaged is data or rng.random() < 0.2:
                damaged = damage_bytes(damaged, rng)
            path.write_bytes(damaged)
            started = time.process_time()
            try:
                check(open_log(path, damaged="skip" if rng.random() < 0.5 else "refuse"))
                outcomes["read"] += 1
            except GaptronError as error:
                named = str(path) in str(error)
                outcomes["refused" if named else "refused without the file's name"] += 1
                if not named:
                    complain(f"{reader} input {number}: no file in {error!r}")
            except Exception as error:  # a failure
                outcomes["WRONG"] += 1
                complain(f"{reader} input {number}: {error!r}")
            outcomes["slowest, ms"] = max(outcomes["slowest, ms"], int(1000 * (time.process_time() - started)))
    return outcomes


READERS = ("log.jsonl", "log.dsjson", "log.npz", "log.jsonl.gz")

if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for reader in sys.argv[3:] or READERS:
        print(reader, dict(fuzz(reader, count, seed)), flush=True)
