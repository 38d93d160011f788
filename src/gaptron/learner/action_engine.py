"""The engine for rounds that bring their own actions."""

import functools
import importlib
from types import ModuleType
from typing import Any

import numpy as np

from gaptron.data.actions import ActionExamples
from gaptron.kernels.compile.specialize import specialize
from gaptron.learner.action_trace import ActionTrace
from gaptron.learner.chunks import MOST
from gaptron.learner.engine import DENSE_BLOCK, Engine, loop_module, with_epsilon
from gaptron.types import MOST_ACTIONS, ActionRound, ActionRows, Flags, Matrix, Problem, Sparse, Vector


class ActionEngine(Engine):
    """One algorithm, where every round brings its own actions. Only actions that may be played arrive here."""

    def _make_buffers(self, settings: Any, problem: Problem, sparse: bool) -> None:
        super()._make_buffers(settings, problem._replace(n_classes=MOST_ACTIONS), sparse)
        self._whole = *actions_module().new_buffers(problem.n_features), self.round, self.scratch
        self._views: dict[int, tuple[Any, Any]] = {}  # of the round and the scratch, by the number of actions

    def _new_whole(self, settings: Any, problem: Problem, sparse: bool) -> tuple[Matrix, Vector, Any, Any]:
        """The buffers of one caller, for rounds of any number of actions."""
        scratch = self.algorithm.scratch(settings, problem._replace(n_classes=MOST_ACTIONS), sparse)
        pairs, space = actions_module().new_buffers(problem.n_features)
        return pairs, space, self._new_round(MOST_ACTIONS), scratch

    def _use(self, actions: ActionRound) -> ActionRows:
        """Make `round` and `scratch` views for these actions, and return the actions with their buffers."""
        rows = actions.rows
        n = len(rows.indptr) - 1 if isinstance(rows, Sparse) else len(rows)
        pairs, space, whole, scratch = self._whole
        if n not in self._views:
            self._views[n] = actions_module().first(whole, n), loop_module().cut(self.settings, scratch, n)
        self.round, self.scratch = self._views[n]
        return ActionRows(*actions, pairs, space)

    # --- one round ------------------------------------------------------------------------------------------

    def _score_one(self, x: Any, u: float, advice_row: Vector, available: Flags, *, take: bool = False) -> int:
        self.last_scored_round = 0  # before the buffers change, in case of an interruption
        actions = self._use(x)
        if self._score is None:
            self._compile(actions)
        label: int = self._score(self.settings, self.state, actions, u, self.round, self.scratch, self.count, take)
        return label

    def learn(self, x: Any, code: int, truth: int, reward: float, propensity: float, learned: Flags) -> None:
        """Learn from the round in `round` and `scratch`, and count it."""
        actions: Any = self._use(x)
        super().learn(actions, code, truth, reward, propensity, learned)

    def _compile(self, x: Any) -> None:
        tuples, buffer = (self.settings, self.state), (self.round, self.scratch)
        self._score = specialize(actions_module().decide_once, *tuples, x, 0.5, *buffer, self.count, True)
        rest = 0, 0, self.count, np.zeros(1, dtype=np.bool_), self.evidence, self.evidence_buffer
        self._learn_once = specialize(loop_module().learn_once, *tuples, x, *buffer, *rest)

    # --- many rounds ----------------------------------------------------------------------------------------

    def rounds_per_chunk(self, rounds: ActionExamples) -> int:
        """How many rounds to play at a time: fewer where sparse rows must be converted to dense ones."""
        if not rounds.sparse or self.sparse:
            return MOST
        return max(1, min(MOST, DENSE_BLOCK // (MOST_ACTIONS * rounds.width)))

    def play_actions(self, chunk: ActionExamples, trace: ActionTrace, part: slice) -> None:
        """Play one chunk, and fill the rounds `part` of the trace. An interruption is handled as by `play`."""
        self.last_scored_round = 0
        played = loop_module().Played
        out = played(trace.codes[part], trace.top[part], trace.truth_probability[part], trace.notes[part])
        start, stop = trace.starts[part.start], trace.starts[part.stop]
        draws, before = self.rng.bit_generator.state, self.learned
        try:
            u, rewards = self.rng.random(len(chunk)), trace.rewards[start:stop].ravel()
            given = chunk.in_layout(self.sparse), trace.truth[part], u, self._feedback, rewards
            loop = actions_module().play_actions
            loop(self.settings, self.state, *given, *self._whole, self.count, out)
        except BaseException:
            if self.learned == before:  # interrupted before the chunk: its draws are still to come
                self.rng.bit_generator.state = draws
            raise

    def score_actions(self, rounds: ActionExamples) -> tuple[Vector, Vector]:
        """Scores and distributions, one number per row. Several threads may score at the same time."""
        start, stop = rounds.first[[0, -1]]
        Z, P = np.zeros(stop - start), 1.0 / np.repeat(rounds.counts, rounds.counts)
        if self.settings is None:  # the first actions set the norm: until then every score is zero
            return Z, P
        state, problem = self.state, self.problem._replace(n_features=rounds.width)
        if state is None:
            state = self._new_state(self.settings, problem, False)
        buffers: list[Any] = self._buffers if self.state is not None else []
        try:
            whole = buffers.pop()  # making one takes longer than scoring a round
        except IndexError:
            whole = self._new_whole(self.settings, problem, self.sparse)
        step = self.rounds_per_chunk(rounds)
        for at in range(0, len(rounds), step):
            chunk = rounds[at : at + step]
            part = slice(chunk.first[0] - start, chunk.first[-1] - start)
            score = actions_module().score_actions
            score(self.settings, state, chunk.in_layout(self.sparse), *whole, Z[part], P[part])
        buffers.append(whole)
        if self.epsilon:
            for n, at in zip(rounds.counts, rounds.first[:-1] - start):
                P[at : at + n] = with_epsilon(P[at : at + n], self.epsilon, np.ones(n, dtype=np.bool_))
        return Z, P


@functools.cache
def actions_module() -> ModuleType:
    """The compiled loop for actions, imported at first use to keep `import gaptron` fast."""
    return importlib.import_module("gaptron.kernels.play_actions")
