"""Identifiers made here."""

import os
import time
from uuid import UUID


def uuid7() -> UUID:
    """Return a version 7 UUID (RFC 9562 §5.7): 48 bits of milliseconds, 74 bits of chance.

    Ids that grow with time keep an index's new entries together. The clock is this
    machine's and decides nothing: one that is wrong costs locality only.
    """
    millis = time.time_ns() // 1_000_000
    chance = int.from_bytes(os.urandom(10), "big")
    value = (millis & (1 << 48) - 1) << 80 | 0x7 << 76 | (chance >> 68) << 64
    return UUID(int=value | 0b10 << 62 | chance & (1 << 62) - 1)
