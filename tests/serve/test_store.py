"""The contract of every store."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from gaptron.errors import GaptronError
from gaptron.serve.events import Row
from gaptron.serve.keys import KeyRing, new_key
from gaptron.serve.problems import RefusedError
from gaptron.serve.store import Lifetime, Snapshot, Store, living, open_store
from gaptron.serve.store.migrations import migrations
from tests.serve.served import secret_of


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    opened = open_store(place)
    assert opened.acquire_lease()
    yield opened
    opened.close()


def acquire(store: Store) -> None:
    """After another one was closed: PostgreSQL may need a moment to end its session."""
    end = time.monotonic() + 20
    while not store.acquire_lease():
        assert time.monotonic() < end
        time.sleep(0.05)


def decision(seq: int, event: str, model: str = "m") -> Row:
    return Row(seq, model, "decided", event, 10 * seq, f'{{"é":{seq}}}')


def outcome(seq: int, event: str, model: str = "m") -> Row:
    return Row(seq, model, "outcome", event, 10 * seq, "{}")


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.last() == (0, 0)
    assert list(store.read()) == [] and store.lifetimes() == [] and store.snapshots() == [] and store.keys() == []
    assert store.find("m", ["a"]) == {}


def test_rows_come_back_in_order_each_outcome_beside_its_decision(store: Store) -> None:
    rows = [Row(1, "m", "created", None, 5, "{}"), decision(2, "a"), decision(3, "a", "other"), outcome(4, "a")]
    store.append(rows[:2])
    store.append(rows[2:])
    assert list(store.read()) == [(rows[0], None), (rows[1], None), (rows[2], None), (rows[3], rows[1])]
    assert [row.seq for row, _ in store.read(2)] == [3, 4]
    assert [row.seq for row, _ in store.read(0, "m")] == [1, 2, 4]
    assert [row.seq for row, _ in store.read(1, "m", 3)] == [2]
    assert store.last() == (4, 40)
    assert store.lifetimes() == [Lifetime("m", 1)]


def test_decisions_are_found_by_their_event(store: Store) -> None:
    store.append([decision(1, "a"), decision(2, "b"), outcome(3, "b"), decision(4, "a", "other")])
    found = store.find("m", ["a", "b", "c"])
    assert found == {"a": (decision(1, "a"), None), "b": (decision(2, "b"), outcome(3, "b"))}


def test_many_rows_fit_into_one_commit(store: Store) -> None:
    store.append([decision(seq, f"e{seq}") for seq in range(1, 2502)])
    assert store.last()[0] == 2501
    assert len(store.find("m", [f"e{seq}" for seq in range(2501)])) == 2500


@pytest.mark.parametrize("again", [decision(3, "a"), Row(2, "m", "timed-out", None, 1, "{}")])
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


def test_a_tombstone_ends_a_lifetime_and_its_snapshots(store: Store) -> None:
    created = [Row(seq, "m", "created", None, 5, "{}") for seq in (1, 4)]
    store.append([created[0], decision(2, "a")], [Snapshot("m", 2, b"x"), Snapshot("other", 2, b"o")])
    store.append([Row(3, "m", "deleted", None, 5, "{}"), created[1]], [Snapshot("m", 2, b"y"), Snapshot("m", 4, b"z")])
    assert store.lifetimes() == [Lifetime("m", 1, 3), Lifetime("m", 4)] and living(store) == {"m": 4}
    assert store.snapshots() == [("other", 2), ("m", 4)]


def test_all_of_it_is_there_after_it_was_closed(store: Store, place: str) -> None:
    key, _ = new_key(["read"], None)
    store.append([decision(1, "a")], [Snapshot("m", 1, b"x")])
    store.add_key(key)
    store.close()
    again = open_store(place)
    acquire(again)
    assert [row.seq for row, _ in again.read()] == [1] and again.snapshots() == [("m", 1)] and again.keys() == [key]
    again.append([decision(2, "b")])
    again.close()


def test_only_one_process_holds_the_lease(store: Store, place: str) -> None:
    second = open_store(place)
    try:
        assert second.acquire_lease() is False  # PostgreSQL: it may wait
    except GaptronError as problem:
        assert "another process" in str(problem)  # SQLite: it says so
    with pytest.raises(GaptronError):
        second.append([decision(1, "a")])
    assert store.last() == (0, 0)
    second.close()
    store.append([])  # the first one still holds it
    store.append([decision(1, "a")])


def test_a_store_of_a_newer_version_is_refused(store: Store, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store.close()
    monkeypatch.setattr(f"{type(store).__module__}.migrations", lambda dialect: [])
    again = open_store(place)
    with pytest.raises(GaptronError, match="newer version of gaptron"):
        acquire(again)
    again.close()


def test_a_new_migration_is_applied_to_an_existing_store(store: Store, place: str, monkeypatch: Any) -> None:
    """Rows written before a migration are there afterwards."""
    store.append([decision(1, "a")])
    store.close()

    def more(dialect: str) -> list[tuple[int, str]]:
        known = migrations(dialect)
        return [*known, (len(known) + 1, "alter table log add column extra text")]

    monkeypatch.setattr(f"{type(store).__module__}.migrations", more)
    again = open_store(place)
    acquire(again)
    assert [row for row, _ in again.read()] == [decision(1, "a")]
    again.append([decision(2, "b")])
    again.close()


# --- keys -----------------------------------------------------------------------------------------------------------


def refusal(keys: KeyRing, *request: Any) -> int | None:
    try:
        key = keys.check(*request)
        if key is not None:
            keys.check_rate(key)
    except RefusedError as refused:
        return refused.status
    return None


def test_keys_open_what_their_roles_say_until_they_are_revoked(store: Store) -> None:
    assert refusal(KeyRing(store), None, "admin", None) is None, "no keys: open"
    key, text = new_key(["decide", "feedback"], "triage")
    store.add_key(key)
    assert secret_of(text) not in repr(store.keys()), "only the hash is kept"
    keys = KeyRing(store)
    assert refusal(keys, f"Bearer {text}", "decide", "triage") is None
    assert refusal(keys, f"Bearer {text}", "decide", "other") == 403
    assert refusal(keys, f"Bearer {text}", "admin", "triage") == 403
    for wrong in (None, "", "Bearer", f"Basic {text}", f"Bearer {text}x", f"Bearer gap_{key.id}_", "Bearer gap_x_y"):
        assert refusal(keys, wrong, "decide", "triage") == 401
    assert store.revoke_key(key.id) and not store.revoke_key("nobody")
    keys.reload()
    assert refusal(keys, f"Bearer {text}", "decide", "triage") == 401


def test_the_rate_of_a_key_is_limited(store: Store) -> None:
    key, text = new_key(["read"], None)
    store.add_key(key)
    keys = KeyRing(store, rate=3.0)
    refusals = [refusal(keys, f"Bearer {text}", "read", None) for _ in range(50)]
    assert refusals[:3] == [None, None, None] and 429 in refusals
