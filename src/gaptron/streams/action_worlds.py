"""Synthetic worlds whose rounds bring their own actions, with the expected reward of every action.

    news      articles live for 500 rounds; topics that a reader's segment likes, hours, publishers, age, quality
    cold      the same with articles that live for 200 rounds and differ more in quality
    prices    10 of 60 offers: the price against the visitor's budget, rating, discount, category
    taste     new actions in every round, whose reward is bilinear in their numbers and those of the context
    ids       nothing but names, which come and go
    choice    exactly one action is right: a conditional logit over 5 to 12 of 80 items
    drift     taste, of actions that return, while what is liked turns into its opposite
    quotes    what is asked for is what is earned if the customer accepts: rewards between 0 and 1

In all but the last a reward is 0 or 1. A context and an action are dicts of features: a text is a word, a number a
number. `encoded` makes rows of them: the words and numbers of the action, its id, and the products of those of the
context with those of the action. Rows are not divided by their norms: a score that is linear in the numbers would no
longer be (measured, `advised-gaptron`: `taste` 0.96 of the best reward, 0.87 with rows of norm 1). The same seed gives
the same rounds and the same rewards, whatever a learner plays.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gaptron.data.actions import ActionExamples
from gaptron.errors import InputError
from gaptron.types import Vector

Features = dict[str, str | float]
MOST_ROUNDS = 10_000_000


class WorldRound(NamedTuple):
    """What one round brings."""

    context: Features
    actions: list[tuple[str, Features]]  # ids and features
    expected: Vector  # the expected reward of every action
    rewards: Vector  # what every action would earn


@dataclass(frozen=True, eq=False)
class ActionStream:
    """The rounds of a world."""

    name: str
    contexts: list[Features]
    actions: list[list[tuple[str, Features]]]
    rounds: ActionExamples
    expected: Vector  # one per row
    rewards: Vector  # one per row

    def best(self) -> float:
        """Return the sum over rounds of the largest expected reward."""
        return float(np.maximum.reduceat(self.expected, self.rounds.first[:-1]).sum())

    def share(self, played: Any) -> float:
        """Return the expected reward of a run as a share of the largest possible.

        Args:
            played: the row of the action played in each round, counted within the round, as `trace.labels` has it.

        Returns:
            The share.
        """
        rows = self.rounds.first[:-1] + np.asarray(played)
        return float(self.expected[rows].sum() / self.best())


def action_world(name: str, n_rounds: int = 10_000, seed: int = 0) -> ActionStream:
    """Generate the rounds of a world.

    Args:
        name: one of `WORLDS`.
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.

    Returns:
        The stream, with the expected reward of every action.
    """
    return encoded(name, world_rounds(name, n_rounds, seed))


def world_rounds(name: str, n_rounds: int = 10_000, seed: int = 0) -> Iterator[WorldRound]:
    """Generate the rounds of a world by name, without making rows of numbers.

    Args:
        name: one of `WORLDS`.
        n_rounds: the number of rounds.
        seed: the seed of the random numbers.

    Returns:
        The rounds.
    """
    if name not in WORLDS:
        raise InputError(f"there is no world of actions {name!r}; there are {', '.join(WORLDS)}")
    if not 1 <= n_rounds <= MOST_ROUNDS:
        raise InputError(f"rounds must be a number from 1 to {MOST_ROUNDS}, not {n_rounds}")
    if seed < 0:
        raise InputError(f"seed must not be negative, but is {seed}")
    return islice(WORLDS[name](n_rounds, np.random.default_rng(seed)), n_rounds)


# --- rows -------------------------------------------------------------------------------------------------------


def encoded(name: str, rounds: Iterator[WorldRound]) -> ActionStream:
    """Make rows of the features of all rounds.

    Args:
        name: the name of the stream.
        rounds: the rounds.

    Returns:
        The stream.
    """
    columns: dict[str, int] = {}
    contexts, actions, expected, rewards, counts = [], [], [], [], []
    rows, shared = Cells(columns), Cells(columns)
    for each in rounds:
        context = list(tokens(each.context))
        shared.add([("c:" + token, value) for token, value in context])
        for name_of_action, features in each.actions:
            own = list(tokens(features))
            row = [("a:" + token, value) for token, value in own]
            row += [(f"{c}*{token}", v * value) for token, value in own for c, v in context]
            rows.add([*row, ("id:" + name_of_action, 1.0)])
        contexts.append(each.context)
        actions.append(each.actions)
        expected.append(each.expected)
        rewards.append(each.rewards)
        counts.append(len(each.actions))
    examples = ActionExamples.of(rows.matrix(), counts, shared.matrix())
    return ActionStream(name, contexts, actions, examples, np.concatenate(expected), np.concatenate(rewards))


def tokens(features: Features) -> Iterator[tuple[str, float]]:
    """Yield the words and numbers of a dict of features, as (name, value).

    Args:
        features: texts and numbers by name.

    Yields:
        `name=text` with the value 1, or the name with the number.
    """
    for name, value in features.items():
        yield (f"{name}={value}", 1.0) if isinstance(value, str) else (name, value)


class Cells:
    """The non-zeros of a sparse matrix that is built row by row."""

    def __init__(self, columns: dict[str, int]) -> None:
        self.columns = columns  # name → column; several matrices may share them
        self.ends, self.indices, self.values = [0], list[int](), list[float]()

    def add(self, cells: list[tuple[str, float]]) -> None:
        """Add a row."""
        for name, value in cells:
            self.indices.append(self.columns.setdefault(name, len(self.columns)))
            self.values.append(value)
        self.ends.append(len(self.indices))

    def matrix(self) -> Any:
        """Return the matrix, with as many columns as names are known by now."""
        shape = len(self.ends) - 1, max(1, len(self.columns))
        return sp.csr_array((np.array(self.values), np.array(self.indices, dtype=np.int32), self.ends), shape=shape)


# --- worlds -----------------------------------------------------------------------------------------------------


def _sigmoid(z: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-z))


def _clicks(
    rng: np.random.Generator, context: Features, actions: list[tuple[str, Features]], expected: Any
) -> WorldRound:
    """A round in which every action earns 1 with its probability, independently of the others."""
    p = np.asarray(expected, dtype=np.float64)
    return WorldRound(context, actions, p, (rng.random(len(p)) < p).astype(np.float64))


def _news(rng: np.random.Generator, life: int, quality: float, fewest: int) -> Iterator[WorldRound]:
    topics, segments, hours, devices, publishers, live_at_once = 10, 8, 6, 3, 20, 20
    likes, by_hour = 0.9 * rng.normal(size=(segments, topics)), 0.3 * rng.normal(size=(hours, topics))
    of_publisher, of_topic, of_device = (0.3 * rng.normal(size=n) for n in (publishers, topics, devices))
    live: list[tuple[int, int, int, float, int, int]] = []  # id, topic, publisher, quality, length, first round
    born, t = 0, 0
    while True:
        live = [article for article in live if article[-1] + life > t]
        while len(live) < live_at_once:
            since = t if t else -int(rng.integers(life))  # at first articles of all ages
            kind = int(rng.integers(topics)), int(rng.integers(publishers))
            live.append((born, *kind, quality * rng.normal(), int(rng.integers(3)), since))
            born += 1
        segment, hour, device = (int(rng.integers(n)) for n in (segments, hours, devices))
        actions, z = [], []
        for at in rng.permutation(live_at_once)[: rng.integers(fewest, live_at_once + 1)]:
            name, topic, publisher, own, length, since = live[at]
            age = (t - since) / life
            features: Features = {
                "topic": str(topic),
                "publisher": str(publisher),
                "age": str(int(4 * age)),
                "length": str(length),
            }
            actions.append((f"article-{name}", features))
            liking = likes[segment, topic] + by_hour[hour, topic] + of_publisher[publisher] + of_topic[topic]
            z.append(-3.0 + own + liking + of_device[device] - 0.8 * age)
        context: Features = {"segment": str(segment), "hour": str(hour), "device": str(device)}
        yield _clicks(rng, context, actions, _sigmoid(np.array(z)))
        t += 1


def news(n_rounds: int, rng: np.random.Generator) -> Iterator[WorldRound]:
    """Articles that live for 500 rounds."""
    return _news(rng, 500, 0.4, 5)


def cold(n_rounds: int, rng: np.random.Generator) -> Iterator[WorldRound]:
    """Articles that live for 200 rounds, and differ more."""
    return _news(rng, 200, 0.9, 10)


def prices(n_rounds: int, rng: np.random.Generator) -> Iterator[WorldRound]:
    """Offers of different prices, and visitors with budgets."""
    offers, shown, segments, categories = 60, 10, 4, 6
    list_price, rating = np.exp(0.6 * rng.normal(size=offers)), rng.uniform(1, 5, offers)
    category, own = rng.integers(categories, size=offers), 0.3 * rng.normal(size=offers)
    likes = 0.6 * rng.normal(size=(segments, categories))
    while True:
        log_budget, segment = 0.6 * rng.normal(), int(rng.integers(segments))
        at = rng.permutation(offers)[:shown]
        discount = (rng.random(shown) < 0.2) * rng.uniform(0.1, 0.4, shown)
        log_price = np.log(list_price[at] * (1.0 - discount))
        z = -2.6 - 1.5 * (log_price - log_budget) ** 2 - 0.4 * log_price + 0.3 * (rating[at] - 3.0) + 1.5 * discount
        z += likes[segment, category[at]] + own[at]
        actions: list[tuple[str, Features]] = [
            (
                f"offer-{i}",
                {
                    "category": str(category[i]),
                    "log_price": float(log_price[k]),
                    "log_price_2": float(log_price[k] ** 2),
                    "rating": float((rating[i] - 3.0) / 1.2),
                    "discount": float(4.0 * discount[k]),
                },
            )
            for k, i in enumerate(at)
        ]
        yield _clicks(rng, {"segment": str(segment), "log_budget": float(log_budget / 0.6)}, actions, _sigmoid(z))


def _numbers(name: str, values: Vector) -> Features:
    return {f"{name}{i}": float(v) for i, v in enumerate(values)}


def taste(n_rounds: int, rng: np.random.Generator) -> Iterator[WorldRound]:
    """New actions in every round: names are of no use."""
    d, born = 6, 0
    likes, own = 1.3 * rng.normal(size=(d, d)) / np.sqrt(d), 0.4 * rng.normal(size=d)
    while True:
        x, K = rng.normal(size=d), int(rng.integers(5, 16))
        A = rng.normal(size=(K, d))
        actions = [(f"item-{born + k}", _numbers("a", row)) for k, row in enumerate(A)]
        born += K
        yield _clicks(rng, _numbers("x", x), actions, _sigmoid(-3.2 + A @ (likes.T @ x + own) / np.sqrt(d)))


def ids(n_rounds: int, rng: np.random.Generator) -> Iterator[WorldRound]:
    """Ten names at a time, each for some 1,500 rounds."""
    live: list[tuple[int, int, float]] = []  # id, last round, log-odds
    born, t = 0, 0
    while True:
        live = [each for each in live if each[1] > t]
        while len(live) < 10:
            live.append((born, t + int(1500 * rng.uniform(0.3, 1.7)), -2.9 + 0.7 * rng.normal()))
            born += 1
        none: Features = {}
        actions = [(f"name-{each[0]}", none) for each in live]
        yield _clicks(rng, {}, actions, _sigmoid(np.array([each[2] for each in live])))
        t += 1


def choice(n_rounds: int, rng: np.random.Generator) -> Iterator[WorldRound]:
    """Exactly one action is right."""
    d, items = 5, 80
    likes, A = 2.2 * rng.normal(size=(d, d)) / np.sqrt(d), rng.normal(size=(items, d))
    own, category = 0.5 * rng.normal(size=items), rng.integers(8, size=items)
    while True:
        x, K = rng.normal(size=d), int(rng.integers(5, 13))
        at = rng.permutation(items)[:K]
        z = A[at] @ (likes.T @ x) + own[at]
        p = np.exp(z - z.max())
        p /= p.sum()
        actions: list[tuple[str, Features]] = [
            (f"item-{i}", {**_numbers("a", A[i]), "category": str(category[i])}) for i in at
        ]
        rewards = np.zeros(K)
        rewards[min(int(np.searchsorted(p.cumsum(), rng.random())), K - 1)] = 1.0
        yield WorldRound(_numbers("x", x), actions, p, rewards)


def drift(n_rounds: int, rng: np.random.Generator) -> Iterator[WorldRound]:
    """What is liked turns into its opposite over the whole stream."""
    d, items = 4, 100
    likes, A, own = (
        1.5 * rng.normal(size=(d, d)) / np.sqrt(d),
        rng.normal(size=(items, d)),
        0.3 * rng.normal(size=items),
    )
    other = 1.5 * rng.normal(size=(d, d)) / np.sqrt(d)
    t = 0
    while True:
        angle = np.pi * t / n_rounds
        x, at = rng.normal(size=d), rng.permutation(items)[: rng.integers(4, 13)]
        turned = np.cos(angle) * likes + np.sin(angle) * other
        actions = [(f"item-{i}", _numbers("a", A[i])) for i in at]
        yield _clicks(rng, _numbers("x", x), actions, _sigmoid(-2.5 + A[at] @ (turned.T @ x) + own[at]))
        t += 1


def quotes(n_rounds: int, rng: np.random.Generator) -> Iterator[WorldRound]:
    """Quotes for one of twelve services: a higher one earns more and is accepted less often."""
    services, segments, levels = 12, 5, np.linspace(0.1, 1.0, 10)
    limit, patience = rng.uniform(0.3, 0.9, (segments, services)), rng.uniform(4.0, 12.0, segments)
    while True:
        segment, service, urgency = int(rng.integers(segments)), int(rng.integers(services)), rng.normal()
        asked = levels + 0.04 * rng.normal(size=len(levels))
        asked = np.clip(asked, 0.02, 1.0)
        p = _sigmoid(patience[segment] * (limit[segment, service] + 0.1 * urgency - asked))
        accepted = rng.random() < p  # one customer: who accepts a quote accepts every lower one
        context: Features = {"segment": str(segment), "service": str(service), "urgency": float(urgency)}
        actions: list[tuple[str, Features]] = [
            (f"level-{k}", {"asked": float(4.0 * (a - 0.5)), "asked_2": float(4.0 * (a - 0.5)) ** 2})
            for k, a in enumerate(asked)
        ]
        yield WorldRound(context, actions, p * asked, accepted * asked)


WORLDS: dict[str, Callable[[int, np.random.Generator], Iterator[WorldRound]]] = {
    world.__name__: world for world in (news, cold, prices, taste, ids, choice, drift, quotes)
}
"""The worlds by name."""
