"""Wrap a model of your own

`advice=` hands the learner what another model says of each row; the learner itself sees too little to do well. Above,
the truth is told and scikit-learn's `SGDClassifier` learns along (weights are a regression's and may pass 1); below,
only right or wrong is heard, and the adviser was trained on old data and frozen.

**Look at** the weight of the caller's model: a companion that learns comes to be heard; the frozen one is heard at
once, until the labels change names half-way and it is dropped, not smoothly: under bandit feedback this weight is also
for the labels that the caller does *not* say. [The certificate](../advised.md#what-is-promised) stands all
the same.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import PolynomialFeatures

from gaptron import Learner

rng = np.random.default_rng(1)
X = rng.normal(size=(4000, 4))
squares = PolynomialFeatures(2).fit_transform(X) / 4  # the labels are linear in these, not in X
y = (squares @ rng.normal(size=(15, 3)) + 0.1 * rng.normal(size=(4000, 3))).argmax(axis=1)
frozen = LogisticRegression(C=100, max_iter=1000).fit(squares[:1000], y[:1000])
X, squares, y = X[1000:], squares[1000:], y[1000:]
half = len(y) // 2
changed = np.where(np.arange(len(y)) < half, y, (y + 1) % 3)

companion = SGDClassifier(loss="log_loss", random_state=0).partial_fit(squares[:10], y[:10], classes=range(3))
learner, traces = Learner(n_classes=3, seed=0), []
for start in range(0, len(y), 50):
    part = slice(start, start + 50)
    traces.append(learner.play(X[part], y[part], advice=companion.predict_proba(squares[part])))
    companion.partial_fit(squares[part], y[part])
told = sum(traces[1:], traces[0])
bandit = Learner(n_classes=3, feedback="bandit", seed=0)
heard = bandit.play(X, changed, advice=frozen.predict_proba(squares))

figure, panels = pyplot.subplots(2, 1, figsize=(7, 4.6), sharex=True, layout="constrained")
for panel, name, who, trace, truth in [
    (panels[0], "full information, a companion that learns", learner, told, y),
    (panels[1], "bandit feedback, a frozen model", bandit, heard, changed),
]:
    alone = Learner(n_classes=3, feedback=who.problem.feedback.word, seed=0).play(X, truth)
    print(f"{name}: {trace.mistakes} mistakes, {alone.mistakes} without advice")
    print("    weights:", {adviser: round(weight, 2) for adviser, weight in who.advice.heard.items()})
    panel.plot(trace.note("caller"))
    panel.set(title=name, ylabel="weight of the caller")
panels[1].set(xlabel="rounds")
figure.savefig("adviser.png", dpi=150)
