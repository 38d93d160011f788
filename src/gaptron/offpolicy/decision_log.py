"""Writing decisions to a log as their feedback arrives."""

import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from gaptron.data.feedback import as_correct, as_reward
from gaptron.data.values import MIN_PROPENSITY
from gaptron.errors import DecisionError, InputError, StreamError
from gaptron.learner.decision import Decision
from gaptron.offpolicy.jsonl import classes_of, decision_line, header, json_features, json_named_features, labels_of
from gaptron.offpolicy.line_file import LineFile
from gaptron.streams.json_lines import MalformedError, encode, parse


class GrowingLog:
    """A file of lines that grows, and its life: opened by the first line, opened again after a failure, closed.

    Args:
        path: the file.
        sync: whether to wait after each line until it is on disk.

    Raises:
        StreamError: the file's compression format buffers lines (.bz2, .xz).
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False) -> None:
        self.path = os.fspath(path)
        if self.path.lower().endswith((".bz2", ".xz")):
            raise StreamError(
                self.path, "this compression buffers lines: use .gz or no compression, and save_log to convert"
            )
        self._sync = sync
        self._file: LineFile | None = None
        self._closed = False

    def close(self) -> None:
        """Close the file. Later calls of `write` are refused."""
        self._closed = True
        if self._file is not None:
            self._file.close()

    def _checked(self, decision: Decision, correct: Any, reward: Any) -> float:
        """Check that a decision can be written, and return its reward."""
        if self._closed:
            raise DecisionError(f"{self.path} is closed: open a new {type(self).__name__} on it")
        if (correct is None) == (reward is None):
            raise DecisionError("give either correct=True or False, or reward=...")
        value = float(as_correct(correct)) if reward is None else as_reward(reward)
        if not decision.propensity >= MIN_PROPENSITY:
            raise DecisionError(
                f"the label of round {decision.round} has propensity {decision.propensity:g}; a log holds those of at "
                f"least {MIN_PROPENSITY:g}: leave the round out, or make the learner with epsilon=..."
            )
        return value

    def _append(self, line: bytes, open_file: Callable[[], LineFile]) -> None:
        if self._file is None:
            self._file = open_file()
        try:
            self._file.append(line)
        except BaseException:
            self._file.close()
            self._file = None  # the next write opens the file again and repairs it if necessary
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class DecisionLog(GrowingLog):
    """A JSON-lines file to which decisions are appended; use it in a `with` statement, or call `close`.

    When `write` returns, the operating system has the line, so that a killed process loses none. A write that fails,
    for example on a full disk, raises StreamError and leaves the earlier lines intact; it may be retried. An existing
    file is continued if it has the same labels and features; an incomplete last line is removed with a
    DamagedLogWarning. A name that ends in .gz is compressed. Write every decision that was made: a log with missing
    decisions is a biased sample.

    Args:
        path: The file.
        sync: Also wait after each line until it is on disk, so that a power failure loses none.

    Raises:
        StreamError: The file's compression format buffers lines (.bz2, .xz).
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False) -> None:
        super().__init__(path, sync=sync)
        self._header: dict[str, Any] | None = None

    def write(
        self,
        decision: Decision,
        *,
        correct: bool | None = None,
        reward: float | None = None,
        x: Mapping[str, Any] | None = None,
    ) -> None:
        """Append a decision with its feedback.

        Args:
            decision: What `Learner.decide` returned.
            correct: Whether the label played was correct; give this or `reward`.
            reward: The reward of the label played, from 0 to 1.
            x: The example by name, for a learner with features; other decisions store their example.

        Raises:
            DecisionError: The decision does not fit this log, or the log is closed.
            StreamError: The file cannot be written.
        """
        value = self._checked(decision, correct, reward)
        learner = decision._owner
        by_name = learner.features is not None
        if by_name != (x is not None):
            raise DecisionError(
                "the learner takes features by name and does not store them: give the example, x={...}"
                if by_name
                else "the learner takes numeric examples and stores them: leave out x="
            )
        first = header(learner.classes, None if by_name else learner.problem.n_features)
        if len(decision.distribution) != len(learner.classes):
            raise DecisionError(
                f"labels were added after round {decision.round}, so its decision does not fit this log any more"
            )
        line = decision_line(
            json_features(learner._row_of(decision)) if x is None else json_named_features(x),
            decision.label,
            decision.propensity,
            value,
            decision.distribution,
            labels_of(learner.classes, decision._available),
        )
        if self._header is not None and self._header != first:
            raise DecisionError("this decision has other labels or features than the decisions in this log")
        self._append(encode(line), lambda: self._open(first))
        self._header = first

    def _open(self, first: dict[str, Any]) -> LineFile:
        def check_first(line: bytes) -> None:
            try:
                found = parse(line)
                classes_of(found)
            except (MalformedError, InputError) as problem:
                raise StreamError(self.path, f"cannot be continued: {problem}", 1) from None
            if found != first:
                raise StreamError(self.path, "is a log with other labels or features: give the new log another name")

        return LineFile(self.path, encode(first), check_first, sync=self._sync)
