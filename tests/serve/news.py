"""A small world for models with actions: visitors who like one topic, and articles that come and go."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np

import gaptron
from gaptron.kernels.simplex import draw
from gaptron.serve import draws
from tests.serve.served import Served

NEWS = {"name": "news", "actions": True, "algorithm": "frugal-gaptron"}
LIKES = {"student": "sport", "manager": "money", "retired": "garden"}
TOPICS = (*LIKES.values(), "weather")


def visits(count: int, *, seed: int = 0, offered: int = 5) -> Iterator[dict[str, Any]]:
    """Requests for a decision: who visits, and which articles are there. Every 30 visits the oldest one goes."""
    rng = np.random.default_rng(seed)
    for t in range(count):
        articles = rng.choice(12, offered, replace=False) + t // 30
        yield {
            "event_id": f"visit-{t}",
            "context": {"visitor": str(rng.choice(list(LIKES))), "hour": int(rng.integers(24))},
            "actions": [
                {"id": f"article-{n}", "features": {"topic": TOPICS[n % len(TOPICS)], "length": 0.1 * float(n % 7)}}
                for n in articles.tolist()
            ],
        }


def likes(visit: dict[str, Any], action: str) -> bool:
    """Does the visitor like this article?"""
    article = next(one for one in visit["actions"] if one["id"] == action)
    return bool(article["features"]["topic"] == LIKES[visit["context"]["visitor"]])


def make_news(served: Served, **more: Any) -> httpx.Response:
    return served.call("POST", "/v1/models", {**NEWS, **more})


def choose(served: Served, request: dict[str, Any], model: str = "news") -> httpx.Response:
    return served.call("POST", f"/v1/models/{model}/decisions", request)


class Twin:
    """A learner of the library that gets the same events."""

    def __init__(self, served: Served, model: str = "news", **settings: Any) -> None:
        self.key = served.model(model).key
        given = {"features": "auto", "epsilon": 0.02, "feedback": "bandit", **settings}
        self.learner = gaptron.Learner("frugal-gaptron", actions=True, seed=0, **given)

    def decide(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """What the service should respond with as the ranking."""
        actions = {one["id"]: one["features"] for one in request["actions"]}
        preview = self.learner.preview(request.get("context"), actions, excluded=request.get("excluded"))
        p = preview.distribution
        code = int(draw(p, int(p.argmax()), draws.number(self.key, request["event_id"])))
        order = [code, *(place for place in preview.order if place != code)]
        return [{"id": preview.actions[place], "propensity": p[place]} for place in order]

    def learn(self, request: dict[str, Any], first: dict[str, Any], **feedback: Any) -> None:
        actions = {one["id"]: one["features"] for one in request["actions"]}
        self.learner.learn_logged(
            request.get("context"),
            propensity=first["propensity"],
            actions=actions,
            action=first["id"],
            excluded=request.get("excluded"),
            **feedback,
        )
