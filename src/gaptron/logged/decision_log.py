"""A log that is written while decisions are made and answered."""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from gaptron.decision import Decision
from gaptron.errors import DecisionError, InputError, StreamError
from gaptron.logged.jsonl import classes_of, decision_line, features, header, labels_of, plain_row
from gaptron.logged.line_file import LineFile
from gaptron.logged.lines import MalformedError, encode, parse
from gaptron.validation import as_correct, as_reward


class DecisionLog:
    """A file that decisions are written to as they are answered: open it, `write`, `close` it, or use `with`.

    A line is with the operating system when `write` returns, so that a killed process loses none. A write that fails,
    as on a full disk, raises StreamError and leaves the lines before as they were; it may be tried again. A file that
    is there already is continued, if its labels and features are the same; an incomplete last line is cut off with a
    DamagedLogWarning. A name that ends in .gz is compressed. Every decision that was made should be written, or the
    log is no sample of them.

    Args:
        path: of the file.
        sync: also wait after every line until the disk holds it, so that a loss of power loses none.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False) -> None:
        self.path = os.fspath(path)
        if self.path.lower().endswith((".bz2", ".xz")):
            raise StreamError(self.path, "these forms of compression hold lines back: use .gz or none, and save_log")
        self._sync = sync
        self._file: LineFile | None = None
        self._header: dict[str, Any] | None = None
        self._closed = False

    def write(
        self,
        decision: Decision,
        *,
        correct: bool | None = None,
        reward: float | None = None,
        x: Mapping[str, Any] | None = None,
    ) -> None:
        """Log a decision and whether its label was right, or what it was worth: a reward from 0 to 1.

        Of a learner with features, x is the row by name that was decided on.
        """
        if self._closed:
            raise DecisionError(f"{self.path} has been closed: open another DecisionLog on it")
        if (correct is None) == (reward is None):
            raise DecisionError("say correct=True or False, or reward=...")
        worth = float(as_correct(correct)) if reward is None else as_reward(reward)
        learner = decision._owner
        by_name = learner.features is not None
        if by_name != (x is not None):
            wanted = (
                "give the row that was decided on, x={...}" if by_name else "leave out x=..., which it keeps itself"
            )
            raise DecisionError(f"the learner takes rows {'by name' if by_name else 'of numbers'}: {wanted}")
        first = header(learner.classes, None if by_name else learner.problem.n_features)
        if len(decision.distribution) != len(learner.classes):
            raise DecisionError(f"labels were added after round {decision.round}: its decision fits this log no more")
        if not decision.probability > 0.0:
            raise DecisionError(f"the label of round {decision.round} had probability 0: no estimate can use it")
        line = decision_line(
            features(learner._row_of(decision)) if x is None else plain_row(x),
            decision.label,
            decision.probability,
            worth,
            decision.distribution,
            labels_of(learner.classes, decision._among),
        )
        if self._header is not None and self._header != first:
            raise DecisionError("this decision is about other labels or features than those logged before")
        if self._file is None:
            self._file, self._header = self._open(first), first
        try:
            self._file.append(encode(line))
        except BaseException:
            self._file.close()
            self._file = None  # the next write opens the file again, and mends it if need be
            raise

    def close(self) -> None:
        """Nothing can be written after this."""
        self._closed = True
        if self._file is not None:
            self._file.close()

    def _open(self, first: dict[str, Any]) -> LineFile:
        def check_first(line: bytes) -> None:
            try:
                there = parse(line)
                classes_of(there)
            except (MalformedError, InputError) as problem:
                raise StreamError(self.path, f"cannot be continued: {problem}", 1) from None
            if there != first:
                raise StreamError(self.path, "is a log of other labels or features: give the log another name")

        return LineFile(self.path, encode(first), check_first, sync=self._sync)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
