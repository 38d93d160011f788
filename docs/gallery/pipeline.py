"""A scikit-learn pipeline on text

`OnlineClassifier` is a scikit-learn classifier: use it after a `TfidfVectorizer`, in cross-validation, and, with
`partial_fit`, after a `HashingVectorizer`, which needs no first pass over the texts.

**Result:** ten shuffled passes over all training texts and one pass in batches of 100 reach the same accuracy. The line
is the accuracy on texts not used for training, after each batch.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from gaptron import OnlineClassifier

# %% Generate texts on four topics.
topics = {
    "kitchen": "oven butter flour simmer onion whisk recipe salt table knife fresh bread",
    "garden": "soil seed prune rose mulch compost shovel fresh hedge onion bulb fence",
    "workshop": "drill screw plank hammer knife glue table saw bolt fence clamp sand",
    "harbour": "boat sail anchor rope tide fresh deck sand crane mast salt pilot",
}
everywhere = "the a my our with and then for this that was need good some more very".split()
rng = np.random.default_rng(1)
y = rng.choice(list(topics), 3000)
texts = [" ".join(rng.permutation([*rng.choice(topics[k].split(), 2), *rng.choice(everywhere, 8)])) for k in y]
train, test = slice(0, 2000), slice(2000, 3000)

# %% Use the classifier in cross-validation and in a pipeline.
model = make_pipeline(TfidfVectorizer(), OnlineClassifier(random_state=0))
folds = cross_val_score(model, texts[train], y[train], cv=3)
print(f"cross-validation, 3 folds: {' '.join(f'{fold:.1%}' for fold in folds)}")
offline = model.fit(texts[train], y[train]).score(texts[test], y[test])
print(f"ten passes over 2000 texts: {offline:.1%} of 1000 new texts correct")

# %% Learn in batches, without a first pass.
hashing, online, seen, accuracy = HashingVectorizer(n_features=1024), OnlineClassifier(random_state=0), [], []
for start in range(0, 2000, 100):
    batch = slice(start, start + 100)
    online.partial_fit(hashing.transform(texts[batch]), y[batch], classes=sorted(topics))
    seen.append(start + 100)
    accuracy.append(online.score(hashing.transform(texts[test]), y[test]))
print(f"one pass in batches: {accuracy[0]:.1%} after {seen[0]} texts, {accuracy[-1]:.1%} after {seen[-1]}")

# %% Draw the accuracy on new texts.
figure, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(seen, accuracy, "o-", label="partial_fit, one pass")
axes.axhline(offline, linestyle="--", color="black", label="fit, ten passes")
axes.set(xlabel="texts learned from", ylabel="accuracy on new texts")
axes.legend()
figure.savefig("pipeline.png", dpi=150)
