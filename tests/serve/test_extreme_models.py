"""A model with settings that overflow is refused with 422."""

from typing import Any

import pytest

from tests.serve.served import Served


@pytest.mark.parametrize("algorithm", ["softmax", "gaptron", "aioli", "advised-gaptron", "epsilon-greedy"])
@pytest.mark.parametrize(
    "settings",
    [
        {"norm": 1e300},
        {"norm": 5e-324},
        {"norm": True},
        {"norm": "1"},
        {"norm": 1.0, "radius": 1e300},
        {"norm": 1.0, "horizon": 2**62},
        {"norm": 1.0, "horizon": 1.5},
        {"norm": 1.0, "eta": 1e308},
        {"norm": 1.0, "step": 5e-324},
        {"norm": 1.0, "scale": True},
    ],
    ids=str,
)
def test_creation_is_refused(served: Served, algorithm: str, settings: dict[str, Any]) -> None:
    labels = ["a", "b"]
    full = {} if algorithm == "epsilon-greedy" else {"feedback": "full"}
    response = served.make(name="extreme", labels=labels, algorithm=algorithm, settings=settings, **full)
    assert response.status_code == 422, response.text
    assert served.call("GET", "/v1/models/extreme").status_code == 404
