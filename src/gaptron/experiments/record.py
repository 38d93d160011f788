"""Record: what one finished task leaves behind, one line of JSON."""

import json
from dataclasses import dataclass, field, fields
from typing import Any, Self

from gaptron.errors import InputError

OK, FAILED = "ok", "failed"
PUBLISHED, GRID = "published", "grid"


@dataclass(frozen=True)
class Record:
    """One algorithm, played once over one stream. A failed one says what was tried and why it failed: no results."""

    key: str  # hash of the task's content: another key, another experiment
    status: str  # "ok" or "failed"
    stream: str  # the name people read
    algorithm: str
    feedback: str  # "full", "bandit" or the word of a graph
    loss: str
    seed: int  # of the rounds' order and of the learner's draws
    version: str  # of gaptron and of its sources
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
    curve: dict[str, list[float]] | None = None  # rounds, mistakes, expected: sums up to log-spaced rounds
    used: dict[str, Any] = field(default_factory=dict)  # every setting, as it was in use
    certificate: dict[str, Any] | None = None  # level, step, norm, explored: the bound the run carried with it
    bound: dict[str, Any] | None = None  # value, regret, theorem, comparator_norm, comparator_loss
    bound_reason: str | None = None  # why there is no bound
    seconds: float | None = None  # of play alone: reading, preparing and compiling stay outside the clock
    error: dict[str, str] | None = None  # type, message, traceback of a failed task

    @property
    def ok(self) -> bool:
        """Whether there are results here."""
        return self.status == OK

    @property
    def error_rate(self) -> float:
        """Mistakes a round; only of a record that is ok."""
        assert self.mistakes is not None and self.rounds
        return self.mistakes / self.rounds

    def to_json(self) -> str:
        """One line, without its end. Fields that say nothing are left out."""
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        return json.dumps({k: v for k, v in said.items() if v is not None}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Self:
        """A record from its line. Names it does not know are passed over: a later gaptron may have written them."""
        try:
            said = json.loads(line)
        except ValueError as problem:
            raise InputError(f"this is no record: {problem}") from None
        if not isinstance(said, dict):
            raise InputError(f"this is no record, but a {type(said).__name__}")
        known = {f.name for f in fields(cls)}
        said = {name: value for name, value in said.items() if name in known}
        try:
            return cls(**{**said, "prepared": tuple(said.get("prepared", ()))})
        except TypeError as problem:
            raise InputError(f"this is no record: {problem}") from None
