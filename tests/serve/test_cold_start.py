"""Before any outcome, a model has no reason to prefer a label or an action: it draws uniformly."""

import uuid
from collections import Counter
from typing import Any

import pytest

from gaptron.serve.replay import replay
from tests.serve.postgres import with_schema
from tests.serve.served import Served

LABELS = ["A", "B", "C"]
SPEC = {"name": "cold", "labels": LABELS, "features": 2, "epsilon": 0.0}
ACTIONS = [{"id": name, "features": {"topic": name}} for name in LABELS]
ROUNDS, FEWEST = 90, 15


def check_uniform(played: list[tuple[str, float]]) -> None:
    """Every label was drawn often, each time with the propensity with which it was drawn."""
    counts = Counter(label for label, _ in played)
    assert all(counts[label] >= FEWEST for label in LABELS), counts
    assert all(propensity == pytest.approx(1.0 / 3.0) for _, propensity in played)


def decide(served: Served) -> list[tuple[str, float]]:
    made = [served.decide(f"e{t}", (0.1 * (t % 7), 1.0), model="cold").json() for t in range(ROUNDS)]
    return [(one["label"], one["propensity"]) for one in made]


def check_replay(served: Served, played: list[tuple[str, float]]) -> None:
    logged = [served.call("GET", f"/v1/models/cold/decisions/e{t}").json() for t in range(ROUNDS)]
    assert [(one.get("label", one.get("action")), one["propensity"]) for one in logged] == played
    assert replay(served.service.store).decisions == ROUNDS


@pytest.mark.parametrize("algorithm", [None, "frugal-gaptron", "squarecb"])
def test_labels_are_drawn_uniformly_before_the_first_outcome(served: Served, algorithm: str | None) -> None:
    more = {"settings": {"norm": 2.0}} if algorithm == "squarecb" else {}
    made = served.call("POST", "/v1/models", {**SPEC, "algorithm": algorithm, **more})
    assert made.status_code == 201, made.text
    played = decide(served)
    check_uniform(played)
    check_replay(served, played)


def test_actions_are_drawn_uniformly_before_the_first_outcome(served: Served) -> None:
    assert served.call("POST", "/v1/models", {"name": "cold", "actions": True}).status_code == 201
    played = []
    for t in range(ROUNDS):
        request: dict[str, Any] = {"event_id": f"e{t}", "context": {"hour": t % 24}, "actions": ACTIONS}
        made = served.call("POST", "/v1/models/cold/decisions", request).json()
        played.append((made["action"], made["propensity"]))
    check_uniform(played)
    check_replay(served, played)


def test_a_replica_decides_the_same(postgres: str, served: Served) -> None:
    served.call("POST", "/v1/models", SPEC)
    place = with_schema(postgres, f"test_{uuid.uuid4().hex}")
    leader = Served(place, with_replicas=True)
    leader.call("POST", "/v1/models", SPEC)
    leader.tick()
    replica = Served(place, replica=True)
    played = decide(replica)
    leader.tick()
    assert played == decide(served)
    check_replay(leader, played)
    replica.close()
    leader.close()
