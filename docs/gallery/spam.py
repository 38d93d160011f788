"""Spam filtering with feedback on opened mail only

A filter opens a mail or bins it, and the true label of a binned mail is never revealed: apple tasting. `gappletron`
accounts for the missing feedback and opens, ever more rarely, mail it would rather bin.

**Result:** the perceptron learns only from the mail it opens. A few early updates make it bin everything, so it opens
nothing and receives no further feedback. `gappletron` explores by opening some spam and keeps the good mail; the
distance to the dashed line is the cost of exploration.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.feature_extraction.text import HashingVectorizer

from gaptron import Learner

# %% Generate mail: three words that tell, four that do not.
wanted = "meeting lunch draft thanks project minutes family photos ticket".split()
unwanted = "winner prize casino pills cheap click credit urgent ticket".split()
either = "hello please today regards time new best see you".split()
rng = np.random.default_rng(1)
rounds = 3000
truth = rng.choice(["bin", "open"], rounds)
own = [rng.choice(wanted if label == "open" else unwanted, 3) for label in truth]
texts = [" ".join([*words, *rng.choice(either, 4)]) for words in own]
X = HashingVectorizer(n_features=256, alternate_sign=False).transform(texts)  # unit norm

# %% Three filters: two see the labels of opened mail only, one sees all.
labels = ["bin", "open"]  # apple tasting: the second label reveals the true label, the first reveals nothing
known = {"classes": labels, "loss": "hinge", "norm": 1.0, "radius": 3.0, "seed": 0}
filters = {
    "perceptron, opened mail only": Learner("perceptron", classes=["open", "bin"]),
    "gappletron, opened mail only": Learner("gappletron", feedback="apple-tasting", **known),
    "gappletron, full information": Learner("gappletron", feedback="full", **known),
}

# %% Play, count and draw.
pyplot.style.use("tableau-colorblind10")
figure, axes = pyplot.subplots(figsize=(7, 3.4), layout="constrained")
for (name, learner), style in zip(filters.items(), [":", "-", "--"]):
    played = []
    for t in range(rounds):
        decision = learner.decide(X[t])
        played.append(decision.label)
        if decision.label == "open" or "full" in name:
            learner.learn(decision, label=truth[t])
        elif "gappletron" in name:
            learner.learn(decision)  # binned: no label was revealed
    opened, mail = np.array(played) == "open", truth == "open"
    print(f"{name}: {np.sum(opened & ~mail)} spam opened, {np.sum(~opened & mail)} of {mail.sum()} good mails lost")
    axes.plot(range(1, rounds + 1), np.cumsum(opened != mail), style, label=name)
axes.set(xlabel="mails so far", ylabel="mistakes so far")
axes.legend()
figure.savefig("spam.png", dpi=150)
