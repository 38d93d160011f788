"""What every store must do, asked of each."""

from collections.abc import Iterator
from typing import Any

import pytest

from gaptron.errors import GaptronError
from gaptron.serve.entries import Row
from gaptron.serve.keys import Gate, new_key
from gaptron.serve.problems import RefusedError
from gaptron.serve.store import Snapshot, Store, open_store
from gaptron.serve.store.migrations import steps


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    opened = open_store(place)
    assert opened.lead()
    yield opened
    opened.close()


def decision(seq: int, event: str, model: str = "m") -> Row:
    return Row(seq, model, "decision", event, 10 * seq, f'{{"é":{seq}}}')


def outcome(seq: int, event: str, model: str = "m") -> Row:
    return Row(seq, model, "outcome", event, 10 * seq, "{}")


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.last() == (0, 0)
    assert list(store.read()) == [] and store.models() == [] and store.snapshots() == [] and store.keys() == []
    assert store.find("m", ["a"]) == {}


def test_rows_come_back_in_order_each_outcome_beside_its_decision(store: Store) -> None:
    rows = [Row(1, "m", "model", None, 5, "{}"), decision(2, "a"), decision(3, "a", "other"), outcome(4, "a")]
    store.append(rows[:2])
    store.append(rows[2:])
    assert list(store.read()) == [(rows[0], None), (rows[1], None), (rows[2], None), (rows[3], rows[1])]
    assert [row.seq for row, _ in store.read(2)] == [3, 4]
    assert [row.seq for row, _ in store.read(0, "m")] == [1, 2, 4]
    assert [row.seq for row, _ in store.read(1, "m", 3)] == [2]
    assert store.last() == (4, 40)
    assert store.models() == [("m", 1)]


def test_decisions_are_found_by_their_event(store: Store) -> None:
    store.append([decision(1, "a"), decision(2, "b"), outcome(3, "b"), decision(4, "a", "other")])
    found = store.find("m", ["a", "b", "c"])
    assert found == {"a": (decision(1, "a"), None), "b": (decision(2, "b"), outcome(3, "b"))}


def test_many_rows_fit_into_one_commit(store: Store) -> None:
    store.append([decision(seq, f"e{seq}") for seq in range(1, 2502)])
    assert store.last()[0] == 2501
    assert len(store.find("m", [f"e{seq}" for seq in range(2501)])) == 2500


@pytest.mark.parametrize("again", [decision(3, "a"), Row(2, "m", "tick", None, 1, "{}")])
def test_a_commit_is_whole_or_not_at_all(store: Store, again: Row) -> None:
    """An event decided twice, a number given twice."""
    store.append([decision(1, "a"), decision(2, "b")])
    with pytest.raises(Exception, match=r"(?i)unique"):
        store.append([decision(9, "z"), again], [Snapshot("m", 2, b"x")])
    assert store.last()[0] == 2 and store.snapshots() == []
    store.append([decision(3, "c")])
    assert store.last()[0] == 3


def test_the_two_newest_snapshots_of_a_model_are_kept(store: Store) -> None:
    for seq in (1, 2, 3):
        store.append([], [Snapshot("m", seq, bytes([0, seq])), Snapshot("other", 7, b"o")])
    assert store.snapshots() == [("m", 2), ("m", 3), ("other", 7)]
    assert store.snapshot("m", 3) == b"\0\3"


def test_all_of_it_is_there_after_it_was_closed(store: Store, place: str) -> None:
    key, _ = new_key(["read"], None)
    store.append([decision(1, "a")], [Snapshot("m", 1, b"x")])
    store.add_key(key)
    store.close()
    again = open_store(place)
    assert again.lead()
    assert [row.seq for row, _ in again.read()] == [1] and again.snapshots() == [("m", 1)] and again.keys() == [key]
    again.append([decision(2, "b")])
    again.close()


def test_only_one_leads(store: Store, place: str) -> None:
    second = open_store(place)
    try:
        assert second.lead() is False  # PostgreSQL: it may wait
    except GaptronError as problem:
        assert "another process" in str(problem)  # SQLite: it is told
    with pytest.raises(GaptronError):
        second.append([decision(1, "a")])
    assert store.last() == (0, 0)
    second.close()
    store.beat()
    store.append([decision(1, "a")])


def test_a_store_of_a_newer_version_is_refused(store: Store, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store.close()
    monkeypatch.setattr(f"{type(store).__module__}.steps", lambda dialect: [])
    again = open_store(place)
    with pytest.raises(GaptronError, match="newer gaptron"):
        again.lead()
    again.close()


def test_a_step_that_is_new_is_applied_to_what_is_there(store: Store, place: str, monkeypatch: Any) -> None:
    """From the first version on: rows written before a step are there behind it."""
    store.append([decision(1, "a")])
    store.close()
    more = lambda dialect: [*steps(dialect), (len(steps(dialect)) + 1, "alter table log add column extra text")]  # noqa: E731
    monkeypatch.setattr(f"{type(store).__module__}.steps", more)
    again = open_store(place)
    assert again.lead()
    assert [row for row, _ in again.read()] == [decision(1, "a")]
    again.append([decision(2, "b")])
    again.close()


def test_a_store_of_the_first_version_is_brought_up_to_date(place: str, monkeypatch: Any) -> None:
    old = open_store(place)
    with monkeypatch.context() as first:
        first.setattr(f"{type(old).__module__}.steps", lambda dialect: steps(dialect)[:1])
        assert old.lead()
        old.append([decision(1, "a")], [Snapshot("m", 1, b"kept")])
        old.close()
    now = open_store(place)
    assert now.lead()
    assert [row for row, _ in now.read()] == [decision(1, "a")] and now.snapshot("m", 1) == b"kept"
    now.append([decision(2, "b")])
    now.close()


# --- keys -----------------------------------------------------------------------------------------------------------


def refusal(gate: Gate, *request: Any) -> int | None:
    try:
        gate.check(*request)
    except RefusedError as refused:
        return refused.status
    return None


def test_keys_open_what_their_roles_say_until_they_are_revoked(store: Store) -> None:
    assert refusal(Gate(store), None, "admin", None) is None, "no keys: open"
    key, text = new_key(["decide", "answer"], "triage")
    store.add_key(key)
    assert text.split("_")[2] not in repr(store.keys()), "only the hash is kept"
    gate = Gate(store)
    assert refusal(gate, f"Bearer {text}", "decide", "triage") is None
    assert refusal(gate, f"Bearer {text}", "decide", "other") == 403
    assert refusal(gate, f"Bearer {text}", "admin", "triage") == 403
    for wrong in (None, "", "Bearer", f"Basic {text}", f"Bearer {text}x", f"Bearer gap_{key.id}_", "Bearer gap_x_y"):
        assert refusal(gate, wrong, "decide", "triage") == 401
    assert store.revoke_key(key.id) and not store.revoke_key("nobody")
    gate.reload()
    assert refusal(gate, f"Bearer {text}", "decide", "triage") == 401


def test_a_key_may_ask_so_often_and_no_more(store: Store) -> None:
    key, text = new_key(["read"], None)
    store.add_key(key)
    gate = Gate(store, rate=3.0)
    refusals = [refusal(gate, f"Bearer {text}", "read", None) for _ in range(50)]
    assert refusals[:3] == [None, None, None] and 429 in refusals
