"""Advice for tests, helpful and hostile."""

import numpy as np


def random_advice(T=300, d=5, seed=0, votes=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (T, d))
    return (np.sign(X) if votes else X), rng.choice([-1, 1], T)


def one_good(T=300, d=6, seed=0, skill=0.8):
    """Experts that toss coins, and one that is usually right."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], T)
    X = rng.choice([-1.0, 1.0], (T, d))
    X[:, d // 2] = np.where(rng.random(T) < skill, y, -y)
    return X, y


def halves(T=300, seed=0):
    """Two experts that never agree, and a coin for the truth: regret of order √T if one may not abstain."""
    rng = np.random.default_rng(seed)
    return np.tile([-1.0, 1.0], (T, 1)), rng.choice([-1, 1], T)


def takeover(T=300, d=4):
    """Each expert in turn is perfect while the others fail, so that every leader disappoints."""
    y = np.ones(T, dtype=int)
    X = -np.ones((T, d))
    X[np.arange(T), (np.arange(T) * d // T)] = 1.0
    return X, y


def against_the_vote(abstainer, T=300, seed=0):
    """Play random ±1 advice whose label is always the one the vote speaks against. Returns advice and labels."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (T, abstainer.n_experts))
    y = np.empty(T, dtype=int)
    for t in range(T):
        decision = abstainer.decide(X[t])
        y[t] = -1 if decision.vote >= 0 else 1
        abstainer.learn(decision, y[t])
    return X, y


ADVICE = {
    "random": random_advice,
    "votes": lambda T=300: random_advice(T, votes=True),
    "one-good": one_good,
    "halves": halves,
    "takeover": takeover,
}
