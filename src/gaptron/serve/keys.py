"""API keys and their roles. A key is shown once; the store holds only its hash.

The secret has 256 random bits. A plain SHA-256 is therefore sufficient: it cannot be guessed, and a slow hash would
delay every request.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from typing import get_args

from gaptron.errors import SettingError
from gaptron.serve.problems import RefusedError, invalid, not_found
from gaptron.serve.schemas import NAME_PATTERN, Role
from gaptron.serve.store import Key, Store

ROLES = get_args(Role)
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]", "::1")


def new_key(roles: Iterable[str], model: str | None) -> tuple[Key, str]:
    """Create a key for one model or for all; return it and its text, which contains the secret."""
    wanted = sorted(set(roles))
    if not wanted or not set(wanted) <= set(ROLES):
        raise SettingError(f"--role must be one or more of {', '.join(ROLES)}")
    if model is not None and re.match(NAME_PATTERN, model) is None:
        raise SettingError(f"--model {model!r} is not a valid name of a model")
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return Key(id, _hash(secret), " ".join(wanted), model, False), f"gap_{id}_{secret}"


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


class KeyRing:
    """The keys of a store. Without keys, every request from this machine is allowed."""

    def __init__(self, store: Store, rate: float | None = None) -> None:
        self._store, self._rate = store, rate
        self._keys: dict[str, Key] = {}
        self._tokens: dict[str, tuple[float, float]] = {}  # id → tokens left, and when that was
        self.reload()

    def reload(self) -> None:
        """Read the keys from the store again."""
        self._keys = {key.id: key for key in self._store.keys()}

    @property
    def is_empty(self) -> bool:
        """Are there no keys, not even revoked ones?"""
        return not self._keys

    def all(self) -> list[Key]:
        """All keys, including revoked ones."""
        return list(self._keys.values())

    # --- requests ---------------------------------------------------------------------------------------------------

    def check(self, authorization: str | None, role: str, model: str | None) -> Key | None:
        """Refuse a request that its Authorization header does not allow.

        Args:
            authorization: the header.
            role: the role that the request needs.
            model: the model that the request is about; None: no single model.

        Returns:
            The key of the request; None if there are no keys.

        Raises:
            RefusedError: 401 without a valid key, 403 if the key does not have the role.
        """
        if self.is_empty:
            return None
        key = self.find(authorization)
        if key is None:
            detail = "send Authorization: Bearer gap_... with a key made by `gaptron keys add`"
            raise RefusedError(401, "unauthorized", detail)
        if key.model not in (None, model):
            about = "all models" if model is None else f"model {model!r}"
            detail = f"this key is only valid for model {key.model!r}; the request is about {about}"
            raise RefusedError(403, "forbidden", detail)
        if role not in key.roles.split():
            raise RefusedError(403, "forbidden", f"this needs the role {role}; the key has: {key.roles}")
        return key

    def check_rate(self, key: Key) -> None:
        """Refuse a request if the key has made too many. Each request takes a token; `rate` return every second."""
        if self._rate is None:
            return
        now, most = time.monotonic(), max(1.0, self._rate)
        left, before = self._tokens.get(key.id, (most, now))
        left = min(most, left + self._rate * (now - before))
        self._tokens[key.id] = (left - 1.0 if left >= 1.0 else left, now)
        if left < 1.0:
            raise RefusedError(429, "rate-limit", f"this key is limited to {self._rate:g} requests per second")

    def find(self, authorization: str | None) -> Key | None:
        """Return the valid key in an Authorization header."""
        scheme, _, text = (authorization or "").partition(" ")
        prefix, _, rest = text.strip().partition("_")
        id, _, secret = rest.partition("_")
        key = self._keys.get(id)
        if scheme.lower() != "bearer" or prefix != "gap" or key is None or key.revoked:
            return None
        return key if hmac.compare_digest(_hash(secret), key.hash) else None

    # --- management -------------------------------------------------------------------------------------------------

    def check_first(self, roles: Iterable[str], model: str | None) -> None:
        """Refuse a first key that would lock everybody out: once there is a key, every request needs one."""
        if self.is_empty and ("admin" not in roles or model is not None):
            raise invalid("the first key must have the role admin for all models, or no further keys could be made")

    def check_revocable(self, id: str) -> Key:
        """Return the key with this id; refuse if it does not exist or is the last one that can create keys."""
        key = self._keys.get(id)
        if key is None:
            raise not_found(f"there is no key {id!r}")
        others = [one for one in self._keys.values() if one.id != id and not one.revoked and one.model is None]
        if not any("admin" in one.roles.split() for one in others):
            raise RefusedError(409, "last-key", "this is the last key with the role admin: create another one first")
        return key
