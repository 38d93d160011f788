"""Ids for events, made where the caller gives none."""

import secrets
import time


def new_event_id() -> str:
    """A time and 80 random bits: sorts by time, and nobody has it yet."""
    return f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(10)}"
