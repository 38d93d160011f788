"""Open Bandit Pipeline's format: the dictionary it calls bandit feedback, and the same arrays in an .npz file."""

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from gaptron.errors import InputError, StreamError
from gaptron.offpolicy.log import Log
from gaptron.streams.json_lines import MalformedError, plain_classes
from gaptron.streams.npz import check_archive
from gaptron.streams.source import Source

NEEDED = ("n_actions", "context", "action", "reward", "pscore")
KNOWN = (*NEEDED, "n_rounds", "position", "pi_b", "classes", "available")
MOST_NUMBERS = 1 << 27  # in a context that must be dense
MOST_LABELS = 1 << 20  # where only n_actions gives their number
# What zipfile, its decompressors and numpy raise for bytes that are not an archive of arrays.
_UNREADABLE = (
    ValueError,
    OSError,
    EOFError,
    TypeError,
    KeyError,
    IndexError,
    SyntaxError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    OverflowError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)


def to_obp(log: Log) -> dict[str, Any]:
    """Convert a log to Open Bandit Pipeline's dictionary of bandit feedback.

    `classes` and `available` are our own additions: the labels that the action numbers stand for, and which of them
    were available, n_rounds × n_actions.

    Args:
        log: The log.

    Returns:
        The dictionary; its arrays are copies.
    """
    if sparse.issparse(log.X) and log.n_rounds * log.n_features > MOST_NUMBERS:
        raise InputError(
            f"{log.name}: this format is dense, and {log.n_rounds} × {log.n_features} features are too large"
        )
    given: dict[str, Any] = {
        "n_rounds": log.n_rounds,
        "n_actions": log.n_classes,
        "context": np.array(log.X.toarray() if sparse.issparse(log.X) else log.X, dtype=np.float64),
        "action": log.codes.copy(),
        "position": np.zeros(log.n_rounds, dtype=np.int64),
        "reward": log.reward.copy(),
        "pscore": log.propensity.copy(),
        "classes": np.array(plain_classes(log.classes)),
    }
    if log.distribution is not None:
        given["pi_b"] = log.distribution[:, :, None].copy()
    if log.available is not None:
        given["available"] = log.available.copy()
    return given


def from_obp(feedback: Mapping[str, Any], name: str = "arrays", *, column: str | None = None) -> Log:
    """Make a log from Open Bandit Pipeline's dictionary, with one position and rewards in [0, 1].

    Args:
        feedback: The dictionary of bandit feedback.
        name: Name of the log, for messages.
        column: Key of the array with the probabilities of your own policy: of the action of each round, n_rounds
            numbers, or of every action, n_rounds × n_actions (× 1).

    Returns:
        The log.
    """
    missing = [key for key in (*NEEDED, *([] if column is None else [column])) if feedback.get(key) is None]
    if missing:
        raise StreamError(name, f"missing: {', '.join(missing)}; bandit feedback needs {', '.join(NEEDED)}")
    position = feedback.get("position")
    if position is not None and np.asarray(position).dtype.kind in "iuf" and np.any(np.asarray(position) != 0):
        raise StreamError(name, "logs with several positions cannot be evaluated: keep one position")
    action, count = np.asarray(feedback["action"]), np.asarray(feedback["n_actions"])
    if count.shape != () or count.dtype.kind not in "iu" or not 2 <= count <= MOST_LABELS:
        raise StreamError(name, f"n_actions is {feedback['n_actions']!r}, not an integer from 2 to {MOST_LABELS}")
    if action.ndim != 1 or action.dtype.kind not in "iu":
        raise StreamError(name, "action must be one integer per round")
    if feedback.get("n_rounds") is not None and np.any(np.asarray(feedback["n_rounds"]) != len(action)):
        raise StreamError(name, f"n_rounds is {feedback['n_rounds']}, but action has {len(action)} entries")
    if feedback.get("classes") is not None and np.ndim(feedback["classes"]) != 1:
        raise StreamError(name, "classes must be one label for each action")
    classes = range(int(count)) if feedback.get("classes") is None else np.asarray(feedback["classes"]).tolist()
    if len(classes) != count:
        raise StreamError(name, f"classes names {len(classes)} labels, and n_actions is {count}")
    bad = (action < 0) | (action >= count)
    if bad.any():
        row = int(np.argmax(bad))
        raise StreamError(name, f"row {row}: action {action[row]} is not one of 0..{count - 1}")
    available = feedback.get("available")
    if available is not None and np.shape(available) != (len(action), int(count)):
        raise StreamError(name, f"available has shape {np.shape(available)}, not {(len(action), int(count))}")
    pi_b = None if feedback.get("pi_b") is None else np.asarray(feedback["pi_b"])
    if pi_b is not None and pi_b.ndim == 3 and pi_b.shape[2] == 1:
        pi_b = pi_b[:, :, 0]
    log = Log.from_arrays(
        feedback["context"],
        [classes[code] for code in action],
        feedback["reward"],
        feedback["pscore"],
        classes=classes,
        distribution=pi_b,
        available=None if available is None else np.asarray(available, dtype=np.bool_),
        name=name,
    )
    return log if column is None else log.with_policy(np.asarray(feedback[column]))


def read(source: Source, *, column: str | None = None) -> Log:
    """Read a log from an .npz file; `column` names the array with the probabilities of the caller's policy."""
    wanted = (*KNOWN, *([] if column is None else [column]))
    try:
        with source.seekable() as file, zipfile.ZipFile(file) as archive:
            check_archive(source, archive)
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            arrays = {key: _array(archive, members[key], key) for key in wanted if key in members}
    except StreamError:
        raise
    except MalformedError as problem:
        raise StreamError(source.name, str(problem)) from None
    except _UNREADABLE as error:
        raise StreamError(source.name, f"cannot be read as .npz ({error})") from None
    return from_obp(arrays, source.name, column=column)


def _array(archive: zipfile.ZipFile, name: str, key: str) -> Any:
    """Read an array of the archive after checking that its length agrees with its header."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read_header(file)
        if kind.hasobject:
            raise MalformedError(f"{key} contains Python objects, which are not read from files")
        if math.prod(shape) * kind.itemsize != archive.getinfo(name).file_size - file.tell():
            raise MalformedError(f"{key} does not have the length that its header says")
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
