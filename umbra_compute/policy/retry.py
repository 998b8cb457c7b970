"""When a job that came back runs again. Source: SPEC §6, fail and expire."""

from typing import Final

BASE_S: Final = 5.0
CAP_S: Final = 600.0
SPREAD: Final = 0.10  # jobs that died together do not come back together
RELEASES_PER_ATTEMPT: Final = 20  # this many releases burn one attempt

_DOUBLINGS_TO_CAP: Final = 7  # 5 s doubled seven times is past the cap; many more overflow


def backoff_s(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after `attempt` (1 is the first) came back.

    `jitter` is in [-1, 1] and drawn by the caller, so that equal values give equal answers.

    Raises ValueError for an attempt below 1 or a jitter out of range.
    """
    if attempt < 1:
        raise ValueError(f"attempt starts at 1, got {attempt}")
    if not -1.0 <= jitter <= 1.0:
        raise ValueError(f"jitter is in [-1, 1], got {jitter}")
    base = BASE_S * 2.0 ** min(attempt - 1, _DOUBLINGS_TO_CAP)
    return min(base, CAP_S) * (1.0 + SPREAD * jitter)
