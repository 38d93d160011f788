"""The garbage collector does not track the decisions in the cache.

It did once: 20,000 cached decisions paused every request for 200 ms, every few seconds.
"""

import gc
from pathlib import Path
from typing import Any

import pytest

from tests.serve.served import Served

MANY = 300


def slow(name: str, *values: Any) -> Any:
    """A case that takes some ten seconds."""
    return pytest.param(*values, id=name, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("spec", "request_"),
    [
        pytest.param({}, {"x": [0.3, 1.0]}, id="dense"),
        slow("sparse", {"features": 20}, {"x": {"indices": [3, 7], "values": [0.5, -0.5]}}),
        slow("waiting", {"feedback_timeout": 60.0, "on_timeout": "wrong"}, {"x": [0.3, 1.0]}),
        slow("shadow", {"mode": "shadow"}, {"x": [0.3, 1.0], "played": {"label": "mail", "propensity": 0.5}}),
    ],
)
def test_cached_decisions_are_not_tracked(tmp_path: Path, spec: dict[str, Any], request_: dict[str, Any]) -> None:
    served = Served(str(tmp_path / "store"))
    served.make(**spec)

    def walked_after(turn: int) -> int:
        for t in range(MANY):
            assert served.call(
                "POST", "/v1/models/triage/decisions", {"event_id": f"{turn}-{t}", **request_}
            ).is_success
            assert served.send_outcome(f"{turn}-{t}", correct=t % 3 == 0).is_success
        gc.collect()
        return len(gc.get_objects())

    first = walked_after(0)
    second = walked_after(1)
    assert len(served.service.coordinator._cache) == 2 * MANY
    # SQLite's module keeps up to 200 dead references to cursors; what is remembered would be several objects each.
    assert second - first < MANY, f"{second - first} objects more after {MANY} decisions and outcomes"
    served.close()
