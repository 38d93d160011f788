"""Use the predictions of your own model

`advice=` passes the predictions of another model to the learner, whose own features are not sufficient here. In the
upper figure the true labels are revealed and scikit-learn's `SGDClassifier` learns at the same time (weights are those
of a regression and may exceed 1). In the lower one the feedback is bandit, and the model was trained on old data and is
not updated.

**Result:** the weight of the caller's model rises as that model learns. The frozen model has a large weight from the
start, until the labels are exchanged half-way and its weight drops. Under bandit feedback this weight also applies to
the labels the caller does *not* predict, so the curve is not smooth.
[The certificate](../explanation/advised.md#what-is-promised) holds in both cases.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import PolynomialFeatures

from gaptron import Learner

# %% Labels that are linear in the squares of the features, which the learner does not see, and a model that sees them.
rng = np.random.default_rng(1)
X = rng.normal(size=(4000, 4))
squares = PolynomialFeatures(2).fit_transform(X) / 4  # the labels are linear in these, not in X
y = (squares @ rng.normal(size=(15, 3)) + 0.1 * rng.normal(size=(4000, 3))).argmax(axis=1)
frozen = LogisticRegression(C=100, max_iter=1000).fit(squares[:1000], y[:1000])
X, squares, y = X[1000:], squares[1000:], y[1000:]
half = len(y) // 2
changed = np.where(np.arange(len(y)) < half, y, (y + 1) % 3)

# %% Play with the advice of a model that learns, then with that of the frozen model.
companion = SGDClassifier(loss="log_loss", random_state=0).partial_fit(squares[:10], y[:10], classes=range(3))
learner, traces = Learner(n_classes=3, seed=0), []
for start in range(0, len(y), 50):
    chunk = slice(start, start + 50)
    traces.append(learner.play(X[chunk], y[chunk], advice=companion.predict_proba(squares[chunk])))
    companion.partial_fit(squares[chunk], y[chunk])
full_trace = sum(traces[1:], traces[0])
bandit = Learner(n_classes=3, feedback="bandit", seed=0)
bandit_trace = bandit.play(X, changed, advice=frozen.predict_proba(squares))

# %% Draw the weight of the caller's model.
figure, panels = pyplot.subplots(2, 1, figsize=(7, 4.6), sharex=True, layout="constrained")
for panel, name, who, trace, truth in [
    (panels[0], "full information, a model that learns", learner, full_trace, y),
    (panels[1], "bandit feedback, a frozen model", bandit, bandit_trace, changed),
]:
    alone = Learner(n_classes=3, feedback=who.problem.feedback.word, seed=0).play(X, truth)
    print(f"{name}: {trace.mistakes} mistakes, {alone.mistakes} without advice")
    print("    weights:", {expert: round(weight, 2) for expert, weight in who.advice.weights.items()})
    panel.plot(trace.note("caller"))
    panel.set(title=name, ylabel="weight of the caller")
panels[1].set(xlabel="rounds")
figure.savefig("own_model.png", dpi=150)
