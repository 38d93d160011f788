"""How another learner would have done, judged by decisions that were logged. Three questions, three verbs:

    judge    a learner that does not learn any more: how often would it be wrong?
    teach    a learner that is taught by every logged round: how often would it have been wrong just before each?
    replay   a learner that begins from scratch and decides for itself: how would that have gone?

`judge` and `teach` weigh each round by how much more, or less, likely the learner was to play the logged label than
the logger was. `replay` keeps a round with the chance that the learner would have played the logged label, thinned so
that the logger's preferences cancel: what is kept is a run as it could have happened, only shorter (Li, Chu, Langford &
Wang 2011, where the log is uniform).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gaptron.errors import InputError, SettingError
from gaptron.learner import Learner
from gaptron.logged import estimates as by
from gaptron.logged.estimates import Estimate, check_level
from gaptron.logged.log import Log
from gaptron.logged.rewards import guesses
from gaptron.logged.sure import sure
from gaptron.logged.teaching import as_if, logged_chances, same_labels, welcome
from gaptron.types import Matrix, Vector

Progress = Callable[[int], None]
SELDOM, RARE = 10, 0.01  # out of reach: due fewer than 10 times in the log, and less than once in 100 rounds
REPLAY = 0x4E91A7  # sets the draws of a replay apart from those of learners
FEW, HEAVY, OFF = 100, 0.1, 4.0  # when to warn: effective rounds, one round's share of the weight, standard errors


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a log says of a learner."""

    estimates: tuple[Estimate, ...]  # of the learner's mistakes a round
    sure: Estimate  # with an interval that is proved
    logged: Estimate  # the log's own mistakes, on the same rounds
    level: float  # of confidence of every interval
    rounds: int  # judged by
    used: int  # of them kept: all, or by replay those the learner could have lived through
    weights: Vector = field(repr=False)  # q(a)/p(a), a round each
    out_of_reach: float | None  # how much of its play falls on labels the log could not show; None: not known

    @property
    def effective(self) -> float:
        """(Σw)²/Σw², or the rounds of a replay: by about so many rounds of its own the learner is judged."""
        return min(float(self.used), float(self.weights.sum() ** 2 / np.square(self.weights).sum()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the estimates."""
        said, w = [], self.weights
        if self.effective < FEW:
            said.append(f"only {self.effective:.0f} effective rounds: the estimates may be far off")
        if w.max() > HEAVY * w.sum() and self.used == self.rounds > 1:
            said.append(f"one round carries {w.max() / w.sum():.0%} of the weight: the normal intervals are too narrow")
        if any(estimate.low == estimate.high for estimate in self.estimates):
            said.append("no spread in sight, so that a normal interval has no width: read the sure one")
        error = float(w.std()) / np.sqrt(len(w))
        astray = abs(float(w.mean()) - 1.0) > OFF * error + 1e-9
        if self.out_of_reach is not None and self.out_of_reach > 1e-3:
            said.append(
                f"{self.out_of_reach:.1%} of the learner's play falls on labels the logger hardly ever played: "
                "nothing is known of those"
            )
        elif astray or self.sure.low > self.sure.high:
            said.append(
                f"the weights have mean {w.mean():.3f}, not 1: the logged probabilities are not those the labels were "
                "drawn with, or the learner plays labels the logger never did"
            )
        return tuple(said)


def judge(learner: Learner, log: Log, *, level: float = 0.95) -> Verdict:
    """A learner as it is, frozen. It must not have learned from this log."""
    check_level(level)
    same_labels(learner, log)
    return _weigh(log, learner.distribution(log.X), level)


def teach(learner: Learner, log: Log, *, level: float = 0.95, progress: Progress | None = None) -> Verdict:
    """A learner that is taught by the log: it learns from every round, with the probability logged, judged before.

    What is estimated is the mean over the rounds of the mistakes of what it would have played, given the log so far.
    The learner has learned afterwards; go on with `judge` on later rounds, or another log.
    """
    check_level(level)
    welcome(learner, log)
    play = np.empty((log.n_rounds, log.n_classes))
    for t in range(log.n_rounds):
        decision = learner.decide(log.row(t))
        play[t] = decision.distribution
        lesson = as_if(decision, log, t, logged_chances(log, t, decision.distribution))
        learner.learn(lesson, correct=bool(log.reward[t]))
        if progress is not None:
            progress(1)
    return _weigh(log, play, level)


def replay(
    learner: Learner, log: Log, *, level: float = 0.95, seed: int = 0, progress: Progress | None = None
) -> Verdict:
    """A run of the learner's own, out of rounds the log happens to hold the answers for.

    A round is kept with probability q(a)·p_min/p(a), and then lived through as the learner's own. If rows and answers
    do not depend on time, what is kept has the law of a run of the learner. About p_min·T rounds are kept: 1/K of a
    uniform log.
    """
    check_level(level)
    if seed < 0:
        raise SettingError(f"seed={seed!r} must not be negative")
    welcome(learner, log)
    # Not default_rng(seed): a logger of the same seed drew its labels with those very numbers.
    rng, least = np.random.default_rng([seed, REPLAY]), log.least
    play, kept = np.empty((log.n_rounds, log.n_classes)), []
    for t, u in enumerate(rng.random(log.n_rounds)):
        row = log.row(t)
        play[t] = learner.distribution(row.reshape(1, -1))
        if u < play[t, log.codes[t]] * least / log.probability[t]:
            learner.learn(as_if(learner.decide(row), log, t), correct=bool(log.reward[t]))
            kept.append(t)
        if progress is not None:
            progress(1)
    if not kept:
        raise InputError(
            f"{log.name}: no round could be replayed, as the least probability in it is {least:g}: "
            "teach the learner instead (--way taught), which uses every round"
        )
    mistakes = log.mistakes[kept]
    return Verdict(
        (by.on_policy(mistakes, level)._replace(name="replay"),),
        sure(np.ones(len(kept)), mistakes, level),
        by.on_policy(log.mistakes, level),
        level,
        log.n_rounds,
        len(kept),
        _weights(log, play),
        _out_of_reach(log, play),
    )


def _weigh(log: Log, play: Matrix, level: float) -> Verdict:
    rounds, mistakes = np.arange(log.n_rounds), log.mistakes
    weights = _weights(log, play)
    if not weights.any():
        raise InputError(
            f"{log.name}: the learner would have played none of the labels logged: nothing can be said of it"
        )
    guessed = 1.0 - guesses(log)
    expected: Vector = (play * guessed).sum(axis=1)
    return Verdict(
        (
            by.inverse_propensity(weights, mistakes, level),
            by.self_normalised(weights, mistakes, level),
            by.doubly_robust(weights, mistakes, guessed[rounds, log.codes], expected, level),
        ),
        sure(weights, mistakes, level),
        by.on_policy(mistakes, level),
        level,
        log.n_rounds,
        log.n_rounds,
        weights,
        _out_of_reach(log, play),
    )


def _weights(log: Log, play: Matrix) -> Vector:
    weights: Vector = play[np.arange(log.n_rounds), log.codes] / log.probability
    return weights


def _out_of_reach(log: Log, play: Matrix) -> float | None:
    if log.distribution is None:
        return None
    least = min(SELDOM / log.n_rounds, RARE)
    return float(play[log.distribution < least].sum() / log.n_rounds)
