"""Advised Gaptron one round at a time, for rounds that a test sets up or branches from by hand."""

import numpy as np

from gaptron.algorithms import advised as file
from gaptron.data.examples import sealed_row
from gaptron.kernels import play
from gaptron.types import UNKNOWN, Feedback, Loss, Nothing, Problem, SparseRow, named, new_round
from tests.one_round import decide_once

COUNT, ANSWERED = named(decided=0, learned=0, trail=0), np.zeros(1, dtype=np.bool_)
NO_EVIDENCE = Nothing(), np.zeros(0)


def problem(feedback="full", K=3, d=1, X=1.0):
    return Problem(K, d, Feedback[feedback.upper()], Loss.LOGISTIC, X)


class Player:
    """Settings, state and the buffers of one round; without the kernel expert unless asked for."""

    def __init__(self, feedback, K, d, *, sparse=False, settings=None, **given):
        self.problem, self.sparse = problem(feedback, K, d), sparse
        self.bandit = feedback == "bandit"
        self.settings = file.recommend(self.problem, **{"kernel": False, **given}) if settings is None else settings
        self.state = file.init(self.settings, self.problem, sparse)
        self.new_buffers()

    def new_buffers(self):
        self.rd = new_round(self.problem.n_classes, len(file.NOTES), advice=True)
        self.work = file.scratch(self.settings, self.problem, self.sparse)

    def copy(self):
        other = object.__new__(Player)
        other.__dict__.update(self.__dict__)
        other.state = type(self.state)(*(part.copy() for part in self.state))
        other.new_buffers()
        return other

    @property
    def total(self):
        return self.state.total[0]

    @property
    def certified(self):
        """The rows of the certified learner in the weights of all learners."""
        K = self.problem.n_classes
        return slice(4 * K, 5 * K) if self.bandit else slice(0, K)

    @property
    def now(self):
        return self.work.now[0]

    def over(self, vector):
        """A vector over the available labels, spread over all."""
        n = self.now.n
        whole = np.full(self.problem.n_classes, np.nan)
        whole[self.work.labels[:n]] = vector[:n]
        return whole

    def row(self, x):
        x = np.ascontiguousarray(x, dtype=np.float64)
        if not self.sparse:
            return sealed_row(x)
        here = np.flatnonzero(x)
        return sealed_row(SparseRow(here.astype(np.int32), x[here]))

    def score(self, x, advice=None, available=None, u=0.5):
        """Fill the round; returns the label that u draws."""
        self.rd.advice[:] = 0.0 if advice is None else advice
        self.rd.available[:] = True if available is None else available
        return decide_once(self.settings, self.state, self.row(x), self.rd, self.work, u)

    def commit(self, label=None):
        """Take the decision, as if it had drawn `label`."""
        if label is not None:
            self.rd.feedback[0].label = label
        play.commit_once(self.settings, self.state, self.rd, self.work, COUNT)

    def decide(self, x, advice=None, available=None, u=0.5, label=None):
        """`score` and `commit`. Returns the label and what late feedback needs of this decision."""
        drawn = self.score(x, advice, available, u)
        label = drawn if label is None else label
        self.commit(label)
        saved = [getattr(self.work, name).copy() for name in file.late_fields(self.settings)]
        return label, (x, advice, available, label, self.rd.p.copy(), saved)

    def learn(self, x, label, *, truth=None, reward=None):
        """Learn from the round in `rd`: from the true label, or under bandit feedback from a reward."""
        if self.bandit:
            reward = float(label == truth) if reward is None else float(reward)
            shown, weighed = (label if reward == 1.0 else UNKNOWN), label
        else:
            reward, shown, weighed = float(label == truth), int(truth), int(truth)
        self.rd.feedback[0].reward, self.rd.feedback[0].propensity = reward, self.rd.p[weighed]
        self._learn(x, label, shown)

    def learn_late(self, kept, *, truth=None, reward=None):
        """Learn from late feedback: the example is scored again, as the learner itself does."""
        x, advice, available, label, p, saved = kept
        self.score(x, advice, available)
        for name, part in zip(file.late_fields(self.settings), saved):
            getattr(self.work, name)[...] = part
        if self.bandit:
            self.rd.p[label] = p[label]
            self.learn(x, label, truth=truth, reward=reward)
            return
        self.rd.feedback[0].reward, self.rd.feedback[0].propensity = float(label == truth), p[truth]
        self._learn(x, label, int(truth))

    def _learn(self, x, label, shown):
        whom, x = (self.settings, self.state), self.row(x)
        play.learn_once(*whom, x, self.rd, self.work, int(label), shown, COUNT, ANSWERED, *NO_EVIDENCE)


def advice_of(kind, K, truth, rng):
    """The caller's advice for a round whose true label it may know."""
    e = np.eye(K)
    if kind == "none" or (kind == "sometimes" and rng.random() < 0.5):
        return None
    if kind == "uniform":
        return np.full(K, 1 / K)
    if kind == "constant":
        return e[K - 1]
    if kind == "liar":  # knows the true label, and never gives it
        return e[(truth + 1 + rng.integers(K - 1)) % K]
    if kind == "right":
        return e[truth]
    return rng.gamma(0.5, size=K) + 2 * e[truth] + 1e-9


ADVISERS = ["none", "uniform", "constant", "liar", "right", "sometimes", "random"]
