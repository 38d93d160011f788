"""Small games between actions with features, played on every path of draws by a real learner."""

import numpy as np
import pytest

from tests.plain_actions import loss


class Game:
    """A small game: each round has actions, and a right one, which may depend on the draws before it."""

    def __init__(self, seed, scale=1.0):
        rng = np.random.default_rng(seed)
        self.T, self.scale = 3, scale
        # What happens in round t after the draws before it (at most two kinds of history matter).
        self.offers = [[rng.normal(size=(int(rng.integers(1, 4)), 2)) for _ in range(2)] for _ in range(self.T)]
        for t in range(self.T):
            if rng.random() < 0.3:
                self.offers[t][0] = np.repeat(self.offers[t][0][:1], 2, axis=0)  # twins
        self.right = [[int(rng.integers(len(Phi))) for Phi in pair] for pair in self.offers]
        self.react = rng.random() < 0.7

    def at(self, t, draws):
        kind = sum(draws) % 2 if self.react else 0
        return self.scale * self.offers[t][kind], self.right[t][kind]


def expected(game, u, make, without=None, v=None):
    """E[M - L(u) - C(u)] over all paths of draws, each played by a real learner that `make` returns; and the paths.

    With v the rule is ⟨u, φ⟩ + va, a the advice of the learner's own ensemble in the round.
    """
    value, chance_sum = 0.0, 0.0
    paths = [((), 1.0)]
    finished = []
    while paths:
        draws, chance = paths.pop()
        who, played_loss, wrong = make(), 0.0, 0
        options = None
        for t in range(game.T):
            Phi, y = game.at(t, draws[:t])
            available = None
            if without is not None and len(Phi) > 1:
                available = [k for k in range(len(Phi)) if k != (y + 1) % len(Phi)]
            decision = who.decide(actions=Phi, available=available)
            if t == len(draws):
                options = decision.distribution
                break
            q, action = decision.distribution, draws[t]
            force(who, decision, action, q)
            wrong += action != y
            rest = Phi if available is None else Phi[available]
            place = y if available is None else available.index(y)
            if v is None:
                played_loss += loss(u, rest, place)
            else:
                advice = who._engine.scratch.a[: len(rest)]
                played_loss += loss(np.append(u, v), np.column_stack([rest, advice]), place)
            who.learn(decision, correct=bool(action == y))
        if options is not None:
            paths += [((*draws, k), chance * options[k]) for k in range(len(options)) if options[k] > 0.0]
            continue
        c = who._engine.algorithm.certificate(who.settings, who._engine.state)
        cost = c.cost(float(np.linalg.norm(u)))
        if v is not None:  # the certificate is for v = 0
            cost -= (1.0 - (v - 1.0) ** 2) * c.apart / (2.0 * c.step)
        value += chance * (wrong - played_loss - cost)
        chance_sum += chance
        finished.append(draws)
    assert chance_sum == pytest.approx(1.0)
    return value, len(finished)


def force(who, decision, action, q):
    """Make the newest decision one for this action."""
    at = int(np.flatnonzero(decision._places == action)[0])
    object.__setattr__(decision, "label", action)
    object.__setattr__(decision, "_code", at)
    object.__setattr__(decision, "propensity", float(q[action]))
