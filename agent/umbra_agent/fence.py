"""When to stop work, and when to try again. Pure: ages and draws come in as numbers.

The agent's clock for leases counts suspended time (CLOCK_BOOTTIME on Linux), since a lease goes
on while a laptop sleeps; the monotonic clock stands still then.
"""

import time
from collections.abc import Callable
from typing import Final

Clock = Callable[[], float]

MARGIN_S: Final = 3.0
"""Stop work this long before its lease can end: finding it late by a second, and the time that
killing a whole tree of processes takes."""

MARGIN_SHARE: Final = 0.25  # of a short lease: 5 s leave 1.25 s
RENEWALS_PER_LEASE: Final = 3  # two may be lost (Q07)

BACKOFF_BASE_S: Final = 0.5
BACKOFF_CAP_S: Final = 15.0
_DOUBLINGS: Final = 5  # 0.5 s doubled five times is past the cap


def boot_clock() -> float:
    """Return seconds since boot, suspended time included, where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def stop_at(asked_at: float, expires_in_s: float, lease_seconds: float) -> float:
    """Return when the work must have been stopped, on the clock of `asked_at`.

    The lease was granted after it was asked for, so counting from the question is on the safe
    side whatever the network did to the answer.
    """
    return asked_at + expires_in_s - min(MARGIN_S, MARGIN_SHARE * lease_seconds)


def renew_every_s(shortest_lease_s: float) -> float:
    """Return the rhythm of renewals for the shortest lease held."""
    return shortest_lease_s / RENEWALS_PER_LEASE


def backoff_s(failures: int, draw: float, retry_after_s: float | None = None) -> float:
    """Return the wait before trying again after `failures` (1 or more), with full jitter.

    `draw` is in [0, 1). What the controller asked for is waited at least.
    """
    ceiling = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0 ** min(failures, _DOUBLINGS))
    wait_s = ceiling * (0.5 + 0.5 * draw)
    return wait_s if retry_after_s is None else max(wait_s, retry_after_s)
