"""Model files: one file that holds a tree of plain values and arrays, written completely or not at all.

The container is safetensors, which many tools read and which never executes code. The arrays are its tensors, named by
their place in the tree. Its metadata has three strings:

    gaptron    the format, "1"
    tree       JSON: the tree; an array in it is {"$array": its name}
    sha256     the checksum of the tree and of every array, by name

A tree is None, bool, int, float, str, a NumPy array or scalar of numbers or booleans, or a tuple, a list or a dict
(with strings as keys) of trees. What JSON cannot express is an object with one key:
{"$tuple": [...]}, {"$float": "inf"}.
"""

import hashlib
import json
import math
import os
import stat
import struct
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gaptron.data import atomic_file
from gaptron.errors import ModelFileError

FORMAT = 1
LENGTH = struct.Struct("<Q")  # of the header, before it
KINDS = {"b1", "i1", "u1", *(f"{kind}{size}" for kind in "iu" for size in (2, 4, 8)), "f2", "f4", "f8"}
PLAIN = (type(None), bool, int, str)
Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], content: Any) -> None:
    """Write a tree to a file. If the process is killed, the old file or the new one is left.

    Args:
        path: the file, which is replaced if it exists.
        content: the tree.

    Raises:
        ModelFileError: the file cannot be written, or the tree holds a value that cannot be stored.
    """
    try:
        atomic_file.replace(path, [packed(content, path)])
    except OSError as error:
        raise ModelFileError(path, f"cannot be written ({error.strerror or error})") from None


def read(path: str | os.PathLike[str]) -> Any:
    """Read the tree of a file.

    Args:
        path: the file.

    Returns:
        The tree. Its arrays are writable.

    Raises:
        ModelFileError: the file cannot be read, is damaged, or has another format.
    """
    return unpacked(_bytes_of(path), path)


def packed(content: Any, path: str | os.PathLike[str]) -> bytes:
    """Convert a tree to the bytes of a file; `path` is its name in errors."""
    import safetensors.numpy  # noqa: PLC0415

    arrays: Arrays = {}
    tree = _packed(content, "", arrays, path)
    try:
        text = json.dumps(tree, allow_nan=False, ensure_ascii=False)
        metadata = {"gaptron": str(FORMAT), "tree": text, "sha256": _checksum(text, arrays)}
    except (RecursionError, ValueError) as error:  # a lone surrogate, a number of thousands of digits
        raise ModelFileError(path, f"cannot be written as JSON ({error})") from None
    return safetensors.numpy.save(arrays, metadata)


def unpacked(data: bytes, path: str | os.PathLike[str]) -> Any:
    """Convert the bytes of a file to its tree, with writable arrays; `path` is its name in errors."""
    import safetensors  # noqa: PLC0415
    import safetensors.numpy  # noqa: PLC0415

    version, text, checksum = _metadata(data, path)
    if version != str(FORMAT):
        raise ModelFileError(path, f"its format is {version!r}, but this version reads format {FORMAT}: update gaptron")
    try:
        arrays = safetensors.numpy.load(data)
        if _checksum(text, arrays) != checksum:
            raise ModelFileError(path, "it is damaged: the checksum does not match")
        return _unpacked(json.loads(text, parse_constant=_refuse), arrays)
    except safetensors.SafetensorError as error:
        raise ModelFileError(path, f"it is damaged ({error})") from None
    except ModelFileError:
        raise
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(path, f"its header is invalid ({error})") from None


def checksum(data: bytes, path: str | os.PathLike[str]) -> str:
    """The checksum that the bytes contain: equal for equal trees, although their bytes may be in another order."""
    return _metadata(data, path)[2]


def _metadata(data: bytes, path: str | os.PathLike[str]) -> tuple[str, str, str]:
    """Format, tree and checksum."""
    try:
        (length,) = LENGTH.unpack_from(data)
        if length > len(data) - LENGTH.size:
            raise ValueError("the header is longer than the file")
        metadata = json.loads(data[LENGTH.size : LENGTH.size + length])["__metadata__"]
        return metadata["gaptron"], metadata["tree"], metadata["sha256"]
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, struct.error):
        raise ModelFileError(path, "this is not a gaptron model file, or an incomplete one") from None


# --- trees ------------------------------------------------------------------------------------------------


def _packed(value: Any, name: str, arrays: Arrays, path: str | os.PathLike[str]) -> Any:
    kind = type(value)
    if isinstance(value, np.generic):
        value, kind = value.item(), type(value.item())
    if kind in PLAIN or (kind is float and math.isfinite(value)):
        return value
    if kind is float:
        return {"$float": repr(value)}
    if kind in (tuple, list):
        inside = [_packed(part, f"{name}.{i}" if name else str(i), arrays, path) for i, part in enumerate(value)]
        return {"$tuple": inside} if kind is tuple else inside
    if kind is dict and all(type(word) is str and not word.startswith("$") for word in value):
        return {word: _packed(part, f"{name}.{word}" if name else word, arrays, path) for word, part in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.str[1:] in KINDS:
        arrays[name] = np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")
        return {"$array": name}
    raise ModelFileError(
        path, f"{value!r} is a {kind.__name__}: a file stores text, numbers, True, False, None and tuples of them"
    )


def _unpacked(tree: Any, arrays: Arrays) -> Any:
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
    if word == "$array" and isinstance(inside, str):
        return arrays[inside]
    raise ValueError(f"unknown key {word}")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


# --- bytes ------------------------------------------------------------------------------------------------


def _bytes_of(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ModelFileError(path, "it is not a regular file")
            return file.read()
    except OSError as error:
        raise ModelFileError(path, f"cannot be read ({error.strerror or error})") from None


def _checksum(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
