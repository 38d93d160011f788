"""The number a decision is drawn with: a hash of the event's id under the model's key.

The same for the same id, so that a retry and a replay draw the same label, and no generator has a state to lose. The
key keeps callers from choosing an id by its draw.
"""

import hashlib


def number(key: str, event: str) -> float:
    """Uniform on [0, 1), one of 2⁵³ steps."""
    digest = hashlib.blake2b(event.encode(), key=bytes.fromhex(key), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)
