"""Read plans from TOML. Errors name the file and the line."""

import re
import tomllib
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from gaptron.algorithms import NAMES
from gaptron.data.special_files import check_not_special
from gaptron.errors import SettingError
from gaptron.experiments.contender import contender
from gaptron.experiments.external import EXAMPLES, library_of
from gaptron.experiments.plan import BOUNDS, FEEDBACK, Plan, PlannedAlgorithm, PlannedStream

_T = TypeVar("_T")

READING = {
    "format": str,
    "label": (str, int),
    "reward": (str, int),
    "available": (str, int),
    "classes": list,
    "n_features": int,
    "index_base": (int, str),
    "header": bool,
    "separator": str,
    "decimal": str,
    "dates": str,
    "encoding": str,
}
PREPARING = {"unit_norm": bool, "constant": bool, "standardize": bool, "log1p": bool, "limit": int}
PLAN = ("streams", "algorithms", "feedback", "seeds", "grids", "bounds", "radius", "prepare")
NOT_BY_NAME = ("n_features", "index_base", "standardize", "log1p")  # decided by the encoder of the columns
ACTIONS = {"format": str, "costs": str, "id": str}  # reading of rounds with actions
STREAM = ("data", "name", "feedback", "shuffle", "by_name", "actions", *ACTIONS, *READING, *PREPARING)
ALGORITHM = ("name", "loss", "feedback", "settings", "grid")
EXTERNAL = ("name", "feedback", "settings", "grid")
PREPARE = ("shuffle", "by_name", *PREPARING)


def read_plan(path: Path) -> Plan:
    """Read a plan from a file."""
    try:
        check_not_special(path)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingError(f"{path}: cannot be read ({problem})") from None
    return parse(text, str(path))


def default_plan() -> Plan:
    """Return the plan that `gaptron compare` runs without arguments."""
    text = (files("gaptron.experiments") / "default.toml").read_text(encoding="utf-8")
    return parse(text, "default.toml")


def parse(text: str, name: str) -> Plan:
    """Parse a plan; errors call it `name`."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SettingError(f"{name}: {problem}") from None
    return _Reader(text, name).plan(table)


class _Reader:
    """Checks the parsed TOML. It has no line numbers, so errors search for their keys in the text."""

    def __init__(self, text: str, name: str) -> None:
        self.lines, self.name = [line.partition("#")[0] for line in text.splitlines()], name

    def plan(self, table: dict[str, Any]) -> Plan:
        self.known(table, PLAN, "a plan", ())
        common = self.table(table, "prepare", ())
        self.known(common, PREPARE, "[prepare]", ("prepare",))
        algorithms = self.entries(table, "algorithms", "name", self.algorithm)
        options = {
            "feedback": self.words(table, "feedback", FEEDBACK, ()),
            "seeds": self.seeds(table),
            "grids": self.typed(table, "grids", bool, ()),
            "bounds": self.one_of(table, "bounds", BOUNDS, ()),
            "radius": self.positive(table, "radius"),
        }
        streams = self.entries(table, "streams", "data", lambda entry, at: self.stream({**common, **entry}, at))
        try:
            return Plan(streams, algorithms, **{name: value for name, value in options.items() if value is not None})
        except SettingError as problem:
            key = next((word for word in re.findall(r"[\w-]+", str(problem)) if self.line((word,))), "")
            self.fail((key,), str(problem))

    def stream(self, table: dict[str, Any], at: tuple[Any, ...]) -> PlannedStream:
        self.known(table, STREAM, "a stream", at)
        data = self.typed(table, "data", str, at)
        if not data:
            self.fail(at, 'a stream needs data = "..."')
        if self.typed(table, "actions", bool, at):
            return self.stream_of_actions(data, table, at)
        for word in ("costs", "id"):
            if word in table:
                self.fail((*at, word), f"{word} is for streams with actions = true")
        shuffle = self.typed(table, "shuffle", bool, at)
        reading = {word: self.typed(table, word, kind, at) for word, kind in READING.items() if word in table}
        preparing = {word: self.typed(table, word, kind, at) for word, kind in PREPARING.items() if word in table}
        name = self.typed(table, "name", str, at) or ""
        feedback = self.words(table, "feedback", FEEDBACK, at) or ()
        by_name = bool(self.typed(table, "by_name", bool, at))
        conflicting = next((word for word in NOT_BY_NAME if by_name and table.get(word)), None)
        if conflicting:
            self.fail(
                (*at, conflicting), f"{conflicting} does not apply with by_name, which encodes the columns: remove it"
            )
        if by_name:
            preparing = {word: value for word, value in preparing.items() if word == "limit"}
        return PlannedStream(data, name, reading, preparing, shuffle is not False, feedback, by_name)

    def stream_of_actions(self, data: str, table: dict[str, Any], at: tuple[Any, ...]) -> PlannedStream:
        extra = next(
            (word for word in table if word not in (*ACTIONS, "data", "name", "feedback", "actions", "limit")), ""
        )
        if extra:
            self.fail((*at, extra), f"{extra} does not apply with actions: remove it")
        reading = {word: self.typed(table, word, kind, at) for word, kind in ACTIONS.items() if word in table}
        limit = self.typed(table, "limit", int, at)
        name, feedback = self.typed(table, "name", str, at) or "", self.words(table, "feedback", FEEDBACK, at) or ()
        preparing = {} if limit is None else {"limit": limit}
        return PlannedStream(data, name, reading, preparing, shuffle=False, feedback=feedback, actions=True)

    def algorithm(self, table: dict[str, Any], at: tuple[Any, ...]) -> PlannedAlgorithm:
        name = self.typed(table, "name", str, at)
        if not name:
            self.fail(at, 'an algorithm needs name = "..."')
        if library_of(name):
            self.known(table, EXTERNAL, "an external model", at)
        else:
            self.known(table, ALGORITHM, "an algorithm", at)
            self.one_of(table, "name", (*NAMES, *EXAMPLES), at)
        try:
            known = contender(name)
        except SettingError as problem:
            self.fail(at, str(problem))
        settings = self.table(table, "settings", at)
        grid: dict[str, tuple[Any, ...]] | None = None
        if table.get("grid") is False:
            grid = {}
        elif "grid" in table:
            grid = {word: self.values(values, word, at) for word, values in self.table(table, "grid", at).items()}
        for word in (*settings, *(grid or ())):
            if word not in known.settings:
                self.fail((*at, word), f"{name} has no setting {word!r}; it has: {', '.join(known.settings)}")
        losses = self.words(table, "loss", known.losses, at)
        feedback = self.words(table, "feedback", FEEDBACK, at)
        try:
            return PlannedAlgorithm(name, losses or (), feedback or (), settings, grid)
        except SettingError as problem:
            self.fail(at, str(problem))

    # --- values ---------------------------------------------------------------------------------------------

    def entries(
        self, table: dict[str, Any], key: str, main: str, read: Callable[[dict[str, Any], tuple[Any, ...]], _T]
    ) -> tuple[_T, ...]:
        """Read a list whose entries are tables, or strings that stand for their main key."""
        items = table.get(key)
        if not isinstance(items, list) or not items:
            self.fail((key,), f"{key} must be a list with at least one entry, such as [[{key}]] or {key} = [...]")
        read_so_far = []
        for number, entry in enumerate(items):
            if isinstance(entry, str):
                entry = {main: entry}
            if not isinstance(entry, dict):
                self.fail((key, entry), f"{key} holds {entry!r}, which is neither a name nor a table")
            word = entry.get(main)
            read_so_far.append(read(entry, (key, number, *([word] if isinstance(word, str) else []))))
        return tuple(read_so_far)

    def known(self, table: dict[str, Any], names: Iterable[str], what: str, at: tuple[Any, ...]) -> None:
        for word in table:
            if word not in names:
                self.fail((*at, word), f"{what} has no {word!r}; it has: {', '.join(names)}")

    def typed(self, table: dict[str, Any], key: str, kind: Any, at: tuple[Any, ...]) -> Any:
        value = table.get(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if value is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            words = {bool: "true or false", str: "a string", int: "a whole number", list: "a list"}
            self.fail((*at, key), f"{key} = {value!r} must be {' or '.join(words[k] for k in kinds)}")
        return value

    def table(self, table: dict[str, Any], key: str, at: tuple[Any, ...]) -> dict[str, Any]:
        value = table.get(key, {})
        if not isinstance(value, dict):
            self.fail((*at, key), f"{key} = {value!r} must be a table, such as {key} = {{ name = value }}")
        return value

    def one_of(self, table: dict[str, Any], key: str, names: tuple[str, ...], at: tuple[Any, ...]) -> str | None:
        value = table.get(key)
        if value is not None and value not in names:
            self.fail(
                (*at, key) if at[2:] != (value,) else at, f"unknown {key} {value!r}; choose from: {', '.join(names)}"
            )
        return value

    def words(self, table: dict[str, Any], key: str, names: tuple[str, ...], at: tuple[Any, ...]) -> Any:
        value = table.get(key)
        if value is None:
            return None
        chosen = [value] if isinstance(value, str) else value
        if not isinstance(chosen, list) or not chosen:
            self.fail((*at, key), f"{key} = {value!r} must be a string or a list of strings")
        for word in chosen:
            if word not in names:
                self.fail((*at, key), f"unknown {key} {word!r}; choose from: {', '.join(names)}")
        return tuple(dict.fromkeys(chosen))

    def values(self, table: Any, key: str, at: tuple[Any, ...]) -> tuple[Any, ...]:
        if not isinstance(table, list) or not table or not all(isinstance(v, (int, float, str)) for v in table):
            self.fail((*at, key), f"{key} = {table!r} must be a list of numbers or strings to try")
        return tuple(table)

    def seeds(self, table: dict[str, Any]) -> tuple[int, ...] | None:
        value = table.get("seeds")
        if value is None:
            return None
        chosen = list(range(value)) if isinstance(value, int) and not isinstance(value, bool) else value
        whole = isinstance(chosen, list) and all(type(seed) is int and seed >= 0 for seed in chosen)
        if not whole or not chosen or len(set(chosen)) != len(chosen):
            self.fail(
                ("seeds",), f"seeds = {value!r} must be a number of seeds, or a list of distinct integers of at least 0"
            )
        return tuple(chosen)

    def positive(self, table: dict[str, Any], key: str) -> float | None:
        value = table.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
            self.fail((key,), f"{key} = {value!r} must be a positive number")
        return None if value is None else float(value)

    # --- lines ----------------------------------------------------------------------------------------------

    def line(self, at: tuple[Any, ...]) -> int | None:
        """Return the line (from 1) where the keys of `at` are found one after the other; a number counts [[tables]]."""
        spot: int | None = None
        for number, word in enumerate(at):
            if isinstance(word, int):
                heads = [
                    i for i, line in enumerate(self.lines) if re.match(rf"\s*\[\[\s*{at[number - 1]}\s*\]\]", line)
                ]
                spot = heads[word] if word < len(heads) else spot
                continue
            shown = rf"(?<![\w-]){re.escape(str(word))}(?![\w-])"
            later = (i for i in range(spot or 0, len(self.lines)) if re.search(shown, self.lines[i]))
            spot = next(later, spot)
        return None if spot is None else spot + 1

    def fail(self, at: tuple[Any, ...], problem: str) -> NoReturn:
        line = self.line(at)
        raise SettingError(f"{self.name}{'' if line is None else f', line {line}'}: {problem}")
