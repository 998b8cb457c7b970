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

MARGIN_SHARE: Final = 0.15  # of a short lease: 5 s leave 0.75 s
TICKS_PER_LEASE: Final = 6
"""With answers that take 0.4 of the lease, two renewals in flight and one lost, the second still
comes in time at a sixth, and would not at a third (Q07)."""

CALM_TICKS: Final = 2  # while all is well: a renewal at each third of the lease
SLOW_SHARE: Final = 1 / 12  # of the lease: an answer that takes longer is slow

BACKOFF_BASE_S: Final = 0.5
BACKOFF_CAP_S: Final = 15.0
BACKOFF_LEAST_S: Final = 0.1  # full jitter draws 0 as well, and nothing should spin
RETRY_AFTER_CAP_S: Final = 60.0  # longer silence than this is not asked for in earnest
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


def tick_s(shortest_lease_s: float) -> float:
    """Return how often to ask whether to renew, for the shortest lease held."""
    return shortest_lease_s / TICKS_PER_LEASE


def is_slow(took_s: float, lease_s: float) -> bool:
    """Tell whether an answer took so long that renewals should come closer together."""
    return took_s > SLOW_SHARE * lease_s


def backoff_s(failures: int, draw: float, retry_after_s: float | None = None) -> float:
    """Return the wait before trying again after `failures` (1 or more), with full jitter.

    `draw` is in [0, 1). What the controller asked for is waited at least, up to a minute.
    """
    ceiling = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0 ** min(failures, _DOUBLINGS))
    wait_s = max(BACKOFF_LEAST_S, ceiling * draw)
    if retry_after_s is None:
        return wait_s
    return max(wait_s, min(retry_after_s, RETRY_AFTER_CAP_S) + BACKOFF_BASE_S * draw)
