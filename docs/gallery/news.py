"""Headlines and rare clicks

A reader is described by a few words about what they read last. We show **one** headline of six topics and observe a
click or, nearly always, nothing: a headline of the reader's interest is clicked in one round of eight, any other in one
of fifty. A wrong topic and a correct one without a click give the same feedback.

**Result:** the default algorithm approaches the thin line, the click rate if every reader's interest were known.
`epsilon-greedy`, which always explores with one reader in twenty, learns more slowly. `squarecb`, equal to the default
where clicks are frequent, hardly learns here. Algorithms for rare rewards can be better still: see
[the measurements](../how-to/rewards.md#rare-rewards).
"""

import numpy as np
from matplotlib import pyplot
from sklearn.feature_extraction.text import HashingVectorizer

from gaptron import Learner

# %% Generate readers, their texts and, for every headline, whether it would be clicked.
words = {
    "sport": "goal match team coach final league striker referee",
    "money": "market bank shares rates profit inflation merger tax",
    "film": "actor premiere director scene studio festival script sequel",
    "health": "doctor virus vaccine sleep diet hospital nurse trial",
    "travel": "island beach flight hotel museum train harbour visa",
    "space": "rocket orbit moon probe telescope galaxy crew launch",
}
topics, everyday, rounds = list(words), "today new big report says people week after".split(), 12_000
rng = np.random.default_rng(1)
interest = rng.integers(6, size=rounds)
texts = [" ".join([*rng.choice(words[topics[i]].split(), 2), *rng.choice(everyday, 4)]) for i in interest]
X = HashingVectorizer(n_features=512, alternate_sign=False).transform(texts)  # unit norm
click_rate = np.where(np.arange(6) == interest[:, None], 1 / 8, 1 / 50)
would_click = rng.random((rounds, 6)) < click_rate  # for every headline; only the one shown is revealed

# %% Show one headline to each reader and learn from the click.
algorithms = {"advised-gaptron": {}, "squarecb": {"oracle": "softmax"}, "epsilon-greedy": {}}
clicks = {"uniform guesses": would_click[np.arange(rounds), rng.integers(6, size=rounds)]}
for name, settings in algorithms.items():
    learner = Learner(name, classes=topics, feedback="bandit", norm=1.0, seed=0, **settings)
    clicks[name] = np.zeros(rounds, dtype=bool)
    for t in range(rounds):
        shown = learner.decide(X[t])
        clicks[name][t] = would_click[t, topics.index(shown.label)]
        learner.learn(shown, correct=bool(clicks[name][t]))

# %% Draw the click rates.
pyplot.style.use("tableau-colorblind10")
figure, axes = pyplot.subplots(figsize=(7, 3.4), layout="constrained")
for name, style in {"advised-gaptron": "-", "squarecb": "--", "epsilon-greedy": "-.", "uniform guesses": ":"}.items():
    early, late = clicks[name][:2000].mean(), clicks[name][-5000:].mean()
    print(f"{name:15}  clicks of the first 2,000 readers: {early:.1%}  of the last 5,000: {late:.1%}")
    axes.plot(range(2000, rounds + 1), np.convolve(clicks[name], np.ones(2000) / 2000, "valid"), style, label=name)
axes.axhline(1 / 8, color="black", linewidth=0.8)
axes.set(xlabel="readers so far", ylabel="clicks, share of the last 2,000", ylim=(0, 0.18))
axes.legend(loc="upper left", ncols=2)
figure.savefig("news.png", dpi=150)
