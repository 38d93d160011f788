"""Task and Result: one run of a comparison before and after it is made, and the key that identifies it."""

import hashlib
import json
import math
import platform
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

from gaptron.errors import InputError
from gaptron.experiments import external
from gaptron.version import __version__

OK, FAILED = "ok", "failed"
PUBLISHED, GRID = "published", "grid"

# The hash in a key covers every source file except these, which no run imports: they print, draw figures, adapt, serve,
# or decide which runs are made and what happens to their results. A new file counts unless it is listed here.
NOT_IN_KEY = (
    "__main__.py",
    "client.py",
    "event_id.py",
    "river.py",
    "adapters/*.py",
    "cli/*.py",
    "offpolicy/*.py",
    "report/**/*.py",
    "serve/**/*.py",
    "experiments/backends.py",
    "experiments/best_certificate.py",
    "experiments/command.py",
    "experiments/compare.py",
    "experiments/contender.py",
    "experiments/export.py",
    "experiments/grouping.py",
    "experiments/plan.py",
    "experiments/plan_file.py",
    "experiments/ranks.py",
    "experiments/store.py",
    "experiments/summary.py",
)
LIBRARIES = ("numba", "numpy", "scipy")  # another version may draw or sum differently
# All of gaptron that a run of an external model passes through: another version of an algorithm does not change it.
EXTERNAL_RUN = (
    "experiments/external.py",
    "experiments/run_task.py",
    "experiments/stream_cache.py",
    "learner/trace.py",
)


class Task(NamedTuple):
    """One run to make: an algorithm on a stream with a seed."""

    stream: str  # its name; its content is identified by a hash
    algorithm: str
    feedback: str
    loss: str
    seed: int  # for the order of the rounds and the learner's draws
    settings: dict[str, Any]  # set by the plan; {}: the published ones
    role: str = PUBLISHED
    tuned: str | None = None
    radius: float | None = None  # D, if the algorithm has no settings without it
    shuffle: bool = True  # permute the rounds by the seed
    bound: bool = False  # compute the bound for the best comparator in hindsight
    command: str = ""  # the `gaptron play` command that repeats the run; "" for an external model

    @property
    def shared(self) -> dict[str, Any]:
        """The fields that a result copies from its task."""
        names = ("stream", "algorithm", "feedback", "loss", "seed", "settings", "role", "tuned", "command")
        return {name: getattr(self, name) for name in names}

    @property
    def version(self) -> str:
        """The version of everything that can change the result."""
        library = external.library_of(self.algorithm)
        return version() if library is None else _external_version(library)

    def key(self, data: str | None) -> str:
        """Return a hash of everything that determines the outcome: not the names, the role and the command."""
        # A stream that could not be read is identified by its name.
        content = {**self._asdict(), "data": data or f"unread: {self.stream}", "version": self.version}
        for name in ("stream", "role", "tuned", "command"):
            del content[name]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def failed(self, data: str | None, kind: str, message: str, traceback: str = "") -> "Result":
        """Return the result of a failure, with the error and without numbers."""
        error = {"type": kind, "message": message, "traceback": traceback}
        return Result(
            key=self.key(data),
            status=FAILED,
            version=self.version,
            processor=processor(),
            data=data,
            error=error,
            **self.shared,
        )


@dataclass(frozen=True)
class Result:
    """The result of one task. A failed one holds the error in place of numbers."""

    key: str  # hash of everything that determines the outcome
    status: str  # "ok" or "failed"
    stream: str  # its name
    algorithm: str
    feedback: str  # "full", "bandit" or the name of a graph
    loss: str
    seed: int  # for the order of the rounds and the learner's draws
    version: str  # of gaptron, its sources and its numerical libraries, or of an external model's library
    processor: str = ""  # the model: on another one, sums may differ in their last digits
    command: str = ""  # the `gaptron play` command that repeats the run; "" for an external model
    settings: dict[str, Any] = field(default_factory=dict)  # set by the plan; {}: the published ones
    role: str = PUBLISHED  # or "grid": one of several settings, of which the best in hindsight is reported
    tuned: str | None = None  # the grid's parameters, joined by commas

    data: str | None = None  # hash of X and y as prepared, before the shuffle
    prepared: tuple[str, ...] = ()  # how the stream was prepared
    rounds: int | None = None  # T
    n_classes: int | None = None  # K
    n_features: int | None = None  # d

    mistakes: int | None = None
    expected_mistakes: float | None = None  # Σ(1 - p_t(y_t))
    top_mistakes: int | None = None  # of the label of the largest score
    reward: float | None = None  # the total reward, if the stream has rewards
    best_reward: float | None = None  # the total reward of the best labels, if the stream knows them
    curve: dict[str, list[float]] | None = None  # rounds, mistakes, expected: sums up to log-spaced rounds
    used: dict[str, Any] = field(default_factory=dict)  # every setting in use, choices as the words users type
    certificate: dict[str, Any] | None = None  # the certificate at the end of the run
    observed: dict[str, Any] | None = None  # bandit: what the feedback proves about every linear rule
    bound: dict[str, Any] | None = None  # the bound for the best comparator in hindsight
    bound_reason: str | None = None  # why there is no bound
    seconds: float | None = None  # of playing; reading, preparing and compiling are excluded
    error: dict[str, str] | None = None  # type, message, traceback of a failed task

    @property
    def ok(self) -> bool:
        """Whether the task succeeded."""
        return self.status == OK

    @property
    def error_rate(self) -> float:
        """Mistakes per round; only for a result that is ok."""
        assert self.mistakes is not None and self.rounds
        return self.mistakes / self.rounds

    def to_json(self) -> str:
        """Return the result as one line of JSON, without a newline. Fields that are None are omitted."""
        content = {f.name: getattr(self, f.name) for f in fields(self)}
        return json.dumps({k: v for k, v in content.items() if v is not None}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read a result from its line. Unknown fields are ignored: a later version of gaptron may have written them.

        Raises:
            InputError: if the line is not a valid result.
        """
        try:
            content = json.loads(line, parse_constant=_refuse, parse_float=_finite, parse_int=_in_64_bits)
            if "\\u" in line:
                json.dumps(
                    content, ensure_ascii=False
                ).encode()  # fails for half of a surrogate pair, which could not be written again
        except ValueError as problem:
            raise InputError(f"not a result: {problem}") from None
        except RecursionError:
            raise InputError("not a result: it is nested too deeply") from None
        if not isinstance(content, dict):
            raise InputError(f"not a result but a {type(content).__name__}")
        content = {name: value for name, value in content.items() if name in KINDS}
        for name, value in content.items():
            if not isinstance(value, KINDS[name]) or isinstance(value, bool):
                raise InputError(f"not a result: {name} is a {type(value).__name__}")
        try:
            result = cls(**{**content, "prepared": tuple(map(str, content.get("prepared", ())))})
        except TypeError as problem:
            raise InputError(f"not a result: {problem}") from None
        if result.ok and not (result.rounds and result.mistakes is not None and 0 <= result.mistakes <= result.rounds):
            raise InputError("not a result: its status is ok, but its rounds or mistakes are missing or impossible")
        return result


_NUMBER, _TEXT = (int, float), (str,)
KINDS: dict[str, tuple[type, ...]] = {  # the JSON types of each field
    **dict.fromkeys(("key", "status", "stream", "algorithm", "feedback", "loss", "version", "processor"), _TEXT),
    **dict.fromkeys(("command", "role", "tuned", "data", "bound_reason"), _TEXT),
    **dict.fromkeys(("seed", "rounds", "n_classes", "n_features", "mistakes", "top_mistakes"), (int,)),
    **dict.fromkeys(("expected_mistakes", "reward", "best_reward", "seconds"), _NUMBER),
    **dict.fromkeys(("settings", "used", "curve", "certificate", "observed", "bound", "error"), (dict,)),
    "prepared": (list,),
}


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word:.30} is not a finite number of at most 64 bits")


def _finite(word: str) -> float:
    number = float(word)
    return number if math.isfinite(number) else _refuse(word)


def _in_64_bits(word: str) -> int:
    if len(word) > 20 or not -(2**63) <= int(word) < 2**63:  # the length first: parsing a long number is slow
        _refuse(word)
    return int(word)


@cache
def version() -> str:
    """Return gaptron's version with a hash of everything that can change a result: its sources and libraries."""
    return _version_of(sources(), LIBRARIES)


@cache
def _external_version(library: external.Library) -> str:
    """Return the version of an external model's runs: with it, a result depends on the library that has the model."""
    package = Path(__file__).parents[1]
    paths = [package / name for name in EXTERNAL_RUN]
    return f"{_version_of(paths, ('numpy', 'scipy'))}, {external.installed(library)}"


def _version_of(paths: list[Path], libraries: tuple[str, ...]) -> str:
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in paths:
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for library in libraries:
        digest.update(f"{library} {metadata.version(library)}\0".encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def sources() -> list[Path]:
    """Return the source files that can change a result."""
    package = Path(__file__).parents[1]
    excluded = {path for pattern in NOT_IN_KEY for path in package.glob(pattern)}
    return sorted(set(package.rglob("*.py")) - excluded)


@cache
def processor() -> str:
    """Return the processor model, as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), "") or platform.processor() or platform.machine()
