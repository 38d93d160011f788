"""The paper again, in textbook numpy that shares no line with the library: what tests compare it with."""

import math

import numpy as np

LN2 = math.log(2)


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def margin(z, y):
    return z[y] - np.delete(z, y).max()


def rival(z, y):
    others = np.array(z, dtype=float)
    others[y] = -np.inf
    return int(others.argmax())


def loss(name, z, y, beta):
    if name == "logistic":
        return float(np.log(np.exp(z - z.max()).sum()) + z.max() - z[y]) / LN2
    m = margin(z, y)
    if name == "hinge":
        sure = z.argmax() == y and margin(z, y) > beta
        return 0.0 if sure else max(1 - m, 0.0)
    return 1 - 2 * m if m <= 0 else max(1 - m, 0.0) ** 2


def coefficients(name, z, y, beta):
    e = np.eye(len(z))
    if name == "logistic":
        return (softmax(z) - e[y]) / LN2
    m = margin(z, y)
    way = e[rival(z, y)] - e[y]
    if name == "hinge":
        return way if loss(name, z, y, beta) > 0 else 0 * way
    return 2 * way if m <= 0 else 2 * max(1 - m, 0.0) * way


def gap_map(name, z, beta):
    top = int(np.argmax(z))
    if name == "logistic":
        p = softmax(z)
        return float(np.delete(p, top).sum()) if p[top] >= 0.5 else 1.0
    m = margin(z, top)
    if name == "hinge":
        return 0.0 if m > beta else 1 - m
    return (1 - min(1.0, m)) ** 2


def mixture(a, gamma, z):
    K, big = len(z), max(a, gamma)
    return (1 - big) * np.eye(K)[np.argmax(z)] + big / K


def least_gap(K, DX):
    E = math.exp(-DX * math.sqrt(K / (K - 1)))
    best = 1 / (1 + (K - 1) * E)
    return 1.0 if best < 0.5 else (K - 1) * E / (1 + (K - 1) * E)


def table(K, X, D, T):
    """THEORY 1.2, row by row: name, feedback, regime -> η, γ, regret added to L_T(U) at ‖U‖ = D."""
    root, beta, a_min = math.sqrt, 1 / K, least_gap(K, D * X)
    g_log = min(1, root(K**2 * X**2 * D**2 / (T * LN2)))
    g_hinge = min(1, root(K**4 * X**2 * D**2 / (2 * (K - 1) ** 2 * T)))
    g_smooth = min(1, root(2 * K**2 * X**2 * D**2 / T))
    return {
        ("logistic", "full", ""): (LN2 / (2 * K * X**2), 0, K * X**2 * D**2 / LN2),
        ("hinge", "full", ""): ((1 - beta) / (K * X**2), 0, K**2 * X**2 * D**2 / (2 * (K - 1))),
        ("smooth-hinge", "full", ""): (1 / (4 * K * X**2), 0, 2 * K * X**2 * D**2),
        ("logistic", "bandit", "explored"): (
            g_log * LN2 / (2 * K**2 * X**2),
            g_log,
            max(2 * K**2 * X**2 * D**2 / LN2, 2 * K * X * D * root(T / LN2)),
        ),
        ("logistic", "bandit", "free"): (LN2 * a_min / (2 * K**2 * X**2), 0, K**2 * X**2 * D**2 / (LN2 * a_min)),
        ("hinge", "bandit", ""): (
            g_hinge * (1 - beta) / (K**2 * X**2),
            g_hinge,
            max(K**3 * X**2 * D**2 / (K - 1), 2 * K * X * D * root(T / 2)),
        ),
        ("smooth-hinge", "bandit", ""): (
            g_smooth / (4 * K**2 * X**2),
            g_smooth,
            max(4 * K**2 * X**2 * D**2, 2 * K * X * D * root(2 * T)),
        ),
    }


def surrogate_gap(name, z, y, xx, eta, gamma, beta, bandit, *, coefficient=None):
    """Lemma 1's bracket at scores z, label y, ‖x‖² = xx, averaged over the draw."""
    K = len(z)
    a = gap_map(name, z, beta)
    p = mixture(a, gamma, z)
    square = float(np.sum(coefficients(name, z, y, beta) ** 2)) * xx
    if bandit and square > 0:
        square /= p[y]
    miss = float(np.argmax(z) != y)
    return (1 - a) * miss + a * (K - 1) / K - loss(name, z, y, beta) + eta / 2 * square


def draw(p, top, u):
    return next((k for k, c in enumerate(np.cumsum(p)) if u < c), top)


def gaptron(name, X, y, K, eta, gamma, beta, bandit, u, ball=math.inf):
    """The whole of Algorithm 1. Returns labels, tops, p'(y) and the weights."""
    W = np.zeros((K, X.shape[1]))
    labels, tops, propensities = [], [], []
    for x, truth, luck in zip(X, y, u):
        z = W @ x
        top = int(np.argmax(z))
        p = mixture(gap_map(name, z, beta), gamma, z)
        label = draw(p, top, luck)
        labels.append(label), tops.append(top), propensities.append(p[truth])
        if bandit and label != truth:
            continue
        W = W - eta / (p[truth] if bandit else 1.0) * np.outer(coefficients(name, z, truth, beta), x)
        size = np.linalg.norm(W)
        if size > ball:
            W = W * (ball / size)
    return np.array(labels), np.array(tops), np.array(propensities), W


def perceptron(X, y, K, update="worst"):
    W, tops = np.zeros((K, X.shape[1])), []
    for x, truth in zip(X, y):
        z = W @ x
        top = int(np.argmax(z))
        tops.append(top)
        if top == truth:
            continue
        E = [r for r in range(K) if r != truth and z[r] >= z[truth]]
        gaps = np.array([z[r] - z[truth] for r in E])
        if update == "worst":
            shares = [float(r == top) for r in E]
        elif update == "uniform" or gaps.sum() == 0:
            shares = [1 / len(E)] * len(E)
        else:
            shares = list(gaps / gaps.sum())
        W[truth] += x
        for r, share in zip(E, shares):
            W[r] -= share * x
    return np.array(tops), W


def banditron(X, y, K, gamma, u):
    W, labels = np.zeros((K, X.shape[1])), []
    for x, truth, luck in zip(X, y, u):
        z = W @ x
        top = int(np.argmax(z))
        p = mixture(0.0, gamma, z)
        label = draw(p, top, luck)
        labels.append(label)
        if label == truth:
            W[label] += x / p[label]
        W[top] -= x
    return np.array(labels), W
