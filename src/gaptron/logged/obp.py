"""The arrays of the Open Bandit Pipeline: the dictionary it calls bandit feedback, and the same in an .npz file."""

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
from gaptron.logged.lines import MalformedError, plain_classes
from gaptron.logged.log import Log
from gaptron.streams.source import Source

NEEDED = ("n_actions", "context", "action", "reward", "pscore")
KNOWN = (*NEEDED, "n_rounds", "position", "pi_b", "classes", "among")
ROOM = 1 << 27  # numbers at most in a context that must be written out
MOST_LABELS = 1 << 20  # where nothing in the file but n_actions says how many there are
# What zipfile, its decompressors and numpy raise at bytes that are no archive of arrays.
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
    """The log as Open Bandit Pipeline's dictionary.

    `classes` and `among` are ours: what the action numbers stand for, and which were available, n_rounds × n_actions.
    """
    if sparse.issparse(log.X) and log.n_rounds * log.n_features > ROOM:
        raise InputError(f"{log.name}: these arrays are dense, and {log.n_rounds} × {log.n_features} is too large")
    given: dict[str, Any] = {
        "n_rounds": log.n_rounds,
        "n_actions": log.n_classes,
        "context": np.array(log.X.toarray() if sparse.issparse(log.X) else log.X, dtype=np.float64),
        "action": log.codes.copy(),
        "position": np.zeros(log.n_rounds, dtype=np.int64),
        "reward": log.reward.copy(),
        "pscore": log.probability.copy(),
        "classes": np.array(plain_classes(log.classes)),
    }
    if log.distribution is not None:
        given["pi_b"] = log.distribution[:, :, None].copy()
    if log.among is not None:
        given["among"] = log.among.copy()
    return given


def from_obp(feedback: Mapping[str, Any], name: str = "arrays", *, column: str | None = None) -> Log:
    """A log of Open Bandit Pipeline's dictionary: one position, rewards in [0, 1].

    `column` names the array of a policy of your own to be judged: its chance of the action of each round, n_rounds
    numbers, or of every action, n_rounds × n_actions (× 1).
    """
    missing = [key for key in (*NEEDED, *([] if column is None else [column])) if feedback.get(key) is None]
    if missing:
        raise StreamError(name, f"no {', '.join(missing)}; bandit feedback needs {', '.join(NEEDED)}")
    position = feedback.get("position")
    if position is not None and np.asarray(position).dtype.kind in "iuf" and np.any(np.asarray(position) != 0):
        raise StreamError(name, "decisions with several positions cannot be judged here: keep one position")
    action, count = np.asarray(feedback["action"]), np.asarray(feedback["n_actions"])
    if count.shape != () or count.dtype.kind not in "iu" or not 2 <= count <= MOST_LABELS:
        raise StreamError(name, f"n_actions is {feedback['n_actions']!r}, not a whole number from 2 to {MOST_LABELS}")
    if action.ndim != 1 or action.dtype.kind not in "iu":
        raise StreamError(name, "action must be one whole number a round")
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
    among = feedback.get("among")
    if among is not None and np.shape(among) != (len(action), int(count)):
        raise StreamError(name, f"among has shape {np.shape(among)}, not {(len(action), int(count))}")
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
        among=None if among is None else np.asarray(among, dtype=np.bool_),
        name=name,
    )
    return log if column is None else log.with_policy(np.asarray(feedback[column]))


def read(source: Source, *, column: str | None = None) -> Log:
    """The log in an .npz file of these arrays, with the probabilities in an array of the reader's own if named."""
    wanted = (*KNOWN, *([] if column is None else [column]))
    try:
        with source.seekable() as place, zipfile.ZipFile(place) as archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            kept = {key: _array(archive, members[key], key) for key in wanted if key in members}
    except StreamError:
        raise
    except MalformedError as problem:
        raise StreamError(source.name, str(problem)) from None
    except _UNREADABLE as error:
        raise StreamError(source.name, f"cannot be read as .npz ({error})") from None
    return from_obp(kept, source.name, column=column)


def _array(archive: zipfile.ZipFile, name: str, key: str) -> Any:
    """An array of the archive, once it is known that the file is as long as its header says."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read_header(file)
        if kind.hasobject:
            raise MalformedError(f"{key} holds Python objects, which are not read from files")
        if math.prod(shape) * kind.itemsize != archive.getinfo(name).file_size - file.tell():
            raise MalformedError(f"{key} is not as long as its header says")
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
