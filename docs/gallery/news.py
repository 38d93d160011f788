"""Headlines and clicks

A reader arrives with a few words on what they read last. We show **one** headline of six topics and hear a click or
nothing: bandit feedback, for what they would have clicked instead is never told.

**Look at** how clicks rise from one in six to the thin line, which is what knowing each reader's interest would get,
since one in ten has other plans that day. `squarecb` ends as high and promises nothing; the default has nothing to
set and a [bound](../advised.md#what-is-promised).
"""

import numpy as np
from matplotlib import pyplot
from sklearn.feature_extraction.text import HashingVectorizer

from gaptron import Learner

words = {
    "sport": "goal match team coach final league striker referee",
    "money": "market bank shares rates profit inflation merger tax",
    "film": "actor premiere director scene studio festival script sequel",
    "health": "doctor virus vaccine sleep diet hospital nurse trial",
    "travel": "island beach flight hotel museum train harbour visa",
    "space": "rocket orbit moon probe telescope galaxy crew launch",
}
topics, everyday, rounds = list(words), "today new big report says people week after".split(), 3000
rng = np.random.default_rng(1)
interest = rng.integers(6, size=rounds)
wanted = np.where(rng.random(rounds) < 0.88, interest, rng.integers(6, size=rounds))
texts = [" ".join([*rng.choice(words[topics[i]].split(), 2), *rng.choice(everyday, 4)]) for i in interest]
X = HashingVectorizer(n_features=512, alternate_sign=False).transform(texts)  # rows of length 1

clicks = {"uniform guesses": rng.integers(6, size=rounds) == wanted}
for name, settings in {"advised-gaptron": {}, "squarecb": {"oracle": "softmax", "norm": 1.0}}.items():
    learner = Learner(name, classes=topics, feedback="bandit", seed=0, **settings)
    clicks[name] = np.zeros(rounds, dtype=bool)
    for t in range(rounds):
        shown = learner.decide(X[t])
        clicks[name][t] = shown.label == topics[wanted[t]]
        learner.learn(shown, correct=bool(clicks[name][t]))

pyplot.style.use("tableau-colorblind10")
figure, axes = pyplot.subplots(figsize=(7, 3.4), layout="constrained")
for name, style in {"advised-gaptron": "-", "squarecb": "--", "uniform guesses": ":"}.items():
    early, late = clicks[name][:500].mean(), clicks[name][-500:].mean()
    print(f"{name:15}  clicks of the first 500 readers: {early:.1%}  of the last 500: {late:.1%}")
    axes.plot(range(200, rounds + 1), np.convolve(clicks[name], np.ones(200) / 200, "valid"), style, label=name)
axes.axhline(np.mean(interest == wanted), color="black", linewidth=0.8)
axes.set(xlabel="readers so far", ylabel="clicks, share of the last 200", ylim=(0, 1))
axes.legend()
figure.savefig("news.png", dpi=150)
