"""Logs of named actions whose truth is known, written to files as a user has them."""

import json

import numpy as np

SEGMENTS, TOPICS = ("student", "parent", "pilot"), ("sport", "news", "art", "food")


def chances(rng):
    """The chance of a click on each topic, for each segment."""
    return 0.05 + 0.9 * rng.dirichlet(np.full(len(TOPICS), 0.4), size=len(SEGMENTS))


def rounds(T, seed, fewest=2, most=6):
    """Contexts, actions and the chance of a click on each action."""
    rng = np.random.default_rng(seed)
    liked = chances(np.random.default_rng(7))  # the same world in every log
    made = []
    for t in range(T):
        segment, K = rng.integers(len(SEGMENTS)), int(rng.integers(fewest, most + 1))
        topics = rng.integers(len(TOPICS), size=K)
        actions = {
            f"n{t}-{k}": {"topic": TOPICS[topic], "age": float(rng.integers(10))} for k, topic in enumerate(topics)
        }
        made.append(({"segment": SEGMENTS[segment], "hour": float(rng.integers(24))}, actions, liked[segment, topics]))
    return made


def write_log(path, T, seed=0, *, distribution=True, greed=0.0):
    """Write a log in JSON lines. The logger plays at random, or with the chance `greed` the likeliest action."""
    rng = np.random.default_rng(seed + 1_000)
    with open(path, "w") as file:
        for context, actions, likely in rounds(T, seed):
            p = np.full(len(likely), (1.0 - greed) / len(likely))
            p[likely.argmax()] += greed
            played = int(rng.choice(len(p), p=p))
            ids = list(actions)
            line = {"context": context, "actions": actions, "played": ids[played], "probability": p[played]}
            line["reward"] = int(rng.random() < likely[played])
            if distribution:
                line["distribution"] = dict(zip(ids, p))
            file.write(json.dumps(line) + "\n")
    return path
