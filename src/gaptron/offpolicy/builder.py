"""Collect decisions read from a file, one by one, into a `Log`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gaptron.data.examples import Table, as_table, csr
from gaptron.errors import StreamError
from gaptron.offpolicy.checks import as_examples, checked_policy
from gaptron.offpolicy.log import Log, checked_log, encoded
from gaptron.streams.json_lines import MalformedError
from gaptron.streams.source import Source


class LoggedDecision(NamedTuple):
    """One logged decision as read from a line."""

    values: Sequence[float]  # of the features
    columns: Sequence[int] | None  # of the values; None: all columns in order
    code: int
    propensity: float
    reward: float
    distribution: Sequence[float] | None
    available: Sequence[int] | None = None  # codes of the available labels; None: all
    by_name: dict[str, Any] | None = None  # features by name; `values` and `columns` are then empty
    policy: Sequence[float] | None = None  # probabilities of the caller's policy, of every label or the one played


class LogBuilder:
    """Collects decisions column by column, with their line numbers."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lines: list[int] = []
        self._codes: list[int] = []
        self._rewards: list[float] = []
        self._propensities: list[float] = []
        self._distributions: list[Sequence[float]] = []
        self._available: list[Sequence[int] | None] = []
        self._policies: list[Sequence[float]] = []
        self._dicts: list[dict[str, Any]] = []
        self._sparse = self._has_distributions = False
        self._columns: list[int] = []
        self._values: list[float] = []
        self._ends = [0]

    def add(self, line: int, decision: LoggedDecision) -> None:
        """Add a decision; raise MalformedError if it differs in kind from those before."""
        sparse, has_distribution = decision.columns is not None, decision.distribution is not None
        if not self._lines:
            self._sparse, self._has_distributions = sparse, has_distribution
        if sparse != self._sparse:
            raise MalformedError("x is an array on some lines and an object on others: use one of them")
        if has_distribution != self._has_distributions:
            raise MalformedError("some lines have a distribution and some do not: give it on all lines or on none")
        policy = decision.policy or ()
        if self._policies and len(self._policies[0]) != len(policy):
            raise MalformedError(
                "some lines have the policy's probability of every label, some only that of the label played"
            )
        self._lines.append(line)
        self._policies.append(policy)
        if decision.by_name is not None:
            self._dicts.append(decision.by_name)
        self._codes.append(decision.code)
        self._rewards.append(decision.reward)
        self._propensities.append(decision.propensity)
        self._distributions.append(decision.distribution or ())
        self._available.append(decision.available)
        self._columns += decision.columns or ()
        self._values += decision.values
        self._ends.append(len(self._values))

    def log(self, classes: Sequence[Any], width: int) -> Log:
        """Check all decisions and return them as a log."""
        if not self._lines:
            raise StreamError(self.source.name, "contains no decisions")

        def error_at(row: int, problem: str) -> StreamError:
            return StreamError(self.source.name, problem, self._lines[row])

        values, K = np.array(self._values, dtype=np.float64), len(classes)
        table: Table
        if self._dicts:
            table = encoded(self._dicts, error_at)
        elif self._sparse:
            table = csr(values, self._columns, self._ends, width)
        else:
            table = values.reshape(-1, width)
        codes, available = np.array(self._codes, dtype=np.int64), self._available_matrix(K)
        log = Log(
            as_examples(as_table(table), error_at),
            codes,
            np.array(self._rewards),
            np.array(self._propensities),
            np.array(self._distributions) if self._has_distributions else None,
            tuple(classes),
            self.source.name,
            available,
            tuple(self._dicts) or None,
        )
        log = checked_log(log, error_at)
        if not self._policies[0]:
            return log
        return replace(log, policy=checked_policy(self._policies, codes, available, K, error_at))

    def _available_matrix(self, K: int) -> NDArray[np.bool_] | None:
        if all(codes is None for codes in self._available):
            return None
        available = np.zeros((len(self._available), K), dtype=np.bool_)
        for row, codes in enumerate(self._available):
            available[row, slice(None) if codes is None else list(codes)] = True
        return available
