"""Ask a person when the models disagree

Three models each see a third of the measurements of a tumour and predict how likely it is benign. An `Abstainer`
follows their weighted vote or passes the case to a person, which costs a tenth of a mistake.

**Result:** the thick line stays below that of the best single model, although the best model was not known in advance.
Where the models agree, the abstainer predicts and is rarely wrong. The theorem, and an example with ten labels, are on
the page about [abstention](../how-to/abstention.md).
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gaptron import Abstainer, experts_from

# %% Train three models on the first 60 cases, each with a third of the columns.
X, y = load_breast_cancer(return_X_y=True)
order = np.random.default_rng(2).permutation(len(y))
X, y = X[order], y[order]
past, future = slice(0, 60), slice(60, None)
probabilities = []
for third in range(3):
    columns = slice(third, None, 3)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[past, columns], y[past])
    probabilities.append(model.predict_proba(X[future, columns]))

# %% Follow or abstain, case by case.
advice = experts_from(probabilities)
labels = np.where(y[future] == 1, 1, -1)
abstainer = Abstainer(3, cost=0.1, seed=0)
trace = abstainer.play(advice, labels)
error = trace.mistakes / (trace.rounds - trace.abstentions)
print(f"asked a person {trace.abstentions} times in {trace.rounds}; wrong on {error:.1%} of the rest")
print(f"mistakes + asked / 10: {trace.loss:.1f} as drawn, {trace.expected_loss:.1f} expected")

# %% Draw the losses of each model alone and of the three together.
pyplot.style.use("tableau-colorblind10")
figure, axes = pyplot.subplots(figsize=(7, 3.4), layout="constrained")
for third, style in enumerate(["--", ":", "-."], start=1):
    wrong = np.sign(advice[:, third - 1]) != labels
    print(f"model {third} alone, without abstaining: {wrong.sum()} mistakes, {wrong.mean():.1%}")
    axes.plot(np.cumsum(wrong), style, label=f"model {third} alone")
axes.plot(np.cumsum(trace.expected_losses), "-", linewidth=2.5, label="the three, or a person")
axes.set(xlabel="cases so far", ylabel="mistakes + asked / 10")
axes.legend()
figure.savefig("abstain.png", dpi=150)
