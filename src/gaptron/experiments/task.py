"""Task and Result: one run of a comparison before and after it was made, and the key that tells it from every other."""

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
from gaptron.version import __version__

OK, FAILED = "ok", "failed"
PUBLISHED, GRID = "published", "grid"

# Every source is part of the key but these, which no run imports: what prints, draws, adapts, or decides which runs
# are made and what is done with them afterwards. A new file counts unless it is named here.
NO_PART = (
    "__main__.py",
    "river.py",
    "adapters/*.py",
    "cli/*.py",
    "logged/*.py",
    "report/**/*.py",
    *(
        f"experiments/{name}.py"
        for name in "command compare engines export grouping late plan plan_file ranks store summary".split()
    ),
)
LIBRARIES = ("numba", "numpy", "scipy")  # another version may draw or add up otherwise


class Task(NamedTuple):
    """One algorithm over one stream, once."""

    stream: str  # its name, for people; its content has a hash
    algorithm: str
    feedback: str
    loss: str
    seed: int  # of the order of the rounds and of the learner's draws
    settings: dict[str, Any]  # what the plan sets; {}: as published
    role: str = PUBLISHED
    tuned: str | None = None
    radius: float | None = None  # D, where the algorithm has no settings without it
    shuffle: bool = True  # permute the rounds by the seed
    bound: bool = False  # look for the best comparator in hindsight
    command: str = ""  # what repeats the run by itself

    @property
    def shared(self) -> dict[str, Any]:
        """The fields a result has in common with its task, whether it failed or not."""
        names = ("stream", "algorithm", "feedback", "loss", "seed", "settings", "role", "tuned", "command")
        return {name: getattr(self, name) for name in names}

    def key(self, data: str | None) -> str:
        """A hash of everything that fixes the outcome. Names, roles and the command do not."""
        # A stream that could not be read has no content but its name.
        content = {**self._asdict(), "data": data or f"unread: {self.stream}", "version": version()}
        for name in ("stream", "role", "tuned", "command"):
            del content[name]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def failed(self, data: str | None, kind: str, message: str, traceback: str = "") -> "Result":
        """The result of a failure: what was tried, and why there are no numbers."""
        error = {"type": kind, "message": message, "traceback": traceback}
        return Result(
            key=self.key(data),
            status=FAILED,
            version=version(),
            processor=processor(),
            data=data,
            error=error,
            **self.shared,
        )


@dataclass(frozen=True)
class Result:
    """One algorithm, played once over one stream. A failed one says what was tried and why it failed."""

    key: str  # hash of the task's content: another key, another experiment
    status: str  # "ok" or "failed"
    stream: str  # the name people read
    algorithm: str
    feedback: str  # "full", "bandit" or the word of a graph
    loss: str
    seed: int  # of the rounds' order and of the learner's draws
    version: str  # of gaptron, its sources and the libraries it computes with
    processor: str = ""  # which kind: sums may differ in their last digits on another
    command: str = ""  # what repeats the run by itself
    settings: dict[str, Any] = field(default_factory=dict)  # what the plan set; {}: the published setting
    role: str = PUBLISHED  # or "grid": one of several tried, so only their best in hindsight is a result
    tuned: str | None = None  # the grid's parameter (several, joined by commas)

    data: str | None = None  # hash of X and y as prepared, before the shuffle
    prepared: tuple[str, ...] = ()  # how, in words
    rounds: int | None = None  # T
    n_classes: int | None = None  # K
    n_features: int | None = None  # d

    mistakes: int | None = None
    expected_mistakes: float | None = None  # Σ(1 - p_t(y_t))
    top_mistakes: int | None = None  # of the label of the largest score
    reward: float | None = None  # earned, where the stream says what labels are worth
    best_reward: float | None = None  # what the best labels would have earned, where the stream knows them
    curve: dict[str, list[float]] | None = None  # rounds, mistakes, expected: sums up to log-spaced rounds
    used: dict[str, Any] = field(default_factory=dict)  # every setting in use, in the words users type
    certificate: dict[str, Any] | None = None  # the bound the run carried with it
    observed: dict[str, Any] | None = None  # bandit: what the answers proved of every linear rule
    bound: dict[str, Any] | None = None  # the bound for the best comparator in hindsight
    bound_reason: str | None = None  # why there is no bound
    seconds: float | None = None  # of play alone: reading, preparing and compiling stay outside the clock
    error: dict[str, str] | None = None  # type, message, traceback of a failed task

    @property
    def ok(self) -> bool:
        """Whether there are numbers here."""
        return self.status == OK

    @property
    def error_rate(self) -> float:
        """Mistakes a round; only of a result that is ok."""
        assert self.mistakes is not None and self.rounds
        return self.mistakes / self.rounds

    def to_json(self) -> str:
        """One line, without its end. Fields that say nothing are left out."""
        content = {f.name: getattr(self, f.name) for f in fields(self)}
        return json.dumps({k: v for k, v in content.items() if v is not None}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Self:
        """A result from its line. Fields it does not know are passed over: a later gaptron may have written them."""
        try:
            content = json.loads(line, parse_constant=_refuse, parse_float=_finite, parse_int=_in_64_bits)
            if "\\u" in line:
                json.dumps(content, ensure_ascii=False).encode()  # half of a character cannot be written again
        except ValueError as problem:
            raise InputError(f"this is no result: {problem}") from None
        except RecursionError:
            raise InputError("this is no result: it is nested too deeply") from None
        if not isinstance(content, dict):
            raise InputError(f"this is no result, but a {type(content).__name__}")
        content = {name: value for name, value in content.items() if name in KINDS}
        for name, value in content.items():
            if not isinstance(value, KINDS[name]) or isinstance(value, bool):
                raise InputError(f"this is no result: {name} is a {type(value).__name__}")
        try:
            result = cls(**{**content, "prepared": tuple(map(str, content.get("prepared", ())))})
        except TypeError as problem:
            raise InputError(f"this is no result: {problem}") from None
        if result.ok and not (result.rounds and result.mistakes is not None and 0 <= result.mistakes <= result.rounds):
            raise InputError("this is no result: it is ok, but its rounds or mistakes are missing or impossible")
        return result


_NUMBER, _TEXT = (int, float), (str,)
KINDS: dict[str, tuple[type, ...]] = {  # what JSON gives for each field
    **dict.fromkeys(("key", "status", "stream", "algorithm", "feedback", "loss", "version", "processor"), _TEXT),
    **dict.fromkeys(("command", "role", "tuned", "data", "bound_reason"), _TEXT),
    **dict.fromkeys(("seed", "rounds", "n_classes", "n_features", "mistakes", "top_mistakes"), (int,)),
    **dict.fromkeys(("expected_mistakes", "reward", "best_reward", "seconds"), _NUMBER),
    **dict.fromkeys(("settings", "used", "curve", "certificate", "observed", "bound", "error"), (dict,)),
    "prepared": (list,),
}


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word:.30} is not a number that a result may hold")


def _finite(word: str) -> float:
    number = float(word)
    return number if math.isfinite(number) else _refuse(word)


def _in_64_bits(word: str) -> int:
    if len(word) > 20 or not -(2**63) <= int(word) < 2**63:  # the length first: long ones take long to read
        _refuse(word)
    return int(word)


@cache
def version() -> str:
    """gaptron's version and a hash of everything that can change a result: its sources and what it computes with."""
    package, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sources():
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for library in LIBRARIES:
        digest.update(f"{library} {metadata.version(library)}\0".encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def sources() -> list[Path]:
    """The files of this package that count for a result."""
    package = Path(__file__).parents[1]
    left_out = {path for pattern in NO_PART for path in package.glob(pattern)}
    return sorted(set(package.rglob("*.py")) - left_out)


@cache
def processor() -> str:
    """The kind of processor, as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), "") or platform.processor() or platform.machine()
