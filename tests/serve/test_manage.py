"""Managing models: created once however often it is asked for, deleted, with labels retired and renamed for display."""

import asyncio
from typing import Any

from gaptron.serve.replay import replay
from tests.serve.served import TRIAGE, Served
from tests.serve.test_api import problem

SPEC = {name: value for name, value in TRIAGE.items() if name != "name"}


def put(served: Served, name: str = "orders", **more: Any) -> Any:
    return served.call("PUT", f"/v1/models/{name}", {**SPEC, **more})


# --- created once ---------------------------------------------------------------------------------------------------


def test_put_creates_a_model_once(anywhere: Served) -> None:
    first, again = put(anywhere), put(anywhere, name="orders")
    assert (first.status_code, again.status_code) == (201, 200) and first.json() == again.json()
    assert anywhere.decide("e0", model="orders").status_code == 201
    anywhere.call("PATCH", "/v1/models/orders", {"add_labels": ["fax"], "epsilon": 0.1})
    kept = put(anywhere).json()
    assert kept["labels"][-1] == "fax" and kept["epsilon"] == 0.1, "as it was changed"
    anywhere.crash()
    anywhere.open()
    assert put(anywhere).json() == kept
    assert replay(anywhere.service.store).decisions == 1
    kinds = [row.kind for row, _ in anywhere.service.store.read(model="orders")]
    assert kinds == ["created", "decided", "changed"]


def test_put_refuses_another_specification_and_says_where_it_differs(served: Served) -> None:
    put(served)
    refused = put(served, epsilon=0.3, mode="shadow")
    detail = problem(refused, 409, "already-exists")
    assert "epsilon, mode" in detail and "PATCH" in detail
    body = {**SPEC, "name": "others"}
    assert "leave out name" in problem(served.call("PUT", "/v1/models/orders", body), 422, "invalid")
    assert served.call("PUT", "/v1/models/orders", {**SPEC, "name": "orders"}).status_code == 200
    assert "model in the path" in problem(served.call("PUT", "/v1/models/Bad%20Name", SPEC), 422, "invalid")
    problem(put(served, "other", labels=["one"]), 422, "invalid")
    assert list(served.service.coordinator.models) == ["triage", "orders"]


def test_the_same_put_many_times_at_once_is_one_model(served: Served) -> None:
    async def many() -> list[Any]:
        return await asyncio.gather(*[served.client.put("/v1/models/orders", json=SPEC) for _ in range(5)])

    assert sorted(one.status_code for one in served.run(many())) == [200, 200, 200, 200, 201]
    assert [row.kind for row, _ in served.service.store.read(model="orders")] == ["created"]


def test_put_of_actions_and_of_defaults_is_idempotent_too(served: Served) -> None:
    for body in ({"actions": True}, {"labels": ["mail", "chat"], "mode": "apprentice"}):
        name = "news" if "actions" in body else "plain"
        statuses = [served.call("PUT", f"/v1/models/{name}", body).status_code for _ in range(2)]
        assert statuses == [201, 200]
