"""Azure Personalizer's own clients with a real service: only their endpoint and their key are changed."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import gaptron
from tests.serve.news import NEWS, likes, visits
from tests.serve.process import PATIENCE, Process, running

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("personalizer clients")]  # it starts a process
old = pytest.importorskip(
    "azure.cognitiveservices.personalizer", reason="pip install azure-cognitiveservices-personalizer"
)
new = pytest.importorskip("azure.ai.personalizer", reason="pip install azure-ai-personalizer")
ACTIONS = [
    {"id": "sport", "features": [{"topic": "sport", "age": {"hours": 3}}]},
    {"id": "news", "features": [{"topic": "news"}]},
    {"id": "garden", "features": []},
]
CONTEXT = [{"user": {"segment": "student"}}, {"hour": 14}]
WAITS = {"name": "waits", "feedback_timeout": 5.0, "on_timeout": "wrong"}
SETTINGS = {"name": "settings", "feedback_timeout": 600.0}
KEY_HEADER = "Ocp-Apim-Subscription-Key"


class Served:
    """A service with keys: one for the model `news`, one for all models."""

    def __init__(self, process: Process) -> None:
        self.url = process.url
        admin = self._post("keys", {"roles": ["admin", "read"]}, "none")["key"]
        self.admin = {"Authorization": f"Bearer {admin}"}
        for model in (
            NEWS,
            NEWS | {"name": "native", "mode": "shadow"},
            NEWS | {"name": "learns"},
            NEWS | WAITS,
            NEWS | SETTINGS,
        ):
            self._post("models", model, admin)
        application = {"roles": ["decide", "feedback"]}
        self.key = self._post("keys", application | {"model": "news"}, admin)["key"]
        self.any_key = self._post("keys", application, admin)["key"]

    def _post(self, what: str, body: Any, key: str) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        response = httpx.post(f"{self.url}/v1/{what}", json=body, headers=headers, timeout=PATIENCE)
        assert response.status_code == 201, response.text
        return response.json()

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.url}/v1/models/{path}", headers=self.admin).json()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("personalizer")
    with running(str(folder / "store"), folder) as process:
        process.wait_ready()
        yield Served(process)


class Old:
    """azure-cognitiveservices-personalizer, as its users call it."""

    version = "old"

    def __init__(self, endpoint: str, key: str) -> None:
        from msrest.authentication import CognitiveServicesCredentials  # noqa: PLC0415

        self.client = old.PersonalizerClient(endpoint, CognitiveServicesCredentials(key))

    def rank(self, actions: Any, **more: Any) -> Any:
        rankable = [old.models.RankableAction(**one) for one in actions]
        response = self.client.rank(rank_request=old.models.RankRequest(actions=rankable, **more))
        ranking = {one.id: one.probability for one in response.ranking}
        return response.event_id, response.reward_action_id, ranking

    def reward(self, event: str, value: float) -> None:
        assert self.client.events.reward(event_id=event, value=value) is None

    def activate(self, event: str) -> None:
        assert self.client.events.activate(event_id=event) is None

    def refused(self, call: Callable[[], Any]) -> tuple[int, str]:
        """The status, and what the client shows of the error."""
        from msrest.exceptions import HttpOperationError  # noqa: PLC0415

        with pytest.raises(HttpOperationError) as caught:
            call()
        error = caught.value
        shown = error.error.error.message if isinstance(error, old.models.ErrorResponseException) else ""
        return error.response.status_code, shown


class New:
    """azure-ai-personalizer, as its users call it."""

    version = "new"

    def __init__(self, endpoint: str, key: str) -> None:
        from azure.core.credentials import AzureKeyCredential  # noqa: PLC0415

        self.client = new.PersonalizerClient(endpoint, AzureKeyCredential(key))

    def rank(self, actions: Any, **more: Any) -> Any:
        names = {
            "context_features": "contextFeatures",
            "event_id": "eventId",
            "excluded_actions": "excludedActions",
            "defer_activation": "deferActivation",
        }
        response = self.client.rank({"actions": actions, **{names[one]: more[one] for one in more}})
        ranking = {one["id"]: one["probability"] for one in response["ranking"]}
        return response["eventId"], response["rewardActionId"], ranking

    def reward(self, event: str, value: float) -> None:
        self.client.reward(event, {"value": value})

    def activate(self, event: str) -> None:
        self.client.activate(event)

    def refused(self, call: Callable[[], Any]) -> tuple[int, str]:
        """The status, and what the client shows of the error."""
        from azure.core import exceptions  # noqa: PLC0415

        expected = {401: exceptions.ClientAuthenticationError, 404: exceptions.ResourceNotFoundError}
        with pytest.raises(exceptions.HttpResponseError) as caught:
            call()
        error = caught.value
        assert isinstance(error, expected.get(error.status_code or 0, exceptions.HttpResponseError))
        assert error.error is not None and error.error.code
        return error.status_code or 0, str(error.error.message)


@pytest.fixture(params=[Old, New], ids=["old", "new"])
def client(request: pytest.FixtureRequest, served: Served) -> Any:
    return request.param(served.url, served.key)


def of_model(client: Any, served: Served, model: str, key: str | None = None) -> Any:
    return type(client)(f"{served.url}/m/{model}", served.any_key if key is None else key)


def test_rank_and_reward(client: Any, served: Served) -> None:
    event = f"{client.version}-1"
    given = {"context_features": CONTEXT, "event_id": event}
    same, action, ranking = client.rank(ACTIONS, **given)
    assert same == event and action in ranking and set(ranking) == {"sport", "news", "garden"}
    assert sum(ranking.values()) == pytest.approx(1.0, abs=1e-12) and min(ranking.values()) > 0.0
    assert client.rank(ACTIONS, **given) == (event, action, ranking), "a repeated request"
    client.reward(event, 0.5)
    client.reward(event, 1.0)
    shown = served.get(f"news/decisions/{event}")
    assert (shown["outcome"], shown["action"]) == ({"reward": 0.5}, action), "the earliest reward counts"
    generated, *_ = client.rank(ACTIONS)
    assert generated and generated != event
    client.reward(generated, 1)


def test_odd_event_ids(client: Any, served: Served) -> None:
    odd = ["q/ 1", "100% a?b#c", "ä/日本", "x:y_z"]
    for event in odd:
        assert client.rank(ACTIONS, event_id=client.version + event)[0] == client.version + event
    for at, event in enumerate(odd):
        client.reward(client.version + event, at / 8)
    assert served.get(f"news/decisions/{client.version}q:2f:201")["outcome"] == {"reward": 0.0}
    assert served.get(f"news/decisions/{client.version}x:3ay_z")["outcome"] == {"reward": 0.375}


def test_excluded_actions(client: Any) -> None:
    _, action, ranking = client.rank(ACTIONS, excluded_actions=["sport"])
    first, second, *_ = ranking
    assert first == "sport" and ranking["sport"] == 0.0
    assert action == second and ranking["news"] + ranking["garden"] == pytest.approx(1.0, abs=1e-12)


def test_errors_are_those_that_the_clients_know(client: Any, served: Served) -> None:
    status, message = client.refused(lambda: type(client)(served.url, "wrong").rank(ACTIONS))
    assert status == 401 and KEY_HEADER in message
    status, message = client.refused(lambda: client.rank([ACTIONS[0], ACTIONS[0]]))
    assert status == 400 and "two actions have the id 'sport'" in message
    client.rank(ACTIONS, event_id=f"{client.version}-twice")
    status, message = client.refused(lambda: client.rank(ACTIONS[:2], event_id=f"{client.version}-twice"))
    assert status == 409 and "different request" in message
    status, message = client.refused(lambda: of_model(client, served, "other").rank(ACTIONS))
    assert status == 404 and "'other'" in message
    status, message = client.refused(lambda: type(client)(served.url, served.any_key).rank(ACTIONS))
    assert status == 404 and "exactly one" in message
    status, _ = client.refused(lambda: of_model(client, served, "native", served.key).rank(ACTIONS))
    assert status == 403
    for call in (lambda: client.reward("nobody", 1.0), lambda: client.activate("nobody")):
        assert client.refused(call)[0] == 404
    assert client.refused(lambda: client.reward(f"{client.version}-twice", -1.0))[0] == 400
    assert "outcome" not in served.get(f"news/decisions/{client.version}-twice")


def test_deferred_and_late(client: Any, served: Served) -> None:
    """With a wait time of 5 seconds: what is learned when it is over."""
    waits, before = of_model(client, served, "waits"), served.get("waits")["learned"]
    names = [f"{client.version}-{name}" for name in ("shown", "rewarded", "never", "plain")]
    for name in names:
        waits.rank(ACTIONS, event_id=name, defer_activation=not name.endswith("plain"))
    waits.activate(names[0])
    waits.reward(names[1], 1.0)
    end = httpx.Timeout(PATIENCE)
    with httpx.stream("GET", f"{served.url}/v1/models/waits/events", headers=served.admin, timeout=end) as stream:
        for _ in stream.iter_lines():  # one message a second
            if served.get("waits")["learned"] == before + 3:
                break
    for name in names[2:]:
        waits.reward(name, 1.0)
    assert served.get("waits")["learned"] == before + 3
    assert served.get(f"waits/decisions/{names[3]}")["outcome"] == {"reward": 1.0}, "late, in the log only"


def test_multi_slot(served: Served) -> None:
    from azure.core.credentials import AzureKeyCredential  # noqa: PLC0415

    slots = [{"id": "top", "baselineAction": "sport"}, {"id": "side", "baselineAction": "news"}]
    body = {"actions": ACTIONS, "slots": slots, "contextFeatures": CONTEXT, "eventId": "q/ page"}
    with new.PersonalizerClient(served.url, AzureKeyCredential(served.key)) as client:
        made = client.rank_multi_slot(body)
        assert made["eventId"] == "q/ page" and [one["id"] for one in made["slots"]] == ["top", "side"]
        assert len({one["rewardActionId"] for one in made["slots"]}) == 2
        assert client.rank_multi_slot(body) == made
        client.reward_multi_slot("q/ page", {"reward": [{"slotId": "side", "value": 0.5}]})
    assert served.get("news/decisions/q:2f:20page:.side")["outcome"] == {"reward": 0.5}
    assert "outcome" not in served.get("news/decisions/q:2f:20page:.top")


def test_the_configuration(served: Served) -> None:
    from azure.core.credentials import AzureKeyCredential  # noqa: PLC0415
    from azure.core.exceptions import HttpResponseError  # noqa: PLC0415

    key = AzureKeyCredential(served.admin["Authorization"].removeprefix("Bearer "))
    with new.PersonalizerAdministrationClient(f"{served.url}/m/settings", key) as client:
        shown = client.get_service_configuration()
        assert (shown["rewardWaitTime"], shown["rewardAggregation"]) == ("PT600S", "earliest")
        changed = client.update_service_configuration(shown | {"rewardWaitTime": "PT5M"})
        assert changed == shown | {"rewardWaitTime": "PT300S"} == client.get_service_configuration()
        with pytest.raises(HttpResponseError, match="rewardAggregation"):
            client.update_service_configuration(shown | {"rewardAggregation": "sum"})


def test_it_learns_as_the_native_interface(served: Served, tmp_path: Path) -> None:
    """1,000 ranks and rewards: the share of the best rises, and equal events give equal weights."""
    clients = [kind(f"{served.url}/m/learns", served.any_key) for kind in (Old, New)]
    possible, decisions, outcomes = [], [], []
    for t, visit in enumerate(visits(1000, seed=3)):
        actions = [{"id": one["id"], "features": [one["features"]]} for one in visit["actions"]]
        given = {"context_features": [visit["context"]], "event_id": visit["event_id"]}
        event, action, ranking = clients[t % 2].rank(actions, **given)
        value = float(likes(visit, action))
        clients[t % 2].reward(event, value)
        possible.append(any(likes(visit, one["id"]) for one in visit["actions"]))
        decisions.append(visit | {"played": {"action": action, "propensity": ranking[action]}})
        outcomes.append({"event_id": event, "reward": value})
    parts = ((0, 200), (200, 600), (600, 1000))
    shares = [sum(one["reward"] for one in outcomes[a:b]) / sum(possible[a:b]) for a, b in parts]
    print(f"share of the best: {shares}")
    assert shares[0] < shares[2] and shares[2] > 0.6
    with httpx.Client(base_url=f"{served.url}/v1/models/native/", timeout=PATIENCE) as native:
        native.headers["Authorization"] = f"Bearer {served.any_key}"
        for a in (0, 500):  # the native model is in shadow mode: it learns from what the other one played
            native.post("decisions/batch", json={"decisions": decisions[a : a + 500]}).raise_for_status()
            native.post("outcomes", json={"outcomes": outcomes[a : a + 500]}).raise_for_status()
    learners = []
    for name in ("learns", "native"):
        assert served.get(name)["learned"] == 1000
        path = tmp_path / name
        path.write_bytes(httpx.get(f"{served.url}/v1/models/{name}/snapshot", headers=served.admin).content)
        learners.append(gaptron.Learner.load(path))
    assert np.abs(learners[0].weights).sum() > 0.0
    assert np.array_equal(learners[0].weights, learners[1].weights)


def test_the_javascript_of_the_documentation_runs(served: Served, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js 18 or later, as the command node")
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-personalizer.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```javascript\n(.*?)^```", page, re.M | re.S)
    (tmp_path / "example.mjs").write_text(script, encoding="utf-8")
    settings = {"PERSONALIZER_ENDPOINT": served.url, "PERSONALIZER_KEY": served.key}
    done = subprocess.run(
        [node, "example.mjs"], cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    event, action = done.stdout.split()
    shown = served.get(f"news/decisions/{event}")
    assert (shown["action"], shown["outcome"]) == (action, {"reward": 1.0})
