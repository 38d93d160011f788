"""The limit of requests per key."""

from types import SimpleNamespace
from typing import Any

import pytest

from gaptron.serve import keys
from gaptron.serve.keys import KeyRing, new_key
from gaptron.serve.problems import RefusedError


class Keys:
    """A store that holds keys only."""

    def __init__(self, *held: keys.Key) -> None:
        self.held = held

    def keys(self) -> list[keys.Key]:
        return list(self.held)


@pytest.mark.parametrize(
    ("roles", "model", "about", "words"),
    [
        (["decide"], "triage", "news", "this key is only valid for model 'triage'; the request is about model 'news'"),
        (["admin"], "triage", None, "this key is only valid for model 'triage'; the request is about all models"),
        (["read"], "triage", "triage", "this needs the role decide; the key has: read"),
        (["read", "feedback"], None, "news", "this needs the role decide; the key has: feedback read"),
    ],
)
def test_a_refused_key_says_what_it_is_for(roles: list[str], model: str | None, about: str | None, words: str) -> None:
    key, text = new_key(roles, model)
    store: Any = Keys(key)
    with pytest.raises(RefusedError) as refused:
        KeyRing(store).check(f"Bearer {text}", "decide", about)
    assert refused.value.status == 403 and refused.value.detail == words


def test_refused_requests_take_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """At two requests a second: two at once, then one every half second, however many were refused in between."""
    key, other = (new_key(["decide"], None)[0] for _ in range(2))
    store: Any = Keys(key, other)
    ring, now = KeyRing(store, rate=2.0), 100.0
    monkeypatch.setattr("gaptron.serve.keys.time", SimpleNamespace(monotonic=lambda: now))

    def allowed(one: keys.Key, times: int) -> int:
        count = 0
        for _ in range(times):
            try:
                ring.check_rate(one)
                count += 1
            except RefusedError as refusal:
                assert refusal.status == 429
        return count

    assert allowed(key, 10) == 2 and allowed(other, 1) == 1
    for _ in range(4):
        now += 0.25
        assert allowed(key, 10) == (1 if now % 0.5 == 0 else 0)
    now += 60.0
    assert allowed(key, 10) == 2
