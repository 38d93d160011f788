"""Files of rounds with named actions: the extension determines the format."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gaptron.data import atomic_file
from gaptron.errors import InputError, SettingError, StreamError
from gaptron.streams.actions import adf, dsjson, jsonl, long_table
from gaptron.streams.actions.costs import read_costs
from gaptron.streams.actions.ids import Ids
from gaptron.streams.actions.long_table import Roles
from gaptron.streams.actions.rounds import PLAYED, NamedRounds
from gaptron.streams.actions.worlds import is_world, open_world
from gaptron.streams.columns import Column
from gaptron.streams.compression import compressed
from gaptron.streams.source import Source

DAMAGED = ("refuse", "skip")


class ActionFormat(NamedTuple):
    """A file format for rounds of named actions."""

    extensions: tuple[str, ...]
    options: tuple[str, ...] = ()  # of `open_actions`, that are for this format


TABLES = ("csv", "tsv", "parquet")
_TABLE = ("round", "action", "reward", "propensity", "played", "right", "context")
ACTION_FORMATS = {
    "vw": ActionFormat((".vw", ".vwtxt", ".adf"), ("costs", "id")),
    "dsjson": ActionFormat((".dsjson", ".json"), ("costs", "id", "damaged")),
    "jsonl": ActionFormat((".jsonl", ".ndjson"), ("damaged",)),
    "csv": ActionFormat((".csv",), _TABLE),
    "tsv": ActionFormat((".tsv",), _TABLE),
    "parquet": ActionFormat((".parquet",), _TABLE),
}
_WRITERS: dict[str, Callable[[NamedRounds], Iterator[bytes]]] = {"dsjson": dsjson.write, "jsonl": jsonl.write}


def open_actions(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    costs: str | None = None,
    id: str | None = None,
    round: Column | None = None,
    action: Column | None = None,
    reward: Column | None = None,
    propensity: Column | None = None,
    played: Column | None = None,
    right: Column | None = None,
    context: Sequence[Column] | None = None,
    damaged: str = "refuse",
) -> NamedRounds:
    """Read rounds of named actions from a file or from standard input.

    An incomplete last line of dsjson or JSON lines, as a full disk or a killed process leaves it, is skipped with a
    DamagedLogWarning.

    Args:
        source: a path (.vw .dsjson .jsonl .csv .tsv .parquet; .gz .bz2 .xz are unpacked), "-" for standard input, or
            the name of a world, as in "news" or "news:rounds=1000,seed=3" (a file of that name is "./news").
        format: vw, dsjson, jsonl, csv, tsv or parquet; by default from the extension, and jsonl for standard input.
        costs: of vw and dsjson: the lowest and the highest cost, "LOW..HIGH". The reward is (high - cost) / (high -
            low). The default is "-1..0": the cost is the reward with a minus sign.
        id: of vw and dsjson: "tag", "position", or the feature with the ids of the actions. By default the tags, or
            else a feature id, or else positions, as the first action has them.
        round: of tables: the column with the number of the round. The default is the column round.
        action: of tables: the column with the ids. The default is the column action, if there is one.
        reward: of tables: the column with the reward. The default is the column reward, if there is one.
        propensity: of tables: the column with the propensity of the action played. The default is the column propensity
            or probability, if there is one.
        played: of tables: the column with 1 for the action played. The default is the column played, if there is one.
        right: of tables: the column with 1 for the right action. The default is the column right, if there is one.
        context: of tables: the features that all actions of a round share. The default is those that do, in this file.
        damaged: of dsjson and jsonl: "refuse" a file with a line that cannot be read, or "skip" such lines with a
            DamagedLogWarning that lists them.

    Returns:
        The rounds.

    Raises:
        StreamError: the file cannot be read; the message names the file and, if possible, the line.
    """
    if damaged not in DAMAGED:
        raise SettingError(f"damaged={damaged!r} must be one of {', '.join(DAMAGED)}")
    origin = Source(os.fspath(source))
    world = is_world(origin.path)
    if not world:
        origin.check_exists("file not found")
    roles = {
        "round": round,
        "action": action,
        "reward": reward,
        "propensity": propensity,
        "played": played,
        "right": right,
        "context": context,
    }
    given = {"costs": costs, "id": id, "damaged": None if damaged == DAMAGED[0] else damaged, **roles}
    if world:
        if format is not None or any(value is not None for value in given.values()):
            raise InputError(f"{origin.path} is built in: format and similar arguments are for files")
        return open_world(origin.path)
    name = format_of(origin.path, format)
    for option, value in given.items():
        if value is not None and option not in ACTION_FORMATS[name].options:
            raise StreamError(origin.name, f"{option}= is not for {name} files: leave it out")
    if name in TABLES:
        return long_table.read(origin, name, Roles(**roles))  # type: ignore[arg-type]
    if name == "jsonl":
        return jsonl.read(origin, skip_damaged=damaged == "skip")
    if name == "dsjson":
        return dsjson.read(origin, read_costs(costs), Ids(id), skip_damaged=damaged == "skip")
    return adf.read(origin, read_costs(costs), Ids(id))


def save_actions(stream: NamedRounds, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write rounds to a file. An existing file is replaced atomically.

    Args:
        stream: the rounds. dsjson holds only logs, of actions that were played.
        path: the file; .gz, .bz2 and .xz are compressed.
        format: dsjson or jsonl; by default from the extension.

    Raises:
        InputError: the format cannot hold these rounds.
        StreamError: the file cannot be written; an existing file is unchanged.
    """
    target = Source(os.fspath(path))
    name = format_of(target.path, format)
    if name not in _WRITERS:
        raise StreamError(target.name, f"{name} cannot be written: give format= one of {', '.join(_WRITERS)}")
    if name == "dsjson" and stream.kind != PLAYED:
        raise InputError(f"{stream.name}: dsjson is for logs of actions that were played: use jsonl")
    try:
        atomic_file.replace(target.path, compressed(_WRITERS[name](stream), target.suffixes[1]))
    except UnicodeEncodeError:
        raise InputError(f"{stream.name}: a name contains a lone surrogate, which UTF-8 cannot encode") from None
    except OSError as problem:
        raise StreamError(target.name, f"cannot be written ({problem.strerror or problem})") from None


def format_of(path: str, asked: str | None) -> str:
    """Return the format of a file: the one asked for, otherwise that of its extension; of standard input, jsonl.

    Args:
        path: the file.
        asked: a name in `ACTION_FORMATS`, or None.

    Returns:
        A name in `ACTION_FORMATS`.

    Raises:
        StreamError: there is no such format.
    """
    source = Source(path)
    extension, packed = source.suffixes
    by_extension = next((name for name, form in ACTION_FORMATS.items() if extension in form.extensions), None)
    name = asked or ("jsonl" if source.is_stdin else by_extension)
    if name not in ACTION_FORMATS:
        raise StreamError(source.name, f"unknown format of actions: give format= one of {', '.join(ACTION_FORMATS)}")
    if packed and name == "parquet":
        raise StreamError(source.name, f"{name} files are compressed already: unpack the {packed} first")
    return name
