"""Advised Gaptron again, in textbook numpy that shares no line with the library.

Precisions are matrices that are solved with, and nothing is optimized for speed. A round is three calls: `score`
(everything that an example gives), `commit` (what the decision alone fixes) and `learn`. Late feedback is a `score`
without `commit`, then `learn` with what the decision itself has saved.
"""

import math
from types import SimpleNamespace

import numpy as np

LN2 = math.log(2)
NONE = -1


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def log_loss(z, y):
    """-log₂ softmax(z)_y."""
    return float(np.log(np.exp(z - z.max()).sum()) + z.max() - z[y]) / LN2


def top(a):
    """The top label; of equals (to rounding), the lowest."""
    return int(np.argmax(a >= a.max() - 1e-12 * max(1.0, np.abs(a).max())))


def tied(a):
    """The uniform distribution over the top label and those that tie with it, up to rounding."""
    ties = a >= a.max() - 1e-12 * abs(a.max())
    return ties / ties.sum()


def cut(a, reach):
    """Raised to at least the largest less `reach`, then centred."""
    a = np.maximum(a, a.max() - reach)
    return a - a.mean()


def root(b, c):
    """The root ρ ≥ 0 of ρ² - bρ - c, by the form without cancellation."""
    wide = np.sqrt(b * b + 4 * c)
    low = np.divide(2 * c, wide - b, out=np.zeros_like(b), where=c > 0)
    return np.where(b > 0, (b + wide) / 2, low)


def spread(b, c, heirs):
    """q and λ: the heirs share what is left, or λ rises, found by halving, until the demands sum to 1."""
    asked = root(b, c)
    if asked.sum() <= 1 + 1e-13:
        return asked + (1 - asked.sum()) * heirs, 0.0
    low, high = 0.0, 1000.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if root(b - middle, c).sum() > 1 else (low, middle)
    asked = root(b - high, c)
    return asked / asked.sum(), high


def logit(p):
    return math.log(p / (1 - p))


class Stay:
    """S of n observed, E expected; λ = logit((5 + S)/(10 + n)) - logit((5 + E)/(10 + n))."""

    def __init__(self):
        self.S = self.E = self.n = 0.0

    def odds(self):
        return logit((5 + self.S) / (10 + self.n)) - logit((5 + self.E) / (10 + self.n))

    def update(self, observed, expected):
        self.S, self.E, self.n = 0.999 * self.S + observed, 0.999 * self.E + expected, 0.999 * self.n + 1


class Newton:
    """A softmax regression whose steps are divided by the precision of its past examples."""

    def __init__(self, K, d, blocks, most=math.inf):
        self.W, self.G, self.most = np.zeros((K, d)), np.ones(K), most
        self.parts = [np.arange(i, min(i + 16, d)) for i in range(0, d, 16)] if blocks else [np.arange(d)]
        self.blocks = blocks
        self.precision = [np.eye(len(i)) / 16 if blocks else np.full(d, 1 / 16) for i in self.parts]

    def ratio(self, A):
        """Of the mean of G to G_k."""
        return self.G.mean() / self.G[A]

    def preconditioned(self, x):
        """The example times the inverse precision."""
        g = np.zeros_like(x)
        for i, precision in zip(self.parts, self.precision):
            g[i] = np.linalg.solve(precision, x[i]) if self.blocks else x / precision
        return g

    def step(self, x, A, r, h, power=0.5):
        """One step on the gradient r in the scores of the labels A."""
        self.G[A] += np.abs(r)
        r = r * np.clip(self.ratio(A) ** power, 0.25, 4)
        g = self.preconditioned(x)
        self.W[A] -= np.outer(r, g) / (1 + h * (x @ g))
        for q, i in enumerate(self.parts):
            if self.blocks:
                self.precision[q] = self.precision[q] + h * np.outer(x[i], x[i])
            else:
                self.precision[q] = np.minimum(self.precision[q] + h * x**2, self.most)


class Book:
    """What both kinds of feedback share."""

    def __init__(self, K, d, guard):
        self.K, self.guard = K, guard
        self.t, self.X2, self.squares = 0, 0.0, 0.0
        self.theta, self.moved = np.zeros((K, d)), 0.0  # Σ ĝ of both blocks
        self.last, self.stay = NONE, Stay()
        self.D = self.m = self.O = 0.0  # of the guard
        self.called = 0

    def begin(self, x, advice, available):
        """What an example gives before the experts predict."""
        s = SimpleNamespace(x=x, xx=float(x @ x))
        s.A = np.arange(self.K) if available is None else np.flatnonzero(available)
        s.X2 = max(self.X2, s.xx)
        n = max(s.xx, (self.squares + s.xx) / (self.t + 1))
        s.tilde = x / math.sqrt(n) if n > 1e-280 else 0 * x
        s.silent = n <= 1e-280
        s.copies = []
        if advice is not None and np.sum(np.asarray(advice)[s.A]) > 0:
            f = np.asarray(advice, float)[s.A] / np.sum(np.asarray(advice)[s.A])
            s.copies = [(1 - m) * f + m / len(s.A) for m in (0.0, 0.2, 0.5, 0.8)]
        s.caller = int(s.A[top(s.copies[0])]) if s.copies else NONE
        s.forced = bool(s.copies) and self.D + self.O + 1 > self.guard + 0.1 * self.m
        return s

    def shown(self, s, q):
        """q and whether another label than the caller's might be played, over all labels."""
        s.q = np.zeros(self.K)
        s.q[s.A] = q
        s.apart = bool(s.copies) and s.q[s.caller] < 1
        return s

    def commit(self, s):
        self.t += 1
        self.X2 = s.X2
        self.squares += s.xx
        self.O += s.apart
        self.called += bool(s.copies)


class FullBook(Book):
    """Full information."""

    def __init__(self, K, d, sigma=2.0, guard=math.inf):
        super().__init__(K, d, guard)
        blocks = d <= 1024
        self.A, self.C, self.b = Newton(K, d, blocks), Newton(K, d, False), 1 / K if blocks else 0.05
        self.sigma, self.e0 = sigma, LN2**2
        self.H = self.most = self.gap = self.trust = 0.0
        self.u, self.N = np.array([0.0, *[0.5] * 6, 1.0]), np.zeros(8)  # certified, A, C, four copies, κ
        self.step = self.e0

    def score(self, x, advice=None, available=None):
        s = self.begin(x, advice, available)
        s.eps = self.e0
        if self.most > 0:
            s.eps = min(self.e0, max(self.sigma**2 / (2 * self.most), self.e0 / 50))
        eta = s.eps / s.X2 if s.X2 > 1e-280 else 0.0
        s.w = -eta * (self.theta @ x)[s.A]
        s.fA, s.fC = (softmax((who.W @ s.tilde)[s.A]) for who in (self.A, self.C))
        scores = [s.w, (self.A.W @ s.tilde)[s.A], (self.C.W @ s.tilde)[s.A]]
        scores += [np.log(np.maximum(f, 1e-300)) for f in s.copies]
        share = 1.0 if not s.copies else 1 / 3  # ½·⅓ = 1/6: A, C and the copies start alike
        s.L = share * np.array([cut(z, 10) for z in scores])
        s.n = len(s.L)
        s.pushed = np.flatnonzero(s.A == self.last) if self.last != NONE else np.zeros(0, int)
        s.kappa = float(np.clip(self.stay.odds(), 0, 5)) if len(s.pushed) else 0.0
        o = self.u[1 : s.n] @ s.L[1:]
        o[s.pushed] += self.u[7] * s.kappa
        s.outside = top(o)
        s.t = o + self.u[0] * s.L[0]
        s.a = cut(o, 5)
        s.v = 1 - s.eps * 0.04 * self.moved
        s.z = s.w + s.v * s.a
        s.ensemble, s.own = top(s.t), top(s.z)
        s.heir_is_own = self.trust < -3
        s.heir = s.own if s.heir_is_own else s.ensemble
        s.p = softmax(s.z)
        kx, kv = eta * s.xx / (2 * LN2**2), s.eps * 0.04 / (2 * LN2**2)
        e, mu = np.eye(len(s.A)), s.p @ s.a
        s.b = np.array(
            [1 - log_loss(s.z, y) + kx * np.sum((s.p - e[y]) ** 2) + kv * (mu - s.a[y]) ** 2 for y in range(len(s.A))]
        )
        q = np.maximum(s.b, 0)
        q += (1 - q.sum()) * tied(s.z if s.heir_is_own else s.t)
        if s.forced:
            q = (s.A == s.caller).astype(float)
        return self.shown(s, q)

    def commit(self, s, label=None):
        super().commit(s)
        self.step = min(self.step, s.eps)

    def learn(self, s, label, truth, *, propensity=None, last=None, apart=None):
        """The last three are saved by a decision whose feedback is late."""
        A, y = s.A, int(np.flatnonzero(s.A == truth)[0])
        last = self.last if last is None else last
        e = np.eye(len(A))
        self.step = min(self.step, s.eps)
        self.gap += s.b[y] - (s.q[truth] if propensity is None else propensity)
        self.H += (s.outside == y) - s.q[truth]
        self.most = max(self.most, self.H)
        self.trust = 0.999 * self.trust + (s.ensemble == y) - (s.own == y)
        self.theta[A] += np.outer(s.p - e[y], s.x) / LN2
        self.moved += (s.p @ s.a - s.a[y]) / LN2
        if s.copies:
            self.O -= s.apart if apart is None else apart
            self.D += float(label != truth) - float(s.caller != truth)
            self.m += s.caller != truth
        tau = softmax(s.t)
        here = np.flatnonzero(A == last)
        if last != NONE and len(here):
            calm = s.t.copy()
            calm[s.pushed] -= self.u[7] * s.kappa
            self.stay.update(float(truth == last), float(softmax(calm)[here[0]]))
        g = s.L @ (tau - e[y])
        self.N[: s.n] += g**2
        self.u[: s.n] -= g / np.sqrt(1 + self.N[: s.n])
        if len(s.pushed):
            g = (tau - e[y])[s.pushed[0]] * s.kappa
            self.N[7] += g**2
            self.u[7] -= g / math.sqrt(1 + self.N[7])
        self.last = truth
        if s.silent:
            return
        for who, f, b in ((self.A, s.fA, self.b), (self.C, s.fC, 0.25)):
            if 1 - f[y] >= 0.1:
                who.step(s.tilde, A, f - e[y], b * (1 - f[y]))


class BanditBook(Book):
    """Bandit feedback."""

    def __init__(self, K, d, reach=20.0, theta=2.0, pace=0.5, guard=math.inf, delay=0):
        super().__init__(K, d, guard)
        self.delay, self.missing, self.most = delay, 0, 0  # certified rounds without feedback
        self.charged, self.partial = 0.0, False
        self.reach, self.budget, self.pace, self.e0 = reach, theta, pace, 2 * LN2**2 / K
        self.A, self.C = Newton(K, d, d <= 1024), Newton(K, d, False, most=0.5)
        self.U = np.zeros((K, d))  # one against all
        self.side, self.side_step = np.zeros((K, d)), 2 * LN2**2
        self.beta = self.V = 0.0
        self.omega = np.full(9, 1 / 4)  # certified, one against all, A, C, the caller's copies, what it does not say
        self.hits, self.asked = np.zeros(K), np.zeros(K)
        self.xs = self.xn = 0.0
        self.earned = self.learned = 0.0
        self.other = Stay()
        self.step, self.Lambda, self.certified, self.last_step = self.e0, 0.0, 0, self.e0
        self.M = self.waiting = self.psi = 0.0
        self.regret = np.zeros(4)

    def score(self, x, advice=None, available=None):
        s = self.begin(x, advice, available)
        A, K = s.A, self.K
        s.eps = min(self.step, self.e0, self.pace * self.reach / math.sqrt(K * (self.t + 1)))
        most = max(self.most, self.missing)
        s.number, s.expected = self.certified + 1, min(self.delay, 2 * most + 2)
        if self.delay:
            s.eps = min(s.eps, self.e0 / (1 + 12 * (most + s.expected) / K))
        if self.Lambda > 0:
            s.eps = min(s.eps, self.reach**2 / (2 * self.Lambda))
        eta = s.eps / s.X2 if s.X2 > 1e-280 else 0.0
        s.w = -eta * (self.theta @ x)[A]
        one = 1 / (1 + np.exp(-(self.U @ s.tilde)[A]))
        with_none = softmax(np.append((self.A.W @ s.tilde)[A], self.beta))
        s.none = with_none[-1]
        unsaid = [(1 - s.copies[0]) / (len(A) - 1) if len(A) > 1 else np.ones(1)] if s.copies else []
        s.f = np.array([softmax(s.w), one, with_none[:-1], softmax((self.C.W @ s.tilde)[A]), *s.copies, *unsaid])
        s.n = len(s.f)
        omega = self.omega[: s.n] / self.omega[: s.n].sum()
        s.omega = omega
        s.base = omega @ s.f
        pushed = A == self.last
        s.kappa = 0.0
        if self.last != NONE and pushed.any():
            s.kappa = float(np.clip(self.stay.odds() - max(self.other.odds(), 0), 0, 5))
        s.found = (1 + self.xs) / (K + self.xn)
        more = 0.2 * self.t * s.found * min(1, K * s.found)
        m = omega[1:] @ s.f[1:]
        m = np.where(pushed, m * math.exp(s.kappa), m)
        s.shown = m + omega[0] * s.f[0]
        new = more / (1 + self.asked[A]) * (omega[2] * s.f[2] + omega[3] * s.f[3])
        m = np.where(self.hits[A] == 0, m + new, m)
        B = m + omega[0] * s.f[0]
        s.trust = s.none * (1 - min(1, (1 + self.earned) / (K + self.learned))) ** 2
        if s.trust < 1e-3:
            s.trust = 0.0
        s.hope = np.exp(0.3 * np.sqrt(s.tilde @ self.A.preconditioned(s.tilde) * self.A.ratio(A)))
        s.shown = (1 - s.trust) * s.shown + s.trust * s.f[2]
        B = (1 - s.trust) * B + s.trust * s.f[2] * s.hope
        s.heir = top(B)
        s.a = cut(np.log(np.maximum(B, 1e-12)), 10)
        s.v = 1 - s.eps * 0.1 * self.moved
        s.z = s.w + s.v * s.a
        s.p = softmax(s.z)
        s.b_t = self.budget * (self.reach**2 + 10) / (2 * s.eps)
        R = s.b_t - (self.M + self.waiting - self.psi)
        s.free = s.forced or (self.budget > 0 and R >= 1 and 1 - B[s.heir] / B.sum() <= min(1.0, R / s.b_t))
        s.level = 0.0
        if s.forced:
            q = A == s.caller
        elif s.free:
            q = tied(B)
            if self.partial:
                P = B / B.sum()
                q = np.where(
                    np.arange(len(A)) == s.heir, 0.0, 1 / (len(A) + 1000 * math.sqrt(self.t + 1) * (P[s.heir] - P))
                )
                q[s.heir] = 1 - q.sum()
        else:
            kx, kv = eta * s.xx / (2 * LN2**2), s.eps * 0.1 / (2 * LN2**2)
            loss, mu, n = np.array([log_loss(s.z, y) for y in range(len(A))]), s.p @ s.a, len(A)
            b = 1 - loss + kx * (s.p @ s.p - 2 * s.p + 1 / n) + kv * (mu**2 - 2 * mu * s.a)
            own = np.array([np.sum((s.p - e) ** 2) for e in np.eye(n)])
            s.moment = kx * np.maximum(own, s.p @ s.p - 1 / n) + kv * np.maximum((mu - s.a) ** 2, mu**2)
            b += (self.missing + s.expected) * s.moment if self.delay else 0.0
            q, s.level = spread(b, kx * (1 - 1 / n) + kv * s.a**2, tied(B))
        return self.shown(s, q)

    def commit(self, s, label):
        super().commit(s)
        self.step = min(self.step, s.eps)
        if self.delay and not s.free:
            self.asked += s.q
        else:
            self.asked[label] += 1
        if s.free:
            self.waiting += 1
        else:
            self.Lambda += s.level
            self.certified += 1
            self.most = max(self.most, self.missing)
            self.missing += 1
            self.last_step = self.step

    def learn(self, s, label, reward, *, propensity=None, free=None, last=None, apart=None, own=None):
        """The last five are saved by a decision whose feedback is late."""
        K, A, x = self.K, s.A, s.x
        own = own if self.delay and own is not None else s
        at, hit = int(np.flatnonzero(s.A == label)[0]), reward >= 0.5
        self.partial |= 0 < reward < 1
        q = s.q[label] if propensity is None else propensity
        last = self.last if last is None else last
        e = np.eye(len(A))[at]
        if s.free if free is None else free:
            self.learn_free(s, at, reward)
        else:
            weight = reward / q
            r = own.p - 1 / len(A) + weight * (1 / len(A) - e)
            self.theta[A] += np.outer(r, x) / LN2
            self.moved += r @ own.a / LN2
            self.missing -= 1
            if self.delay:
                possible = own.moment[e == 1] if reward == 1 else own.moment
                charge = max(0, self.certified - own.number - own.expected) * possible.max()
                self.charged, self.Lambda = self.charged + charge, self.Lambda + charge
        way = -1.0 if hit else 1.0
        self.regret += way * np.array([top(f) != at for f in s.f[:4]])
        if s.copies:
            self.O -= s.apart if apart is None else apart
            if s.caller != label:
                self.D += way
                self.m += hit
            else:
                self.m += not hit
        (self.stay if label == last else self.other).update(reward, s.base[at] / s.base.sum())
        self.last = label if hit else NONE
        if self.hits[label] == 0:
            self.xn += 1
            if reward > 0:
                self.xs, self.xn = (self.xs + 1) / 2, self.xn / 2
        self.hits[label] += reward
        self.earned, self.learned = self.earned + reward, self.learned + 1
        self.asked[label] = 0
        phi = np.clip(s.f[:, at], 1e-3, 1 - 1e-3)
        total, omega = self.omega[: s.n].sum(), self.omega[: s.n] * phi**reward * (1 - phi) ** (1 - reward)
        omega /= omega.sum()
        share = 0.01 * max(reward, min(1.0, 5 * omega @ s.f[:, at]))
        self.omega[: s.n] = total * ((1 - share) * omega + share / s.n)
        if s.silent:
            return
        self.U[label] += (reward - s.f[1, at]) * s.tilde
        for who, f, b in ((self.A, s.f[2], 0.5 / K), (self.C, s.f[3], 0.25)):
            coefficient = -reward + (1 - reward) * f[at] / max(1 - f[at], 1e-3)
            m, least = reward * (1 - f[at]) + (1 - reward) * f[at], 1e-3 * min(1, 20 / K)
            if (
                (reward == 1 and m < 0.1)
                or (reward == 0 and m < least)
                or (0 < reward < 1 and abs(coefficient) < least)
            ):
                continue
            if who is self.A:
                self.V += (coefficient * s.none) ** 2
                self.beta += coefficient * s.none / math.sqrt(1 + self.V)
            who.step(s.tilde, A, coefficient * (e - f), b * m, power=(1 + s.none) / 2 if who is self.A else 0.5)

    def learn_free(self, s, at, reward):
        """Theorem 1 of the certificates, on the hits of exploiting rounds."""
        self.waiting -= 1
        self.M += 1 - reward
        eta = self.side_step / max(self.X2, s.xx) if max(self.X2, s.xx) > 1e-280 else 0.0
        z = -eta * (self.side @ s.x)[s.A]
        r = softmax(z) - np.eye(len(s.A))[at]
        if reward > 0:
            self.psi += reward * log_loss(z, at) - reward**2 * eta * s.xx / (2 * LN2**2) * (r @ r)
            self.side[s.A] += reward * np.outer(r, s.x) / LN2
        if self.M > self.psi:
            self.side_step = min(self.side_step, self.reach**2 / (2 * (self.M - self.psi)))
