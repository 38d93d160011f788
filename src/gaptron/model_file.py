"""One file that holds a tree of plain values and arrays: written whole or not at all, read only if unharmed.

    GAPTRON\\0          8 bytes that say what it is
    format             4 bytes, a whole number: 1
    length             8 bytes, of the header
    header             JSON in UTF-8: {"content": tree, "arrays": [[type, shape], ...]}
    arrays             in the header's order, C order, each at a multiple of 64 bytes
    checksum           32 bytes, SHA-256 of all before

Numbers are little-endian. Whatever the header claims about sizes must add up to the size the file really has, so
reading takes memory in proportion to the file. Nothing in it is ever run.

A tree is None, bool, int, float, str, a NumPy array or scalar of numbers or flags, or a tuple, a list or a dict (by
words) of trees. What JSON has no word for is an object of one key: {"$tuple": [...]}, {"$array": 3} and {"$scalar": 3}
(the third array), {"$float": "inf"}.
"""

import hashlib
import json
import math
import os
import secrets
import struct
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gaptron.errors import ModelFileError

MAGIC = b"GAPTRON\0"
FORMAT = 1
START = struct.Struct("<8sIQ")
CHECKSUM = hashlib.sha256().digest_size
ALIGNED = 64
TYPES = {"|b1", "|i1", "|u1", *(f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8)), "<f2", "<f4", "<f8"}
PLAIN = (type(None), bool, int, str)


def write(path: str | os.PathLike[str], content: Any) -> None:
    """Put the tree in a file, in place of what was there. A kill at any moment leaves the old file or the new one."""
    arrays: list[NDArray[Any]] = []
    tree = _packed(content, arrays, path)
    shapes = [[array.dtype.str, list(array.shape)] for array in arrays]
    try:
        header = json.dumps({"content": tree, "arrays": shapes}, allow_nan=False, ensure_ascii=False).encode()
    except (RecursionError, ValueError) as error:  # half a character, a number of thousands of digits
        raise ModelFileError(path, f"cannot be put into words ({error})") from None
    parts: list[Any] = [START.pack(MAGIC, FORMAT, len(header)), header, _gap(START.size + len(header))]
    for array in arrays:
        parts += [array.reshape(-1).view(np.uint8).data, _gap(array.nbytes)]
    try:
        _replace(Path(os.path.realpath(path)), parts)
    except OSError as error:
        raise ModelFileError(path, f"cannot be written ({error.strerror or error})") from None


def read(path: str | os.PathLike[str]) -> Any:
    """The tree in a file. Its arrays may be written to."""
    try:
        with open(path, "rb") as file:
            start, size = file.read(START.size), os.fstat(file.fileno()).st_size
            if not start.startswith(MAGIC) or size < START.size + CHECKSUM:
                raise ModelFileError(path, "this is not a model file of gaptron, or only the beginning of one")
            _, version, length = START.unpack(start)
            if version > FORMAT:
                raise ModelFileError(path, f"its format is {version}, this gaptron reads {FORMAT}: use a newer one")
            data = bytearray(size)
            data[: START.size] = start
            file.readinto(memoryview(data)[START.size :])
    except OSError as error:
        raise ModelFileError(path, f"cannot be read ({error.strerror or error})") from None
    end = size - CHECKSUM
    if hashlib.sha256(memoryview(data)[:end]).digest() != data[end:]:
        raise ModelFileError(path, "it is damaged: the checksum does not match")
    if length > end - START.size:
        raise ModelFileError(path, "its header is longer than the file")
    try:
        header = json.loads(data[START.size : START.size + length].decode(), parse_constant=_refuse)
        arrays = _arrays(data, START.size + length, end, header["arrays"])
        return _unpacked(header["content"], arrays)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(path, f"its header makes no sense ({error})") from None


# --- trees ------------------------------------------------------------------------------------------------


def _packed(value: Any, arrays: list[NDArray[Any]], path: str | os.PathLike[str]) -> Any:
    kind = type(value)
    if kind in PLAIN or (kind is float and math.isfinite(value)):
        return value
    if kind is float:
        return {"$float": repr(value)}
    if kind is np.str_:
        return str(value)
    if kind is tuple:
        return {"$tuple": [_packed(part, arrays, path) for part in value]}
    if kind is list:
        return [_packed(part, arrays, path) for part in value]
    if kind is dict and all(type(word) is str and not word.startswith("$") for word in value):
        return {word: _packed(part, arrays, path) for word, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.array(value, dtype=value.dtype.newbyteorder("<"), order="C", copy=None)
        if array.dtype.str in TYPES:
            arrays.append(array)
            return {"$array" if isinstance(value, np.ndarray) else "$scalar": len(arrays) - 1}
    raise ModelFileError(
        path, f"{value!r} is a {kind.__name__}: a file stores text, numbers, True, False, None and tuples of them"
    )


def _unpacked(tree: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(tree, list):
        return [_unpacked(part, arrays) for part in tree]
    if not isinstance(tree, dict):
        return tree
    if not any(word.startswith("$") for word in tree):
        return {word: _unpacked(part, arrays) for word, part in tree.items()}
    ((word, inside),) = tree.items()
    if word == "$tuple" and isinstance(inside, list):
        return tuple(_unpacked(part, arrays) for part in inside)
    if word == "$float" and inside in ("inf", "-inf", "nan"):
        return float(inside)
    if word in ("$array", "$scalar") and type(inside) is int and inside >= 0:
        return arrays[inside] if word == "$array" else arrays[inside][()]
    raise ValueError(f"unknown word {word}")


# --- bytes ------------------------------------------------------------------------------------------------


def _arrays(data: bytearray, start: int, end: int, shapes: list[Any]) -> list[NDArray[Any]]:
    found = []
    start += len(_gap(start))
    for kind, shape in shapes:
        if kind not in TYPES or any(type(n) is not int or n < 0 for n in shape) or len(shape) > 8:
            raise ValueError(f"array of {kind} {shape}")
        stored, count = np.dtype(kind), math.prod(shape)
        size = count * stored.itemsize
        if size > end - start:
            raise ValueError("arrays larger than the file")
        array = np.frombuffer(data, stored, count, start).reshape(shape)
        found.append(array.astype(stored.newbyteorder("="), copy=False))
        start += size + len(_gap(size))
    if start != end:
        raise ValueError("arrays smaller than the file")
    return found


def _gap(size: int) -> bytes:
    return bytes(-size % ALIGNED)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _replace(path: Path, parts: list[Any]) -> None:
    digest = hashlib.sha256()
    draft = path.with_name(f".gaptron-{secrets.token_hex(8)}")  # short: the name itself may be as long as names can be
    try:
        with open(draft, "xb") as file:
            for part in parts:
                digest.update(part)
                file.write(part)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name is safe only when the folder is
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
