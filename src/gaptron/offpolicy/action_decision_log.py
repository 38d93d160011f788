"""Writing decisions between named actions to a log as their feedback arrives."""

import os
from collections.abc import Mapping
from typing import Any

from gaptron.errors import DecisionError, InputError, StreamError
from gaptron.features.rounds import record_of
from gaptron.learner.action_decision import ActionDecision
from gaptron.offpolicy.decision_log import GrowingLog
from gaptron.offpolicy.jsonl import json_named_features
from gaptron.offpolicy.line_file import LineFile
from gaptron.streams.actions import dsjson, jsonl
from gaptron.streams.actions.files import format_of
from gaptron.streams.json_lines import MalformedError, encode, parse

FORMATS = ("dsjson", "jsonl")


class ActionDecisionLog(GrowingLog):
    """A file to which decisions between named actions are appended; use it in a `with` statement, or call `close`.

    The format is dsjson, which Vowpal Wabbit reads with `--dsjson --cb_explore_adf`, or JSON lines. Lines are written
    as by `DecisionLog`: when `write` returns, the operating system has the line; a write that fails leaves the earlier
    lines intact and may be retried. An existing file is continued. Write every decision that was made.

    Args:
        path: the file: .dsjson or .jsonl, also with .gz.
        format: dsjson or jsonl, if the extension does not show it.
        sync: also wait after each line until it is on disk.

    Raises:
        StreamError: the format is another one, or its compression buffers lines (.bz2, .xz).
    """

    def __init__(self, path: str | os.PathLike[str], *, format: str | None = None, sync: bool = False) -> None:
        super().__init__(path, sync=sync)
        self.format = format_of(self.path, format)
        if self.format not in FORMATS:
            raise StreamError(self.path, f"{self.format} is not for logs that grow: use {' or '.join(FORMATS)}")

    def write(
        self,
        decision: ActionDecision,
        context: Mapping[str, Any] | None,
        actions: Any,
        *,
        reward: float | None = None,
        correct: bool | None = None,
    ) -> None:
        """Append a decision with its feedback.

        Args:
            decision: what `Learner.decide` returned.
            context: the features of the round that were decided on; None if there were none.
            actions: the actions that were decided on: id → features, or a list of (id, features).
            reward: the reward of the action played, from 0 to 1; give this or `correct`.
            correct: whether the action played was right.

        Raises:
            DecisionError: the decision does not fit these actions, or the log is closed.
            InputError: the context, the actions or the reward are impossible.
            StreamError: the file cannot be written.
        """
        if not isinstance(decision, ActionDecision) or decision._ids is None:
            raise DecisionError("this is not a decision between named actions: use DecisionLog")
        value = self._checked(decision, correct, reward)
        line = self._line(decision, context, actions, value)
        self._append(line, lambda: LineFile(self.path, b"", self._check_first, sync=self._sync))

    def _line(self, decision: ActionDecision, context: Any, actions: Any, reward: float) -> bytes:
        ids = list(decision._ids or ())
        pairs = list(actions.items()) if isinstance(actions, Mapping) else actions
        record_of(context, pairs, None)  # refuses what no learner takes
        features = {str(action): own for action, own in pairs}
        if any(str(action) not in features for action in ids):
            raise DecisionError(f"the decision of round {decision.round} was between other actions: give those")
        offered = {action: json_named_features(features[str(action)]) for action in ids}
        p = decision.distribution
        given = json_named_features(context or {}), offered, ids.index(decision.action), decision.propensity, reward
        write = dsjson.line_of if self.format == "dsjson" else jsonl.line_of
        try:
            return encode(write(str(decision.round), *given, [p[action] for action in ids]))
        except UnicodeEncodeError:
            raise InputError("a name contains a lone surrogate, which UTF-8 cannot encode: correct it") from None

    def _check_first(self, line: bytes) -> None:
        """Refuse to continue a file of another kind."""
        try:
            found = parse(line)
        except MalformedError as problem:
            raise StreamError(self.path, f"cannot be continued: {problem}", 1) from None
        if ("actions" if self.format == "jsonl" else "_label_Action") not in found:
            raise StreamError(self.path, f"is not a log of actions in {self.format}: give the new log another name")
