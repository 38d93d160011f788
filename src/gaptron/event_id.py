"""Ids for events, for callers that do not choose their own."""

import secrets
import time


def new_event_id() -> str:
    """Return a new id: the time in ms and 80 random bits. Ids sort by time."""
    return f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(10)}"
