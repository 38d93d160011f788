"""The random number of a decision: a hash of the event's id, keyed with the model's secret.

The same id gives the same number, so a retry and a replay draw the same label, and there is no generator state to save.
The key prevents callers from choosing an id by its draw.
"""

import hashlib


def number(key: str, event_id: str) -> float:
    """Uniform on [0, 1), a multiple of 2⁻⁵³."""
    digest = hashlib.blake2b(event_id.encode(), key=bytes.fromhex(key), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)
