"""Small worlds whose truth is known, and logs of them."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gaptron.offpolicy import Log

K, D = 3, 4


def some_log(
    T=40, sparse=False, whole=True, classes=("ant", "bee", "cat"), seed=0, fractional=False, left_out=False
) -> Log:
    """A log of nothing in particular, all of whose numbers survive a trip through text."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, D)) * (rng.random((T, D)) > 0.4)
    X[:, -1] = 1.0  # so that the last column is in use
    p = rng.dirichlet(np.ones(K) * 3, T)
    available = None
    if left_out:
        available = rng.random((T, K)) < 0.6
        available[np.arange(T), rng.integers(0, K, T)] = True
        p = p * available / (p * available).sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(K, p=row) for row in p])
    reward = rng.random(T) if fractional else rng.integers(0, 2, T)
    labels = [classes[code] for code in codes]
    propensities = p[np.arange(T), codes]
    rows = sp.csr_array(X) if sparse else X
    return Log.from_arrays(
        rows, labels, reward, propensities, classes=classes, distribution=p if whole else None, available=available
    )


def same(one: Log, two: Log) -> None:
    """Equal, number by number."""
    dense = [log.X.toarray() if sp.issparse(log.X) else log.X for log in (one, two)]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(one.codes, two.codes)
    np.testing.assert_array_equal(one.reward, two.reward)
    np.testing.assert_array_equal(one.propensity, two.propensity)
    assert (one.distribution is None) == (two.distribution is None)
    if one.distribution is not None:
        np.testing.assert_array_equal(one.distribution, two.distribution)
    assert (one.available is None) == (two.available is None)
    if one.available is not None:
        np.testing.assert_array_equal(one.available, two.available)
    assert one.classes == two.classes


class World(NamedTuple):
    """Contexts 0..C-1, as likely as each other; what each label costs there; the logging and the evaluated policy."""

    cost: np.ndarray  # C × K, the probability of a mistake
    logger: np.ndarray  # C × K
    policy: np.ndarray  # C × K

    @property
    def truth(self) -> float:
        return float((self.cost * self.policy).sum(axis=1).mean())

    def logs(self, n: int, T: int, seed: int):
        """n logs at once: contexts, labels, mistakes, all n × T."""
        rng = np.random.default_rng(seed)
        context = rng.integers(0, len(self.cost), (n, T))
        steps = self.logger.cumsum(axis=1)[context]
        label = (rng.random((n, T, 1)) > steps[:, :, :-1]).sum(axis=2)
        mistake = (rng.random((n, T)) < self.cost[context, label]).astype(float)
        return context, label, mistake


def world(seed: int = 1) -> World:
    rng = np.random.default_rng(seed)
    cost = rng.random((5, K))
    logger = 0.3 / K + 0.7 * rng.dirichlet(np.ones(K), 5)
    policy = rng.dirichlet(np.ones(K), 5)
    return World(cost, logger, policy)
