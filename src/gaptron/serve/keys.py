"""Who may do what. A key is shown once; the store has only its hash.

The secret is 256 random bits, so a plain SHA-256 is enough: nobody guesses it, and a slow hash would cost every
request.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from typing import get_args

from gaptron.errors import SettingError
from gaptron.serve.problems import RefusedError, invalid, unknown
from gaptron.serve.store import Key, Store
from gaptron.serve.words import Role, is_name

ROLES = get_args(Role)
LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")


def new_key(roles: Iterable[str], model: str | None) -> tuple[Key, str]:
    """A key, and its text for whoever will use it."""
    wanted = sorted(set(roles))
    if not wanted or not set(wanted) <= set(ROLES):
        raise SettingError(f"--role must be one or more of {', '.join(ROLES)}")
    if model is not None and not is_name(model):
        raise SettingError(f"--model {model!r} is no name of a model")
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return Key(id, _hash(secret), " ".join(wanted), model, False), f"gap_{id}_{secret}"


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


class Gate:
    """Lets requests through. While there are no keys, everybody on this machine may do everything."""

    def __init__(self, store: Store, rate: float | None = None) -> None:
        self._store, self._rate = store, rate
        self._keys: dict[str, Key] = {}
        self._tokens: dict[str, tuple[float, float]] = {}  # id → what is left, and when that was
        self.reload()

    def reload(self) -> None:
        """Read the keys again."""
        self._keys = {key.id: key for key in self._store.keys()}

    def check_first(self, roles: Iterable[str], model: str | None) -> None:
        """Refuse a first key that would lock everybody out, for from then on keys are asked for."""
        if self.open and ("admin" not in roles or model is not None):
            raise invalid("the first key must have the role admin, for all models: no other could make more")

    def check_revocable(self, id: str) -> Key:
        """The key of this id, unless it is not there or the last that may make others."""
        key = self._keys.get(id)
        if key is None:
            raise unknown(f"there is no key {id!r}")
        left = [one for one in self._keys.values() if one.id != id and not one.revoked and one.model is None]
        if not any("admin" in one.roles.split() for one in left):
            raise RefusedError(409, "last-key", "it is the last key that may make others: make another one first")
        return key

    def shown(self) -> list[Key]:
        """All of them."""
        return list(self._keys.values())

    @property
    def open(self) -> bool:
        """Are there no keys?"""
        return not self._keys

    def check(self, header: str | None, role: str, model: str | None) -> None:
        """Refuse a request that may not be made."""
        if self.open:
            return
        key = self._key(header)
        if key is None:
            raise RefusedError(401, "key", "say Authorization: Bearer gap_..., with a key made by `gaptron keys add`")
        if role not in key.roles.split() or key.model not in (None, model):
            raise RefusedError(403, "role", f"this key may not {role} here: its roles are {key.roles}")
        if self._rate is not None and not self._take(key.id, self._rate):
            raise RefusedError(429, "rate", f"this key may make {self._rate:g} requests a second")

    def _key(self, header: str | None) -> Key | None:
        scheme, _, text = (header or "").partition(" ")
        prefix, _, rest = text.strip().partition("_")
        id, _, secret = rest.partition("_")
        key = self._keys.get(id)
        if scheme.lower() != "bearer" or prefix != "gap" or key is None or key.revoked:
            return None
        return key if hmac.compare_digest(_hash(secret), key.hash) else None

    def _take(self, id: str, rate: float) -> bool:
        """One token of the key's, of which `rate` come back each second and at most as many are kept."""
        now = time.monotonic()
        left, when = self._tokens.get(id, (max(1.0, rate), now))
        left = min(max(1.0, rate), left + rate * (now - when))
        self._tokens[id] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0
