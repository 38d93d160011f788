"""`gaptron import`: logs and tables teach a model of a store, or of a running service."""

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gaptron.cli import app
from gaptron.errors import GaptronError
from gaptron.offpolicy import DamagedLogWarning
from gaptron.serve.replay import load_models, replay
from gaptron.serve.store import open_store
from tests.serve.news import choose, likes, make_news, visits
from tests.serve.process import running
from tests.serve.served import Served

RUNNER = CliRunner()
HEADER = {"format": "gaptron-log", "version": 1, "classes": ["mail", "chat", "phone"], "n_features": 2}


def run(*arguments: Any) -> str:
    """What the command prints, or its error."""
    result = RUNNER.invoke(app, ["import", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, GaptronError):
        raise result.exception
    return result.stdout + ("" if result.exception is None else f"gaptron: {result.exception}\n")


def made(place: str, **spec: Any) -> str:
    """A store with one model, that no service uses."""
    served = Served(place)
    assert served.make(**spec).status_code == 201
    served.close()
    return place


def learned(place: str, name: str = "triage") -> Any:
    store = open_store(place)
    try:
        replay(store)
        return load_models(store)[name]
    finally:
        store.close()


def log_of(folder: Path, lines: list[dict[str, Any]], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def lines(count: int) -> list[dict[str, Any]]:
    return [HEADER] + [
        {"x": [0.3, 0.1 * (t % 7)], "label": "chat", "propensity": 0.5, "reward": t % 2} for t in range(count)
    ]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return made(str(tmp_path / "store"))


def test_a_log_of_labels_is_imported_once(place: str, tmp_path: Path) -> None:
    made(place)
    path = log_of(tmp_path, lines(1500))
    assert run(place, path, "--model", "triage") == "triage: 1,500 decisions imported.\n"
    assert run(place, path, "--model", "triage") == "triage: 0 decisions imported; 1,500 were known already.\n"
    model = learned(place)
    assert (model.version, model.tally.imported) == (1500, 1500)
    assert run(place, log_of(tmp_path, lines(1), "more.jsonl"), "--model", "triage", "--ids", "mine") == (
        "triage: 1 decision imported.\n"
    )


def test_lines_without_a_propensity_are_counted(store: str, tmp_path: Path) -> None:
    some = lines(5)
    del some[2]["propensity"], some[4]["propensity"]
    said = run(store, log_of(tmp_path, some), "--model", "triage")
    assert "line 3" in said and "line 5" in said and "propensity" in said and "--skip-damaged" in said
    assert learned(store).version == 0
    with pytest.warns(DamagedLogWarning, match="skipped line 3"):
        said = run(store, log_of(tmp_path, some), "--model", "triage", "--skip-damaged")
    assert said == "triage: 3 decisions imported.\n"


def test_the_exports_of_a_service_are_imported_into_another_model(store: str, tmp_path: Path) -> None:
    served = Served(store)
    for t in range(20):
        label = served.decide(f"e{t}", (0.3, 0.1 * t)).json()["label"]
        served.send_outcome(f"e{t}", correct=label == "chat")
    served.make(name="copy")
    served.make(name="words", features="auto", algorithm="frugal-gaptron", settings={})
    weights = served.model().adapter.learner.weights
    for form in ("jsonl", "dsjson"):
        path = tmp_path / f"log.{form}"
        path.write_bytes(served.call("GET", f"/v1/models/triage/log?format={form}").content)
    served.close()
    assert "20 decisions imported" in run(store, tmp_path / "log.dsjson", "--model", "copy")
    assert (learned(store, "copy").adapter.learner.weights == weights).all()
    assert "takes features by name" in run(store, tmp_path / "log.jsonl", "--model", "words")


def test_a_table_with_labels_is_imported_with_full_information(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("age,city,label\n31,Basel,chat\n45,,mail\n,Bern,phone\n22,Basel,chat\n", encoding="utf-8")
    bandit = made(str(tmp_path / "bandit"), features="auto", algorithm="frugal-gaptron", settings={})
    assert "4 of 4 decisions have no propensity, which bandit feedback needs" in run(bandit, path, "--model", "triage")
    full = made(str(tmp_path / "full"), features="auto", feedback="full", algorithm="advised-gaptron", settings={})
    assert run(full, path, "--model", "triage") == "triage: 4 decisions imported.\n"
    with sqlite3.connect(tmp_path / "full" / "gaptron.db") as database:
        bodies = [json.loads(body) for (body,) in database.execute("select body from log where kind = 'imported'")]
    assert [body["request"]["features"] for body in bodies] == [
        {"age": 31.0, "city": "Basel"},
        {"age": 45.0},
        {"city": "Bern"},
        {"age": 22.0, "city": "Basel"},
    ]
    assert [body["outcome"] for body in bodies] == [{"label": name} for name in ("chat", "mail", "phone", "chat")]
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("a,b,label\n0.1,0.2,chat\n0.3,0.4,mail\n", encoding="utf-8")
    plain = made(str(tmp_path / "plain"), feedback="full", algorithm="softmax", settings={"norm": 2.0})
    assert run(plain, numbers, "--model", "triage") == "triage: 2 decisions imported.\n"
    assert learned(plain).adapter.width == 2


@pytest.mark.parametrize("form", ["jsonl", "dsjson"])
def test_a_log_of_actions_is_imported(tmp_path: Path, form: str) -> None:
    served = Served(str(tmp_path / "store"))
    make_news(served)
    for visit in visits(30):
        action = choose(served, visit).json()["action"]
        served.send_outcome(visit["event_id"], "news", correct=likes(visit, action))
    path = tmp_path / f"log.{form}"
    path.write_bytes(served.call("GET", f"/v1/models/news/log?format={form}").content)
    version = served.model("news").version
    served.close()
    other = Served(str(tmp_path / "other"))
    make_news(other)
    other.close()
    assert run(tmp_path / "other", path, "--model", "news") == f"news: {version} decisions imported.\n"
    assert learned(str(tmp_path / "other"), "news").version == version
    assert "--label is for models with labels" in run(tmp_path / "other", path, "--model", "news", "--label", "x")


def test_a_log_of_personalizer_is_imported_with_the_features_that_rank_has(tmp_path: Path) -> None:
    context = [{"user": {"segment": "student"}}, {"hour": 14}]
    features = {"sport": [{"topic": "sport"}, {"age": {"hours": 3}}], "news": []}
    actions = [{"_tag": name, "i": {"constant": 1, "id": name}, "j": own} for name, own in features.items()]
    played = {"_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 1, "_labelIndex": 0, "a": [1, 2]}
    line = {**played, "EventId": "1", "c": {"FromUrl": context, "_multi": actions}, "p": [0.8, 0.2]}
    served = Served(str(tmp_path / "store"))
    make_news(served)
    rank = {"contextFeatures": context, "actions": [{"id": name, "features": own} for name, own in features.items()]}
    assert served.call("POST", "/personalizer/v1.0/rank", {**rank, "eventId": "rank"}).status_code == 201
    served.close()
    path = log_of(tmp_path, [line], "log.dsjson")
    assert run(tmp_path / "store", path, "--model", "news") == "news: 1 decision imported.\n"
    with contextlib.closing(sqlite3.connect(tmp_path / "store" / "gaptron.db")) as database:
        query = "select body from log where kind in ('decided', 'imported') order by seq"
        ranked, imported = (json.loads(body)["request"] for (body,) in database.execute(query))
    assert (ranked["context"], ranked["actions"]) == (imported["context"], imported["actions"])


def test_a_table_of_actions_is_imported(tmp_path: Path) -> None:
    rows = ["round,action,topic,propensity,reward"]
    for t in range(10):
        rows += [f"{t},a,sport,0.5,{t % 2}", f"{t},b,news,,"]
    path = tmp_path / "clicks.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    served = Served(str(tmp_path / "store"))
    make_news(served)
    served.close()
    assert run(tmp_path / "store", path, "--model", "news") == "news: 10 decisions imported.\n"


def test_what_cannot_be_imported_is_said_in_a_sentence(store: str, tmp_path: Path) -> None:
    path = log_of(tmp_path, lines(3))
    assert "there is no model 'other'" in run(store, path, "--model", "other")
    assert "contains no store" in run(tmp_path / "nowhere", path, "--model", "triage")
    assert "not found" in run(store, tmp_path / "nothing.jsonl", "--model", "triage")
    assert "standard input" in run(store, "-", "--model", "triage")
    assert "cannot be reached" in run("http://127.0.0.1:9", path, "--model", "triage")
    wrong = [{**HEADER, "classes": ["mail", "fax"]}, {"x": [0, 0], "label": "fax", "propensity": 0.5, "reward": 1}]
    assert "'fax'" in run(store, log_of(tmp_path, wrong, "fax.jsonl"), "--model", "triage")


def test_a_running_service_imports_and_is_named_where_its_store_is_given(tmp_path: Path) -> None:
    path = log_of(tmp_path, lines(50))
    place = made(str(tmp_path / "store"))
    with running(place, tmp_path) as server:
        server.wait_ready()
        assert "give the address of the service" in run(place, path, "--model", "triage")
        assert run(server.url, path, "--model", "triage") == "triage: 50 decisions imported.\n"
        assert run(server.url, path, "--model", "triage") == "triage: 0 decisions imported; 50 were known already.\n"
        server.stop()
    assert learned(place).version == 50
