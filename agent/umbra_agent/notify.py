"""Telling systemd how it goes (sd_notify): ready, alive, stopping."""

import os
import socket
from contextlib import suppress


def tell(state: str) -> None:
    """Send a state such as READY=1; without a supervisor nobody listens, which is fine."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), address)


def watchdog_s() -> float | None:
    """Return how often to say WATCHDOG=1: half of what the supervisor allows; None: never."""
    allowed_us = os.environ.get("WATCHDOG_USEC", "")
    return int(allowed_us) / 2_000_000 if allowed_us.isdigit() else None
